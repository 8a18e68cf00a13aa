//! NIFs of the ChangeLog. All that touch the disk run on dirty I/O schedulers.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use beamtalk_image::changelog::{
    AuthorKind, ChangeLog, Delta, Durability, Entry, Error, Intent, Kind, ListedStep, NewEntry, RealDisk,
    Repair, RevertStep, RevertTarget, Rotation, Runs, Settings, Side, Span, SpanAnswer, UnknownWord,
    after_span, delta,
};
use parking_lot::Mutex;
use rustler::{Atom, Binary, Encoder, Env, NifResult, Term};

use crate::atoms;
use crate::terms::{binary, boolean, each, list};

/// The open runs of this VM; one of them is the workspace's.
static RUNS: LazyLock<Runs> = LazyLock::new(Runs::new);
static CURRENT: Mutex<Option<Arc<ChangeLog>>> = Mutex::new(None);

fn current() -> Option<Arc<ChangeLog>> {
    CURRENT.lock().clone()
}

// Words.

fn kinds() -> [(Atom, Kind); 6] {
    [
        (atoms::instance(), Kind::Instance),
        (atoms::class(), Kind::Class),
        (atoms::new_class(), Kind::NewClass),
        (atoms::remove_method(), Kind::RemoveMethod),
        (atoms::remove_class(), Kind::RemoveClass),
        (atoms::unknown(), Kind::Unknown),
    ]
}

fn sides() -> [(Atom, Side); 2] {
    [(atoms::instance(), Side::Instance), (atoms::class(), Side::Class)]
}

fn intents() -> [(Atom, Intent); 3] {
    [
        (atoms::durable(), Intent::Durable),
        (atoms::ephemeral(), Intent::Ephemeral),
        (atoms::unknown(), Intent::Unknown),
    ]
}

fn author_kinds() -> [(Atom, AuthorKind); 3] {
    [
        (atoms::human(), AuthorKind::Human),
        (atoms::agent(), AuthorKind::Agent),
        (atoms::unknown(), AuthorKind::Unknown),
    ]
}

fn word<T: PartialEq>(meaning: &T, words: &[(Atom, T)]) -> Atom {
    words.iter().find(|(_, known)| known == meaning).map_or_else(atoms::undefined, |(word, _)| *word)
}

fn meaning<T: Copy>(term: Term, words: &[(Atom, T)]) -> Option<T> {
    let word = term.decode::<Atom>().ok()?;
    words.iter().find(|(known, _)| *known == word).map(|(_, meaning)| *meaning)
}

// Encoding.

fn text<'a>(env: Env<'a>, text: Option<&str>) -> Term<'a> {
    text.map_or_else(|| atoms::undefined().encode(env), |text| binary(env, text.as_bytes()))
}

fn encode_span<'a>(env: Env<'a>, span: Option<Span>) -> Term<'a> {
    span.map_or_else(|| atoms::undefined().encode(env), |span| (span.start, span.end).encode(env))
}

fn encode_side<'a>(env: Env<'a>, side: Option<Side>) -> Term<'a> {
    side.map_or_else(|| atoms::undefined().encode(env), |side| word(&side, &sides()).encode(env))
}

/// The record `change` of `beamtalk_workspace_changelog`: the same fields in the same order.
fn encode_entry<'a>(env: Env<'a>, entry: &Entry) -> Term<'a> {
    rustler::types::tuple::make_tuple(
        env,
        &[
            atoms::change().encode(env),
            entry.seq.encode(env),
            entry.epoch.encode(env),
            entry.ts.encode(env),
            binary(env, entry.class.as_bytes()),
            text(env, entry.selector.as_deref()),
            word(&entry.kind, &kinds()).encode(env),
            encode_side(env, entry.side()),
            encode_side(env, entry.stored_side),
            boolean(env, entry.flushable),
            text(env, entry.not_flushable_reason.as_deref()),
            boolean(env, entry.flushed),
            word(&entry.intent, &intents()).encode(env),
            binary(env, entry.author.as_bytes()),
            word(&entry.author_kind, &author_kinds()).encode(env),
            text(env, entry.source_file.as_deref()),
            encode_span(env, entry.span),
            text(env, entry.source_ref.as_deref()),
            text(env, entry.prev_source_ref.as_deref()),
            text(env, entry.layer.as_deref()),
            text(env, entry.owner.as_deref()),
            boolean(env, entry.orphan),
            boolean(env, entry.prior_epoch),
        ],
    )
}

