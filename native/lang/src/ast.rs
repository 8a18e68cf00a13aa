//! Typed views of the tree.
//!
//! A view is a node whose kind is known; it copies nothing. Parts that the text lacks are `None`. Children are found
//! by walking siblings, so an accessor costs as much as the node has children.

use std::borrow::Cow;

use crate::lexer::TokenKind;
use crate::span::Span;
use crate::tree::{Node, NodeKind, Tree};

/// A word of the text: a name, a keyword part, an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word<'t> {
    /// Its text. Words are ASCII; anything else reads as empty.
    pub text: &'t str,
    /// Where it stands.
    pub span: Span,
    /// Index of its token.
    pub token: u32,
}

impl<'t> Word<'t> {
    fn of(node: Node<'t>, token: u32) -> Self {
        let tree = node.tree();
        let text = std::str::from_utf8(tree.token_text(token)).unwrap_or_default();
        Self { text, span: tree.token(token).span(), token }
    }

    pub(crate) fn first(node: Node<'t>) -> Option<Self> {
        let range = node.token_range();
        (!range.is_empty()).then(|| Self::of(node, range.start))
    }

    fn last(node: Node<'t>) -> Option<Self> {
        let range = node.token_range();
        (!range.is_empty()).then(|| Self::of(node, range.end - 1))
    }
}

/// The words among a node's own tokens: selector words of sends and headers.
fn own_words<'t>(node: Node<'t>) -> impl Iterator<Item = Word<'t>> {
    node.own_tokens().map(move |(i, _)| Word::of(node, i))
}

/// The concatenation of selector words.
fn join<'t>(words: impl Iterator<Item = Word<'t>>) -> Cow<'t, str> {
    let mut whole = Cow::Borrowed("");
    for word in words {
        if whole.is_empty() {
            whole = Cow::Borrowed(word.text);
        } else {
            whole.to_mut().push_str(word.text);
        }
    }
    whole
}

macro_rules! views {
    ($($(#[$doc:meta])* $name:ident = $($kind:ident)|+;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name<'t>(Node<'t>);

        impl<'t> $name<'t> {
            /// The view of a node of the right kind.
            #[must_use]
            pub fn cast(node: Node<'t>) -> Option<Self> {
                matches!(node.kind(), $(NodeKind::$kind)|+).then_some(Self(node))
            }

            /// The node.
            #[must_use]
            pub fn node(self) -> Node<'t> {
                self.0
            }

            /// Where it stands, without the trivia around it.
            #[must_use]
            pub fn span(self) -> Span {
                self.0.span()
            }
        }
    )*};
}

views! {
    /// A whole text.
    File = File;
    /// `Super subclass: Name …`.
    ClassDef = ClassDef;
    /// `Protocol define: Name …`.
    ProtocolDef = ProtocolDef;
    /// `type Name = …`.
    AliasDef = AliasDef;
    /// `Name >> selector => …`.
    Extension = Extension;
    /// `Name` or `package@Name` in a declaration.
    QualName = QualName;
    /// `A` or `A :: Bound`.
    TypeParam = TypeParam;
    /// `uses: Protocol …`.
    UsesLine = UsesLine;
    /// A slot.
    Slot = Slot;
    /// `@expect category "reason"`.
    Expect = Expect;
    /// A method with a body.
    Method = Method;
    /// A required signature.
    Requirement = Requirement;
    /// The selector of a header.
    Selector = Selector;
    /// A parameter of a header.
    Param = Param;
    /// A unary, binary or keyword send.
    Send = UnarySend | BinarySend | KeywordSend;
    /// A cascade.
    Cascade = Cascade;
    /// A message of a cascade.
    Message = Message;
    /// `receiver match: […]`.
    Match = Match;
    /// An arm of it.
    MatchArm = MatchArm;
    /// `target := value`.
    Assign = Assign;
    /// `pattern := value`.
    Destructure = Destructure;
    /// A class name in an expression.
    ClassRef = ClassRef;
    /// `base.slot`.
    SlotAccess = SlotAccess;
    /// A block.
    Block = Block;
    /// A parameter of a block.
    BlockParam = BlockParam;
    /// A string with holes.
    Interpolation = Interpolation;
    /// `@primitive …` or `@intrinsic …`.
    Directive = Primitive | Intrinsic;
}

