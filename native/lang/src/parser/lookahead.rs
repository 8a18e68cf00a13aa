//! Questions about the tokens ahead: does a declaration, a method, a member begin here?
//!
//! Every answer costs a bounded number of tokens, or the tokens of one line or header that is then consumed, or is
//! remembered; so reading stays linear whatever the text.

use super::{Parser, Place, is_closer, is_opener, is_word};
use crate::lexer::TokenKind;

/// More modifiers than any declaration has.
const MAX_MODIFIERS: usize = 8;

/// A declaration of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decl {
    Alias,
    Protocol,
    Class,
    Extension,
}

/// Where the members that begin in a stretch of tokens end.
#[derive(Clone, Copy, Default)]
pub(super) struct MemberEnd {
    /// Column that the members count as standing at.
    pub(super) column: u32,
    /// First token of the stretch.
    pub(super) from: usize,
    /// Token behind it, which begins the next member.
    pub(super) end: usize,
}

/// A chain of keyword parts.
#[derive(Clone, Copy, Default)]
struct Chain {
    /// The limit that it was looked at with.
    stop: usize,
    /// Its first token.
    from: usize,
    /// The token behind it.
    end: usize,
    /// The `=>` behind it.
    arrow: Option<usize>,
}

/// What lookahead remembers.
#[derive(Default)]
pub(super) struct Memo {
    /// Partner of every bracket, by token; its own index if it has none. Empty until first needed.
    partners: std::cell::OnceCell<Vec<u32>>,
    /// The chain of keyword parts that was looked at last, without and with a limit.
    chains: [std::cell::Cell<Chain>; 2],
    /// The line that was looked at last: a token of it, and the token that begins the next one.
    line: std::cell::Cell<(usize, usize)>,
    /// The stretches looked at last by protocol members within a line and by those that begin one.
    pub(super) member_ends: [MemberEnd; 2],
    /// Lookahead sees no token from here on; 0 means no limit.
    pub(super) stop: usize,
}

impl Parser<'_, '_> {
    fn look(&self, i: usize) -> TokenKind {
        if self.look.stop != 0 && i >= self.look.stop { TokenKind::Eof } else { self.kind_at(i) }
    }

    /// Runs a lookahead that sees no token from `stop` on.
    pub(super) fn look_until<T>(&mut self, stop: usize, ask: impl FnOnce(&Self) -> T) -> T {
        self.look.stop = stop;
        let answer = ask(self);
        self.look.stop = 0;
        answer
    }

    /// The token that closes the bracket at `i`.
    pub(super) fn partner(&self, i: usize) -> Option<usize> {
        let partners = self.look.partners.get_or_init(|| {
            self.count(self.toks.len());
            let mut partners: Vec<u32> = (0..self.toks.len() as u32).collect();
            let mut open: [Vec<u32>; 3] = Default::default();
            for (i, token) in self.toks.iter().enumerate() {
                let Some(stack) = super::bracket_class(token.kind).and_then(|c| open.get_mut(c)) else {
                    continue;
                };
                if is_opener(token.kind) {
                    stack.push(i as u32);
                } else if let Some(opener) = stack.pop()
                    && let Some(slot) = partners.get_mut(opener as usize)
                {
                    *slot = i as u32;
                }
            }
            partners
        });
        partners.get(i).map(|p| *p as usize).filter(|p| *p > i)
    }

    /// The token behind the type that begins at `i`, read by its shape alone.
    pub(super) fn skip_type(&self, mut i: usize) -> Option<usize> {
        loop {
            match self.look(i) {
                TokenKind::LParen => i = self.partner(i)? + 1,
                TokenKind::Symbol => i += 1,
                kind if is_word(kind) => {
                    i += 1;
                    if self.look(i) == TokenKind::LParen {
                        i = self.partner(i)? + 1;
                    } else if is_word(self.look(i)) && !self.tok_at(i).nl() && self.text_at(i) == b"class" {
                        i += 1;
                    }
                }
                _ => return None,
            }
            match self.look(i) {
                TokenKind::Pipe => i += 1,
                TokenKind::BinOp if matches!(self.text_at(i), b"&" | b"\\" | b"\\\\") => i += 1,
                _ => return Some(i),
            }
        }
    }

    /// `=>`, or a return type and `=>`, at `i`: the index of the `=>`.
    fn header_tail(&self, i: usize) -> Option<usize> {
        let after_arrow = |i: usize| match self.look(i) {
            TokenKind::FatArrow => Some(i),
            _ => self.skip_type(i).filter(|e| self.look(*e) == TokenKind::FatArrow),
        };
        match self.look(i) {
            TokenKind::FatArrow => Some(i),
            TokenKind::Arrow => after_arrow(i + 1),
            TokenKind::DColon => match self.look(i + 1) {
                TokenKind::FatArrow => Some(i + 1),
                TokenKind::Arrow => after_arrow(i + 2),
                _ => None,
            },
            _ => None,
        }
    }

