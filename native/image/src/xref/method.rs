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

/// A send as the index keeps it, in sixteen bytes: there are far more sends than anything else.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct PackedSend {
    selector: Sym,
    target: Option<Sym>,
    /// A name's word, or the place of a compound type in the method's own list.
    recv_type: u32,
    /// The line, then two bits each for the form of the receiver and of its type.
    line_and_forms: u32,
}

/// Longer texts have no lines that the index could tell apart.
pub const LAST_LINE: u32 = u32::MAX >> 4;

const DYNAMIC: u32 = 0;
const NAME: u32 = 1;
const COMPOUND: u32 = 2;

/// A receiver's type as a stored send has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecvTypeRef<'m> {
    /// Nothing is known.
    Dynamic,
    /// A class or protocol, or the tag of a class.
    Name(Sym),
    /// A union or an intersection.
    Compound(&'m RecvType),
}

impl RecvTypeRef<'_> {
    /// As [`RecvType::may_reach`].
    #[must_use]
    pub fn may_reach(&self, name_may: &impl Fn(Sym) -> bool) -> bool {
        match self {
            Self::Dynamic => true,
            Self::Name(name) => name_may(*name),
            Self::Compound(compound) => compound.may_reach(name_may),
        }
    }

    /// As [`RecvType::each_name`].
    pub fn each_name(&self, take: &mut impl FnMut(Sym)) {
        match self {
            Self::Dynamic => {}
            Self::Name(name) => take(*name),
            Self::Compound(compound) => compound.each_name(take),
        }
    }
}

/// A send as a reader sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SendRef<'m> {
    /// The selector sent.
    pub selector: Sym,
    /// Line within the method's text.
    pub line: u32,
    /// Form of the receiver.
    pub kind: RecvKind,
    /// The module of a call of an Erlang function, where it is known.
    pub target: Option<Sym>,
    /// Type of the receiver.
    pub recv_type: RecvTypeRef<'m>,
}

impl PackedSend {
    fn pack(send: Send, compounds: &mut Vec<RecvType>) -> Self {
        let (form, recv_type) = match send.recv_type {
            RecvType::Dynamic => (DYNAMIC, 0),
            RecvType::Name(name) => (NAME, name.word()),
            compound => {
                let place = compounds.iter().position(|known| *known == compound).unwrap_or(compounds.len());
                if place == compounds.len() {
                    compounds.push(compound);
                }
                (COMPOUND, u32::try_from(place).unwrap_or(u32::MAX))
            }
        };
        let kind = match send.kind {
            RecvKind::SelfRecv => 0,
            RecvKind::SuperRecv => 1,
            RecvKind::ErlangFfi => 2,
            RecvKind::Other => 3,
        };
        let line_and_forms = send.line.min(LAST_LINE) << 4 | kind << 2 | form;
        Self { selector: send.selector, target: send.target, recv_type, line_and_forms }
    }

    fn kind(self) -> RecvKind {
        match self.line_and_forms >> 2 & 3 {
            0 => RecvKind::SelfRecv,
            1 => RecvKind::SuperRecv,
            2 => RecvKind::ErlangFfi,
            _ => RecvKind::Other,
        }
    }

    fn unpack(self, compounds: &[RecvType]) -> SendRef<'_> {
        let recv_type = match self.line_and_forms & 3 {
            NAME => Sym::new(self.recv_type).map_or(RecvTypeRef::Dynamic, RecvTypeRef::Name),
            COMPOUND => {
                let compound = usize::try_from(self.recv_type).ok().and_then(|place| compounds.get(place));
                compound.map_or(RecvTypeRef::Dynamic, RecvTypeRef::Compound)
            }
            _ => RecvTypeRef::Dynamic,
        };
        SendRef {
            selector: self.selector,
            line: self.line_and_forms >> 4,
            kind: self.kind(),
            target: self.target,
            recv_type,
        }
    }
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

impl UnresolvedSend {
    /// The module called, if it is a name.
    #[must_use]
    pub fn known_target(&self) -> Option<Sym> {
        match &self.target {
            Some(Word::Known(module)) => Some(*module),
            _ => None,
        }
    }

    /// Whether both would be the same row: text that is no name does not show.
    fn looks_like(&self, other: &Self) -> bool {
        self.selector == other.selector
            && (self.line, self.kind, self.known_target()) == (other.line, other.kind, other.known_target())
    }
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
    sends: Box<[PackedSend]>,
    references: Box<[Reference]>,
    rare: Option<Box<Rare>>,
}

/// What few methods have.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
struct Rare {
    compounds: Vec<RecvType>,
    unresolved: Vec<UnresolvedSend>,
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
        let mut rare = Rare { compounds: Vec::new(), unresolved };
        let sends = sends.into_iter().map(|send| PackedSend::pack(send, &mut rare.compounds)).collect();
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
            sends,
            references: references.into(),
            rare: (rare != Rare::default()).then(|| Box::new(rare)),
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
            && self.rare == other.rare
    }

    /// Whether the library scans this method's text itself, so that its sends would be reported twice.
    #[must_use]
    pub fn is_sourced_extension(&self) -> bool {
        self.provenance == Provenance::Extension && self.status == SourceStatus::Indexed
    }

    fn compounds(&self) -> &[RecvType] {
        self.rare.as_ref().map_or(&[], |rare| &rare.compounds)
    }

    /// How many distinct sends there are.
    #[must_use]
    pub fn send_count(&self) -> usize {
        self.sends.len()
    }

    /// All sends, ordered by selector.
    pub fn sends(&self) -> impl DoubleEndedIterator<Item = SendRef<'_>> {
        self.sends.iter().map(|send| send.unpack(self.compounds()))
    }

    /// The sends of one selector, in the order in which they were stated.
    pub fn sends_of(&self, selector: Sym) -> impl Iterator<Item = SendRef<'_>> {
        let start = self.sends.partition_point(|send| send.selector < selector);
        let sends = self.sends.iter().skip(start).take_while(move |send| send.selector == selector);
        sends.map(|send| send.unpack(self.compounds()))
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
        self.rare.as_ref().map_or(&[], |rare| &rare.unresolved)
    }

    /// Sends of a text that has become the selector's, each row once: what a resolved send shows already is left out.
    pub fn unresolved_sends_of<'m>(
        &'m self,
        selector: Sym,
        text: &'m str,
    ) -> impl Iterator<Item = &'m UnresolvedSend> {
        let waiting = self.unresolved();
        let of_text =
            move |send: &UnresolvedSend| matches!(&send.selector, Word::Text(sent) if **sent == *text);
        let shown = move |send: &UnresolvedSend| {
            self.sends_of(selector).any(|known| {
                known.recv_type == RecvTypeRef::Dynamic
                    && (known.line, known.kind, known.target) == (send.line, send.kind, send.known_target())
            })
        };
        let distinct = waiting.iter().enumerate().filter(move |(place, send)| {
            of_text(send)
                && !waiting.iter().take(*place).any(|earlier| earlier.looks_like(send))
                && !shown(send)
        });
        distinct.map(|(_, send)| send)
    }

    /// Bytes that the method holds.
    #[must_use]
    pub fn bytes(&self) -> usize {
        // Two counts stand before what an `Arc` points to.
        size_of::<Self>()
            + 2 * size_of::<usize>()
            + size_of_val(&*self.sends)
            + size_of_val(&*self.references)
            + self.rare.as_ref().map_or(0, |rare| {
                size_of::<Rare>()
                    + rare.compounds.len() * size_of::<RecvType>()
                    + rare.unresolved.len() * size_of::<UnresolvedSend>()
            })
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