/// One item of a file.
#[derive(Clone, Copy, Debug)]
pub enum Item<'t> {
    /// A class.
    Class(ClassDef<'t>),
    /// A protocol.
    Protocol(ProtocolDef<'t>),
    /// A type alias.
    Alias(AliasDef<'t>),
    /// An extension.
    Extension(Extension<'t>),
    /// A method outside of a class: a fragment's, or an error.
    Method(Method<'t>),
    /// Something that could not be read.
    Error(Node<'t>),
    /// A statement.
    Statement(Node<'t>),
}

impl<'t> File<'t> {
    /// What the file holds, in order.
    pub fn items(self) -> impl Iterator<Item = Item<'t>> + Clone {
        self.0.children().map(|node| match node.kind() {
            NodeKind::ClassDef => Item::Class(ClassDef(node)),
            NodeKind::ProtocolDef => Item::Protocol(ProtocolDef(node)),
            NodeKind::AliasDef => Item::Alias(AliasDef(node)),
            NodeKind::Extension => Item::Extension(Extension(node)),
            NodeKind::Method => Item::Method(Method(node)),
            NodeKind::Error => Item::Error(node),
            _ => Item::Statement(node),
        })
    }

    /// The classes.
    pub fn classes(self) -> impl Iterator<Item = ClassDef<'t>> + Clone {
        self.0.children().filter_map(ClassDef::cast)
    }

    /// The protocols.
    pub fn protocols(self) -> impl Iterator<Item = ProtocolDef<'t>> + Clone {
        self.0.children().filter_map(ProtocolDef::cast)
    }

    /// The extensions.
    pub fn extensions(self) -> impl Iterator<Item = Extension<'t>> + Clone {
        self.0.children().filter_map(Extension::cast)
    }

    /// The type aliases.
    pub fn aliases(self) -> impl Iterator<Item = AliasDef<'t>> + Clone {
        self.0.children().filter_map(AliasDef::cast)
    }
}

/// One member of a class or protocol.
#[derive(Clone, Copy, Debug)]
pub enum Member<'t> {
    /// A `uses:` line.
    Uses(UsesLine<'t>),
    /// A slot.
    Slot(Slot<'t>),
    /// `@expect` for the next declaration.
    Expect(Expect<'t>),
    /// A method; in a protocol a provided one.
    Method(Method<'t>),
    /// A required signature of a protocol.
    Requirement(Requirement<'t>),
    /// Something that could not be read.
    Error(Node<'t>),
}

fn member(node: Node<'_>) -> Option<Member<'_>> {
    Some(match node.kind() {
        NodeKind::UsesLine => Member::Uses(UsesLine(node)),
        NodeKind::Slot => Member::Slot(Slot(node)),
        NodeKind::Expect => Member::Expect(Expect(node)),
        NodeKind::Method => Member::Method(Method(node)),
        NodeKind::Requirement => Member::Requirement(Requirement(node)),
        NodeKind::Error => Member::Error(node),
        _ => return None,
    })
}

fn modifiers<'t>(node: Node<'t>) -> impl Iterator<Item = Word<'t>> + Clone {
    node.children().filter(|c| c.kind() == NodeKind::Modifier).filter_map(Word::first)
}

fn decl_name(node: Node<'_>) -> Option<Word<'_>> {
    node.child(NodeKind::DeclName).and_then(Word::first)
}

fn type_params<'t>(node: Node<'t>) -> impl Iterator<Item = TypeParam<'t>> {
    node.child(NodeKind::TypeParams).into_iter().flat_map(|p| p.children().filter_map(TypeParam::cast))
}

fn type_args<'t>(node: Node<'t>) -> impl Iterator<Item = Node<'t>> {
    node.child(NodeKind::TypeArgs).into_iter().flat_map(|a| a.children())
}

/// The first token of the `@expect`s that stand before a declaration, whose doc comment is the declaration's.
fn before_expects(tree: &Tree<'_>, mut first: u32) -> u32 {
    let is_expect = |at: Option<u32>| at.filter(|i| tree.token(*i).kind == TokenKind::AtExpect);
    // A category, perhaps a reason.
    while let Some(expect) = is_expect(first.checked_sub(2)).or(is_expect(first.checked_sub(3))) {
        first = expect;
    }
    first
}

/// The text of a doc comment: its lines without their slashes, joined by LF.
fn doc_text(node: Node<'_>) -> Option<String> {
    let tree = node.tree();
    let first = node.token_range().start;
    let mut lines = tree.doc_before(before_expects(tree, first));
    if lines.is_empty() {
        lines = tree.doc_before(first);
    }
    if lines.is_empty() {
        return None;
    }
    let mut text = String::new();
    for (i, span) in lines.iter().enumerate() {
        if i > 0 {
            text.push('\n');
        }
        let line = span.slice(tree.source());
        let line = line.strip_prefix(b"///").unwrap_or(line);
        let line = line.strip_prefix(b" ").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        text.push_str(&String::from_utf8_lossy(line));
    }
    Some(text)
}

macro_rules! documented {
    ($($name:ident)*) => {$(
        impl<'t> $name<'t> {
            /// Text of its doc comment.
            #[must_use]
            pub fn doc(self) -> Option<String> {
                doc_text(self.0)
            }
        }
    )*};
}

documented! { ClassDef ProtocolDef AliasDef Slot Method Requirement Expect }

impl<'t> ClassDef<'t> {
    /// `abstract`, `sealed`, `typed`, `internal`.
    pub fn modifiers(self) -> impl Iterator<Item = Word<'t>> + Clone {
        modifiers(self.0)
    }

    /// The superclass; named `nil` if the class has none.
    #[must_use]
    pub fn superclass(self) -> Option<QualName<'t>> {
        self.0.child(NodeKind::QualName).map(QualName)
    }

    /// Type arguments of the superclass.
    pub fn superclass_args(self) -> impl Iterator<Item = Node<'t>> {
        type_args(self.0)
    }

    /// The class's name.
    #[must_use]
    pub fn name(self) -> Option<Word<'t>> {
        decl_name(self.0)
    }

    /// Its type parameters.
    pub fn type_params(self) -> impl Iterator<Item = TypeParam<'t>> {
        type_params(self.0)
    }

    /// The module of `native:`.
    #[must_use]
    pub fn native(self) -> Option<Word<'t>> {
        clause_argument(self.0, NodeKind::NativeClause)
    }

    /// The symbol of `handleScope:`.
    #[must_use]
    pub fn handle_scope(self) -> Option<Word<'t>> {
        clause_argument(self.0, NodeKind::HandleScopeClause)
    }

    /// The number of `shapeVersion:`.
    #[must_use]
    pub fn shape_version(self) -> Option<Word<'t>> {
        clause_argument(self.0, NodeKind::ShapeVersionClause)
    }

    /// Its members in order.
    pub fn members(self) -> impl Iterator<Item = Member<'t>> {
        self.0.children().filter_map(member)
    }

    /// Its `uses:` lines in order.
    pub fn uses(self) -> impl Iterator<Item = UsesLine<'t>> {
        self.0.children().filter_map(UsesLine::cast)
    }

    /// Its slots in order.
    pub fn slots(self) -> impl Iterator<Item = Slot<'t>> {
        self.0.children().filter_map(Slot::cast)
    }

    /// Its methods in order.
    pub fn methods(self) -> impl Iterator<Item = Method<'t>> {
        self.0.children().filter_map(Method::cast)
    }
}

