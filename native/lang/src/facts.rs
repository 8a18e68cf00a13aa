//! What a live image asks of source text: where a method stands, what it sends, names and touches.
//!
//! A method's source is its own slice of the file ([`method_span`]), and lines are counted within it, the first being
//! 1. No walk recurses; every function is linear in the text it reads.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::ast::{
    ClassRef, Extension, File, Item, Member, Message, Method, Send, SlotAccess, SlotKind, Word,
};
use crate::parser::parse_method;
use crate::span::{LineIndex, Span};
use crate::tree::{Node, NodeKind, Tree};

/// Names longer than this many bytes appear in no row.
pub const MAX_NAME: usize = 255;

/// Which methods of a class: those of its instances or its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// Methods of instances.
    Instance,
    /// Methods of the class object.
    Class,
}

impl Side {
    fn of_class(class_side: bool) -> Self {
        if class_side { Side::Class } else { Side::Instance }
    }
}

/// Where a method comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// A class's body.
    ClassBody,
    /// An extension.
    Extension,
    /// A protocol's body: a provided method.
    Protocol,
    /// Generated for a slot that has no method of that name.
    SlotAccessor,
}

/// Whom a message goes to, judged by the direct receiver alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Recv {
    /// The word `self`.
    SelfRecv,
    /// `super`.
    Super,
    /// An Erlang module, or the look-up of one.
    ErlangFfi,
    /// Anything else.
    Other,
}

impl Recv {
    /// `self`, `super`, `erlang_ffi` or `other`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Recv::SelfRecv => "self",
            Recv::Super => "super",
            Recv::ErlangFfi => "erlang_ffi",
            Recv::Other => "other",
        }
    }
}

/// One message sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendHit {
    /// Its selector.
    pub selector: String,
    /// Line within the method's source.
    pub line: u32,
    /// Whom it goes to.
    pub recv: Recv,
    /// The Erlang module, if `recv` is [`Recv::ErlangFfi`].
    pub target_module: Option<String>,
    /// Its selector words in the text that was read: from the first's begin to the last's end.
    pub span: Span,
}

/// One class named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferenceHit {
    /// The name as written, without package.
    pub class: String,
    /// Line within the method's source.
    pub line: u32,
    /// Where the name stands in the text that was read.
    pub span: Span,
}

/// One access to a slot of `self`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotHit {
    /// The slot's name.
    pub slot: String,
    /// Line within the method's source.
    pub line: u32,
    /// Whether it is the target of an assignment; such an access is no read.
    pub write: bool,
    /// Where the name stands in the text that was read.
    pub span: Span,
}

/// A method of a file with what it sends, names and touches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodEntry {
    /// Class or protocol it belongs to, without package.
    pub class: String,
    /// Its side.
    pub side: Side,
    /// Its selector.
    pub selector: String,
    /// Where it comes from.
    pub origin: Origin,
    /// Its source: whole lines, docs included. A slot's declaration for [`Origin::SlotAccessor`].
    pub span: Span,
    /// Line of its header within its source; the file's line of the slot for [`Origin::SlotAccessor`].
    pub line: u32,
    /// Line of its header in the file.
    pub file_line: u32,
    /// Messages sent, in pre-order.
    pub sends: Vec<SendHit>,
    /// Classes named: parameter types, return type, body.
    pub references: Vec<ReferenceHit>,
    /// Slots touched, in pre-order.
    pub slot_accesses: Vec<SlotHit>,
}

/// Why a method's span cannot be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SpanErrorKind {
    /// Neither a class, nor a protocol, nor an extension of that name. Look in another file.
    ClassNotFound,
    /// The class is here, the method is not.
    SelectorNotFound,
    /// More than one method answers the question. Remove one by hand.
    Ambiguous,
    /// The class name or the selector is none. Correct the call.
    BadArgument,
}

