//! NIFs of the cross-reference index.

use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

use beamtalk_image::xref::{
    Found, LAST_LINE, Method, MethodFacts, Provenance, RecvKind, RecvType, RecvTypeRef, Reference, Refused,
    Send, SendRow, SourceStatus, UnresolvedSend, View, Word, Xref,
};
use beamtalk_image::{Patience, Sym};
use rustler::{Atom, Encoder, Env, Error, NifResult, Term};

use crate::atoms;
use crate::terms::{
    Name, ROWS_AT_ONCE, atom, binary, boolean, collect, each, is_undefined, list, names, sym, tuple,
};

pub(crate) static XREF: LazyLock<Xref> = LazyLock::new(Xref::default);

/// Receiver types nest this deep at most; the compiler's own are flat.
const DEEPEST_TYPE: usize = 16;

/// An entry with more sends, or a send with more names in its type, is decoded on a dirty scheduler.
const SENDS_AT_ONCE: usize = 256;
const TYPE_NAMES_AT_ONCE: usize = 16;

/// A class with more methods is asked for on a dirty scheduler.
const METHODS_AT_ONCE: usize = 2_000;

// Decoding method entries.

/// What is wrong with an entry: its place in the list, the key, the value.
struct Bad<'a> {
    index: usize,
    key: Atom,
    value: Term<'a>,
}

impl<'a> Bad<'a> {
    fn encode(self, env: Env<'a>) -> Term<'a> {
        (atoms::bad_entry(), self.index, self.key, self.value).encode(env)
    }
}

/// One map of the input, which remembers where it stands.
#[derive(Clone, Copy)]
struct Fields<'a> {
    map: Term<'a>,
    index: usize,
}

impl<'a> Fields<'a> {
    fn new(map: Term<'a>, index: usize, key: Atom) -> Result<Self, Bad<'a>> {
        if map.is_map() { Ok(Self { map, index }) } else { Err(Bad { index, key, value: map }) }
    }

    fn get(&self, key: Atom) -> Option<Term<'a>> {
        self.map.map_get(key).ok()
    }

    fn bad(&self, key: Atom, value: Term<'a>) -> Bad<'a> {
        Bad { index: self.index, key, value }
    }

    fn mandatory(&self, key: Atom) -> Result<Term<'a>, Bad<'a>> {
        self.get(key).ok_or_else(|| self.bad(key, atoms::missing().encode(self.map.get_env())))
    }

    fn name(&self, key: Atom) -> Result<Sym, Bad<'a>> {
        let value = self.mandatory(key)?;
        sym(value).ok_or_else(|| self.bad(key, value))
    }

    fn line(&self, default: Option<u32>) -> Result<u32, Bad<'a>> {
        let value = match (self.get(atoms::line()), default) {
            (None, Some(line)) => return Ok(line),
            (None, None) => self.mandatory(atoms::line())?,
            (Some(value), _) => value,
        };
        match value.decode::<u32>() {
            Ok(line) if line > 0 && line <= LAST_LINE => Ok(line),
            _ => Err(self.bad(atoms::line(), value)),
        }
    }

    /// The meaning of an atom under a key, or the default if the key is absent.
    fn choice<T: Copy>(&self, key: Atom, default: T, choices: &[(Atom, T)]) -> Result<T, Bad<'a>> {
        let Some(value) = self.get(key) else { return Ok(default) };
        let chosen = value.decode::<Atom>().ok();
        let found = choices.iter().find(|(atom, _)| Some(*atom) == chosen);
        found.map(|(_, meaning)| *meaning).ok_or_else(|| self.bad(key, value))
    }

    /// A list of maps under a key, each made into a row.
    fn rows<T>(
        &self,
        key: Atom,
        mut row: impl FnMut(Fields<'a>) -> Result<T, Bad<'a>>,
    ) -> Result<Vec<T>, Bad<'a>> {
        let Some(value) = self.get(key) else { return Ok(Vec::new()) };
        let mut rows = Vec::new();
        let mut bad = None;
        let walked = each(value, |element| {
            match Fields::new(element, self.index, key).and_then(&mut row) {
                Ok(made) => rows.push(made),
                Err(wrong) => {
                    bad = Some(wrong);
                    return Err(Error::BadArg);
                }
            }
            Ok(())
        });
        match (walked, bad) {
            (Ok(()), _) => Ok(rows),
            (Err(_), Some(wrong)) => Err(wrong),
            (Err(_), None) => Err(self.bad(key, value)),
        }
    }
}