fn clause_argument(node: Node<'_>, kind: NodeKind) -> Option<Word<'_>> {
    let clause = node.child(kind)?;
    (clause.token_range().len() == 2).then(|| Word::last(clause)).flatten()
}

impl<'t> ProtocolDef<'t> {
    /// Modifiers, none of which a protocol may have.
    pub fn modifiers(self) -> impl Iterator<Item = Word<'t>> + Clone {
        modifiers(self.0)
    }

    /// The protocol's name.
    #[must_use]
    pub fn name(self) -> Option<Word<'t>> {
        decl_name(self.0)
    }

    /// Its type parameters.
    pub fn type_params(self) -> impl Iterator<Item = TypeParam<'t>> {
        type_params(self.0)
    }

    /// The protocol of `extending:`.
    #[must_use]
    pub fn extending(self) -> Option<QualName<'t>> {
        self.0.child(NodeKind::ExtendingClause)?.child(NodeKind::QualName).map(QualName)
    }

    /// Its members in order.
    pub fn members(self) -> impl Iterator<Item = Member<'t>> {
        self.0.children().filter_map(member)
    }

    /// Its required signatures in order.
    pub fn requirements(self) -> impl Iterator<Item = Requirement<'t>> {
        self.0.children().filter_map(Requirement::cast)
    }

    /// Its provided methods in order.
    pub fn provisions(self) -> impl Iterator<Item = Method<'t>> {
        self.0.children().filter_map(Method::cast)
    }
}

impl<'t> AliasDef<'t> {
    /// The alias's name.
    #[must_use]
    pub fn name(self) -> Option<Word<'t>> {
        decl_name(self.0)
    }

    /// Whether `internal` stands before it.
    #[must_use]
    pub fn is_internal(self) -> bool {
        modifiers(self.0).next().is_some()
    }

    /// The type it stands for.
    #[must_use]
    pub fn ty(self) -> Option<Node<'t>> {
        self.0.children().find(|c| c.kind().is_type())
    }
}

impl<'t> Extension<'t> {
    /// The extended class.
    #[must_use]
    pub fn target(self) -> Option<QualName<'t>> {
        self.0.child(NodeKind::QualName).map(QualName)
    }

    /// Whether it extends the class side.
    #[must_use]
    pub fn is_class_side(self) -> bool {
        modifiers(self.0).next().is_some()
    }

    /// The method.
    #[must_use]
    pub fn method(self) -> Option<Method<'t>> {
        self.0.child(NodeKind::Method).map(Method)
    }
}

