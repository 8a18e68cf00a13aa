//! Types.

use super::{Parser, Place, is_word};
use crate::diag::code;
use crate::lexer::TokenKind;
use crate::tree::{Kids, NodeId, NodeKind};

impl Parser<'_, '_> {
    /// A type, unions included.
    pub(super) fn type_expr(&mut self) -> NodeId {
        let first = self.here();
        let left = self.type_chain();
        if !self.at(TokenKind::Pipe) {
            return left;
        }
        let mut kids = Kids::EMPTY;
        self.nodes.append(&mut kids, left);
        while self.eat(TokenKind::Pipe) {
            let member = self.type_chain();
            self.nodes.append(&mut kids, member);
        }
        self.node(NodeKind::TypeUnion, first, kids)
    }

    fn type_chain(&mut self) -> NodeId {
        let first = self.here();
        let mut left = self.type_atom();
        let mut level: Option<NodeKind> = None;
        while self.at(TokenKind::BinOp) && !self.ends_signature() {
            let kind = match self.text() {
                b"&" => NodeKind::TypeIntersection,
                b"\\" => NodeKind::TypeDifference,
                b"\\\\" => {
                    let hint = Some("a single backslash takes a type away");
                    self.error_here(code::BAD_TYPE, "`\\\\` is no type operator", hint);
                    NodeKind::TypeDifference
                }
                _ => break,
            };
            if level.is_some_and(|l| l != kind) {
                self.error_here(
                    code::BAD_TYPE,
                    "`&` and `\\` cannot be mixed",
                    Some("put parentheses around one of them"),
                );
            }
            level = Some(kind);
            self.bump();
            let right = self.type_atom();
            left = self.node_of(kind, first, &[left, right]);
        }
        left
    }

    /// In a protocol a signature ends where the next one begins, and a slot's type where the next member does; a
    /// method's header may wrap.
    fn ends_signature(&self) -> bool {
        (self.ctx.place == Place::Protocol || self.ctx.slot) && self.at_boundary()
    }

    pub(super) fn type_atom(&mut self) -> NodeId {
        let first = self.here();
        if self.ends_signature() {
            return self.missing(code::BAD_TYPE, "a type is missing here");
        }
        match self.kind() {
            TokenKind::Symbol => self.leaf(NodeKind::TypeSymbol),
            TokenKind::LParen => {
                if !self.enter() {
                    return self.too_deep();
                }
                let mut kids = Kids::EMPTY;
                self.open_bracket();
                let inner = self.type_expr();
                self.nodes.append(&mut kids, inner);
                self.close_bracket(TokenKind::RParen, first, &mut kids);
                self.leave();
                self.node(NodeKind::TypeParen, first, kids)
            }
            kind if is_word(kind) => {
                let is_self = self.text() == b"Self";
                self.bump();
                if self.at(TokenKind::Ident) && !self.nl() && self.text() == b"class" {
                    self.bump();
                    let kind = if is_self { NodeKind::TypeSelfClass } else { NodeKind::TypeMeta };
                    return self.node(kind, first, Kids::EMPTY);
                }
                if is_self {
                    return self.node(NodeKind::TypeSelf, first, Kids::EMPTY);
                }
                if self.at(TokenKind::LParen) {
                    let mut kids = Kids::EMPTY;
                    self.type_list(&mut kids);
                    return self.node(NodeKind::TypeGeneric, first, kids);
                }
                self.node(NodeKind::TypeName, first, Kids::EMPTY)
            }
            _ => {
                if self.at(TokenKind::Error) {
                    self.error_at_token(first);
                    return self.leaf(NodeKind::Error);
                }
                self.missing(code::BAD_TYPE, "a type is missing here")
            }
        }
    }

    /// `(` types `)`, without a node of its own.
    pub(super) fn type_list(&mut self, kids: &mut Kids) {
        let opener = self.here();
        if !self.enter() {
            let skipped = self.too_deep();
            self.nodes.append(kids, skipped);
            return;
        }
        self.open_bracket();
        while !self.at(TokenKind::RParen) {
            let arg = self.type_expr();
            self.nodes.append(kids, arg);
            if !self.eat(TokenKind::Comma) {
                break;
            }
        }
        self.close_bracket(TokenKind::RParen, opener, kids);
        self.leave();
    }

    /// `(A, B :: Bound)` behind a declared name, if it stands here.
    pub(super) fn type_params(&mut self) -> Option<NodeId> {
        if !self.at(TokenKind::LParen) || self.nl() {
            return None;
        }
        let first = self.here();
        let mut kids = Kids::EMPTY;
        self.open_bracket();
        while self.at_word() {
            let param = self.here();
            self.bump();
            if self.eat(TokenKind::DColon) && self.at_word() {
                self.bump();
            }
            let param = self.node(NodeKind::TypeParam, param, Kids::EMPTY);
            self.nodes.append(&mut kids, param);
            if !self.eat(TokenKind::Comma) {
                break;
            }
        }
        self.close_bracket(TokenKind::RParen, first, &mut kids);
        Some(self.node(NodeKind::TypeParams, first, kids))
    }
}
