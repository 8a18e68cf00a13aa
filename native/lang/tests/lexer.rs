//! Tokens: grammar reference §1 and §2.
#![allow(clippy::unwrap_used, missing_docs)]

use beamtalk_lang::lexer::{LexError, Token, TokenKind, TriviaKind, doc_lines, lex, trivia};

fn kinds(source: &str) -> Vec<TokenKind> {
    let tokens = lex(source.as_bytes()).tokens;
    tokens.iter().map(|t| t.kind).filter(|k| *k != TokenKind::Eof).collect()
}

fn texts(source: &str) -> Vec<&str> {
    lex(source.as_bytes())
        .tokens
        .iter()
        .filter(|t| t.kind != TokenKind::Eof)
        .map(|t| &source[t.start as usize..t.end as usize])
        .collect()
}

fn errors(source: &[u8]) -> Vec<LexError> {
    let lexed = lex(source);
    (0..lexed.tokens.len() as u32).filter_map(|i| lexed.error_at(i)).collect()
}

fn token(source: &str, nth: usize) -> Token {
    lex(source.as_bytes()).tokens[nth]
}

#[test]
fn keyword_needs_a_colon_that_is_neither_assignment_nor_double() {
    use TokenKind as K;
    assert_eq!(kinds("a:b"), [K::Keyword, K::Ident]);
    assert_eq!(kinds("a:=b"), [K::Ident, K::Assign, K::Ident]);
    assert_eq!(kinds("a::B"), [K::Ident, K::DColon, K::Name]);
    assert_eq!(kinds("a : b"), [K::Ident, K::Colon, K::Ident]);
    assert_eq!(kinds("_x _ X"), [K::Ident, K::Ident, K::Name]);
    assert_eq!(texts(":::"), ["::", ":"]);
}

#[test]
fn words_are_ascii() {
    use TokenKind as K;
    assert_eq!(kinds("aéb"), [K::Ident, K::Error, K::Ident]);
    assert_eq!(errors("é".as_bytes()), [LexError::UnknownCharacter]);
    assert_eq!(errors(b"\xff"), [LexError::InvalidUtf8]);
}

#[test]
fn numbers() {
    use TokenKind as K;
    assert_eq!(texts("x -1"), ["x", "-1"]);
    assert_eq!(texts("x-1"), ["x", "-1"]);
    assert_eq!(texts("x - 1"), ["x", "-", "1"]);
    assert_eq!(texts("3."), ["3", "."]);
    assert_eq!(texts("3.5.6"), ["3.5", ".", "6"]);
    assert_eq!(texts("1_000"), ["1", "_000"]);
    assert_eq!(texts("3abs"), ["3", "abs"]);
    assert_eq!(texts("-16rFF"), ["-16", "rFF"]);
    assert_eq!(kinds("16rFf 2r101 36rZ"), [K::Integer; 3]);
    assert_eq!(kinds("1.5 1e3 2.5E-3 -0.5"), [K::Float; 4]);
    assert_eq!(errors(b"3rd"), [LexError::BadRadix]);
    assert_eq!(errors(b"1r0"), [LexError::BadRadix]);
    assert_eq!(errors(b"16r"), [LexError::BadRadix]);
    assert_eq!(errors(b"1e"), [LexError::BadExponent]);
    assert_eq!(errors(b"1e999"), [LexError::FloatRange]);
    assert_eq!(errors(b"9223372036854775807 -9223372036854775808"), []);
    assert_eq!(errors(b"9223372036854775808"), [LexError::IntegerRange]);
    assert_eq!(errors(b"16rFFFFFFFFFFFFFFFF"), [LexError::IntegerRange]);
}

#[test]
fn characters() {
    use TokenKind as K;
    assert_eq!(kinds("$a $\" $  $\\n $é $$"), [K::Char; 6]);
    assert_eq!(texts("$a$b"), ["$a", "$b"]);
    assert_eq!(texts("$\\'x"), ["$\\'", "x"]);
    assert_eq!(errors(b"$"), [LexError::BadCharacter]);
    assert_eq!(errors(b"$\xff"), [LexError::InvalidUtf8]);
}

