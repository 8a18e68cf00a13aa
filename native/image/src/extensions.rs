//! The extension registry: methods that packages add to classes from outside (open classes).
//!
//! One name space, one entry per class key and selector, the last registration wins. Readers load one immutable
//! version and take no lock; writers build the next version from shared parts and swap it in.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use crate::patience::{Busy, Patience};
use crate::sym::{Map, Set, Sym, SymHash};

/// Where an extension sits: the class key (a class name, or its tag for the class side) and the selector.
pub type Key = (Sym, Sym);

/// One registered extension. Replaced whole, so nobody pairs a new function with an old text.
#[derive(Debug)]
pub struct Extension<F> {
    /// The function that answers the message.
    pub fun: F,
    /// The package that contributed it.
    pub owner: Sym,
    /// Its source text, where it could be recovered.
    pub source: Option<Box<[u8]>>,
    /// Rises with every registration in the store; never reused.
    pub version: u64,
    /// Every owner that registered this key since it was last empty, distinct, in order of their words.
    pub owners: Box<[Sym]>,
}

/// What a registration found.
#[derive(Debug, PartialEq, Eq)]
pub struct Registered {
    /// The version given to the new entry.
    pub version: u64,
    /// The owner that was replaced, if it was another one.
    pub replaced_owner: Option<Sym>,
}

/// How much the registry holds.
#[derive(Debug, PartialEq, Eq, Clone, Copy, Default)]
pub struct Counts {
    /// Entries.
    pub entries: usize,
    /// Class keys with at least one entry.
    pub class_keys: usize,
    /// Owners of at least one entry.
    pub owners: usize,
    /// Keys that more than one owner registered.
    pub conflicts: usize,
    /// Bytes of source text and records; what functions weigh is the caller's to know.
    pub bytes: usize,
    /// The version of the last registration.
    pub version: u64,
}

struct State<F> {
    entries: Map<Key, Arc<Extension<F>>>,
    by_class: Map<Sym, Set<Sym>>,
    by_owner: Map<Sym, Set<Key>>,
    sourced: Set<Key>,
    /// Sourced entries whose sends are still to be read out of their text.
    pending: Set<Key>,
    conflicted: Set<Key>,
    version: u64,
}

impl<F> Clone for State<F> {
    fn clone(&self) -> Self {
        Self {
            entries: self.entries.clone(),
            by_class: self.by_class.clone(),
            by_owner: self.by_owner.clone(),
            sourced: self.sourced.clone(),
            pending: self.pending.clone(),
            conflicted: self.conflicted.clone(),
            version: self.version,
        }
    }
}

impl<F> Default for State<F> {
    fn default() -> Self {
        Self {
            entries: Map::with_hasher(SymHash),
            by_class: Map::with_hasher(SymHash),
            by_owner: Map::with_hasher(SymHash),
            sourced: Set::with_hasher(SymHash),
            pending: Set::with_hasher(SymHash),
            conflicted: Set::with_hasher(SymHash),
            version: 0,
        }
    }
}

/// Counts, in one byte each, how many keys fall into a place: most look-ups are for keys that nobody registered, and
/// an empty place says so at the cost of one load.
struct Presence(Box<[AtomicU8; PLACES]>);

/// One hundred and twenty-eight kilobytes: of ten thousand keys, fewer than one unregistered key in twelve shares a
/// place with a registered one.
const PLACES: usize = 1 << 17;

impl Presence {
    fn place(&self, key: Key) -> &AtomicU8 {
        let hash = usize::try_from(SymHash.hash_one(key) % PLACES as u64).unwrap_or(0);
        // The modulus keeps the index inside; the first place stands in for the impossible.
        let [first, ..] = &*self.0;
        self.0.get(hash).unwrap_or(first)
    }

    fn may_have(&self, key: Key) -> bool {
        self.place(key).load(Ordering::Acquire) > 0
    }

