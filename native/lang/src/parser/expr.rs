//! Statements and expressions.

use super::{Parser, Place, is_word};
use crate::diag::code;
use crate::lexer::TokenKind;
use crate::span::Span;
use crate::tree::{Kids, NodeId, NodeKind};

/// A left operand whose operator binds less tightly than what follows.
#[derive(Clone, Copy)]
pub(super) struct Pending {
    left: NodeId,
    precedence: u8,
}

/// A target whose value is still being read.
#[derive(Clone, Copy)]
pub(super) struct Target {
    kind: NodeKind,
    node: NodeId,
    ty: Option<NodeId>,
}

/// Binding strength of a binary operator, `**` being the tightest and the only one that groups to the right.
pub(super) fn precedence(op: &[u8]) -> Option<u8> {
    Some(match op {
        b"**" => POWER,
        b"*" | b"/" | b"%" => 6,
        b"+" | b"-" | b"++" => 5,
        b"<" | b">" | b"<=" | b">=" => 4,
        b"==" | b"/=" | b"=:=" | b"=/=" => 3,
        b">>" => 2,
        b"->" => 1,
        _ => return None,
    })
}

const POWER: u8 = 7;

/// What ends a list of statements.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    /// The `]` of a block.
    Bracket,
    /// What ends a method body.
    BodyEnd,
}

impl Parser<'_, '_> {
    pub(super) fn begins_expression(&self) -> bool {
        use TokenKind as K;
        matches!(
            self.kind(),
            K::Ident
                | K::Name
                | K::Integer
                | K::Float
                | K::Char
                | K::String
                | K::StrOpen
                | K::Symbol
                | K::LParen
                | K::LBracket
                | K::HashParen
                | K::HashBracket
                | K::HashBrace
                | K::LBrace
                | K::AtPrimitive
                | K::AtIntrinsic
                | K::AtExpect
                | K::Error
        )
    }

    /// Statements up to the end that `until` names.
    pub(super) fn statements(&mut self, until: Until, kids: &mut Kids) {
        use TokenKind as K;
        let mut before: Option<NodeId> = None;
        let mut by_newline = false;
        loop {
            let ends = match until {
                Until::Bracket => self.at(K::RBracket) || self.stops_here() || self.closes_outer(),
                Until::BodyEnd => self.body_ends(by_newline),
            };
            if ends {
                return;
            }
            if !self.begins_expression() && !self.at(K::Caret) {
                // A separator too many says nothing about what stands around it.
                if self.at(K::Period) {
                    self.bump();
                    continue;
                }
                before = Some(self.recover(before, kids, "a statement"));
                by_newline = self.nl();
                continue;
            }
            let at = self.pos;
            let statement = self.statement();
            self.nodes.append(kids, statement);
            before = Some(statement);
            by_newline = false;
            if self.at(K::Period) {
                self.bump();
            } else if self.tok_at(self.pos.saturating_sub(1)).kind == K::Bang && self.pos > at {
                // The cast's own mark separates.
            } else if self.nl() {
                by_newline = true;
            } else if !self.ends_statement(until) {
                self.no_separator(&mut before, kids);
                by_newline = self.nl();
            }
        }
    }

    fn ends_statement(&self, until: Until) -> bool {
        match until {
            Until::Bracket => self.at(TokenKind::RBracket) || self.stops_here() || self.closes_outer(),
            Until::BodyEnd => self.at(TokenKind::Eof),
        }
    }

    /// Two statements of a body on one line with nothing between them.
    fn no_separator(&mut self, before: &mut Option<NodeId>, kids: &mut Kids) {
        match self.kind() {
            TokenKind::Integer | TokenKind::Float if self.text().first() == Some(&b'-') => {
                self.error_here(
                    code::BLANK_AROUND_MINUS,
                    "a blank is needed around `-`",
                    Some("`x -1` is `x` and the number `-1`; write `x - 1`"),
                );
                let gap = self.empty_error();
                self.nodes.append(kids, gap);
            }
            TokenKind::Caret => {
                let gap = self.missing(code::UNEXPECTED_TOKEN, "a `.` or a new line is missing before `^`");
                self.nodes.append(kids, gap);
            }
            _ => *before = Some(self.recover(*before, kids, "`.` or a new line")),
        }
    }

