//! The protocol registry against a naive model under random histories, and against registries with seeded
//! faults, each of which the same comparison must catch.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod model;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use beamtalk_image::Sym;
use beamtalk_image::protocols::{Asked, Conformance, Names, Protocols, Requirements, Use};
use model::{config, same, sorted, survivors, sym};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

const LONGEST_HISTORY: usize = 40;

const PROTOCOLS: std::ops::Range<u32> = 1..5;
const CLASSES: std::ops::Range<u32> = 100..103;
const SELECTORS: std::ops::Range<u32> = 200..205;
const MODULES: std::ops::Range<u32> = 300..303;

fn protocols() -> impl Iterator<Item = Sym> {
    PROTOCOLS.map(sym)
}

fn classes() -> impl Iterator<Item = Sym> {
    CLASSES.map(sym)
}

fn pairs() -> impl Iterator<Item = (Sym, Sym)> {
    classes().flat_map(|class| protocols().map(move |protocol| (class, protocol)))
}

#[derive(Clone, Debug)]
enum Op {
    Register(Sym, Names),
    UnregisterModule(Sym),
    RegisterUses(Sym, Option<Sym>, Vec<Use>),
    Invalidate,
    Clear,
    /// Begins to find out whether the class conforms; the answer comes later or never.
    Ask(Sym, Sym),
    /// Hands in an answer for one of the questions asked so far.
    Answer(prop::sample::Index, bool),
}

fn name(words: std::ops::Range<u32>) -> impl Strategy<Value = Sym> {
    words.prop_map(sym)
}

fn names() -> impl Strategy<Value = Names> {
    let list = || prop::collection::vec(name(SELECTORS), 0..3);
    let extending = prop::option::of(name(PROTOCOLS));
    (list(), list(), list(), extending, prop::option::weighted(0.8, name(MODULES))).prop_map(
        |(required, required_class, provided, extending, module)| Names {
            required,
            required_class,
            provided,
            extending,
            module,
        },
    )
}

fn uses() -> impl Strategy<Value = Vec<Use>> {
    let hash = prop::option::of(prop::sample::select(vec![&b"a"[..], &b"b"[..]]));
    let used =
        (name(PROTOCOLS), hash).prop_map(|(protocol, hash)| Use { protocol, hash: hash.map(Into::into) });
    prop::collection::vec(used, 0..4)
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (name(PROTOCOLS), names()).prop_map(|(name, names)| Op::Register(name, names)),
        3 => name(MODULES).prop_map(Op::UnregisterModule),
        5 => (name(CLASSES), prop::option::weighted(0.8, name(MODULES)), uses())
            .prop_map(|(class, module, uses)| Op::RegisterUses(class, module, uses)),
        1 => Just(Op::Invalidate),
        1 => Just(Op::Clear),
        8 => (name(CLASSES), name(PROTOCOLS)).prop_map(|(class, protocol)| Op::Ask(class, protocol)),
        8 => (any::<prop::sample::Index>(), any::<bool>()).prop_map(|(index, answer)| Op::Answer(index, answer)),
    ]
}

fn history() -> impl Strategy<Value = Vec<Op>> {
    prop::collection::vec(op(), 1..LONGEST_HISTORY)
}

/// What a question is answered with; the stamp of an open one is compared apart.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Answer {
    Known(bool),
    Open(Requirements),
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Seen {
    definitions: BTreeMap<Sym, u32>,
    names: Vec<Sym>,
    required: BTreeMap<Sym, (Vec<Sym>, Vec<Sym>)>,
    provided: BTreeMap<Sym, Vec<Sym>>,
    uses: BTreeMap<Sym, Vec<Use>>,
    users: BTreeMap<Sym, Vec<Sym>>,
    conformance: BTreeMap<(Sym, Sym), Answer>,
    /// Protocols, classes that use any, answers remembered.
    counts: [usize; 3],
}