    /// Only the one writer changes counts. A place that ever was full stays full: it can no longer be counted down.
    fn entered(&self, key: Key) {
        let place = self.place(key);
        place.store(place.load(Ordering::Relaxed).saturating_add(1), Ordering::Release);
    }

    fn left(&self, key: Key) {
        let place = self.place(key);
        let count = place.load(Ordering::Relaxed);
        if count < u8::MAX {
            place.store(count.saturating_sub(1), Ordering::Release);
        }
    }

    fn clear(&self) {
        self.0.iter().for_each(|place| place.store(0, Ordering::Release));
    }
}

impl Default for Presence {
    fn default() -> Self {
        // Straight into the heap: the array would fill half the stack of a scheduler's thread.
        let places: Box<[AtomicU8]> = (0..PLACES).map(|_| AtomicU8::new(0)).collect();
        Self(places.try_into().unwrap_or_else(|_| Box::new([const { AtomicU8::new(0) }; PLACES])))
    }
}

/// A state under way: what was removed leaves the presence counts once nobody can see it any more.
struct Edit<'r, F> {
    state: State<F>,
    present: &'r Presence,
    departed: Vec<Key>,
}

impl<F> Edit<'_, F> {
    /// The only place where an entry changes: the table and all of its indexes move together.
    fn replace(&mut self, key: Key, next: Option<Arc<Extension<F>>>) -> Option<Arc<Extension<F>>> {
        let old = match &next {
            Some(extension) => self.state.entries.insert(key, Arc::clone(extension)),
            None => self.state.entries.remove(&key),
        };
        let same_owner = matches!((&old, &next), (Some(old), Some(new)) if old.owner == new.owner);
        if let Some(old) = &old
            && !same_owner
        {
            remove_member(&mut self.state.by_owner, old.owner, &key);
        }
        match &next {
            Some(new) => {
                if old.is_none() {
                    // Before the entry can be seen: a reader must never miss what is there.
                    self.present.entered(key);
                    insert_member(&mut self.state.by_class, key.0, key.1);
                }
                if !same_owner {
                    insert_member(&mut self.state.by_owner, new.owner, key);
                }
                set_membership(&mut self.state.sourced, key, new.source.is_some());
                set_membership(&mut self.state.pending, key, new.source.is_some());
                set_membership(&mut self.state.conflicted, key, new.owners.len() > 1);
            }
            None => {
                self.departed.extend(old.is_some().then_some(key));
                remove_member(&mut self.state.by_class, key.0, &key.1);
                self.state.sourced.remove(&key);
                self.state.pending.remove(&key);
                self.state.conflicted.remove(&key);
            }
        }
        old
    }
}

fn insert_member<K: std::hash::Hash + Eq + Clone>(index: &mut Map<Sym, Set<K>>, at: Sym, member: K) {
    index.entry(at).or_insert_with(|| Set::with_hasher(SymHash)).insert(member);
}

fn remove_member<K: std::hash::Hash + Eq + Clone>(index: &mut Map<Sym, Set<K>>, at: Sym, member: &K) {
    let emptied = index.get_mut(&at).is_some_and(|members| {
        members.remove(member);
        members.is_empty()
    });
    if emptied {
        index.remove(&at);
    }
}

fn set_membership(set: &mut Set<Key>, key: Key, wanted: bool) {
    match (set.contains(&key), wanted) {
        (false, true) => {
            set.insert(key);
        }
        (true, false) => {
            set.remove(&key);
        }
        _ => {}
    }
}

/// The registry of open-class methods. `F` is the function as its owner keeps it; the core only hands it back.
pub struct Extensions<F> {
    state: ArcSwap<State<F>>,
    present: Presence,
    writer: Mutex<()>,
}

impl<F> Default for Extensions<F> {
    fn default() -> Self {
        Self {
            state: ArcSwap::from_pointee(State::default()),
            present: Presence::default(),
            writer: Mutex::new(()),
        }
    }
}

