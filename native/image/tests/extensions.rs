//! The extension registry against a naive model under random histories, and against registries with seeded
//! faults, each of which the same comparison must catch.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod model;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::BuildHasher;
use std::sync::LazyLock;

use beamtalk_image::extensions::{Extension, Extensions, Key};
use beamtalk_image::sym::SymHash;
use beamtalk_image::{Patience, Sym};
use model::{config, same, sorted, survivors, sym};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

const LONGEST_HISTORY: usize = 48;

const CLASSES: u32 = 3;
const OWNERS: std::ops::Range<u32> = 300..303;
/// Tags stand this far from the names that they belong to.
const TAG: u32 = 50;

/// Two selectors at random, and some that share a place in the registry's presence counts with another one of
/// class 1.
fn selectors() -> impl Iterator<Item = Sym> + Clone {
    static SELECTORS: LazyLock<Vec<Sym>> = LazyLock::new(|| {
        let place = |selector: u32| SymHash.hash_one((sym(1), sym(selector))) % (1 << 17);
        let shared = (1_000..2_000_000).filter(|selector| place(*selector) == place(200)).take(3);
        [200, 201].into_iter().chain(shared).map(sym).collect()
    });
    SELECTORS.iter().copied()
}

/// Names and tags.
fn class_keys() -> Vec<Sym> {
    (1..=CLASSES).chain(TAG + 1..=TAG + CLASSES).map(sym).collect()
}

fn other_side(class_key: Sym) -> Sym {
    let word = class_key.word();
    sym(if word > TAG { word - TAG } else { word + TAG })
}

fn chains() -> Vec<Vec<Sym>> {
    vec![vec![sym(1), sym(2), sym(3)], vec![sym(3), sym(1)], vec![sym(TAG + 2), sym(TAG + 1), sym(2)], vec![]]
}

#[derive(Clone, Debug)]
enum Op {
    Register {
        key: Key,
        owner: Sym,
        source: Option<u8>,
    },
    Unregister(Key),
    Purge(Sym),
    Clear,
    /// The sends of an entry are read out of its text: of the one registered now, or of an earlier one.
    Indexed {
        key: Key,
        late: bool,
    },
    /// The index was emptied.
    Unindexed,
}

fn key() -> impl Strategy<Value = Key> {
    let any = (prop::sample::select(class_keys()), prop::sample::select(selectors().collect::<Vec<_>>()));
    // One key comes up often, or its owners would seldom meet.
    prop_oneof![1 => Just((sym(1), sym(200))), 3 => any]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        12 => (key(), OWNERS, prop::option::of(0..3u8))
            .prop_map(|(key, owner, source)| Op::Register { key, owner: sym(owner), source }),
        5 => key().prop_map(Op::Unregister),
        2 => prop::sample::select(class_keys()).prop_map(Op::Purge),
        1 => Just(Op::Clear),
        4 => (key(), prop::bool::weighted(0.3)).prop_map(|(key, late)| Op::Indexed { key, late }),
        1 => Just(Op::Unindexed),
    ]
}

fn history() -> impl Strategy<Value = Vec<Op>> {
    prop::collection::vec(op(), 1..LONGEST_HISTORY)
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Row {
    fun: u32,
    owner: Sym,
    source: Option<Vec<u8>>,
    version: u64,
    owners: Vec<Sym>,
}

/// Everything that the registry answers, in an order that can be compared.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Seen {
    entries: BTreeMap<Key, Row>,
    has: BTreeSet<Key>,
    first_of_chain: BTreeMap<(usize, Sym), (Sym, u32)>,
    by_class: BTreeMap<Sym, Vec<(Sym, Sym)>>,
    by_owner: BTreeMap<Sym, Vec<Key>>,
    sourced: Vec<(Key, Vec<u8>, u32)>,
    pending: Vec<(Key, u64)>,
    conflicts: Vec<(Key, Vec<Sym>)>,
    counts: [usize; 4],
    version: u64,
}

