//! The cross-reference index against a naive model under random histories, and against indexes with seeded
//! faults, each of which the same comparison must catch.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod model;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use beamtalk_image::xref::{
    Found, Method, MethodFacts, MethodKey, Provenance, RecvKind, RecvType, RecvTypeRef, Reference, Refused,
    Send, SendRef, SourceStatus, UnresolvedSend, View, Word, Xref,
};
use beamtalk_image::{Patience, Sym};
use model::{config, same, sorted, survivors, sym};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

const LONGEST_HISTORY: usize = 32;

/// Names and tags of classes; a tag is a class key like any other.
const CLASSES: [u32; 3] = [1, 2, 51];
const SELECTORS: std::ops::Range<u32> = 200..204;
const MODULES: std::ops::Range<u32> = 300..302;
const PROTOCOLS: std::ops::Range<u32> = 400..402;

fn classes() -> impl Iterator<Item = Sym> {
    CLASSES.into_iter().map(sym)
}

fn selectors() -> impl Iterator<Item = Sym> {
    SELECTORS.map(sym)
}

fn modules() -> impl Iterator<Item = Sym> {
    MODULES.map(sym)
}

/// What the owner of the name table would say a name is spelt like.
fn text_of(name: Sym) -> String {
    format!("n{}", name.word())
}

// Histories.

/// A method as a caller states it.
#[derive(Clone, PartialEq, Debug)]
struct Stated {
    class_side: bool,
    selector: Sym,
    line: u32,
    status: SourceStatus,
    provenance: Provenance,
    origin: Option<Sym>,
    version: u64,
    sends: Vec<Send>,
    references: Vec<Reference>,
    unresolved: Vec<UnresolvedSend>,
}

impl Stated {
    fn method(&self, class: Sym) -> Method {
        let facts = MethodFacts {
            line: self.line,
            status: self.status,
            provenance: self.provenance,
            origin: self.origin,
            extension_version: self.version,
            sends: self.sends.clone(),
            references: self.references.clone(),
            unresolved: self.unresolved.clone(),
        };
        Method::new(class, self.class_side, self.selector, facts)
    }
}

#[derive(Clone, Debug)]
enum Op {
    Register(Sym, Vec<Stated>),
    PurgeClass(Sym),
    ForgetClass(Sym),
    /// What the host does when a class is defined anew.
    Redefine(Sym, Vec<Stated>),
    Put(Sym, Stated, bool),
    PurgeMethod(MethodKey),
    PurgeExtension(Sym, Sym),
    SetProvenance(Sym, Vec<(Sym, Sym)>),
    RestrictProvenance(Sym, Vec<Sym>),
    Clear,
    /// An orderly end and a new start.
    Reopen,
}

fn name(words: std::ops::Range<u32>) -> impl Strategy<Value = Sym> {
    words.prop_map(sym)
}

fn class() -> impl Strategy<Value = Sym> {
    prop::sample::select(CLASSES.to_vec()).prop_map(sym)
}

fn recv_kind() -> impl Strategy<Value = RecvKind> {
    prop::sample::select(vec![
        RecvKind::SelfRecv,
        RecvKind::SuperRecv,
        RecvKind::ErlangFfi,
        RecvKind::ErlangFfi,
        RecvKind::Other,
    ])
}

fn recv_type() -> impl Strategy<Value = RecvType> {
    let leaf = prop_oneof![3 => Just(RecvType::Dynamic), 2 => class().prop_map(RecvType::Name)];
    leaf.prop_recursive(2, 6, 3, |inner| {
        (any::<bool>(), prop::collection::vec(inner, 0..3)).prop_map(|(union, members)| {
            if union { RecvType::Union(members.into()) } else { RecvType::Intersection(members.into()) }
        })
    })
}

fn send() -> impl Strategy<Value = Send> {
    (name(SELECTORS), 1..4u32, recv_kind(), prop::option::of(name(MODULES)), recv_type()).prop_map(
        |(selector, line, kind, target, recv_type)| Send { selector, line, kind, target, recv_type },
    )
}

fn word(words: std::ops::Range<u32>, known: bool) -> impl Strategy<Value = Word> {
    (name(words), any::<bool>()).prop_map(move |(name, text)| {
        if text || !known { Word::Text(Arc::from(text_of(name))) } else { Word::Known(name) }
    })
}

fn unresolved() -> impl Strategy<Value = UnresolvedSend> {
    let target = prop::option::of(word(MODULES, true));
    (word(SELECTORS, true), 1..4u32, recv_kind(), target)
        .prop_map(|(selector, line, kind, target)| UnresolvedSend { selector, line, kind, target })
}

fn reference() -> impl Strategy<Value = Reference> {
    (class(), 1..4u32).prop_map(|(class, line)| Reference { class, line })
}

fn provenance() -> impl Strategy<Value = Provenance> {
    prop::sample::select(vec![
        Provenance::ClassBody,
        Provenance::ClassBody,
        Provenance::Extension,
        Provenance::Extension,
        Provenance::ClassBuilder,
        Provenance::PutMethod,
        Provenance::Protocol,
    ])
}

fn status() -> impl Strategy<Value = SourceStatus> {
    prop::sample::select(vec![
        SourceStatus::Indexed,
        SourceStatus::Indexed,
        SourceStatus::UnindexedRuntimeFun,
        SourceStatus::Synthetic,
    ])
}