impl<F> Extensions<F> {
    fn edit<R>(&self, patience: Patience, change: impl FnOnce(&mut Edit<F>) -> R) -> Result<R, Busy> {
        let (answer, superseded) = {
            let _one_writer = patience.lock(&self.writer)?;
            let state = State::clone(&self.state.load());
            let mut edit = Edit { state, present: &self.present, departed: Vec::new() };
            let answer = change(&mut edit);
            let superseded = self.state.swap(Arc::new(edit.state));
            edit.departed.into_iter().for_each(|key| self.present.left(key));
            (answer, superseded)
        };
        drop(superseded);
        Ok(answer)
    }

    /// Registers a function, replacing whatever stood at the key. Cost: a few path copies, whatever the registry holds.
    ///
    /// # Errors
    /// [`Busy`].
    pub fn register(
        &self,
        key: Key,
        fun: F,
        owner: Sym,
        source: Option<Box<[u8]>>,
        patience: Patience,
    ) -> Result<Registered, Busy> {
        self.edit(patience, |edit| {
            edit.state.version += 1;
            let version = edit.state.version;
            let earlier = edit.state.entries.get(&key);
            let replaced_owner = earlier.map(|old| old.owner).filter(|old| *old != owner);
            let owners = with_owner(earlier.map_or(&[], |old| &old.owners), owner);
            edit.replace(key, Some(Arc::new(Extension { fun, owner, source, version, owners })));
            Registered { version, replaced_owner }
        })
    }

    /// Removes the entry at the key with its conflict history and answers it: of several callers, one gets it.
    ///
    /// # Errors
    /// [`Busy`].
    pub fn unregister(&self, key: Key, patience: Patience) -> Result<Option<Arc<Extension<F>>>, Busy> {
        self.edit(patience, |edit| edit.replace(key, None))
    }

    /// Removes every entry under exactly this class key in one step; answers their selectors.
    ///
    /// # Errors
    /// [`Busy`].
    pub fn purge_class(&self, class_key: Sym, patience: Patience) -> Result<Vec<Sym>, Busy> {
        self.edit(patience, |edit| {
            let selectors: Vec<Sym> =
                edit.state.by_class.get(&class_key).into_iter().flatten().copied().collect();
            for &selector in &selectors {
                edit.replace((class_key, selector), None);
            }
            selectors
        })
    }

    /// Empties the registry. What is answered holds the old entries; drop it where a long drop does no harm.
    pub fn clear(&self) -> impl Send + use<F>
    where
        F: Send + Sync,
    {
        let _one_writer = self.writer.lock();
        // Versions go on rising, so that late answers about old entries stay recognisable.
        let version = self.state.load().version;
        let superseded = self.state.swap(Arc::new(State { version, ..State::default() }));
        self.present.clear();
        superseded
    }

    /// The entry at exactly this key: no inheritance, no other side. Takes no lock.
    #[must_use]
    pub fn lookup(&self, key: Key) -> Option<Arc<Extension<F>>> {
        self.state.load().entries.get(&key).map(Arc::clone)
    }

    /// Calls `found` with the entry at the key, without counting a reference to it.
    pub fn with<R>(&self, key: Key, found: impl FnOnce(&Extension<F>) -> R) -> Option<R> {
        if !self.present.may_have(key) {
            return None;
        }
        self.state.load().entries.get(&key).map(|extension| found(extension))
    }

    /// Calls `found` with the first of the class keys that has the selector. All levels come from one version.
    pub fn with_first<R>(
        &self,
        class_keys: impl IntoIterator<Item = Sym>,
        selector: Sym,
        found: impl FnOnce(Sym, &Extension<F>) -> R,
    ) -> Option<R> {
        let state = self.state.load();
        let (key, extension) = class_keys
            .into_iter()
            .find_map(|key| state.entries.get(&(key, selector)).map(|hit| (key, hit)))?;
        Some(found(key, extension))
    }

    /// Whether the key has an entry. Takes no lock.
    #[must_use]
    pub fn has(&self, key: Key) -> bool {
        self.present.may_have(key) && self.state.load().entries.contains_key(&key)
    }