fn recv_kinds() -> [(Atom, RecvKind); 4] {
    [
        (atoms::self_recv(), RecvKind::SelfRecv),
        (atoms::super_recv(), RecvKind::SuperRecv),
        (atoms::erlang_ffi(), RecvKind::ErlangFfi),
        (atoms::other(), RecvKind::Other),
    ]
}

fn statuses() -> [(Atom, SourceStatus); 3] {
    [
        (atoms::indexed(), SourceStatus::Indexed),
        (atoms::unindexed_runtime_fun(), SourceStatus::UnindexedRuntimeFun),
        (atoms::synthetic(), SourceStatus::Synthetic),
    ]
}

fn provenances() -> [(Atom, Provenance); 5] {
    [
        (atoms::class_body(), Provenance::ClassBody),
        (atoms::extension(), Provenance::Extension),
        (atoms::class_builder(), Provenance::ClassBuilder),
        (atoms::put_method(), Provenance::PutMethod),
        (atoms::protocol(), Provenance::Protocol),
    ]
}

fn word_for<T: PartialEq>(meaning: &T, choices: &[(Atom, T)]) -> Atom {
    choices.iter().find(|(_, choice)| choice == meaning).map_or_else(atoms::undefined, |(atom, _)| *atom)
}

fn recv_type(term: Term, depth: usize) -> Option<RecvType> {
    if let Some(name) = sym(term) {
        let dynamic = term.decode::<Atom>().is_ok_and(|atom| atom == atoms::dynamic());
        return Some(if dynamic { RecvType::Dynamic } else { RecvType::Name(name) });
    }
    let (kind, members) = term.decode::<(Atom, Term)>().ok().filter(|_| depth < DEEPEST_TYPE)?;
    let mut types = Vec::new();
    each(members, |member| {
        types.push(recv_type(member, depth + 1).ok_or(Error::BadArg)?);
        Ok(())
    })
    .ok()?;
    if kind == atoms::union() {
        Some(RecvType::Union(types.into()))
    } else if kind == atoms::intersection() {
        Some(RecvType::Intersection(types.into()))
    } else {
        None
    }
}

fn target_module(send: &Fields) -> Result<Option<Sym>, ()> {
    match send.get(atoms::target_module()) {
        None => Ok(None),
        Some(value) if value.decode::<Atom>().is_ok_and(|atom| atom == atoms::undefined()) => Ok(None),
        Some(value) => sym(value).map(Some).ok_or(()),
    }
}

fn word(term: Term) -> Option<Word> {
    if let Some(name) = sym(term) {
        return Some(Word::Known(name));
    }
    term.decode::<&str>().ok().map(|text| Word::Text(Arc::from(text)))
}

fn one_send<'a>(send: Fields<'a>, method_line: u32) -> Result<Send, Bad<'a>> {
    let wrong = |key: Atom| send.bad(key, send.get(key).unwrap_or(send.map));
    Ok(Send {
        selector: send.name(atoms::selector())?,
        line: send.line(Some(method_line))?,
        kind: send.choice(atoms::recv_kind(), RecvKind::Other, &recv_kinds())?,
        target: target_module(&send).map_err(|()| wrong(atoms::target_module()))?,
        recv_type: match send.get(atoms::recv_type()) {
            None => RecvType::Dynamic,
            Some(value) => recv_type(value, 0).ok_or_else(|| wrong(atoms::recv_type()))?,
        },
    })
}

fn unresolved_send<'a>(send: Fields<'a>, method_line: u32) -> Result<UnresolvedSend, Bad<'a>> {
    let selector = send.mandatory(atoms::selector())?;
    let target = match send.get(atoms::target_module()) {
        None => None,
        Some(value) if value.decode::<Atom>().is_ok_and(|atom| atom == atoms::undefined()) => None,
        Some(value) => Some(word(value).ok_or_else(|| send.bad(atoms::target_module(), value))?),
    };
    Ok(UnresolvedSend {
        selector: word(selector).ok_or_else(|| send.bad(atoms::selector(), selector))?,
        line: send.line(Some(method_line))?,
        kind: send.choice(atoms::recv_kind(), RecvKind::Other, &recv_kinds())?,
        target,
    })
}