fn posix_atom<'a>(env: Env<'a>, word: &str) -> Term<'a> {
    // Error words come from a closed list of the core, so making atoms of them is bounded.
    Atom::from_str(env, word).map_or_else(|_| atoms::unknown().encode(env), |word| word.encode(env))
}

/// `{Name, Detail}` or a bare name.
fn encode_error<'a>(env: Env<'a>, error: &Error) -> Term<'a> {
    let name = posix_atom(env, error.name());
    match error {
        Error::Io(fault) => {
            (name, binary(env, fault.path.to_string_lossy().as_bytes()), posix_atom(env, fault.posix()))
                .encode(env)
        }
        Error::NoSource | Error::NoPrevSource | Error::NoWorkspace | Error::Closed => name,
        other => (name, binary(env, other.to_string().as_bytes())).encode(env),
    }
}

fn encode_unknown<'a>(env: Env<'a>, unknown: &UnknownWord) -> Term<'a> {
    let field = binary(env, unknown.field.as_bytes());
    (atoms::unknown(), unknown.seq, field, binary(env, unknown.value.as_bytes())).encode(env)
}

fn encode_repair<'a>(env: Env<'a>, repair: &Repair) -> Term<'a> {
    (atoms::repair(), binary(env, format!("{repair:?}").as_bytes())).encode(env)
}

fn encode_rotation<'a>(env: Env<'a>, rotation: &Rotation) -> Term<'a> {
    match rotation {
        Rotation::Done { moved, segment, left_over } => {
            let left_over =
                left_over.as_ref().map_or_else(|| atoms::none().encode(env), |e| encode_error(env, e));
            (atoms::rotated(), *moved, binary(env, segment.as_bytes()), left_over).encode(env)
        }
        Rotation::Failed(error) => (atoms::rotation_failed(), encode_error(env, error)).encode(env),
    }
}

fn events<'a>(env: Env<'a>, repairs: &[Repair], rotation: Option<&Rotation>) -> Term<'a> {
    let repairs = repairs.iter().map(|repair| encode_repair(env, repair));
    let events: Vec<Term> = repairs.chain(rotation.map(|rotation| encode_rotation(env, rotation))).collect();
    list(env, events.into_iter())
}

fn ok_or_error<'a, T>(
    env: Env<'a>,
    outcome: Result<T, Error>,
    answer: impl FnOnce(T) -> Term<'a>,
) -> Term<'a> {
    match outcome {
        Ok(done) => (atoms::ok(), answer(done)).encode(env),
        Err(Error::Closed) => atoms::closed().encode(env),
        Err(error) => (atoms::error(), encode_error(env, &error)).encode(env),
    }
}

// Runs.

/// Attaches to the run of a folder (`none` for memory) or begins one: `{ok, Epoch, Events}` or `{error, Reason}`.
#[rustler::nif(schedule = "DirtyIo")]
fn changelog_open<'a>(
    env: Env<'a>,
    dir: Term<'a>,
    bound: usize,
    slack: usize,
    fsync: bool,
    fail_point: Term<'a>,
) -> NifResult<Term<'a>> {
    let mut settings = match dir.decode::<&str>() {
        Ok(dir) => Settings::durable(PathBuf::from(dir)),
        Err(_) => Settings::memory(),
    };
    settings.bound = bound;
    settings.slack = slack;
    settings.durability = if fsync { Durability::Fsync } else { Durability::Os };
    let disk = match fail_point.decode::<&str>() {
        Ok(name) => crate::failing::disk(name).ok_or(rustler::Error::BadArg)?,
        Err(_) => RealDisk::new(),
    };
    let attached = match RUNS.attach(settings, Arc::new(disk)) {
        Ok(attached) => attached,
        Err(error) => return Ok((atoms::error(), encode_error(env, &error)).encode(env)),
    };
    let earlier = CURRENT.lock().replace(Arc::clone(&attached.log));
    if let Some(earlier) = earlier.filter(|earlier| !Arc::ptr_eq(earlier, &attached.log)) {
        RUNS.end(earlier.settings().dir.as_deref());
    }
    let events: Vec<Term> = attached.report.map_or_else(Vec::new, |report| {
        let skipped = report.skipped.iter().map(|line| {
            (atoms::skipped(), line.line, line.offset, line.length, binary(env, line.why.as_bytes()))
                .encode(env)
        });
        let unread =
            report.unreadable.iter().map(|error| (atoms::unreadable(), encode_error(env, error)).encode(env));
        let problems =
            report.problems.iter().map(|error| (atoms::problem(), encode_error(env, error)).encode(env));
        unread
            .chain(skipped)
            .chain(report.unknown.iter().map(|unknown| encode_unknown(env, unknown)))
            .chain(report.repairs.iter().map(|repair| encode_repair(env, repair)))
            .chain(problems)
            .chain(report.rotation.iter().map(|rotation| encode_rotation(env, rotation)))
            .collect()
    });
    Ok((atoms::ok(), attached.log.view().epoch(), list(env, events.into_iter())).encode(env))
}

