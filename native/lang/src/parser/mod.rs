//! Reads tokens into a tree.
//!
//! Recursive descent with a depth limit where the text nests, loops where it merely goes on (operators, unary
//! messages, assignments). Every wrong place becomes an error node and a diagnostic, and reading goes on at the next
//! recovery point: a separator, a closing bracket, a line, a member.

mod decl;
mod expr;
mod lookahead;
mod pattern;
mod types;

use std::borrow::Cow;
use std::cell::Cell;

use crate::diag::{Code, Diagnostic, Severity, code, of_lex_error};
use crate::lexer::{Lexed, Token, TokenKind, lex};
use crate::span::Span;
use crate::tree::{Kids, NodeId, NodeKind, Nodes, Tree};

/// Levels of brackets, patterns and types that are read; deeper ones are an error.
pub const MAX_DEPTH: u32 = 64;

/// Longest text that is read, in bytes.
pub const MAX_SOURCE: usize = 1 << 30;

/// A tree and what was found while reading it.
#[derive(Clone, Debug)]
pub struct Parse<'s> {
    /// The tree.
    pub tree: Tree<'s>,
    /// The findings, ordered by where they begin.
    pub diagnostics: Vec<Diagnostic>,
    /// Steps taken: bytes that the lexer and tokens that the parser looked at, each as often as it did. Shows that
    /// reading is linear in the text without a clock.
    pub work: u64,
}

impl Parse<'_> {
    /// Whether any finding is an error.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|d| d.severity == Severity::Error)
    }
}

/// Reads a file. Any bytes give a tree; wrong ones also give diagnostics. Cost: linear in the text, about 64 levels
/// of stack at most. Of a text longer than [`MAX_SOURCE`] nothing is read.
#[must_use]
pub fn parse(source: &[u8]) -> Parse<'_> {
    run(source, false)
}

/// Reads the text of one method, without its class and side. As [`parse`] otherwise; what follows the method is an
/// error, yet stands in the tree.
#[must_use]
pub fn parse_method(source: &[u8]) -> Parse<'_> {
    run(source, true)
}

fn run(source: &[u8], fragment: bool) -> Parse<'_> {
    let mut early = Vec::new();
    let readable = if source.len() > MAX_SOURCE {
        early.push(Diagnostic {
            code: code::SOURCE_TOO_LARGE,
            severity: Severity::Error,
            span: Span::default(),
            message: Cow::Borrowed("this text is too large"),
            hint: None,
        });
        &[]
    } else {
        source
    };
    if let Err(bad) = std::str::from_utf8(readable) {
        let start = bad.valid_up_to() as u32;
        early.push(Diagnostic {
            code: code::INVALID_UTF8,
            severity: Severity::Error,
            span: Span::new(start, start + 1),
            message: Cow::Borrowed("this text is not UTF-8"),
            hint: None,
        });
    }
    let lexed = lex(readable);
    let mut parser = Parser::new(readable, &lexed);
    let root = if fragment { parser.fragment() } else { parser.file() };
    let (nodes, mut diagnostics, looks) = parser.finish();
    let work = lexed.work + looks;
    diagnostics.append(&mut early);
    diagnostics.sort_by_key(|d| (d.span.start, d.span.end));
    Parse { tree: Tree::new(readable, lexed, nodes, root), diagnostics, work }
}

/// Where a method or statement stands; decides where it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Statements of the file.
    File,
    /// Body of a class.
    Class,
    /// Extension or method fragment.
    Outside,
    /// Body of a protocol.
    Protocol,
}

#[derive(Clone, Copy, Debug)]
struct Ctx {
    place: Place,
    /// Column of the member being read.
    h: u32,
    /// Open brackets around the current token, counted from the member.
    brackets: u32,
    /// Whether a slot's default is being read.
    slot: bool,
    /// Whether a map literal that is closed somewhere is being read, whose keys look like unary headers.
    map: bool,
}

const FILE: Ctx = Ctx { place: Place::File, h: 0, brackets: 0, slot: false, map: false };

struct Parser<'p, 's> {
    src: &'s [u8],
    lexed: &'p Lexed,
    toks: &'p [Token],
    pos: usize,
    /// Tokens looked at.
    looks: Cell<u64>,
    nodes: Nodes,
    diags: Vec<Diagnostic>,
    ctx: Ctx,
    depth: u32,
    /// Open `(`, `[` and `{` around the current token.
    open: [u32; 3],
    /// Pending left operands of the operators being read.
    operators: Vec<expr::Pending>,
    /// Pending targets of the assignments being read.
    targets: Vec<expr::Target>,
    /// Token behind the last statement-level recovery.
    recovered: usize,
    look: lookahead::Memo,
    /// Tokens whose doc comment is attached, ascending.
    documented: Vec<u32>,
}