/// A method of a class from its entry. Side and selector are the caller's where it states them.
fn method<'a>(class: Sym, stated: Option<(bool, Sym)>, entry: Fields<'a>) -> Result<(Method, bool), Bad<'a>> {
    let (class_side, selector) = match stated {
        Some(stated) => stated,
        None => {
            let sides = [(atoms::true_(), true), (atoms::false_(), false)];
            (entry.choice(atoms::class_side(), false, &sides)?, entry.name(atoms::selector())?)
        }
    };
    let line = entry.line(None)?;
    let version = match entry.get(atoms::extension_version()) {
        None => 0,
        Some(value) => value.decode().map_err(|_| entry.bad(atoms::extension_version(), value))?,
    };
    let origin = match entry.get(atoms::origin()) {
        None => None,
        Some(value) => Some(sym(value).ok_or_else(|| entry.bad(atoms::origin(), value))?),
    };
    let facts = MethodFacts {
        line,
        status: entry.choice(atoms::source_status(), SourceStatus::Indexed, &statuses())?,
        provenance: entry.choice(atoms::provenance(), Provenance::ClassBody, &provenances())?,
        origin,
        extension_version: version,
        sends: entry.rows(atoms::sends(), |send| one_send(send, line))?,
        references: entry.rows(atoms::references(), |reference| {
            Ok(Reference { class: reference.name(atoms::class())?, line: reference.line(Some(line))? })
        })?,
        unresolved: entry.rows(atoms::unresolved_sends(), |send| unresolved_send(send, line))?,
    };
    let completes =
        entry.get(atoms::completes()).is_some_and(|value| value.decode::<bool>().unwrap_or(false));
    Ok((Method::new(class, class_side, selector, facts), completes))
}

// Writing. Every write answers `ok`, `closed`, `busy` or what is wrong with its input.

fn written<'a, T>(env: Env<'a>, outcome: Result<T, Refused>) -> Term<'a> {
    match outcome {
        Ok(_) => atoms::ok().encode(env),
        Err(Refused::Closed) => atoms::closed().encode(env),
        Err(Refused::Busy) => atoms::busy().encode(env),
    }
}

/// `true` if the index was open already and keeps what it holds.
#[rustler::nif(schedule = "DirtyCpu")]
fn xref_open() -> bool {
    XREF.open()
}

#[rustler::nif(schedule = "DirtyCpu")]
fn xref_close() -> Atom {
    drop(XREF.close());
    atoms::ok()
}

#[rustler::nif(schedule = "DirtyCpu")]
fn xref_clear() -> Atom {
    drop(XREF.clear());
    atoms::ok()
}

#[rustler::nif(schedule = "DirtyCpu")]
fn xref_register_class<'a>(env: Env<'a>, class: Name, entries: Term<'a>) -> Term<'a> {
    if !XREF.view().is_open() {
        return atoms::closed().encode(env);
    }
    let mut index = 0;
    let mut bad = None;
    let methods = collect(entries, |element| {
        index += 1;
        let made = Fields::new(element, index, atoms::entry()).and_then(|entry| method(class.0, None, entry));
        made.map(|(method, _)| method).map_err(|wrong| bad = Some(wrong)).ok()
    });
    match (methods, bad) {
        (Ok(methods), _) => written(env, XREF.register_class(class.0, methods)),
        (Err(_), Some(wrong)) => wrong.encode(env),
        (Err((index, value)), None) => Bad { index, key: atoms::entry(), value }.encode(env),
    }
}

#[rustler::nif(schedule = "DirtyCpu")]
fn xref_purge_class<'a>(env: Env<'a>, class: Name) -> Term<'a> {
    written(env, XREF.purge_class(class.0))
}

#[rustler::nif(schedule = "DirtyCpu")]
fn xref_forget_class<'a>(env: Env<'a>, class: Name) -> Term<'a> {
    written(env, XREF.forget_class(class.0))
}