    /// Selector and owner of every entry under the class key, in no order; `None` if there are more than `limit`.
    /// Cost: the answer's length.
    #[must_use]
    pub fn list(&self, class_key: Sym, limit: usize) -> Option<Vec<(Sym, Sym)>> {
        let state = self.state.load();
        let Some(selectors) = state.by_class.get(&class_key) else {
            return Some(Vec::new());
        };
        let owner_of =
            |selector: &Sym| state.entries.get(&(class_key, *selector)).map(|hit| (*selector, hit.owner));
        (selectors.len() <= limit).then(|| selectors.iter().filter_map(owner_of).collect())
    }

    /// Class key and selector of every entry of the owner, in no order; `None` if there are more than `limit`.
    /// Cost: the answer's length.
    #[must_use]
    pub fn by_owner(&self, owner: Sym, limit: usize) -> Option<Vec<Key>> {
        let state = self.state.load();
        let Some(keys) = state.by_owner.get(&owner) else {
            return Some(Vec::new());
        };
        (keys.len() <= limit).then(|| keys.iter().copied().collect())
    }

    /// Every entry that has a source text, in no order. Cost: the answer's length.
    #[must_use]
    pub fn sourced(&self) -> Vec<(Key, Arc<Extension<F>>)> {
        let state = self.state.load();
        state
            .sourced
            .iter()
            .filter_map(|key| state.entries.get(key).map(|hit| (*key, Arc::clone(hit))))
            .collect()
    }

    /// Notes that the sends of this version are indexed; answers whether it still is the one registered.
    ///
    /// # Errors
    /// [`Busy`].
    pub fn indexed(&self, key: Key, version: u64, patience: Patience) -> Result<bool, Busy> {
        self.edit(patience, |edit| {
            let current = edit.state.entries.get(&key).is_some_and(|entry| entry.version == version);
            if current {
                edit.state.pending.remove(&key);
            }
            current
        })
    }

    /// Sourced entries whose sends are not indexed yet, with their versions, in no order.
    #[must_use]
    pub fn pending(&self) -> Vec<(Key, u64)> {
        let state = self.state.load();
        state.pending.iter().filter_map(|key| state.entries.get(key).map(|hit| (*key, hit.version))).collect()
    }

    /// Every key that has an entry, in no order.
    #[must_use]
    pub fn keys(&self) -> Vec<Key> {
        self.state.load().entries.keys().copied().collect()
    }

    /// Marks every sourced entry as still to be indexed: the index was emptied.
    ///
    /// # Errors
    /// [`Busy`].
    pub fn unindexed(&self, patience: Patience) -> Result<(), Busy> {
        self.edit(patience, |edit| edit.state.pending = edit.state.sourced.clone())
    }

    /// Keys that more than one owner registered, with all of those owners. Cost: the answer's length.
    #[must_use]
    pub fn conflicts(&self) -> Vec<(Key, Box<[Sym]>)> {
        let state = self.state.load();
        state
            .conflicted
            .iter()
            .filter_map(|key| state.entries.get(key).map(|hit| (*key, hit.owners.clone())))
            .collect()
    }

    /// What the registry holds. Cost: one walk over the entries.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let state = self.state.load();
        let record = size_of::<Extension<F>>() + 3 * size_of::<(Key, usize)>();
        let bytes = state.entries.values().map(|extension| {
            record + size_of_val(&*extension.owners) + extension.source.as_ref().map_or(0, |text| text.len())
        });
        Counts {
            entries: state.entries.len(),
            class_keys: state.by_class.len(),
            owners: state.by_owner.len(),
            conflicts: state.conflicted.len(),
            bytes: bytes.sum(),
            version: state.version,
        }
    }
}

