//! NIFs of the protocol registry.

use std::sync::LazyLock;

use beamtalk_image::Sym;
use beamtalk_image::protocols::{
    Asked, Conformance, Names, Protocols, Requirements, Use, missing_from_index,
};
use rustler::{Atom, Binary, Encoder, Env, Error, NifResult, Term};

use crate::atoms;
use crate::saved::Saved;
use crate::terms::{Name, atom, binary, collect, each, is_undefined, list, names, sym, unless_busy};
use crate::xref::XREF;

static PROTOCOLS: LazyLock<Protocols<Saved>> = LazyLock::new(Protocols::default);

/// Look-ups that one conformance question may need on a normal scheduler.
const LOOK_UPS_AT_ONCE: usize = 4_000;

// Writing.

/// The selectors of a list of member maps, or what is wrong with it.
fn selectors<'a>(map: Term<'a>, key: Atom) -> Result<Vec<Sym>, (Atom, Term<'a>)> {
    let Ok(members) = map.map_get(key) else { return Ok(Vec::new()) };
    let mut selectors = Vec::new();
    each(members, |member| {
        let selector = member.map_get(atoms::selector()).ok().and_then(sym);
        selectors.push(selector.ok_or(Error::BadArg)?);
        Ok(())
    })
    .map_err(|_| (key, members))?;
    Ok(selectors)
}

/// A name under a key; absent and `undefined` are none.
fn optional_name<'a>(map: Term<'a>, key: Atom) -> Result<Option<Sym>, (Atom, Term<'a>)> {
    match map.map_get(key) {
        Err(_) => Ok(None),
        Ok(value) if value.decode::<Atom>().is_ok_and(|atom| atom == atoms::undefined()) => Ok(None),
        Ok(value) => sym(value).map(Some).ok_or((key, value)),
    }
}

/// `ok`, or `{bad_entry, 1, Key, Value}` for a definition that is not well formed.
#[rustler::nif(schedule = "DirtyCpu")]
fn protocol_register<'a>(env: Env<'a>, name: Name, definition: Term<'a>) -> Term<'a> {
    if !definition.is_map() {
        return (atoms::bad_entry(), 1, atoms::entry(), definition).encode(env);
    }
    let read = || {
        Ok(Names {
            required: selectors(definition, atoms::required_methods())?,
            required_class: selectors(definition, atoms::required_class_methods())?,
            provided: selectors(definition, atoms::provided_methods())?,
            extending: optional_name(definition, atoms::extending())?,
            module: optional_name(definition, atoms::module())?,
        })
    };
    match read() {
        Ok(names) => {
            PROTOCOLS.register(name.0, Saved::new(definition), names);
            atoms::ok().encode(env)
        }
        Err((key, value)) => (atoms::bad_entry(), 1, key, value).encode(env),
    }
}

/// The names of the protocols that went.
#[rustler::nif(schedule = "DirtyCpu")]
fn protocol_unregister_module<'a>(env: Env<'a>, module: Name) -> Term<'a> {
    let gone = PROTOCOLS.unregister_module(module.0);
    list(env, gone.into_iter().map(|name| atom(env, name)))
}

/// `Uses` is a list of protocol names or `{Protocol, Hash}` with a binary hash; `Module` is `undefined` for none.
/// `ok`, or `{bad_entry, Index, entry, Value}`.
#[rustler::nif(schedule = "DirtyCpu")]
fn protocol_register_uses<'a>(env: Env<'a>, class: Name, module: Name, uses: Term<'a>) -> Term<'a> {
    let stated = collect(uses, |term| {
        if let Some(protocol) = sym(term) {
            return Some(Use { protocol, hash: None });
        }
        let (protocol, hash): (Name, Term) = term.decode().ok()?;
        let hash = match sym(hash) {
            Some(atom) if is_undefined(atom) => None,
            _ => Some(hash.decode::<Binary>().ok()?.as_slice().into()),
        };
        Some(Use { protocol: protocol.0, hash })
    });
    match stated {
        Ok(stated) => {
            let module = Some(module.0).filter(|module| !is_undefined(*module));
            PROTOCOLS.register_uses(class.0, module, stated);
            atoms::ok().encode(env)
        }
        Err((index, value)) => (atoms::bad_entry(), index, atoms::entry(), value).encode(env),
    }
}

/// More answers than these are dropped by a thread of the library.
const ANSWERS_AT_ONCE: usize = 1_000;

/// `ok`, or `busy` where the dirty twin should be asked.
#[rustler::nif]
fn protocol_invalidate(env: Env<'_>) -> Term<'_> {
    unless_busy(env, PROTOCOLS.try_invalidate(), |forgotten| {
        if forgotten.len() > ANSWERS_AT_ONCE {
            crate::retire::later(forgotten);
        }
        atoms::ok().encode(env)
    })
}

#[rustler::nif(schedule = "DirtyCpu")]
fn protocol_invalidate_dirty() -> Atom {
    PROTOCOLS.invalidate();
    atoms::ok()
}

#[rustler::nif(schedule = "DirtyCpu")]
fn protocol_clear() -> Atom {
    drop(PROTOCOLS.clear());
    atoms::ok()
}

// Reading.

/// The definition as it was registered, or `undefined`. Dirty, since a definition is as long as it is.
#[rustler::nif(schedule = "DirtyCpu")]
fn protocol_definition<'a>(env: Env<'a>, name: Name) -> Term<'a> {
    PROTOCOLS.with(name.0, |definition| definition.get(env)).unwrap_or_else(|| atoms::undefined().encode(env))
}