fn put<'a>(env: Env<'a>, key: (Sym, bool, Sym), entry: Term<'a>, patience: Patience) -> Term<'a> {
    if !XREF.view().is_open() {
        return atoms::closed().encode(env);
    }
    let (class, class_side, selector) = key;
    let made = Fields::new(entry, 1, atoms::entry())
        .and_then(|entry| method(class, Some((class_side, selector)), entry));
    match made {
        Ok((method, completes)) => written(env, XREF.put_method(method, completes, patience)),
        Err(wrong) => wrong.encode(env),
    }
}

/// Whether an entry has more rows than a normal scheduler should decode.
fn is_long(entry: Term) -> bool {
    let longer_than = |list: Term, limit: usize| {
        let mut rest = list;
        for _ in 0..limit {
            match rest.list_get_cell() {
                Ok((_, tail)) => rest = tail,
                Err(_) => return false,
            }
        }
        true
    };
    let has_long_type = |send: Term| {
        let recv_type = send.map_get(atoms::recv_type()).and_then(|term| term.decode::<(Atom, Term)>());
        recv_type.is_ok_and(|(_, members)| {
            let mut nested = false;
            let _improper = each(members, |member| {
                nested |= !member.is_atom();
                if nested { Err(Error::BadArg) } else { Ok(()) }
            });
            nested || longer_than(members, TYPE_NAMES_AT_ONCE)
        })
    };
    [atoms::sends(), atoms::references(), atoms::unresolved_sends()].into_iter().any(|key| {
        let Ok(rows) = entry.map_get(key) else { return false };
        if longer_than(rows, SENDS_AT_ONCE) {
            return true;
        }
        let mut long = false;
        let _improper = each(rows, |send| {
            long |= has_long_type(send);
            Ok(())
        });
        long
    })
}

/// The rows of the method, or `busy` where the dirty twin should be asked: another write is under way, or the entry is
/// long.
#[rustler::nif]
fn xref_put_method<'a>(
    env: Env<'a>,
    class: Name,
    class_side: bool,
    selector: Name,
    entry: Term<'a>,
) -> Term<'a> {
    if is_long(entry) {
        return atoms::busy().encode(env);
    }
    put(env, (class.0, class_side, selector.0), entry, Patience::Refuse)
}

#[rustler::nif(schedule = "DirtyCpu")]
fn xref_put_method_dirty<'a>(
    env: Env<'a>,
    class: Name,
    class_side: bool,
    selector: Name,
    entry: Term<'a>,
) -> Term<'a> {
    put(env, (class.0, class_side, selector.0), entry, Patience::Wait)
}

#[rustler::nif]
fn xref_purge_method<'a>(env: Env<'a>, class: Name, class_side: bool, selector: Name) -> Term<'a> {
    written(env, XREF.purge_method((class.0, class_side, selector.0), Patience::Refuse))
}

#[rustler::nif(schedule = "DirtyCpu")]
fn xref_purge_method_dirty<'a>(env: Env<'a>, class: Name, class_side: bool, selector: Name) -> Term<'a> {
    written(env, XREF.purge_method((class.0, class_side, selector.0), Patience::Wait))
}

#[rustler::nif]
fn xref_purge_extension<'a>(env: Env<'a>, class_key: Name, selector: Name) -> Term<'a> {
    written(env, XREF.purge_extension(class_key.0, selector.0, Patience::Refuse))
}

#[rustler::nif(schedule = "DirtyCpu")]
fn xref_purge_extension_dirty<'a>(env: Env<'a>, class_key: Name, selector: Name) -> Term<'a> {
    written(env, XREF.purge_extension(class_key.0, selector.0, Patience::Wait))
}

/// `Origins` is a list of `{Selector, Protocol}`.
#[rustler::nif(schedule = "DirtyCpu")]
fn xref_set_provenance<'a>(env: Env<'a>, class: Name, origins: Term<'a>) -> Term<'a> {
    let pairs = collect(origins, |pair| {
        let (selector, origin): (Name, Name) = pair.decode().ok()?;
        Some((selector.0, origin.0))
    });
    match pairs {
        Ok(pairs) => written(env, XREF.set_provenance(class.0, pairs)),
        Err((index, value)) => Bad { index, key: atoms::entry(), value }.encode(env),
    }
}

