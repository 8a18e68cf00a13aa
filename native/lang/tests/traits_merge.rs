//! What a class gets from the protocols it uses (ADR 0127 §3, steps 1 to 4, and §4).
#![allow(clippy::unwrap_used, missing_docs)]

use beamtalk_lang::ast::File;
use beamtalk_lang::parser::{Parse, parse};
use beamtalk_lang::traits::merge::{Fault, Merged, merge};

const LABELLED: &str =
    "Protocol define: Labelled\n  title -> String\n  printString => self title\n  label => \"L\"\n";
const DESCRIBABLE: &str = "Protocol define: Describable\n  title -> String\n  printString => \"a\"\n  describe => \"d\"\n  size => 0\n";
const SHOWN: &str = "Protocol define: Shown\n  printString => \"s\"\n";

fn file<'t>(parsed: &'t Parse<'_>) -> File<'t> {
    assert!(parsed.diagnostics.is_empty(), "{:?}", parsed.diagnostics);
    parsed.tree.root().as_file().unwrap()
}

/// The methods taken with their origins, those replaced, and the faults with the text at their spans.
fn merged(class: &str) -> (Vec<String>, Vec<String>, Vec<String>) {
    let parsed = parse(class.as_bytes());
    let protocols = [LABELLED, DESCRIBABLE, SHOWN].map(|text| parse(text.as_bytes()));
    let files: Vec<_> = protocols.iter().map(file).collect();
    let find = |name: &str| {
        files.iter().flat_map(|file| file.protocols()).find(|def| def.name().unwrap().text == name)
    };
    let Merged { taken, replaced, faults } = merge(file(&parsed).classes().next().unwrap(), find);
    let text = |at: beamtalk_lang::span::Span| &class[at.start as usize..at.end as usize];
    (
        taken.iter().map(|(key, taken)| format!("{} {}", taken.origin, key.selector)).collect(),
        replaced.keys().map(|key| key.selector.clone()).collect(),
        faults
            .iter()
            .map(|fault| match fault {
                Fault::UnknownProtocol { protocol, at } => format!("unknown {protocol} at {}", text(*at)),
                Fault::UsedTwice { protocol, at } => format!("twice {protocol} at {}", text(*at)),
                Fault::NothingToExclude { protocol, selector, at } => {
                    format!("{protocol} lacks {selector} at {}", text(*at))
                }
                Fault::Conflict { key, origins, at } => {
                    format!("{} of {} at {}", key.selector, origins.join(", "), text(*at))
                }
            })
            .collect(),
    )
}

#[test]
fn a_class_without_uses_gets_nothing() {
    assert_eq!(merged("Object subclass: Plain\n  a => 1\n"), (vec![], vec![], vec![]));
}

#[test]
fn a_provision_is_taken_and_a_requirement_is_not() {
    let (taken, _, faults) = merged("Object subclass: Report\n  uses: Labelled\n");
    assert_eq!(taken, ["Labelled label", "Labelled printString"]);
    assert_eq!(faults, Vec::<String>::new());
}

#[test]
fn two_origins_conflict_and_three_are_named_together() {
    let two = merged("Object subclass: Report\n  uses: Labelled\n  uses: Describable\n");
    assert_eq!(two.2, ["printString of Describable, Labelled at Report"]);
    assert_eq!(two.0, ["Describable describe", "Labelled label", "Describable size"]);
    let three = merged("Object subclass: Report\n  uses: Labelled\n  uses: Shown\n  uses: Describable\n");
    assert_eq!(three.2, ["printString of Describable, Labelled, Shown at Report"]);
}

#[test]
fn an_exclusion_ends_a_conflict() {
    let class =
        "Object subclass: Report\n  uses: Labelled\n  uses: Describable excluding: #(#printString, #size)\n";
    let (taken, _, faults) = merged(class);
    assert_eq!(taken, ["Describable describe", "Labelled label", "Labelled printString"]);
    assert_eq!(faults, Vec::<String>::new());
}

#[test]
fn the_class_wins_over_every_origin() {
    let class = "Object subclass: Report\n  uses: Labelled\n  uses: Describable\n  printString => \"own\"\n";
    let (taken, replaced, faults) = merged(class);
    assert_eq!(taken, ["Describable describe", "Labelled label", "Describable size"]);
    assert_eq!((replaced, faults), (vec!["printString".to_owned()], vec![]));
}

#[test]
fn accessors_of_a_value_count_as_its_own() {
    let class = "Value subclass: Report\n  uses: Describable\n  field: size = 1\n";
    let (taken, replaced, _) = merged(class);
    assert_eq!(taken, ["Describable describe", "Describable printString"]);
    assert_eq!(replaced, ["size"]);
}

#[test]
fn a_class_side_method_replaces_no_instance_method() {
    let (taken, replaced, _) = merged("Object subclass: Report\n  uses: Shown\n  class printString => 1\n");
    assert_eq!((taken, replaced), (vec!["Shown printString".to_owned()], vec![]));
}

#[test]
fn the_order_of_lines_changes_nothing() {
    let one = merged("Object subclass: Report\n  uses: Labelled\n  uses: Describable\n  uses: Shown\n");
    let other = merged("Object subclass: Report\n  uses: Shown\n  uses: Describable\n  uses: Labelled\n");
    assert_eq!(one, other);
}

#[test]
fn what_is_wrong_with_a_line_is_said_at_its_place() {
    let class =
        "Object subclass: Report\n  uses: Nowhere\n  uses: Shown excluding: #(#nothing)\n  uses: Shown\n";
    let (taken, _, faults) = merged(class);
    assert_eq!(
        faults,
        ["unknown Nowhere at Nowhere", "Shown lacks nothing at #nothing", "twice Shown at Shown"]
    );
    assert_eq!(taken, ["Shown printString"]);
}
