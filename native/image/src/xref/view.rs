//! One state of the index: the rows of every class, and the posting lists that are derived from them.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, OnceLock};

use super::method::{
    Layer, Method, MethodKey, Provenance, RecvKind, Reference, SendRef, UnresolvedSend, Word,
};
use super::method_set::MethodSet;
use crate::sym::{Map, Sym, SymHash};

/// What the index knows of one class.
#[derive(Default)]
struct ClassRows {
    /// Whether a registration or a live patch made the class known; extensions do not.
    known: bool,
    generation: u64,
    own: MethodSet,
    extensions: MethodSet,
    /// Extension rows put away by a purge until the class is registered again.
    put_away: MethodSet,
    /// Selector to protocol, for methods that traits flattened into the class.
    origins: BTreeMap<Sym, Sym>,
    /// The selectors of each side in the caller's order, once somebody has asked. Rows never change, so it stays true.
    ordered: [OnceLock<Box<[Sym]>>; 2],
}

impl Clone for ClassRows {
    fn clone(&self) -> Self {
        Self {
            known: self.known,
            generation: self.generation,
            own: self.own.clone(),
            extensions: self.extensions.clone(),
            put_away: self.put_away.clone(),
            origins: self.origins.clone(),
            // A copy is made to be changed.
            ordered: Default::default(),
        }
    }
}

impl ClassRows {
    fn winner(&self, key: MethodKey) -> Option<&Arc<Method>> {
        self.extensions.get(key).or_else(|| self.own.get(key))
    }

    fn winners(&self) -> impl Iterator<Item = &Arc<Method>> {
        let own = self.own.iter().filter(|method| self.extensions.get(method.key()).is_none());
        own.chain(self.extensions.iter())
    }

    fn is_blank(&self) -> bool {
        !self.known
            && self.own.is_empty()
            && self.extensions.is_empty()
            && self.put_away.is_empty()
            && self.origins.is_empty()
    }

    /// Gives the method the origin that the class's origins state for it.
    fn attribute(&self, method: &mut Method) {
        let flattened = matches!(method.provenance, Provenance::ClassBody | Provenance::Protocol);
        if let Some(origin) = self.origins.get(&method.selector)
            && flattened
            && !method.class_side
        {
            method.provenance = Provenance::Protocol;
            method.origin = Some(*origin);
        }
    }
}

/// How much the index holds.
#[derive(Debug, PartialEq, Eq, Clone, Copy, Default)]
pub struct Counts {
    /// Classes that count as indexed.
    pub classes: usize,
    /// Methods of both layers, shadowed ones included.
    pub methods: usize,
    /// Sends of reported methods.
    pub sends: usize,
    /// References of reported methods.
    pub references: usize,
    /// Sends whose selector or module was no name when they were indexed.
    pub unresolved_sends: usize,
    /// Distinct selectors sent.
    pub sent_selectors: usize,
    /// Bytes held.
    pub bytes: usize,
    /// The version of the last change.
    pub version: u64,
}

/// One state of the index. Immutable once published; cloning shares nearly everything.
#[derive(Clone)]
pub struct View {
    open: bool,
    version: u64,
    classes: Map<Sym, Arc<ClassRows>>,
    senders: Map<Sym, MethodSet>,
    references: Map<Sym, MethodSet>,
    implementors: Map<Sym, MethodSet>,
    /// By the module called; calls of a module that is not known stand under `None`.
    native_callers: Map<Option<Sym>, MethodSet>,
    /// Methods that send text which was no name, and that call modules which were none.
    text_senders: imbl::HashMap<Arc<str>, MethodSet>,
    text_callers: imbl::HashMap<Arc<str>, MethodSet>,
}

impl Default for View {
    fn default() -> Self {
        Self::new(false, 0)
    }
}

impl View {
    fn new(open: bool, version: u64) -> Self {
        Self {
            open,
            version,
            classes: Map::with_hasher(SymHash),
            senders: Map::with_hasher(SymHash),
            references: Map::with_hasher(SymHash),
            implementors: Map::with_hasher(SymHash),
            native_callers: Map::with_hasher(SymHash),
            text_senders: imbl::HashMap::new(),
            text_callers: imbl::HashMap::new(),
        }
    }

    pub(super) fn opened_after(earlier: &Self) -> Self {
        Self::new(true, earlier.version + 1)
    }

    pub(super) fn closed_after(earlier: &Self) -> Self {
        Self::new(false, earlier.version + 1)
    }