impl Seen {
    /// The same answers, computed from the forward table alone.
    fn derived(entries: BTreeMap<Key, Row>, indexed: &BTreeSet<u64>, version: u64) -> Self {
        let mut seen = Self { has: entries.keys().copied().collect(), version, ..Self::default() };
        let waiting =
            entries.iter().filter(|(_, row)| row.source.is_some() && !indexed.contains(&row.version));
        seen.pending = waiting.map(|(key, row)| (*key, row.version)).collect();
        for (&(class_key, selector), row) in &entries {
            seen.by_class.entry(class_key).or_default().push((selector, row.owner));
            seen.by_owner.entry(row.owner).or_default().push((class_key, selector));
            if let Some(source) = &row.source {
                seen.sourced.push(((class_key, selector), source.clone(), row.fun));
            }
            if row.owners.len() > 1 {
                seen.conflicts.push(((class_key, selector), row.owners.clone()));
            }
        }
        for (index, chain) in chains().iter().enumerate() {
            for selector in selectors() {
                let hit =
                    chain.iter().find_map(|class| entries.get(&(*class, selector)).map(|row| (*class, row)));
                if let Some((class, row)) = hit {
                    seen.first_of_chain.insert((index, selector), (class, row.fun));
                }
            }
        }
        seen.counts = [entries.len(), seen.by_class.len(), seen.by_owner.len(), seen.conflicts.len()];
        seen.entries = entries;
        seen
    }
}

trait Registry {
    /// The version given and the owner replaced.
    fn register(&self, key: Key, fun: u32, owner: Sym, source: Option<&[u8]>) -> (u64, Option<Sym>);
    fn unregister(&self, key: Key) -> bool;
    fn purge(&self, class_key: Sym) -> Vec<Sym>;
    fn clear(&self);
    /// Whether the version still is the one registered.
    fn indexed(&self, key: Key, version: u64) -> bool;
    fn unindexed(&self);
    fn observe(&self) -> Seen;
}

fn row(hit: &Extension<u32>) -> Row {
    Row {
        fun: hit.fun,
        owner: hit.owner,
        source: hit.source.as_deref().map(<[u8]>::to_vec),
        version: hit.version,
        owners: hit.owners.to_vec(),
    }
}

impl Registry for Extensions<u32> {
    fn register(&self, key: Key, fun: u32, owner: Sym, source: Option<&[u8]>) -> (u64, Option<Sym>) {
        let registered = self.register(key, fun, owner, source.map(Into::into), Patience::Refuse).unwrap();
        (registered.version, registered.replaced_owner)
    }

    fn unregister(&self, key: Key) -> bool {
        self.unregister(key, Patience::Refuse).unwrap().is_some()
    }

    fn purge(&self, class_key: Sym) -> Vec<Sym> {
        sorted(self.purge_class(class_key, Patience::Wait).unwrap())
    }

    fn clear(&self) {
        drop(self.clear());
    }

    fn indexed(&self, key: Key, version: u64) -> bool {
        self.indexed(key, version, Patience::Refuse).unwrap()
    }

    fn unindexed(&self) {
        self.unindexed(Patience::Wait).unwrap();
    }

    fn observe(&self) -> Seen {
        let mut seen = Seen::default();
        for class_key in class_keys() {
            for selector in selectors() {
                let key = (class_key, selector);
                if self.has(key) {
                    seen.has.insert(key);
                }
                let looked_up = self.lookup(key).map(|hit| row(&hit));
                assert_eq!(self.with(key, row), looked_up, "the two look-ups of {key:?} differ");
                if let Some(row) = looked_up {
                    seen.entries.insert(key, row);
                }
            }
            let list = self.list(class_key, usize::MAX).unwrap();
            assert_eq!(self.list(class_key, list.len()).map(sorted), Some(sorted(list.clone())));
            if !list.is_empty() {
                assert_eq!(self.list(class_key, list.len() - 1), None, "a list longer than its limit");
                seen.by_class.insert(class_key, sorted(list));
            }
        }
        for owner in OWNERS.map(sym) {
            let keys = self.by_owner(owner, usize::MAX).unwrap();
            if !keys.is_empty() {
                assert_eq!(self.by_owner(owner, keys.len() - 1), None, "a list longer than its limit");
                seen.by_owner.insert(owner, sorted(keys));
            }
        }
        for (index, chain) in chains().into_iter().enumerate() {
            for selector in selectors() {
                if let Some(hit) = self.with_first(chain.clone(), selector, |class, hit| (class, hit.fun)) {
                    seen.first_of_chain.insert((index, selector), hit);
                }
            }
        }
        let sourced = self.sourced().into_iter();
        seen.sourced =
            sorted(sourced.map(|(key, hit)| (key, hit.source.as_deref().unwrap().to_vec(), hit.fun)));
        seen.pending = sorted(self.pending());
        assert_eq!(sorted(self.keys()), seen.entries.keys().copied().collect::<Vec<_>>());
        seen.conflicts = sorted(self.conflicts().into_iter().map(|(key, owners)| (key, owners.into_vec())));
        let counts = self.counts();
        seen.counts = [counts.entries, counts.class_keys, counts.owners, counts.conflicts];
        seen.version = counts.version;
        seen
    }
}