    /// The token behind a parameter's name at `i` and its type.
    fn skip_param(&self, i: usize) -> Option<usize> {
        match self.look(i) {
            // `key: name: Type`, the old form.
            TokenKind::Keyword => self.skip_type(i + 1),
            kind if is_word(kind) => match self.look(i + 1) {
                TokenKind::DColon if matches!(self.look(i + 2), TokenKind::Arrow | TokenKind::FatArrow) => {
                    Some(i + 1)
                }
                TokenKind::DColon | TokenKind::Colon => self.skip_type(i + 2),
                _ => Some(i + 1),
            },
            _ => None,
        }
    }

    /// Whether the word at `i` is a modifier of the method that begins there.
    pub(super) fn is_method_modifier(&self, i: usize) -> bool {
        if self.look(i) != TokenKind::Ident {
            return false;
        }
        match self.text_at(i) {
            b"sealed" => true,
            b"class" | b"internal" => self.header_tail(i + 1).is_none(),
            _ => false,
        }
    }

    /// The `=>` of the method header that begins at `i`.
    pub(super) fn header(&self, mut i: usize) -> Option<usize> {
        for _ in 0..MAX_MODIFIERS {
            if !self.is_method_modifier(i) {
                break;
            }
            i += 1;
        }
        self.bare_header(i)
    }

    fn bare_header(&self, i: usize) -> Option<usize> {
        use TokenKind as K;
        match self.look(i) {
            K::Ident | K::Name => self.header_tail(i + 1),
            K::BinOp | K::Eq | K::Comma | K::Arrow | K::GtGt => {
                if !is_word(self.look(i + 1)) {
                    return None;
                }
                self.header_tail(self.skip_param(i + 1)?)
            }
            K::Keyword => {
                // A keyword inside a chain that was looked at ends like the chain.
                let [unlimited, limited] = &self.look.chains;
                let stop = self.look.stop;
                let memo = if stop == 0 { unlimited } else { limited };
                let known = memo.get();
                if known.stop == stop && (known.from..known.end).contains(&i) {
                    return known.arrow;
                }
                let mut at = i;
                let answer = loop {
                    let Some(next) = self.skip_param(at + 1) else { break None };
                    at = next;
                    if self.look(at) != K::Keyword {
                        break self.header_tail(at);
                    }
                };
                memo.set(Chain { stop, from: i, end: at.max(i + 1), arrow: answer });
                answer
            }
            _ => None,
        }
    }

    /// Whether a method begins at `i`; in a class also if only its line says so, for headers that cannot be read.
    pub(super) fn header_at(&self, i: usize) -> bool {
        if self.header(i).is_some() {
            return true;
        }
        let token = self.tok_at(i);
        self.ctx.place == Place::Class
            && token.col().is_some_and(|c| c <= self.ctx.h)
            && begins_selector(token.kind)
            && self.line_has_fat_arrow(i)
    }

    /// Whether the line of token `i` holds `=>` outside brackets. Brackets may run over line ends, but not over the
    /// begin of a member. Separators end the line, as no header holds one.
    pub(super) fn line_has_fat_arrow(&self, i: usize) -> bool {
        let mut depth = 0u32;
        let mut at = i;
        loop {
            let token = self.tok_at(at);
            if at > i && token.col().is_some_and(|c| depth == 0 || c <= self.ctx.h) {
                return false;
            }
            match token.kind {
                TokenKind::Eof | TokenKind::Period | TokenKind::Bang | TokenKind::Semi | TokenKind::Caret => {
                    return false;
                }
                TokenKind::FatArrow if depth == 0 => return true,
                TokenKind::HoleOpen => depth += 1,
                TokenKind::HoleClose => depth = depth.saturating_sub(1),
                kind if is_opener(kind) => depth += 1,
                kind if is_closer(kind) => depth = depth.saturating_sub(1),
                _ => {}
            }
            at += 1;
        }
    }

    /// Whether a slot begins at `i`. With a method's `=>` on its line it is a method; a header must not run across
    /// lines here, or it would read the next method into a slot.
    pub(super) fn slot_at(&self, i: usize) -> bool {
        self.kind_at(i) == TokenKind::Keyword
            && matches!(self.text_at(i), b"state:" | b"field:" | b"classState:")
            && self.header(i).is_none_or(|arrow| arrow >= self.line_end(i))
    }

    /// The token that begins the next line.
    fn line_end(&self, i: usize) -> usize {
        let (from, end) = self.look.line.get();
        if (from..end).contains(&i) {
            return end;
        }
        let mut end = i + 1;
        while self.kind_at(end) != TokenKind::Eof && !self.tok_at(end).nl() {
            end += 1;
        }
        self.look.line.set((i, end));
        end
    }

    /// Whether a `uses:` clause begins at `i`; with `=>` on its line it is a method.
    pub(super) fn uses_at(&self, i: usize) -> bool {
        self.kind_at(i) == TokenKind::Keyword && self.text_at(i) == b"uses:" && !self.line_has_fat_arrow(i)
    }