    /// Whether writes are taken.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Rises with every change and is never used twice.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    // Changes. Each states the class's next rows and the methods that may differ; `publish` does the rest.

    fn rows(&self, class: Sym) -> Arc<ClassRows> {
        self.classes.get(&class).map_or_else(Arc::default, Arc::clone)
    }

    pub(super) fn register_class(&mut self, class: Sym, methods: Vec<Method>) {
        let before = self.rows(class);
        let mut next = ClassRows::clone(&before);
        next.known = true;
        next.generation = self.version + 1;
        next.own = methods
            .into_iter()
            .map(|mut method| {
                next.attribute(&mut method);
                method.generation = next.generation;
                match before.own.get(method.key()) {
                    Some(same) if same.same_rows(&method) => Arc::clone(same),
                    _ => Arc::new(method),
                }
            })
            .collect();
        for method in std::mem::take(&mut next.put_away).iter() {
            if next.extensions.get(method.key()).is_none() {
                next.extensions.insert(Arc::clone(method));
            }
        }
        let touched = keys([&before.own, &next.own, &before.put_away]);
        self.publish(class, &before, next, touched);
    }

    pub(super) fn purge_class(&mut self, class: Sym) {
        let before = self.rows(class);
        let mut put_away = before.put_away.clone();
        before.extensions.iter().for_each(|method| put_away.insert(Arc::clone(method)));
        let next = ClassRows { put_away, origins: before.origins.clone(), ..ClassRows::default() };
        let touched = keys([&before.own, &before.extensions]);
        self.publish(class, &before, next, touched);
    }

    pub(super) fn forget_class(&mut self, class: Sym) {
        let before = self.rows(class);
        let touched = keys([&before.own, &before.extensions]);
        self.publish(class, &before, ClassRows::default(), touched);
    }

    pub(super) fn put_method(&mut self, mut method: Method, completes: bool) -> bool {
        let class = method.owner;
        let key = method.key();
        let before = self.rows(class);
        let mut next = ClassRows::clone(&before);
        next.attribute(&mut method);
        method.generation = self.version + 1;
        match method.provenance.layer() {
            Layer::Class => {
                next.known = true;
                next.own.insert(Arc::new(method));
            }
            Layer::Extension => {
                let shown = before.extensions.get(key);
                let earlier =
                    shown.or_else(|| before.put_away.get(key)).map(|earlier| earlier.extension_version);
                // A bare row must not replace the completed one of its own version; 0 is a caller without versions.
                let stale = earlier.is_some_and(|earlier| {
                    earlier > method.extension_version
                        || earlier == method.extension_version && earlier != 0 && !completes
                });
                if stale || completes && earlier != Some(method.extension_version) {
                    tracing::debug!(
                        version = method.extension_version,
                        ?earlier,
                        "late extension row dropped"
                    );
                    return false;
                }
                if completes && shown.is_none() {
                    // The class is between a purge and its registration, which will show the row again.
                    next.put_away.insert(Arc::new(method));
                } else {
                    next.put_away.remove(key);
                    next.extensions.insert(Arc::new(method));
                }
            }
        }
        self.publish(class, &before, next, vec![key]);
        true
    }

    pub(super) fn purge_method(&mut self, key: MethodKey) {
        let before = self.rows(key.0);
        let mut next = ClassRows::clone(&before);
        if before.extensions.get(key).is_some() {
            next.extensions.remove(key);
        } else {
            if before.own.get(key).is_none() {
                next.put_away.remove(key);
            }
            next.own.remove(key);
        }
        self.publish(key.0, &before, next, vec![key]);
    }

    pub(super) fn purge_extension(&mut self, class_key: Sym, selector: Sym) {
        // The class side is told apart by the class key alone.
        let key = (class_key, false, selector);
        let before = self.rows(class_key);
        let mut next = ClassRows::clone(&before);
        next.extensions.remove(key);
        next.put_away.remove(key);
        self.publish(class_key, &before, next, vec![key]);
    }

    pub(super) fn set_provenance(&mut self, class: Sym, origins: Vec<(Sym, Sym)>) {
        let before = self.rows(class);
        let mut next = ClassRows::clone(&before);
        next.origins = origins.into_iter().collect();
        let own = before.own.iter().map(|method| {
            let mut restated = Method::clone(method);
            if restated.provenance == Provenance::Protocol && !restated.class_side {
                restated.provenance = Provenance::ClassBody;
                restated.origin = None;
            }
            next.attribute(&mut restated);
            if restated.same_rows(method) {
                return Arc::clone(method);
            }
            restated.generation = self.version + 1;
            Arc::new(restated)
        });
        let own: MethodSet = own.collect();
        next.own = own;
        let touched = keys([&before.own]);
        self.publish(class, &before, next, touched);
    }