    /// One statement with its `!`.
    pub(super) fn statement(&mut self) -> NodeId {
        let first = self.here();
        let statement = if self.at(TokenKind::Caret) {
            self.bump();
            let value = self.assignment();
            self.node_of(NodeKind::Return, first, &[value])
        } else {
            self.assignment()
        };
        if !self.at(TokenKind::Bang) {
            return statement;
        }
        if !self.nodes.kind(statement).is_send() && self.nodes.kind(statement) != NodeKind::Error {
            self.error_here(
                code::CAST_OF_NON_SEND,
                "`!` must follow a plain send",
                Some("assignments, returns, cascades and literals cannot be cast"),
            );
        }
        self.bump();
        self.node_of(NodeKind::Cast, first, &[statement])
    }

    fn assignment(&mut self) -> NodeId {
        use TokenKind as K;
        let base = self.targets.len();
        let value = loop {
            if self.at(K::LBrace) && self.partner(self.pos).is_some_and(|c| self.kind_at(c + 1) == K::Assign)
            {
                if !self.enter() {
                    break self.too_deep();
                }
                let node = self.pattern_group(NodeKind::PatTuple, K::RBrace);
                self.leave();
                if self.eat(K::Assign) {
                    self.targets.push(Target { kind: NodeKind::Destructure, node, ty: None });
                    continue;
                }
                break node;
            }
            let expr = self.cascade();
            if self.at(K::Assign) {
                let target = self.target(expr, None);
                self.targets.push(target);
                self.bump();
            } else if self.at(K::DColon) && self.nodes.kind(expr) == NodeKind::Ident {
                self.bump();
                let ty = self.type_expr();
                if self.eat(K::Assign) {
                    let target = self.target(expr, Some(ty));
                    self.targets.push(target);
                } else {
                    let first = self.nodes.first(expr);
                    let gap = self.missing(code::UNEXPECTED_TOKEN, "`:=` is missing behind the type");
                    break self.node_of(NodeKind::Assign, first, &[expr, ty, gap]);
                }
            } else {
                break expr;
            }
        };
        let mut value = value;
        while self.targets.len() > base {
            let Some(target) = self.targets.pop() else { break };
            let first = self.nodes.first(target.node);
            value = match target.ty {
                Some(ty) => self.node_of(target.kind, first, &[target.node, ty, value]),
                None => self.node_of(target.kind, first, &[target.node, value]),
            };
        }
        value
    }

    /// Checks what stands before `:=`.
    fn target(&mut self, expr: NodeId, ty: Option<NodeId>) -> Target {
        let plain = |kind| Target { kind, node: expr, ty };
        match self.nodes.kind(expr) {
            NodeKind::Ident | NodeKind::SlotAccess | NodeKind::Error => plain(NodeKind::Assign),
            NodeKind::List | NodeKind::Array | NodeKind::Map => {
                self.convert_to_pattern(expr);
                plain(NodeKind::Destructure)
            }
            kind => {
                let (first, end) = self.nodes.range(expr);
                let span = Span::new(
                    self.tok_at(first as usize).start,
                    self.tok_at((end as usize).saturating_sub(1)).end,
                );
                if kind != NodeKind::ClassRef {
                    let hint = Some("assign to a variable, to `self.slot`, or to a pattern");
                    self.error(code::BAD_ASSIGNMENT_TARGET, span, "this cannot be assigned", hint);
                }
                plain(NodeKind::Assign)
            }
        }
    }

    fn cascade(&mut self) -> NodeId {
        use TokenKind as K;
        let head = self.keyword_send();
        if !self.at(K::Semi) || self.ends_before_semi() {
            return head;
        }
        let first = self.nodes.first(head);
        let mut kids = Kids::EMPTY;
        self.nodes.append(&mut kids, head);
        while self.at(K::Semi) && !self.ends_before_semi() {
            self.bump();
            let message = self.cascade_message();
            self.nodes.append(&mut kids, message);
        }
        self.node(NodeKind::Cascade, first, kids)
    }

