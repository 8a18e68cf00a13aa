//! One method's rows: what it is, what it sends, what it references.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

use crate::sym::Sym;

/// A method within the index: owner, class side, selector.
pub type MethodKey = (Sym, bool, Sym);

/// To what a send is addressed, as far as its form tells.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RecvKind {
    /// `self`.
    SelfRecv,
    /// `super`.
    SuperRecv,
    /// A call of an Erlang function.
    ErlangFfi,
    /// Anything else.
    Other,
}

/// What the compiler knows of a receiver's type.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum RecvType {
    /// Nothing.
    Dynamic,
    /// A class or protocol, or the tag of a class.
    Name(Sym),
    /// One of several.
    Union(Arc<[RecvType]>),
    /// Several at once.
    Intersection(Arc<[RecvType]>),
}

impl RecvType {
    /// Whether a send to such a receiver may reach a class, given which names may: a union reaches what any member
    /// reaches, an intersection only what all of them do, and an unknown type may reach everything.
    #[must_use]
    pub fn may_reach(&self, name_may: &impl Fn(Sym) -> bool) -> bool {
        match self {
            Self::Dynamic => true,
            Self::Name(name) => name_may(*name),
            Self::Union(members) => members.iter().any(|member| member.may_reach(name_may)),
            Self::Intersection(members) => members.iter().all(|member| member.may_reach(name_may)),
        }
    }

    /// Hands every name within the type to `take`.
    pub fn each_name(&self, take: &mut impl FnMut(Sym)) {
        match self {
            Self::Dynamic => {}
            Self::Name(name) => take(*name),
            Self::Union(members) | Self::Intersection(members) => {
                members.iter().for_each(|member| member.each_name(take));
            }
        }
    }
}

/// One message send.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Send {
    /// The selector sent.
    pub selector: Sym,
    /// Line within the method's text, from 1.
    pub line: u32,
    /// Form of the receiver.
    pub kind: RecvKind,
    /// The module of a call of an Erlang function, where it is known.
    pub target: Option<Sym>,
    /// Type of the receiver.
    pub recv_type: RecvType,
}

/// A name that may have no word yet.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Word {
    /// A name of the table.
    Known(Sym),
    /// Text that was no name when the method was indexed.
    Text(Arc<str>),
}

/// A send that names something which was no name when the method was indexed; found by its text later.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct UnresolvedSend {
    /// The selector sent.
    pub selector: Word,
    /// Line within the method's text.
    pub line: u32,
    /// Form of the receiver.
    pub kind: RecvKind,
    /// The module of a call of an Erlang function.
    pub target: Option<Word>,
}

/// A mention of a class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reference {
    /// The class mentioned.
    pub class: Sym,
    /// Line within the method's text.
    pub line: u32,
}

/// Whether a method's text was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SourceStatus {
    /// Its sends and references are known.
    Indexed,
    /// A function without text: defined, but nobody can say what it sends.
    UnindexedRuntimeFun,
    /// Made by the compiler.
    Synthetic,
}

/// Where a method comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Provenance {
    /// The class's own text.
    ClassBody,
    /// A package that extends the class.
    Extension,
    /// A class made at run time.
    ClassBuilder,
    /// A live patch.
    PutMethod,
    /// A protocol's provided method, flattened into the class (ADR 0127 §12).
    Protocol,
}

impl Provenance {
    /// The layer that a single method of this provenance belongs to.
    #[must_use]
    pub fn layer(self) -> Layer {
        if self == Self::Extension { Layer::Extension } else { Layer::Class }
    }
}

/// Rows of a class lie in layers. The upper one is reported; removing it shows the one beneath.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layer {
    /// What the class itself defines.
    Class,
    /// What packages add to it.
    Extension,
}

/// A method with everything the index knows of it. Never changed once it is published.
#[derive(Clone, Debug)]
pub struct Method {
    /// The class key.
    pub owner: Sym,
    /// Whether it is on the class side.
    pub class_side: bool,
    /// Its selector.
    pub selector: Sym,
    /// Its line.
    pub line: u32,
    /// Whether its text was read.
    pub status: SourceStatus,
    /// Where it comes from.
    pub provenance: Provenance,
    /// The protocol that provides it.
    pub origin: Option<Sym>,
    /// The generation in which this row was written; set by the index.
    pub generation: u64,
    /// For an extension, the version of its registration; 0 if unknown.
    pub extension_version: u64,
    sends: Box<[Send]>,
    references: Box<[Reference]>,
    unresolved: Box<[UnresolvedSend]>,
}

/// What a caller states of a method, before the index takes it.
#[derive(Clone, Debug)]
pub struct MethodFacts {
    /// Its line.
    pub line: u32,
    /// Whether its text was read.
    pub status: SourceStatus,
    /// Where it comes from.
    pub provenance: Provenance,
    /// The protocol that provides it.
    pub origin: Option<Sym>,
    /// For an extension, the version of its registration; 0 if unknown.
    pub extension_version: u64,
    /// Its sends, in any order.
    pub sends: Vec<Send>,
    /// Its references, in any order.
    pub references: Vec<Reference>,
    /// Its sends that name what is no name yet.
    pub unresolved: Vec<UnresolvedSend>,
}