/// Ends the run in good order; the next one begins another epoch.
#[rustler::nif(schedule = "DirtyIo")]
fn changelog_end() -> Atom {
    // Taken in a statement of its own, so that no reader waits for the writers that ending waits for.
    let ended = CURRENT.lock().take();
    if let Some(log) = ended {
        RUNS.end(log.settings().dir.as_deref());
    }
    atoms::ok()
}

// Writing.

/// One field of the map that is appended; `undefined` and absent are the same.
fn field<'a>(map: Term<'a>, key: Atom) -> Option<Term<'a>> {
    let value = map.map_get(key).ok()?;
    (!value.decode::<Atom>().is_ok_and(|atom| atom == atoms::undefined())).then_some(value)
}

type Bad<'a> = (Atom, Term<'a>);

fn mandatory<'a>(map: Term<'a>, key: Atom) -> Result<Term<'a>, Bad<'a>> {
    field(map, key).ok_or_else(|| (key, atoms::missing().encode(map.get_env())))
}

fn string<'a>(key: Atom, value: Term<'a>) -> Result<&'a str, Bad<'a>> {
    value.decode::<&str>().map_err(|_| (key, value))
}

fn choice<'a, T: Copy>(key: Atom, value: Term<'a>, words: &[(Atom, T)]) -> Result<T, Bad<'a>> {
    meaning(value, words).ok_or((key, value))
}

fn body<'a>(map: Term<'a>, key: Atom) -> Result<Option<&'a [u8]>, Bad<'a>> {
    let Some(value) = field(map, key) else { return Ok(None) };
    value.decode::<Binary>().map(|body| Some(body.as_slice())).map_err(|_| (key, value))
}

fn optional<'a>(map: Term<'a>, key: Atom) -> Result<Option<&'a str>, Bad<'a>> {
    field(map, key).map(|value| string(key, value)).transpose()
}

fn span<'a>(map: Term<'a>) -> Result<Option<Span>, Bad<'a>> {
    let Some(value) = field(map, atoms::span()) else { return Ok(None) };
    let offset = |key: Atom| value.map_get(key).and_then(|offset| offset.decode::<u64>());
    match (offset(atoms::start()), offset(atoms::end())) {
        (Ok(start), Ok(end)) => Ok(Some(Span { start, end })),
        _ => Err((atoms::span(), value)),
    }
}

fn new_entry<'a>(map: Term<'a>) -> Result<NewEntry<'a>, Bad<'a>> {
    let flushable = mandatory(map, atoms::flushable())?;
    Ok(NewEntry {
        class: string(atoms::class(), mandatory(map, atoms::class())?)?,
        selector: optional(map, atoms::selector())?,
        kind: choice(atoms::kind(), mandatory(map, atoms::kind())?, &kinds())?,
        side: field(map, atoms::side()).map(|side| choice(atoms::side(), side, &sides())).transpose()?,
        source: body(map, atoms::source())?,
        prev_source: body(map, atoms::prev_source())?,
        source_file: optional(map, atoms::source_file())?,
        span: span(map)?,
        flushable: flushable.decode().map_err(|_| (atoms::flushable(), flushable))?,
        not_flushable_reason: optional(map, atoms::not_flushable_reason())?,
        intent: choice(atoms::intent(), mandatory(map, atoms::intent())?, &intents())?,
        author: string(atoms::author(), mandatory(map, atoms::author())?)?,
        author_kind: choice(atoms::author_kind(), mandatory(map, atoms::author_kind())?, &author_kinds())?,
        layer: optional(map, atoms::layer())?,
        owner: optional(map, atoms::owner())?,
    })
}