    fn ends_before_semi(&self) -> bool {
        self.ctx.place == Place::Protocol && self.ctx.brackets == 0 && self.at_boundary()
    }

    fn cascade_message(&mut self) -> NodeId {
        use TokenKind as K;
        let first = self.here();
        match self.kind() {
            // On a new line, too: a `;` before a unary method takes the method's name.
            K::Ident | K::Name => self.leaf(NodeKind::Message),
            K::Keyword if !self.at_boundary() => {
                let mut kids = Kids::EMPTY;
                self.keyword_parts(&mut kids);
                self.node(NodeKind::Message, first, kids)
            }
            K::BinOp | K::Arrow | K::GtGt if precedence(self.text()).is_some() && !self.at_boundary() => {
                self.bump();
                let operand = self.operand();
                self.node_of(NodeKind::Message, first, &[operand])
            }
            _ => self.missing(code::UNEXPECTED_TOKEN, "a message is missing behind `;`"),
        }
    }

    /// A binary send with its keyword message, if one follows.
    pub(super) fn keyword_send(&mut self) -> NodeId {
        let receiver = self.binary_send();
        if !self.at(TokenKind::Keyword) || !self.continues(true, None, false) {
            return receiver;
        }
        let first = self.nodes.first(receiver);
        if matches!(self.text(), b"match:" | b"matchExhaustive:") && self.next_kind() == TokenKind::LBracket {
            return self.match_send(receiver);
        }
        let mut kids = Kids::EMPTY;
        self.nodes.append(&mut kids, receiver);
        self.keyword_parts(&mut kids);
        self.node(NodeKind::KeywordSend, first, kids)
    }

    fn keyword_parts(&mut self, kids: &mut Kids) {
        let mut column = None;
        loop {
            column = column.or(self.tok().col());
            self.bump();
            let argument = self.binary_send();
            self.nodes.append(kids, argument);
            if !self.at(TokenKind::Keyword) || !self.continues(true, column, true) {
                return;
            }
        }
    }

    fn binary_send(&mut self) -> NodeId {
        let base = self.operators.len();
        let mut left = self.operand();
        loop {
            let strength = match self.kind() {
                TokenKind::BinOp | TokenKind::Arrow | TokenKind::GtGt => precedence(self.text()),
                _ => None,
            };
            let strength = strength.filter(|_| self.continues(false, None, true));
            while self.operators.len() > base {
                let Some(pending) = self.operators.last().copied() else { break };
                let reduce = match strength {
                    None => true,
                    Some(s) => pending.precedence > s || pending.precedence == s && s != POWER,
                };
                if !reduce {
                    break;
                }
                self.operators.pop();
                let first = self.nodes.first(pending.left);
                left = self.node_of(NodeKind::BinarySend, first, &[pending.left, left]);
            }
            let Some(strength) = strength else { return left };
            self.operators.push(Pending { left, precedence: strength });
            self.bump();
            left = self.operand();
        }
    }

    /// A primary and its unary messages.
    fn operand(&mut self) -> NodeId {
        let mut node = self.primary();
        while is_word(self.kind()) && !self.nl() {
            let first = self.nodes.first(node);
            self.bump();
            node = self.node_of(NodeKind::UnarySend, first, &[node]);
        }
        node
    }