impl SpanErrorKind {
    /// `class_not_found`, `selector_not_found`, `ambiguous` or `bad_argument`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            SpanErrorKind::ClassNotFound => "class_not_found",
            SpanErrorKind::SelectorNotFound => "selector_not_found",
            SpanErrorKind::Ambiguous => "ambiguous",
            SpanErrorKind::BadArgument => "bad_argument",
        }
    }
}

/// Why a method's span cannot be told, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanError {
    /// The reason.
    pub kind: SpanErrorKind,
    /// One sentence for people.
    pub message: String,
}

impl std::fmt::Display for SpanError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for SpanError {}

/// Positions within one method's source.
#[derive(Clone, Copy)]
struct Lines<'i> {
    index: &'i LineIndex,
    first: u32,
}

impl Lines<'_> {
    fn of(self, offset: u32) -> u32 {
        self.index.line(offset).saturating_sub(self.first) + 1
    }
}

/// Whether text can be a class's name.
fn is_class_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Whether text can be a selector: a word, keyword parts, or operator characters.
fn is_selector(selector: &str) -> bool {
    if selector.is_empty() {
        return false;
    }
    if selector.bytes().all(crate::lexer::is_op) {
        return true;
    }
    match selector.strip_suffix(':') {
        Some(parts) => parts.split(':').all(is_class_name),
        None => is_class_name(selector) || matches!(selector, "=:="),
    }
}

struct Found {
    core: Span,
}

/// The source of one method: whole lines with its docs, half-open. Splicing them back reproduces the file; splicing
/// nothing over them removes the method.
///
/// `class` is a name without package, `selector` the concatenated words. Methods of classes, provided methods of
/// protocols (side instance) and extensions are searched. Mistakes elsewhere in the file do not matter.
///
/// # Errors
/// See [`SpanErrorKind`].
pub fn method_span(tree: &Tree<'_>, class: &str, selector: &str, side: Side) -> Result<Span, SpanError> {
    let fail = |kind, message: String| Err(SpanError { kind, message });
    if !is_class_name(class) {
        return fail(SpanErrorKind::BadArgument, format!("`{class}` is no class name"));
    }
    if !is_selector(selector) {
        return fail(SpanErrorKind::BadArgument, format!("`{selector}` is no selector"));
    }
    let mut known = false;
    let mut found: Option<Found> = None;
    let mut many = false;
    let mut add = |core| {
        many |= found.is_some();
        found = Some(Found { core });
    };
    for item in file_items(tree) {
        let named = |name: Option<Word<'_>>| name.is_some_and(|n| n.text == class);
        let fits = |m: &Method<'_>| {
            Side::of_class(m.is_class_side()) == side && m.selector_text().as_ref() == selector
        };
        match item {
            Item::Class(def) if named(def.name()) => {
                known = true;
                def.methods().filter(fits).for_each(|m| add(m.core_span()));
            }
            Item::Protocol(def) if named(def.name()) => {
                known = true;
                def.provisions().filter(fits).for_each(|m| add(m.core_span()));
            }
            Item::Extension(ext) if named(ext.target().and_then(|t| t.name())) => {
                known = true;
                let (ext_side, method) = (Side::of_class(ext.is_class_side()), ext.method());
                if ext_side == side && method.is_some_and(|m| m.selector_text().as_ref() == selector) {
                    add(ext.core_span());
                }
            }
            _ => {}
        }
    }
    let place = match side {
        Side::Instance => class.to_owned(),
        Side::Class => format!("{class} class"),
    };
    match found {
        _ if many => {
            fail(SpanErrorKind::Ambiguous, format!("`{place}` has more than one method `{selector}` here"))
        }
        Some(found) => Ok(line_span(tree.source(), found.core)),
        None if known => {
            fail(SpanErrorKind::SelectorNotFound, format!("`{place}` has no method `{selector}` here"))
        }
        None => fail(SpanErrorKind::ClassNotFound, format!("no class or protocol `{class}` here")),
    }
}

fn file_items<'t>(tree: &'t Tree<'t>) -> impl Iterator<Item = Item<'t>> {
    tree.root().as_file().into_iter().flat_map(File::items)
}