/// What the registry should be: one plain table.
#[derive(Default)]
struct Model {
    entries: BTreeMap<Key, Row>,
    /// Versions whose sends are indexed.
    indexed: BTreeSet<u64>,
    version: u64,
}

/// Runs a history on a registry and on the model; the first difference is the error.
fn agrees(registry: &dyn Registry, history: &[Op]) -> Result<(), TestCaseError> {
    let mut model = Model::default();
    for (step, op) in history.iter().enumerate() {
        match op.clone() {
            Op::Register { key, owner, source } => {
                let fun = u32::try_from(step).unwrap();
                let source = source.map(|length| vec![b'x'; usize::from(length)]);
                let (version, replaced) = registry.register(key, fun, owner, source.as_deref());
                prop_assert!(version > model.version, "step {step}: version {version} is used again");
                model.version = version;
                let earlier = model.entries.get(&key);
                prop_assert_eq!(
                    replaced,
                    earlier.map(|row| row.owner).filter(|earlier| *earlier != owner),
                    "step {}: the owner reported as replaced",
                    step
                );
                let mut owners: BTreeSet<Sym> =
                    earlier.into_iter().flat_map(|row| row.owners.clone()).collect();
                owners.insert(owner);
                let owners = owners.into_iter().collect();
                model.entries.insert(key, Row { fun, owner, source, version, owners });
            }
            Op::Unregister(key) => {
                let removed = model.entries.remove(&key).is_some();
                prop_assert_eq!(registry.unregister(key), removed, "step {}: {:?}", step, key);
            }
            Op::Purge(class_key) => {
                let gone = sorted(model.entries.keys().filter(|key| key.0 == class_key).map(|key| key.1));
                prop_assert_eq!(registry.purge(class_key), gone, "step {}: {:?}", step, class_key);
                model.entries.retain(|key, _| key.0 != class_key);
            }
            Op::Indexed { key, late } => {
                let current = model.entries.get(&key).map(|row| row.version);
                let version =
                    if late { current.unwrap_or(1).saturating_sub(1) } else { current.unwrap_or(1) };
                let taken = current == Some(version);
                prop_assert_eq!(registry.indexed(key, version), taken, "step {}: {:?}", step, key);
                if taken {
                    model.indexed.insert(version);
                }
            }
            Op::Unindexed => {
                registry.unindexed();
                model.indexed.clear();
            }
            Op::Clear => {
                registry.clear();
                model.entries.clear();
            }
        }
        let seen = registry.observe();
        let done = seen.entries.values().map(|row| row.version);
        let done =
            done.filter(|version| !seen.pending.iter().any(|(_, waiting)| waiting == version)).collect();
        let recomputed = Seen::derived(seen.entries.clone(), &done, seen.version);
        same(&seen, &recomputed, || format!("step {step}, {op:?}: an index against its table"))?;
        let expected = Seen::derived(model.entries.clone(), &model.indexed, model.version);
        same(&seen, &expected, || format!("step {step}, {op:?}: the registry against the model"))?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn random_histories_leave_what_the_model_says(history in history()) {
        agrees(&Extensions::<u32>::default(), &history)?;
    }

    /// A record that a reader holds is the record as it was, whatever is written meanwhile.
    #[test]
    fn a_record_once_loaded_never_changes(before in history(), after in history()) {
        let registry = Extensions::default();
        agrees(&registry, &before)?;
        let held: Vec<_> = class_keys()
            .into_iter()
            .flat_map(|class_key| selectors().map(move |selector| (class_key, selector)))
            .filter_map(|key| registry.lookup(key))
            .collect();
        let copies: Vec<String> = held.iter().map(|record| format!("{record:?}")).collect();
        Registry::clear(&registry);
        for op in &after {
            if let Op::Register { key, owner, .. } = *op {
                Registry::register(&registry, key, 99, owner, None);
            }
        }
        let now: Vec<String> = held.iter().map(|record| format!("{record:?}")).collect();
        prop_assert_eq!(copies, now);
    }
}

/// All levels of a chain come from one version: a move from an upper to a lower level in mid-walk hides
/// nothing.
#[test]
fn an_entry_that_moves_during_a_chain_look_up_is_still_found() {
    let registry = Extensions::default();
    let (upper, lower, selector) = (sym(1), sym(2), sym(200));
    Registry::register(&registry, (lower, selector), 7, sym(300), None);
    let levels = [upper, lower].into_iter().inspect(|level| {
        if *level == lower {
            Registry::register(&registry, (upper, selector), 8, sym(300), None);
            Registry::unregister(&registry, (lower, selector));
        }
    });
    assert_eq!(registry.with_first(levels, selector, |level, hit| (level, hit.fun)), Some((lower, 7)));
    assert_eq!(
        registry.with_first([upper, lower], selector, |level, hit| (level, hit.fun)),
        Some((upper, 8))
    );
}

/// One entry under another must not be confused with it, whatever the words of their names are.
#[test]
fn keys_whose_words_are_swapped_stay_apart() {
    let registry = Extensions::default();
    Registry::register(&registry, (sym(7), sym(9)), 1, sym(300), None);
    Registry::register(&registry, (sym(9), sym(7)), 2, sym(300), None);
    assert_eq!(registry.lookup((sym(7), sym(9))).map(|hit| hit.fun), Some(1));
    assert_eq!(registry.lookup((sym(9), sym(7))).map(|hit| hit.fun), Some(2));
    assert!(Registry::unregister(&registry, (sym(7), sym(9))));
    assert_eq!(registry.lookup((sym(9), sym(7))).map(|hit| hit.fun), Some(2));
}

/// Faults seeded around the real registry.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// A tag and its name are one key.
    ForgetsTheClassSide,
    /// Removal takes the other side along.
    RemovesBothSides,
    /// A look-up on the class side falls back to the instance side.
    LooksOnTheOtherSide,
    /// A registration without a source leaves the earlier text.
    KeepsTheEarlierSource,
    /// The text of an entry outlives it in the list of sources.
    ListsSourcesOfTheDead,
    /// The index by owner is not told that another owner took a key.
    KeepsTheEarlierOwnersPosting,
    /// The index by owner is told only about new keys.
    MissesTheNewOwnersPosting,
    /// The index by class key keeps what was removed.
    ListsTheDead,
    /// Removing one selector loses the conflict history of its siblings.
    LosesSiblingsConflicts,
    /// Conflicts outlive the entry.
    RemembersOwnersOfTheDead,
    /// Only the last two owners are remembered.
    RemembersTwoOwners,
    /// A reload by the winner clears the history of the key.
    ForgetsOnReload,
    /// Purging a class stops at the first selector.
    PurgesOneSelector,
    /// Purging a class takes all of its owners' other entries as well.
    PurgesTheOwner,
    /// Clearing starts the versions anew.
    ReusesVersions,
    /// The replaced owner is reported even if it is the same.
    ReportsTheSameOwner,
    /// The first registration wins.
    FirstWins,
    /// A late answer about an earlier version counts for the one registered now.
    TakesLateAnswers,
    /// Sends that were indexed once are never indexed again.
    IndexesOnce,
}

