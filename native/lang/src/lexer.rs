//! Tokens and trivia.
//!
//! Trivia (blanks, line ends, comments) is not stored: it is what lies between two tokens, and [`trivia`] reads it
//! again when somebody asks. A token carries what the grammar needs from it: whether a line end precedes the
//! token, and the token's column if so. Concatenating gaps and tokens gives the source back byte for byte.

use crate::span::Span;

/// Column of a token that does not stand first on its line.
const NO_COL: u32 = u32::MAX;

/// Interpolated strings inside holes are read down to this depth; deeper ones are error tokens. Each level reads
/// its text again, so the limit keeps the lexer linear.
const MAX_HOLE_DEPTH: usize = 4;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum TokenKind {
    /// Word that begins with a lower-case letter or `_`.
    Ident,
    /// Word that begins with an upper-case letter.
    Name,
    /// Word with a colon touching it: `at:`.
    Keyword,
    /// Integer literal, radix form included.
    Integer,
    /// Float literal.
    Float,
    /// Character literal: `$a`.
    Char,
    /// String without holes.
    String,
    /// Opening quote and first text piece of a string with holes.
    StrOpen,
    /// Text between two holes; absent if empty.
    StrText,
    /// Last text piece and closing quote of a string with holes.
    StrClose,
    /// `{` of a hole.
    HoleOpen,
    /// `}` of a hole.
    HoleClose,
    /// Symbol literal.
    Symbol,
    /// Operator characters other than those with a kind of their own.
    BinOp,
    /// Exactly `=`.
    Eq,
    /// Exactly `,`.
    Comma,
    /// `->`.
    Arrow,
    /// `<<`.
    LtLt,
    /// `>>`.
    GtGt,
    /// `=>`.
    FatArrow,
    /// `:=`.
    Assign,
    /// `::`.
    DColon,
    /// `:`.
    Colon,
    /// `...`.
    Ellipsis,
    /// `.`.
    Period,
    /// `#(`.
    HashParen,
    /// `#[`.
    HashBracket,
    /// `#{`.
    HashBrace,
    /// `(`.
    LParen,
    /// `)`.
    RParen,
    /// `[`.
    LBracket,
    /// `]`.
    RBracket,
    /// `{`.
    LBrace,
    /// `}`.
    RBrace,
    /// `^`.
    Caret,
    /// `;`.
    Semi,
    /// `!`.
    Bang,
    /// `|`.
    Pipe,
    /// `@` touching the word before it.
    At,
    /// `@primitive`.
    AtPrimitive,
    /// `@intrinsic`.
    AtIntrinsic,
    /// `@expect`.
    AtExpect,
    /// Bytes that form no token; [`Lexed::error_at`] says why.
    Error,
    /// End of the text, an empty token.
    Eof,
}

/// Why a token is a [`TokenKind::Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LexError {
    /// A character that begins no token.
    UnknownCharacter,
    /// A byte that is not UTF-8.
    InvalidUtf8,
    /// `"` without its end.
    UnterminatedString,
    /// `/*` without `*/`.
    UnterminatedComment,
    /// `#'` without its end.
    UnterminatedSymbol,
    /// `'text'`.
    SingleQuotes,
    /// `{}` or `{ }` in a string.
    EmptyHole,
    /// `{{…}}` in a string.
    DoubledBrace,
    /// Strings with holes inside holes, too deep.
    HoleTooDeep,
    /// `#` before something that makes no symbol.
    BadSymbol,
    /// `$` at the end of the text.
    BadCharacter,
    /// `@` before no known word.
    UnknownDirective,
    /// `@Name`: the package is missing.
    MissingPackage,
    /// Integer outside signed 64 bit.
    IntegerRange,
    /// Radix outside 2 to 36, no digits, or digits outside the radix.
    BadRadix,
    /// Exponent without digits.
    BadExponent,
    /// Float outside the range of a double.
    FloatRange,
}

/// One token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset behind the last byte.
    pub end: u32,
    col: u32,
    /// What it is.
    pub kind: TokenKind,
    maybe_doc: bool,
}

impl Token {
    /// Whether a line end stands between this token and the one before it.
    #[must_use]
    pub fn nl(self) -> bool {
        self.col != NO_COL
    }

    /// Bytes between the line's begin and the token; `None` unless [`Token::nl`]. A tab counts 1.
    #[must_use]
    pub fn col(self) -> Option<u32> {
        self.nl().then_some(self.col)
    }