#[rustler::nif(schedule = "DirtyCpu")]
fn xref_restrict_provenance<'a>(env: Env<'a>, class: Name, protocols: Term<'a>) -> NifResult<Term<'a>> {
    Ok(written(env, XREF.restrict_provenance(class.0, &names(protocols)?)))
}

// Reading.

fn encode_type<'a>(env: Env<'a>, recv_type: &RecvType) -> Term<'a> {
    let compound = |kind: Atom, members: &[RecvType]| {
        (kind, list(env, members.iter().map(|member| encode_type(env, member)))).encode(env)
    };
    match recv_type {
        RecvType::Dynamic => atoms::dynamic().encode(env),
        RecvType::Name(name) => atom(env, *name),
        RecvType::Union(members) => compound(atoms::union(), members),
        RecvType::Intersection(members) => compound(atoms::intersection(), members),
    }
}

fn encode_type_ref<'a>(env: Env<'a>, recv_type: RecvTypeRef) -> Term<'a> {
    match recv_type {
        RecvTypeRef::Dynamic => atoms::dynamic().encode(env),
        RecvTypeRef::Name(name) => atom(env, name),
        RecvTypeRef::Compound(compound) => encode_type(env, compound),
    }
}

fn or_undefined<'a>(env: Env<'a>, name: Option<Sym>) -> Term<'a> {
    name.map_or_else(|| atoms::undefined().encode(env), |name| atom(env, name))
}

fn kind_atom(kind: RecvKind) -> Atom {
    match kind {
        RecvKind::SelfRecv => atoms::self_recv(),
        RecvKind::SuperRecv => atoms::super_recv(),
        RecvKind::ErlangFfi => atoms::erlang_ffi(),
        RecvKind::Other => atoms::other(),
    }
}

/// `{Owner, ClassSide, Method, Line, RecvKind, TargetModule, RecvType, Generation}`.
fn sender_row<'a>(env: Env<'a>, row: &SendRow) -> Term<'a> {
    let method = row.method;
    let (line, kind, target, recv_type) = match row.send {
        Found::Resolved(send) => (send.line, send.kind, send.target, encode_type_ref(env, send.recv_type)),
        Found::Unresolved(send) => (send.line, send.kind, send.known_target(), atoms::dynamic().encode(env)),
    };
    tuple(
        env,
        [
            atom(env, method.owner),
            boolean(env, method.class_side),
            atom(env, method.selector),
            line.encode(env),
            kind_atom(kind).encode(env),
            or_undefined(env, target),
            recv_type,
            method.generation.encode(env),
        ],
    )
}

/// Encodes rows up to a limit, in reverse, else answers `more`. Rows have no order to lose.
fn up_to<'a>(env: Env<'a>, limit: usize, rows: impl Iterator<Item = Term<'a>>) -> Term<'a> {
    let mut answer = Term::list_new_empty(env);
    for (count, row) in rows.enumerate() {
        if count == limit {
            return atoms::more().encode(env);
        }
        answer = answer.list_prepend(row);
    }
    answer
}

/// The text of the name asked for: `none`, or a binary once the index said `text`.
fn text_of<'a>(view: &View, text: Term<'a>) -> NifResult<Result<Option<&'a str>, Atom>> {
    match text.decode::<&str>() {
        Ok(text) => Ok(Ok(Some(text))),
        Err(_) if !text.is_atom() => Err(Error::BadArg),
        Err(_) if view.has_unresolved() => Ok(Err(atoms::text())),
        Err(_) => Ok(Ok(None)),
    }
}

fn senders<'a>(env: Env<'a>, selector: Name, text: Term<'a>, limit: usize) -> NifResult<Term<'a>> {
    let view = XREF.view();
    Ok(match text_of(&view, text)? {
        Err(ask_with_text) => ask_with_text.encode(env),
        Ok(text) => up_to(env, limit, view.senders(selector.0, text).map(|row| sender_row(env, &row))),
    })
}