    pub(super) fn restrict_provenance(&mut self, class: Sym, protocols: &[Sym]) {
        let rows = self.rows(class);
        let kept: Vec<(Sym, Sym)> = rows
            .origins
            .iter()
            .filter(|(_, origin)| protocols.contains(origin))
            .map(|(selector, origin)| (*selector, *origin))
            .collect();
        if kept.len() < rows.origins.len() {
            self.set_provenance(class, kept);
        }
    }

    /// The one place where rows change: the class and every posting list move together.
    fn publish(&mut self, class: Sym, before: &ClassRows, next: ClassRows, touched: Vec<MethodKey>) {
        self.version += 1;
        for key in touched {
            let (old, new) = (before.winner(key), next.winner(key));
            match (old, new) {
                (Some(old), Some(new)) if Arc::ptr_eq(old, new) => {}
                (old, new) => self.repost(key, old.map(|old| &**old), new),
            }
        }
        if next.is_blank() {
            self.classes.remove(&class);
        } else {
            self.classes.insert(class, Arc::new(next));
        }
    }

    fn repost(&mut self, key: MethodKey, old: Option<&Method>, new: Option<&Arc<Method>>) {
        repost_in(&mut self.implementors, key, old, new, |method| vec![method.selector]);
        repost_in(&mut self.senders, key, old, new, sent);
        repost_in(&mut self.references, key, old, new, referenced);
        repost_in(&mut self.native_callers, key, old, new, called);
        let has_text = |method: &Method| !method.unresolved().is_empty();
        if old.is_some_and(has_text) || new.is_some_and(|new| has_text(new)) {
            repost_in(&mut self.text_senders, key, old, new, sent_text);
            repost_in(&mut self.text_callers, key, old, new, called_text);
        }
    }

    // Reads.

    /// Every send of the selector with the method that sends it, in no order. `text` is asked for only when
    /// [`View::has_unresolved`]: sends indexed before the selector was a name are found by it.
    pub fn senders<'v>(&'v self, selector: Sym, text: Option<&'v str>) -> impl Iterator<Item = SendRow<'v>> {
        let known =
            self.senders.get(&selector).into_iter().flat_map(MethodSet::iter).flat_map(move |method| {
                method.sends_of(selector).map(move |send| SendRow { method, send: Found::Resolved(send) })
            });
        let by_text = text.and_then(|text| self.text_senders.get(text)).into_iter().flat_map(MethodSet::iter);
        let unresolved = by_text.flat_map(move |method| {
            let sends = method.unresolved_sends_of(selector, text.unwrap_or_default());
            sends.map(move |send| SendRow { method, send: Found::Unresolved(send) })
        });
        known.chain(unresolved)
    }

    /// Whether any send waits for its selector or module to become a name.
    #[must_use]
    pub fn has_unresolved(&self) -> bool {
        !self.text_senders.is_empty() || !self.text_callers.is_empty()
    }

    /// Every reference to the class with the method that makes it, in no order.
    pub fn references(&self, class: Sym) -> impl Iterator<Item = (&Method, &Reference)> {
        let methods = self.references.get(&class).into_iter().flat_map(MethodSet::iter);
        methods
            .flat_map(move |method| method.references_to(class).map(move |reference| (&**method, reference)))
    }

    /// Every method of that selector, in no order.
    pub fn implementors(&self, selector: Sym) -> impl Iterator<Item = &Method> {
        self.implementors.get(&selector).into_iter().flat_map(MethodSet::iter).map(|method| &**method)
    }

    /// The selectors of one side of a class, in the order of `compare`, which must always be the same one. Cost: the
    /// answer's length, and one sort after each change of the class.
    pub fn selectors<R>(
        &self,
        class: Sym,
        class_side: bool,
        compare: impl Fn(Sym, Sym) -> Ordering,
        take: impl FnOnce(&[Sym]) -> R,
    ) -> R {
        let Some(rows) = self.classes.get(&class) else { return take(&[]) };
        let [instance, class_sided] = &rows.ordered;
        let ordered = if class_side { class_sided } else { instance };
        take(ordered.get_or_init(|| {
            let winners = rows.winners().filter(|method| method.class_side == class_side);
            let mut selectors: Vec<Sym> = winners.map(|method| method.selector).collect();
            selectors.sort_unstable_by(|first, second| compare(*first, *second));
            selectors.into()
        }))
    }