    fn primary(&mut self) -> NodeId {
        use TokenKind as K;
        let first = self.here();
        if self.at_boundary() {
            return self.no_expression();
        }
        match self.kind() {
            K::Ident | K::Name => self.reference(),
            K::Integer => self.leaf(NodeKind::Integer),
            K::Float => self.leaf(NodeKind::Float),
            K::Char => self.leaf(NodeKind::Char),
            K::String => self.leaf(NodeKind::Str),
            K::Symbol => self.leaf(NodeKind::Symbol),
            K::AtPrimitive | K::AtIntrinsic | K::AtExpect => self.directive(),
            K::Error => {
                self.error_at_token(first);
                self.leaf(NodeKind::Error)
            }
            K::StrOpen | K::LParen | K::LBracket | K::HashParen | K::HashBracket | K::HashBrace => {
                self.nested()
            }
            K::LBrace => {
                self.error_here(
                    code::NO_TUPLE_LITERAL,
                    "there is no tuple literal",
                    Some("braces make a pattern before `:=`; write a list with `#(…)`"),
                );
                let close = self.partner(self.pos);
                self.skip_unit();
                while close.is_some_and(|c| self.pos <= c) && !self.stops_here() {
                    self.skip_unit();
                }
                self.node(NodeKind::Error, first, Kids::EMPTY)
            }
            _ => self.no_expression(),
        }
    }

    fn no_expression(&mut self) -> NodeId {
        self.error_here(code::EXPECTED_EXPRESSION, "an expression is missing here", None);
        self.empty_error()
    }

    fn reference(&mut self) -> NodeId {
        use TokenKind as K;
        let first = self.here();
        let kind = match self.kind() {
            K::Name => NodeKind::ClassRef,
            _ if self.text() == b"super" => NodeKind::Super,
            _ => NodeKind::Ident,
        };
        self.bump();
        let mut node = if self.at(K::At) {
            let touches = |p: &Self, i: usize| p.tok_at(i).start == p.tok_at(i.saturating_sub(1)).end;
            if kind == NodeKind::Ident && self.next_kind() == K::Name && touches(self, self.pos + 1) {
                self.bump();
                self.bump();
                self.node(NodeKind::ClassRef, first, Kids::EMPTY)
            } else {
                let message = "`package@Name` needs a lower-case package and a class name";
                self.error_here(code::MISSING_PACKAGE, message, None);
                self.bump();
                return self.node(NodeKind::Error, first, Kids::EMPTY);
            }
        } else {
            self.node(kind, first, Kids::EMPTY)
        };
        while self.at(K::Period)
            && is_word(self.next_kind())
            && self.tok_at(self.pos + 1).start == self.tok().end
        {
            self.bump();
            self.bump();
            node = self.node_of(NodeKind::SlotAccess, first, &[node]);
        }
        node
    }

    fn directive(&mut self) -> NodeId {
        use TokenKind as K;
        let first = self.here();
        let directive = self.kind();
        if directive != K::AtExpect && (self.ctx.place == Place::File || self.ctx.slot) {
            let hint = Some("directives of methods stand in their bodies");
            self.error_here(code::UNEXPECTED_TOKEN, "this directive stands in no method", hint);
        }
        self.bump();
        let named = !self.nl() && (self.at(K::String) || self.at_word());
        match directive {
            K::AtExpect => {
                self.expect_rest();
                self.node(NodeKind::Expect, first, Kids::EMPTY)
            }
            K::AtPrimitive => {
                if named {
                    self.bump();
                }
                self.node(NodeKind::Primitive, first, Kids::EMPTY)
            }
            _ => {
                if named {
                    self.bump();
                } else {
                    let span = self.tok_at(first as usize).span();
                    self.error(code::DIRECTIVE_NAME, span, "`@intrinsic` needs a name", None);
                    let gap = self.empty_error();
                    return self.node_of(NodeKind::Intrinsic, first, &[gap]);
                }
                self.node(NodeKind::Intrinsic, first, Kids::EMPTY)
            }
        }
    }

    /// The category and reason behind `@expect`.
    pub(super) fn expect_rest(&mut self) {
        const CATEGORIES: [&str; 15] = [
            "dnu",
            "type",
            "unused",
            "dead_assignment",
            "deprecation",
            "actor_new",
            "visibility",
            "unresolved_class",
            "unresolved_ffi",
            "arity_mismatch",
            "shadowed_class",
            "type_annotation",
            "inheritance",
            "sendability",
            "all",
        ];
        if self.at_word() && !self.nl() {
            if !CATEGORIES.iter().any(|c| c.as_bytes() == self.text()) {
                self.error_here(
                    code::DIRECTIVE_NAME,
                    "unknown category of `@expect`",
                    Some("among the known ones are `dnu`, `type`, `unused` and `all`"),
                );
            }
            self.bump();
            if self.at(TokenKind::String) && !self.nl() {
                self.bump();
            }
        } else {
            let span = self.tok_at(self.pos.saturating_sub(1)).span();
            self.error(code::DIRECTIVE_NAME, span, "`@expect` needs a category", None);
        }
    }