/// `{ok, {Seq, Events}}`, `{error, Reason}`, `{bad_entry, 1, Key, Value}` or `closed`.
#[rustler::nif(schedule = "DirtyIo")]
fn changelog_append<'a>(env: Env<'a>, map: Term<'a>) -> Term<'a> {
    let Some(log) = current() else { return atoms::closed().encode(env) };
    match new_entry(map) {
        Err((key, value)) => (atoms::bad_entry(), 1, key, value).encode(env),
        Ok(new) => ok_or_error(env, log.append(&new), |appended| {
            (appended.entry.seq, events(env, &appended.repairs, appended.rotation.as_ref())).encode(env)
        }),
    }
}

/// `{ok, Events}`, `{error, Reason}` or `closed`.
#[rustler::nif(schedule = "DirtyIo")]
fn changelog_mark_flushed<'a>(env: Env<'a>, seqs: Term<'a>) -> NifResult<Term<'a>> {
    let mut wanted = Vec::new();
    each(seqs, |seq| {
        // A number that no entry can have is ignored like any that none has.
        if let Ok(seq) = seq.decode::<u64>() {
            wanted.push(seq);
        }
        Ok(())
    })?;
    Ok(match current() {
        None => atoms::closed().encode(env),
        Some(log) => ok_or_error(env, log.mark_flushed(&wanted), |repairs| events(env, &repairs, None)),
    })
}

/// `{ok, Events}`, `{error, Reason}` or `closed`.
#[rustler::nif(schedule = "DirtyIo")]
fn changelog_clear(env: Env<'_>) -> Term<'_> {
    match current() {
        None => atoms::closed().encode(env),
        Some(log) => ok_or_error(env, log.clear(), |repairs| events(env, &repairs, None)),
    }
}

// Reading.

fn entries<'a, 'v>(env: Env<'a>, entries: impl DoubleEndedIterator<Item = &'v Arc<Entry>>) -> Term<'a> {
    list(env, entries.map(|entry| encode_entry(env, entry)))
}

/// All entries; `all`, `active` or `pending` says which.
#[rustler::nif(schedule = "DirtyCpu")]
fn changelog_entries<'a>(env: Env<'a>, which: Atom) -> NifResult<Term<'a>> {
    let Some(log) = current() else { return Ok(Term::list_new_empty(env)) };
    let view = log.view();
    if which == atoms::all() {
        Ok(entries(env, view.entries()))
    } else if which == atoms::active() {
        Ok(entries(env, view.active()))
    } else if which == atoms::pending() {
        Ok(entries(env, view.flushable_pending()))
    } else {
        Err(rustler::Error::BadArg)
    }
}

#[rustler::nif]
fn changelog_size() -> usize {
    current().map_or(0, |log| log.view().len())
}