#[test]
fn strings_know_two_escapes_only() {
    use TokenKind as K;
    assert_eq!(kinds(r#""a""b""#), [K::String]);
    assert_eq!(kinds(r#""\"""#), [K::String]);
    assert_eq!(kinds(r#""\{x\}""#), [K::String]);
    assert_eq!(kinds("\"a\nb\""), [K::String]);
    assert_eq!(kinds(r#""\n""#), [K::String]);
    assert_eq!(errors(br#"x "abc def"#), [LexError::UnterminatedString]);
    assert_eq!(errors(br#""{a"#), [LexError::UnterminatedString]);
    assert_eq!(errors(br#""{a" b"#), [LexError::UnterminatedString]);
    assert_eq!(errors(b"'abc' x"), [LexError::SingleQuotes]);
    assert_eq!(texts("'abc' x"), ["'abc'", "x"]);
    assert_eq!(texts("'abc\nx"), ["'abc", "x"]);
}

#[test]
fn holes_are_code_with_their_own_offsets() {
    use TokenKind as K;
    assert_eq!(
        kinds(r#""a{b c}d{e}""#),
        [
            K::StrOpen,
            K::HoleOpen,
            K::Ident,
            K::Ident,
            K::HoleClose,
            K::StrText,
            K::HoleOpen,
            K::Ident,
            K::HoleClose,
            K::StrClose
        ]
    );
    assert_eq!(texts(r#""a{b}""#), ["\"a", "{", "b", "}", "\""]);
    assert_eq!(token(r#""a{b}""#, 2).start, 3);
}

#[test]
fn the_end_of_a_hole_is_not_in_strings_characters_or_comments() {
    assert_eq!(texts(r#""{f: "}"}""#), ["\"", "{", "f:", "\"}\"", "}", "\""]);
    assert_eq!(texts(r#""{f: $}}""#), ["\"", "{", "f:", "$}", "}", "\""]);
    assert_eq!(texts(r#""{f /* } */}""#), ["\"", "{", "f", "}", "\""]);
    assert_eq!(texts("\"{f // }\n}\""), ["\"", "{", "f", "}", "\""]);
    assert_eq!(texts(r##""{#{#a => 1}}""##), ["\"", "{", "#{", "#a", "=>", "1", "}", "}", "\""]);
}

#[test]
fn bad_holes_are_errors_in_place() {
    assert_eq!(
        errors(br#""a{}b{ }c{{d}}e""#),
        [LexError::EmptyHole, LexError::EmptyHole, LexError::DoubledBrace]
    );
    assert_eq!(texts(r#""{{d}}""#), ["\"", "{{d}}", "\""]);
}

#[test]
fn nested_strings_with_holes_stop_at_a_depth() {
    assert_eq!(errors(br#""{a: "{b}"}""#), []);
    let mut deep = String::from("x");
    for _ in 0..40 {
        deep = format!("\"{{{deep}}}\"");
    }
    let lexed = lex(deep.as_bytes());
    assert_eq!(lexed.tokens.last().unwrap().end as usize, deep.len());
}

#[test]
fn symbols() {
    use TokenKind as K;
    assert_eq!(
        texts("#fill #fill: #at:put: #'any text' #+ #>= #-> #,"),
        ["#fill", "#fill:", "#at:put:", "#'any text'", "#+", "#>=", "#->", "#,"]
    );
    assert_eq!(texts("#a::B"), ["#a:", ":", "B"]);
    assert_eq!(texts("#a:=1"), ["#a", ":=", "1"]);
    assert_eq!(texts("#'it''s'"), ["#'it''s'"]);
    assert_eq!(texts("#(#<, #>)"), ["#(", "#<", ",", "#>", ")"]);
    assert_eq!(texts("#=/="), ["#=/="]);
    assert_eq!(texts("#=:="), ["#=", ":="]);
    assert_eq!(kinds("#( #[ #{"), [K::HashParen, K::HashBracket, K::HashBrace]);
    assert_eq!(errors(b"# a"), [LexError::BadSymbol]);
    assert_eq!(errors(b"#'abc"), [LexError::UnterminatedSymbol]);
}

#[test]
fn operators_take_the_longest_match_in_order() {
    assert_eq!(texts("+-1"), ["+-", "1"]);
    assert_eq!(texts(",-2"), [",-", "2"]);
    assert_eq!(texts("x =-1"), ["x", "=-", "1"]);
    assert_eq!(texts("+// x"), ["+//", "x"]);
    assert_eq!(texts(">>= =>x ->y <<z"), [">>", "=", "=>", "x", "->", "y", "<<", "z"]);
    assert_eq!(texts("=:= =/= =:=="), ["=:=", "=/=", "=:=", "="]);
    assert_eq!(texts("... .. ."), ["...", ".", ".", "."]);
    assert_eq!(kinds(", = ,,"), [TokenKind::Comma, TokenKind::Eq, TokenKind::BinOp]);
}

#[test]
fn at_words() {
    use TokenKind as K;
    assert_eq!(kinds("tools@Saw"), [K::Ident, K::At, K::Name]);
    assert_eq!(kinds("@primitive @intrinsic @expect"), [K::AtPrimitive, K::AtIntrinsic, K::AtExpect]);
    assert_eq!(errors(b"@Saw @other"), [LexError::MissingPackage, LexError::UnknownDirective]);
}

#[test]
fn a_token_knows_its_line_begin_and_column() {
    assert_eq!(token("  a", 0).col(), None);
    assert_eq!(token("\n  a", 0).col(), Some(2));
    assert_eq!(token("// c\n\ta", 0).col(), Some(1));
    assert_eq!(token("a b", 1).col(), None);
    assert_eq!(token("a /* \n */ b", 1).col(), Some(4));
    assert_eq!(token("a // c\nb", 1).col(), Some(0));
}

#[test]
fn comments() {
    assert_eq!(texts("a // b\n/// c\n/* d * / e */ f //// g"), ["a", "f"]);
    assert_eq!(texts("/* /* */ a */"), ["a", "*/"]);
    assert_eq!(errors(b"a /* b"), [LexError::UnterminatedComment]);
    assert_eq!(texts("a /* b"), ["a", "/* b"]);
}

#[test]
fn trailing_trivia_ends_with_the_line() {
    let source = "a  // one\n // two\n";
    let pieces: Vec<_> = trivia(source.as_bytes(), 1, source.len() as u32, false).collect();
    let trailing: Vec<_> = pieces.iter().filter(|p| p.trailing).map(|p| p.kind).collect();
    assert_eq!(trailing, [TriviaKind::Blank, TriviaKind::LineComment]);
    let end = pieces.last().unwrap().span.end as usize;
    assert_eq!(end, source.len());
}

fn docs(gap: &str, first: bool) -> Vec<&str> {
    doc_lines(gap.as_bytes(), 0, gap.len() as u32, first)
        .into_iter()
        .map(|s| &gap[s.start as usize..s.end as usize])
        .collect()
}

#[test]
fn docs_are_the_last_unbroken_run() {
    assert_eq!(docs("/// a\n/// b\n", true), ["/// a", "/// b"]);
    assert_eq!(docs("\n/// a\n\n/// b\n", false), ["/// b"]);
    assert_eq!(docs("\n/// a\n\n", false), [""; 0]);
    assert_eq!(docs("\n/// a\n// x\n", false), [""; 0]);
    assert_eq!(docs("\n/// a\n//// x\n/// b\n  ", false), ["/// b"]);
    assert_eq!(docs("  /// behind code\n", false), [""; 0]);
    assert_eq!(docs("\n/// a\n/* x */ ", false), [""; 0]);
}
