//! NIFs of the extension registry.

use std::sync::LazyLock;

use beamtalk_image::extensions::{Extensions, Key};
use beamtalk_image::{Patience, Sym};
use rustler::{Atom, Binary, Encoder, Env, Error, NifResult, Term};

use crate::atoms;
use crate::saved::Saved;
use crate::terms::{Name, ROWS_AT_ONCE, atom, binary, list, sym, unless_busy};

static EXTENSIONS: LazyLock<Extensions<Saved>> = LazyLock::new(Extensions::default);

/// A longer text is copied on a dirty scheduler.
const BYTES_AT_ONCE: usize = 64 * 1_024;

/// `{Version, ReplacedOwner | none}`, or `busy` where the dirty twin should be asked.
#[rustler::nif]
fn extension_register<'a>(
    env: Env<'a>,
    class_key: Name,
    selector: Name,
    fun: Term<'a>,
    owner: Name,
    source: Term<'a>,
) -> NifResult<Term<'a>> {
    if source.decode::<Binary>().is_ok_and(|text| text.len() > BYTES_AT_ONCE) {
        return Ok(atoms::busy().encode(env));
    }
    register(env, (class_key.0, selector.0), fun, owner, source, Patience::Refuse)
}

#[rustler::nif(schedule = "DirtyCpu")]
fn extension_register_dirty<'a>(
    env: Env<'a>,
    class_key: Name,
    selector: Name,
    fun: Term<'a>,
    owner: Name,
    source: Term<'a>,
) -> NifResult<Term<'a>> {
    register(env, (class_key.0, selector.0), fun, owner, source, Patience::Wait)
}

fn register<'a>(
    env: Env<'a>,
    key: Key,
    fun: Term<'a>,
    owner: Name,
    source: Term<'a>,
    patience: Patience,
) -> NifResult<Term<'a>> {
    if !fun.is_fun() {
        return Err(Error::BadArg);
    }
    let text = match source.decode::<Binary>() {
        Ok(text) => Some(text.as_slice().into()),
        Err(_) if source.is_atom() => None,
        Err(_) => return Err(Error::BadArg),
    };
    let registered = EXTENSIONS.register(key, Saved::new(fun), owner.0, text, patience);
    Ok(unless_busy(env, registered, |registered| {
        let replaced =
            registered.replaced_owner.map_or_else(|| atoms::none().encode(env), |old| atom(env, old));
        (registered.version, replaced).encode(env)
    }))
}

fn unregister<'a>(env: Env<'a>, class_key: Name, selector: Name, patience: Patience) -> Term<'a> {
    let removed = EXTENSIONS.unregister((class_key.0, selector.0), patience);
    unless_busy(env, removed, |removed| match removed {
        None => atoms::none().encode(env),
        Some(entry) => {
            let source = entry.source.as_deref();
            let source = source.map_or_else(|| atoms::undefined().encode(env), |text| binary(env, text));
            (entry.fun.get(env), Name(entry.owner), source).encode(env)
        }
    })
}

/// What the entry was, `{Fun, Owner, Source | undefined}` or `none`; or `busy` where the dirty twin should be asked.
#[rustler::nif]
fn extension_unregister<'a>(env: Env<'a>, class_key: Name, selector: Name) -> Term<'a> {
    unregister(env, class_key, selector, Patience::Refuse)
}

#[rustler::nif(schedule = "DirtyCpu")]
fn extension_unregister_dirty<'a>(env: Env<'a>, class_key: Name, selector: Name) -> Term<'a> {
    unregister(env, class_key, selector, Patience::Wait)
}

/// The selectors whose entries went.
#[rustler::nif(schedule = "DirtyCpu")]
fn extension_purge_class<'a>(env: Env<'a>, class_key: Name) -> Term<'a> {
    let purged = EXTENSIONS.purge_class(class_key.0, Patience::Wait);
    unless_busy(env, purged, |selectors| list(env, selectors.into_iter().map(|selector| atom(env, selector))))
}

#[rustler::nif(schedule = "DirtyCpu")]
fn extension_clear() -> Atom {
    drop(EXTENSIONS.clear());
    atoms::ok()
}