/// The epoch, or `closed`.
#[rustler::nif]
fn changelog_epoch(env: Env<'_>) -> Term<'_> {
    current().map_or_else(|| atoms::closed().encode(env), |log| log.view().epoch().encode(env))
}

/// `{Entry, Active, Shadowed, Step}` of every entry, all of one state. The step is `none`, `{known, Clean, Diff}`,
/// `{text, Key, Text}` or `{span, Key, FileText, Memory}`.
#[rustler::nif(schedule = "DirtyIo")]
fn changelog_listing(env: Env<'_>) -> Term<'_> {
    let Some(log) = current() else { return Term::list_new_empty(env) };
    let listing = log.listing();
    // Rows of one file share one binary.
    let mut files: HashMap<*const u8, Term> = HashMap::new();
    let rows: Vec<Term> = listing
        .iter()
        .map(|listed| {
            let step = match &listed.step {
                ListedStep::Nothing => atoms::none().encode(env),
                ListedStep::Known { clean, diff } => {
                    let diff = diff
                        .as_ref()
                        .map_or_else(|| atoms::undefined().encode(env), |diff| binary(env, diff));
                    (atoms::known(), boolean(env, *clean), diff).encode(env)
                }
                ListedStep::NewText { text, key } => (atoms::text(), *key, binary(env, text)).encode(env),
                ListedStep::NeedSpan { file, memory, key } => {
                    let file = *files.entry(file.as_ptr()).or_insert_with(|| binary(env, file));
                    (atoms::span(), *key, file, binary(env, memory)).encode(env)
                }
            };
            let row = &listed.row;
            (encode_entry(env, &row.entry), boolean(env, row.active), boolean(env, row.shadowed), step)
                .encode(env)
        })
        .collect();
    list(env, rows.into_iter())
}

/// What came of comparing: `{Seq, Key, Clean, Diff}`, the last a text or `undefined`. Others are left out.
#[rustler::nif(schedule = "DirtyCpu")]
fn changelog_remember<'a>(results: Term<'a>) -> NifResult<Atom> {
    let log = current();
    each(results, |result| {
        let (seq, key, clean, diff): (u64, u64, bool, Term) = result.decode()?;
        let diff = diff.decode::<Binary>().ok();
        if let Some(log) = &log {
            log.remember_delta(seq, key, clean, diff.as_ref().map(Binary::as_slice));
        }
        Ok(())
    })?;
    Ok(atoms::ok())
}

/// `clean` or `{differs, Disk, Memory}`, both as they are to be shown.
#[rustler::nif(schedule = "DirtyCpu")]
fn changelog_delta<'a>(env: Env<'a>, disk: Binary<'a>, memory: Binary<'a>) -> Term<'a> {
    match delta(&disk, &memory) {
        Delta::Clean => atoms::clean().encode(env),
        Delta::Differs { disk, memory } => {
            (atoms::differs(), binary(env, &disk), binary(env, &memory)).encode(env)
        }
    }
}

/// The classes with active entries, each with its selectors: `{Class, [Selector]}`.
#[rustler::nif(schedule = "DirtyCpu")]
fn changelog_dirty(env: Env<'_>) -> Term<'_> {
    let Some(log) = current() else { return Term::list_new_empty(env) };
    let view = log.view();
    let dirty = view.dirty();
    list(
        env,
        dirty.iter().map(|(class, selectors)| {
            let selectors = selectors.iter().map(|selector| binary(env, selector.as_bytes()));
            (binary(env, class.as_bytes()), list(env, selectors)).encode(env)
        }),
    )
}

/// The body that a recorded reference names: `{ok, Text}` or `{error, Reason}`.
#[rustler::nif(schedule = "DirtyIo")]
fn changelog_body<'a>(env: Env<'a>, reference: &str) -> Term<'a> {
    let Some(log) = current() else { return (atoms::error(), atoms::no_workspace()).encode(env) };
    match log.read_body(reference) {
        Ok(text) => (atoms::ok(), binary(env, &text)).encode(env),
        // Callers know file errors by their POSIX name alone.
        Err(Error::Io(fault)) => (atoms::error(), posix_atom(env, fault.posix())).encode(env),
        Err(error) => (atoms::error(), encode_error(env, &error)).encode(env),
    }
}

fn encode_target<'a>(env: Env<'a>, target: RevertTarget) -> Term<'a> {
    match target {
        RevertTarget::NoEntry => (atoms::error(), atoms::no_entry()).encode(env),
        RevertTarget::NoPrevSource => (atoms::error(), atoms::no_prev_source()).encode(env),
        RevertTarget::Remove(entry) => (atoms::remove(), encode_entry(env, &entry)).encode(env),
        RevertTarget::ReinstallClass(text, entry) => {
            (atoms::reinstall_class(), binary(env, &text), encode_entry(env, &entry)).encode(env)
        }
        RevertTarget::Body(text, entry) => {
            (atoms::ok(), binary(env, &text), encode_entry(env, &entry)).encode(env)
        }
    }
}

