//! Between terms and the core's types. Names become [`Sym`]s here and nowhere else.

use std::sync::LazyLock;

use beamtalk_image::Sym;
use rustler::sys::ErlNifTerm;
use rustler::{Binary, Decoder, Encoder, Env, Error, NewBinary, NifResult, Term};

/// How many rows a call on a normal scheduler may answer; more is asked for again on a dirty one.
pub(crate) const ROWS_AT_ONCE: usize = 1_000;

/// An atom on its way to the core and back.
#[derive(Clone, Copy)]
pub(crate) struct Name(pub(crate) Sym);

impl<'a> Decoder<'a> for Name {
    fn decode(term: Term<'a>) -> NifResult<Self> {
        sym(term).map(Name).ok_or(Error::BadArg)
    }
}

impl Encoder for Name {
    fn encode<'a>(&self, env: Env<'a>) -> Term<'a> {
        atom(env, self.0)
    }
}

/// The name that an atom stands for; `None` for any other term.
pub(crate) fn sym(term: Term) -> Option<Sym> {
    // An atom is an immediate word. One that does not fit 32 bits would need an atom table of 2^26 entries, which
    // no supported release reaches by default; it is refused rather than confused with another.
    // SAFETY: term and environment belong together; the call only looks at the term.
    let is_atom = unsafe { rustler::sys::enif_is_atom(term.get_env().as_c_arg(), term.as_c_arg()) };
    if is_atom == 0 {
        return None;
    }
    // SAFETY: a term is `repr(transparent)` over one machine word.
    let word = unsafe { std::mem::transmute::<ErlNifTerm, usize>(term.as_c_arg()) };
    u32::try_from(word).ok().and_then(Sym::new)
}

/// The atom that a name was made from.
pub(crate) fn atom(env: Env, name: Sym) -> Term {
    // SAFETY: the word came from an atom of this VM (`sym` is the only maker), and atoms are never collected.
    unsafe { Term::new(env, std::mem::transmute::<usize, ErlNifTerm>(name.word() as usize)) }
}

/// A boolean term.
pub(crate) fn boolean(env: Env, value: bool) -> Term {
    if value { crate::atoms::true_().encode(env) } else { crate::atoms::false_().encode(env) }
}

/// A tuple of terms, built without a list of them.
pub(crate) fn tuple<'a, const N: usize>(env: Env<'a>, elements: [Term<'a>; N]) -> Term<'a> {
    let words = elements.map(|element| element.as_c_arg());
    // SAFETY: the words belong to terms of `env`, and the array has as many as is said.
    unsafe {
        Term::new(env, rustler::sys::enif_make_tuple_from_array(env.as_c_arg(), words.as_ptr(), N as u32))
    }
}

/// Whether a name is the atom `undefined`.
pub(crate) fn is_undefined(name: Sym) -> bool {
    static UNDEFINED: LazyLock<Option<Sym>> = LazyLock::new(|| {
        let env = rustler::OwnedEnv::new();
        env.run(|env| sym(crate::atoms::undefined().encode(env)))
    });
    *UNDEFINED == Some(name)
}

/// Walks a list without trusting it to be proper.
pub(crate) fn each<'a>(list: Term<'a>, mut take: impl FnMut(Term<'a>) -> NifResult<()>) -> NifResult<()> {
    let mut rest = list;
    while let Ok((head, tail)) = rest.list_get_cell() {
        take(head)?;
        rest = tail;
    }
    if rest.is_empty_list() { Ok(()) } else { Err(Error::BadArg) }
}

/// Makes a value of every element, or answers the place and value of the first that does not make one. A tail that is
/// no list stands at the place behind the last element.
pub(crate) fn collect<'a, T>(
    list: Term<'a>,
    mut make: impl FnMut(Term<'a>) -> Option<T>,
) -> Result<Vec<T>, (usize, Term<'a>)> {
    let mut made = Vec::new();
    let mut rest = list;
    while let Ok((head, tail)) = rest.list_get_cell() {
        made.push(make(head).ok_or((made.len() + 1, head))?);
        rest = tail;
    }
    if rest.is_empty_list() { Ok(made) } else { Err((made.len() + 1, rest)) }
}

/// A list of names, `badarg` for anything else.
pub(crate) fn names(list: Term) -> NifResult<Vec<Sym>> {
    let mut names = Vec::new();
    each(list, |head| {
        names.push(sym(head).ok_or(Error::BadArg)?);
        Ok(())
    })?;
    Ok(names)
}

/// A binary term with these bytes.
pub(crate) fn binary<'a>(env: Env<'a>, bytes: &[u8]) -> Term<'a> {
    let mut binary = NewBinary::new(env, bytes.len());
    binary.as_mut_slice().copy_from_slice(bytes);
    Binary::from(binary).to_term(env)
}

/// A list made from its elements, in their order.
pub(crate) fn list<'a>(env: Env<'a>, elements: impl DoubleEndedIterator<Item = Term<'a>>) -> Term<'a> {
    elements.rev().fold(Term::list_new_empty(env), |tail, head| tail.list_prepend(head))
}

/// The answer of a write, or `busy` for the caller to ask again where waiting is allowed.
pub(crate) fn unless_busy<'a, T>(
    env: Env<'a>,
    written: Result<T, beamtalk_image::Busy>,
    answer: impl FnOnce(T) -> Term<'a>,
) -> Term<'a> {
    written.map_or_else(|_busy| crate::atoms::busy().encode(env), answer)
}
