//! The protocol registry: what protocols require and provide, who uses them (ADR 0127 §8), and which conformance
//! answers may still be served.
//!
//! A definition is handed back as it was registered; the registry reads only its names. Answers are remembered under a
//! stamp that rises with every change: an answer whose computation began under an earlier stamp is never served.

use std::collections::HashSet;
use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use crate::patience::{Busy, Patience};
use crate::sym::{Map, Set, Sym, SymHash};
use crate::xref;

/// The names in a definition, in declaration order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Instance-side selectors that a conforming class must understand.
    pub required: Vec<Sym>,
    /// Class-side selectors that it must define, itself or through an ancestor.
    pub required_class: Vec<Sym>,
    /// Selectors that the protocol provides to its users.
    pub provided: Vec<Sym>,
    /// The protocol whose members this one inherits.
    pub extending: Option<Sym>,
    /// The module that registered it; without one it cannot be unregistered by module.
    pub module: Option<Sym>,
}

/// One use of a protocol by a class, with the hash of the protocol's text that it was compiled with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    /// The protocol.
    pub protocol: Sym,
    /// Opaque to the registry; `None` if the host keeps none.
    pub hash: Option<Box<[u8]>>,
}

/// What a class must have to conform: required and provided selectors, parents' included, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requirements {
    /// On the instance side.
    pub instance: Vec<Sym>,
    /// On the class side.
    pub class_side: Vec<Sym>,
}

/// What is known about a conformance question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conformance {
    /// The answer.
    Known(bool),
    /// Somebody must find out. The answer may be remembered under this stamp, which must have been read before any
    /// of the facts that the answer rests on.
    Open(u64),
}

/// What a protocol asks for, looked up in one state of the registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// There is no such protocol, so nothing conforms to it.
    Unregistered,
    /// More than the caller would look at now.
    TooMany,
    /// These selectors.
    For(Requirements),
}

/// How much the registry holds.
#[derive(Debug, PartialEq, Eq, Clone, Copy, Default)]
pub struct Counts {
    /// Protocols.
    pub protocols: usize,
    /// Classes that use at least one.
    pub users: usize,
    /// Conformance answers remembered.
    pub answers: usize,
    /// Bytes of names and indexes; what definitions weigh is the caller's to know.
    pub bytes: usize,
    /// The stamp that answers are remembered under now.
    pub version: u64,
}

struct Definition<P> {
    payload: P,
    names: Names,
}

struct ClassUses {
    module: Option<Sym>,
    uses: Box<[Use]>,
}

struct State<P> {
    protocols: Map<Sym, Arc<Definition<P>>>,
    by_module: Map<Sym, Set<Sym>>,
    uses: Map<Sym, Arc<ClassUses>>,
    users: Map<Sym, Set<Sym>>,
    users_by_module: Map<Sym, Set<Sym>>,
}

impl<P> Clone for State<P> {
    fn clone(&self) -> Self {
        Self {
            protocols: self.protocols.clone(),
            by_module: self.by_module.clone(),
            uses: self.uses.clone(),
            users: self.users.clone(),
            users_by_module: self.users_by_module.clone(),
        }
    }
}

impl<P> Default for State<P> {
    fn default() -> Self {
        Self {
            protocols: Map::with_hasher(SymHash),
            by_module: Map::with_hasher(SymHash),
            uses: Map::with_hasher(SymHash),
            users: Map::with_hasher(SymHash),
            users_by_module: Map::with_hasher(SymHash),
        }
    }
}

impl<P> State<P> {
    /// The one place where a definition changes, with the index by module.
    fn define(&mut self, name: Sym, next: Option<Arc<Definition<P>>>) {
        let module = next.as_ref().and_then(|definition| definition.names.module);
        let old = match next {
            Some(definition) => self.protocols.insert(name, definition),
            None => self.protocols.remove(&name),
        };
        if let Some(earlier) = old.and_then(|definition| definition.names.module) {
            self.by_module.leave(earlier, name);
        }
        if let Some(module) = module {
            self.by_module.join(module, name);
        }
    }

    /// The one place where a class's uses change, in both directions.
    fn restate(&mut self, class: Sym, next: Option<ClassUses>) {
        let next = next.map(Arc::new);
        let old = match &next {
            Some(uses) => self.uses.insert(class, Arc::clone(uses)),
            None => self.uses.remove(&class),
        };
        if let Some(old) = old {
            old.uses.iter().for_each(|used| self.users.leave(used.protocol, class));
            old.module.into_iter().for_each(|module| self.users_by_module.leave(module, class));
        }
        if let Some(next) = next {
            next.uses.iter().for_each(|used| self.users.join(used.protocol, class));
            next.module.into_iter().for_each(|module| self.users_by_module.join(module, class));
        }
    }