impl<'t> QualName<'t> {
    /// The name without its package.
    #[must_use]
    pub fn name(self) -> Option<Word<'t>> {
        Word::last(self.0)
    }

    /// The package.
    #[must_use]
    pub fn package(self) -> Option<Word<'t>> {
        (self.0.token_range().len() > 1).then(|| Word::first(self.0)).flatten()
    }
}

impl<'t> TypeParam<'t> {
    /// The parameter's name.
    #[must_use]
    pub fn name(self) -> Option<Word<'t>> {
        Word::first(self.0)
    }

    /// The name behind `::`.
    #[must_use]
    pub fn bound(self) -> Option<Word<'t>> {
        (self.0.token_range().len() == 3).then(|| Word::last(self.0)).flatten()
    }
}

/// The text of a symbol literal: without `#`, quotes undone.
#[must_use]
pub fn symbol_text(literal: &[u8]) -> Cow<'_, str> {
    let text = literal.strip_prefix(b"#").unwrap_or(literal);
    match text.strip_prefix(b"'").and_then(|t| t.strip_suffix(b"'")) {
        Some(quoted) => Cow::Owned(String::from_utf8_lossy(quoted).replace("''", "'")),
        None => String::from_utf8_lossy(text),
    }
}

/// A symbol of a `uses:` clause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolRef<'t> {
    /// Its text without `#` and quotes.
    pub text: Cow<'t, str>,
    /// Where the literal stands.
    pub span: Span,
}

impl<'t> SymbolRef<'t> {
    fn of(node: Node<'t>) -> Option<Self> {
        (node.kind() == NodeKind::Symbol).then(|| Self { text: symbol_text(node.text()), span: node.span() })
    }
}

impl<'t> UsesLine<'t> {
    /// The used protocol.
    #[must_use]
    pub fn protocol(self) -> Option<QualName<'t>> {
        self.0.child(NodeKind::QualName).map(QualName)
    }

    /// Type arguments.
    pub fn type_args(self) -> impl Iterator<Item = Node<'t>> {
        type_args(self.0)
    }

    /// The clause of the given kind, for its span.
    #[must_use]
    pub fn clause(self, kind: NodeKind) -> Option<Node<'t>> {
        self.0.child(kind)
    }

    fn symbols(self, kind: NodeKind) -> impl Iterator<Item = SymbolRef<'t>> {
        self.0.child(kind).into_iter().flat_map(|c| c.children().filter_map(SymbolRef::of))
    }

    /// The selectors of `excluding:`.
    pub fn excluding(self) -> impl Iterator<Item = SymbolRef<'t>> {
        self.symbols(NodeKind::ExcludingClause)
    }

    /// The selectors of `overriding:`.
    pub fn overriding(self) -> impl Iterator<Item = SymbolRef<'t>> {
        self.symbols(NodeKind::OverridingClause)
    }

    /// The pairs of `aliasing:`, new selector first.
    pub fn aliasing(self) -> impl Iterator<Item = (SymbolRef<'t>, SymbolRef<'t>)> {
        self.0.child(NodeKind::AliasingClause).into_iter().flat_map(|c| c.children()).filter_map(|pair| {
            let mut symbols = pair.children().filter_map(SymbolRef::of);
            Some((symbols.next()?, symbols.next()?))
        })
    }
}

/// Which slot keyword a slot has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotKind {
    /// `field:`, a slot of a value.
    Field,
    /// `state:`, a slot of an actor.
    State,
    /// `classState:`, a slot of the class side.
    ClassState,
}

impl<'t> Slot<'t> {
    /// Its keyword.
    #[must_use]
    pub fn kind(self) -> SlotKind {
        match Word::first(self.0).map(|w| w.text) {
            Some("field:") => SlotKind::Field,
            Some("state:") => SlotKind::State,
            _ => SlotKind::ClassState,
        }
    }

    /// Words between the keyword and the name.
    pub fn modifiers(self) -> impl Iterator<Item = Word<'t>> {
        modifiers(self.0)
    }

    /// The slot's name.
    #[must_use]
    pub fn name(self) -> Option<Word<'t>> {
        decl_name(self.0)
    }

    /// Its declared type.
    #[must_use]
    pub fn ty(self) -> Option<Node<'t>> {
        self.0.token(TokenKind::DColon)?;
        self.0.children().find(|c| c.kind().is_type())
    }

    /// Its default.
    #[must_use]
    pub fn default(self) -> Option<Node<'t>> {
        self.0.token(TokenKind::Eq)?;
        self.0.children().find(|c| {
            !c.kind().is_type()
                && !matches!(c.kind(), NodeKind::Modifier | NodeKind::DeclName | NodeKind::Error)
        })
    }
}