    /// Where the token stands.
    #[must_use]
    pub fn span(self) -> Span {
        Span::new(self.start, self.end)
    }

    pub(crate) const fn eof() -> Self {
        Self { start: 0, end: 0, col: NO_COL, kind: TokenKind::Eof, maybe_doc: false }
    }

    pub(crate) fn maybe_doc(self) -> bool {
        self.maybe_doc
    }
}

/// All tokens of a text, the last being [`TokenKind::Eof`].
#[derive(Clone, Debug, Default)]
pub struct Lexed {
    /// The tokens in order.
    pub tokens: Vec<Token>,
    errors: Vec<(u32, LexError)>,
    /// Bytes looked at, those looked at again included.
    pub(crate) work: u64,
}

impl Lexed {
    /// Why the token with this index is an error token.
    #[must_use]
    pub fn error_at(&self, token: u32) -> Option<LexError> {
        let at = self.errors.binary_search_by_key(&token, |e| e.0).ok()?;
        self.errors.get(at).map(|e| e.1)
    }
}

/// Kind of one piece of trivia.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TriviaKind {
    /// Blanks, tabs, carriage returns.
    Blank,
    /// One LF.
    Newline,
    /// `//` to the end of its line.
    LineComment,
    /// `///` to the end of its line.
    DocComment,
    /// `/* … */`.
    BlockComment,
}

/// One piece of trivia.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trivia {
    /// What it is.
    pub kind: TriviaKind,
    /// Where it stands.
    pub span: Span,
    /// Whether it belongs to the token before it: blanks on that token's line and one line comment.
    pub trailing: bool,
}

fn byte(src: &[u8], at: usize) -> u8 {
    src.get(at).copied().unwrap_or(0)
}

fn is_word_start(b: u8) -> bool {
    b.is_ascii_alphabetic() || b == b'_'
}

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_'
}

pub(crate) fn is_op(b: u8) -> bool {
    matches!(b, b'+' | b'-' | b'*' | b'/' | b'<' | b'>' | b'=' | b'~' | b'%' | b'&' | b'?' | b',' | b'\\')
}

/// Length of the UTF-8 character at `at`, or `None` if the bytes there are not UTF-8.
fn char_len(src: &[u8], at: usize) -> Option<usize> {
    let first = byte(src, at);
    let len = match first {
        0..=0x7f => 1,
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return None,
    };
    let bytes = src.get(at..at + len)?;
    std::str::from_utf8(bytes).ok().map(|_| len)
}

fn line_end(src: &[u8], from: usize, limit: usize) -> usize {
    src.get(from..limit).and_then(|rest| rest.iter().position(|b| *b == b'\n')).map_or(limit, |n| from + n)
}

/// Offset behind the `*/` of a block comment that opens at `from`.
fn block_comment_end(src: &[u8], from: usize, limit: usize) -> Option<usize> {
    let rest = src.get(from + 2..limit)?;
    rest.windows(2).position(|w| w == b"*/").map(|n| from + 4 + n)
}

/// Whether the line comment at `at` is a doc comment: three slashes and no fourth.
fn is_doc(src: &[u8], at: usize) -> bool {
    byte(src, at + 2) == b'/' && byte(src, at + 3) != b'/'
}

/// Reads the pieces of the gap `[start, end)` between two tokens. `first` says that no token precedes the gap, so
/// that nothing in it is trailing.
pub fn trivia(src: &[u8], start: u32, end: u32, first: bool) -> impl Iterator<Item = Trivia> + '_ {
    let limit = (end as usize).min(src.len());
    let mut at = start as usize;
    let mut trailing = !first;
    std::iter::from_fn(move || {
        if at >= limit {
            return None;
        }
        let from = at;
        let kind = match byte(src, at) {
            b'\n' => {
                at += 1;
                trailing = false;
                TriviaKind::Newline
            }
            b'/' if byte(src, at + 1) == b'*' => {
                at = block_comment_end(src, at, limit).unwrap_or(limit);
                trailing = false;
                TriviaKind::BlockComment
            }
            b'/' => {
                let doc = is_doc(src, at);
                at = line_end(src, at, limit);
                if doc { TriviaKind::DocComment } else { TriviaKind::LineComment }
            }
            _ => {
                while at < limit && !matches!(byte(src, at), b'\n' | b'/') {
                    at += 1;
                }
                TriviaKind::Blank
            }
        };
        let span = Span::new(from as u32, at as u32);
        Some(Trivia { kind, span, trailing })
    })
}