const FAULTS: [Fault; 19] = [
    Fault::ForgetsTheClassSide,
    Fault::RemovesBothSides,
    Fault::LooksOnTheOtherSide,
    Fault::KeepsTheEarlierSource,
    Fault::ListsSourcesOfTheDead,
    Fault::KeepsTheEarlierOwnersPosting,
    Fault::MissesTheNewOwnersPosting,
    Fault::ListsTheDead,
    Fault::LosesSiblingsConflicts,
    Fault::RemembersOwnersOfTheDead,
    Fault::RemembersTwoOwners,
    Fault::ForgetsOnReload,
    Fault::PurgesOneSelector,
    Fault::PurgesTheOwner,
    Fault::ReusesVersions,
    Fault::ReportsTheSameOwner,
    Fault::FirstWins,
    Fault::TakesLateAnswers,
    Fault::IndexesOnce,
];

struct Faulty {
    fault: Fault,
    real: RefCell<Extensions<u32>>,
    stale_keys: RefCell<BTreeMap<Sym, BTreeSet<Key>>>,
    stale_sources: RefCell<BTreeMap<Key, (Vec<u8>, u32)>>,
    dead_owners: RefCell<BTreeMap<Key, Vec<Sym>>>,
    dead_selectors: RefCell<BTreeSet<(Sym, Sym, Sym)>>,
}