fn stated() -> impl Strategy<Value = Stated> {
    let what = (any::<bool>(), name(SELECTORS), 1..3u32, status(), provenance());
    let rows = (
        prop::collection::vec(send(), 0..4),
        prop::collection::vec(reference(), 0..3),
        prop_oneof![3 => Just(vec![]), 1 => prop::collection::vec(unresolved(), 1..3)],
    );
    (what, prop::option::of(name(PROTOCOLS)), 0..4u64, rows).prop_map(|(what, origin, version, rows)| {
        let (class_side, selector, line, status, provenance) = what;
        let (sends, references, unresolved) = rows;
        let origin = origin.filter(|_| provenance == Provenance::Protocol);
        // Extensions on a class side are told apart by their class key alone.
        let class_side = class_side && provenance != Provenance::Extension;
        let version = if provenance == Provenance::Extension { version } else { 0 };
        Stated {
            class_side,
            selector,
            line,
            status,
            provenance,
            origin,
            version,
            sends,
            references,
            unresolved,
        }
    })
}

fn rows_of_class() -> impl Strategy<Value = Vec<Stated>> {
    let own = stated().prop_map(|stated| match stated.provenance {
        Provenance::Extension => Stated { provenance: Provenance::ClassBody, version: 0, ..stated },
        _ => stated,
    });
    prop::collection::vec(own, 0..5)
}

fn op() -> impl Strategy<Value = Op> {
    let key = (class(), any::<bool>(), name(SELECTORS));
    let origins = prop::collection::vec((name(SELECTORS), name(PROTOCOLS)), 0..3);
    prop_oneof![
        6 => (class(), rows_of_class()).prop_map(|(class, rows)| Op::Register(class, rows)),
        3 => class().prop_map(Op::PurgeClass),
        1 => class().prop_map(Op::ForgetClass),
        2 => (class(), rows_of_class()).prop_map(|(class, rows)| Op::Redefine(class, rows)),
        12 => (class(), stated(), prop::bool::weighted(0.3)).prop_map(|(class, row, late)| Op::Put(class, row, late)),
        4 => key.prop_map(Op::PurgeMethod),
        3 => (class(), name(SELECTORS)).prop_map(|(class, selector)| Op::PurgeExtension(class, selector)),
        3 => (class(), origins).prop_map(|(class, origins)| Op::SetProvenance(class, origins)),
        2 => (class(), prop::collection::vec(name(PROTOCOLS), 0..2))
            .prop_map(|(class, protocols)| Op::RestrictProvenance(class, protocols)),
        1 => prop_oneof![Just(Op::Clear), Just(Op::Reopen)],
    ]
}

fn history() -> impl Strategy<Value = Vec<Op>> {
    prop::collection::vec(op(), 1..LONGEST_HISTORY)
}

// What an index answers.

/// A row of any read, as text: receiver types have no order.
type Line = String;

/// A method's rows with nothing of how the index keeps them.
#[derive(Clone, Debug)]
struct Plain {
    key: MethodKey,
    whole: Line,
    generation: u64,
    sends: Vec<PlainSend>,
    references: Vec<Reference>,
    unresolved: Vec<UnresolvedSend>,
}

#[derive(Clone, PartialEq, Debug)]
struct PlainSend {
    selector: Sym,
    line: u32,
    kind: RecvKind,
    target: Option<Sym>,
    recv_type: Line,
    names: BTreeSet<Sym>,
}

fn spelt(recv_type: &RecvType) -> Line {
    let members = |members: &[RecvType]| members.iter().map(spelt).collect::<Vec<_>>().join(" ");
    match recv_type {
        RecvType::Dynamic => "dynamic".into(),
        RecvType::Name(name) => format!("{}", name.word()),
        RecvType::Union(parts) => format!("union({})", members(parts)),
        RecvType::Intersection(parts) => format!("intersection({})", members(parts)),
    }
}

fn names_in(recv_type: &RecvType) -> BTreeSet<Sym> {
    match recv_type {
        RecvType::Dynamic => BTreeSet::new(),
        RecvType::Name(name) => [*name].into(),
        RecvType::Union(parts) | RecvType::Intersection(parts) => parts.iter().flat_map(names_in).collect(),
    }
}

impl PlainSend {
    fn stated(send: &Send) -> Self {
        let (recv_type, names) = (spelt(&send.recv_type), names_in(&send.recv_type));
        Self {
            selector: send.selector,
            line: send.line,
            kind: send.kind,
            target: send.target,
            recv_type,
            names,
        }
    }

    fn stored(send: SendRef) -> Self {
        let recv_type = match send.recv_type {
            RecvTypeRef::Dynamic => RecvType::Dynamic,
            RecvTypeRef::Name(name) => RecvType::Name(name),
            RecvTypeRef::Compound(compound) => compound.clone(),
        };
        let mut names = BTreeSet::new();
        send.recv_type.each_name(&mut |name| {
            names.insert(name);
        });
        let (selector, line, kind, target) = (send.selector, send.line, send.kind, send.target);
        Self { selector, line, kind, target, recv_type: spelt(&recv_type), names }
    }

    fn row(&self, key: MethodKey, generation: u64) -> Line {
        let Self { line, kind, target, recv_type, .. } = self;
        format!("{key:?} line {line} {kind:?} {target:?} {recv_type} generation {generation}")
    }
}

/// A send that waited for its name: of its receiver's type nothing is known, nor of a module that is no name yet.
fn unresolved_row(send: &UnresolvedSend, key: MethodKey, generation: u64) -> Line {
    let target = match &send.target {
        Some(Word::Known(module)) => Some(*module),
        _ => None,
    };
    let (selector, line, kind) = (key.2, send.line, send.kind);
    let recv_type = spelt(&RecvType::Dynamic);
    PlainSend { selector, line, kind, target, recv_type, names: BTreeSet::new() }.row(key, generation)
}

fn reference_row(reference: &Reference, key: MethodKey, generation: u64) -> Line {
    format!("{key:?} line {} generation {generation}", reference.line)
}