trait Registry {
    fn register(&self, name: Sym, payload: u32, names: Names);
    fn unregister_module(&self, module: Sym) -> Vec<Sym>;
    fn register_uses(&self, class: Sym, module: Option<Sym>, uses: Vec<Use>);
    fn invalidate(&self);
    fn clear(&self);
    fn conformance(&self, class: Sym, name: Sym) -> Conformance;
    fn requirements(&self, name: Sym) -> Requirements;
    fn remember(&self, class: Sym, name: Sym, stamp: u64, answer: bool) -> bool;
    fn observe(&self) -> Seen;
    fn stamp(&self) -> u64;
}

impl Registry for Protocols<u32> {
    fn register(&self, name: Sym, payload: u32, names: Names) {
        self.register(name, payload, names);
    }

    fn unregister_module(&self, module: Sym) -> Vec<Sym> {
        sorted(self.unregister_module(module))
    }

    fn register_uses(&self, class: Sym, module: Option<Sym>, uses: Vec<Use>) {
        self.register_uses(class, module, uses);
    }

    fn invalidate(&self) {
        self.invalidate();
    }

    fn clear(&self) {
        drop(self.clear());
    }

    fn conformance(&self, class: Sym, name: Sym) -> Conformance {
        self.conformance(class, name)
    }

    fn requirements(&self, name: Sym) -> Requirements {
        let asked = self.requirements(name, usize::MAX);
        assert_eq!(asked == Asked::Unregistered, !self.contains(name), "{name:?}: there and not there");
        let requirements = match asked {
            Asked::For(requirements) => requirements,
            Asked::Unregistered => Requirements::default(),
            Asked::TooMany => panic!("{name:?}: more than there can be"),
        };
        let limited = self.requirements(name, 0) == Asked::TooMany;
        assert_eq!(limited, requirements != Requirements::default(), "{name:?}: the limit");
        requirements
    }

    fn remember(&self, class: Sym, name: Sym, stamp: u64, answer: bool) -> bool {
        self.remember(class, name, stamp, answer)
    }

    fn stamp(&self) -> u64 {
        self.counts().version
    }

    fn observe(&self) -> Seen {
        let mut seen = Seen { names: sorted(self.names()), ..Seen::default() };
        for name in protocols() {
            let payload = self.with(name, |payload| *payload);
            assert_eq!(payload.is_some(), self.contains(name), "{name:?}: there and not there");
            if let Some(payload) = payload {
                seen.definitions.insert(name, payload);
            }
            let required = self.required(name);
            if required != Default::default() {
                seen.required.insert(name, required);
            }
            let provided = self.provided(name);
            if !provided.is_empty() {
                seen.provided.insert(name, provided);
            }
            let users = self.users(name);
            if !users.is_empty() {
                seen.users.insert(name, sorted(users));
            }
        }
        for class in classes() {
            let uses = self.uses(class);
            if !uses.is_empty() {
                seen.uses.insert(class, uses);
            }
        }
        for (class, name) in pairs() {
            seen.conformance.insert((class, name), answer(self, class, name));
        }
        let counts = self.counts();
        seen.counts = [counts.protocols, counts.users, counts.answers];
        seen
    }
}

fn answer(registry: &dyn Registry, class: Sym, name: Sym) -> Answer {
    match registry.conformance(class, name) {
        Conformance::Known(answer) => Answer::Known(answer),
        Conformance::Open(_) => Answer::Open(registry.requirements(name)),
    }
}

/// What the registry should be: two plain tables and a list of answers.
#[derive(Default)]
struct Model {
    definitions: BTreeMap<Sym, (u32, Names)>,
    uses: BTreeMap<Sym, (Option<Sym>, Vec<Use>)>,
    remembered: BTreeMap<(Sym, Sym), bool>,
    changes: u64,
}

impl Model {
    fn changed(&mut self) {
        self.remembered.clear();
        self.changes += 1;
    }