    /// Whatever nests: strings with holes, parentheses, blocks, collections.
    #[inline(never)]
    fn nested(&mut self) -> NodeId {
        use TokenKind as K;
        if !self.enter() {
            if self.at(K::StrOpen) {
                let first = self.here();
                self.error_here(code::NESTING_TOO_DEEP, "this is nested too deeply", None);
                self.skip_unit();
                return self.node(NodeKind::Error, first, Kids::EMPTY);
            }
            return self.too_deep();
        }
        let node = match self.kind() {
            K::StrOpen => self.interpolation(),
            K::LParen => self.paren(),
            K::LBracket => self.block(),
            K::HashParen => self.list(NodeKind::List, K::RParen),
            K::HashBracket => self.list(NodeKind::Array, K::RBracket),
            _ => self.map(),
        };
        self.leave();
        node
    }

    fn paren(&mut self) -> NodeId {
        let first = self.here();
        let mut kids = Kids::EMPTY;
        self.open_bracket();
        let inner = self.statement();
        self.nodes.append(&mut kids, inner);
        self.close_bracket(TokenKind::RParen, first, &mut kids);
        self.node(NodeKind::Paren, first, kids)
    }

    fn block(&mut self) -> NodeId {
        use TokenKind as K;
        let first = self.here();
        let mut kids = Kids::EMPTY;
        self.open_bracket();
        let mut params = false;
        while self.at(K::Colon) {
            params = true;
            let param = self.block_param();
            self.nodes.append(&mut kids, param);
        }
        if params {
            if !self.eat(K::Pipe) {
                let gap =
                    self.missing(code::BLOCK_PARAMETERS, "a `|` is missing behind the block's parameters");
                self.nodes.append(&mut kids, gap);
            }
        } else if self.at(K::Pipe) {
            self.error_here(
                code::BLOCK_LOCALS,
                "a block declares no locals",
                Some("a variable comes into being by its first assignment"),
            );
            let locals = self.here();
            self.bump();
            while self.at_word() {
                self.bump();
            }
            self.eat(K::Pipe);
            let locals = self.node(NodeKind::Error, locals, Kids::EMPTY);
            self.nodes.append(&mut kids, locals);
        }
        self.statements(Until::Bracket, &mut kids);
        self.close_bracket(K::RBracket, first, &mut kids);
        self.node(NodeKind::Block, first, kids)
    }

    fn block_param(&mut self) -> NodeId {
        use TokenKind as K;
        let first = self.here();
        let mut kids = Kids::EMPTY;
        self.bump();
        if self.at_word() {
            self.bump();
            if self.eat(K::DColon) {
                let ty = self.type_atom();
                self.nodes.append(&mut kids, ty);
            }
        } else if self.at(K::Keyword) {
            let hint = Some("put a blank between the parameters: `[:a :b | …]`");
            self.error_here(code::BLOCK_PARAMETERS, "block parameters run together", hint);
            let name = self.leaf(NodeKind::Error);
            self.nodes.append(&mut kids, name);
            if self.at_word() {
                self.bump();
            }
        } else {
            let gap = self.missing(code::BLOCK_PARAMETERS, "a parameter name is missing behind `:`");
            self.nodes.append(&mut kids, gap);
        }
        self.node(NodeKind::BlockParam, first, kids)
    }