/// Sender rows; `text` where the selector's text must be given as well, `more` where the dirty twin should be asked.
#[rustler::nif]
fn xref_senders<'a>(env: Env<'a>, selector: Name, text: Term<'a>) -> NifResult<Term<'a>> {
    senders(env, selector, text, ROWS_AT_ONCE)
}

#[rustler::nif(schedule = "DirtyCpu")]
fn xref_senders_dirty<'a>(env: Env<'a>, selector: Name, text: Term<'a>) -> NifResult<Term<'a>> {
    senders(env, selector, text, usize::MAX)
}

/// Every name in a receiver type of a send of the selector.
#[rustler::nif(schedule = "DirtyCpu")]
fn xref_receiver_names<'a>(env: Env<'a>, selector: Name) -> Term<'a> {
    let names: Vec<Sym> = XREF.view().receiver_names(selector.0).into_iter().collect();
    list(env, names.into_iter().map(|name| atom(env, name)))
}

/// Sender rows that may reach a class. `Excluded` are the receiver names that cannot; a name that nobody judged
/// excludes nothing.
#[rustler::nif(schedule = "DirtyCpu")]
fn xref_senders_reaching<'a>(
    env: Env<'a>,
    selector: Name,
    text: Term<'a>,
    excluded: Term<'a>,
) -> NifResult<Term<'a>> {
    let excluded: HashSet<Sym> = names(excluded)?.into_iter().collect();
    let view = XREF.view();
    let text = match text_of(&view, text)? {
        Err(ask_with_text) => return Ok(ask_with_text.encode(env)),
        Ok(text) => text,
    };
    let may_reach = |name| !excluded.contains(&name);
    let reaching = view.senders(selector.0, text).filter(|row| match row.send {
        Found::Resolved(send) => send.recv_type.may_reach(&may_reach),
        Found::Unresolved(_) => true,
    });
    Ok(up_to(env, usize::MAX, reaching.map(|row| sender_row(env, &row))))
}

fn references<'a>(env: Env<'a>, class: Name, limit: usize) -> Term<'a> {
    let view = XREF.view();
    let rows = view.references(class.0).map(|(method, reference)| {
        tuple(
            env,
            [
                atom(env, method.owner),
                boolean(env, method.class_side),
                atom(env, method.selector),
                reference.line.encode(env),
                method.generation.encode(env),
            ],
        )
    });
    up_to(env, limit, rows)
}

/// `{Owner, ClassSide, Method, Line, Generation}`, or `more`.
#[rustler::nif]
fn xref_references<'a>(env: Env<'a>, class: Name) -> Term<'a> {
    references(env, class, ROWS_AT_ONCE)
}

#[rustler::nif(schedule = "DirtyCpu")]
fn xref_references_dirty<'a>(env: Env<'a>, class: Name) -> Term<'a> {
    references(env, class, usize::MAX)
}

fn implementors<'a>(env: Env<'a>, selector: Name, limit: usize) -> Term<'a> {
    let view = XREF.view();
    let mut found: Vec<(Sym, bool)> = view
        .implementors(selector.0)
        .take(limit.saturating_add(1))
        .map(|method| (method.owner, method.class_side))
        .collect();
    if found.len() > limit {
        return atoms::more().encode(env);
    }
    found.sort_unstable_by(|(one, one_side), (other, other_side)| {
        atom(env, *one).cmp(&atom(env, *other)).then(one_side.cmp(other_side))
    });
    list(env, found.into_iter().map(|(owner, side)| tuple(env, [atom(env, owner), boolean(env, side)])))
}

/// `{Owner, ClassSide}` in term order, or `more`.
#[rustler::nif]
fn xref_implementors<'a>(env: Env<'a>, selector: Name) -> Term<'a> {
    implementors(env, selector, ROWS_AT_ONCE)
}

#[rustler::nif(schedule = "DirtyCpu")]
fn xref_implementors_dirty<'a>(env: Env<'a>, selector: Name) -> Term<'a> {
    implementors(env, selector, usize::MAX)
}

fn selectors<'a>(env: Env<'a>, class: Name, class_side: bool, limit: usize) -> Term<'a> {
    let view = XREF.view();
    if view.method_count(class.0) > limit {
        return atoms::more().encode(env);
    }
    let in_term_order = |first, second| atom(env, first).cmp(&atom(env, second));
    view.selectors(class.0, class_side, in_term_order, |selectors| {
        list(env, selectors.iter().map(|selector| atom(env, *selector)))
    })
}

