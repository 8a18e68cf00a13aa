//! NIFs of the language: what the image asks of source text. All run on dirty schedulers, since their cost is linear in
//! a text that anybody may send. Names found in a text stay text.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use beamtalk_image::changelog::{Disk, RealDisk};
use beamtalk_lang::checks;
use beamtalk_lang::diag::{Diagnostic, Severity};
use beamtalk_lang::facts::{self, MethodEntry, Origin, ReferenceHit, SendHit, Side, SlotHit};
use beamtalk_lang::parser::{parse, parse_method};
use beamtalk_lang::span::LineIndex;
use rustler::{Atom, Binary, Encoder, Env, Error, NifResult, Term};

use crate::atoms;
use crate::terms::{binary, boolean, list, tuple};

/// Longest text that is read, in bytes.
const MAX_TEXT: usize = 16 * 1024 * 1024;

/// The answer about a text that is not too long.
fn within<'a>(env: Env<'a>, source: &Binary<'a>, answer: impl FnOnce(&[u8]) -> Term<'a>) -> Term<'a> {
    if source.len() > MAX_TEXT {
        return (atoms::too_large(), MAX_TEXT).encode(env);
    }
    answer(source.as_slice())
}

fn side_atom(side: Side) -> Atom {
    match side {
        Side::Instance => atoms::instance(),
        Side::Class => atoms::class(),
    }
}

fn origin_atom(origin: Origin) -> Atom {
    match origin {
        Origin::ClassBody => atoms::class_body(),
        Origin::Extension => atoms::extension(),
        Origin::Protocol => atoms::protocol(),
        Origin::SlotAccessor => atoms::slot_accessor(),
    }
}

fn severity_atom(severity: Severity) -> Atom {
    match severity {
        Severity::Error => atoms::error(),
        Severity::Warning => atoms::warning(),
        Severity::Hint => atoms::hint(),
    }
}

/// `{Selector, Line, Recv, Module}`, the last empty unless the send is a foreign call.
fn sends<'a>(env: Env<'a>, hits: &[SendHit]) -> Term<'a> {
    let row = |hit: &SendHit| {
        let recv = match hit.recv {
            facts::Recv::SelfRecv => atoms::self_(),
            facts::Recv::Super => atoms::super_(),
            facts::Recv::ErlangFfi => atoms::erlang_ffi(),
            facts::Recv::Other => atoms::other(),
        };
        let module = hit.target_module.as_deref().unwrap_or_default();
        let (selector, module) = (binary(env, hit.selector.as_bytes()), binary(env, module.as_bytes()));
        tuple(env, [selector, hit.line.encode(env), recv.encode(env), module])
    };
    list(env, hits.iter().map(row))
}

/// `{Class, Line}`.
fn references<'a>(env: Env<'a>, hits: &[ReferenceHit]) -> Term<'a> {
    let row = |hit: &ReferenceHit| tuple(env, [binary(env, hit.class.as_bytes()), hit.line.encode(env)]);
    list(env, hits.iter().map(row))
}

/// `{Slot, Line, Written}`.
fn slot_accesses<'a>(env: Env<'a>, hits: &[SlotHit]) -> Term<'a> {
    let row = |hit: &SlotHit| {
        let slot = binary(env, hit.slot.as_bytes());
        tuple(env, [slot, hit.line.encode(env), boolean(env, hit.write)])
    };
    list(env, hits.iter().map(row))
}

/// `{Class, Side, Selector, Origin, Start, End, Line, FileLine, Sends, References, SlotAccesses}`.
fn entry<'a>(env: Env<'a>, entry: &MethodEntry) -> Term<'a> {
    tuple(
        env,
        [
            binary(env, entry.class.as_bytes()),
            side_atom(entry.side).encode(env),
            binary(env, entry.selector.as_bytes()),
            origin_atom(entry.origin).encode(env),
            entry.span.start.encode(env),
            entry.span.end.encode(env),
            entry.line.encode(env),
            entry.file_line.encode(env),
            sends(env, &entry.sends),
            references(env, &entry.references),
            slot_accesses(env, &entry.slot_accesses),
        ],
    )
}