impl<'p, 's> Parser<'p, 's> {
    fn new(src: &'s [u8], lexed: &'p Lexed) -> Self {
        Self {
            src,
            lexed,
            toks: &lexed.tokens,
            pos: 0,
            looks: Cell::new(0),
            nodes: Nodes::with_capacity(lexed.tokens.len()),
            diags: Vec::new(),
            ctx: FILE,
            depth: 0,
            open: [0; 3],
            operators: Vec::new(),
            targets: Vec::new(),
            recovered: usize::MAX,
            look: lookahead::Memo::default(),
            documented: Vec::new(),
        }
    }

    fn finish(mut self) -> (Nodes, Vec<Diagnostic>, u64) {
        self.report_unattached_docs();
        (self.nodes, self.diags, self.looks.get())
    }

    // Tokens.

    fn count(&self, steps: usize) {
        self.looks.set(self.looks.get() + steps as u64);
    }

    fn tok_at(&self, i: usize) -> Token {
        self.count(1);
        self.toks.get(i).copied().unwrap_or(Token::eof())
    }

    fn kind_at(&self, i: usize) -> TokenKind {
        self.count(1);
        self.toks.get(i).map_or(TokenKind::Eof, |t| t.kind)
    }

    fn tok(&self) -> Token {
        self.tok_at(self.pos)
    }

    fn kind(&self) -> TokenKind {
        self.kind_at(self.pos)
    }

    fn next_kind(&self) -> TokenKind {
        self.kind_at(self.pos + 1)
    }

    fn at(&self, kind: TokenKind) -> bool {
        self.kind() == kind
    }