/// Selectors of one side of a class in term order, or `more`.
#[rustler::nif]
fn xref_selectors<'a>(env: Env<'a>, class: Name, class_side: bool) -> Term<'a> {
    selectors(env, class, class_side, METHODS_AT_ONCE)
}

#[rustler::nif(schedule = "DirtyCpu")]
fn xref_selectors_dirty<'a>(env: Env<'a>, class: Name, class_side: bool) -> Term<'a> {
    selectors(env, class, class_side, usize::MAX)
}

/// `{Line, SourceStatus, Provenance, Origin | undefined, Generation}` or `undefined`.
#[rustler::nif]
fn xref_method<'a>(env: Env<'a>, class: Name, class_side: bool, selector: Name) -> Term<'a> {
    let view = XREF.view();
    view.method((class.0, class_side, selector.0)).map_or_else(
        || atoms::undefined().encode(env),
        |method| {
            let status = word_for(&method.status, &statuses());
            let provenance = word_for(&method.provenance, &provenances());
            (method.line, status, provenance, or_undefined(env, method.origin), method.generation).encode(env)
        },
    )
}

fn native_callers<'a>(env: Env<'a>, module: Name, text: Term<'a>, limit: usize) -> NifResult<Term<'a>> {
    let view = XREF.view();
    let text = match text_of(&view, text)? {
        Err(ask_with_text) => return Ok(ask_with_text.encode(env)),
        Ok(text) => text,
    };
    // `undefined` is what a call carries whose module the compiler does not know.
    let module = Some(module.0).filter(|module| !is_undefined(*module));
    Ok(match view.native_callers(module, text, limit) {
        None => atoms::more().encode(env),
        Some(callers) => list(
            env,
            callers.into_iter().map(|(method, line)| {
                let side = boolean(env, method.class_side);
                tuple(env, [atom(env, method.owner), atom(env, method.selector), side, line.encode(env)])
            }),
        ),
    })
}

/// `{Owner, Method, ClassSide, Line}`, `text` as in `xref_senders/2`, or `more`.
#[rustler::nif]
fn xref_native_callers<'a>(env: Env<'a>, module: Name, text: Term<'a>) -> NifResult<Term<'a>> {
    native_callers(env, module, text, ROWS_AT_ONCE)
}

#[rustler::nif(schedule = "DirtyCpu")]
fn xref_native_callers_dirty<'a>(env: Env<'a>, module: Name, text: Term<'a>) -> NifResult<Term<'a>> {
    native_callers(env, module, text, usize::MAX)
}

/// Those of the classes that do not count as indexed.
#[rustler::nif(schedule = "DirtyCpu")]
fn xref_unindexed<'a>(env: Env<'a>, classes: Term<'a>) -> NifResult<Term<'a>> {
    let classes = names(classes)?;
    Ok(unindexed(env, &XREF.view(), &classes))
}

fn unindexed<'a>(env: Env<'a>, view: &View, classes: &[Sym]) -> Term<'a> {
    let unknown: Vec<Sym> = classes.iter().copied().filter(|class| !view.is_indexed(*class)).collect();
    list(env, unknown.into_iter().map(|class| atom(env, class)))
}