/// `{Severity, Code, Start, End, Line, Column, Message, Hint}`, the last `none` if there is none.
fn diagnostic<'a>(env: Env<'a>, index: &LineIndex, found: &Diagnostic) -> Term<'a> {
    let (line, column) = index.line_col(found.span.start);
    let hint =
        found.hint.as_ref().map_or_else(|| atoms::none().encode(env), |hint| binary(env, hint.as_bytes()));
    tuple(
        env,
        [
            severity_atom(found.severity).encode(env),
            binary(env, found.code.as_str().as_bytes()),
            found.span.start.encode(env),
            found.span.end.encode(env),
            line.encode(env),
            column.encode(env),
            binary(env, found.message.as_bytes()),
            hint,
        ],
    )
}

/// Every finding of a file, or of one method's text if `fragment`.
#[rustler::nif(schedule = "DirtyCpu")]
fn lang_diagnostics<'a>(env: Env<'a>, source: Binary<'a>, fragment: bool) -> Term<'a> {
    within(env, &source, |text| {
        let found = if fragment {
            parse_method(text).diagnostics
        } else {
            let parse = parse(text);
            let mut found = parse.diagnostics;
            found.append(&mut checks::file(&parse.tree, checks::Author::User));
            found.sort_by_key(|d| (d.span.start, d.span.end));
            found
        };
        let index = LineIndex::new(text);
        list(env, found.iter().map(|found| diagnostic(env, &index, found)))
    })
}

/// Every send in a method's text.
#[rustler::nif(schedule = "DirtyCpu")]
fn lang_sends<'a>(env: Env<'a>, source: Binary<'a>) -> Term<'a> {
    within(env, &source, |text| sends(env, &facts::find_all_sends(text)))
}

/// Every class that a method's text names.
#[rustler::nif(schedule = "DirtyCpu")]
fn lang_references<'a>(env: Env<'a>, source: Binary<'a>) -> Term<'a> {
    within(env, &source, |text| references(env, &facts::find_references(text)))
}

/// Every access to a slot of `self` in a method's text.
#[rustler::nif(schedule = "DirtyCpu")]
fn lang_slot_accesses<'a>(env: Env<'a>, source: Binary<'a>) -> Term<'a> {
    within(env, &source, |text| slot_accesses(env, &facts::find_slot_accesses(text)))
}

/// Every method of a file with its facts.
#[rustler::nif(schedule = "DirtyCpu")]
fn lang_method_entries<'a>(env: Env<'a>, source: Binary<'a>) -> Term<'a> {
    within(env, &source, |text| {
        let parse = parse(text);
        list(env, facts::method_entries(&parse.tree).iter().map(|method| entry(env, method)))
    })
}

/// `{ok, Text}` or `{error, Message}`. A pipe, a device, a folder and a file that is too long are not read.
#[rustler::nif(schedule = "DirtyIo")]
fn lang_read_file<'a>(env: Env<'a>, path: Binary<'a>) -> Term<'a> {
    let path = Path::new(OsStr::from_bytes(path.as_slice()));
    match RealDisk::new().read_source(path, MAX_TEXT as u64) {
        Ok((text, _)) => (atoms::ok(), binary(env, &text)).encode(env),
        Err(error) => (atoms::error(), binary(env, error.to_string().as_bytes())).encode(env),
    }
}

/// `{ok, Start, End}` or `{error, Reason, Message}`.
#[rustler::nif(schedule = "DirtyCpu")]
fn lang_method_span<'a>(
    env: Env<'a>,
    source: Binary<'a>,
    class: Binary<'a>,
    selector: Binary<'a>,
    side: Atom,
) -> NifResult<Term<'a>> {
    let side = match side {
        side if side == atoms::instance() => Side::Instance,
        side if side == atoms::class() => Side::Class,
        _ => return Err(Error::BadArg),
    };
    // A name that is not UTF-8 is none: the reader says so.
    let name = |name: &Binary| String::from_utf8_lossy(name.as_slice()).into_owned();
    Ok(within(env, &source, |text| {
        let parse = parse(text);
        match facts::method_span(&parse.tree, &name(&class), &name(&selector), side) {
            Ok(span) => (atoms::ok(), span.start, span.end).encode(env),
            Err(error) => {
                let reason = match error.kind {
                    facts::SpanErrorKind::ClassNotFound => atoms::class_not_found(),
                    facts::SpanErrorKind::SelectorNotFound => atoms::selector_not_found(),
                    facts::SpanErrorKind::Ambiguous => atoms::ambiguous(),
                    facts::SpanErrorKind::BadArgument => atoms::bad_argument(),
                };
                tuple(
                    env,
                    [atoms::error().encode(env), reason.encode(env), binary(env, error.message.as_bytes())],
                )
            }
        }
    }))
}
