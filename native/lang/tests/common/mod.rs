//! Short forms of what the reader answers, for tests.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part of it")]

pub mod corpus;

use beamtalk_lang::facts::{self, MethodEntry, Origin, Side};
use beamtalk_lang::parser::{Parse, parse, parse_method};
use beamtalk_lang::span::LineIndex;
use beamtalk_lang::tree::{Node, NodeKind};

/// Undoes the notation of samples: `⏎` is a line end, `·` a blank.
pub fn text(sample: &str) -> String {
    sample.replace('⏎', "\n").replace('·', " ")
}

pub fn entries(source: &str) -> Vec<MethodEntry> {
    facts::method_entries(&parse(source.as_bytes()).tree)
        .into_iter()
        .filter(|e| e.origin != Origin::SlotAccessor)
        .collect()
}

/// The methods: selectors, those of the class side behind `class `.
pub fn methods(source: &str) -> Vec<String> {
    entries(source)
        .into_iter()
        .map(|e| if e.side == Side::Class { format!("class {}", e.selector) } else { e.selector })
        .collect()
}

fn hit(h: &facts::SendHit) -> String {
    match &h.target_module {
        Some(module) => format!("{} {} {} {module}", h.selector, h.line, h.recv.as_str()),
        None => format!("{} {} {}", h.selector, h.line, h.recv.as_str()),
    }
}

/// All sends of a file, lines counted in the file.
pub fn file_sends(source: &str) -> Vec<String> {
    let parse = parse(source.as_bytes());
    let index = LineIndex::new(source.as_bytes());
    facts::sends(parse.tree.root(), &index, 1).iter().map(hit).collect()
}

/// All sends of a method's text.
pub fn sends(method: &str) -> Vec<String> {
    facts::find_all_sends(method.as_bytes()).iter().map(hit).collect()
}

/// Selectors of all sends of a method's text.
pub fn selectors(method: &str) -> Vec<String> {
    facts::find_all_sends(method.as_bytes()).into_iter().map(|h| h.selector).collect()
}

pub fn references(method: &str) -> Vec<String> {
    facts::find_references(method.as_bytes()).into_iter().map(|r| r.class).collect()
}

/// Slots touched: `level`, or `level=` for a write.
pub fn slots(method: &str) -> Vec<String> {
    facts::find_slot_accesses(method.as_bytes())
        .into_iter()
        .map(|s| if s.write { format!("{}=", s.slot) } else { s.slot })
        .collect()
}

/// Codes of all findings of a file.
pub fn codes(source: &str) -> Vec<&'static str> {
    parse(source.as_bytes()).diagnostics.iter().map(|d| d.code.as_str()).collect()
}

/// Codes of all findings of a method fragment.
pub fn method_codes(source: &str) -> Vec<&'static str> {
    parse_method(source.as_bytes()).diagnostics.iter().map(|d| d.code.as_str()).collect()
}

/// The text of a method's source.
pub fn slice(source: &str, class: &str, selector: &str, side: Side) -> Result<String, &'static str> {
    let parse = parse(source.as_bytes());
    facts::method_span(&parse.tree, class, selector, side)
        .map(|s| String::from_utf8_lossy(s.slice(source.as_bytes())).into_owned())
        .map_err(|e| e.kind.as_str())
}

/// A node as nested parentheses: kind, then own tokens and children. Small trees only.
pub fn shape(node: Node<'_>) -> String {
    let tree = node.tree();
    let mut parts = vec![format!("{:?}", node.kind())];
    let mut children = node.children().peekable();
    for (i, _) in node.own_tokens() {
        while let Some(child) = children.next_if(|c| c.token_range().start < i) {
            parts.push(shape(child));
        }
        parts.push(String::from_utf8_lossy(tree.token_text(i)).into_owned());
    }
    parts.extend(children.map(shape));
    format!("({})", parts.join(" "))
}

/// The shape of the statements of the method `m => …`.
pub fn body(statements: &str) -> String {
    let source = format!("m => {statements}");
    let parse = parse_method(source.as_bytes());
    let body = parse.tree.root().preorder().find(|n| n.kind() == NodeKind::Body);
    body.map(|b| b.children().map(shape).collect::<Vec<_>>().join(" ")).unwrap_or_default()
}

/// An expression with every send in parentheses.
pub fn grouped(expression: &str) -> String {
    fn show(node: Node<'_>) -> String {
        let own: Vec<String> = node
            .own_tokens()
            .map(|(i, _)| String::from_utf8_lossy(node.tree().token_text(i)).into_owned())
            .collect();
        let kids: Vec<String> = node.children().map(show).collect();
        match node.kind() {
            NodeKind::BinarySend => format!("({} {} {})", kids[0], own[0], kids[1]),
            NodeKind::UnarySend => format!("({} {})", kids[0], own[0]),
            NodeKind::KeywordSend => {
                let parts: Vec<String> =
                    own.iter().zip(&kids[1..]).map(|(k, a)| format!("{k} {a}")).collect();
                format!("({} {})", kids[0], parts.join(" "))
            }
            _ => String::from_utf8_lossy(node.text()).into_owned(),
        }
    }
    let parse = parse(expression.as_bytes());
    parse.tree.root().children().map(show).collect::<Vec<_>>().join(" ; ")
}

/// Checks what must hold of every tree: it prints its text, spans nest and lie in order, and findings lie inside.
pub fn check_tree(source: &[u8], parse: &Parse<'_>) {
    assert_eq!(parse.tree.print(), source, "the tree must print its text");
    let root = parse.tree.root();
    for node in root.preorder() {
        let span = node.span();
        assert!(span.end as usize <= source.len());
        let mut at = span.start;
        for child in node.children() {
            assert!(span.contains(child.span()), "{child:?} reaches out of {node:?}");
            assert!(child.span().start >= at, "{child:?} overlaps its sibling");
            at = child.span().end;
        }
    }
    for d in &parse.diagnostics {
        assert!(d.span.end as usize <= source.len(), "{d:?} points outside");
    }
    let errors = root.preorder().filter(|n| n.kind() == NodeKind::Error).count();
    assert!(errors == 0 || parse.has_errors(), "error nodes need a diagnostic");
}

pub fn side(class: bool) -> Side {
    if class { Side::Class } else { Side::Instance }
}