impl<'t> Expect<'t> {
    /// The category it silences.
    #[must_use]
    pub fn category(self) -> Option<Word<'t>> {
        let range = self.0.token_range();
        (range.len() > 1).then(|| Word::of(self.0, range.start + 1))
    }
}

macro_rules! headers {
    ($($name:ident)*) => {$(
        impl<'t> $name<'t> {
            /// `class`, `sealed`, `internal`.
            pub fn modifiers(self) -> impl Iterator<Item = Word<'t>> + Clone {
                modifiers(self.0)
            }

            /// Whether the modifier `class` stands before it.
            #[must_use]
            pub fn is_class_side(self) -> bool {
                self.modifiers().any(|m| m.text == "class")
            }

            /// Its selector.
            #[must_use]
            pub fn selector(self) -> Option<Selector<'t>> {
                self.0.child(NodeKind::Selector).map(Selector)
            }

            /// Its selector's text, words concatenated; empty if it has none.
            #[must_use]
            pub fn selector_text(self) -> Cow<'t, str> {
                self.selector().map(Selector::text).unwrap_or_default()
            }

            /// Its parameters in order.
            pub fn params(self) -> impl Iterator<Item = Param<'t>> {
                self.selector().into_iter().flat_map(Selector::params)
            }

            /// Its return type.
            #[must_use]
            pub fn return_type(self) -> Option<Node<'t>> {
                self.0.child(NodeKind::ReturnType)?.first_child()
            }
        }
    )*};
}

headers! { Method Requirement }

impl<'t> Method<'t> {
    /// The node of its statements.
    #[must_use]
    pub fn body(self) -> Option<Node<'t>> {
        self.0.child(NodeKind::Body)
    }

    /// Its statements in order, error nodes included.
    pub fn statements(self) -> impl Iterator<Item = Node<'t>> {
        self.body().into_iter().flat_map(|b| b.children())
    }

    /// From its first token to the last byte of its last statement's expression: neither a final `.` nor `!`. Its
    /// first token alone if it has no statement. An extension's begins at the extended class's name, see
    /// [`Extension::core_span`].
    #[must_use]
    pub fn core_span(self) -> Span {
        let range = self.0.token_range();
        let first = self.0.tree().token(range.start).span();
        let Some(mut last) = self.statements().last() else { return first };
        if last.kind() == NodeKind::Cast {
            last = last.first_child().unwrap_or(last);
        }
        Span::new(first.start, last.span().end.max(first.end))
    }
}

impl Extension<'_> {
    /// From the package or class name to the last byte of the method's last statement.
    #[must_use]
    pub fn core_span(self) -> Span {
        let start = self.span().start;
        let first = self.0.tree().token(self.0.token_range().start).span();
        match self.method() {
            Some(method) if method.statements().next().is_some() => Span::new(start, method.core_span().end),
            _ => first,
        }
    }
}

impl<'t> Selector<'t> {
    /// Its words: one, or a keyword part per parameter.
    pub fn words(self) -> impl Iterator<Item = Word<'t>> {
        own_words(self.0)
    }

    /// The words concatenated.
    #[must_use]
    pub fn text(self) -> Cow<'t, str> {
        join(self.words())
    }

    /// Its parameters in order.
    pub fn params(self) -> impl Iterator<Item = Param<'t>> {
        self.0.children().filter_map(Param::cast)
    }
}

impl<'t> Param<'t> {
    /// The parameter's name.
    #[must_use]
    pub fn name(self) -> Option<Word<'t>> {
        Word::first(self.0)
    }

    /// Its declared type.
    #[must_use]
    pub fn ty(self) -> Option<Node<'t>> {
        self.0.children().find(|c| c.kind().is_type())
    }
}

impl<'t> Send<'t> {
    /// What the message is sent to.
    #[must_use]
    pub fn receiver(self) -> Option<Node<'t>> {
        self.0.first_child()
    }

    /// Selector words: the unary selector, the operator, or every keyword part.
    pub fn words(self) -> impl Iterator<Item = Word<'t>> {
        own_words(self.0)
    }

    /// The words concatenated.
    #[must_use]
    pub fn selector(self) -> Cow<'t, str> {
        join(self.words())
    }

    /// The arguments in order.
    pub fn args(self) -> impl Iterator<Item = Node<'t>> {
        self.0.children().skip(1)
    }
}

