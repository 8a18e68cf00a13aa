//! What a prompt and a compiler of bodies ask of text: whether input is complete, what a literal means, and a method's
//! text moved to another column.

use crate::ast::symbol_text;
use crate::diag::code;
use crate::lexer::TokenKind;
use crate::parser::{parse, parse_method};

/// Whether a prompt should read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// The text stands for itself, with or without mistakes.
    Complete,
    /// A bracket, string or comment is open, or an operator or keyword waits for its operand.
    Open,
    /// A declaration whose body an empty line ends.
    Declaration,
}

/// Whether `text` is all that was meant (grammar reference §8.2). Cost: linear.
#[must_use]
pub fn input(text: &[u8]) -> Input {
    use TokenKind as K;
    let parse = parse(text);
    let open = [
        code::UNTERMINATED_STRING,
        code::UNTERMINATED_COMMENT,
        code::UNTERMINATED_SYMBOL,
        code::UNCLOSED_BRACKET,
    ];
    if parse.diagnostics.iter().any(|d| open.contains(&d.code)) {
        return Input::Open;
    }
    let tokens = parse.tree.tokens();
    let last = tokens.iter().rev().find(|t| t.kind != K::Eof).map(|t| t.kind);
    if matches!(
        last,
        Some(K::Keyword | K::BinOp | K::Arrow | K::GtGt | K::Assign | K::Semi | K::Caret | K::FatArrow)
    ) {
        return Input::Open;
    }
    let mut depth = 0_u32;
    let (mut subclass, mut body) = (false, false);
    for (i, token) in tokens.iter().enumerate() {
        match token.kind {
            K::LParen | K::LBracket | K::LBrace | K::HashParen | K::HashBracket | K::HashBrace => depth += 1,
            K::RParen | K::RBracket | K::RBrace => depth = depth.saturating_sub(1),
            K::FatArrow if depth == 0 => body = true,
            K::Keyword if depth == 0 => match parse.tree.token_text(i as u32) {
                b"subclass:" => subclass = true,
                b"define:" => return Input::Declaration,
                _ => {}
            },
            _ => {}
        }
    }
    if subclass && !body { Input::Declaration } else { Input::Complete }
}

/// What a literal stands for.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// An integer, or the code point of a character.
    Integer(i64),
    /// A float.
    Float(f64),
    /// A string.
    Text(String),
    /// A symbol.
    Symbol(String),
}

/// The value of a literal as written, sign and radix included; `None` for text that is no literal.
#[must_use]
pub fn literal(text: &[u8]) -> Option<Value> {
    let text = std::str::from_utf8(text).ok()?;
    Some(match text.as_bytes().first()? {
        b'"' => Value::Text(piece(text.strip_prefix('"')?.strip_suffix('"')?)),
        b'#' => Value::Symbol(symbol_text(text.as_bytes()).into_owned()),
        b'$' => Value::Integer(i64::from(character(text.strip_prefix('$')?)?)),
        _ => number(text)?,
    })
}

fn character(text: &str) -> Option<u32> {
    let mut chars = text.chars();
    let first = chars.next()?;
    let meant = match (first, chars.next()) {
        ('\\', Some('n')) => '\n',
        ('\\', Some('t')) => '\t',
        ('\\', Some('r')) => '\r',
        ('\\', Some(other)) => other,
        (plain, _) => plain,
    };
    Some(u32::from(meant))
}

fn number(text: &str) -> Option<Value> {
    // A sign may stand apart from its number in a pattern.
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest.trim_start()),
        None => ("", text),
    };
    if let Some((radix, digits)) = digits.split_once('r') {
        let radix = radix.parse::<u32>().ok().filter(|r| (2..=36).contains(r))?;
        return i64::from_str_radix(&format!("{sign}{digits}"), radix).ok().map(Value::Integer);
    }
    let whole = format!("{sign}{digits}");
    if let Ok(integer) = whole.parse::<i64>() {
        return Some(Value::Integer(integer));
    }
    whole.parse::<f64>().ok().filter(|f| f.is_finite()).map(Value::Float)
}

/// Text between the quotes or holes of a string: `""` is a quote, `\{` and `\}` are braces, all else is itself.
#[must_use]
pub fn piece(written: &str) -> String {
    let mut out = String::with_capacity(written.len());
    let mut chars = written.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek().copied()) {
            ('"', Some('"')) | ('\\', Some('{' | '}')) => {
                out.push(chars.next().unwrap_or(c));
            }
            // The character behind any other backslash belongs to it.
            ('\\', Some(next)) => {
                out.push(c);
                out.push(next);
                chars.next();
            }
            _ => out.push(c),
        }
    }
    out
}

