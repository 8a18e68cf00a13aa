//! The lossless tree.
//!
//! Nodes live in one vector, children before parents; a node names a range of tokens, its first child and its next
//! sibling. Tokens inside a node that belong to no child are its own. So the tree holds every token exactly once,
//! dropping it frees three vectors, and no walk needs recursion.

use std::ops::Range;

use crate::lexer::{Lexed, Token, TokenKind, Trivia, doc_lines, trivia};
use crate::span::Span;

const NONE: u32 = u32::MAX;

/// Set on error nodes and on sends whose receiver chain begins with one.
const BROKEN: u8 = 1;

/// Set on nodes without tokens that stand before the first token of their parent.
const LEADING: u8 = 2;

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum NodeKind {
    /// The whole text.
    File,
    /// Tokens that could not be read, or (without tokens) the place of something missing.
    Error,

    /// `Super subclass: Name …` with its members.
    ClassDef,
    /// `Protocol define: Name …` with its members.
    ProtocolDef,
    /// `type Name = …`.
    AliasDef,
    /// `Name >> selector => …`.
    Extension,
    /// `abstract`, `sealed`, `typed`, `internal` or `class` before a declaration.
    Modifier,
    /// `Name` or `package@Name` outside expressions.
    QualName,
    /// The name that a declaration introduces.
    DeclName,
    /// `(A, B :: Bound)` behind a declared name.
    TypeParams,
    /// One of them.
    TypeParam,
    /// `(Type, …)` behind a superclass or a used protocol.
    TypeArgs,
    /// `native: module`.
    NativeClause,
    /// `handleScope: #symbol`.
    HandleScopeClause,
    /// `shapeVersion: n`.
    ShapeVersionClause,
    /// `extending: Name`.
    ExtendingClause,
    /// `uses: Protocol …`.
    UsesLine,
    /// `excluding: #(…)`.
    ExcludingClause,
    /// `overriding: #(…)`.
    OverridingClause,
    /// `aliasing: #{…}`.
    AliasingClause,
    /// `#new => #old` in it.
    AliasPair,
    /// `field:`, `state:` or `classState:` with what it declares.
    Slot,
    /// `@expect category "reason"`.
    Expect,
    /// A method with its body.
    Method,
    /// A required signature of a protocol.
    Requirement,
    /// Selector words and parameters of a header.
    Selector,
    /// Parameter of a method.
    Param,
    /// `-> Type`.
    ReturnType,
    /// Statements of a method.
    Body,

    /// `^ expression`.
    Return,
    /// `statement !`.
    Cast,
    /// `target := value`, with a type between them if declared.
    Assign,
    /// `pattern := value`.
    Destructure,
    /// First send, then messages.
    Cascade,
    /// One message of a cascade; its children are the arguments.
    Message,
    /// `receiver word`.
    UnarySend,
    /// `left op right`.
    BinarySend,
    /// `receiver key: argument …`.
    KeywordSend,
    /// `receiver match: [arms]`.
    Match,
    /// `pattern when: [guard] -> body`.
    MatchArm,
    /// `when: [condition]`.
    Guard,
    /// Word that is no class name.
    Ident,
    /// Class name, or `package@Name`.
    ClassRef,
    /// `super`.
    Super,
    /// `base.slot`.
    SlotAccess,
    /// `[:x | …]`.
    Block,
    /// `:x`.
    BlockParam,
    /// `( … )`.
    Paren,
    /// `#( … )`.
    List,
    /// `#[ … ]`.
    Array,
    /// `#{ … }`.
    Map,
    /// `key => value`.
    MapPair,
    /// `...name` in a literal.
    Rest,
    /// Integer literal.
    Integer,
    /// Float literal.
    Float,
    /// Character literal.
    Char,
    /// String literal without holes.
    Str,
    /// String with holes; its children are the holes.
    Interpolation,
    /// `{ expression }` in a string.
    Hole,
    /// Symbol literal.
    Symbol,
    /// `@primitive …`.
    Primitive,
    /// `@intrinsic …`.
    Intrinsic,

    /// `_`.
    PatWildcard,
    /// `nil` in a pattern.
    PatNil,
    /// Name that binds.
    PatBind,
    /// `name :: Class`.
    PatTyped,
    /// Literal in a pattern, sign included.
    PatLiteral,
    /// `{a, b}`.
    PatTuple,
    /// `#[a, b]` as a pattern.
    PatArray,
    /// `#(a, b)` as a destructuring target.
    PatList,
    /// `#{key => pattern}` as a pattern.
    PatMap,
    /// One entry of it.
    PatMapEntry,
    /// `...rest` in a pattern.
    PatRest,
    /// `Name key: value …`.
    PatConstructor,
    /// `<<segment, …>>`.
    PatBinary,
    /// One segment.
    PatSegment,

    /// `A | B`.
    TypeUnion,
    /// `A & B`.
    TypeIntersection,
    /// `A \ B`.
    TypeDifference,
    /// `(A)`.
    TypeParen,
    /// `#symbol` as a type.
    TypeSymbol,
    /// `Self`.
    TypeSelf,
    /// `Self class`.
    TypeSelfClass,
    /// A type's name.
    TypeName,
    /// `Name(A, B)`; its children are the arguments.
    TypeGeneric,
    /// `Name class`.
    TypeMeta,
}

