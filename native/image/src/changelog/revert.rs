//! What a revert of one class and selector comes down to.
//!
//! The decision may need to know where a method stands in a source file, which only the host can tell; it is then
//! made in two steps, so that the store never asks anybody.

use std::sync::Arc;

use super::entry::{Entry, Kind};
use super::seeds::{self, Seed};

/// The decision, or the question that it hangs on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RevertStep {
    /// Nothing more needs to be known.
    Decided(RevertTarget),
    /// Ask for the span of the entry's class, selector and derived side in `file`, then call [`after_span`].
    NeedSpan {
        /// The entry that decides.
        entry: Arc<Entry>,
        /// Its source file's bytes.
        file: Vec<u8>,
    },
}

/// What reverting means. *Remove* is only ever answered if the method provably did not exist before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RevertTarget {
    /// There is no active entry to revert.
    NoEntry,
    /// There is one, but nothing says what was there before.
    NoPrevSource,
    /// Remove the class or method that the entry added.
    Remove(Arc<Entry>),
    /// Make the class again from this text.
    ReinstallClass(Vec<u8>, Arc<Entry>),
    /// Install this method text again, on the entry's side.
    Body(Vec<u8>, Arc<Entry>),
}

/// What the host knows of a method in a source file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanAnswer<'a> {
    /// It stands there, with this text.
    Found(&'a [u8]),
    /// The file was understood and does not have it.
    SelectorNotFound,
    /// Anything else.
    Failed,
}

/// The first step for the candidate of [`super::View::revert_candidate`].
///
/// `prev_body` reads the recorded earlier text and `file` the source file, `None` if that fails; each is called at
/// most once and only if its answer counts.
pub fn decide(
    candidate: Option<&Arc<Entry>>,
    prev_body: impl FnOnce(&Entry) -> Option<Vec<u8>>,
    file: impl FnOnce(&Entry) -> Option<Vec<u8>>,
) -> RevertStep {
    use RevertStep::{Decided, NeedSpan};
    let Some(entry) = candidate.map(Arc::clone) else {
        return Decided(RevertTarget::NoEntry);
    };
    match entry.kind {
        Kind::NewClass => Decided(RevertTarget::Remove(entry)),
        Kind::RemoveClass => Decided(match prev_body(&entry).or_else(|| file(&entry)) {
            Some(text) => RevertTarget::ReinstallClass(text, entry),
            None => RevertTarget::NoPrevSource,
        }),
        _ => {
            if let Some(body) = prev_body(&entry) {
                return Decided(RevertTarget::Body(body, entry));
            }
            if entry.selector.is_none() {
                return Decided(RevertTarget::NoPrevSource);
            }
            match file(&entry) {
                Some(file) => NeedSpan { entry, file },
                None => Decided(RevertTarget::NoPrevSource),
            }
        }
    }
}

/// The second step.
#[must_use]
pub fn after_span(entry: Arc<Entry>, answer: SpanAnswer<'_>) -> RevertTarget {
    match answer {
        SpanAnswer::Found(body) => RevertTarget::Body(body.to_vec(), entry),
        SpanAnswer::SelectorNotFound
            if entry.prev_source_ref.is_none() || seeds::on(Seed::RemoveAlthoughBodyWasRecorded) =>
        {
            RevertTarget::Remove(entry)
        }
        SpanAnswer::SelectorNotFound | SpanAnswer::Failed => RevertTarget::NoPrevSource,
    }
}
