//! Whether the disk still holds what a loaded entry was based on.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::bodies;
use super::entry::{Entry, Kind};
use super::io::Disk;

/// Where and how far to look.
pub(crate) struct Look<'a> {
    pub(crate) disk: &'a dyn Disk,
    pub(crate) sources: &'a Path,
    pub(crate) root: Option<&'a Path>,
    pub(crate) max_source_bytes: u64,
    pub(crate) max_body_bytes: u64,
}

/// Sets the orphan flags of loaded entries. Each source file is read once, one at a time.
///
/// A flushed entry is never an orphan. An entry without source file or without recorded earlier text has nothing to
/// compare. A class removal is compared with its whole file, any other entry with the bytes at its span.
pub(crate) fn judge(look: &Look<'_>, entries: &mut [Entry]) {
    let mut by_file: BTreeMap<Arc<str>, Vec<usize>> = BTreeMap::new();
    for (index, entry) in entries.iter().enumerate() {
        if let (Some(file), Some(_), false) = (&entry.source_file, &entry.prev_source_ref, entry.flushed) {
            by_file.entry(Arc::from(&**file)).or_default().push(index);
        }
    }
    let readable = by_file.is_empty() || bodies::check_folder(look.disk, look.sources).is_ok();
    for (file, indexes) in by_file {
        let text =
            bodies::read_source(look.disk, look.root, &file, look.max_source_bytes).ok().filter(|_| readable);
        for index in indexes {
            if let Some(entry) = entries.get_mut(index) {
                entry.orphan =
                    text.as_ref().is_none_or(|(text, _)| !still_there(look, entry, text).unwrap_or(false));
            }
        }
    }
}

fn still_there(look: &Look<'_>, entry: &Entry, text: &[u8]) -> Option<bool> {
    let expected = if entry.kind == Kind::RemoveClass && entry.span.is_none() {
        text
    } else {
        let span = entry.span?;
        text.get(usize::try_from(span.start).ok()?..usize::try_from(span.end).ok()?)?
    };
    let reference = entry.prev_source_ref.as_deref()?;
    // A longer body differs without being read.
    let limit = u64::try_from(expected.len()).ok()?.min(look.max_body_bytes);
    let body = bodies::read_inside(look.disk, look.sources, reference, limit).ok()?;
    Some(body == expected)
}
