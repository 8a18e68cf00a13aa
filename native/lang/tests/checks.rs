//! Rules beyond the grammar that a file alone can show: grammar reference §6.
#![allow(clippy::unwrap_used, missing_docs)]

use beamtalk_lang::checks::{Author, file};
use beamtalk_lang::parser::parse;

fn found(source: &str) -> Vec<(&'static str, String)> {
    let parse = parse(source.as_bytes());
    assert!(!parse.has_errors(), "{:?}", parse.diagnostics);
    file(&parse.tree, Author::User)
        .into_iter()
        .map(|d| (d.code.as_str(), String::from_utf8_lossy(d.span.slice(source.as_bytes())).into_owned()))
        .collect()
}

#[test]
fn slots_of_another_kind_of_class() {
    let source = |superclass: &str| {
        format!("{superclass} subclass: Q\n  state: a = 1\n  field: b = 2\n  classState: c = 3\n")
    };
    assert_eq!(found(&source("Actor")), [("slot_keyword", "field:".into())]);
    assert_eq!(found(&source("Value")), [("slot_keyword", "state:".into())]);
    assert_eq!(
        found(&source("Object")),
        [("slot_keyword", "state:".into()), ("slot_keyword", "field:".into())]
    );
    assert_eq!(found(&source("Gauge")), []);
}

#[test]
fn built_in_operators_are_the_librarys() {
    for op in ["==", "/=", "=:=", "=/="] {
        let sources = [
            format!("Object subclass: Q\n  {op} o => 1\n"),
            format!("Protocol define: Q\n  {op} o => 1\n"),
            format!("Q >> {op} o => 1\n"),
        ];
        for source in sources {
            assert_eq!(found(&source), [("built_in_operator", op.into())], "{source}");
            assert_eq!(file(&parse(source.as_bytes()).tree, Author::Library), []);
        }
    }
    assert_eq!(found("Object subclass: Q\n  = o => 1\n  < o => 2\n"), []);
}

#[test]
fn names_are_one_name_space() {
    let source = "type Weight = Integer\ntype Weight = Float\nObject subclass: Weight\n  a => 1\n";
    assert_eq!(found(source), [("duplicate_name", "Weight".into()), ("duplicate_name", "Weight".into())]);
    assert_eq!(found("Weight >> a => 1\nWeight >> b => 2\nObject subclass: Weight\n"), []);
}
