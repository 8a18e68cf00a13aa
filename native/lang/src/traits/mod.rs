//! Traits: protocols whose methods a class takes over with a `uses:` line (ADR 0127).
//!
//! So far the first four steps of flattening (§3): what a class gets, and where its uses conflict (§4).

pub mod merge;