    /// How many methods a class has on both sides and in both layers together.
    #[must_use]
    pub fn method_count(&self, class: Sym) -> usize {
        self.classes.get(&class).map_or(0, |rows| rows.own.len() + rows.extensions.len())
    }

    /// The reported row of one method.
    #[must_use]
    pub fn method(&self, key: MethodKey) -> Option<&Method> {
        self.classes.get(&key.0)?.winner(key).map(|method| &**method)
    }

    /// Whether the class itself, extensions aside, defines the selector on that side.
    #[must_use]
    pub fn defines(&self, key: MethodKey) -> bool {
        self.classes.get(&key.0).is_some_and(|rows| rows.own.get(key).is_some())
    }

    /// Whether the class counts as indexed: it was registered, or a method of its own was patched.
    #[must_use]
    pub fn is_indexed(&self, class: Sym) -> bool {
        self.classes.get(&class).is_some_and(|rows| rows.known)
    }

    /// Every method that calls a function of the module, with the smallest line on which it does, in no order; `None`
    /// asks for calls of a module that is not known. `text` as in [`View::senders`]. Answers `None` where more than
    /// `limit` sends would have to be looked at.
    #[must_use]
    pub fn native_callers(
        &self,
        module: Option<Sym>,
        text: Option<&str>,
        limit: usize,
    ) -> Option<Vec<(&Method, u32)>> {
        let known = self.native_callers.get(&module).into_iter().flat_map(MethodSet::iter);
        let by_text = text.and_then(|text| self.text_callers.get(text)).into_iter().flat_map(MethodSet::iter);
        let mut looked_at = 0;
        let mut lines: BTreeMap<MethodKey, (&Method, u32)> = BTreeMap::new();
        for method in known.chain(by_text) {
            looked_at += method.send_count() + method.unresolved().len();
            if looked_at > limit {
                return None;
            }
            let resolved =
                method.sends().filter(|send| send.kind == RecvKind::ErlangFfi && send.target == module);
            let unresolved = method.unresolved().iter().filter(|send| {
                send.kind == RecvKind::ErlangFfi
                    && match (&send.target, text) {
                        (Some(Word::Text(called)), Some(text)) => **called == *text,
                        (Some(Word::Known(called)), _) => Some(*called) == module,
                        _ => false,
                    }
            });
            let smallest = resolved.map(|send| send.line).chain(unresolved.map(|send| send.line)).min();
            if let Some(line) = smallest {
                lines.insert(method.key(), (method, line));
            }
        }
        Some(lines.into_values().collect())
    }

    /// Every name that occurs in a receiver type of a send of the selector.
    #[must_use]
    pub fn receiver_names(&self, selector: Sym) -> HashSet<Sym> {
        let mut names = HashSet::new();
        for row in self.senders(selector, None) {
            if let Found::Resolved(send) = row.send {
                send.recv_type.each_name(&mut |name| {
                    names.insert(name);
                });
            }
        }
        names
    }

    /// Every reported method of the classes given, in no order.
    pub fn methods_of<'v>(&'v self, classes: &'v HashSet<Sym>) -> impl Iterator<Item = &'v Method> {
        classes
            .iter()
            .filter_map(|class| self.classes.get(class))
            .flat_map(|rows| rows.winners())
            .map(|method| &**method)
    }

    /// What the index holds. Cost: one walk over everything.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let mut counts = Counts {
            sent_selectors: self.senders.len(),
            version: self.version,
            bytes: size_of::<Self>(),
            ..Counts::default()
        };
        for rows in self.classes.values() {
            counts.classes += usize::from(rows.known);
            counts.bytes += size_of::<ClassRows>() + 2 * size_of::<usize>() + size_of::<(Sym, usize)>();
            for set in [&rows.own, &rows.extensions, &rows.put_away] {
                counts.methods += set.len();
                counts.bytes += set.bytes() + set.iter().map(|method| method.bytes()).sum::<usize>();
            }
            for method in rows.winners() {
                counts.sends += method.send_count();
                counts.references += method.references().len();
                counts.unresolved_sends += method.unresolved().len();
            }
        }
        let slot = size_of::<(Sym, MethodSet)>() * 3 / 2;
        let postings =
            [&self.senders, &self.references, &self.implementors].into_iter().flat_map(Map::values);
        counts.bytes +=
            postings.chain(self.native_callers.values()).map(|set| set.bytes() + slot).sum::<usize>();
        counts
    }
}

