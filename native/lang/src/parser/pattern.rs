//! Patterns of match arms and of destructuring assignments.

use super::{Parser, is_word};
use crate::diag::code;
use crate::lexer::TokenKind;
use crate::tree::{Kids, NodeId, NodeKind};

fn is_literal(kind: TokenKind) -> bool {
    use TokenKind as K;
    matches!(kind, K::Integer | K::Float | K::Char | K::String | K::Symbol)
}

impl Parser<'_, '_> {
    fn bad_pattern(&mut self, message: &'static str, hint: Option<&'static str>) {
        self.error_here(code::BAD_PATTERN, message, hint);
    }

    /// Whether the current token may begin a pattern.
    pub(super) fn begins_pattern(&self) -> bool {
        use TokenKind as K;
        let kind = self.kind();
        is_literal(kind)
            || is_word(kind)
            || matches!(kind, K::LBrace | K::HashBracket | K::HashBrace | K::HashParen | K::LtLt | K::Error)
            || kind == K::StrOpen
            || kind == K::BinOp && self.text() == b"-"
    }

    pub(super) fn pattern(&mut self) -> NodeId {
        use TokenKind as K;
        let first = self.here();
        match self.kind() {
            kind if is_literal(kind) => self.leaf(NodeKind::PatLiteral),
            K::BinOp if self.text() == b"-" && matches!(self.next_kind(), K::Integer | K::Float) => {
                self.bump();
                self.bump();
                self.node(NodeKind::PatLiteral, first, Kids::EMPTY)
            }
            K::Name if self.next_kind() == K::Keyword => self.constructor(),
            K::Ident | K::Name => self.binding(),
            K::LBrace | K::HashBracket | K::HashBrace | K::HashParen | K::LtLt => {
                if !self.enter() {
                    return self.too_deep();
                }
                let node = match self.kind() {
                    K::LBrace => self.pattern_group(NodeKind::PatTuple, K::RBrace),
                    K::HashBracket => self.pattern_group(NodeKind::PatArray, K::RBracket),
                    K::HashParen => {
                        self.bad_pattern("a list is no pattern", Some("match an array with `#[…]`"));
                        self.pattern_group(NodeKind::PatList, K::RParen)
                    }
                    K::HashBrace => self.map_pattern(),
                    _ => self.binary_pattern(),
                };
                self.leave();
                node
            }
            K::Error => {
                self.error_at_token(first);
                self.leaf(NodeKind::Error)
            }
            K::StrOpen => {
                self.bad_pattern("a string with holes is no pattern", None);
                self.skip_unit();
                self.node(NodeKind::Error, first, Kids::EMPTY)
            }
            _ => self.missing(code::BAD_PATTERN, "a pattern is missing here"),
        }
    }

    fn binding(&mut self) -> NodeId {
        let first = self.here();
        let word = self.text();
        match word {
            b"true" | b"false" => {
                self.bad_pattern(
                    "this would bind a variable",
                    Some("use `b when: [b]` or `ifTrue:ifFalse:`"),
                );
            }
            _ => {}
        }
        self.bump();
        if self.at(TokenKind::DColon) {
            if word == b"nil" {
                self.bad_pattern("`nil` takes no type", None);
            }
            self.bump();
            if self.at_word() {
                self.bump();
                if self.at(TokenKind::LParen) {
                    self.bad_pattern("a type pattern takes no arguments", Some("name the class alone"));
                    let mut kids = Kids::EMPTY;
                    let skipped = self.too_deep_or_group();
                    self.nodes.append(&mut kids, skipped);
                    return self.node(NodeKind::PatTyped, first, kids);
                }
            } else {
                let gap = self.missing(code::BAD_PATTERN, "a class name is missing here");
                return self.node_of(NodeKind::PatTyped, first, &[gap]);
            }
            return self.node(NodeKind::PatTyped, first, Kids::EMPTY);
        }
        let kind = match word {
            b"_" => NodeKind::PatWildcard,
            b"nil" => NodeKind::PatNil,
            _ => NodeKind::PatBind,
        };
        self.node(kind, first, Kids::EMPTY)
    }

    /// An error node over one bracketed group.
    fn too_deep_or_group(&mut self) -> NodeId {
        let first = self.here();
        let close = self.partner(self.pos);
        self.skip_unit();
        while close.is_some_and(|c| self.pos <= c) && !self.stops_here() {
            self.skip_unit();
        }
        self.node(NodeKind::Error, first, Kids::EMPTY)
    }