impl<'t> Message<'t> {
    /// Selector words.
    pub fn words(self) -> impl Iterator<Item = Word<'t>> {
        own_words(self.0)
    }

    /// The words concatenated.
    #[must_use]
    pub fn selector(self) -> Cow<'t, str> {
        join(self.words())
    }

    /// The arguments in order.
    pub fn args(self) -> impl Iterator<Item = Node<'t>> {
        self.0.children().filter(|c| c.kind() != NodeKind::Error || !c.token_range().is_empty())
    }
}

impl<'t> Cascade<'t> {
    /// What stands before the first `;`.
    #[must_use]
    pub fn head(self) -> Option<Node<'t>> {
        self.0.first_child()
    }

    /// What every message is sent to: the receiver of the head's send, or the head if that is none.
    #[must_use]
    pub fn receiver(self) -> Option<Node<'t>> {
        let head = self.head()?;
        match Send::cast(head) {
            Some(send) => send.receiver(),
            None => Some(head),
        }
    }

    /// The messages behind the head.
    pub fn messages(self) -> impl Iterator<Item = Message<'t>> {
        self.0.children().skip(1).filter_map(Message::cast)
    }
}

impl<'t> Match<'t> {
    /// What is matched.
    #[must_use]
    pub fn subject(self) -> Option<Node<'t>> {
        self.0.first_child()
    }

    /// `match:` or `matchExhaustive:`.
    #[must_use]
    pub fn keyword(self) -> Option<Word<'t>> {
        self.0.token(TokenKind::Keyword).map(|(i, _)| Word::of(self.0, i))
    }

    /// The arms in order.
    pub fn arms(self) -> impl Iterator<Item = MatchArm<'t>> {
        self.0.children().filter_map(MatchArm::cast)
    }
}

impl<'t> MatchArm<'t> {
    /// The pattern.
    #[must_use]
    pub fn pattern(self) -> Option<Node<'t>> {
        self.0.first_child()
    }

    /// The condition of `when:`.
    #[must_use]
    pub fn guard(self) -> Option<Node<'t>> {
        self.0.child(NodeKind::Guard)?.first_child()
    }

    /// What the arm answers.
    #[must_use]
    pub fn body(self) -> Option<Node<'t>> {
        self.0.token(TokenKind::Arrow)?;
        self.0.children().last()
    }
}

impl<'t> Assign<'t> {
    /// The variable or slot access.
    #[must_use]
    pub fn target(self) -> Option<Node<'t>> {
        self.0.first_child()
    }

    /// The declared type.
    #[must_use]
    pub fn ty(self) -> Option<Node<'t>> {
        self.0.children().nth(1).filter(|c| c.kind().is_type())
    }

    /// The value.
    #[must_use]
    pub fn value(self) -> Option<Node<'t>> {
        self.0.children().skip(1).last()
    }
}

impl<'t> Destructure<'t> {
    /// The pattern.
    #[must_use]
    pub fn pattern(self) -> Option<Node<'t>> {
        self.0.first_child()
    }

    /// The value.
    #[must_use]
    pub fn value(self) -> Option<Node<'t>> {
        self.0.children().nth(1)
    }
}

impl<'t> ClassRef<'t> {
    /// The class's name.
    #[must_use]
    pub fn name(self) -> Option<Word<'t>> {
        Word::last(self.0)
    }

    /// The package.
    #[must_use]
    pub fn package(self) -> Option<Word<'t>> {
        (self.0.token_range().len() > 1).then(|| Word::first(self.0)).flatten()
    }
}

impl<'t> SlotAccess<'t> {
    /// What stands before the dot.
    #[must_use]
    pub fn base(self) -> Option<Node<'t>> {
        self.0.first_child()
    }

    /// The slot's name.
    #[must_use]
    pub fn slot(self) -> Option<Word<'t>> {
        Word::last(self.0)
    }

    /// Whether it is `self.slot`, the only form that denotes a slot of the class.
    #[must_use]
    pub fn is_of_self(self) -> bool {
        self.base().is_some_and(|b| b.kind() == NodeKind::Ident && b.text() == b"self")
    }
}

impl<'t> Block<'t> {
    /// The parameters in order.
    pub fn params(self) -> impl Iterator<Item = BlockParam<'t>> {
        self.0.children().filter_map(BlockParam::cast)
    }

    /// The statements in order.
    pub fn statements(self) -> impl Iterator<Item = Node<'t>> {
        self.0.children().filter(|c| c.kind() != NodeKind::BlockParam)
    }
}

impl<'t> BlockParam<'t> {
    /// The parameter's name.
    #[must_use]
    pub fn name(self) -> Option<Word<'t>> {
        let range = self.0.token_range();
        (range.len() > 1).then(|| Word::of(self.0, range.start + 1))
    }

    /// Its declared type.
    #[must_use]
    pub fn ty(self) -> Option<Node<'t>> {
        self.0.children().find(|c| c.kind().is_type())
    }
}