    fn list(&mut self, kind: NodeKind, closer: TokenKind) -> NodeId {
        use TokenKind as K;
        let first = self.here();
        let mut kids = Kids::EMPTY;
        self.open_bracket();
        let mut rest = None;
        while !self.at(closer) && !self.stops_here() {
            if kind == NodeKind::List && !kids.is_empty() && self.at(K::Pipe) {
                self.bump();
                let tail = self.operand();
                self.nodes.append(&mut kids, tail);
                break;
            }
            self.rest_not_last(rest.take());
            let element = if self.at(K::Ellipsis) {
                rest = Some(self.tok().span());
                self.rest()
            } else {
                self.keyword_send()
            };
            self.nodes.append(&mut kids, element);
            let tail = kind == NodeKind::List && self.at(K::Pipe);
            if !tail && !self.group_separator(closer, &mut kids) {
                break;
            }
        }
        self.close_bracket(closer, first, &mut kids);
        if let Some(span) = rest
            && !self.at(K::Assign)
        {
            let hint = Some("only a pattern before `:=` takes the rest");
            self.error(code::BAD_PATTERN, span, "a literal has no rest", hint);
        }
        self.node(kind, first, kids)
    }

    /// Reports elements behind `...name`, which stands at `rest`.
    pub(super) fn rest_not_last(&mut self, rest: Option<Span>) {
        if let Some(span) = rest {
            self.error(code::BAD_PATTERN, span, "`...` must be the last element", None);
        }
    }

    fn rest(&mut self) -> NodeId {
        let first = self.here();
        self.bump();
        if self.at_word() {
            self.bump();
            return self.node(NodeKind::Rest, first, Kids::EMPTY);
        }
        let gap = self.missing(code::EXPECTED_NAME, "a name is missing behind `...`");
        self.node_of(NodeKind::Rest, first, &[gap])
    }

    fn map(&mut self) -> NodeId {
        use TokenKind as K;
        let first = self.here();
        let mut kids = Kids::EMPTY;
        let outer = self.ctx.map;
        self.ctx.map |= self.partner(self.pos).is_some();
        self.open_bracket();
        while !self.at(K::RBrace) && !self.stops_here() {
            let pair = self.here();
            let key = self.operand();
            let mut parts = Kids::EMPTY;
            self.nodes.append(&mut parts, key);
            if self.nodes.kind(key) == NodeKind::Ident {
                let word = self.text_at(pair as usize);
                let span = self.tok_at(pair as usize).span();
                let message = format!("`{}` is a bare word as a key", String::from_utf8_lossy(word));
                let hint = Some("write `#word` for the symbol or `(word)` for the variable");
                self.error(code::BARE_WORD_KEY, span, message, hint);
            }
            if self.eat(K::FatArrow) {
                let value = self.keyword_send();
                self.nodes.append(&mut parts, value);
            } else {
                if self.at(K::Comma) {
                    self.error_here(code::UNEXPECTED_TOKEN, "`=>` and a value are missing here", None);
                } else {
                    self.unexpected("`=>`");
                }
                let gap = self.empty_error();
                self.nodes.append(&mut parts, gap);
            }
            let pair = self.node(NodeKind::MapPair, pair, parts);
            self.nodes.append(&mut kids, pair);
            if !self.group_separator(K::RBrace, &mut kids) {
                break;
            }
        }
        self.close_bracket(K::RBrace, first, &mut kids);
        self.ctx.map = outer;
        self.node(NodeKind::Map, first, kids)
    }

    fn interpolation(&mut self) -> NodeId {
        use TokenKind as K;
        let first = self.here();
        let mut kids = Kids::EMPTY;
        let outer = (self.ctx.brackets, self.open);
        // Brackets of the code around the string mean nothing inside its holes.
        self.open = [0; 3];
        self.bump();
        while !self.at(K::StrClose) && !self.at(K::Eof) {
            match self.kind() {
                K::HoleOpen => {
                    let hole = self.here();
                    self.bump();
                    self.ctx.brackets += 1;
                    let mut parts = Kids::EMPTY;
                    let expr = self.keyword_send();
                    self.nodes.append(&mut parts, expr);
                    if !self.at(K::HoleClose) {
                        self.unexpected("`}`");
                        let rest = self.here();
                        while !matches!(self.kind(), K::HoleClose | K::Eof) {
                            self.skip_unit();
                        }
                        let rest = self.node(NodeKind::Error, rest, Kids::EMPTY);
                        self.nodes.append(&mut parts, rest);
                    }
                    self.bump();
                    self.ctx.brackets -= 1;
                    let hole = self.node(NodeKind::Hole, hole, parts);
                    self.nodes.append(&mut kids, hole);
                }
                K::Error => {
                    self.error_at_token(self.here());
                    let bad = self.leaf(NodeKind::Error);
                    self.nodes.append(&mut kids, bad);
                }
                _ => self.bump(),
            }
        }
        self.bump();
        (self.ctx.brackets, self.open) = outer;
        self.node(NodeKind::Interpolation, first, kids)
    }

