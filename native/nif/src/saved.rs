//! Terms that outlive their process: the one audited place where the library keeps what only the BEAM can read.

use rustler::sys::{ErlNifEnv, ErlNifTerm, enif_alloc_env, enif_free_env, enif_make_copy};
use rustler::{Env, Term};

/// A term copied once into an environment of its own, which is never written again.
pub(crate) struct Saved {
    env: *mut ErlNifEnv,
    term: ErlNifTerm,
}

// SAFETY: a process-independent environment belongs to no thread. After `new` nothing writes to this one: `get` only
// reads it, and only `drop`, which has the sole reference, frees it.
unsafe impl Send for Saved {}
// SAFETY: as above; `enif_make_copy` reads its source and writes only to the environment that it is given.
unsafe impl Sync for Saved {}

impl Saved {
    /// Copies the term out of its process.
    pub(crate) fn new(term: Term) -> Self {
        // SAFETY: the environment is fresh, and the copy lives exactly as long as it.
        unsafe {
            let env = enif_alloc_env();
            Self { env, term: enif_make_copy(env, term.as_c_arg()) }
        }
    }

    /// A copy in the caller's environment.
    pub(crate) fn get<'a>(&self, env: Env<'a>) -> Term<'a> {
        // SAFETY: the copy belongs to `env`, which is what the answer's lifetime says.
        unsafe { Term::new(env, enif_make_copy(env.as_c_arg(), self.term)) }
    }
}

impl Drop for Saved {
    fn drop(&mut self) {
        // SAFETY: allocated in `new`, freed nowhere else.
        unsafe { enif_free_env(self.env) }
    }
}