impl NodeKind {
    /// Whether nodes of this kind are unary, binary or keyword sends.
    #[must_use]
    pub fn is_send(self) -> bool {
        matches!(self, NodeKind::UnarySend | NodeKind::BinarySend | NodeKind::KeywordSend)
    }

    /// Whether nodes of this kind are types.
    #[must_use]
    pub fn is_type(self) -> bool {
        self as u8 >= NodeKind::TypeUnion as u8
    }

    /// Whether nodes of this kind are patterns.
    #[must_use]
    pub fn is_pattern(self) -> bool {
        (NodeKind::PatWildcard as u8..NodeKind::TypeUnion as u8).contains(&(self as u8))
    }

    fn chains_receiver(self) -> bool {
        self.is_send() || matches!(self, NodeKind::Cascade | NodeKind::Match | NodeKind::SlotAccess)
    }
}

/// Index of a node in its tree. Children have smaller indices than their parents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(u32);

#[derive(Clone, Copy, Debug)]
struct NodeData {
    first: u32,
    end: u32,
    child: u32,
    next: u32,
    kind: NodeKind,
    flags: u8,
}

const MISSING: NodeData =
    NodeData { first: 0, end: 0, child: NONE, next: NONE, kind: NodeKind::Error, flags: BROKEN };

/// Children of a node under construction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kids {
    first: u32,
    last: u32,
}

impl Kids {
    pub(crate) const EMPTY: Kids = Kids { first: NONE, last: NONE };

    pub(crate) fn is_empty(self) -> bool {
        self.first == NONE
    }
}

/// Nodes under construction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nodes(Vec<NodeData>);

impl Nodes {
    pub(crate) fn with_capacity(n: usize) -> Self {
        Self(Vec::with_capacity(n))
    }

    fn get(&self, id: u32) -> NodeData {
        self.0.get(id as usize).copied().unwrap_or(MISSING)
    }

    /// Adds a node over the tokens `first..end`.
    pub(crate) fn add(&mut self, kind: NodeKind, first: u32, end: u32, kids: Kids) -> NodeId {
        let broken = kind == NodeKind::Error
            || kids.first != NONE && kind.chains_receiver() && self.get(kids.first).flags & BROKEN != 0;
        if end > first && kids.first != NONE {
            self.mark_leading(kids.first, first);
        }
        let id = self.0.len() as u32;
        self.0.push(NodeData { first, end, child: kids.first, next: NONE, kind, flags: u8::from(broken) });
        NodeId(id)
    }

    /// Nodes without tokens stand behind the token before them; those at the begin of a parent that has tokens stand
    /// before the one that follows, or they would lie outside of it.
    fn mark_leading(&mut self, mut id: u32, first: u32) {
        let mut level = id;
        while let Some(node) = self.0.get_mut(id as usize)
            && node.first == first
            && node.end == first
        {
            node.flags |= LEADING;
            if node.next != NONE {
                id = node.next;
            } else {
                level = self.get(level).child;
                id = level;
            }
        }
    }

    pub(crate) fn append(&mut self, kids: &mut Kids, id: NodeId) {
        if kids.first == NONE {
            kids.first = id.0;
        } else if let Some(last) = self.0.get_mut(kids.last as usize) {
            last.next = id.0;
        }
        kids.last = id.0;
    }

    pub(crate) fn kind(&self, id: NodeId) -> NodeKind {
        self.get(id.0).kind
    }

    pub(crate) fn first(&self, id: NodeId) -> u32 {
        self.get(id.0).first
    }

    pub(crate) fn range(&self, id: NodeId) -> (u32, u32) {
        let node = self.get(id.0);
        (node.first, node.end)
    }