/// What reverting means, or `{span, Entry, FileText}` where the host must say where the method stands.
#[rustler::nif(schedule = "DirtyIo")]
fn changelog_revert_target<'a>(
    env: Env<'a>,
    class: Binary<'a>,
    selector: Binary<'a>,
    side: Term<'a>,
) -> Term<'a> {
    // Names that are no text are in no entry.
    let names = std::str::from_utf8(&class).ok().zip(std::str::from_utf8(&selector).ok());
    let Some((log, (class, selector))) = current().zip(names) else {
        return (atoms::error(), atoms::no_entry()).encode(env);
    };
    match log.find_revert_target(class, selector, meaning(side, &sides())) {
        RevertStep::Decided(target) => encode_target(env, target),
        RevertStep::NeedSpan { entry, file } => {
            (atoms::span(), encode_entry(env, &entry), binary(env, &file)).encode(env)
        }
    }
}

/// The same once the host has said: `{ok, Text}`, `selector_not_found` or anything else for a failure. The entry is
/// known by its number.
#[rustler::nif(schedule = "DirtyCpu")]
fn changelog_revert_after<'a>(env: Env<'a>, seq: u64, answer: Term<'a>) -> Term<'a> {
    let entry = current().and_then(|log| log.view().entry(seq).map(Arc::clone));
    let Some(entry) = entry else { return (atoms::error(), atoms::no_entry()).encode(env) };
    let found = answer.decode::<(Atom, Binary)>().ok();
    let absent = answer.decode::<Atom>().is_ok_and(|atom| atom == atoms::selector_not_found());
    let answer = match &found {
        Some((_, text)) => SpanAnswer::Found(text),
        None if absent => SpanAnswer::SelectorNotFound,
        None => SpanAnswer::Failed,
    };
    encode_target(env, after_span(entry, answer))
}

/// An entry from a line of the log: `{ok, Entry, Events}` or `{error, Why}`.
#[rustler::nif(schedule = "DirtyCpu")]
fn changelog_from_json<'a>(env: Env<'a>, line: Binary<'a>) -> Term<'a> {
    let mut unknown = Vec::new();
    match Entry::from_json(&line, &mut unknown) {
        Ok(entry) => {
            let events = list(env, unknown.iter().map(|unknown| encode_unknown(env, unknown)));
            (atoms::ok(), encode_entry(env, &entry), events).encode(env)
        }
        Err(why) => (atoms::error(), binary(env, why.as_bytes())).encode(env),
    }
}

/// The line of an entry, from its fields in the order of the record.
#[rustler::nif(schedule = "DirtyCpu")]
fn changelog_to_json<'a>(env: Env<'a>, entry: Term<'a>) -> NifResult<Term<'a>> {
    let fields = rustler::types::tuple::get_tuple(entry)?;
    let [
        _,
        seq,
        epoch,
        ts,
        class,
        selector,
        kind,
        _,
        side,
        flushable,
        reason,
        flushed,
        intent,
        author,
        author_kind,
        file,
        span,
        source,
        prev,
        layer,
        owner,
        orphan,
        prior,
    ] = fields.as_slice()
    else {
        return Err(rustler::Error::BadArg);
    };
    let text = |term: &Term<'a>| term.decode::<&str>().ok().map(Box::from);
    let entry = Entry {
        seq: seq.decode()?,
        epoch: epoch.decode()?,
        ts: ts.decode()?,
        class: class.decode::<&str>()?.into(),
        selector: text(selector),
        kind: meaning(*kind, &kinds()).ok_or(rustler::Error::BadArg)?,
        stored_side: meaning(*side, &sides()),
        flushable: flushable.decode()?,
        not_flushable_reason: text(reason),
        flushed: flushed.decode()?,
        intent: meaning(*intent, &intents()).ok_or(rustler::Error::BadArg)?,
        author: author.decode::<&str>()?.into(),
        author_kind: meaning(*author_kind, &author_kinds()).ok_or(rustler::Error::BadArg)?,
        source_file: text(file),
        span: span.decode::<(u64, u64)>().ok().map(|(start, end)| Span { start, end }),
        source_ref: text(source),
        prev_source_ref: text(prev),
        layer: text(layer),
        owner: text(owner),
        orphan: orphan.decode()?,
        prior_epoch: prior.decode()?,
    };
    Ok(binary(env, &entry.to_json()))
}