    fn members(&self, name: Sym, of: impl Fn(&Names) -> &Vec<Sym>) -> Vec<Sym> {
        let mut members: Vec<Sym> = Vec::new();
        let mut visited = BTreeSet::new();
        let mut at = Some(name);
        while let Some(name) = at.filter(|name| visited.insert(*name)) {
            let Some((_, names)) = self.definitions.get(&name) else { break };
            let hidden: BTreeSet<Sym> = members.iter().copied().collect();
            members.extend(of(names).iter().filter(|member| !hidden.contains(member)));
            at = names.extending;
        }
        members
    }

    fn answer(&self, class: Sym, name: Sym) -> Answer {
        if let Some(answer) = self.remembered.get(&(class, name)) {
            return Answer::Known(*answer);
        }
        if !self.definitions.contains_key(&name) {
            return Answer::Known(false);
        }
        let distinct = |members: Vec<Sym>| members.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
        let mut instance = self.members(name, |names| &names.required);
        instance.extend(self.members(name, |names| &names.provided));
        let requirements = Requirements {
            instance: distinct(instance),
            class_side: distinct(self.members(name, |names| &names.required_class)),
        };
        if requirements == Requirements::default() { Answer::Known(true) } else { Answer::Open(requirements) }
    }

    fn seen(&self) -> Seen {
        let mut seen = Seen {
            definitions: self.definitions.iter().map(|(name, definition)| (*name, definition.0)).collect(),
            names: self.definitions.keys().copied().collect(),
            uses: self.uses.iter().map(|(class, uses)| (*class, uses.1.clone())).collect(),
            conformance: pairs().map(|pair| (pair, self.answer(pair.0, pair.1))).collect(),
            counts: [self.definitions.len(), self.uses.len(), self.remembered.len()],
            ..Seen::default()
        };
        for name in protocols() {
            let required = (
                self.members(name, |names| &names.required),
                self.members(name, |names| &names.required_class),
            );
            if required != Default::default() {
                seen.required.insert(name, required);
            }
            let provided = self.members(name, |names| &names.provided);
            if !provided.is_empty() {
                seen.provided.insert(name, provided);
            }
        }
        seen.users = users_of(&seen.uses);
        seen
    }
}

/// The users index, from the uses and nothing else.
fn users_of(uses: &BTreeMap<Sym, Vec<Use>>) -> BTreeMap<Sym, Vec<Sym>> {
    let mut users: BTreeMap<Sym, BTreeSet<Sym>> = BTreeMap::new();
    for (class, uses) in uses {
        for used in uses {
            users.entry(used.protocol).or_default().insert(*class);
        }
    }
    users.into_iter().map(|(name, users)| (name, users.into_iter().collect())).collect()
}

/// A question whose answer is being found out: the stamp it got, and the state of the model when it was
/// asked.
struct Question {
    class: Sym,
    name: Sym,
    stamp: u64,
    changes: u64,
}