#[rustler::nif]
fn protocol_exists(name: Name) -> bool {
    PROTOCOLS.contains(name.0)
}

#[rustler::nif(schedule = "DirtyCpu")]
fn protocol_names<'a>(env: Env<'a>) -> Term<'a> {
    list(env, PROTOCOLS.names().into_iter().map(|name| atom(env, name)))
}

/// `{InstanceSelectors, ClassSelectors}`.
#[rustler::nif(schedule = "DirtyCpu")]
fn protocol_required<'a>(env: Env<'a>, name: Name) -> Term<'a> {
    let (instance, class_side) = PROTOCOLS.required(name.0);
    (selector_list(env, instance), selector_list(env, class_side)).encode(env)
}

#[rustler::nif(schedule = "DirtyCpu")]
fn protocol_provided<'a>(env: Env<'a>, name: Name) -> Term<'a> {
    selector_list(env, PROTOCOLS.provided(name.0))
}

fn selector_list<'a>(env: Env<'a>, selectors: Vec<Sym>) -> Term<'a> {
    list(env, selectors.into_iter().map(|selector| atom(env, selector)))
}

/// `{Protocol, Hash | undefined}` in declaration order.
#[rustler::nif(schedule = "DirtyCpu")]
fn protocol_uses<'a>(env: Env<'a>, class: Name) -> Term<'a> {
    let uses = PROTOCOLS.uses(class.0).into_iter();
    list(
        env,
        uses.map(|used| {
            let hash = used.hash.map_or_else(|| atoms::undefined().encode(env), |hash| binary(env, &hash));
            (Name(used.protocol), hash).encode(env)
        }),
    )
}

#[rustler::nif(schedule = "DirtyCpu")]
fn protocol_users<'a>(env: Env<'a>, name: Name) -> Term<'a> {
    list(env, PROTOCOLS.users(name.0).into_iter().map(|class| atom(env, class)))
}

/// `true`, `false`, or `{open, Stamp}` where somebody must find out; the answer belongs to the stamp.
#[rustler::nif]
fn protocol_conformance<'a>(env: Env<'a>, class: Name, name: Name) -> Term<'a> {
    match PROTOCOLS.conformance(class.0, name.0) {
        Conformance::Known(answer) => answer.encode(env),
        Conformance::Open(stamp) => (atoms::open(), stamp).encode(env),
    }
}

fn missing<'a>(
    env: Env<'a>,
    class: Name,
    name: Name,
    stamp: u64,
    chain: Term<'a>,
    limit: usize,
) -> NifResult<Term<'a>> {
    let chain = names(chain)?;
    if let Conformance::Known(answer) = PROTOCOLS.conformance(class.0, name.0) {
        return Ok(answer.encode(env));
    }
    let requirements = match PROTOCOLS.requirements(name.0, limit / chain.len().max(1)) {
        Asked::Unregistered => return Ok(false.encode(env)),
        Asked::TooMany => return Ok(atoms::more().encode(env)),
        Asked::For(requirements) => requirements,
    };
    let Requirements { instance, class_side } = missing_from_index(&XREF.view(), &chain, requirements);
    if instance.is_empty() && class_side.is_empty() {
        // The chain was read under the caller's stamp, which may be older than the one of this moment.
        return Ok(match PROTOCOLS.try_remember(class.0, name.0, stamp, true) {
            Ok(_wanted) => true.encode(env),
            Err(_busy) if limit < usize::MAX => atoms::more().encode(env),
            Err(_busy) => {
                PROTOCOLS.remember(class.0, name.0, stamp, true);
                true.encode(env)
            }
        });
    }
    Ok((selector_list(env, instance), selector_list(env, class_side)).encode(env))
}

/// What of a protocol the index does not show the chain to define: `{InstanceSelectors, ClassSelectors}`; or the
/// answer, where that settles it; or `more` where the dirty twin should be asked. `stamp` is the one under which the
/// chain was read.
#[rustler::nif]
fn protocol_missing<'a>(
    env: Env<'a>,
    class: Name,
    name: Name,
    stamp: u64,
    chain: Term<'a>,
) -> NifResult<Term<'a>> {
    missing(env, class, name, stamp, chain, LOOK_UPS_AT_ONCE)
}

#[rustler::nif(schedule = "DirtyCpu")]
fn protocol_missing_dirty<'a>(
    env: Env<'a>,
    class: Name,
    name: Name,
    stamp: u64,
    chain: Term<'a>,
) -> NifResult<Term<'a>> {
    missing(env, class, name, stamp, chain, usize::MAX)
}

/// Whether the answer was still wanted, or `busy` where the dirty twin should be asked.
#[rustler::nif]
fn protocol_remember<'a>(env: Env<'a>, class: Name, name: Name, stamp: u64, answer: bool) -> Term<'a> {
    unless_busy(env, PROTOCOLS.try_remember(class.0, name.0, stamp, answer), |wanted| wanted.encode(env))
}

#[rustler::nif(schedule = "DirtyCpu")]
fn protocol_remember_dirty(class: Name, name: Name, stamp: u64, answer: bool) -> bool {
    PROTOCOLS.remember(class.0, name.0, stamp, answer)
}

/// `[{Key, Integer}]`, for the façade to turn into a map.
#[rustler::nif(schedule = "DirtyCpu")]
fn protocol_counts() -> Vec<(Atom, u64)> {
    let counts = PROTOCOLS.counts();
    vec![
        (atoms::protocols(), counts.protocols as u64),
        (atoms::users(), counts.users as u64),
        (atoms::answers(), counts.answers as u64),
        (atoms::bytes(), counts.bytes as u64),
        (atoms::version(), counts.version),
    ]
}
