//! Diagnostics: what is wrong with a text, where, and what would help.

use std::borrow::Cow;

use crate::lexer::LexError;
use crate::span::Span;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// The text cannot be compiled as it stands.
    Error,
    /// It can, but is probably not what was meant.
    Warning,
    /// Information that asks for no change.
    Hint,
}

impl Severity {
    /// Lower-case word for tools.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Hint => "hint",
        }
    }
}

/// Stable name of a kind of finding, such as `unexpected_token`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Code(&'static str);

impl Code {
    /// Makes a code. Codes are lower-case words joined by `_`.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self(name)
    }

    /// The code's text.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

impl std::fmt::Debug for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

/// One finding in one text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Stable name of the kind of finding.
    pub code: Code,
    /// How bad it is.
    pub severity: Severity,
    /// Where it is.
    pub span: Span,
    /// What is wrong, in one sentence without a full stop.
    pub message: Cow<'static, str>,
    /// What would help.
    pub hint: Option<Cow<'static, str>>,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        /// The codes that reading a text may report.
        pub mod code {
            use super::Code;
            $($(#[$doc])* pub const $name: Code = Code::new($text);)*
            /// All of them.
            pub const ALL: &[Code] = &[$($name),*];
        }
    };
}

codes! {
    /// The text is not UTF-8.
    INVALID_UTF8 = "invalid_utf8";
    /// The text is longer than the reader takes.
    SOURCE_TOO_LARGE = "source_too_large";
    /// A character that begins no token.
    UNKNOWN_CHARACTER = "unknown_character";
    /// A string, or a hole in it, without its end.
    UNTERMINATED_STRING = "unterminated_string";
    /// A block comment without its end.
    UNTERMINATED_COMMENT = "unterminated_comment";
    /// A quoted symbol without its end.
    UNTERMINATED_SYMBOL = "unterminated_symbol";
    /// Text in single quotes.
    SINGLE_QUOTES = "single_quotes";
    /// `{}` in a string.
    EMPTY_HOLE = "empty_hole";
    /// `{{…}}` in a string.
    DOUBLED_BRACE = "doubled_brace";
    /// Strings with holes inside holes, too deep.
    HOLE_TOO_DEEP = "hole_too_deep";
    /// `#` that begins no symbol.
    BAD_SYMBOL = "bad_symbol";
    /// `$` without a character.
    BAD_CHARACTER = "bad_character";
    /// `@` before an unknown word.
    UNKNOWN_DIRECTIVE = "unknown_directive";
    /// `@Name` without a package.
    MISSING_PACKAGE = "missing_package";
    /// A number that cannot be read or represented.
    BAD_NUMBER = "bad_number";
    /// A token that cannot stand where it stands.
    UNEXPECTED_TOKEN = "unexpected_token";
    /// An expression is missing.
    EXPECTED_EXPRESSION = "expected_expression";
    /// A bracket is not closed.
    UNCLOSED_BRACKET = "unclosed_bracket";
    /// More nesting than the reader takes.
    NESTING_TOO_DEEP = "nesting_too_deep";
    /// `x -1`, read as two expressions.
    BLANK_AROUND_MINUS = "blank_around_minus";
    /// An operator that no expression may use.
    NO_INFIX_OPERATOR = "no_infix_operator";
    /// `!` behind something that is no send.
    CAST_OF_NON_SEND = "cast_of_non_send";
    /// The left side of `:=` cannot be assigned.
    BAD_ASSIGNMENT_TARGET = "bad_assignment_target";
    /// `{a, b}` as an expression.
    NO_TUPLE_LITERAL = "no_tuple_literal";
    /// `#{word => …}`.
    BARE_WORD_KEY = "bare_word_key";
    /// A block's parameters lack their `|`.
    BLOCK_PARAMETERS = "block_parameters";
    /// `[| t | …]`.
    BLOCK_LOCALS = "block_locals";
    /// A directive without its name.
    DIRECTIVE_NAME = "directive_name";
    /// A pattern that does not exist.
    BAD_PATTERN = "bad_pattern";
    /// A type is missing or malformed.
    BAD_TYPE = "bad_type";
    /// `name : Type` in a header.
    OLD_PARAMETER_TYPE = "old_parameter_type";
    /// A parameter, slot, class or selector name is missing.
    EXPECTED_NAME = "expected_name";
    /// A method without a statement.
    EMPTY_METHOD_BODY = "empty_method_body";
    /// Header clauses out of order or twice.
    HEADER_CLAUSE = "header_clause";
    /// A keyword line that no class body knows.
    UNEXPECTED_KEYWORD_LINE = "unexpected_keyword_line";
    /// `uses:` behind a slot or a method.
    USES_AFTER_MEMBER = "uses_after_member";
    /// A `uses:` line that cannot be read.
    BAD_USES_LINE = "bad_uses_line";
    /// An alias named by one letter.
    ALIAS_NAME = "alias_name";
    /// A doc comment that documents nothing.
    UNATTACHED_DOC = "unattached_doc";
    /// A file with more than one class or protocol.
    SEVERAL_DEFINITIONS = "several_definitions";
}