/// The text of one method with its first line's code at `column`; lines that begin inside a string, a symbol or a block
/// comment stay as they are, the others move along. The answer ends with a line end.
#[must_use]
pub fn indented(method: &[u8], column: usize) -> Vec<u8> {
    let parse = parse_method(method);
    let tree = &parse.tree;
    let end = method.trim_ascii_end().len();
    let leading = method.len() - method.trim_ascii_start().len();
    let begin = method.get(..leading).and_then(|s| s.iter().rposition(|b| *b == b'\n')).map_or(0, |n| n + 1);
    let old = leading.saturating_sub(begin);
    // Text inside of which a line may begin without being code.
    let mut fixed: Vec<(usize, usize)> = tree
        .tokens()
        .iter()
        .filter(|t| t.end > t.start)
        .map(|t| (t.start as usize, t.end as usize))
        .collect();
    for at in 0..tree.tokens().len() {
        let comments =
            tree.trivia_before(at as u32).filter(|t| t.kind == crate::lexer::TriviaKind::BlockComment);
        fixed.extend(comments.map(|t| (t.span.start as usize, t.span.end as usize)));
    }
    fixed.retain(|(s, e)| method.get(*s..*e).is_some_and(|text| text.contains(&b'\n')));
    let mut out = Vec::with_capacity(method.len() + column);
    let mut at = begin;
    while at < end {
        let stop =
            method.get(at..end).and_then(|s| s.iter().position(|b| *b == b'\n')).map_or(end, |n| at + n);
        let line = method.get(at..stop).unwrap_or_default();
        if fixed.iter().any(|(s, e)| *s < at && at < *e) || line.trim_ascii().is_empty() {
            out.extend_from_slice(line);
        } else {
            let blank = line.len() - line.trim_ascii_start().len();
            out.resize(out.len() + (blank + column).saturating_sub(old), b' ');
            out.extend_from_slice(line.trim_ascii_start());
        }
        out.push(b'\n');
        at = stop + 1;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_input_is_told_from_wrong_input() {
        for text in ["x foo: [", "\"abc", "x :=", "x foo:", "1 +", "x ;", "^", "#(1, 2", "/* a", "C >> a =>"]
        {
            assert_eq!(input(text.as_bytes()), Input::Open, "{text}");
        }
        for text in ["x foo: 1", "x foo: ]", "", "// a", "Counter >> a => 1", "A subclass: B\n  a => 1"] {
            assert_eq!(input(text.as_bytes()), Input::Complete, "{text}");
        }
        for text in
            ["A subclass: B", "A subclass: B\n  uses: P", "Protocol define: P", "Protocol define: P\n a => 1"]
        {
            assert_eq!(input(text.as_bytes()), Input::Declaration, "{text}");
        }
    }

    #[test]
    fn literals_mean_what_the_grammar_says() {
        let text = |t: &str| Some(Value::Text(t.to_owned()));
        assert_eq!(literal(b"-12"), Some(Value::Integer(-12)));
        assert_eq!(literal(b"- 12"), Some(Value::Integer(-12)));
        assert_eq!(literal(b"16rFf"), Some(Value::Integer(255)));
        assert_eq!(literal(b"1.5e-1"), Some(Value::Float(0.15)));
        assert_eq!(literal(b"2e3"), Some(Value::Float(2000.0)));
        assert_eq!(literal("$\u{e4}".as_bytes()), Some(Value::Integer(0xe4)));
        assert_eq!(literal(b"$\\n"), Some(Value::Integer(10)));
        assert_eq!(literal(b"$\\"), Some(Value::Integer(92)));
        assert_eq!(literal(br#""a ""b"" \{c\} \n""#), text(r#"a "b" {c} \n"#));
        assert_eq!(literal(br#""\"""#), text(r#"\""#));
        assert_eq!(literal(b"#'it''s'"), Some(Value::Symbol("it's".to_owned())));
        assert_eq!(literal(b"#at:put:"), Some(Value::Symbol("at:put:".to_owned())));
        assert_eq!(literal(b"nothing"), None);
    }

    #[test]
    fn a_moved_method_keeps_its_strings() {
        assert_eq!(indented(b"a => 1", 2), b"  a => 1\n");
        assert_eq!(indented(b"\n    /// Doc\n    a =>\n      1\n", 2), b"  /// Doc\n  a =>\n    1\n");
        assert_eq!(indented(b"a => \"x\ny\"\n", 2), b"  a => \"x\ny\"\n");
        assert_eq!(indented(b"a =>\n  /* b\nc */ 1", 2), b"  a =>\n    /* b\nc */ 1\n");
        assert_eq!(indented(b"      a =>\n    1", 2), b"  a =>\n1\n");
    }
}