#[rustler::nif]
fn extension_lookup<'a>(env: Env<'a>, class_key: Name, selector: Name) -> Term<'a> {
    EXTENSIONS
        .with((class_key.0, selector.0), |hit| (atoms::ok(), hit.fun.get(env), Name(hit.owner)).encode(env))
        .unwrap_or_else(|| atoms::not_found().encode(env))
}

/// The levels of a class chain are few; a list too long to walk at once is refused.
const LONGEST_CHAIN: usize = 1_000;

#[rustler::nif]
fn extension_lookup_chain<'a>(env: Env<'a>, class_keys: Term<'a>, selector: Name) -> NifResult<Term<'a>> {
    let mut keys = Chain { rest: class_keys, left: LONGEST_CHAIN, refused: false };
    let hit = EXTENSIONS.with_first(&mut keys, selector.0, |key, hit| {
        (atoms::ok(), hit.fun.get(env), Name(key), Name(hit.owner))
    });
    match hit {
        _ if keys.refused => Err(Error::BadArg),
        Some((ok, fun, key, owner)) => Ok((ok, key, fun, owner).encode(env)),
        None => Ok(atoms::not_found().encode(env)),
    }
}

/// The class keys of a list, as far as they are asked for.
struct Chain<'a> {
    rest: Term<'a>,
    left: usize,
    refused: bool,
}

impl Iterator for Chain<'_> {
    type Item = Sym;

    fn next(&mut self) -> Option<Sym> {
        let Ok((head, tail)) = self.rest.list_get_cell() else {
            self.refused |= !self.rest.is_empty_list();
            return None;
        };
        let key = if self.left == 0 { None } else { sym(head) };
        self.refused |= key.is_none();
        self.rest = tail;
        self.left = self.left.saturating_sub(1);
        key
    }
}

#[rustler::nif]
fn extension_has(class_key: Name, selector: Name) -> bool {
    EXTENSIONS.has((class_key.0, selector.0))
}

/// `{Version, sourced | sourceless}` or `none`.
#[rustler::nif]
fn extension_version(env: Env<'_>, class_key: Name, selector: Name) -> Term<'_> {
    EXTENSIONS
        .with((class_key.0, selector.0), |hit| {
            let kind = if hit.source.is_some() { atoms::sourced() } else { atoms::sourceless() };
            (hit.version, kind).encode(env)
        })
        .unwrap_or_else(|| atoms::none().encode(env))
}

fn source_up_to<'a>(env: Env<'a>, class_key: Name, selector: Name, limit: usize) -> Term<'a> {
    let found = EXTENSIONS.with((class_key.0, selector.0), |hit| {
        hit.source.as_deref().map(|text| {
            if text.len() > limit {
                atoms::more().encode(env)
            } else {
                (atoms::ok(), binary(env, text)).encode(env)
            }
        })
    });
    found.flatten().unwrap_or_else(|| atoms::not_found().encode(env))
}

/// `{ok, Source}` or `not_found`, for a sourceless entry too; `more` where the dirty twin should be asked.
#[rustler::nif]
fn extension_source(env: Env<'_>, class_key: Name, selector: Name) -> Term<'_> {
    source_up_to(env, class_key, selector, BYTES_AT_ONCE)
}

#[rustler::nif(schedule = "DirtyCpu")]
fn extension_source_dirty(env: Env<'_>, class_key: Name, selector: Name) -> Term<'_> {
    source_up_to(env, class_key, selector, usize::MAX)
}

/// Takes the key off those whose sends are still to be indexed, if the version is still the one registered.
#[rustler::nif(schedule = "DirtyCpu")]
fn extension_indexed<'a>(env: Env<'a>, class_key: Name, selector: Name, version: u64) -> Term<'a> {
    let noted = EXTENSIONS.indexed((class_key.0, selector.0), version, Patience::Wait);
    unless_busy(env, noted, |noted| noted.encode(env))
}