/// Rows of loaded classes, and those of the loaded classes that are not indexed, out of one view of the index.
///
/// `Query` is `{senders, Selector, Text}`, `{references, Class}`, `{implementors, Selector}`, `selectors`, `sends` or
/// `sent_selectors`. Sends and references of sourced extensions are left out: the library scans those itself.
#[rustler::nif(schedule = "DirtyCpu")]
fn xref_of_loaded<'a>(env: Env<'a>, query: Term<'a>, loaded: Term<'a>) -> NifResult<Term<'a>> {
    let loaded = names(loaded)?;
    let is_loaded: HashSet<Sym> = loaded.iter().copied().collect();
    let view = XREF.view();
    let counts = |method: &Method| is_loaded.contains(&method.owner);
    let scans = |method: &Method| counts(method) && !method.is_sourced_extension();
    let site = |method: &Method, line: u32| {
        (Name(method.owner), method.class_side, Name(method.selector), line).encode(env)
    };
    let rows: Vec<Term> = if let Ok((kind, selector, text)) = query.decode::<(Atom, Name, Term)>() {
        if kind != atoms::senders() {
            return Err(Error::BadArg);
        }
        let text = match text_of(&view, text)? {
            Err(ask_with_text) => return Ok(ask_with_text.encode(env)),
            Ok(text) => text,
        };
        view.senders(selector.0, text)
            .filter(|row| scans(row.method))
            .map(|row| site(row.method, line_of(&row)))
            .collect()
    } else if let Ok((kind, name)) = query.decode::<(Atom, Name)>() {
        if kind == atoms::references() {
            let references = view.references(name.0).filter(|(method, _)| scans(method));
            references.map(|(method, reference)| site(method, reference.line)).collect()
        } else if kind == atoms::implementors() {
            let methods = view.implementors(name.0).filter(|method| counts(method));
            methods.map(|method| (Name(method.owner), method.class_side).encode(env)).collect()
        } else {
            return Err(Error::BadArg);
        }
    } else {
        let kind: Atom = query.decode()?;
        let methods = view.methods_of(&is_loaded);
        if kind == atoms::selectors() {
            methods
                .map(|method| (Name(method.owner), method.class_side, Name(method.selector)).encode(env))
                .collect()
        } else if kind == atoms::sends() {
            methods.filter(|method| scans(method)).flat_map(|method| send_rows(env, method)).collect()
        } else if kind == atoms::sent_selectors() {
            let mut sent = HashSet::new();
            let mut texts = HashSet::new();
            for method in methods.filter(|method| scans(method)) {
                let plain = method.sends().filter(|send| send.kind != RecvKind::ErlangFfi);
                sent.extend(plain.map(|send| send.selector));
                let unresolved = method.unresolved().iter().filter(|send| send.kind != RecvKind::ErlangFfi);
                texts.extend(unresolved.filter_map(|send| match &send.selector {
                    Word::Text(text) => Some(Arc::clone(text)),
                    Word::Known(_) => None,
                }));
            }
            let sent = sent.into_iter().map(|selector| atom(env, selector));
            sent.chain(texts.iter().map(|text| binary(env, text.as_bytes()))).collect()
        } else {
            return Err(Error::BadArg);
        }
    };
    Ok((list(env, rows.into_iter()), unindexed(env, &view, &loaded)).encode(env))
}

fn line_of(row: &SendRow) -> u32 {
    match row.send {
        Found::Resolved(send) => send.line,
        Found::Unresolved(send) => send.line,
    }
}

/// `{Sent, Owner, ClassSide, Method, Line, RecvKind}` for every send of a method; `Sent` is text where it was no name.
fn send_rows<'a>(env: Env<'a>, method: &Method) -> Vec<Term<'a>> {
    let row = |sent: Term<'a>, line: u32, kind: RecvKind| {
        (sent, Name(method.owner), method.class_side, Name(method.selector), line, kind_atom(kind))
            .encode(env)
    };
    let known = method.sends().map(|send| row(atom(env, send.selector), send.line, send.kind));
    let texts = method.unresolved().iter().filter_map(|send| match &send.selector {
        Word::Text(text) => Some(row(binary(env, text.as_bytes()), send.line, send.kind)),
        Word::Known(_) => None,
    });
    known.chain(texts).collect()
}

/// `[{Key, Integer}]`, for the façade to turn into a map.
#[rustler::nif(schedule = "DirtyCpu")]
fn xref_counts() -> Vec<(Atom, u64)> {
    let counts = XREF.view().counts();
    vec![
        (atoms::classes(), counts.classes as u64),
        (atoms::methods(), counts.methods as u64),
        (atoms::sends(), counts.sends as u64),
        (atoms::references(), counts.references as u64),
        (atoms::unresolved_sends(), counts.unresolved_sends as u64),
        (atoms::sent_selectors(), counts.sent_selectors as u64),
        (atoms::bytes(), counts.bytes as u64),
        (atoms::version(), counts.version),
    ]
}