impl Faulty {
    fn new(fault: Fault) -> Self {
        Self {
            fault,
            real: RefCell::default(),
            stale_keys: RefCell::default(),
            stale_sources: RefCell::default(),
            dead_owners: RefCell::default(),
            dead_selectors: RefCell::default(),
        }
    }

    fn real(&self) -> std::cell::Ref<'_, Extensions<u32>> {
        self.real.borrow()
    }

    fn row(&self, key: Key) -> Option<Row> {
        self.real().lookup(key).map(|hit| row(&hit))
    }

    fn again(&self, key: Key, fun: u32, owner: Sym, source: Option<&[u8]>) -> (u64, Option<Sym>) {
        Registry::register(&*self.real(), key, fun, owner, source)
    }

    fn selectors(&self, class_key: Sym) -> Vec<Sym> {
        sorted(self.real().list(class_key, usize::MAX).unwrap().into_iter().map(|(selector, _)| selector))
    }
}

impl Registry for Faulty {
    fn register(&self, key: Key, fun: u32, owner: Sym, source: Option<&[u8]>) -> (u64, Option<Sym>) {
        let earlier = self.row(key);
        match (self.fault, earlier) {
            (Fault::ForgetsTheClassSide, _) if key.0.word() > TAG => {
                self.again((other_side(key.0), key.1), fun, owner, source)
            }
            (Fault::KeepsTheEarlierSource, Some(earlier)) if source.is_none() => {
                self.again(key, fun, owner, earlier.source.as_deref())
            }
            (Fault::KeepsTheEarlierOwnersPosting, Some(earlier)) if earlier.owner != owner => {
                self.stale_keys.borrow_mut().entry(earlier.owner).or_default().insert(key);
                self.again(key, fun, owner, source)
            }
            (Fault::RemembersOwnersOfTheDead, None) => {
                let dead = self.dead_owners.borrow().get(&key).cloned().unwrap_or_default();
                for before in dead {
                    self.again(key, fun, before, None);
                }
                let (version, _) = self.again(key, fun, owner, source);
                (version, None)
            }
            (Fault::RemembersTwoOwners, Some(earlier))
                if earlier.owners.len() > 1 && earlier.owner != owner =>
            {
                Registry::unregister(&*self.real(), key);
                self.again(key, earlier.fun, earlier.owner, None);
                self.again(key, fun, owner, source)
            }
            (Fault::ForgetsOnReload, Some(earlier)) if earlier.owner == owner => {
                Registry::unregister(&*self.real(), key);
                self.again(key, fun, owner, source)
            }
            (Fault::ReportsTheSameOwner, earlier) => {
                let (version, _) = self.again(key, fun, owner, source);
                (version, earlier.map(|earlier| earlier.owner))
            }
            (Fault::FirstWins, Some(earlier)) if earlier.owner != owner => {
                let (_, replaced) = self.again(key, fun, owner, source);
                let (version, _) = self.again(key, earlier.fun, earlier.owner, earlier.source.as_deref());
                (version, replaced)
            }
            _ => self.again(key, fun, owner, source),
        }
    }

    fn unregister(&self, key: Key) -> bool {
        if let Some(row) = self.row(key) {
            self.dead_owners.borrow_mut().insert(key, row.owners);
            self.dead_selectors.borrow_mut().insert((key.0, key.1, row.owner));
            if let Some(source) = row.source {
                self.stale_sources.borrow_mut().insert(key, (source, row.fun));
            }
        }
        match self.fault {
            Fault::ForgetsTheClassSide if key.0.word() > TAG => {
                Registry::unregister(&*self.real(), (other_side(key.0), key.1))
            }
            Fault::RemovesBothSides => {
                Registry::unregister(&*self.real(), (other_side(key.0), key.1));
                Registry::unregister(&*self.real(), key)
            }
            Fault::LosesSiblingsConflicts => {
                for selector in self.selectors(key.0).into_iter().filter(|selector| *selector != key.1) {
                    let sibling = (key.0, selector);
                    let row = self.row(sibling).unwrap();
                    Registry::unregister(&*self.real(), sibling);
                    self.again(sibling, row.fun, row.owner, row.source.as_deref());
                }
                Registry::unregister(&*self.real(), key)
            }
            _ => Registry::unregister(&*self.real(), key),
        }
    }