    pub(crate) fn set_kind(&mut self, id: NodeId, kind: NodeKind) {
        if let Some(node) = self.0.get_mut(id.0 as usize) {
            node.kind = kind;
        }
    }

    pub(crate) fn set_end(&mut self, id: NodeId, end: u32) {
        if let Some(node) = self.0.get_mut(id.0 as usize) {
            node.end = end;
        }
    }

    pub(crate) fn child(&self, id: NodeId) -> Option<NodeId> {
        Some(self.get(id.0).child).filter(|c| *c != NONE).map(NodeId)
    }

    pub(crate) fn next(&self, id: NodeId) -> Option<NodeId> {
        Some(self.get(id.0).next).filter(|c| *c != NONE).map(NodeId)
    }
}

/// A text and its tree.
#[derive(Clone, Debug)]
pub struct Tree<'s> {
    source: &'s [u8],
    lexed: Lexed,
    nodes: Nodes,
    root: NodeId,
}

impl<'s> Tree<'s> {
    pub(crate) fn new(source: &'s [u8], lexed: Lexed, mut nodes: Nodes, root: NodeId) -> Self {
        nodes.0.shrink_to_fit();
        Self { source, lexed, nodes, root }
    }

    /// The text that was read.
    #[must_use]
    pub fn source(&self) -> &'s [u8] {
        self.source
    }

    /// All tokens, the last being [`TokenKind::Eof`].
    #[must_use]
    pub fn tokens(&self) -> &[Token] {
        &self.lexed.tokens
    }

    /// Number of nodes.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.nodes.0.len()
    }

    /// The node of the whole text.
    #[must_use]
    pub fn root(&self) -> Node<'_> {
        self.node(self.root)
    }

    /// The node with this index, which must come from this tree; otherwise an empty error node.
    #[must_use]
    pub fn node(&self, id: NodeId) -> Node<'_> {
        Node { tree: self, id }
    }

    /// The token with this index; the end-of-text token for an index beyond it.
    #[must_use]
    pub fn token(&self, index: u32) -> Token {
        let tokens = &self.lexed.tokens;
        tokens.get(index as usize).or(tokens.last()).copied().unwrap_or(EOF)
    }

    /// The bytes of a token.
    #[must_use]
    pub fn token_text(&self, index: u32) -> &'s [u8] {
        self.token(index).span().slice(self.source)
    }

    fn gap(&self, index: u32) -> (u32, u32) {
        let start = if index == 0 { 0 } else { self.token(index - 1).end };
        (start, self.token(index).start.max(start))
    }

    /// The trivia between a token and the one before it.
    pub fn trivia_before(&self, index: u32) -> impl Iterator<Item = Trivia> + '_ {
        let (start, end) = self.gap(index);
        trivia(self.source, start, end, index == 0)
    }

    /// The lines of the doc comment attached to a token.
    #[must_use]
    pub fn doc_before(&self, index: u32) -> Vec<Span> {
        if !self.token(index).maybe_doc() {
            return Vec::new();
        }
        let (start, end) = self.gap(index);
        doc_lines(self.source, start, end, index == 0)
    }

    /// Writes the tree: every node's own tokens and children in order, each token behind its trivia. The answer
    /// equals the source. Cost: linear.
    #[must_use]
    pub fn print(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.source.len());
        let root = self.nodes.get(self.root.0);
        let mut at = root.first;
        // Each entry: the next child to print and the end of the node it belongs to.
        let mut stack = vec![(root.child, root.end)];
        while let Some((child, end)) = stack.pop() {
            let node = self.nodes.get(child);
            let stop = if child == NONE { end } else { node.first };
            while at < stop {
                let (start, _) = self.gap(at);
                out.extend_from_slice(Span::new(start, self.token(at).end).slice(self.source));
                at += 1;
            }
            if child != NONE {
                stack.push((node.next, end));
                stack.push((node.child, node.end));
            }
        }
        out
    }
}

const EOF: Token = Token::eof();

/// A node of a tree.
#[derive(Clone, Copy)]
pub struct Node<'t> {
    tree: &'t Tree<'t>,
    id: NodeId,
}

impl std::fmt::Debug for Node<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}@{}..{}", self.kind(), self.span().start, self.span().end)
    }
}

impl PartialEq for Node<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id && std::ptr::eq(self.tree, other.tree)
    }
}

impl Eq for Node<'_> {}

impl<'t> Node<'t> {
    fn data(self) -> NodeData {
        self.tree.nodes.get(self.id.0)
    }