/// Runs a history on a registry and on the model; the first difference is the error.
fn agrees(registry: &dyn Registry, history: &[Op]) -> Result<(), TestCaseError> {
    let mut model = Model::default();
    let mut asked: Vec<Question> = Vec::new();
    let mut stamp = registry.stamp();
    for (step, op) in history.iter().enumerate() {
        let changes = model.changes;
        match op {
            Op::Register(name, names) => {
                let payload = u32::try_from(step).unwrap();
                registry.register(*name, payload, names.clone());
                model.definitions.insert(*name, (payload, names.clone()));
                model.changed();
            }
            Op::UnregisterModule(module) => {
                let gone: Vec<Sym> = model
                    .definitions
                    .iter()
                    .filter(|(_, definition)| definition.1.module == Some(*module))
                    .map(|(name, _)| *name)
                    .collect();
                same(&registry.unregister_module(*module), &gone, || format!("step {step}, {op:?}"))?;
                model.definitions.retain(|_, definition| definition.1.module != Some(*module));
                model.uses.retain(|_, uses| uses.0 != Some(*module));
                model.changed();
            }
            Op::RegisterUses(class, module, uses) => {
                registry.register_uses(*class, *module, uses.clone());
                if uses.is_empty() {
                    model.uses.remove(class);
                } else {
                    model.uses.insert(*class, (*module, uses.clone()));
                }
                model.changed();
            }
            Op::Invalidate => {
                registry.invalidate();
                model.changed();
            }
            Op::Clear => {
                registry.clear();
                model = Model { changes: model.changes, ..Model::default() };
                model.changed();
            }
            Op::Ask(class, name) => {
                if let Conformance::Open(stamp) = registry.conformance(*class, *name) {
                    asked.push(Question { class: *class, name: *name, stamp, changes });
                }
            }
            Op::Answer(index, answer) => {
                if !asked.is_empty() {
                    let question = asked.swap_remove(index.index(asked.len()));
                    let Question { class, name, stamp, changes: asked_at } = question;
                    let kept = registry.remember(class, name, stamp, *answer);
                    let wanted = asked_at == changes;
                    prop_assert_eq!(
                        kept,
                        wanted,
                        "step {}: an answer of {} changes ago",
                        step,
                        changes - asked_at
                    );
                    if wanted {
                        model.remembered.insert((class, name), *answer);
                    }
                }
            }
        }
        let now = registry.stamp();
        if model.changes > changes {
            prop_assert!(now > stamp, "step {step}, {op:?}: the stamp did not rise");
        } else {
            prop_assert_eq!(now, stamp, "step {}, {:?}: nothing changed but the stamp", step, op);
        }
        stamp = now;

        let seen = registry.observe();
        same(&seen.users, &users_of(&seen.uses), || format!("step {step}, {op:?}: users against uses"))?;
        same(&seen, &model.seen(), || format!("step {step}, {op:?}: the registry against the model"))?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn random_histories_leave_what_the_model_says(history in history()) {
        agrees(&Protocols::<u32>::default(), &history)?;
    }
}

/// A protocol that extends itself, alone or in a ring, asks for what the ring asks for and ends.
#[test]
fn rings_of_protocols_end() {
    for length in 1..6u32 {
        let registry = Protocols::default();
        for word in 1..=length {
            let names = Names {
                required: vec![sym(200 + word)],
                extending: Some(sym(word % length + 1)),
                ..Names::default()
            };
            registry.register(sym(word), (), names);
        }
        let wanted: Vec<Sym> = (1..=length).map(|word| sym(200 + word)).collect();
        assert_eq!(registry.required(sym(1)).0, wanted);
    }
}

/// What a reader was shown stays as it was, whatever is written while it looks.
#[test]
fn a_definition_that_is_being_read_outlives_its_removal() {
    let registry = Protocols::default();
    registry.register(sym(1), vec![1, 2, 3], Names { module: Some(sym(300)), ..Names::default() });
    let seen = registry.with(sym(1), |definition| {
        registry.unregister_module(sym(300));
        drop(registry.clear());
        definition.clone()
    });
    assert_eq!(seen, Some(vec![1, 2, 3]));
    assert!(!registry.contains(sym(1)));
}

/// Faults seeded around the real registry.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fault {
    /// Answers are taken whatever changed since their computation began.
    IgnoresStamps,
    /// A new definition leaves the answers.
    RegisteringForgetsNothing,
    /// Unregistering a module that registered nothing leaves the answers.
    UnmatchedModuleForgetsNothing,
    /// New uses leave the answers.
    UsesForgetNothing,
    /// Invalidation forgets the answers of one class.
    ForgetsOneClass,
    /// A remembered answer is served for every class.
    ForgetsTheClassInTheKey,
    /// The users index keeps a class that lists other protocols now.
    KeepsFormerUsers,
    /// The users index is not told when a class falls with its module.
    KeepsUsersOfAModule,
    /// A class's uses outlive its module.
    UsesOutliveTheirModule,
    /// New uses are added to the earlier ones.
    UsesAddUp,
    /// An empty list of uses changes nothing.
    EmptyListKeepsUses,
    /// A module's first protocol alone is unregistered.
    UnregistersOneProtocol,
    /// A protocol stays with the module that registered it first.
    StaysWithItsFirstModule,
    /// Protocols without a module fall with any.
    TakesTheHomeless,
    /// Class-side requirements are forgotten.
    ForgetsTheClassSide,
    /// What a protocol provides is not asked for.
    AsksForRequiredOnly,
    /// The parent's members are forgotten.
    ForgetsTheParent,
    /// Clearing keeps the uses.
    ClearKeepsUses,
}