/// `{ClassKey, Selector, Version}` of every sourced entry whose sends are still to be indexed.
#[rustler::nif(schedule = "DirtyCpu")]
fn extension_pending(env: Env<'_>) -> Term<'_> {
    let pending = EXTENSIONS.pending().into_iter();
    list(
        env,
        pending
            .map(|((class_key, selector), version)| (Name(class_key), Name(selector), version).encode(env)),
    )
}

/// Every sourced entry counts as still to be indexed again.
#[rustler::nif(schedule = "DirtyCpu")]
fn extension_unindexed(env: Env<'_>) -> Term<'_> {
    unless_busy(env, EXTENSIONS.unindexed(Patience::Wait), |()| atoms::ok().encode(env))
}

/// `{ClassKey, Selector}` of every entry.
#[rustler::nif(schedule = "DirtyCpu")]
fn extension_keys(env: Env<'_>) -> Term<'_> {
    pairs_or_more(env, Some(EXTENSIONS.keys()))
}

fn list_up_to<'a>(env: Env<'a>, class_key: Name, limit: usize) -> Term<'a> {
    let pairs = EXTENSIONS.list(class_key.0, limit);
    pairs_or_more(env, pairs)
}

fn by_owner_up_to<'a>(env: Env<'a>, owner: Name, limit: usize) -> Term<'a> {
    pairs_or_more(env, EXTENSIONS.by_owner(owner.0, limit))
}

fn pairs_or_more<'a>(env: Env<'a>, pairs: Option<Vec<(Sym, Sym)>>) -> Term<'a> {
    match pairs {
        None => atoms::more().encode(env),
        Some(pairs) => {
            list(env, pairs.into_iter().map(|(first, second)| (Name(first), Name(second)).encode(env)))
        }
    }
}

/// `[{Selector, Owner}]`, or `more` where the dirty twin should be asked.
#[rustler::nif]
fn extension_list(env: Env<'_>, class_key: Name) -> Term<'_> {
    list_up_to(env, class_key, ROWS_AT_ONCE)
}

#[rustler::nif(schedule = "DirtyCpu")]
fn extension_list_dirty(env: Env<'_>, class_key: Name) -> Term<'_> {
    list_up_to(env, class_key, usize::MAX)
}

/// `[{ClassKey, Selector}]`, or `more` where the dirty twin should be asked.
#[rustler::nif]
fn extension_by_owner(env: Env<'_>, owner: Name) -> Term<'_> {
    by_owner_up_to(env, owner, ROWS_AT_ONCE)
}

#[rustler::nif(schedule = "DirtyCpu")]
fn extension_by_owner_dirty(env: Env<'_>, owner: Name) -> Term<'_> {
    by_owner_up_to(env, owner, usize::MAX)
}

#[rustler::nif(schedule = "DirtyCpu")]
fn extension_sourced(env: Env<'_>) -> Term<'_> {
    let entries = EXTENSIONS.sourced().into_iter();
    list(
        env,
        entries.map(|((class_key, selector), hit)| {
            let text = binary(env, hit.source.as_deref().unwrap_or_default());
            (Name(class_key), Name(selector), text).encode(env)
        }),
    )
}

#[rustler::nif(schedule = "DirtyCpu")]
fn extension_conflicts(env: Env<'_>) -> Term<'_> {
    let keys = EXTENSIONS.conflicts().into_iter();
    list(
        env,
        keys.map(|((class_key, selector), owners)| {
            let owners = list(env, owners.iter().map(|owner| atom(env, *owner)));
            (Name(class_key), Name(selector), owners).encode(env)
        }),
    )
}

/// `[{Key, Integer}]`, for the façade to turn into a map.
#[rustler::nif(schedule = "DirtyCpu")]
fn extension_counts() -> Vec<(Atom, u64)> {
    let counts = EXTENSIONS.counts();
    vec![
        (atoms::entries(), counts.entries as u64),
        (atoms::class_keys(), counts.class_keys as u64),
        (atoms::owners(), counts.owners as u64),
        (atoms::conflicts(), counts.conflicts as u64),
        (atoms::bytes(), counts.bytes as u64),
        (atoms::version(), counts.version),
    ]
}
