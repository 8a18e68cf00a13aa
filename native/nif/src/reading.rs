//! NIFs that hand the tree of a text to whoever runs it, as terms.
//!
//! Terms are built from the leaves upwards, without recursion. Names become atoms here, because a body that runs needs
//! them: only text that a developer loads into an image comes this way, and no more new atoms are made than the caller
//! allows for one text. Questions about text go through `lang.rs`, which makes none.

use std::collections::HashMap;

use beamtalk_lang::ast::{
    self, Block, Cascade, ClassDef, ClassRef, Directive, Expr, Extension, Interpolation, Item, Match, Method,
    Pattern, ProtocolDef, Requirement, SlotKind, StringPiece, Word,
};
use beamtalk_lang::facts::{self, Origin, Side};
use beamtalk_lang::parser::{parse, parse_method};
use beamtalk_lang::shell::{self, Input, Value};
use beamtalk_lang::span::Span;
use beamtalk_lang::tree::{Node, NodeId, NodeKind};
use rustler::{Atom, Binary, Encoder, Env, Term};

use crate::atoms;
use crate::terms::{binary, list, tuple};

/// Longest text that is turned into terms, in bytes. A term takes many times its text.
const MAX_TEXT: usize = 1024 * 1024;

/// Why a text has no terms.
enum Refusal {
    TooManyNames,
    NameTooLong,
    /// A part that is read but cannot run.
    Unsupported(&'static str, Span),
}

type Made<T> = Result<T, Refusal>;

struct Maker<'a, 't> {
    env: Env<'a>,
    allowance: usize,
    made: HashMap<NodeId, Term<'a>>,
    /// Spans of methods by class, side and selector.
    spans: HashMap<(String, Side, String), (u32, u32, u32)>,
    source: &'t [u8],
}

impl<'a> Maker<'a, '_> {
    fn name(&mut self, text: &str) -> Made<Term<'a>> {
        if let Ok(atom) = Atom::existing_from_utf8_bytes(self.env, text.as_bytes()) {
            return Ok(atom.encode(self.env));
        }
        self.allowance = self.allowance.checked_sub(1).ok_or(Refusal::TooManyNames)?;
        let made = Atom::from_utf8_bytes(self.env, text.as_bytes());
        made.map(|atom| atom.encode(self.env)).map_err(|_| Refusal::NameTooLong)
    }

    fn word(&mut self, word: Option<Word<'_>>) -> Made<Term<'a>> {
        self.name(word.map_or("", |w| w.text))
    }

    fn tagged(&self, tag: Atom, rest: &[Term<'a>]) -> Term<'a> {
        let mut all = vec![tag.encode(self.env)];
        all.extend_from_slice(rest);
        rustler::types::tuple::make_tuple(self.env, &all)
    }

    fn list(&self, terms: Vec<Term<'a>>) -> Term<'a> {
        list(self.env, terms.into_iter())
    }

    fn lit(&self, value: Term<'a>) -> Term<'a> {
        self.tagged(atoms::lit(), &[value])
    }

    /// The term of a node beneath the current one, which was made before it.
    fn of(&self, node: Option<Node<'_>>) -> Made<Term<'a>> {
        let node = node.ok_or(Refusal::Unsupported("an incomplete expression", Span::default()))?;
        self.made.get(&node.id()).copied().ok_or(Refusal::Unsupported("this expression", node.span()))
    }

    fn each<'n>(&self, nodes: impl Iterator<Item = Node<'n>>) -> Made<Term<'a>> {
        let terms = nodes.map(|node| self.of(Some(node))).collect::<Made<Vec<_>>>()?;
        Ok(self.list(terms))
    }

    fn statements<'n>(&self, nodes: impl Iterator<Item = Node<'n>>) -> Made<Term<'a>> {
        self.each(nodes.filter(|node| node.kind() != NodeKind::Expect))
    }

    fn literal_value(&mut self, text: &[u8], span: Span) -> Made<Term<'a>> {
        Ok(match shell::literal(text) {
            Some(Value::Integer(value)) => value.encode(self.env),
            Some(Value::Float(value)) => value.encode(self.env),
            Some(Value::Text(text)) => binary(self.env, text.as_bytes()),
            Some(Value::Symbol(name)) => self.name(&name)?,
            None => return Err(Refusal::Unsupported("this literal", span)),
        })
    }

    /// Makes the terms of every expression and pattern beneath a node.
    fn beneath(&mut self, root: Node<'_>) -> Made<()> {
        let nodes: Vec<Node<'_>> = root.preorder().collect();
        for node in nodes.into_iter().rev() {
            let term = if node.kind().is_pattern() { self.pattern(node)? } else { self.expr(node)? };
            if let Some(term) = term {
                self.made.insert(node.id(), term);
            }
        }
        Ok(())
    }

    fn expr(&mut self, node: Node<'_>) -> Made<Option<Term<'a>>> {
        let Some(expr) = Expr::cast(node) else { return Ok(None) };
        let env = self.env;
        Ok(Some(match expr {
            Expr::Ident(word) => match word.text {
                "self" => atoms::self_().encode(env),
                "true" | "false" | "nil" => {
                    let value = self.name(word.text)?;
                    self.lit(value)
                }
                name => {
                    let name = self.name(name)?;
                    self.tagged(atoms::var(), &[name])
                }
            },
            Expr::Class(class) => self.class_ref(class)?,
            Expr::Super => atoms::super_().encode(env),
            Expr::Slot(access) => {
                let base = self.of(access.base())?;
                let slot = self.word(access.slot())?;
                self.tagged(atoms::slot(), &[base, slot])
            }
            Expr::Literal(node) => {
                let value = self.literal_value(node.text(), node.span())?;
                self.lit(value)
            }
            Expr::Interpolation(string) => self.interpolation(string)?,
            Expr::Send(send) => {
                let receiver = self.of(send.receiver())?;
                let selector = self.name(&send.selector())?;
                let args = self.each(send.args())?;
                self.tagged(atoms::send(), &[receiver, selector, args])
            }
            Expr::Cascade(cascade) => self.cascade(cascade)?,
            Expr::Match(found) => self.arms(found)?,
            Expr::Block(block) => self.block(block)?,
            Expr::Paren(inner) => self.of(Some(inner))?,
            Expr::Collection(node) => self.collection(node)?,
            Expr::Assign(assign) => {
                let value = self.of(assign.value())?;
                match assign.target().and_then(Expr::cast) {
                    Some(Expr::Slot(access)) => {
                        let base = self.of(access.base())?;
                        let slot = self.word(access.slot())?;
                        self.tagged(atoms::set_slot(), &[base, slot, value])
                    }
                    Some(Expr::Ident(word)) => {
                        let name = self.word(Some(word))?;
                        self.tagged(atoms::assign(), &[name, value])
                    }
                    _ => return Err(Refusal::Unsupported("an assignment to this", node.span())),
                }
            }
            Expr::Destructure(assign) => {
                let pattern = self.of(assign.pattern())?;
                let value = self.of(assign.value())?;
                self.tagged(atoms::destructure(), &[pattern, value])
            }
            Expr::Return(value) => {
                let value = self.of(Some(value))?;
                self.tagged(atoms::return_(), &[value])
            }
            Expr::Cast(send) => {
                let send = self.of(Some(send))?;
                self.tagged(atoms::cast(), &[send])
            }
            Expr::Directive(directive) => self.directive(directive)?,
            Expr::Expect(_) => return Ok(None),
            Expr::Error(node) => return Err(Refusal::Unsupported("this text", node.span())),
        }))
    }

    fn class_ref(&mut self, class: ClassRef<'_>) -> Made<Term<'a>> {
        let name = self.word(class.name())?;
        Ok(self.tagged(atoms::class(), &[name]))
    }

    fn interpolation(&mut self, string: Interpolation<'_>) -> Made<Term<'a>> {
        let mut pieces = Vec::new();
        for piece in string.pieces() {
            pieces.push(match piece {
                StringPiece::Text(span) => {
                    let text = String::from_utf8_lossy(span.slice(self.source)).into_owned();
                    let text = binary(self.env, shell::piece(&text).as_bytes());
                    self.lit(text)
                }
                StringPiece::Hole(expr) => self.of(Some(expr))?,
                StringPiece::Error(node) => return Err(Refusal::Unsupported("this hole", node.span())),
            });
        }
        let pieces = self.list(pieces);
        Ok(self.tagged(atoms::interpolation(), &[pieces]))
    }

    /// `{cascade, Receiver, [{message, Selector, Args}]}`: the first message is that of the head, if the head is a send.
    fn cascade(&mut self, cascade: Cascade<'_>) -> Made<Term<'a>> {
        let receiver = self.of(cascade.receiver())?;
        let mut messages = Vec::new();
        if let Some(send) = cascade.head().and_then(ast::Send::cast) {
            let selector = self.name(&send.selector())?;
            let args = self.each(send.args())?;
            messages.push(self.tagged(atoms::message(), &[selector, args]));
        }
        for message in cascade.messages() {
            let selector = self.name(&message.selector())?;
            let args = self.each(message.args())?;
            messages.push(self.tagged(atoms::message(), &[selector, args]));
        }
        let messages = self.list(messages);
        Ok(self.tagged(atoms::cascade(), &[receiver, messages]))
    }

    /// `{match, Subject, [{Pattern, Guard, Body}]}`, the guard `none` if there is none.
    fn arms(&mut self, found: Match<'_>) -> Made<Term<'a>> {
        let subject = self.of(found.subject())?;
        let mut arms = Vec::new();
        for arm in found.arms() {
            let pattern = self.of(arm.pattern())?;
            let guard = match arm.guard() {
                // The condition of a guard is written as a block.
                Some(guard) => self.of(Some(guard))?,
                None => atoms::none().encode(self.env),
            };
            let body = self.of(arm.body())?;
            arms.push(tuple(self.env, [pattern, guard, body]));
        }
        let arms = self.list(arms);
        Ok(self.tagged(atoms::match_(), &[subject, arms]))
    }

    fn block(&mut self, block: Block<'_>) -> Made<Term<'a>> {
        let mut params = Vec::new();
        for param in block.params() {
            params.push(self.word(param.name())?);
        }
        let params = self.list(params);
        let statements = self.statements(block.statements().filter(|node| !node.kind().is_type()))?;
        Ok(self.tagged(atoms::block(), &[params, statements]))
    }

    fn collection(&mut self, node: Node<'_>) -> Made<Term<'a>> {
        let children: Vec<Node<'_>> = node.children().collect();
        if let Some(rest) = children.iter().find(|child| child.kind() == NodeKind::Rest) {
            return Err(Refusal::Unsupported("`...` outside of a pattern", rest.span()));
        }
        match node.kind() {
            NodeKind::Map => {
                let mut pairs = Vec::new();
                for pair in children {
                    let mut parts = pair.children();
                    let key = self.of(parts.next())?;
                    let value = self.of(parts.next())?;
                    pairs.push(tuple(self.env, [key, value]));
                }
                let pairs = self.list(pairs);
                Ok(self.tagged(atoms::map(), &[pairs]))
            }
            NodeKind::Array => {
                let elements = self.each(children.into_iter())?;
                Ok(self.tagged(atoms::array(), &[elements]))
            }
            _ => {
                let bar = node.own_tokens().any(|(i, _)| node.tree().token_text(i) == b"|");
                let count = children.len() - usize::from(bar && !children.is_empty());
                let tail = match children.get(count) {
                    Some(tail) => self.of(Some(*tail))?,
                    None => atoms::none().encode(self.env),
                };
                let elements = self.each(children.into_iter().take(count))?;
                Ok(self.tagged(atoms::list(), &[elements, tail]))
            }
        }
    }

    fn directive(&mut self, directive: Directive<'_>) -> Made<Term<'a>> {
        if !directive.is_primitive() {
            return Err(Refusal::Unsupported("`@intrinsic`", directive.span()));
        }
        let name = match directive.name() {
            Some(word) => self.name(word.text.trim_matches('"'))?,
            None => atoms::none().encode(self.env),
        };
        Ok(self.tagged(atoms::primitive(), &[name]))
    }

    fn pattern(&mut self, node: Node<'_>) -> Made<Option<Term<'a>>> {
        let Some(pattern) = Pattern::cast(node) else { return Ok(None) };
        Ok(Some(match pattern {
            Pattern::Wildcard => atoms::wildcard().encode(self.env),
            Pattern::Nil => {
                let nil = self.name("nil")?;
                self.lit(nil)
            }
            Pattern::Bind(word) => {
                let name = self.word(Some(word))?;
                self.tagged(atoms::bind(), &[name])
            }
            Pattern::Typed(word, class) => {
                let (name, class) = (self.word(Some(word))?, self.word(Some(class))?);
                self.tagged(atoms::typed(), &[name, class])
            }
            Pattern::Literal(span) => {
                let value = self.literal_value(node.text(), span)?;
                self.lit(value)
            }
            Pattern::Tuple(parts) => {
                let parts = self.each(parts.into_iter())?;
                self.tagged(atoms::tuple(), &[parts])
            }
            Pattern::Array(parts) => {
                let parts = self.each(parts.into_iter())?;
                self.tagged(atoms::array(), &[parts])
            }
            Pattern::List(parts) => {
                let parts = self.each(parts.into_iter())?;
                self.tagged(atoms::list(), &[parts])
            }
            Pattern::Map(entries) => {
                let mut pairs = Vec::new();
                for (key, value) in entries {
                    let key = self.literal_value(key.text(), key.span())?;
                    let value = self.of(Some(value))?;
                    pairs.push(tuple(self.env, [key, value]));
                }
                let pairs = self.list(pairs);
                self.tagged(atoms::map(), &[pairs])
            }
            Pattern::Rest(word) => {
                let name = self.word(Some(word))?;
                self.tagged(atoms::rest(), &[name])
            }
            Pattern::Constructor { class, keywords, values } => {
                let class = self.word(Some(class))?;
                let mut fields = Vec::new();
                for (keyword, value) in keywords.into_iter().zip(values) {
                    let field = self.name(keyword.text.trim_end_matches(':'))?;
                    let value = self.of(Some(value))?;
                    fields.push(self.tagged(atoms::field(), &[field, value]));
                }
                let fields = self.list(fields);
                self.tagged(atoms::constructor(), &[class, fields])
            }
            Pattern::Binary(_) => return Err(Refusal::Unsupported("a binary pattern", node.span())),
        }))
    }

    // Declarations.

    /// `{method, Selector, Side, Params, Statements, {Start, End, HeaderLine}}`.
    fn method(&mut self, class: &str, side: Side, method: Method<'_>) -> Made<Term<'a>> {
        if let Some(body) = method.body() {
            self.beneath(body)?;
        }
        let text = method.selector_text();
        let selector = self.name(&text)?;
        let mut params = Vec::new();
        for param in method.params() {
            params.push(self.word(param.name())?);
        }
        let params = self.list(params);
        let body = self.statements(method.statements())?;
        let span = self.spans.get(&(class.to_owned(), side, text.into_owned())).copied().unwrap_or_default();
        let side = self.side(side);
        Ok(self.tagged(atoms::method(), &[selector, side, params, body, span.encode(self.env)]))
    }

    fn side(&self, side: Side) -> Term<'a> {
        match side {
            Side::Instance => atoms::instance().encode(self.env),
            Side::Class => atoms::class().encode(self.env),
        }
    }

    fn span(&self, span: Span) -> Term<'a> {
        (span.start, span.end).encode(self.env)
    }

    /// `{class, Name, Super, Modifiers, Slots, Methods, Uses, Span}`; slots are `{Kind, Name, Default}`.
    fn class(&mut self, class: ClassDef<'_>) -> Made<Term<'a>> {
        let text = class.name().map_or("", |w| w.text);
        let name = self.name(text)?;
        let superclass = match class.superclass().and_then(ast::QualName::name) {
            Some(word) if word.text != "nil" => self.word(Some(word))?,
            _ => atoms::none().encode(self.env),
        };
        let mut modifiers = Vec::new();
        for word in class.modifiers() {
            modifiers.push(self.word(Some(word))?);
        }
        let mut slots = Vec::new();
        for slot in class.slots() {
            let kind = match slot.kind() {
                SlotKind::Field => atoms::field(),
                SlotKind::State => atoms::state(),
                SlotKind::ClassState => atoms::class_state(),
            };
            let default = match slot.default() {
                Some(default) => {
                    self.beneath(default)?;
                    self.of(Some(default))?
                }
                None => atoms::none().encode(self.env),
            };
            let slot = self.word(slot.name())?;
            slots.push(tuple(self.env, [kind.encode(self.env), slot, default]));
        }
        let mut methods = Vec::new();
        for method in class.methods() {
            let side = if method.is_class_side() { Side::Class } else { Side::Instance };
            methods.push(self.method(text, side, method)?);
        }
        let mut uses = Vec::new();
        for line in class.uses() {
            uses.push(self.word(line.protocol().and_then(ast::QualName::name))?);
        }
        let (modifiers, slots) = (self.list(modifiers), self.list(slots));
        let (methods, uses) = (self.list(methods), self.list(uses));
        let span = self.span(class.span());
        Ok(self.tagged(atoms::class(), &[name, superclass, modifiers, slots, methods, uses, span]))
    }

    fn types<'n>(&self, types: impl Iterator<Item = Option<Node<'n>>>) -> Term<'a> {
        let none = atoms::none().encode(self.env);
        self.list(types.map(|ty| ty.map_or(none, |node| binary(self.env, node.text()))).collect())
    }

    /// `{Selector, Side, Arity, ParamTypes, ReturnType}` with types as written, `none` where there is none.
    fn requirement(&mut self, header: Requirement<'_>) -> Made<Term<'a>> {
        let selector = self.name(&header.selector_text())?;
        let side = self.side(if header.is_class_side() { Side::Class } else { Side::Instance });
        let types = self.types(header.params().map(ast::Param::ty));
        let result = self.result(header.return_type());
        Ok(tuple(self.env, [selector, side, header.params().count().encode(self.env), types, result]))
    }

    fn result(&self, ty: Option<Node<'_>>) -> Term<'a> {
        ty.map_or_else(|| atoms::none().encode(self.env), |node| binary(self.env, node.text()))
    }

    /// `{protocol, Name, Extending, Required, Provided, Span}`; provided ones are
    /// `{Method, Arity, ParamTypes, ReturnType, Doc}`.
    fn protocol(&mut self, protocol: ProtocolDef<'_>) -> Made<Term<'a>> {
        let text = protocol.name().map_or("", |w| w.text);
        let name = self.name(text)?;
        let extending = match protocol.extending().and_then(ast::QualName::name) {
            Some(word) => self.word(Some(word))?,
            None => atoms::none().encode(self.env),
        };
        let mut required = Vec::new();
        for header in protocol.requirements() {
            required.push(self.requirement(header)?);
        }
        let mut provided = Vec::new();
        for method in protocol.provisions() {
            let body = self.method(text, Side::Instance, method)?;
            let types = self.types(method.params().map(ast::Param::ty));
            let result = self.result(method.return_type());
            let doc = method
                .doc()
                .map_or_else(|| atoms::none().encode(self.env), |doc| binary(self.env, doc.as_bytes()));
            provided
                .push(tuple(self.env, [body, method.params().count().encode(self.env), types, result, doc]));
        }
        let (required, provided) = (self.list(required), self.list(provided));
        let span = self.span(protocol.span());
        Ok(self.tagged(atoms::protocol(), &[name, extending, required, provided, span]))
    }

    /// `{extension, Class, Method}`.
    fn extension(&mut self, extension: Extension<'_>) -> Made<Term<'a>> {
        let word = extension.target().and_then(ast::QualName::name);
        let side = if extension.is_class_side() { Side::Class } else { Side::Instance };
        let class = self.word(word)?;
        let method = extension.method().ok_or(Refusal::Unsupported("this extension", extension.span()))?;
        let method = self.method(word.map_or("", |w| w.text), side, method)?;
        Ok(self.tagged(atoms::extension(), &[class, method]))
    }

    fn item(&mut self, item: Item<'_>) -> Made<Option<Term<'a>>> {
        Ok(Some(match item {
            Item::Class(class) => self.class(class)?,
            Item::Protocol(protocol) => self.protocol(protocol)?,
            Item::Alias(_) => return Ok(None),
            Item::Extension(extension) => self.extension(extension)?,
            Item::Method(method) => {
                let side = if method.is_class_side() { Side::Class } else { Side::Instance };
                self.method("", side, method)?
            }
            Item::Error(node) => return Err(Refusal::Unsupported("this text", node.span())),
            Item::Statement(node) if node.kind() == NodeKind::Expect => return Ok(None),
            Item::Statement(node) => {
                self.beneath(node)?;
                let statement = self.of(Some(node))?;
                self.tagged(atoms::statement(), &[statement])
            }
        }))
    }
}

/// The items of a file, or of one method's text if `fragment`: `{ok, Items}`, `wrong` if the text has errors,
/// `too_many_names`, `name_too_long`, `{unsupported, What, Start, End}` or `{too_large, Limit}`.
#[rustler::nif(schedule = "DirtyCpu")]
fn reading_items<'a>(env: Env<'a>, source: Binary<'a>, fragment: bool, allowance: usize) -> Term<'a> {
    if source.len() > MAX_TEXT {
        return (atoms::too_large(), MAX_TEXT).encode(env);
    }
    let text = source.as_slice();
    let parse = if fragment { parse_method(text) } else { parse(text) };
    if parse.has_errors() {
        return atoms::wrong().encode(env);
    }
    let spans = facts::method_entries(&parse.tree)
        .into_iter()
        .filter(|entry| entry.origin != Origin::SlotAccessor)
        .map(|e| ((e.class, e.side, e.selector), (e.span.start, e.span.end, e.line)))
        .collect();
    let mut maker = Maker { env, allowance, made: HashMap::new(), spans, source: text };
    let items = parse.tree.root().as_file().into_iter().flat_map(|file| file.items());
    let mut made = Vec::new();
    for item in items {
        match maker.item(item) {
            Ok(Some(term)) => made.push(term),
            Ok(None) => {}
            Err(Refusal::TooManyNames) => return atoms::too_many_names().encode(env),
            Err(Refusal::NameTooLong) => return atoms::name_too_long().encode(env),
            Err(Refusal::Unsupported(what, span)) => {
                return (atoms::unsupported(), binary(env, what.as_bytes()), span.start, span.end)
                    .encode(env);
            }
        }
    }
    (atoms::ok(), maker.list(made)).encode(env)
}

/// `complete`, `open` or `declaration`; a text that is too long counts as complete.
#[rustler::nif(schedule = "DirtyCpu")]
fn reading_input<'a>(env: Env<'a>, source: Binary<'a>) -> Term<'a> {
    let input = if source.len() > MAX_TEXT { Input::Complete } else { shell::input(source.as_slice()) };
    match input {
        Input::Complete => atoms::complete().encode(env),
        Input::Open => atoms::open().encode(env),
        Input::Declaration => atoms::declaration().encode(env),
    }
}

/// A method's text at another column, or `{too_large, Limit}`.
#[rustler::nif(schedule = "DirtyCpu")]
fn reading_indented<'a>(env: Env<'a>, method: Binary<'a>, column: usize) -> Term<'a> {
    if method.len() > MAX_TEXT || column > 1_000 {
        return (atoms::too_large(), MAX_TEXT).encode(env);
    }
    binary(env, &shell::indented(method.as_slice(), column))
}