    #[inline(never)]
    fn match_send(&mut self, receiver: NodeId) -> NodeId {
        use TokenKind as K;
        let first = self.nodes.first(receiver);
        let mut kids = Kids::EMPTY;
        self.nodes.append(&mut kids, receiver);
        self.bump();
        if !self.enter() {
            let skipped = self.too_deep();
            self.nodes.append(&mut kids, skipped);
            return self.node(NodeKind::Match, first, kids);
        }
        let opener = self.here();
        self.open_bracket();
        let mut before = None;
        while !self.at(K::RBracket) && !self.stops_here() && !self.closes_outer() {
            if self.eat(K::Semi) {
                continue;
            }
            if !self.begins_pattern() {
                before = Some(self.recover(before, &mut kids, "a pattern"));
                continue;
            }
            let arm = self.arm();
            self.nodes.append(&mut kids, arm);
            before = Some(arm);
            if self.begins_pattern() && !self.nl() && !self.stops_here() {
                let gap = self.missing(code::UNEXPECTED_TOKEN, "a `;` or a new line is missing between arms");
                self.nodes.append(&mut kids, gap);
            }
        }
        self.close_bracket(K::RBracket, opener, &mut kids);
        self.leave();
        self.node(NodeKind::Match, first, kids)
    }

    fn arm(&mut self) -> NodeId {
        use TokenKind as K;
        let first = self.here();
        let mut kids = Kids::EMPTY;
        let pattern = self.pattern();
        self.nodes.append(&mut kids, pattern);
        if self.at(K::Keyword) && self.text() == b"when:" && self.next_kind() == K::LBracket {
            let guard = self.guard();
            self.nodes.append(&mut kids, guard);
        }
        if !self.eat(K::Arrow) {
            self.unexpected("`->`");
            let skipped = if self.stops_here() || self.at(K::Semi) || is_closing(self.kind()) {
                self.empty_error()
            } else {
                self.skip_to_point(false)
            };
            self.nodes.append(&mut kids, skipped);
            return self.node(NodeKind::MatchArm, first, kids);
        }
        let body = self.here();
        let value = if self.eat(K::Caret) {
            let value = self.keyword_send();
            self.node_of(NodeKind::Return, body, &[value])
        } else {
            let value = self.keyword_send();
            if self.at(K::Assign) {
                if matches!(self.nodes.kind(value), NodeKind::List | NodeKind::Array | NodeKind::Map) {
                    let hint = Some("put the assignment into parentheses");
                    let message = "the body of an arm assigns to a variable or slot";
                    self.error_here(code::BAD_ASSIGNMENT_TARGET, message, hint);
                }
                let target = self.target(value, None);
                self.bump();
                let value = self.keyword_send();
                self.node_of(target.kind, body, &[target.node, value])
            } else {
                value
            }
        };
        self.nodes.append(&mut kids, value);
        self.node(NodeKind::MatchArm, first, kids)
    }

    fn guard(&mut self) -> NodeId {
        let first = self.here();
        let mut kids = Kids::EMPTY;
        self.bump();
        let opener = self.here();
        self.open_bracket();
        let condition = self.statement();
        self.nodes.append(&mut kids, condition);
        self.close_bracket(TokenKind::RBracket, opener, &mut kids);
        self.node(NodeKind::Guard, first, kids)
    }
}

fn is_closing(kind: TokenKind) -> bool {
    super::is_closer(kind)
}
