//! Beamtalk source text: a lossless tree, the facts a live image asks of it, and the expansion of traits (ADR 0127).
//!
//! The crate is pure: it knows neither the BEAM nor the registries.
#![forbid(unsafe_code)]

pub mod ast;
pub mod checks;
pub mod diag;
pub mod facts;
pub mod lexer;
pub mod parser;
pub mod shell;
pub mod span;
pub mod traits;
pub mod tree;