impl Method {
    /// A method from what a caller states: duplicates are dropped, rows are ordered for look-up.
    #[must_use]
    pub fn new(owner: Sym, class_side: bool, selector: Sym, facts: MethodFacts) -> Self {
        let mut sends = facts.sends;
        sends.sort_by_key(|send| send.selector);
        drop_repeated(&mut sends);
        let mut references = facts.references;
        references.sort_by_key(|reference| (reference.class, reference.line));
        references.dedup();
        let mut unresolved = facts.unresolved;
        drop_repeated(&mut unresolved);
        Self {
            owner,
            class_side,
            selector,
            line: facts.line,
            status: facts.status,
            provenance: facts.provenance,
            origin: facts.origin,
            generation: 0,
            extension_version: facts.extension_version,
            sends: sends.into(),
            references: references.into(),
            unresolved: unresolved.into(),
        }
    }

    /// Where the method stands in the index.
    #[must_use]
    pub fn key(&self) -> MethodKey {
        (self.owner, self.class_side, self.selector)
    }

    /// Whether two methods would give the same rows, their generation aside.
    #[must_use]
    pub fn same_rows(&self, other: &Self) -> bool {
        self.key() == other.key()
            && self.line == other.line
            && self.status == other.status
            && self.provenance == other.provenance
            && self.origin == other.origin
            && self.extension_version == other.extension_version
            && self.sends == other.sends
            && self.references == other.references
            && self.unresolved == other.unresolved
    }

    /// Whether the library scans this method's text itself, so that its sends would be reported twice.
    #[must_use]
    pub fn is_sourced_extension(&self) -> bool {
        self.provenance == Provenance::Extension && self.status == SourceStatus::Indexed
    }

    /// All sends, ordered by selector.
    #[must_use]
    pub fn sends(&self) -> &[Send] {
        &self.sends
    }

    /// The sends of one selector, in the order in which they were stated.
    pub fn sends_of(&self, selector: Sym) -> impl Iterator<Item = &Send> {
        let start = self.sends.partition_point(|send| send.selector < selector);
        self.sends.iter().skip(start).take_while(move |send| send.selector == selector)
    }

    /// All references, ordered by class and line.
    #[must_use]
    pub fn references(&self) -> &[Reference] {
        &self.references
    }

    /// The references to one class, by line.
    pub fn references_to(&self, class: Sym) -> impl Iterator<Item = &Reference> {
        let start = self.references.partition_point(|reference| reference.class < class);
        self.references.iter().skip(start).take_while(move |reference| reference.class == class)
    }

    /// Sends that name what was no name when the method was indexed.
    #[must_use]
    pub fn unresolved(&self) -> &[UnresolvedSend] {
        &self.unresolved
    }

    /// Bytes that the method holds.
    #[must_use]
    pub fn bytes(&self) -> usize {
        // Two counts stand before what an `Arc` points to.
        size_of::<Self>()
            + 2 * size_of::<usize>()
            + size_of_val(&*self.sends)
            + size_of_val(&*self.references)
            + size_of_val(&*self.unresolved)
    }
}

/// Drops later copies and keeps the order of the rest.
fn drop_repeated<T: Eq + Hash>(rows: &mut Vec<T>) {
    let repeated: Vec<bool> = {
        let mut seen = HashSet::with_capacity(rows.len());
        rows.iter().map(|row| !seen.insert(row)).collect()
    };
    let mut repeated = repeated.into_iter();
    rows.retain(|_| !repeated.next().unwrap_or(false));
}

#[cfg(test)]
pub(crate) mod tests_support {
    use super::*;

    pub(crate) fn sym(word: u32) -> Sym {
        Sym::new(word).unwrap()
    }

    pub(crate) fn facts(provenance: Provenance) -> MethodFacts {
        MethodFacts {
            line: 1,
            status: SourceStatus::Indexed,
            provenance,
            origin: None,
            extension_version: 0,
            sends: Vec::new(),
            references: Vec::new(),
            unresolved: Vec::new(),
        }
    }

    pub(crate) fn send(selector: u32, line: u32) -> Send {
        Send {
            selector: sym(selector),
            line,
            kind: RecvKind::Other,
            target: None,
            recv_type: RecvType::Dynamic,
        }
    }

    pub(crate) fn bare(owner: u32, class_side: bool, selector: u32) -> Method {
        Method::new(sym(owner), class_side, sym(selector), facts(Provenance::ClassBody))
    }
}

#[cfg(test)]
mod tests {
    use super::tests_support::*;
    use super::*;

    #[test]
    fn two_sends_that_agree_in_every_field_are_one_row() {
        let mut facts = facts(Provenance::ClassBody);
        facts.sends = vec![send(5, 3), send(6, 3), send(5, 3), send(5, 4)];
        let method = Method::new(sym(1), false, sym(2), facts);
        let lines: Vec<u32> = method.sends_of(sym(5)).map(|send| send.line).collect();
        assert_eq!(lines, [3, 4]);
        assert_eq!(method.sends_of(sym(4)).count() + method.sends_of(sym(7)).count(), 0);
    }

    #[test]
    fn sends_of_one_selector_keep_the_order_in_which_they_were_stated() {
        let mut facts = facts(Provenance::ClassBody);
        facts.sends = vec![send(5, 9), send(4, 1), send(5, 2)];
        let method = Method::new(sym(1), false, sym(2), facts);
        assert_eq!(method.sends_of(sym(5)).map(|send| send.line).collect::<Vec<_>>(), [9, 2]);
    }
}