    fn constructor(&mut self) -> NodeId {
        let first = self.here();
        self.bump();
        let mut kids = Kids::EMPTY;
        if self.text() == b"when:" {
            self.bad_pattern("a constructor pattern needs a keyword", Some("bind with a lower-case name"));
        }
        while self.at(TokenKind::Keyword) && self.text() != b"when:" {
            self.bump();
            let value = self.simple_pattern();
            self.nodes.append(&mut kids, value);
            if self.at(TokenKind::DColon) {
                self.bad_pattern("a constructor value takes no type", None);
                self.bump();
                let class = if self.at_word() {
                    self.leaf(NodeKind::Error)
                } else {
                    self.missing(code::BAD_PATTERN, "a class name is missing here")
                };
                self.nodes.append(&mut kids, class);
            }
        }
        self.node(NodeKind::PatConstructor, first, kids)
    }

    /// Wildcard, `nil`, name or literal.
    fn simple_pattern(&mut self) -> NodeId {
        use TokenKind as K;
        match self.kind() {
            K::Ident | K::Name => {
                let kind = match self.text() {
                    b"_" => NodeKind::PatWildcard,
                    b"nil" => NodeKind::PatNil,
                    _ => NodeKind::PatBind,
                };
                self.leaf(kind)
            }
            kind if is_literal(kind) => self.leaf(NodeKind::PatLiteral),
            K::BinOp if self.text() == b"-" && matches!(self.next_kind(), K::Integer | K::Float) => {
                let first = self.here();
                self.bump();
                self.bump();
                self.node(NodeKind::PatLiteral, first, Kids::EMPTY)
            }
            K::Error => {
                self.error_at_token(self.here());
                self.leaf(NodeKind::Error)
            }
            _ => self.missing(code::BAD_PATTERN, "a name or literal is missing here"),
        }
    }

    /// Tuple, array or list pattern; the opening bracket is the current token.
    pub(super) fn pattern_group(&mut self, kind: NodeKind, closer: TokenKind) -> NodeId {
        let first = self.here();
        let mut kids = Kids::EMPTY;
        self.open_bracket();
        let mut rest = None;
        while !self.at(closer) && !self.stops_here() {
            self.rest_not_last(rest.take());
            let element = if self.at(TokenKind::Ellipsis) {
                rest = Some(self.tok().span());
                if kind == NodeKind::PatTuple {
                    self.bad_pattern("a tuple pattern has no rest", Some("match an array with `#[…]`"));
                }
                self.rest_pattern()
            } else {
                self.pattern()
            };
            self.nodes.append(&mut kids, element);
            if !self.group_separator(closer, &mut kids) {
                break;
            }
        }
        self.close_bracket(closer, first, &mut kids);
        self.node(kind, first, kids)
    }

    /// Behind an element: takes the comma; false at the end of the group.
    pub(super) fn group_separator(&mut self, closer: TokenKind, kids: &mut Kids) -> bool {
        if !self.at(TokenKind::Comma) && !self.at(closer) && !self.stops_here() {
            self.unexpected("`,`");
            let before = self.pos;
            let skipped = self.skip_in_group();
            self.nodes.append(kids, skipped);
            if self.pos == before && !self.at(TokenKind::Comma) {
                return false;
            }
        }
        self.eat(TokenKind::Comma)
    }

    fn rest_pattern(&mut self) -> NodeId {
        let first = self.here();
        self.bump();
        if self.at_word() {
            self.bump();
            self.node(NodeKind::PatRest, first, Kids::EMPTY)
        } else {
            let gap = self.missing(code::BAD_PATTERN, "a name is missing behind `...`");
            self.node_of(NodeKind::PatRest, first, &[gap])
        }
    }

    fn map_pattern(&mut self) -> NodeId {
        use TokenKind as K;
        let first = self.here();
        let mut kids = Kids::EMPTY;
        self.open_bracket();
        while !self.at(K::RBrace) && !self.stops_here() {
            let entry = self.here();
            let mut parts = Kids::EMPTY;
            let key = match self.kind() {
                K::Symbol | K::String => self.leaf(NodeKind::PatLiteral),
                _ => {
                    let span = self.tok().span();
                    self.error(
                        code::BAD_PATTERN,
                        span,
                        "a key of a map pattern is a symbol or a string",
                        Some("write `#name`"),
                    );
                    if self.at_word() { self.leaf(NodeKind::Error) } else { self.empty_error() }
                }
            };
            self.nodes.append(&mut parts, key);
            if self.eat(K::FatArrow) {
                let value = self.simple_pattern();
                self.nodes.append(&mut parts, value);
            } else {
                let gap = self.missing(code::BAD_PATTERN, "`=>` is missing here");
                self.nodes.append(&mut parts, gap);
            }
            let entry = self.node(NodeKind::PatMapEntry, entry, parts);
            self.nodes.append(&mut kids, entry);
            if !self.group_separator(K::RBrace, &mut kids) {
                break;
            }
        }
        self.close_bracket(K::RBrace, first, &mut kids);
        self.node(NodeKind::PatMap, first, kids)
    }