/// A piece of a string with holes.
#[derive(Clone, Copy, Debug)]
pub enum StringPiece<'t> {
    /// Text as written, without the quotes at either end.
    Text(Span),
    /// A hole; its expression.
    Hole(Node<'t>),
    /// A hole that cannot be read.
    Error(Node<'t>),
}

impl<'t> Interpolation<'t> {
    /// Text pieces and holes in order; empty text pieces are left out.
    #[must_use]
    pub fn pieces(self) -> Vec<StringPiece<'t>> {
        let mut pieces = Vec::new();
        let text = self.0.own_tokens().filter_map(|(_, token)| {
            let span = match token.kind {
                TokenKind::StrOpen => Span::new(token.start + 1, token.end),
                TokenKind::StrText => token.span(),
                TokenKind::StrClose => Span::new(token.start, token.end.saturating_sub(1).max(token.start)),
                _ => return None,
            };
            (!span.is_empty()).then_some((span.start, StringPiece::Text(span)))
        });
        let holes = self.0.children().map(|node| {
            let piece = match (node.kind(), node.first_child()) {
                (NodeKind::Hole, Some(expr)) => StringPiece::Hole(expr),
                _ => StringPiece::Error(node),
            };
            (node.span().start, piece)
        });
        pieces.extend(text.chain(holes));
        pieces.sort_by_key(|(at, _)| *at);
        pieces.into_iter().map(|(_, piece)| piece).collect()
    }
}

impl<'t> Directive<'t> {
    /// Whether it is `@primitive`.
    #[must_use]
    pub fn is_primitive(self) -> bool {
        self.0.kind() == NodeKind::Primitive
    }

    /// The name behind it, quotes included if written with them.
    #[must_use]
    pub fn name(self) -> Option<Word<'t>> {
        (self.0.token_range().len() > 1).then(|| Word::last(self.0)).flatten()
    }
}

