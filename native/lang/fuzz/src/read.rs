//! Feeds bytes to every reading entry point and checks what must hold of any text: the tree prints it, spans nest and
//! lie inside, error nodes have diagnostics, reading is linear, and the facts of a file agree with those of its slices.
#![no_main]

#[path = "../../tests/common/mod.rs"]
mod common;

use beamtalk_lang::facts::{self, Side};
use beamtalk_lang::parser::{parse, parse_method};
use libfuzzer_sys::fuzz_target;

/// Steps per byte that no text may exceed, and what an empty one costs.
const MAX_WORK: (u64, u64) = (80, 400);

fuzz_target!(|source: &[u8]| {
    let linear = |work: u64| work <= MAX_WORK.0 * source.len() as u64 + MAX_WORK.1;
    let file = parse(source);
    common::check_tree(source, &file);
    assert!(linear(file.work), "{} steps for {} bytes", file.work, source.len());
    for entry in facts::method_entries(&file.tree) {
        assert!(entry.span.end as usize <= source.len());
        if entry.origin != facts::Origin::SlotAccessor
            && let Ok(span) = facts::method_span(&file.tree, &entry.class, &entry.selector, entry.side)
        {
            assert_eq!(span, entry.span);
        }
    }
    let _ = facts::method_span(&file.tree, "Q", "a", Side::Class);
    let method = parse_method(source);
    common::check_tree(source, &method);
    assert!(linear(method.work), "{} steps for {} bytes", method.work, source.len());
    let _ = facts::find_all_sends(source);
    let _ = facts::find_references(source);
    let _ = facts::find_slot_accesses(source);
});