    fn between_members(&self) -> bool {
        matches!(self.ctx.place, Place::Class | Place::Protocol)
    }

    /// The declaration that begins at `i`.
    pub(super) fn decl_at(&self, i: usize) -> Option<Decl> {
        let kind = self.look(i);
        if !is_word(kind) {
            return None;
        }
        if kind == TokenKind::Ident {
            let word = i + usize::from(self.text_at(i) == b"internal");
            if self.text_at(word) == b"type"
                && self.look(word + 1) == TokenKind::Name
                && self.look(word + 2) == TokenKind::Eq
                && !(self.between_members() && (self.tok_at(word + 1).nl() || self.tok_at(word + 2).nl()))
            {
                return Some(Decl::Alias);
            }
        }
        let mut at = i;
        for _ in 0..MAX_MODIFIERS {
            if !self.is_class_modifier(at) || !is_word(self.look(at + 1)) {
                break;
            }
            at += 1;
        }
        if self.look(at + 1) == TokenKind::Keyword {
            match self.text_at(at + 1) {
                b"define:" if self.text_at(at) == b"Protocol" => return Some(Decl::Protocol),
                b"subclass:" => return Some(Decl::Class),
                _ => {}
            }
        }
        let qualified = self.look(at + 1) == TokenKind::At && is_word(self.look(at + 2));
        let name = if qualified { at + 2 } else { at };
        let mut after = name + 1;
        if self.look(after) == TokenKind::LParen {
            after = self.partner(after)? + 1;
        }
        if self.look(after) == TokenKind::Keyword && self.text_at(after) == b"subclass:" {
            return Some(Decl::Class);
        }
        (at == i && self.extension_header(i).is_some()).then_some(Decl::Extension)
    }

    /// The `>>` of the extension that begins at `i`.
    pub(super) fn extension_header(&self, i: usize) -> Option<usize> {
        use TokenKind as K;
        let mut at = if self.look(i + 1) == K::At { i + 2 } else { i };
        if self.look(at) != K::Name {
            return None;
        }
        at += 1;
        if self.look(at) == K::Ident && self.text_at(at) == b"class" {
            at += 1;
        }
        // Between members, `>>` at the begin of a line is a method's selector.
        if self.look(at) != K::GtGt || self.between_members() && self.tok_at(at).nl() {
            return None;
        }
        let mut selector = at + 1;
        for _ in 0..MAX_MODIFIERS {
            if !self.is_method_modifier(selector) || self.text_at(selector) == b"class" {
                break;
            }
            selector += 1;
        }
        if matches!(self.look(selector), K::Arrow | K::GtGt) {
            return None;
        }
        self.bare_header(selector).map(|_| at)
    }

    pub(super) fn is_class_modifier(&self, i: usize) -> bool {
        self.look(i) == TokenKind::Ident
            && matches!(self.text_at(i), b"abstract" | b"sealed" | b"typed" | b"internal")
    }

    /// Whether the next member or declaration begins at the current token, so that nothing before it may go on.
    pub(super) fn at_boundary(&self) -> bool {
        let Some(col) = self.tok().col() else { return false };
        let i = self.pos;
        if self.ctx.map && is_word(self.kind()) && self.next_kind() == TokenKind::FatArrow {
            return false;
        }
        let inside = self.ctx.brackets > 0;
        match self.ctx.place {
            Place::Class => {
                col <= self.ctx.h
                    && (self.header_at(i)
                        || self.slot_at(i)
                        || self.uses_at(i)
                        || self.kind() == TokenKind::AtExpect
                        || col == 0 && self.decl_at(i).is_some())
            }
            Place::Protocol => col <= self.ctx.h && (!inside || self.header(i).is_some()),
            Place::Outside | Place::File => {
                col == 0 && (self.decl_at(i).is_some() || self.header(i).is_some())
            }
        }
    }

    /// Whether an operator or keyword that stands first on its line continues the expression before it.
    /// `parts` holds the column of the message's first keyword that stood first on its line.
    pub(super) fn continues(&self, keyword: bool, parts: Option<u32>, begun: bool) -> bool {
        let Some(col) = self.tok().col() else { return true };
        if self.ctx.brackets > 0 {
            return !self.at_boundary();
        }
        match self.ctx.place {
            Place::Protocol => col > self.ctx.h,
            Place::Class if keyword && self.ctx.slot => begun && col > self.ctx.h,
            Place::Class if keyword => parts.map_or(col > self.ctx.h, |first| col >= first),
            Place::Class => !self.header_at(self.pos),
            Place::Outside | Place::File => self.header(self.pos).is_none(),
        }
    }
}

/// Whether a token may be the first of a selector.
pub(super) fn begins_selector(kind: TokenKind) -> bool {
    use TokenKind as K;
    matches!(kind, K::Ident | K::Name | K::Keyword | K::BinOp | K::Eq | K::Comma | K::Arrow | K::GtGt)
}