fn whole(
    what: (u32, SourceStatus, Provenance, Option<Sym>, u64),
    rows: (&[PlainSend], &[Reference], &[UnresolvedSend]),
    generation: u64,
) -> Line {
    format!("{what:?} {rows:?} generation {generation}")
}

/// Rows in a fixed order, each once.
fn distinct<T: Clone + PartialEq>(rows: &[T]) -> Vec<T> {
    let mut kept: Vec<T> = Vec::new();
    for row in rows {
        if !kept.contains(row) {
            kept.push(row.clone());
        }
    }
    kept
}

impl Plain {
    fn new(
        key: MethodKey,
        what: (u32, SourceStatus, Provenance, Option<Sym>, u64),
        rows: (Vec<PlainSend>, Vec<Reference>, Vec<UnresolvedSend>),
        generation: u64,
    ) -> Self {
        let (sends, references, unresolved) = rows;
        let whole = whole(what, (&sends, &references, &unresolved), generation);
        Self { key, whole, generation, sends, references, unresolved }
    }

    fn stated(class: Sym, stated: &Stated, generation: u64) -> Self {
        let what = (stated.line, stated.status, stated.provenance, stated.origin, stated.version);
        // Sends of one selector keep their order; those of different selectors stand in the order of their
        // words.
        let mut sends = distinct(&stated.sends.iter().map(PlainSend::stated).collect::<Vec<_>>());
        sends.sort_by_key(|send| send.selector);
        let mut references = distinct(&stated.references);
        references.sort_by_key(|reference| (reference.class, reference.line));
        let rows = (sends, references, distinct(&stated.unresolved));
        Self::new((class, stated.class_side, stated.selector), what, rows, generation)
    }

    fn stored(method: &Method) -> Self {
        let what = (method.line, method.status, method.provenance, method.origin, method.extension_version);
        let sends: Vec<PlainSend> = method.sends().map(PlainSend::stored).collect();
        assert_eq!(sends.len(), method.send_count());
        let rows = (sends, method.references().to_vec(), method.unresolved().to_vec());
        Self::new(method.key(), what, rows, method.generation)
    }
}

#[derive(Clone, PartialEq, Debug, Default)]
struct Seen {
    open: bool,
    indexed: BTreeSet<Sym>,
    methods: BTreeMap<MethodKey, Line>,
    defined: BTreeSet<MethodKey>,
    senders: BTreeMap<Sym, Vec<Line>>,
    senders_by_name_alone: BTreeMap<Sym, Vec<Line>>,
    references: BTreeMap<Sym, Vec<Line>>,
    implementors: BTreeMap<Sym, Vec<MethodKey>>,
    selectors: BTreeMap<(Sym, bool), Vec<Sym>>,
    callers: BTreeMap<Sym, BTreeMap<MethodKey, u32>>,
    callers_by_name_alone: BTreeMap<Sym, BTreeMap<MethodKey, u32>>,
    /// Calls of modules that nobody could name.
    callers_of_unknown: BTreeMap<MethodKey, u32>,
    receiver_names: BTreeMap<Sym, BTreeSet<Sym>>,
    of_loaded: Vec<MethodKey>,
    waits_for_names: bool,
    /// Classes, methods of all layers, sends, references, unresolved sends, selectors sent.
    counts: [usize; 6],
}

fn filled<K: Ord, V: Default + PartialEq>(rows: impl IntoIterator<Item = (K, V)>) -> BTreeMap<K, V> {
    rows.into_iter().filter(|(_, value)| *value != V::default()).collect()
}

/// Some of the class keys; the reads over loaded classes must leave out the others.
fn loaded() -> HashSet<Sym> {
    CLASSES[..2].iter().copied().map(sym).collect()
}

fn observe(view: &View) -> Seen {
    let sides = || classes().flat_map(|class| [(class, false), (class, true)]);
    let keys = || sides().flat_map(|(class, side)| selectors().map(move |selector| (class, side, selector)));
    let senders = |selector, text: Option<&str>| {
        sorted(view.senders(selector, text).map(|row| match row.send {
            Found::Resolved(send) => PlainSend::stored(send).row(row.method.key(), row.method.generation),
            Found::Unresolved(send) => unresolved_row(send, row.method.key(), row.method.generation),
        }))
    };
    let callers = |module: Option<Sym>, text: Option<&str>| {
        let rows = view.native_callers(module, text, usize::MAX).unwrap();
        let callers: BTreeMap<MethodKey, u32> =
            rows.iter().map(|(method, line)| (method.key(), *line)).collect();
        assert_eq!(callers.len(), rows.len(), "a caller is named twice");
        assert_eq!(view.native_callers(module, text, 0).is_some(), rows.is_empty(), "the limit of a read");
        callers
    };
    for (class, side) in sides() {
        assert!(side_of(view, class, side).len() <= view.method_count(class));
    }
    let counts = view.counts();
    assert_eq!(counts.version, view.version());
    Seen {
        open: view.is_open(),
        indexed: classes().filter(|class| view.is_indexed(*class)).collect(),
        methods: keys()
            .filter_map(|key| view.method(key).map(|method| (key, Plain::stored(method).whole)))
            .collect(),
        defined: keys().filter(|key| view.defines(*key)).collect(),
        senders: filled(selectors().map(|selector| (selector, senders(selector, Some(&text_of(selector)))))),
        senders_by_name_alone: filled(selectors().map(|selector| (selector, senders(selector, None)))),
        references: filled(classes().map(|class| {
            (
                class,
                sorted(
                    view.references(class)
                        .map(|(method, reference)| reference_row(reference, method.key(), method.generation)),
                ),
            )
        })),
        implementors: filled(
            selectors().map(|selector| (selector, sorted(view.implementors(selector).map(Method::key)))),
        ),
        selectors: filled(sides().map(|side| (side, side_of(view, side.0, side.1)))),
        callers: filled(modules().map(|module| (module, callers(Some(module), Some(&text_of(module)))))),
        callers_by_name_alone: filled(modules().map(|module| (module, callers(Some(module), None)))),
        callers_of_unknown: callers(None, None),
        receiver_names: filled(
            selectors().map(|selector| (selector, view.receiver_names(selector).into_iter().collect())),
        ),
        of_loaded: sorted(view.methods_of(&loaded()).map(Method::key)),
        waits_for_names: view.has_unresolved(),
        counts: [
            counts.classes,
            counts.methods,
            counts.sends,
            counts.references,
            counts.unresolved_sends,
            counts.sent_selectors,
        ],
    }
}

