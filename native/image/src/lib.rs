//! The data of a live Beamtalk image: extension registry, cross-reference index, protocol registry and ChangeLog.
//!
//! The crate is pure: it knows no BEAM. Names are [`Sym`]s, opaque words made by whoever owns the name table.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod changelog;
pub mod extensions;
mod patience;
pub mod protocols;
pub mod sym;
pub mod xref;

pub use patience::{Busy, Patience};
pub use sym::Sym;