/// The lines of the doc comment in the gap `[start, end)` before a declaration: the last unbroken run of `///`
/// lines of its leading trivia. Empty if there is none.
#[must_use]
pub fn doc_lines(src: &[u8], start: u32, end: u32, first: bool) -> Vec<Span> {
    let mut lines = Vec::new();
    let mut newlines = 0;
    for piece in trivia(src, start, end, first) {
        match piece.kind {
            TriviaKind::Blank => {}
            TriviaKind::Newline => {
                newlines += 1;
                if newlines > 1 {
                    lines.clear();
                }
            }
            TriviaKind::DocComment if !piece.trailing => {
                newlines = 0;
                lines.push(piece.span);
            }
            _ => {
                newlines = 0;
                lines.clear();
            }
        }
    }
    lines
}

struct Frame {
    /// Offset behind the closing quote.
    end: usize,
    /// Limit outside the string.
    outer: usize,
}

struct Lexer<'s> {
    src: &'s [u8],
    at: usize,
    limit: usize,
    line_start: usize,
    /// Whether the gap just read holds a `///` line.
    doc: bool,
    frames: Vec<Frame>,
    out: Lexed,
}

/// Cuts `src` into tokens. Any bytes give tokens; the cost is linear. Text longer than 4 GiB is cut off there.
#[must_use]
pub fn lex(src: &[u8]) -> Lexed {
    let src = src.get(..u32::MAX as usize - 1).unwrap_or(src);
    let mut lexer = Lexer {
        src,
        at: 0,
        limit: src.len(),
        line_start: 0,
        doc: false,
        frames: Vec::new(),
        out: Lexed { tokens: Vec::with_capacity(src.len() / 5 + 8), errors: Vec::new(), work: 0 },
    };
    while lexer.step() {}
    lexer.out.work += src.len() as u64;
    lexer.out
}