    /// The protocol and its ancestors, nearest first, each once: a cycle ends where it closes.
    fn lineage(&self, name: Sym) -> Vec<&Names> {
        let mut visited = HashSet::new();
        let mut lineage = vec![];
        let mut next = Some(name);
        while let Some(name) = next
            && visited.insert(name)
            && let Some(definition) = self.protocols.get(&name)
        {
            lineage.push(&definition.names);
            next = definition.names.extending;
        }
        lineage
    }

    /// A member list of the protocol: its own in declaration order, then inherited ones that it does not restate.
    fn members(&self, name: Sym, of: impl Fn(&Names) -> &[Sym]) -> Vec<Sym> {
        let mut members = vec![];
        let mut restated = HashSet::new();
        for names in self.lineage(name) {
            // What one protocol states twice stays twice, as it was declared.
            members.extend(of(names).iter().filter(|member| !restated.contains(*member)).copied());
            restated.extend(of(names).iter().copied());
        }
        members
    }

    /// How many selectors a class must have at most.
    fn demands(&self, name: Sym) -> usize {
        let lineage = self.lineage(name).into_iter();
        lineage.map(|names| names.required.len() + names.required_class.len() + names.provided.len()).sum()
    }

    fn requirements(&self, name: Sym) -> Requirements {
        let mut instance = self.members(name, |names| &names.required);
        instance.extend(self.members(name, |names| &names.provided));
        let mut class_side = self.members(name, |names| &names.required_class);
        for selectors in [&mut instance, &mut class_side] {
            selectors.sort_unstable();
            selectors.dedup();
        }
        Requirements { instance, class_side }
    }
}

/// Sets of names by name, which vanish when they are empty.
trait Membership {
    fn join(&mut self, at: Sym, member: Sym);
    fn leave(&mut self, at: Sym, member: Sym);
}

impl Membership for Map<Sym, Set<Sym>> {
    fn join(&mut self, at: Sym, member: Sym) {
        self.entry(at).or_insert_with(|| Set::with_hasher(SymHash)).insert(member);
    }

    fn leave(&mut self, at: Sym, member: Sym) {
        let emptied = self.get_mut(&at).is_some_and(|members| {
            members.remove(&member);
            members.is_empty()
        });
        if emptied {
            self.remove(&at);
        }
    }
}

#[derive(Clone)]
struct Remembered {
    stamp: u64,
    answers: Map<(Sym, Sym), bool>,
}

impl Remembered {
    fn nothing(stamp: u64) -> Self {
        Self { stamp, answers: Map::with_hasher(SymHash) }
    }
}

/// Answers that are no longer served.
pub struct Forgotten(Arc<Remembered>);

impl Forgotten {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.answers.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.answers.is_empty()
    }
}

/// The protocol registry. `P` is a definition as its owner keeps it; the core only hands it back.
pub struct Protocols<P> {
    state: ArcSwap<State<P>>,
    remembered: ArcSwap<Remembered>,
    writer: Mutex<()>,
}

impl<P> Default for Protocols<P> {
    fn default() -> Self {
        Self {
            state: ArcSwap::from_pointee(State::default()),
            remembered: ArcSwap::from_pointee(Remembered::nothing(0)),
            writer: Mutex::new(()),
        }
    }
}

impl<P> Protocols<P> {
    /// Changes the state, then forgets every answer. Both are done when this returns.
    fn edit<R>(&self, change: impl FnOnce(&mut State<P>) -> R) -> R {
        let (answer, superseded, forgotten) = {
            let _one_writer = self.writer.lock();
            let mut next = State::clone(&self.state.load());
            let answer = change(&mut next);
            (answer, self.state.swap(Arc::new(next)), self.forget_answers())
        };
        drop((superseded, forgotten));
        answer
    }

    /// To be called with the writer's lock held, so that stamps rise one by one.
    fn forget_answers(&self) -> Arc<Remembered> {
        let next = Remembered::nothing(self.remembered.load().stamp + 1);
        self.remembered.swap(Arc::new(next))
    }

    /// Registers a definition, replacing one of that name.
    pub fn register(&self, name: Sym, payload: P, names: Names) {
        self.edit(|state| state.define(name, Some(Arc::new(Definition { payload, names }))));
    }