fn with_owner(earlier: &[Sym], owner: Sym) -> Box<[Sym]> {
    match earlier.binary_search(&owner) {
        Ok(_) => earlier.into(),
        Err(place) => {
            let (before, after) = earlier.split_at(place);
            [before, &[owner], after].concat().into()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    fn sym(word: u32) -> Sym {
        Sym::new(word).unwrap()
    }

    fn plain<K: Ord + Copy + std::hash::Hash>(index: &Map<Sym, Set<K>>) -> BTreeMap<Sym, BTreeSet<K>> {
        index.iter().map(|(at, members)| (*at, members.iter().copied().collect())).collect()
    }

    /// Every index against the entries and nothing else: no member too few, none too many, no empty set left behind.
    fn check(registry: &Extensions<()>) {
        let state = registry.state.load();
        let mut by_class: BTreeMap<Sym, BTreeSet<Sym>> = BTreeMap::new();
        let mut by_owner: BTreeMap<Sym, BTreeSet<Key>> = BTreeMap::new();
        let mut places: BTreeMap<*const AtomicU8, u8> = BTreeMap::new();
        for (key, entry) in &state.entries {
            by_class.entry(key.0).or_default().insert(key.1);
            by_owner.entry(entry.owner).or_default().insert(*key);
            *places.entry(registry.present.place(*key)).or_default() += 1;
        }
        assert_eq!(plain(&state.by_class), by_class);
        assert_eq!(plain(&state.by_owner), by_owner);
        let keys = |wanted: fn(&Extension<()>) -> bool| -> BTreeSet<Key> {
            let entries = state.entries.iter().filter(|(_, entry)| wanted(entry));
            entries.map(|(key, _)| *key).collect()
        };
        assert_eq!(
            state.sourced.iter().copied().collect::<BTreeSet<_>>(),
            keys(|entry| entry.source.is_some())
        );
        assert_eq!(
            state.conflicted.iter().copied().collect::<BTreeSet<_>>(),
            keys(|entry| entry.owners.len() > 1)
        );
        assert!(state.pending.iter().all(|key| state.sourced.contains(key)));
        for (place, count) in &places {
            let counted = registry.present.0.iter().find(|counted| std::ptr::eq(*counted, *place)).unwrap();
            assert_eq!(counted.load(Ordering::Relaxed), *count);
        }
        let counted: usize =
            registry.present.0.iter().map(|place| usize::from(place.load(Ordering::Relaxed))).sum();
        assert_eq!(counted, state.entries.len(), "a place counts keys that are gone");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn indexes_are_what_the_entries_say(
            history in prop::collection::vec((0..12u8, 1..4u32, 1..4u32, 1..4u32, any::<bool>()), 1..24)
        ) {
            let registry = Extensions::default();
            for (kind, class, selector, owner, sourced) in history {
                let key = (sym(class), sym(selector));
                match kind {
                    0..6 => {
                        let source = sourced.then(|| b"text".as_slice().into());
                        registry.register(key, (), sym(owner), source, Patience::Wait).unwrap();
                    }
                    6..9 => drop(registry.unregister(key, Patience::Wait)),
                    9 => drop(registry.purge_class(sym(class), Patience::Wait)),
                    10 => {
                        let version = registry.lookup(key).map_or(0, |hit| hit.version);
                        registry.indexed(key, version, Patience::Wait).unwrap();
                    }
                    _ if sourced => registry.unindexed(Patience::Wait).unwrap(),
                    _ => drop(registry.clear()),
                }
                check(&registry);
            }
        }
    }

    /// A place that was ever full can no longer be counted: it must go on saying that something may be there.
    #[test]
    fn a_place_that_overflowed_never_claims_to_be_empty() {
        let present = Presence::default();
        let key = (sym(1), sym(2));
        (0..300).for_each(|_| present.entered(key));
        (0..299).for_each(|_| present.left(key));
        assert!(present.may_have(key));
        present.clear();
        assert!(!present.may_have(key));
        (0..200).for_each(|_| present.entered(key));
        (0..200).for_each(|_| present.left(key));
        assert!(!present.may_have(key));
    }
}