    /// The tree it belongs to.
    #[must_use]
    pub fn tree(self) -> &'t Tree<'t> {
        self.tree
    }

    /// Its index.
    #[must_use]
    pub fn id(self) -> NodeId {
        self.id
    }

    /// What it is.
    #[must_use]
    pub fn kind(self) -> NodeKind {
        self.data().kind
    }

    /// Indices of its tokens, those of its children included.
    #[must_use]
    pub fn token_range(self) -> Range<u32> {
        self.data().first..self.data().end
    }

    /// From its first token's first byte to its last token's last byte. A node without tokens is an empty span
    /// behind the token before it, or before the next one if its parent begins there. The file's node covers the
    /// whole text.
    #[must_use]
    pub fn span(self) -> Span {
        let data = self.data();
        if data.kind == NodeKind::File {
            return Span::new(0, self.tree.source.len() as u32);
        }
        if data.first >= data.end {
            let leading = data.flags & LEADING != 0;
            let at = if leading {
                self.tree.token(data.first).start
            } else if data.first == 0 {
                0
            } else {
                self.tree.token(data.first - 1).end
            };
            return Span::new(at, at);
        }
        Span::new(self.tree.token(data.first).start, self.tree.token(data.end - 1).end)
    }

    /// Its bytes, trivia inside included.
    #[must_use]
    pub fn text(self) -> &'t [u8] {
        self.span().slice(self.tree.source)
    }

    /// Its children in order.
    pub fn children(self) -> impl Iterator<Item = Node<'t>> + Clone {
        let tree = self.tree;
        let wrap = move |id| (id != NONE).then_some(Node { tree, id: NodeId(id) });
        std::iter::successors(wrap(self.data().child), move |node| wrap(node.data().next))
    }

    pub(crate) fn next_sibling(self) -> Option<Node<'t>> {
        let next = self.data().next;
        (next != NONE).then_some(Node { tree: self.tree, id: NodeId(next) })
    }

    /// Its first child of the given kind.
    #[must_use]
    pub fn child(self, kind: NodeKind) -> Option<Node<'t>> {
        self.children().find(|c| c.kind() == kind)
    }

    /// Its first child.
    #[must_use]
    pub fn first_child(self) -> Option<Node<'t>> {
        self.children().next()
    }

    /// Whether it is an error node, or a send whose receiver chain begins with one.
    #[must_use]
    pub fn is_broken(self) -> bool {
        self.data().flags & BROKEN != 0
    }

    /// Its own tokens: those that belong to no child, with their indices.
    pub fn own_tokens(self) -> impl Iterator<Item = (u32, Token)> + 't {
        let data = self.data();
        let tree = self.tree;
        let (mut at, mut child) = (data.first, data.child);
        std::iter::from_fn(move || {
            loop {
                if child != NONE && tree.nodes.get(child).first <= at {
                    let node = tree.nodes.get(child);
                    (at, child) = (node.end.max(at), node.next);
                } else if at < data.end {
                    at += 1;
                    return Some((at - 1, tree.token(at - 1)));
                } else {
                    return None;
                }
            }
        })
    }

    /// Its first own token of the given kind.
    #[must_use]
    pub fn token(self, kind: TokenKind) -> Option<(u32, Token)> {
        self.own_tokens().find(|(_, t)| t.kind == kind)
    }

    /// It and everything below it, parents before children, in text order. Needs no recursion.
    #[must_use]
    pub fn preorder(self) -> Preorder<'t> {
        Preorder { tree: self.tree, root: self.id.0, stack: vec![self.id.0] }
    }
}

/// Iterator of [`Node::preorder`].
pub struct Preorder<'t> {
    tree: &'t Tree<'t>,
    root: u32,
    stack: Vec<u32>,
}

impl<'t> Preorder<'t> {
    /// Leaves out the children of the node answered last, which must be `node`.
    pub fn skip_children(&mut self, node: Node<'t>) {
        if node.data().child != NONE {
            self.stack.pop();
        }
    }
}

impl<'t> Iterator for Preorder<'t> {
    type Item = Node<'t>;

    fn next(&mut self) -> Option<Node<'t>> {
        let id = self.stack.pop()?;
        let data = self.tree.nodes.get(id);
        if data.next != NONE && id != self.root {
            self.stack.push(data.next);
        }
        if data.child != NONE {
            self.stack.push(data.child);
        }
        Some(Node { tree: self.tree, id: NodeId(id) })
    }
}