/// The selectors of one side in the order asked for.
fn side_of(view: &View, class: Sym, side: bool) -> Vec<Sym> {
    // The order of a caller is not that of the words.
    let selectors = view.selectors(class, side, |first, second| second.cmp(&first), <[Sym]>::to_vec);
    assert!(selectors.is_sorted_by(|first, second| first > second), "unsorted or twice: {selectors:?}");
    selectors.into_iter().rev().collect()
}

/// All answers again, from the reported methods and nothing else.
fn derived(
    open: bool,
    indexed: BTreeSet<Sym>,
    defined: BTreeSet<MethodKey>,
    stored: usize,
    reported: &[Plain],
) -> Seen {
    let mut seen = Seen { open, defined, ..Seen::default() };
    let mut sent = BTreeSet::new();
    for method in reported {
        let (key, generation) = (method.key, method.generation);
        seen.methods.insert(key, method.whole.clone());
        seen.implementors.entry(key.2).or_default().push(key);
        seen.selectors.entry((key.0, key.1)).or_default().push(key.2);
        if loaded().contains(&key.0) {
            seen.of_loaded.push(key);
        }
        for send in &method.sends {
            sent.insert(send.selector);
            let row = send.row(key, generation);
            seen.senders.entry(send.selector).or_default().push(row.clone());
            seen.senders_by_name_alone.entry(send.selector).or_default().push(row);
            if !send.names.is_empty() {
                seen.receiver_names.entry(send.selector).or_default().extend(&send.names);
            }
            match (send.kind, send.target) {
                (RecvKind::ErlangFfi, Some(module)) => {
                    note_call(seen.callers.entry(module).or_default(), key, send.line);
                    note_call(seen.callers_by_name_alone.entry(module).or_default(), key, send.line);
                }
                (RecvKind::ErlangFfi, None) => note_call(&mut seen.callers_of_unknown, key, send.line),
                _ => {}
            }
        }
        for send in &method.unresolved {
            if let Some(selector) =
                selectors().find(|name| send.selector == Word::Text(text_of(*name).into()))
            {
                // What looks like another send of the method is no row of its own.
                let (rows, row) =
                    (seen.senders.entry(selector).or_default(), unresolved_row(send, key, generation));
                if !rows.contains(&row) {
                    rows.push(row);
                }
            }
            seen.waits_for_names |= matches!(send.selector, Word::Text(_));
            if send.kind == RecvKind::ErlangFfi {
                seen.waits_for_names |= matches!(send.target, Some(Word::Text(_)));
                for module in modules() {
                    let known = send.target == Some(Word::Known(module));
                    if known {
                        note_call(seen.callers_by_name_alone.entry(module).or_default(), key, send.line);
                    }
                    if known || send.target == Some(Word::Text(text_of(module).into())) {
                        note_call(seen.callers.entry(module).or_default(), key, send.line);
                    }
                }
            }
        }
        for reference in &method.references {
            let row = reference_row(reference, key, generation);
            seen.references.entry(reference.class).or_default().push(row);
        }
    }
    for rows in [&mut seen.senders, &mut seen.senders_by_name_alone, &mut seen.references] {
        rows.values_mut().for_each(|rows| rows.sort_unstable());
    }
    seen.implementors.values_mut().for_each(|rows| rows.sort_unstable());
    seen.selectors.values_mut().for_each(|rows| rows.sort_unstable());
    seen.of_loaded.sort_unstable();
    seen.counts = [
        indexed.len(),
        stored,
        reported.iter().map(|method| method.sends.len()).sum(),
        reported.iter().map(|method| method.references.len()).sum(),
        reported.iter().map(|method| method.unresolved.len()).sum(),
        sent.len(),
    ];
    seen.indexed = indexed;
    seen
}

fn note_call(callers: &mut BTreeMap<MethodKey, u32>, key: MethodKey, line: u32) {
    let smallest = callers.entry(key).or_insert(line);
    *smallest = line.min(*smallest);
}

// The model.

#[derive(Clone, Default, PartialEq, Debug)]
struct ClassModel {
    known: bool,
    own: BTreeMap<(bool, Sym), (Stated, u64)>,
    extensions: BTreeMap<(bool, Sym), (Stated, u64)>,
    put_away: BTreeMap<(bool, Sym), (Stated, u64)>,
    origins: BTreeMap<Sym, Sym>,
}

impl ClassModel {
    fn attributed(&self, stated: &Stated) -> Stated {
        match self.origins.get(&stated.selector) {
            Some(origin)
                if !stated.class_side
                    && matches!(stated.provenance, Provenance::ClassBody | Provenance::Protocol) =>
            {
                Stated { provenance: Provenance::Protocol, origin: Some(*origin), ..stated.clone() }
            }
            _ => stated.clone(),
        }
    }
}

#[derive(Default)]
struct Model {
    open: bool,
    classes: BTreeMap<Sym, ClassModel>,
}

impl Model {
    fn class(&mut self, class: Sym) -> &mut ClassModel {
        self.classes.entry(class).or_default()
    }