fn line_begin(source: &[u8], at: usize) -> usize {
    source.get(..at).and_then(|s| s.iter().rposition(|b| *b == b'\n')).map_or(0, |n| n + 1)
}

/// Extends a core span to whole lines and upwards over `///` lines.
fn line_span(source: &[u8], core: Span) -> Span {
    let mut start = line_begin(source, core.start as usize);
    while start > 0 {
        let above = line_begin(source, start - 1);
        let line = source.get(above..start).unwrap_or_default();
        let line = line.trim_ascii_start();
        if !line.starts_with(b"///") {
            break;
        }
        start = above;
    }
    let rest = source.get(core.end as usize..).unwrap_or_default();
    let end = rest.iter().position(|b| *b == b'\n').map_or(source.len(), |n| core.end as usize + n + 1);
    Span::new(start as u32, end as u32)
}

/// Every message that the text of a method sends, in pre-order, lines counted from 1 within it.
///
/// The text is a method without its class. Text that is none answers what its readable parts send, often nothing.
#[must_use]
pub fn find_all_sends(method_source: &[u8]) -> Vec<SendHit> {
    let parse = parse_method(method_source);
    let index = LineIndex::new(parse.tree.source());
    sends(parse.tree.root(), &index, 1)
}

/// Every class that the text of a method names: parameter types, return type, body.
#[must_use]
pub fn find_references(method_source: &[u8]) -> Vec<ReferenceHit> {
    let parse = parse_method(method_source);
    let index = LineIndex::new(parse.tree.source());
    let mut hits = Vec::new();
    for node in parse.tree.root().children() {
        match Method::cast(node) {
            Some(method) => hits.append(&mut references(method, &index, 1)),
            None => body_references(node, Lines { index: &index, first: 1 }, &mut hits),
        }
    }
    hits
}

/// Every access to a slot of `self` in the text of a method, in pre-order.
#[must_use]
pub fn find_slot_accesses(method_source: &[u8]) -> Vec<SlotHit> {
    let parse = parse_method(method_source);
    let index = LineIndex::new(parse.tree.source());
    slot_accesses(parse.tree.root(), &index, 1)
}

/// Messages that answer no module when sent to `Erlang`.
fn is_class_message(selector: &str) -> bool {
    matches!(
        selector,
        "new"
            | "spawn"
            | "class"
            | "methods"
            | "superclass"
            | "subclasses"
            | "allSubclasses"
            | "class_name"
            | "module_name"
            | "printString"
    )
}

fn without_parens(mut node: Node<'_>) -> Node<'_> {
    while node.kind() == NodeKind::Paren {
        let Some(inner) = node.first_child() else { break };
        node = inner;
    }
    node
}

fn is_erlang(node: Node<'_>) -> bool {
    let node = without_parens(node);
    ClassRef::cast(node)
        .is_some_and(|c| c.package().is_none() && c.name().is_some_and(|n| n.text == "Erlang"))
}

/// The module that a node looks up: `Erlang lists`, in parentheses or not.
fn module_lookup(node: Node<'_>) -> Option<&str> {
    let node = without_parens(node);
    if node.kind() != NodeKind::UnarySend || !is_erlang(node.first_child()?) {
        return None;
    }
    let word = Send::cast(node)?.words().next()?;
    (!is_class_message(word.text)).then_some(word.text)
}

type Target<'t> = (Recv, Option<&'t str>);

/// Whom a message goes to, given its receiver and, if unary, its selector.
fn target<'t>(receiver: Node<'t>, unary: Option<&'t str>) -> Target<'t> {
    if let Some(module) = unary
        && is_erlang(receiver)
        && !is_class_message(module)
    {
        return (Recv::ErlangFfi, Some(module));
    }
    if let Some(module) = module_lookup(receiver) {
        return (Recv::ErlangFfi, Some(module));
    }
    match receiver.kind() {
        NodeKind::Super => (Recv::Super, None),
        NodeKind::Ident if receiver.text() == b"self" => (Recv::SelfRecv, None),
        _ => (Recv::Other, None),
    }
}