impl Lexer<'_> {
    fn peek(&self, n: usize) -> u8 {
        if self.at + n < self.limit { byte(self.src, self.at + n) } else { 0 }
    }

    fn push(&mut self, kind: TokenKind, start: usize, col: u32) {
        let maybe_doc = std::mem::take(&mut self.doc);
        self.out.tokens.push(Token { start: start as u32, end: self.at as u32, col, kind, maybe_doc });
    }

    fn fail(&mut self, why: LexError, start: usize, col: u32) {
        self.out.errors.push((self.out.tokens.len() as u32, why));
        self.push(TokenKind::Error, start, col);
    }

    /// Reads one gap and the token behind it; false at the end of the text.
    fn step(&mut self) -> bool {
        let mut nl = false;
        while self.at < self.limit {
            match byte(self.src, self.at) {
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'\n' => {
                    self.at += 1;
                    self.line_start = self.at;
                    nl = true;
                }
                b'/' if self.peek(1) == b'/' => {
                    self.doc |= is_doc(self.src, self.at);
                    self.at = line_end(self.src, self.at, self.limit);
                }
                b'/' if self.peek(1) == b'*' => {
                    let Some(end) = block_comment_end(self.src, self.at, self.limit) else {
                        self.scanned(self.at, self.limit);
                        break;
                    };
                    let body = self.src.get(self.at..end).unwrap_or_default();
                    if let Some(last) = body.iter().rposition(|b| *b == b'\n') {
                        nl = true;
                        self.line_start = self.at + last + 1;
                    }
                    self.at = end;
                }
                _ => break,
            }
        }
        let col = if nl { (self.at - self.line_start) as u32 } else { NO_COL };
        if self.at >= self.limit {
            let start = self.at;
            let Some(frame) = self.frames.last() else {
                self.push(TokenKind::Eof, start, col);
                return false;
            };
            self.limit = frame.outer;
            self.at = start + 1;
            self.push(TokenKind::HoleClose, start, col);
            self.string_rest(TokenKind::StrText);
            return true;
        }
        self.token(col);
        true
    }

    fn word(&mut self) {
        let rest = self.src.get(self.at..self.limit).unwrap_or_default();
        self.at += rest.iter().position(|b| !is_word(*b)).unwrap_or(rest.len());
    }

    fn digits(&mut self) {
        let rest = self.src.get(self.at..self.limit).unwrap_or_default();
        self.at += rest.iter().position(|b| !b.is_ascii_digit()).unwrap_or(rest.len());
    }

    fn token(&mut self, col: u32) {
        use TokenKind as K;
        let start = self.at;
        let first = byte(self.src, start);
        let single = |kind| (kind, 1);
        let (kind, len) = match first {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                self.word();
                let kind = if self.peek(0) == b':' && !matches!(self.peek(1), b':' | b'=') {
                    self.at += 1;
                    K::Keyword
                } else if first.is_ascii_uppercase() {
                    K::Name
                } else {
                    K::Ident
                };
                return self.push(kind, start, col);
            }
            b'0'..=b'9' => return self.number(start, col),
            b'-' if self.peek(1).is_ascii_digit() => return self.number(start, col),
            b'"' => return self.string(start, col),
            b'$' => return self.character(start, col),
            b'#' => return self.hash(start, col),
            b'@' => return self.at_word(start, col),
            b'\'' => {
                let end = line_end(self.src, start, self.limit);
                let rest = self.src.get(start + 1..end).unwrap_or_default();
                self.at = rest.iter().position(|b| *b == b'\'').map_or(end, |n| start + 2 + n);
                return self.fail(LexError::SingleQuotes, start, col);
            }
            b'(' => single(K::LParen),
            b')' => single(K::RParen),
            b'[' => single(K::LBracket),
            b']' => single(K::RBracket),
            b'{' => single(K::LBrace),
            b'}' => single(K::RBrace),
            b'^' => single(K::Caret),
            b';' => single(K::Semi),
            b'!' => single(K::Bang),
            b'|' => single(K::Pipe),
            b'.' if self.peek(1) == b'.' && self.peek(2) == b'.' => (K::Ellipsis, 3),
            b'.' => single(K::Period),
            b':' if self.peek(1) == b'=' => (K::Assign, 2),
            b':' if self.peek(1) == b':' => (K::DColon, 2),
            b':' => single(K::Colon),
            b'/' if self.peek(1) == b'*' => {
                self.at = self.limit;
                return self.fail(LexError::UnterminatedComment, start, col);
            }
            _ if is_op(first) => self.operator(),
            _ => {
                let (len, why) = match char_len(self.src, start) {
                    Some(len) => (len, LexError::UnknownCharacter),
                    None => (1, LexError::InvalidUtf8),
                };
                self.at = (start + len).min(self.limit);
                return self.fail(why, start, col);
            }
        };
        self.at += len;
        self.push(kind, start, col);
    }

    fn operator(&self) -> (TokenKind, usize) {
        use TokenKind as K;
        match (self.peek(0), self.peek(1), self.peek(2)) {
            (b'-', b'>', _) => (K::Arrow, 2),
            (b'<', b'<', _) => (K::LtLt, 2),
            (b'>', b'>', _) => (K::GtGt, 2),
            (b'=', b'>', _) => (K::FatArrow, 2),
            (b'=', b':' | b'/', b'=') => (K::BinOp, 3),
            (first, _, _) => {
                let rest = self.src.get(self.at..self.limit).unwrap_or_default();
                let len = rest.iter().position(|b| !is_op(*b)).unwrap_or(rest.len());
                match (first, len) {
                    (b'=', 1) => (K::Eq, 1),
                    (b',', 1) => (K::Comma, 1),
                    _ => (K::BinOp, len),
                }
            }
        }
    }

    fn number(&mut self, start: usize, col: u32) {
        if self.peek(0) == b'-' {
            self.at += 1;
        }
        let digits = self.at;
        self.digits();
        if self.peek(0) == b'r' && digits == start {
            return self.radix(start, col);
        }
        let mut float = false;
        if self.peek(0) == b'.' && self.peek(1).is_ascii_digit() {
            float = true;
            self.at += 1;
            self.digits();
        }
        if matches!(self.peek(0), b'e' | b'E') {
            float = true;
            self.at += 1;
            if matches!(self.peek(0), b'+' | b'-') {
                self.at += 1;
            }
            let exponent = self.at;
            self.digits();
            if self.at == exponent {
                return self.fail(LexError::BadExponent, start, col);
            }
        }
        let len = self.at - start;
        if float {
            let text =
                std::str::from_utf8(self.src.get(start..self.at).unwrap_or_default()).unwrap_or_default();
            if !text.parse::<f64>().is_ok_and(f64::is_finite) {
                return self.fail(LexError::FloatRange, start, col);
            }
            return self.push(TokenKind::Float, start, col);
        }
        if len > 18 {
            let text =
                std::str::from_utf8(self.src.get(start..self.at).unwrap_or_default()).unwrap_or_default();
            if text.parse::<i64>().is_err() {
                return self.fail(LexError::IntegerRange, start, col);
            }
        }
        self.push(TokenKind::Integer, start, col);
    }

    fn radix(&mut self, start: usize, col: u32) {
        let text = |from: usize, to: usize| {
            std::str::from_utf8(self.src.get(from..to).unwrap_or_default()).unwrap_or_default()
        };
        let radix = text(start, self.at).parse::<u32>().ok().filter(|r| (2..=36).contains(r));
        let digits = self.at + 1;
        let rest = self.src.get(digits..self.limit).unwrap_or_default();
        let end = digits + rest.iter().position(|b| !b.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let digits = text(digits, end);
        let verdict = match radix {
            Some(radix) if !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix)) => {
                i64::from_str_radix(digits, radix).map(|_| ()).map_err(|_| LexError::IntegerRange)
            }
            _ => Err(LexError::BadRadix),
        };
        self.at = end;
        match verdict {
            Ok(()) => self.push(TokenKind::Integer, start, col),
            Err(why) => self.fail(why, start, col),
        }
    }

    fn character(&mut self, start: usize, col: u32) {
        let at = if self.peek(1) == b'\\' { start + 2 } else { start + 1 };
        if at >= self.limit {
            self.at = self.limit.min(at);
            return self.fail(LexError::BadCharacter, start, col);
        }
        match char_len(self.src, at).filter(|len| at + len <= self.limit) {
            Some(len) => {
                self.at = at + len;
                self.push(TokenKind::Char, start, col);
            }
            None => {
                self.at = at + 1;
                self.fail(LexError::InvalidUtf8, start, col);
            }
        }
    }

    fn hash(&mut self, start: usize, col: u32) {
        use TokenKind as K;
        let open = match self.peek(1) {
            b'(' => Some(K::HashParen),
            b'[' => Some(K::HashBracket),
            b'{' => Some(K::HashBrace),
            _ => None,
        };
        if let Some(kind) = open {
            self.at += 2;
            return self.push(kind, start, col);
        }
        let next = self.peek(1);
        self.at += 1;
        if next == b'\'' {
            let mut at = self.at + 1;
            while at < self.limit {
                if byte(self.src, at) == b'\'' {
                    if at + 1 < self.limit && byte(self.src, at + 1) == b'\'' {
                        at += 1;
                    } else {
                        self.at = at + 1;
                        return self.push(K::Symbol, start, col);
                    }
                }
                at += 1;
            }
            self.at = self.limit;
            return self.fail(LexError::UnterminatedSymbol, start, col);
        }
        if is_word_start(next) {
            self.word();
            while self.peek(0) == b':' && self.peek(1) != b'=' {
                self.at += 1;
                if !is_word_start(self.peek(0)) {
                    break;
                }
                self.word();
            }
            return self.push(K::Symbol, start, col);
        }
        if is_op(next) {
            self.at += 1;
            // A comma ends the symbol, so that `#(#<, #>)` reads as two; `#,` is the comma itself.
            while next != b',' && is_op(self.peek(0)) && self.peek(0) != b',' {
                self.at += 1;
            }
            return self.push(K::Symbol, start, col);
        }
        self.fail(LexError::BadSymbol, start, col);
    }

    fn at_word(&mut self, start: usize, col: u32) {
        let touches = start > 0 && is_word(byte(self.src, start - 1));
        self.at += 1;
        if touches {
            return self.push(TokenKind::At, start, col);
        }
        self.word();
        let word = self.src.get(start + 1..self.at).unwrap_or_default();
        let kind = match word {
            b"primitive" => TokenKind::AtPrimitive,
            b"intrinsic" => TokenKind::AtIntrinsic,
            b"expect" => TokenKind::AtExpect,
            [b'A'..=b'Z', ..] => return self.fail(LexError::MissingPackage, start, col),
            _ => return self.fail(LexError::UnknownDirective, start, col),
        };
        self.push(kind, start, col);
    }

    /// Counts bytes that are read ahead and will be read again.
    fn scanned(&mut self, from: usize, to: usize) {
        self.out.work += to.saturating_sub(from) as u64;
    }

    fn string(&mut self, start: usize, col: u32) {
        let (end, holes) = match string_end(self.src, start, self.limit) {
            Some(found) => {
                self.scanned(start, found.0);
                found
            }
            None => {
                self.scanned(start, self.limit);
                self.at = self.limit;
                return self.fail(LexError::UnterminatedString, start, col);
            }
        };
        if !holes {
            self.at = end;
            return self.push(TokenKind::String, start, col);
        }
        if self.frames.len() >= MAX_HOLE_DEPTH {
            self.at = end;
            return self.fail(LexError::HoleTooDeep, start, col);
        }
        let outer = self.limit;
        self.frames.push(Frame { end, outer });
        self.at += 1;
        self.string_text(TokenKind::StrOpen, start, col);
    }

    fn string_rest(&mut self, kind: TokenKind) {
        let start = self.at;
        self.string_text(kind, start, NO_COL);
    }

    /// Reads text pieces and bad holes up to the next good hole or the end of the innermost string.
    fn string_text(&mut self, mut kind: TokenKind, mut start: usize, mut col: u32) {
        let end = self.frames.last().map_or(self.limit, |f| f.end);
        while self.at + 1 < end {
            match byte(self.src, self.at) {
                b'"' | b'\\' => self.at += 2,
                b'{' => {
                    if self.at > start || kind == TokenKind::StrOpen {
                        self.push(kind, start, col);
                    }
                    (kind, col) = (TokenKind::StrText, NO_COL);
                    start = self.at;
                    let close = hole_end(self.src, start + 1, end).unwrap_or(end);
                    self.scanned(start, close);
                    let inside = self.src.get(start + 1..close).unwrap_or_default();
                    let bad = match inside.first() {
                        Some(b'{') => Some(LexError::DoubledBrace),
                        _ if inside.iter().all(u8::is_ascii_whitespace) => Some(LexError::EmptyHole),
                        _ => None,
                    };
                    if let Some(why) = bad {
                        self.at = close + 1;
                        self.fail(why, start, NO_COL);
                        start = self.at;
                    } else {
                        self.at = start + 1;
                        self.push(TokenKind::HoleOpen, start, NO_COL);
                        self.limit = close;
                        return;
                    }
                }
                _ => self.at += 1,
            }
        }
        self.at = end;
        self.frames.pop();
        self.push(TokenKind::StrClose, start, col);
    }
}