/// A pattern.
#[derive(Clone, Debug)]
pub enum Pattern<'t> {
    /// `_`.
    Wildcard,
    /// `nil`.
    Nil,
    /// A name that binds.
    Bind(Word<'t>),
    /// `name :: Class`.
    Typed(Word<'t>, Word<'t>),
    /// A literal as written.
    Literal(Span),
    /// `{a, b}`.
    Tuple(Vec<Node<'t>>),
    /// `#[a, b]`.
    Array(Vec<Node<'t>>),
    /// `#(a, b)`.
    List(Vec<Node<'t>>),
    /// `#{key => value}`; keys and values.
    Map(Vec<(Node<'t>, Node<'t>)>),
    /// `...rest`.
    Rest(Word<'t>),
    /// `Class key: value …`.
    Constructor {
        /// The class.
        class: Word<'t>,
        /// The keyword parts.
        keywords: Vec<Word<'t>>,
        /// A value per part.
        values: Vec<Node<'t>>,
    },
    /// `<<segment, …>>`; the segments.
    Binary(Vec<Node<'t>>),
}

impl<'t> Pattern<'t> {
    /// The pattern of a node; `None` for nodes that are no complete pattern.
    #[must_use]
    pub fn cast(node: Node<'t>) -> Option<Self> {
        let range = node.token_range();
        let children = || node.children().collect::<Vec<_>>();
        Some(match node.kind() {
            NodeKind::PatWildcard => Self::Wildcard,
            NodeKind::PatNil => Self::Nil,
            NodeKind::PatBind => Self::Bind(Word::first(node)?),
            NodeKind::PatTyped if range.len() >= 3 => {
                Self::Typed(Word::first(node)?, Word::of(node, range.start + 2))
            }
            NodeKind::PatLiteral => Self::Literal(node.span()),
            NodeKind::PatTuple => Self::Tuple(children()),
            NodeKind::PatArray => Self::Array(children()),
            NodeKind::PatList => Self::List(children()),
            NodeKind::PatMap => Self::Map(
                node.children()
                    .filter_map(|entry| {
                        let mut parts = entry.children();
                        Some((parts.next()?, parts.next()?))
                    })
                    .collect(),
            ),
            NodeKind::PatRest => Self::Rest(Word::last(node)?),
            NodeKind::PatConstructor => Self::Constructor {
                class: Word::first(node)?,
                keywords: own_words(node).filter(|w| w.text.ends_with(':') && w.text != "::").collect(),
                values: children(),
            },
            NodeKind::PatBinary => Self::Binary(children()),
            _ => return None,
        })
    }
}

/// A type.
#[derive(Clone, Debug)]
pub enum Type<'t> {
    /// `Name`.
    Name(Word<'t>),
    /// `Name(A, B)`.
    Generic(Word<'t>, Vec<Node<'t>>),
    /// `Name class`.
    Meta(Word<'t>),
    /// `Self`.
    SelfType,
    /// `Self class`.
    SelfClass,
    /// `#symbol`, as written.
    Symbol(Span),
    /// `(A)`.
    Paren(Node<'t>),
    /// `A | B | …`.
    Union(Vec<Node<'t>>),
    /// `A & B`.
    Intersection(Node<'t>, Node<'t>),
    /// `A \ B`.
    Difference(Node<'t>, Node<'t>),
}

impl<'t> Type<'t> {
    /// The type of a node; `None` for nodes that are no type.
    #[must_use]
    pub fn cast(node: Node<'t>) -> Option<Self> {
        let two = || {
            let mut children = node.children();
            Some((children.next()?, children.next()?))
        };
        Some(match node.kind() {
            NodeKind::TypeName => Self::Name(Word::first(node)?),
            NodeKind::TypeGeneric => Self::Generic(Word::first(node)?, node.children().collect()),
            NodeKind::TypeMeta => Self::Meta(Word::first(node)?),
            NodeKind::TypeSelf => Self::SelfType,
            NodeKind::TypeSelfClass => Self::SelfClass,
            NodeKind::TypeSymbol => Self::Symbol(node.span()),
            NodeKind::TypeParen => Self::Paren(node.first_child()?),
            NodeKind::TypeUnion => Self::Union(node.children().collect()),
            NodeKind::TypeIntersection => two().map(|(a, b)| Self::Intersection(a, b))?,
            NodeKind::TypeDifference => two().map(|(a, b)| Self::Difference(a, b))?,
            _ => return None,
        })
    }
}

/// An expression or statement.
#[derive(Clone, Copy, Debug)]
pub enum Expr<'t> {
    /// A variable, or one of `self`, `true`, `false`, `nil`.
    Ident(Word<'t>),
    /// A class name.
    Class(ClassRef<'t>),
    /// `super`.
    Super,
    /// `base.slot`.
    Slot(SlotAccess<'t>),
    /// Integer, float, character, symbol or string without holes, as written.
    Literal(Node<'t>),
    /// A string with holes.
    Interpolation(Interpolation<'t>),
    /// A send.
    Send(Send<'t>),
    /// A cascade.
    Cascade(Cascade<'t>),
    /// A match.
    Match(Match<'t>),
    /// A block.
    Block(Block<'t>),
    /// Parentheses; what they hold.
    Paren(Node<'t>),
    /// A list, array or map literal.
    Collection(Node<'t>),
    /// An assignment.
    Assign(Assign<'t>),
    /// A destructuring assignment.
    Destructure(Destructure<'t>),
    /// `^ value`; the value.
    Return(Node<'t>),
    /// `send !`; the send.
    Cast(Node<'t>),
    /// `@primitive` or `@intrinsic`.
    Directive(Directive<'t>),
    /// `@expect`.
    Expect(Expect<'t>),
    /// Something that could not be read.
    Error(Node<'t>),
}

impl<'t> Expr<'t> {
    /// The expression of a node; `None` for nodes that are none.
    #[must_use]
    pub fn cast(node: Node<'t>) -> Option<Self> {
        use NodeKind as N;
        Some(match node.kind() {
            N::Ident => Self::Ident(Word::first(node)?),
            N::ClassRef => Self::Class(ClassRef(node)),
            N::Super => Self::Super,
            N::SlotAccess => Self::Slot(SlotAccess(node)),
            N::Integer | N::Float | N::Char | N::Symbol | N::Str => Self::Literal(node),
            N::Interpolation => Self::Interpolation(Interpolation(node)),
            N::UnarySend | N::BinarySend | N::KeywordSend => Self::Send(Send(node)),
            N::Cascade => Self::Cascade(Cascade(node)),
            N::Match => Self::Match(Match(node)),
            N::Block => Self::Block(Block(node)),
            N::Paren => Self::Paren(node.first_child()?),
            N::List | N::Array | N::Map => Self::Collection(node),
            N::Assign => Self::Assign(Assign(node)),
            N::Destructure => Self::Destructure(Destructure(node)),
            N::Return => Self::Return(node.first_child()?),
            N::Cast => Self::Cast(node.first_child()?),
            N::Primitive | N::Intrinsic => Self::Directive(Directive(node)),
            N::Expect => Self::Expect(Expect(node)),
            N::Error => Self::Error(node),
            _ => return None,
        })
    }
}

impl<'t> crate::tree::Node<'t> {
    /// The view of a whole file; `None` unless this is the tree's root.
    #[must_use]
    pub fn as_file(self) -> Option<File<'t>> {
        File::cast(self)
    }
}