fn send_target(send: Send<'_>) -> Target<'_> {
    let unary = (send.node().kind() == NodeKind::UnarySend).then(|| send.words().next()).flatten();
    send.receiver().map_or((Recv::Other, None), |r| target(r, unary.map(|w| w.text)))
}

/// Whom all messages of a cascade go to.
fn cascade_target(cascade: Node<'_>) -> Target<'_> {
    let Some(head) = cascade.first_child() else { return (Recv::Other, None) };
    if let Some(send) = Send::cast(head) {
        return send_target(send);
    }
    let first = cascade.children().find_map(Message::cast);
    let unary = first.filter(|m| m.args().next().is_none()).and_then(|m| m.words().next());
    target(head, unary.map(|w| w.text))
}

fn push_send<'t>(
    hits: &mut Vec<SendHit>,
    words: impl Iterator<Item = Word<'t>>,
    (recv, module): Target<'_>,
    line: u32,
) {
    let mut selector = Cow::Borrowed("");
    let mut span: Option<Span> = None;
    for word in words {
        if selector.is_empty() {
            selector = Cow::Borrowed(word.text);
        } else {
            selector.to_mut().push_str(word.text);
        }
        let start = span.map_or(word.span.start, |s| s.start);
        span = Some(Span::new(start, word.span.end));
    }
    let module = module.filter(|m| m.len() <= MAX_NAME);
    if let Some(span) = span
        && selector.len() <= MAX_NAME
    {
        hits.push(SendHit {
            selector: selector.into_owned(),
            line,
            recv,
            target_module: module.map(str::to_owned),
            span,
        });
    }
}

/// Every message sent inside `node`, in pre-order. `first_line` is the file's line that counts as 1.
#[must_use]
pub fn sends(node: Node<'_>, index: &LineIndex, first_line: u32) -> Vec<SendHit> {
    let lines = Lines { index, first: first_line };
    let mut hits = Vec::new();
    // Beside each node, whom its messages go to if it stands in a cascade.
    let mut stack: Vec<(Node<'_>, Option<Target<'_>>)> = vec![(node, None)];
    while let Some((at, cascade)) = stack.pop() {
        if at != node
            && let Some(next) = at.next_sibling()
        {
            stack.push((next, cascade));
        }
        let mut inner = None;
        match at.kind() {
            NodeKind::UnarySend | NodeKind::BinarySend | NodeKind::KeywordSend if !at.is_broken() => {
                if let Some(send) = Send::cast(at) {
                    let offset = if at.kind() == NodeKind::KeywordSend {
                        send.words().next().map_or(at.span().start, |w| w.span.start)
                    } else {
                        at.span().start
                    };
                    push_send(&mut hits, send.words(), send_target(send), lines.of(offset));
                }
            }
            NodeKind::Cascade if !at.is_broken() => inner = Some(cascade_target(at)),
            NodeKind::Message => {
                if let (Some(target), Some(message)) = (cascade, Message::cast(at)) {
                    push_send(&mut hits, message.words(), target, lines.of(at.span().start));
                }
            }
            _ => {}
        }
        if let Some(child) = at.first_child() {
            stack.push((child, inner));
        }
    }
    hits
}

fn push_reference(hits: &mut Vec<ReferenceHit>, word: Word<'_>, line_at: u32, lines: Lines<'_>) {
    if word.text.len() <= MAX_NAME {
        hits.push(ReferenceHit { class: word.text.to_owned(), line: lines.of(line_at), span: word.span });
    }
}

/// The names in a type, in text order.
fn type_references(ty: Node<'_>, lines: Lines<'_>, hits: &mut Vec<ReferenceHit>) {
    for node in ty.preorder() {
        if matches!(node.kind(), NodeKind::TypeName | NodeKind::TypeGeneric | NodeKind::TypeMeta)
            && let Some(word) = first_word(node, 0)
        {
            push_reference(hits, word, word.span.start, lines);
        }
    }
}

fn first_word(node: Node<'_>, nth: u32) -> Option<Word<'_>> {
    let range = node.token_range();
    let token = range.start + nth;
    let text = std::str::from_utf8(node.tree().token_text(token)).ok()?;
    (token < range.end).then(|| Word { text, span: node.tree().token(token).span(), token })
}

fn body_references(body: Node<'_>, lines: Lines<'_>, hits: &mut Vec<ReferenceHit>) {
    let mut walk = body.preorder();
    while let Some(node) = walk.next() {
        match node.kind() {
            // Types of locals and block parameters are not recorded.
            kind if kind.is_type() => walk.skip_children(node),
            NodeKind::ClassRef => {
                if let Some(name) = ClassRef::cast(node).and_then(ClassRef::name) {
                    push_reference(hits, name, node.span().start, lines);
                }
            }
            NodeKind::PatTyped => {
                if let Some(class) = first_word(node, 2) {
                    push_reference(hits, class, class.span.start, lines);
                }
            }
            NodeKind::PatConstructor => {
                if let Some(class) = first_word(node, 0) {
                    push_reference(hits, class, class.span.start, lines);
                }
            }
            _ => {}
        }
    }
}

/// Every class that a method names: parameter types, return type, body in pre-order.
#[must_use]
pub fn references(method: Method<'_>, index: &LineIndex, first_line: u32) -> Vec<ReferenceHit> {
    let lines = Lines { index, first: first_line };
    let mut hits = Vec::new();
    for ty in method.params().filter_map(|p| p.ty()).chain(method.return_type()) {
        type_references(ty, lines, &mut hits);
    }
    if let Some(body) = method.body() {
        body_references(body, lines, &mut hits);
    }
    hits
}

/// Every access to a slot of `self` inside `node`, in pre-order.
#[must_use]
pub fn slot_accesses(node: Node<'_>, index: &LineIndex, first_line: u32) -> Vec<SlotHit> {
    let lines = Lines { index, first: first_line };
    let mut hits = Vec::new();
    let mut written = None;
    for at in node.preorder() {
        if at.kind() == NodeKind::Assign {
            written = at.first_child().map(Node::id);
            continue;
        }
        if let Some(access) = SlotAccess::cast(at).filter(|a| a.is_of_self())
            && let Some(slot) = access.slot().filter(|s| s.text.len() <= MAX_NAME)
        {
            hits.push(SlotHit {
                slot: slot.text.to_owned(),
                line: lines.of(slot.span.start),
                write: written == Some(at.id()),
                span: slot.span,
            });
        }
    }
    hits
}

/// Finds the lines of methods without reading a line twice.
struct Spans<'s> {
    source: &'s [u8],
    index: LineIndex,
    /// Line of a method, and the first line of the docs above it.
    last: Option<(u32, u32)>,
}

impl Spans<'_> {
    fn line_text(&self, line: u32) -> &[u8] {
        let start = self.index.line_start(line) as usize;
        let rest = self.source.get(start..).unwrap_or_default();
        rest.get(..rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len())).unwrap_or_default()
    }

    fn whole_lines(&mut self, core: Span) -> Span {
        let line = self.index.line(core.start);
        let first = match self.last {
            Some((known, first)) if known == line => first,
            _ => {
                let mut first = line;
                while first > 1 && self.line_text(first - 1).trim_ascii_start().starts_with(b"///") {
                    first -= 1;
                }
                first
            }
        };
        self.last = Some((line, first));
        let after = self.index.line(core.end) + 1;
        let end = match self.index.line_start(after) {
            next if next > core.end => next,
            _ => self.source.len() as u32,
        };
        Span::new(self.index.line_start(first), end)
    }
}

