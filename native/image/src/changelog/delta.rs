//! How an entry differs from the disk, for listings. Same two steps as a revert: the host tells the span.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use parking_lot::Mutex;

use super::entry::{Entry, Kind};
use super::io::FileId;
use super::layout;
use super::seeds::{self, Seed};
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

/// One row of a listing.
#[derive(Debug, Clone)]
pub struct Listed {
    /// The entry and what it counts for.
    pub row: Row,
    /// What is known about its difference from the disk, or has to be done to know it.
    pub step: ListedStep,
}

/// What a listing has to do for one row. Results are handed to [`super::ChangeLog::remember_delta`], and are then
/// [`ListedStep::Known`] until the source file changes.
#[derive(Debug, Clone)]
pub enum ListedStep {
    /// As [`DeltaStep::Nothing`].
    Nothing,
    /// The result that was handed in for the same texts.
    Known {
        /// Whether disk and memory are the same but for layout.
        clean: bool,
        /// The difference as it was handed in.
        diff: Option<Arc<[u8]>>,
    },
    /// As [`DeltaStep::NewText`].
    NewText {
        /// The text.
        text: Vec<u8>,
        /// Hand this in with the result.
        key: u64,
    },
    /// As [`DeltaStep::NeedSpan`].
    NeedSpan {
        /// The bytes of the source file; rows of one file share them.
        file: Arc<[u8]>,
        /// The recorded new text.
        memory: Vec<u8>,
        /// Hand this in with the result.
        key: u64,
    },
}

/// Where a listing finds the texts; `None` for what cannot be read.
pub(super) trait Texts {
    /// Which file holds the recorded new text.
    fn body_id(&self, entry: &Entry) -> Option<FileId>;
    /// The recorded new text.
    fn body(&self, entry: &Entry) -> Option<Vec<u8>>;
    /// A source file of the project.
    fn file(&self, name: &str) -> Option<Vec<u8>>;
}

/// The source files of one listing, each with the hash of its bytes.
type Files = HashMap<Box<str>, Option<(Arc<[u8]>, u64)>>;

/// What was compared before: a result an entry, each with what it was compared to. The key is a hash of the source
/// file's bytes, which others change, and of which file the body is, which nobody changes.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    results: Mutex<HashMap<u64, Remember>>,
    hasher: RandomState,
}

#[derive(Debug)]
struct Remember {
    key: u64,
    clean: bool,
    diff: Option<Arc<[u8]>>,
}

impl Remembered {
    pub(super) fn put(&self, seq: u64, key: u64, clean: bool, diff: Option<&[u8]>) {
        self.results.lock().insert(seq, Remember { key, clean, diff: diff.map(Arc::from) });
    }

    fn get(&self, seq: u64, key: u64) -> Option<ListedStep> {
        let results = self.results.lock();
        let stale = seeds::on(Seed::ComparisonOutlivesItsText);
        let found = results.get(&seq).filter(|found| found.key == key || stale)?;
        Some(ListedStep::Known { clean: found.clean, diff: found.diff.clone() })
    }

    /// Steps for all rows; each source file is read once, and a body only where nothing is known yet.
    pub(super) fn list(&self, rows: Vec<Row>, texts: &impl Texts) -> Vec<Listed> {
        let mut files = HashMap::new();
        let listed: Vec<Listed> = rows
            .into_iter()
            .map(|row| {
                let step =
                    if row.active && !row.shadowed { self.step(&row.entry, &mut files, texts) } else { None };
                Listed { row, step: step.unwrap_or(ListedStep::Nothing) }
            })
            .collect();
        let compared = |listed: &Listed| !matches!(listed.step, ListedStep::Nothing);
        let current: std::collections::HashSet<u64> =
            listed.iter().filter(|listed| compared(listed)).map(|listed| listed.row.entry.seq).collect();
        self.results.lock().retain(|seq, _| current.contains(seq));
        listed
    }

    fn step(&self, entry: &Entry, files: &mut Files, texts: &impl Texts) -> Option<ListedStep> {
        match entry.kind {
            Kind::NewClass => {
                let key = self.hasher.hash_one(texts.body_id(entry)?);
                match self.get(entry.seq, key) {
                    Some(known) => Some(known),
                    None => Some(ListedStep::NewText { text: texts.body(entry)?, key }),
                }
            }
            Kind::Instance | Kind::Class => {
                entry.selector.as_ref()?;
                let name = entry.source_file.as_ref()?;
                if !files.contains_key(name) {
                    let text = texts.file(name).map(|text| {
                        let hash = self.hasher.hash_one(&text);
                        (Arc::from(text), hash)
                    });
                    files.insert(name.clone(), text);
                }
                let (file, hash) = files.get(name)?.as_ref()?;
                let key = self.hasher.hash_one((hash, texts.body_id(entry)?));
                match self.get(entry.seq, key) {
                    Some(known) => Some(known),
                    None => {
                        Some(ListedStep::NeedSpan { file: Arc::clone(file), memory: texts.body(entry)?, key })
                    }
                }
            }
            _ => None,
        }
    }
}