/// Offset behind the closing quote of the string at `start`, and whether it has holes.
fn string_end(src: &[u8], start: usize, limit: usize) -> Option<(usize, bool)> {
    let mut at = start + 1;
    let mut holes = false;
    while at < limit {
        match byte(src, at) {
            b'"' if at + 1 < limit && byte(src, at + 1) == b'"' => at += 2,
            b'"' => return Some((at + 1, holes)),
            b'\\' => at += 2,
            b'{' => {
                holes = true;
                at = hole_end(src, at + 1, limit)? + 1;
            }
            _ => at += 1,
        }
    }
    None
}

/// Offset of the `}` that closes the hole whose content begins at `from`.
fn hole_end(src: &[u8], from: usize, limit: usize) -> Option<usize> {
    let mut at = from;
    let mut depth = 1u32;
    while at < limit {
        match byte(src, at) {
            b'{' => depth += 1,
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            b'"' => {
                at = flat_string_end(src, at, limit)?;
                continue;
            }
            b'$' if at + 1 < limit && byte(src, at + 1) == b'\\' => at += 2,
            b'$' | b'\\' => at += 1,
            b'/' if at + 1 < limit && byte(src, at + 1) == b'/' => {
                at = line_end(src, at, limit);
                continue;
            }
            b'/' if at + 1 < limit && byte(src, at + 1) == b'*' => {
                at = block_comment_end(src, at, limit)?;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

fn flat_string_end(src: &[u8], start: usize, limit: usize) -> Option<usize> {
    let mut at = start + 1;
    while at < limit {
        match byte(src, at) {
            b'"' if at + 1 < limit && byte(src, at + 1) == b'"' => at += 2,
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    None
}

#[cfg(test)]
mod tests {}