/// Every method of a file with its facts: classes, protocols (provided methods), extensions, and the accessors
/// generated for `field:` slots, in file order. Cost: linear in the file.
#[must_use]
pub fn method_entries(tree: &Tree<'_>) -> Vec<MethodEntry> {
    let mut spans = Spans { source: tree.source(), index: LineIndex::new(tree.source()), last: None };
    let mut entries = Vec::new();
    for item in file_items(tree) {
        match item {
            Item::Class(def) => {
                let class = def.name().map_or("", |n| n.text);
                let own: HashSet<Cow<'_, str>> =
                    def.methods().filter(|m| !m.is_class_side()).map(|m| m.selector_text()).collect();
                for member in def.members() {
                    match member {
                        Member::Method(method) => {
                            push_entry(&mut entries, &mut spans, class, method, Origin::ClassBody, None);
                        }
                        Member::Slot(slot) if slot.kind() == SlotKind::Field => {
                            push_accessors(&mut entries, &spans, class, slot, &own);
                        }
                        _ => {}
                    }
                }
            }
            Item::Protocol(def) => {
                let class = def.name().map_or("", |n| n.text);
                for method in def.provisions() {
                    push_entry(&mut entries, &mut spans, class, method, Origin::Protocol, None);
                }
            }
            Item::Extension(ext) => {
                let class = ext.target().and_then(|t| t.name()).map_or("", |n| n.text);
                if let Some(method) = ext.method() {
                    push_entry(&mut entries, &mut spans, class, method, Origin::Extension, Some(ext));
                }
            }
            _ => {}
        }
    }
    entries
}