    /// Removes the protocols that the module registered, and the uses of classes that it defines. Answers the
    /// protocols' names. Answers about conformance are forgotten in any case.
    pub fn unregister_module(&self, module: Sym) -> Vec<Sym> {
        self.edit(|state| {
            let protocols: Vec<Sym> = state.by_module.get(&module).into_iter().flatten().copied().collect();
            protocols.iter().for_each(|name| state.define(*name, None));
            let classes: Vec<Sym> =
                state.users_by_module.get(&module).into_iter().flatten().copied().collect();
            classes.iter().for_each(|class| state.restate(*class, None));
            tracing::debug!(protocols = protocols.len(), users = classes.len(), "module unregistered");
            protocols
        })
    }

    /// Replaces the list of protocols that a class uses, in declaration order. An empty list is none.
    pub fn register_uses(&self, class: Sym, module: Option<Sym>, uses: Vec<Use>) {
        let next = (!uses.is_empty()).then(|| ClassUses { module, uses: uses.into() });
        self.edit(|state| state.restate(class, next));
    }

    /// Forgets every conformance answer, those being computed included.
    pub fn invalidate(&self) {
        let forgotten = {
            let _one_writer = self.writer.lock();
            self.forget_answers()
        };
        drop(forgotten);
    }

    /// As [`Protocols::invalidate`], for threads that must not block. What is answered holds the answers; many are
    /// better dropped elsewhere.
    ///
    /// # Errors
    /// [`Busy`].
    pub fn try_invalidate(&self) -> Result<Forgotten, Busy> {
        let _one_writer = Patience::Refuse.lock(&self.writer)?;
        Ok(Forgotten(self.forget_answers()))
    }

    /// Empties the registry. What is answered holds the old definitions; drop it where a long drop does no harm.
    pub fn clear(&self) -> impl Send + use<P>
    where
        P: Send + Sync,
    {
        let _one_writer = self.writer.lock();
        let superseded = self.state.swap(Arc::new(State::default()));
        (superseded, self.forget_answers())
    }

    /// Calls `found` with the definition of that name.
    pub fn with<R>(&self, name: Sym, found: impl FnOnce(&P) -> R) -> Option<R> {
        self.state.load().protocols.get(&name).map(|definition| found(&definition.payload))
    }

    /// Whether a protocol of that name is registered.
    #[must_use]
    pub fn contains(&self, name: Sym) -> bool {
        self.state.load().protocols.contains_key(&name)
    }

    /// All names, in no order.
    #[must_use]
    pub fn names(&self) -> Vec<Sym> {
        self.state.load().protocols.keys().copied().collect()
    }

    /// Required selectors of both sides: own in declaration order, then inherited ones that are not restated.
    #[must_use]
    pub fn required(&self, name: Sym) -> (Vec<Sym>, Vec<Sym>) {
        let state = self.state.load();
        (state.members(name, |names| &names.required), state.members(name, |names| &names.required_class))
    }

    /// Provided selectors: own in declaration order, then inherited ones that are not restated.
    #[must_use]
    pub fn provided(&self, name: Sym) -> Vec<Sym> {
        self.state.load().members(name, |names| &names.provided)
    }

    /// The protocols that a class uses, in declaration order.
    #[must_use]
    pub fn uses(&self, class: Sym) -> Vec<Use> {
        self.state.load().uses.get(&class).map_or_else(Vec::new, |class| class.uses.to_vec())
    }

    /// The classes that name the protocol in a use, in no order. Cost: the answer's length.
    #[must_use]
    pub fn users(&self, name: Sym) -> Vec<Sym> {
        self.state.load().users.get(&name).into_iter().flatten().copied().collect()
    }

    /// What is known about whether a class conforms: nothing unregistered is conformed to, and anything conforms to a
    /// protocol that asks for nothing.
    #[must_use]
    pub fn conformance(&self, class: Sym, name: Sym) -> Conformance {
        // The stamp is read before the definitions: a change in between makes it stale, never the answer.
        let remembered = self.remembered.load();
        if let Some(answer) = remembered.answers.get(&(class, name)) {
            return Conformance::Known(*answer);
        }
        let stamp = remembered.stamp;
        let state = self.state.load();
        if !state.protocols.contains_key(&name) {
            return Conformance::Known(false);
        }
        if state.demands(name) == 0 { Conformance::Known(true) } else { Conformance::Open(stamp) }
    }

    /// What a class must have to conform, if that is at most `limit` selectors.
    #[must_use]
    pub fn requirements(&self, name: Sym, limit: usize) -> Asked {
        let state = self.state.load();
        if !state.protocols.contains_key(&name) {
            Asked::Unregistered
        } else if state.demands(name) > limit {
            Asked::TooMany
        } else {
            Asked::For(state.requirements(name))
        }
    }

    /// Remembers an answer, unless something changed since its computation began; answers whether it did.
    pub fn remember(&self, class: Sym, name: Sym, stamp: u64, answer: bool) -> bool {
        self.remember_with(Patience::Wait, class, name, stamp, answer).unwrap_or(false)
    }

