//! What readers see: one immutable state of the log.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use imbl::Vector;

use super::entry::{Entry, Side, Target};
use super::seeds::{self, Seed};

/// One state of the log, whole. Cheap to keep; never changes.
#[derive(Debug, Clone)]
pub struct View {
    epoch: u64,
    /// By rising `seq`.
    entries: Vector<Arc<Entry>>,
}

/// An entry with what the others make of it.
#[derive(Debug, Clone)]
pub struct Row {
    /// The entry.
    pub entry: Arc<Entry>,
    /// [`Entry::is_active`].
    pub active: bool,
    /// Whether another active entry of the same target is newer; never true of an inactive one.
    pub shadowed: bool,
}

/// The placeholder by which callers address the changes of a whole class.
pub const WHOLE_CLASS: &str = "new-class";

impl View {
    pub(crate) fn new(epoch: u64, entries: Vector<Arc<Entry>>) -> Self {
        Self { epoch, entries }
    }

    pub(crate) fn with(&self, entry: Arc<Entry>) -> Self {
        let mut entries = self.entries.clone();
        entries.push_back(entry);
        Self { epoch: self.epoch, entries }
    }

    pub(crate) fn without_entries(&self) -> Self {
        Self { epoch: self.epoch, entries: Vector::new() }
    }

    pub(crate) fn map(&self, change: impl FnMut(&Arc<Entry>) -> Option<Arc<Entry>>) -> Self {
        Self { epoch: self.epoch, entries: self.entries.iter().filter_map(change).collect() }
    }

    /// The current run's number; 0 in memory mode.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// How many entries there are. Constant time.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All entries by rising `seq`.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &Arc<Entry>> {
        self.entries.iter()
    }

    /// The entry of that number. Logarithmic.
    #[must_use]
    pub fn entry(&self, seq: u64) -> Option<&Arc<Entry>> {
        let index = self.entries.binary_search_by_key(&seq, |entry| entry.seq).ok()?;
        self.entries.get(index)
    }

    /// The active entries by rising `seq`. Linear in all entries.
    pub fn active(&self) -> impl DoubleEndedIterator<Item = &Arc<Entry>> {
        self.entries.iter().filter(|entry| is_active(entry))
    }

    /// What a flush would write, by rising `seq`, shadowed entries included. Linear in all entries.
    pub fn flushable_pending(&self) -> impl DoubleEndedIterator<Item = &Arc<Entry>> {
        self.entries.iter().filter(|entry| {
            if seeds::on(Seed::EphemeralIsPending) {
                return is_active(entry) && entry.flushable;
            }
            is_active(entry) && entry.is_flushable_pending()
        })
    }

    /// Every entry by rising `seq`, with what it counts for. Linear in all entries.
    #[must_use]
    pub fn rows(&self) -> Vec<Row> {
        let newest = self.survivors();
        self.entries
            .iter()
            .map(|entry| {
                let active = is_active(entry);
                let shadowed = active && newest.get(&entry.target()) != Some(&entry.seq);
                Row { entry: Arc::clone(entry), active, shadowed }
            })
            .collect()
    }

    /// The newest active entry of each target.
    fn survivors(&self) -> HashMap<Target<'_>, u64> {
        let mut newest = HashMap::new();
        let inactive_too = seeds::on(Seed::InactiveShadows);
        for entry in self.entries.iter().filter(|entry| inactive_too || is_active(entry)) {
            if seeds::on(Seed::OldestSurvives) {
                newest.entry(entry.target()).or_insert(entry.seq);
            } else {
                newest.insert(entry.target(), entry.seq);
            }
        }
        newest
    }

    /// The entry that a revert of this class and selector is about: the newest active one, of that side if one is
    /// given. [`WHOLE_CLASS`] as selector stands for the entries without selector. Walks back from the newest entry.
    #[must_use]
    pub fn revert_candidate(&self, class: &str, selector: &str, side: Option<Side>) -> Option<&Arc<Entry>> {
        let whole = selector == WHOLE_CLASS;
        let matches = |entry: &&Arc<Entry>| {
            is_active(entry)
                && *entry.class == *class
                && match &entry.selector {
                    Some(recorded) => **recorded == *selector,
                    None => whole,
                }
                && (side.is_none() || entry.side() == side || seeds::on(Seed::RevertIgnoresSide))
        };
        if seeds::on(Seed::RevertTakesOldest) {
            return self.entries.iter().find(matches);
        }
        self.entries.iter().rev().find(matches)
    }

    /// The selectors with active entries, by class; [`WHOLE_CLASS`] for an entry without selector. Shadowed entries
    /// count. Linear in all entries.
    #[must_use]
    pub fn dirty(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut dirty: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for entry in self.active() {
            dirty.entry(&entry.class).or_default().insert(entry.selector.as_deref().unwrap_or(WHOLE_CLASS));
        }
        dirty
    }

    /// The entries to archive so that no more than `keep` remain: inactive ones first, then shadowed ones, then the
    /// rest, each oldest first. An entry that shadows goes only when nothing it shadows is left, so that no archiving
    /// turns an outdated change into a pending one.
    pub(crate) fn to_archive(&self, keep: usize) -> BTreeSet<u64> {
        let excess = self.entries.len().saturating_sub(keep);
        let mut rows = self.rows();
        if seeds::on(Seed::RotateOldestFirst) {
            rows.sort_by_key(|row| row.entry.seq);
        } else if seeds::on(Seed::RotateNewestSurvivorFirst) {
            rows.sort_by_key(|row| (row.active, row.shadowed, row.entry.seq));
        } else {
            rows.sort_by_key(|row| (row.active, row.active && !row.shadowed, row.entry.seq));
        }
        rows.iter().take(excess).map(|row| row.entry.seq).collect()
    }
}

fn is_active(entry: &Entry) -> bool {
    if seeds::on(Seed::FlushedStillActive) {
        return !entry.prior_epoch && !entry.orphan;
    }
    if seeds::on(Seed::PriorEpochStillActive) {
        return !entry.orphan && !entry.flushed;
    }
    entry.is_active()
}