    fn purge(&self, class_key: Sym) -> Vec<Sym> {
        let selectors = self.selectors(class_key);
        match self.fault {
            Fault::PurgesOneSelector => {
                selectors.first().map(|first| Registry::unregister(&*self.real(), (class_key, *first)));
                selectors
            }
            Fault::PurgesTheOwner => {
                let owners: BTreeSet<Sym> = selectors
                    .iter()
                    .filter_map(|selector| self.row((class_key, *selector)))
                    .map(|row| row.owner)
                    .collect();
                for owner in owners {
                    for key in self.real().by_owner(owner, usize::MAX).unwrap() {
                        Registry::unregister(&*self.real(), key);
                    }
                }
                selectors
            }
            Fault::RemovesBothSides => {
                Registry::purge(&*self.real(), other_side(class_key));
                Registry::purge(&*self.real(), class_key)
            }
            _ => Registry::purge(&*self.real(), class_key),
        }
    }

    fn clear(&self) {
        if matches!(self.fault, Fault::ReusesVersions) {
            self.real.replace(Extensions::default());
        } else {
            Registry::clear(&*self.real());
        }
    }

    fn indexed(&self, key: Key, version: u64) -> bool {
        match (self.fault, self.row(key)) {
            (Fault::TakesLateAnswers, Some(now)) => Registry::indexed(&*self.real(), key, now.version),
            _ => Registry::indexed(&*self.real(), key, version),
        }
    }

    fn unindexed(&self) {
        if !matches!(self.fault, Fault::IndexesOnce) {
            Registry::unindexed(&*self.real());
        }
    }

    fn observe(&self) -> Seen {
        let mut seen = self.real().observe();
        match self.fault {
            Fault::LooksOnTheOtherSide => {
                for class_key in class_keys().into_iter().filter(|class_key| class_key.word() > TAG) {
                    for selector in selectors() {
                        if let Some(row) = seen.entries.get(&(other_side(class_key), selector)).cloned() {
                            seen.entries.entry((class_key, selector)).or_insert(row);
                        }
                    }
                }
            }
            Fault::ListsSourcesOfTheDead => {
                let stale = self.stale_sources.borrow();
                let dead = stale.iter().filter(|(key, _)| !seen.has.contains(key));
                seen.sourced.extend(dead.map(|(key, (source, fun))| (*key, source.clone(), *fun)));
                seen.sourced.sort_unstable();
            }
            Fault::KeepsTheEarlierOwnersPosting => {
                for (owner, keys) in &*self.stale_keys.borrow() {
                    let of_owner = seen.by_owner.entry(*owner).or_default();
                    *of_owner =
                        sorted(of_owner.drain(..).chain(keys.iter().copied()).collect::<BTreeSet<_>>());
                }
            }
            Fault::MissesTheNewOwnersPosting => {
                for keys in seen.by_owner.values_mut() {
                    keys.retain(|key| seen.entries.get(key).is_some_and(|row| row.owners.len() == 1));
                }
                seen.by_owner.retain(|_, keys| !keys.is_empty());
            }
            Fault::ListsTheDead => {
                for (class_key, selector, owner) in &*self.dead_selectors.borrow() {
                    if !seen.has.contains(&(*class_key, *selector)) {
                        seen.by_class.entry(*class_key).or_default().push((*selector, *owner));
                    }
                }
            }
            _ => {}
        }
        seen
    }
}

/// The comparison that accepts the registry must refuse every faulty one, within the number of cases it
/// usually runs.
#[test]
fn every_seeded_fault_is_caught() {
    let unnoticed = survivors(FAULTS, history, |fault, history| agrees(&Faulty::new(fault), &history));
    assert!(unnoticed.is_empty(), "nobody noticed {unnoticed:?}");
}
