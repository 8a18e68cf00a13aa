//! How an entry differs from the disk, for listings. Same two steps as a revert: the host tells the span.

use std::borrow::Cow;
use std::sync::Arc;

use super::entry::{Entry, Kind};
use super::io::FileId;
use super::layout;
use super::view::Row;

/// What a listing has to do for one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeltaStep {
    /// Neither clean nor a difference to show: the entry does not count, is of another kind, or something could not
    /// be read.
    Nothing,
    /// Show the difference between nothing and this text.
    NewText(Vec<u8>),
    /// Ask for the method's text in `file`, then call [`delta`] with it (an absent method is the empty text).
    NeedSpan {
        /// The entry.
        entry: Arc<Entry>,
        /// Its source file's bytes.
        file: Vec<u8>,
        /// Which file that was; equal ids promise equal bytes, so answers can be kept by it.
        file_id: FileId,
        /// The recorded new text.
        memory: Vec<u8>,
    },
}

/// Disk and memory compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta<'a> {
    /// The same but for layout.
    Clean,
    /// Different; both texts as they are to be shown.
    Differs {
        /// The disk's text.
        disk: Cow<'a, [u8]>,
        /// The image's text.
        memory: Cow<'a, [u8]>,
    },
}

/// Compares the method's text on disk with the recorded one.
#[must_use]
pub fn delta<'a>(disk: &'a [u8], memory: &'a [u8]) -> Delta<'a> {
    if layout::body_equal_ignoring_layout(disk, memory) {
        return Delta::Clean;
    }
    Delta::Differs { disk: layout::normalise(disk), memory: layout::normalise(memory) }
}

/// The first step for one row; the closures read the recorded new text and the source file, `None` if that fails.
pub(super) fn step(
    row: &Row,
    body: impl FnOnce(&Entry) -> Option<Vec<u8>>,
    file: impl FnOnce(&Entry) -> Option<(Vec<u8>, FileId)>,
) -> DeltaStep {
    let entry = &row.entry;
    if !row.active || row.shadowed {
        return DeltaStep::Nothing;
    }
    match entry.kind {
        Kind::NewClass => body(entry).map_or(DeltaStep::Nothing, DeltaStep::NewText),
        Kind::Instance | Kind::Class if entry.selector.is_some() && entry.source_file.is_some() => {
            let Some(memory) = body(entry) else { return DeltaStep::Nothing };
            match file(entry) {
                Some((file, file_id)) => {
                    DeltaStep::NeedSpan { entry: Arc::clone(entry), file, file_id, memory }
                }
                None => DeltaStep::Nothing,
            }
        }
        _ => DeltaStep::Nothing,
    }
}