    /// As [`Protocols::remember`], for threads that must not block.
    ///
    /// # Errors
    /// [`Busy`].
    pub fn try_remember(&self, class: Sym, name: Sym, stamp: u64, answer: bool) -> Result<bool, Busy> {
        self.remember_with(Patience::Refuse, class, name, stamp, answer)
    }

    fn remember_with(
        &self,
        patience: Patience,
        class: Sym,
        name: Sym,
        stamp: u64,
        answer: bool,
    ) -> Result<bool, Busy> {
        let superseded = {
            let _one_writer = patience.lock(&self.writer)?;
            let now = self.remembered.load();
            if now.stamp != stamp {
                return Ok(false);
            }
            let mut next = Remembered::clone(&now);
            next.answers.insert((class, name), answer);
            self.remembered.swap(Arc::new(next))
        };
        drop(superseded);
        Ok(true)
    }

    /// What the registry holds. Cost: one walk over it.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let state = self.state.load();
        let remembered = self.remembered.load();
        let word = size_of::<Sym>();
        let definitions = state.protocols.values().map(|definition| {
            let names = &definition.names;
            size_of::<Definition<P>>()
                + (names.required.capacity() + names.required_class.capacity() + names.provided.capacity())
                    * word
        });
        let uses = state
            .uses
            .values()
            .flat_map(|class| class.uses.iter())
            .map(|used| size_of::<Use>() + used.hash.as_ref().map_or(0, |hash| hash.len()) + 2 * word);
        Counts {
            protocols: state.protocols.len(),
            users: state.uses.len(),
            answers: remembered.answers.len(),
            bytes: definitions.sum::<usize>()
                + uses.sum::<usize>()
                + remembered.answers.len() * size_of::<((Sym, Sym), bool)>(),
            version: remembered.stamp,
        }
    }
}

/// Takes off the requirements what the index shows one of the classes to define, and answers what is left for the host
/// to say. `chain` is the class and its ancestors, as far as they are running. Extensions do not count here.
#[must_use]
pub fn missing_from_index(index: &xref::View, chain: &[Sym], requirements: Requirements) -> Requirements {
    let defined = |selector: &Sym, side| chain.iter().any(|class| index.defines((*class, side, *selector)));
    let Requirements { mut instance, mut class_side } = requirements;
    instance.retain(|selector| !defined(selector, false));
    class_side.retain(|selector| !defined(selector, true));
    Requirements { instance, class_side }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    fn sym(word: u32) -> Sym {
        Sym::new(word).unwrap()
    }

    type Index = BTreeMap<Sym, BTreeSet<Sym>>;

    fn plain(index: &Map<Sym, Set<Sym>>) -> Index {
        index.iter().map(|(at, members)| (*at, members.iter().copied().collect())).collect()
    }

    /// Every index against the tables and nothing else.
    fn check(registry: &Protocols<()>) {
        let state = registry.state.load();
        let (mut by_module, mut users, mut users_by_module) = (Index::new(), Index::new(), Index::new());
        for (name, definition) in &state.protocols {
            if let Some(module) = definition.names.module {
                by_module.entry(module).or_default().insert(*name);
            }
        }
        for (class, uses) in &state.uses {
            assert!(!uses.uses.is_empty(), "a class that uses nothing is kept");
            for used in &uses.uses {
                users.entry(used.protocol).or_default().insert(*class);
            }
            if let Some(module) = uses.module {
                users_by_module.entry(module).or_default().insert(*class);
            }
        }
        assert_eq!(plain(&state.by_module), by_module);
        assert_eq!(plain(&state.users), users);
        assert_eq!(plain(&state.users_by_module), users_by_module);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn indexes_are_what_the_tables_say(
            history in prop::collection::vec((0..10u8, 1..4u32, prop::option::of(1..4u32), prop::collection::vec(1..4u32, 0..4)), 1..32)
        ) {
            let registry = Protocols::default();
            for (kind, name, module, used) in history {
                let module = module.map(sym);
                match kind {
                    0..4 => registry.register(sym(name), (), Names { module, ..Names::default() }),
                    4..8 => {
                        let uses = used.into_iter().map(|protocol| Use { protocol: sym(protocol), hash: None });
                        registry.register_uses(sym(10 + name), module, uses.collect());
                    }
                    8 => drop(registry.unregister_module(module.unwrap_or(sym(9)))),
                    _ if used.len() == 3 => drop(registry.clear()),
                    _ => registry.invalidate(),
                }
                check(&registry);
            }
        }
    }
}