    /// Applies a write; `now` is the version that the index gave it. Answers what `put_method` must answer.
    fn apply(&mut self, op: &Op, now: u64) -> bool {
        match op {
            Op::Register(class, rows) => self.register(*class, rows, now),
            Op::PurgeClass(class) => self.purge(*class),
            Op::ForgetClass(class) => drop(self.classes.remove(class)),
            Op::Redefine(class, rows) => {
                self.purge(*class);
                self.register(*class, rows, now);
            }
            Op::Put(class, stated, late) => return self.put(*class, stated, *late, now),
            Op::PurgeMethod((class, side, selector)) => {
                let class = self.class(*class);
                let key = (*side, *selector);
                if class.extensions.remove(&key).is_none() && class.own.remove(&key).is_none() {
                    class.put_away.remove(&key);
                }
            }
            Op::PurgeExtension(class, selector) => {
                let class = self.class(*class);
                class.extensions.remove(&(false, *selector));
                class.put_away.remove(&(false, *selector));
            }
            Op::SetProvenance(class, origins) => {
                self.set_provenance(*class, origins.iter().copied().collect(), now)
            }
            Op::RestrictProvenance(class, protocols) => {
                let mut origins = self.class(*class).origins.clone();
                origins.retain(|_, origin| protocols.contains(origin));
                if origins != self.class(*class).origins {
                    self.set_provenance(*class, origins, now);
                }
            }
            Op::Clear | Op::Reopen => self.classes.clear(),
        }
        true
    }

    fn register(&mut self, class: Sym, rows: &[Stated], now: u64) {
        let class = self.class(class);
        class.known = true;
        let before = std::mem::take(&mut class.own);
        for stated in rows {
            let key = (stated.class_side, stated.selector);
            let stated = class.attributed(stated);
            let same = before.get(&key).filter(|row| same_rows(&row.0, &stated)).cloned();
            class.own.entry(key).or_insert_with(|| same.unwrap_or((stated, now)));
        }
        for (key, row) in std::mem::take(&mut class.put_away) {
            class.extensions.entry(key).or_insert(row);
        }
    }

    fn set_provenance(&mut self, class: Sym, origins: BTreeMap<Sym, Sym>, now: u64) {
        let class = self.class(class);
        class.origins = origins;
        for (key, row) in class.own.clone() {
            let mut stated = row.0.clone();
            if stated.provenance == Provenance::Protocol && !stated.class_side {
                stated.provenance = Provenance::ClassBody;
                stated.origin = None;
            }
            let stated = class.attributed(&stated);
            if stated != row.0 {
                class.own.insert(key, (stated, now));
            }
        }
    }

    fn purge(&mut self, class: Sym) {
        let class = self.class(class);
        class.known = false;
        class.own.clear();
        let extensions = std::mem::take(&mut class.extensions);
        class.put_away.extend(extensions);
    }

    fn put(&mut self, class: Sym, stated: &Stated, late: bool, now: u64) -> bool {
        let class = self.class(class);
        let key = (stated.class_side, stated.selector);
        if stated.provenance != Provenance::Extension {
            class.known = true;
            let stated = class.attributed(stated);
            class.own.insert(key, (stated, now));
            return true;
        }
        let shown = class.extensions.contains_key(&key);
        let earlier = class.extensions.get(&key).or(class.put_away.get(&key)).map(|row| row.0.version);
        let wanted = match earlier {
            None => !late,
            Some(0) => !late || stated.version == 0,
            Some(version) if late => stated.version == version,
            Some(version) => stated.version > version,
        };
        if !wanted {
            return false;
        }
        if late && !shown {
            class.put_away.insert(key, (stated.clone(), now));
        } else {
            class.put_away.remove(&key);
            class.extensions.insert(key, (stated.clone(), now));
        }
        true
    }

    fn reported(&self) -> Vec<Plain> {
        let mut reported = Vec::new();
        for (class, rows) in &self.classes {
            let mut winners = rows.own.clone();
            winners.extend(rows.extensions.clone());
            let plain = |(stated, generation): (Stated, u64)| Plain::stated(*class, &stated, generation);
            reported.extend(winners.into_values().map(plain));
        }
        reported
    }

    fn seen(&self) -> Seen {
        let rows = |rows: &ClassModel| rows.own.len() + rows.extensions.len() + rows.put_away.len();
        let indexed = self.classes.iter().filter(|(_, rows)| rows.known).map(|(class, _)| *class).collect();
        let defined = self.classes.iter().flat_map(|(class, rows)| {
            rows.own.keys().map(move |(side, selector)| (*class, *side, *selector))
        });
        derived(
            self.open,
            indexed,
            defined.collect(),
            self.classes.values().map(rows).sum(),
            &self.reported(),
        )
    }
}

/// Whether two statements give the same rows: order of references and repeated rows do not count.
fn same_rows(left: &Stated, right: &Stated) -> bool {
    Plain::stated(sym(1), left, 0).whole == Plain::stated(sym(1), right, 0).whole
}

// The comparison.

trait Index {
    fn apply(&self, op: &Op) -> bool;
    fn view(&self) -> Arc<View>;
    /// What the index makes of its own answers: nothing, unless it is a faulty one.
    fn distort(&self, _view: &View, seen: Seen) -> Seen {
        seen
    }
}