/// Code, message and hint of an error token.
pub(crate) fn of_lex_error(why: LexError) -> (Code, &'static str, Option<&'static str>) {
    use code as c;
    match why {
        LexError::UnknownCharacter => (c::UNKNOWN_CHARACTER, "this character has no meaning here", None),
        LexError::InvalidUtf8 => (c::INVALID_UTF8, "this byte is not UTF-8", None),
        LexError::UnterminatedString => (
            c::UNTERMINATED_STRING,
            "this string never ends",
            Some("close it with `\"`, and every hole with `}`"),
        ),
        LexError::UnterminatedComment => {
            (c::UNTERMINATED_COMMENT, "this comment never ends", Some("close it with `*/`"))
        }
        LexError::UnterminatedSymbol => {
            (c::UNTERMINATED_SYMBOL, "this symbol never ends", Some("close it with `'`"))
        }
        LexError::SingleQuotes => {
            (c::SINGLE_QUOTES, "single quotes make no string", Some("use double quotes"))
        }
        LexError::EmptyHole => {
            (c::EMPTY_HOLE, "this hole is empty", Some("write `\\{` and `\\}` for plain braces"))
        }
        LexError::DoubledBrace => {
            (c::DOUBLED_BRACE, "a doubled brace is no escape", Some("write `\\{` and `\\}` for plain braces"))
        }
        LexError::HoleTooDeep => (
            c::HOLE_TOO_DEEP,
            "strings with holes are nested too deeply",
            Some("assign the inner string to a variable"),
        ),
        LexError::BadSymbol => (
            c::BAD_SYMBOL,
            "`#` begins a symbol or a collection",
            Some("put a name, an operator, a quoted text, `(`, `[` or `{` behind it"),
        ),
        LexError::BadCharacter => (c::BAD_CHARACTER, "`$` must be followed by a character", None),
        LexError::UnknownDirective => (
            c::UNKNOWN_DIRECTIVE,
            "unknown directive",
            Some("known are `@primitive`, `@intrinsic` and `@expect`"),
        ),
        LexError::MissingPackage => {
            (c::MISSING_PACKAGE, "missing package name", Some("write `package@Name` without blanks"))
        }
        LexError::IntegerRange => (c::BAD_NUMBER, "this integer does not fit into 64 bits", None),
        LexError::BadRadix => (
            c::BAD_NUMBER,
            "bad radix number",
            Some("the radix is 2 to 36, and every digit must be below it"),
        ),
        LexError::BadExponent => (c::BAD_NUMBER, "the exponent has no digits", None),
        LexError::FloatRange => (c::BAD_NUMBER, "this float is out of range", None),
    }
}