fn push_entry(
    entries: &mut Vec<MethodEntry>,
    spans: &mut Spans<'_>,
    class: &str,
    method: Method<'_>,
    origin: Origin,
    extension: Option<Extension<'_>>,
) {
    let selector = method.selector_text();
    if class.is_empty() || selector.is_empty() || class.len() > MAX_NAME || selector.len() > MAX_NAME {
        return;
    }
    let (core, side) = match extension {
        Some(ext) => (ext.core_span(), Side::of_class(ext.is_class_side())),
        None => (method.core_span(), Side::of_class(method.is_class_side())),
    };
    let span = spans.whole_lines(core);
    let index = &spans.index;
    let first = index.line(span.start);
    let file_line = index.line(core.start);
    entries.push(MethodEntry {
        class: class.to_owned(),
        side,
        selector: selector.into_owned(),
        origin,
        span,
        line: file_line - first + 1,
        file_line,
        sends: method.body().map(|b| sends(b, index, first)).unwrap_or_default(),
        references: references(method, index, first),
        slot_accesses: method.body().map(|b| slot_accesses(b, index, first)).unwrap_or_default(),
    });
}

/// The getter and the `with…:` setter of a value's slot, unless the class has its own.
fn push_accessors(
    entries: &mut Vec<MethodEntry>,
    spans: &Spans<'_>,
    class: &str,
    slot: crate::ast::Slot<'_>,
    own: &HashSet<Cow<'_, str>>,
) {
    let Some(name) = slot.name() else { return };
    let file_line = spans.index.line(slot.span().start);
    let mut references = Vec::new();
    if let Some(ty) = slot.ty() {
        type_references(ty, Lines { index: &spans.index, first: 1 }, &mut references);
    }
    for selector in [name.text.to_owned(), setter(name.text)] {
        if class.is_empty() || selector.len() > MAX_NAME || own.contains(selector.as_str()) {
            continue;
        }
        entries.push(MethodEntry {
            class: class.to_owned(),
            side: Side::Instance,
            selector,
            origin: Origin::SlotAccessor,
            span: slot.span(),
            line: file_line,
            file_line,
            sends: Vec::new(),
            references: references.clone(),
            slot_accesses: Vec::new(),
        });
    }
}

/// `withName:` for `name`: the setter that a value class gets for a slot.
#[must_use]
pub fn setter(slot: &str) -> String {
    let mut chars = slot.chars();
    let first = chars.next().map(|c| c.to_ascii_uppercase());
    format!("with{}{}:", first.map(String::from).unwrap_or_default(), chars.as_str())
}