/// Applies a write; answers what `put_method` answered, and `true` for everything else.
fn write(index: &Xref, op: &Op) -> bool {
    let methods =
        |class: Sym, rows: &[Stated]| rows.iter().map(|stated| stated.method(class)).collect::<Vec<_>>();
    match op {
        Op::Register(class, rows) => index.register_class(*class, methods(*class, rows)).unwrap(),
        Op::PurgeClass(class) => index.purge_class(*class).unwrap(),
        Op::ForgetClass(class) => index.forget_class(*class).unwrap(),
        Op::Redefine(class, rows) => {
            index.purge_class(*class).unwrap();
            index.register_class(*class, methods(*class, rows)).unwrap();
        }
        Op::Put(class, stated, late) => {
            return index.put_method(stated.method(*class), *late, Patience::Refuse).unwrap();
        }
        Op::PurgeMethod(key) => index.purge_method(*key, Patience::Refuse).unwrap(),
        Op::PurgeExtension(class, selector) => {
            index.purge_extension(*class, *selector, Patience::Refuse).unwrap();
        }
        Op::SetProvenance(class, origins) => index.set_provenance(*class, origins.clone()).unwrap(),
        Op::RestrictProvenance(class, protocols) => index.restrict_provenance(*class, protocols).unwrap(),
        Op::Clear => drop(index.clear()),
        Op::Reopen => {
            drop(index.close());
            assert_eq!(index.purge_class(sym(1)), Err(Refused::Closed));
            assert!(!index.open());
            assert!(index.open(), "an index that is open stays so");
        }
    }
    true
}

impl Index for Xref {
    fn apply(&self, op: &Op) -> bool {
        write(self, op)
    }

    fn view(&self) -> Arc<View> {
        Arc::clone(&Xref::view(self))
    }
}

fn opened() -> Xref {
    let index = Xref::default();
    index.open();
    index
}