    /// An error node without tokens whose fault is reported already.
    pub(super) fn empty_error(&mut self) -> NodeId {
        self.node(NodeKind::Error, self.here(), Kids::EMPTY)
    }

    fn binary_pattern(&mut self) -> NodeId {
        use TokenKind as K;
        let first = self.here();
        let mut kids = Kids::EMPTY;
        self.bump();
        while !self.at(K::GtGt) && !self.stops_here() {
            let segment = self.segment();
            self.nodes.append(&mut kids, segment);
            if !self.group_separator(K::GtGt, &mut kids) {
                break;
            }
        }
        if !self.eat(K::GtGt) {
            let span = self.tok_at(first as usize).span();
            self.error(code::UNCLOSED_BRACKET, span, "this binary pattern is never closed", None);
            let gap = self.empty_error();
            self.nodes.append(&mut kids, gap);
        }
        self.node(NodeKind::PatBinary, first, kids)
    }

    fn segment(&mut self) -> NodeId {
        use TokenKind as K;
        let first = self.here();
        let mut kids = Kids::EMPTY;
        let sized = match self.kind() {
            K::Keyword => {
                self.bump();
                true
            }
            K::Ident | K::Name => {
                self.bump();
                self.eat(K::Colon)
            }
            _ => {
                let gap = self.missing(code::BAD_PATTERN, "a segment is missing here");
                self.nodes.append(&mut kids, gap);
                false
            }
        };
        if sized {
            match self.kind() {
                K::Integer => self.bump(),
                // The size may be computed from a name, which is an expression.
                kind if is_word(kind) => {
                    let size = self.leaf(NodeKind::Ident);
                    self.nodes.append(&mut kids, size);
                }
                _ => {
                    let gap = self.missing(code::BAD_PATTERN, "a segment size is missing here");
                    self.nodes.append(&mut kids, gap);
                }
            }
        }
        if self.at(K::BinOp) && self.text() == b"/" {
            self.bump();
            while self.at_word() {
                if !is_segment_spec(self.text()) {
                    self.bad_pattern("unknown segment type", None);
                }
                self.bump();
                if self.at(K::BinOp) && self.text() == b"-" {
                    self.bump();
                } else {
                    break;
                }
            }
        }
        self.node(NodeKind::PatSegment, first, kids)
    }

    /// Turns a collection literal that stands before `:=` into a pattern.
    pub(super) fn convert_to_pattern(&mut self, literal: NodeId) -> bool {
        let kind = match self.nodes.kind(literal) {
            NodeKind::List => NodeKind::PatList,
            NodeKind::Array => NodeKind::PatArray,
            NodeKind::Map => NodeKind::PatMap,
            _ => return false,
        };
        self.nodes.set_kind(literal, kind);
        let mut next = self.nodes.child(literal);
        while let Some(element) = next {
            match self.nodes.kind(element) {
                NodeKind::MapPair => {
                    self.nodes.set_kind(element, NodeKind::PatMapEntry);
                    let key = self.nodes.child(element);
                    if let Some(key) = key {
                        self.convert_leaf(key, &[NodeKind::Symbol, NodeKind::Str]);
                        if let Some(value) = self.nodes.next(key) {
                            self.convert_leaf(value, &[NodeKind::Ident, NodeKind::ClassRef]);
                        }
                    }
                }
                _ => self.convert_leaf(
                    element,
                    &[
                        NodeKind::Ident,
                        NodeKind::ClassRef,
                        NodeKind::Rest,
                        NodeKind::Integer,
                        NodeKind::Float,
                        NodeKind::Char,
                        NodeKind::Str,
                        NodeKind::Symbol,
                    ],
                ),
            }
            next = self.nodes.next(element);
        }
        true
    }

    fn convert_leaf(&mut self, id: NodeId, allowed: &[NodeKind]) {
        let kind = self.nodes.kind(id);
        if kind == NodeKind::Error {
            return;
        }
        let (first, end) = self.nodes.range(id);
        if !allowed.contains(&kind) || end - first > 1 && kind != NodeKind::Rest {
            let span = self.tok_at(first as usize).span();
            let hint = Some("an array or list pattern takes names, `_`, literals and a final `...name`");
            self.error(code::BAD_PATTERN, span, "this cannot be destructured", hint);
            return;
        }
        let kind = match kind {
            NodeKind::Ident | NodeKind::ClassRef => match self.text_at(first as usize) {
                b"_" => NodeKind::PatWildcard,
                _ => NodeKind::PatBind,
            },
            NodeKind::Rest => NodeKind::PatRest,
            _ => NodeKind::PatLiteral,
        };
        self.nodes.set_kind(id, kind);
    }
}

fn is_segment_spec(word: &[u8]) -> bool {
    ["integer", "float", "binary", "bytes", "utf8", "signed", "unsigned", "big", "little", "native"]
        .iter()
        .any(|spec| spec.as_bytes() == word)
}