    fn text_at(&self, i: usize) -> &'s [u8] {
        self.tok_at(i).span().slice(self.src)
    }

    fn text(&self) -> &'s [u8] {
        self.text_at(self.pos)
    }

    fn nl(&self) -> bool {
        self.tok().nl()
    }

    fn at_word(&self) -> bool {
        is_word(self.kind())
    }

    fn bump(&mut self) {
        // The end token is never consumed, so every loop that advances also ends.
        if self.kind() != TokenKind::Eof {
            self.pos += 1;
        }
    }

    fn eat(&mut self, kind: TokenKind) -> bool {
        let found = self.at(kind);
        if found {
            self.bump();
        }
        found
    }

    // Nodes.

    fn here(&self) -> u32 {
        self.pos as u32
    }

    /// Ends a node before the current token.
    fn node(&mut self, kind: NodeKind, first: u32, kids: Kids) -> NodeId {
        let end = self.here();
        self.nodes.add(kind, first, end, kids)
    }

    fn node_of(&mut self, kind: NodeKind, first: u32, children: &[NodeId]) -> NodeId {
        let mut kids = Kids::EMPTY;
        for child in children {
            self.nodes.append(&mut kids, *child);
        }
        self.node(kind, first, kids)
    }

    /// A node over the current token.
    fn leaf(&mut self, kind: NodeKind) -> NodeId {
        let first = self.here();
        self.bump();
        self.node(kind, first, Kids::EMPTY)
    }

    /// An error node without tokens: something is missing here.
    fn missing(&mut self, code: Code, message: impl Into<Cow<'static, str>>) -> NodeId {
        self.error_here(code, message, None);
        self.node(NodeKind::Error, self.here(), Kids::EMPTY)
    }

    // Diagnostics.

    fn report(
        &mut self,
        severity: Severity,
        code: Code,
        span: Span,
        message: impl Into<Cow<'static, str>>,
        hint: Option<&'static str>,
    ) {
        self.diags.push(Diagnostic {
            code,
            severity,
            span,
            message: message.into(),
            hint: hint.map(Cow::Borrowed),
        });
    }

    fn error(
        &mut self,
        code: Code,
        span: Span,
        message: impl Into<Cow<'static, str>>,
        hint: Option<&'static str>,
    ) {
        // One fault often breaks several rules at the same place; the first says it best.
        let repeated =
            self.diags.last().is_some_and(|d| d.severity == Severity::Error && d.span.start == span.start);
        if !repeated {
            self.report(Severity::Error, code, span, message, hint);
        }
    }

    fn error_here(&mut self, code: Code, message: impl Into<Cow<'static, str>>, hint: Option<&'static str>) {
        let span = self.tok().span();
        self.error(code, span, message, hint);
    }

    fn error_at_token(&mut self, token: u32) {
        let why = self.lexed.error_at(token);
        let (code, message, hint) = why.map_or((code::UNKNOWN_CHARACTER, "bad token", None), of_lex_error);
        let span = self.tok_at(token as usize).span();
        self.error(code, span, message, hint);
    }

    /// Says what is wrong with the current token at a place where it cannot stand.
    fn unexpected(&mut self, wanted: &'static str) {
        use TokenKind as K;
        match self.kind() {
            K::Error => self.error_at_token(self.here()),
            K::Eof => {
                self.error_here(code::UNEXPECTED_TOKEN, format!("the text ends, expected {wanted}"), None)
            }
            K::Eq => self.error_here(
                code::NO_INFIX_OPERATOR,
                "`=` is no operator of expressions",
                Some("compare with `=:=` or `==`, assign with `:=`"),
            ),
            K::BinOp | K::Comma if expr::precedence(self.text()).is_none() => {
                let op = String::from_utf8_lossy(self.text());
                let message = format!("`{op}` cannot be used between operands");
                self.error_here(code::NO_INFIX_OPERATOR, message, None);
            }
            _ => {
                let text = String::from_utf8_lossy(self.text());
                let shown: String = text.chars().take(40).collect();
                self.error_here(
                    code::UNEXPECTED_TOKEN,
                    format!("unexpected `{shown}`, expected {wanted}"),
                    None,
                );
            }
        }
    }

    // Depth and brackets.

    /// Goes one level down; false at the limit.
    fn enter(&mut self) -> bool {
        let fits = self.depth < MAX_DEPTH;
        if fits {
            self.depth += 1;
        }
        fits
    }

    fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    /// Consumes an opening bracket.
    fn open_bracket(&mut self) {
        self.count_bracket(1);
        self.ctx.brackets += 1;
        self.bump();
    }

    fn count_bracket(&mut self, by: i32) {
        if let Some(slot) = bracket_class(self.kind()).and_then(|c| self.open.get_mut(c)) {
            *slot = slot.saturating_add_signed(by);
        }
    }

    /// Ends what `open_bracket` began at token `opener`: skips to `closer`, or reports that it is missing.
    fn close_bracket(&mut self, closer: TokenKind, opener: u32, kids: &mut Kids) {
        if !self.at(closer) && !self.stops_here() && !is_closer(self.kind()) {
            self.unexpected("a closing bracket");
            let skipped = self.skip_to_point(false);
            self.nodes.append(kids, skipped);
        }
        if let Some(slot) = bracket_class(closer).and_then(|c| self.open.get_mut(c)) {
            *slot = slot.saturating_sub(1);
        }
        self.ctx.brackets = self.ctx.brackets.saturating_sub(1);
        if !self.eat(closer) {
            let span = self.tok_at(opener as usize).span();
            self.error(code::UNCLOSED_BRACKET, span, "this bracket is never closed", None);
            let gap = self.node(NodeKind::Error, self.here(), Kids::EMPTY);
            self.nodes.append(kids, gap);
        }
    }

    /// Whether the current token closes a bracket that is open further out.
    fn closes_outer(&self) -> bool {
        is_closer(self.kind())
            && bracket_class(self.kind()).and_then(|c| self.open.get(c)).is_some_and(|n| *n > 0)
    }

    /// Whether nothing may consume the current token as part of what is being read: end of text or hole, or the
    /// begin of the next member.
    fn stops_here(&self) -> bool {
        matches!(self.kind(), TokenKind::Eof | TokenKind::HoleClose) || self.at_boundary()
    }

    // Recovery.

    /// Consumes one token, or all tokens of a string with holes.
    fn skip_unit(&mut self) {
        let mut strings = 0usize;
        loop {
            match self.kind() {
                TokenKind::Eof => return,
                TokenKind::StrOpen => strings += 1,
                TokenKind::StrClose => strings = strings.saturating_sub(1),
                _ => {}
            }
            self.bump();
            if strings == 0 {
                return;
            }
        }
    }

    /// An error node over the current token and those behind it up to a recovery point: `.`, `!`, `;`, `^`, a closing
    /// bracket, a line end. With `line`, only the line end and what ends the surrounding bracket.
    fn skip_to_point(&mut self, line: bool) -> NodeId {
        use TokenKind as K;
        let first = self.here();
        let mut depth = 0u32;
        while !matches!(self.kind(), K::Eof | K::HoleClose) {
            let moved = self.here() > first;
            if moved && self.nl() {
                break;
            }
            let kind = self.kind();
            if is_closer(kind) {
                if depth == 0 && (self.closes_outer() || moved && !line) {
                    break;
                }
                depth = depth.saturating_sub(1);
            } else if is_opener(kind) {
                depth += 1;
            } else if depth == 0 && moved && !line && matches!(kind, K::Period | K::Bang | K::Semi | K::Caret)
            {
                break;
            }
            self.skip_unit();
        }
        self.node(NodeKind::Error, first, Kids::EMPTY)
    }

    /// Statement-level recovery at the current token: extends `before` if that is an error node already, else adds a
    /// diagnostic and an error node.
    fn recover(&mut self, before: Option<NodeId>, kids: &mut Kids, wanted: &'static str) -> NodeId {
        // A second fault on one line makes the rest of the line worthless.
        let again = self.recovered <= self.pos && !(self.recovered..=self.pos).any(|i| self.tok_at(i).nl());
        let merged = before.filter(|b| {
            self.nodes.kind(*b) == NodeKind::Error && {
                let (first, end) = self.nodes.range(*b);
                end > first
            }
        });
        if merged.is_none() {
            self.unexpected(wanted);
        }
        let skipped = self.skip_to_point(again);
        self.recovered = self.pos;
        match merged {
            Some(error) => {
                let end = self.here();
                self.nodes.set_end(error, end);
                error
            }
            None => {
                self.nodes.append(kids, skipped);
                skipped
            }
        }
    }

    /// An error node over everything up to a `,` or a closing bracket of this level.
    fn skip_in_group(&mut self) -> NodeId {
        use TokenKind as K;
        let first = self.here();
        let mut depth = 0u32;
        while !self.stops_here() {
            let kind = self.kind();
            if is_opener(kind) {
                depth += 1;
            } else if is_closer(kind) {
                if depth == 0 {
                    break;
                }
                depth -= 1;
            } else if depth == 0 && matches!(kind, K::Comma | K::GtGt) {
                break;
            }
            self.skip_unit();
        }
        self.node(NodeKind::Error, first, Kids::EMPTY)
    }

    /// An error node over a whole bracket that nests too deeply.
    fn too_deep(&mut self) -> NodeId {
        self.error_here(code::NESTING_TOO_DEEP, "this is nested too deeply", Some("use fewer brackets"));
        let first = self.here();
        let mut depth = 0u32;
        loop {
            if is_opener(self.kind()) {
                depth += 1;
            } else if is_closer(self.kind()) {
                depth = depth.saturating_sub(1);
            }
            self.skip_unit();
            if depth == 0 || self.stops_here() {
                break;
            }
        }
        self.node(NodeKind::Error, first, Kids::EMPTY)
    }

    // Documentation.

    fn document(&mut self, token: u32) {
        self.documented.push(token);
    }

    fn report_unattached_docs(&mut self) {
        let documented = std::mem::take(&mut self.documented);
        let mut known = documented.iter().peekable();
        self.count(self.toks.len());
        for (i, token) in self.toks.iter().enumerate() {
            if !token.maybe_doc() {
                continue;
            }
            while known.next_if(|d| (**d as usize) < i).is_some() {}
            if known.peek().is_some_and(|d| **d as usize == i) {
                continue;
            }
            let start = if i == 0 { 0 } else { self.tok_at(i - 1).end };
            self.count((token.start - start) as usize);
            let lines = crate::lexer::doc_lines(self.src, start, token.start, i == 0);
            if let (Some(first), Some(last)) = (lines.first(), lines.last()) {
                let span = Span::new(first.start, last.end);
                self.report(
                    Severity::Warning,
                    code::UNATTACHED_DOC,
                    span,
                    "this comment documents nothing",
                    Some("put it directly above a declaration, or use `//`"),
                );
            }
        }
    }
}

fn is_word(kind: TokenKind) -> bool {
    matches!(kind, TokenKind::Ident | TokenKind::Name)
}

fn is_opener(kind: TokenKind) -> bool {
    use TokenKind as K;
    matches!(kind, K::LParen | K::LBracket | K::LBrace | K::HashParen | K::HashBracket | K::HashBrace)
}

fn is_closer(kind: TokenKind) -> bool {
    matches!(kind, TokenKind::RParen | TokenKind::RBracket | TokenKind::RBrace)
}

fn bracket_class(kind: TokenKind) -> Option<usize> {
    use TokenKind as K;
    match kind {
        K::LParen | K::HashParen | K::RParen => Some(0),
        K::LBracket | K::HashBracket | K::RBracket => Some(1),
        K::LBrace | K::HashBrace | K::RBrace => Some(2),
        _ => None,
    }
}

#[cfg(test)]
mod tests {}