/// Runs a history on an index and on the model; the first difference is the error.
fn agrees(index: &dyn Index, history: &[Op]) -> Result<(), TestCaseError> {
    let mut model = Model { open: true, ..Model::default() };
    let mut was = observe(&index.view());
    for (step, op) in history.iter().enumerate() {
        let before = index.view();
        let accepted = index.apply(op);
        let now = index.view();
        let wanted = model.apply(op, now.version());
        prop_assert_eq!(accepted, wanted, "step {}, {:?}: whether it was taken", step, op);
        if matches!(op, Op::RestrictProvenance(..)) {
            prop_assert!(now.version() >= before.version(), "step {step}, {op:?}: the version fell");
        } else if accepted {
            prop_assert!(now.version() > before.version(), "step {step}, {op:?}: the version did not rise");
        } else {
            prop_assert_eq!(
                now.version(),
                before.version(),
                "step {}, {:?}: a refused write published",
                step,
                op
            );
        }
        same(&observe(&before), &was, || format!("step {step}, {op:?}: an earlier view"))?;

        was = observe(&now);
        let seen = index.distort(&now, was.clone());
        let everything = classes().collect();
        let reported: Vec<Plain> = now.methods_of(&everything).map(Plain::stored).collect();
        let recomputed =
            derived(seen.open, seen.indexed.clone(), seen.defined.clone(), seen.counts[1], &reported);
        same(&seen, &recomputed, || format!("step {step}, {op:?}: an index against the rows"))?;
        same(&seen, &model.seen(), || format!("step {step}, {op:?}: the index against the model"))?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn random_histories_leave_what_the_model_says(history in history()) {
        agrees(&opened(), &history)?;
    }

    /// The receiver-type filter against its definition, spelt out by hand.
    #[test]
    fn a_type_reaches_what_one_member_of_a_union_or_all_of_an_intersection_reach(
        recv_type in recv_type(),
        reaching in prop::collection::hash_set(class(), 0..4),
    ) {
        fn reaches(recv_type: &RecvType, reaching: &HashSet<Sym>) -> bool {
            match recv_type {
                RecvType::Dynamic => true,
                RecvType::Name(name) => reaching.contains(name),
                RecvType::Union(members) => {
                    let mut reached = false;
                    for member in members.iter() {
                        reached = reached || reaches(member, reaching);
                    }
                    reached
                }
                RecvType::Intersection(members) => {
                    let mut reached = true;
                    for member in members.iter() {
                        reached = reached && reaches(member, reaching);
                    }
                    reached
                }
            }
        }
        prop_assert_eq!(recv_type.may_reach(&|name| reaching.contains(&name)), reaches(&recv_type, &reaching));
    }
}

/// Posting lists and classes change their shape as they grow; a history with few names never gets there.
#[test]
fn lists_that_grow_and_shrink_through_every_shape_lose_nothing() {
    let index = opened();
    let (sent, referenced) = (sym(200), sym(1));
    let stated = |line: u32| Stated {
        class_side: false,
        selector: sym(1_000 + line),
        line,
        status: SourceStatus::Indexed,
        provenance: Provenance::PutMethod,
        origin: None,
        version: 0,
        sends: vec![Send {
            selector: sent,
            line,
            kind: RecvKind::ErlangFfi,
            target: Some(sym(300)),
            recv_type: RecvType::Dynamic,
        }],
        references: vec![Reference { class: referenced, line }],
        unresolved: vec![],
    };
    let check = |expected: &BTreeSet<u32>| {
        let view = Index::view(&index);
        let senders: BTreeSet<u32> = view.senders(sent, None).map(|row| row.method.line).collect();
        let references: BTreeSet<u32> = view.references(referenced).map(|(method, _)| method.line).collect();
        let callers: BTreeSet<u32> = view
            .native_callers(Some(sym(300)), None, usize::MAX)
            .unwrap()
            .iter()
            .map(|(_, line)| *line)
            .collect();
        let defined: BTreeSet<u32> = view.methods_of(&[sym(2)].into()).map(|method| method.line).collect();
        assert_eq!((&senders, &references), (expected, expected));
        assert_eq!((&callers, &defined), (expected, expected));
    };
    let mut expected = BTreeSet::new();
    for line in 1..=150 {
        index.apply(&Op::Put(sym(2), stated(line), false));
        expected.insert(line);
        check(&expected);
    }
    // In the middle of the list first, so that no end is special.
    for line in (1..=150).map(|step| (step * 67) % 151) {
        index.apply(&Op::PurgeMethod((sym(2), false, sym(1_000 + line))));
        expected.remove(&line);
        check(&expected);
    }
    assert!(expected.is_empty());
}

// Seeded faults.

#[derive(Clone, Copy, PartialEq, Debug)]
enum Fault {
    /// A live patch of the class side lands on the instance side.
    ForgetsTheClassSide,
    /// Purging a class takes the methods along that mention it.
    DeletesByTarget,
    /// A replaced method stays in the lists of senders.
    KeepsStalePostings,
    /// References of a replaced method stay.
    KeepsStaleReferences,
    /// Removing the upper layer takes the lower one with it.
    RemovesBothLayers,
    /// Removing an extension that is not there removes the class's own method.
    TakesTheSurvivor,
    /// A registration wipes the rows of extensions.
    ReloadWipesExtensions,
    /// A registration adds to what is there.
    ReindexAddsOnly,
    /// One method's update replaces the class.
    PartTakenForTheWhole,
    /// What a purge put away never comes back.
    PurgeForgets,
    /// What was put away comes back although it was removed meanwhile.
    GhostsComeBack,
    /// One extension makes a class count as indexed.
    ExtensionCountsAsIndexed,
    /// Origins hold until the next registration only.
    OriginsEndWithReload,
    /// Origins change the class side too.
    OriginsOnBothSides,
    /// Origins that a class does not use any more stay.
    KeepsForeignOrigins,
    /// A late row of an older extension replaces a newer one.
    TakesStaleExtensions,
    /// A background answer is taken though its extension is gone.
    TakesAnyCompletion,
    /// Of two entries for one method the last counts.
    LastEntryWins,
    /// Removing a method makes the class unknown.
    PurgeOfAMethodUnlearnsTheClass,
    /// Sends that wait for a name are dropped.
    DropsUnresolvedSends,
    /// The own row shows although an extension stands above it.
    ShowsTheLowerLayer,
    /// Purging a class leaves it indexed.
    PurgedClassStaysIndexed,
}

const FAULTS: [Fault; 22] = [
    Fault::ForgetsTheClassSide,
    Fault::DeletesByTarget,
    Fault::KeepsStalePostings,
    Fault::KeepsStaleReferences,
    Fault::RemovesBothLayers,
    Fault::TakesTheSurvivor,
    Fault::ReloadWipesExtensions,
    Fault::ReindexAddsOnly,
    Fault::PartTakenForTheWhole,
    Fault::PurgeForgets,
    Fault::GhostsComeBack,
    Fault::ExtensionCountsAsIndexed,
    Fault::OriginsEndWithReload,
    Fault::OriginsOnBothSides,
    Fault::KeepsForeignOrigins,
    Fault::TakesStaleExtensions,
    Fault::TakesAnyCompletion,
    Fault::LastEntryWins,
    Fault::PurgeOfAMethodUnlearnsTheClass,
    Fault::DropsUnresolvedSends,
    Fault::ShowsTheLowerLayer,
    Fault::PurgedClassStaysIndexed,
];

/// The real index behind a fault.
struct Faulty {
    fault: Fault,
    real: Xref,
    stale: RefCell<BTreeMap<Sym, BTreeSet<Line>>>,
    ghosts: RefCell<BTreeMap<MethodKey, Stated>>,
    extensions: RefCell<BTreeMap<MethodKey, Stated>>,
}

impl Faulty {
    fn new(fault: Fault) -> Self {
        let (stale, ghosts, extensions) = (RefCell::default(), RefCell::default(), RefCell::default());
        Self { fault, real: opened(), stale, ghosts, extensions }
    }

    fn now(&self) -> Arc<View> {
        Index::view(&self.real)
    }

    /// Remembers the rows of a method that is about to be replaced.
    fn haunt(&self, key: MethodKey) {
        let view = self.now();
        let Some(method) = view.method(key) else { return };
        let mut stale = self.stale.borrow_mut();
        if self.fault == Fault::KeepsStalePostings {
            for send in method.sends() {
                stale
                    .entry(send.selector)
                    .or_default()
                    .insert(PlainSend::stored(send).row(key, method.generation));
            }
        } else {
            for reference in method.references() {
                stale.entry(reference.class).or_default().insert(reference_row(
                    reference,
                    key,
                    method.generation,
                ));
            }
        }
    }

    fn put(&self, class: Sym, stated: &Stated, late: bool) -> bool {
        write(&self.real, &Op::Put(class, stated.clone(), late))
    }
}

impl Index for Faulty {
    fn apply(&self, op: &Op) -> bool {
        let real = &self.real;
        match (self.fault, op) {
            (Fault::ForgetsTheClassSide, Op::Put(class, stated, late)) => {
                self.put(*class, &Stated { class_side: false, ..stated.clone() }, *late)
            }
            (Fault::DeletesByTarget, Op::PurgeClass(class) | Op::Redefine(class, _)) => {
                let mentioning: Vec<MethodKey> =
                    self.now().references(*class).map(|(method, _)| method.key()).collect();
                for key in mentioning.into_iter().filter(|key| key.0 != *class) {
                    write(real, &Op::PurgeMethod(key));
                }
                write(real, op)
            }
            (Fault::KeepsStalePostings | Fault::KeepsStaleReferences, Op::Put(class, stated, _)) => {
                self.haunt((*class, stated.class_side, stated.selector));
                write(real, op)
            }
            (Fault::KeepsStalePostings | Fault::KeepsStaleReferences, Op::PurgeMethod(key)) => {
                self.haunt(*key);
                write(real, op)
            }
            (Fault::RemovesBothLayers, Op::PurgeMethod(_)) => write(real, op) && write(real, op),
            (Fault::RemovesBothLayers, Op::PurgeExtension(class, selector)) => {
                write(real, op) && write(real, &Op::PurgeMethod((*class, false, *selector)))
            }
            (Fault::TakesTheSurvivor, Op::PurgeExtension(class, selector)) => {
                write(real, &Op::PurgeMethod((*class, false, *selector)))
            }
            (Fault::ReloadWipesExtensions, Op::Register(class, _) | Op::Redefine(class, _)) => {
                for selector in selectors() {
                    write(real, &Op::PurgeExtension(*class, selector));
                }
                write(real, op)
            }
            (Fault::ReindexAddsOnly, Op::Register(class, rows)) if self.now().is_indexed(*class) => {
                for stated in rows {
                    self.put(*class, stated, false);
                }
                write(real, &Op::PurgeExtension(sym(99), sym(99)))
            }
            (Fault::PartTakenForTheWhole, Op::Put(class, stated, _))
                if stated.provenance != Provenance::Extension =>
            {
                write(real, &Op::Register(*class, vec![stated.clone()]))
            }
            (Fault::PurgeForgets, Op::PurgeClass(class)) => write(real, &Op::ForgetClass(*class)),
            (Fault::GhostsComeBack, Op::PurgeExtension(class, selector)) => {
                let key = (*class, false, *selector);
                if let Some(stated) = self.extensions.borrow().get(&key)
                    && self.now().method(key).is_none()
                {
                    self.ghosts.borrow_mut().insert(key, stated.clone());
                }
                write(real, op)
            }
            (Fault::GhostsComeBack, Op::Register(class, _)) => {
                write(real, op);
                for ghost in self.ghosts.borrow().iter().filter(|(key, _)| key.0 == *class) {
                    self.put(*class, ghost.1, false);
                }
                true
            }
            (Fault::GhostsComeBack, Op::Put(class, stated, false))
                if stated.provenance == Provenance::Extension =>
            {
                self.extensions.borrow_mut().insert((*class, false, stated.selector), stated.clone());
                write(real, op)
            }
            (Fault::ExtensionCountsAsIndexed, Op::Put(class, stated, _))
                if stated.provenance == Provenance::Extension && !self.now().is_indexed(*class) =>
            {
                let taken = write(real, op);
                if taken {
                    write(real, &Op::Register(*class, vec![]));
                }
                taken
            }
            (Fault::OriginsEndWithReload, Op::Register(class, _)) => {
                write(real, &Op::SetProvenance(*class, vec![])) && write(real, op)
            }
            (Fault::OriginsOnBothSides, Op::SetProvenance(class, _)) => {
                write(real, op);
                let view = self.now();
                for method in view
                    .methods_of(&[*class].into())
                    .filter(|method| method.class_side && method.provenance == Provenance::Protocol)
                {
                    let mut restated = method.clone();
                    restated.provenance = Provenance::ClassBody;
                    restated.origin = None;
                    real.put_method(restated, false, Patience::Refuse).unwrap();
                }
                true
            }
            (Fault::KeepsForeignOrigins, Op::RestrictProvenance(..)) => true,
            (Fault::TakesStaleExtensions, Op::Put(class, stated, false))
                if stated.provenance == Provenance::Extension =>
            {
                write(real, &Op::PurgeExtension(*class, stated.selector)) && write(real, op)
            }
            (Fault::TakesAnyCompletion, Op::Put(class, stated, true)) => self.put(*class, stated, false),
            (Fault::LastEntryWins, Op::Register(class, rows)) => {
                write(real, &Op::Register(*class, rows.iter().rev().cloned().collect()))
            }
            (Fault::PurgeOfAMethodUnlearnsTheClass, Op::PurgeMethod(key)) => {
                write(real, op);
                let view = self.now();
                if view.method_count(key.0) == 0 {
                    write(real, &Op::PurgeClass(key.0));
                }
                true
            }
            (Fault::DropsUnresolvedSends, Op::Put(class, stated, late)) => {
                self.put(*class, &Stated { unresolved: vec![], ..stated.clone() }, *late)
            }
            (Fault::PurgedClassStaysIndexed, Op::PurgeClass(class)) => {
                write(real, op) && write(real, &Op::Register(*class, vec![]))
            }
            _ => write(real, op),
        }
    }

    fn view(&self) -> Arc<View> {
        self.now()
    }

    fn distort(&self, view: &View, mut seen: Seen) -> Seen {
        match self.fault {
            Fault::KeepsStalePostings | Fault::KeepsStaleReferences => {
                for (name, rows) in &*self.stale.borrow() {
                    let lists = match self.fault {
                        Fault::KeepsStalePostings => &mut seen.senders,
                        _ => &mut seen.references,
                    };
                    let list = lists.entry(*name).or_default();
                    let stale: Vec<Line> = rows.iter().filter(|row| !list.contains(*row)).cloned().collect();
                    *list = sorted(list.drain(..).chain(stale));
                    lists.retain(|_, rows| !rows.is_empty());
                }
            }
            Fault::ShowsTheLowerLayer => {
                let shadowed: Vec<MethodKey> = seen
                    .defined
                    .iter()
                    .filter(|key| view.method(**key).is_some_and(|m| m.provenance == Provenance::Extension))
                    .copied()
                    .collect();
                for key in shadowed {
                    seen.methods.insert(key, "the class's own row".into());
                }
            }
            _ => {}
        }
        seen
    }
}

/// The comparison that accepts the index must refuse every faulty one, within the number of cases it usually
/// runs.
#[test]
fn every_seeded_fault_is_caught() {
    let unnoticed = survivors(FAULTS, history, |fault, history| agrees(&Faulty::new(fault), &history));
    assert!(unnoticed.is_empty(), "nobody noticed {unnoticed:?}");
}