/// A send that a read found.
#[derive(Clone, Copy)]
pub struct SendRow<'v> {
    /// The method that sends.
    pub method: &'v Method,
    /// What it sends.
    pub send: Found<'v>,
}

/// A send as it was indexed.
#[derive(Clone, Copy)]
pub enum Found<'v> {
    /// With a selector that was a name.
    Resolved(SendRef<'v>),
    /// With a selector that was text.
    Unresolved(&'v UnresolvedSend),
}

fn keys<const N: usize>(sets: [&MethodSet; N]) -> Vec<MethodKey> {
    let mut keys: Vec<MethodKey> =
        sets.into_iter().flat_map(MethodSet::iter).map(|method| method.key()).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// Makes one kind of posting list name the new method where it named the old one. `terms` answers each term once.
fn repost_in<K, H>(
    index: &mut imbl::GenericHashMap<K, MethodSet, H, imbl::shared_ptr::DefaultSharedPtr>,
    key: MethodKey,
    old: Option<&Method>,
    new: Option<&Arc<Method>>,
    terms: impl Fn(&Method) -> Vec<K>,
) where
    K: std::hash::Hash + Ord + Clone,
    H: std::hash::BuildHasher + Clone,
{
    let wanted = new.map(|new| terms(new)).unwrap_or_default();
    for term in old.map(&terms).unwrap_or_default() {
        if wanted.binary_search(&term).is_ok() {
            continue;
        }
        let emptied = index.get_mut(&term).is_some_and(|methods| {
            methods.remove(key);
            methods.is_empty()
        });
        if emptied {
            index.remove(&term);
        }
    }
    if let Some(new) = new {
        for term in wanted {
            index.entry(term).or_default().insert(Arc::clone(new));
        }
    }
}

fn sent(method: &Method) -> Vec<Sym> {
    // Sends are ordered by selector.
    let mut selectors: Vec<Sym> = method.sends().map(|send| send.selector).collect();
    selectors.dedup();
    selectors
}

fn referenced(method: &Method) -> Vec<Sym> {
    let mut classes: Vec<Sym> = method.references().iter().map(|reference| reference.class).collect();
    classes.dedup();
    classes
}

fn called(method: &Method) -> Vec<Option<Sym>> {
    let resolved = method.sends().filter(|send| send.kind == RecvKind::ErlangFfi).map(|send| send.target);
    let known = method.unresolved().iter().filter_map(|send| match &send.target {
        Some(Word::Known(module)) if send.kind == RecvKind::ErlangFfi => Some(Some(*module)),
        _ => None,
    });
    distinct(resolved.chain(known))
}

fn sent_text(method: &Method) -> Vec<Arc<str>> {
    distinct(method.unresolved().iter().filter_map(|send| text_of(&send.selector)))
}

fn called_text(method: &Method) -> Vec<Arc<str>> {
    let calls = method.unresolved().iter().filter(|send| send.kind == RecvKind::ErlangFfi);
    distinct(calls.filter_map(|send| send.target.as_ref().and_then(text_of)))
}

fn text_of(word: &Word) -> Option<Arc<str>> {
    match word {
        Word::Known(_) => None,
        Word::Text(text) => Some(Arc::clone(text)),
    }
}

fn distinct<T: Ord>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut items: Vec<T> = items.collect();
    items.sort_unstable();
    items.dedup();
    items
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use proptest::prelude::*;

    use super::*;
    use crate::xref::method::tests_support::{facts, send, sym};
    use crate::xref::method::{RecvType, SourceStatus};

    type Postings = BTreeMap<String, BTreeMap<MethodKey, *const Method>>;

    fn plain<K: Debug, H>(
        index: &imbl::GenericHashMap<K, MethodSet, H, imbl::shared_ptr::DefaultSharedPtr>,
    ) -> Postings {
        let set = |set: &MethodSet| set.iter().map(|method| (method.key(), Arc::as_ptr(method))).collect();
        index.iter().map(|(term, methods)| (format!("{term:?}"), set(methods))).collect()
    }

    fn posted<K: Debug>(view: &View, terms: impl Fn(&Method) -> Vec<K>) -> Postings {
        let mut postings = Postings::new();
        for method in view.classes.values().flat_map(|rows| rows.winners()) {
            for term in terms(method) {
                let at = postings.entry(format!("{term:?}")).or_default();
                assert!(at.insert(method.key(), Arc::as_ptr(method)).is_none(), "two winners of one method");
            }
        }
        postings
    }

    /// Every posting list against the rows of the classes: the very method that is reported, no list left empty, no
    /// class kept of which nothing is known.
    fn check(view: &View) {
        let sent = |method: &Method| distinct(method.sends().map(|send| send.selector));
        let mentioned =
            |method: &Method| distinct(method.references().iter().map(|reference| reference.class));
        let calls = |method: &Method| {
            let foreign =
                method.sends().filter(|send| send.kind == RecvKind::ErlangFfi).map(|send| send.target);
            distinct(foreign)
        };
        let texts = |method: &Method| {
            distinct(method.unresolved().iter().filter_map(|send| match &send.selector {
                Word::Text(text) => Some(Arc::clone(text)),
                Word::Known(_) => None,
            }))
        };
        assert_eq!(plain(&view.senders), posted(view, sent));
        assert_eq!(plain(&view.references), posted(view, mentioned));
        assert_eq!(plain(&view.implementors), posted(view, |method| vec![method.selector]));
        assert_eq!(plain(&view.native_callers), posted(view, calls));
        assert_eq!(plain(&view.text_senders), posted(view, texts));
        for rows in view.classes.values() {
            assert!(!rows.is_blank());
            assert!(rows.put_away.iter().all(|method| rows.extensions.get(method.key()).is_none()));
        }
    }

    #[derive(Clone, Debug)]
    struct Draft {
        class: u32,
        class_side: bool,
        selector: u32,
        provenance: Provenance,
        version: u64,
        sends: Vec<(u32, bool, Option<u32>)>,
        references: Vec<u32>,
        text: bool,
    }

    impl Draft {
        fn method(&self) -> Method {
            let mut stated = facts(self.provenance);
            stated.extension_version = self.version;
            stated.status = SourceStatus::Indexed;
            stated.sends = self
                .sends
                .iter()
                .map(|(selector, foreign, target)| {
                    let kind = if *foreign { RecvKind::ErlangFfi } else { RecvKind::Other };
                    let recv_type = RecvType::Union([RecvType::Name(sym(1))].into());
                    super::super::method::Send {
                        kind,
                        target: target.map(sym),
                        recv_type,
                        ..send(*selector, 1)
                    }
                })
                .collect();
            stated.references =
                self.references.iter().map(|class| Reference { class: sym(*class), line: 1 }).collect();
            if self.text {
                let selector = Word::Text(Arc::from("later"));
                stated.unresolved =
                    vec![UnresolvedSend { selector, line: 1, kind: RecvKind::Other, target: None }];
            }
            Method::new(sym(self.class), self.class_side, sym(self.selector), stated)
        }
    }

    fn draft() -> impl Strategy<Value = Draft> {
        let provenances =
            vec![Provenance::ClassBody, Provenance::Extension, Provenance::PutMethod, Provenance::Protocol];
        let sends = prop::collection::vec((10..13u32, any::<bool>(), prop::option::of(20..22u32)), 0..3);
        let rows = (sends, prop::collection::vec(1..4u32, 0..3), any::<bool>());
        ((1..4u32, any::<bool>(), 10..13u32), prop::sample::select(provenances), 0..3u64, rows).prop_map(
            |((class, class_side, selector), provenance, version, (sends, references, text))| Draft {
                class,
                class_side,
                selector,
                provenance,
                version,
                sends,
                references,
                text,
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn posting_lists_are_what_the_rows_say(
            history in prop::collection::vec((0..16u8, prop::collection::vec(draft(), 1..4)), 1..24)
        ) {
            let mut view = View::opened_after(&View::default());
            for (kind, drafts) in history {
                let first = drafts[0].method();
                let class = first.owner;
                match kind {
                    0..3 => {
                        let own = drafts.iter().map(|draft| Draft { class: drafts[0].class, ..draft.clone() }.method());
                        view.register_class(class, own.collect());
                    }
                    3 => view.purge_class(class),
                    4 => view.forget_class(class),
                    5..11 => drop(view.put_method(first, kind == 5)),
                    11 => view.purge_method(first.key()),
                    12 => view.purge_extension(class, first.selector),
                    13 | 14 => view.set_provenance(class, vec![(first.selector, sym(30))]),
                    _ => view.restrict_provenance(class, &[]),
                }
                check(&view);
            }
        }
    }
}