const FAULTS: [Fault; 18] = [
    Fault::IgnoresStamps,
    Fault::RegisteringForgetsNothing,
    Fault::UnmatchedModuleForgetsNothing,
    Fault::UsesForgetNothing,
    Fault::ForgetsOneClass,
    Fault::ForgetsTheClassInTheKey,
    Fault::KeepsFormerUsers,
    Fault::KeepsUsersOfAModule,
    Fault::UsesOutliveTheirModule,
    Fault::UsesAddUp,
    Fault::EmptyListKeepsUses,
    Fault::UnregistersOneProtocol,
    Fault::StaysWithItsFirstModule,
    Fault::TakesTheHomeless,
    Fault::ForgetsTheClassSide,
    Fault::AsksForRequiredOnly,
    Fault::ForgetsTheParent,
    Fault::ClearKeepsUses,
];

type Uses = BTreeMap<Sym, (Option<Sym>, Vec<Use>)>;

struct Faulty {
    fault: Fault,
    real: Protocols<u32>,
    /// What was registered, for faults that bring it back.
    registered: RefCell<BTreeMap<Sym, (u32, Names)>>,
    uses: RefCell<Uses>,
    answers: RefCell<BTreeMap<(Sym, Sym), bool>>,
    former_users: RefCell<BTreeSet<(Sym, Sym)>>,
}

impl Faulty {
    fn new(fault: Fault) -> Self {
        Self {
            fault,
            real: Protocols::default(),
            registered: RefCell::default(),
            uses: RefCell::default(),
            answers: RefCell::default(),
            former_users: RefCell::default(),
        }
    }

    fn stamp_now(&self) -> u64 {
        Registry::stamp(&self.real)
    }

    /// Brings back what a change has just forgotten.
    fn remember_again(&self, keeps: impl Fn(Sym) -> bool) {
        let stamp = self.stamp_now();
        self.answers.borrow_mut().retain(|(class, _), _| keeps(*class));
        for ((class, name), answer) in &*self.answers.borrow() {
            self.real.remember(*class, *name, stamp, *answer);
        }
    }

    fn after_change(&self, forgets_nothing: bool) {
        if forgets_nothing {
            self.remember_again(|_| true);
        } else {
            self.answers.borrow_mut().clear();
        }
    }

    fn leave(&self, class: Sym) {
        let uses = self.real.uses(class);
        self.former_users.borrow_mut().extend(uses.iter().map(|used| (used.protocol, class)));
    }
}

impl Registry for Faulty {
    fn register(&self, name: Sym, payload: u32, mut names: Names) {
        match self.fault {
            Fault::ForgetsTheClassSide => names.required_class.clear(),
            Fault::ForgetsTheParent => names.extending = None,
            Fault::StaysWithItsFirstModule => {
                if let Some((_, earlier)) = self.registered.borrow().get(&name)
                    && self.real.contains(name)
                {
                    names.module = earlier.module;
                }
            }
            Fault::TakesTheHomeless => names.module = names.module.or(Some(sym(MODULES.start))),
            _ => {}
        }
        self.registered.borrow_mut().insert(name, (payload, names.clone()));
        self.real.register(name, payload, names);
        self.after_change(self.fault == Fault::RegisteringForgetsNothing);
    }

