//! The NIF behind `beamtalk_image_nif`: decode terms, call the core, encode the answer. No rule lives here.
//!
//! One file per room it serves. Every function is flagged by what bounds it: normal only where its cost is bounded
//! for every input, dirty otherwise.

mod alloc;
mod atoms;
mod changelog;
mod extensions;
mod failing;
mod lang;
mod log;
mod protocols;
mod reading;
mod retire;
mod saved;
mod terms;
mod xref;

use rustler::{Env, Term};

/// Nothing to build: stores are static and empty until used. They survive the module (`-z nodelete`).
fn load(_env: Env, _info: Term) -> bool {
    log::start();
    true
}

rustler::init!("beamtalk_image_nif", load = load);

/// How the library was built: the benchmarks refuse anything but `release`.
#[rustler::nif]
fn build_profile() -> rustler::Atom {
    if cfg!(debug_assertions) { atoms::debug() } else { atoms::release() }
}