    fn unregister_module(&self, module: Sym) -> Vec<Sym> {
        let users: Vec<Sym> = self
            .uses
            .borrow()
            .iter()
            .filter(|(class, uses)| uses.0 == Some(module) && !self.real.uses(**class).is_empty())
            .map(|(class, _)| *class)
            .collect();
        if self.fault == Fault::KeepsUsersOfAModule {
            users.iter().for_each(|class| self.leave(*class));
        }
        let gone = Registry::unregister_module(&self.real, module);
        match self.fault {
            Fault::UsesOutliveTheirModule => {
                for class in users {
                    let (module, uses) = self.uses.borrow()[&class].clone();
                    self.real.register_uses(class, module, uses);
                }
            }
            Fault::UnregistersOneProtocol => {
                for name in gone.iter().skip(1) {
                    let (payload, names) = self.registered.borrow()[name].clone();
                    self.real.register(*name, payload, names);
                }
            }
            _ => {}
        }
        self.after_change(self.fault == Fault::UnmatchedModuleForgetsNothing && gone.is_empty());
        gone
    }

    fn register_uses(&self, class: Sym, module: Option<Sym>, mut uses: Vec<Use>) {
        match self.fault {
            Fault::KeepsFormerUsers => self.leave(class),
            Fault::UsesAddUp => {
                let mut all = self.real.uses(class);
                all.append(&mut uses);
                uses = all;
            }
            Fault::EmptyListKeepsUses if uses.is_empty() => {
                self.real.invalidate();
                self.after_change(false);
                return;
            }
            _ => {}
        }
        self.uses.borrow_mut().insert(class, (module, uses.clone()));
        self.real.register_uses(class, module, uses);
        self.after_change(self.fault == Fault::UsesForgetNothing);
    }

    fn invalidate(&self) {
        self.real.invalidate();
        if self.fault == Fault::ForgetsOneClass {
            self.remember_again(|class| class != sym(CLASSES.start));
        } else {
            self.after_change(false);
        }
    }

    fn clear(&self) {
        let kept: Vec<(Sym, Vec<Use>)> = classes().map(|class| (class, self.real.uses(class))).collect();
        Registry::clear(&self.real);
        if self.fault == Fault::ClearKeepsUses {
            for (class, uses) in kept {
                self.real.register_uses(class, None, uses);
            }
        }
        self.former_users.borrow_mut().clear();
        self.after_change(false);
    }

    fn conformance(&self, class: Sym, name: Sym) -> Conformance {
        match (self.fault, self.real.conformance(class, name)) {
            (Fault::ForgetsTheClassInTheKey, Conformance::Open(stamp)) => {
                let answers = self.answers.borrow();
                let of_another = answers.iter().find(|((_, asked), _)| *asked == name);
                of_another.map_or(Conformance::Open(stamp), |(_, answer)| Conformance::Known(*answer))
            }
            (_, answer) => answer,
        }
    }

    fn requirements(&self, name: Sym) -> Requirements {
        match self.fault {
            Fault::AsksForRequiredOnly => {
                let (mut instance, mut class_side) = self.real.required(name);
                for selectors in [&mut instance, &mut class_side] {
                    selectors.sort_unstable();
                    selectors.dedup();
                }
                Requirements { instance, class_side }
            }
            _ => Registry::requirements(&self.real, name),
        }
    }

    fn remember(&self, class: Sym, name: Sym, stamp: u64, answer: bool) -> bool {
        let stamp = if self.fault == Fault::IgnoresStamps { self.stamp_now() } else { stamp };
        let kept = self.real.remember(class, name, stamp, answer);
        if kept {
            self.answers.borrow_mut().insert((class, name), answer);
        }
        kept
    }

    fn stamp(&self) -> u64 {
        self.stamp_now()
    }

    fn observe(&self) -> Seen {
        let mut seen = self.real.observe();
        for (class, name) in pairs() {
            seen.conformance.insert((class, name), answer(self, class, name));
        }
        if matches!(self.fault, Fault::KeepsFormerUsers | Fault::KeepsUsersOfAModule) {
            for (name, class) in &*self.former_users.borrow() {
                let users = seen.users.entry(*name).or_default();
                if !users.contains(class) {
                    users.push(*class);
                    users.sort_unstable();
                }
            }
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
