//! Any bytes: a tree that prints them, within a small stack, in linear time.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;
use beamtalk_lang::facts;
use beamtalk_lang::parser::{parse, parse_method};
use common::corpus::class_file;
use common::{check_tree, codes, methods};
use proptest::prelude::*;

/// A quarter of a mebibyte, less than any thread that will read source has.
const SMALL_STACK: usize = 256 * 1024;

fn everything(source: &[u8]) {
    let file = parse(source);
    check_tree(source, &file);
    let _ = facts::method_entries(&file.tree);
    let _ = facts::method_span(&file.tree, "Q", "a", facts::Side::Instance);
    let method = parse_method(source);
    check_tree(source, &method);
    let _ = facts::find_all_sends(source);
    let _ = facts::find_references(source);
    let _ = facts::find_slot_accesses(source);
}

fn on_small_stack(source: Vec<u8>) {
    let worker = std::thread::Builder::new().stack_size(SMALL_STACK).spawn(move || everything(&source));
    worker.unwrap().join().unwrap();
}

#[test]
fn deep_nesting_stays_on_a_small_stack() {
    let n = 3_000;
    let openers = [
        "(",
        "[",
        "#(",
        "#[",
        "#{#a => ",
        "[:x | ",
        "x match: [1 -> ",
        "x match: [{",
        "{",
        "a foo: (",
        "\"{",
        "\"{a ",
        "^ (",
        "a := (",
        "a := ",
        "x match: [#[",
        "x match: [1 when: [",
        "x match: [_ -> (",
        "#(1 | (",
        "a ** ",
        "a + ",
        "a ",
        "a; b: ",
        "x :: (",
        "x match: [Ok value: ",
        "[:x :: (",
        "a -> ",
        "<<",
        "x match: [<<a:",
    ];
    for opener in openers {
        for prefix in ["m => ", "Object subclass: Q\n  a => ", "Protocol define: Q\n  a => ", ""] {
            on_small_stack(format!("{prefix}{}", opener.repeat(n)).into_bytes());
        }
    }
    for (head, opener) in [
        ("m -> ", "A("),
        ("m: x :: ", "("),
        ("Object subclass: Q\n  field: x :: ", "("),
        ("type Foo = ", "A("),
        ("Object subclass: Q\n  uses: P", "(A("),
        ("Protocol define: Q\n  a -> ", "A("),
        ("A(", "B("),
    ] {
        on_small_stack(format!("{head}{}", opener.repeat(n)).into_bytes());
        on_small_stack(format!("{head}{} => 1", opener.repeat(60)).into_bytes());
    }
}

#[test]
fn nesting_up_to_the_limit_is_read() {
    let nested = |n: usize| format!("m => {}self a{}", "(".repeat(n), ")".repeat(n));
    assert!(common::method_codes(&nested(60)).is_empty());
    assert_eq!(common::method_codes(&nested(80)), ["nesting_too_deep"]);
    let source = format!("Object subclass: Q\n  a => {}\n  b => 1\n", "(".repeat(200));
    assert_eq!(methods(&source), ["a", "b"]);
}

#[test]
fn bytes_that_are_no_utf8_give_a_tree() {
    for source in [
        &b"\xff\xfe\x00"[..],
        b"Object subclass: Q\n  a => \"\xff\"\n  \xc3 => 1\n",
        b"// \xff",
        b"$\xe2\x82",
    ] {
        everything(source);
        assert!(parse(source).diagnostics.iter().any(|d| d.code.as_str() == "invalid_utf8"));
    }
}

/// Pieces that make careless readers take square time when they repeat.
const ADVERSARIES: [&str; 102] = [
    "state: a ",
    "state: a = ",
    "state: a :: A(",
    "uses: A ",
    "(",
    ")",
    "[",
    "]",
    "#(",
    "#[",
    "#{",
    "{",
    "}",
    "\"",
    "\"{",
    "\"{\"",
    "'",
    "#'",
    "/*",
    "/* */",
    "//\n",
    "///\n",
    "$",
    "#",
    "@",
    ".",
    ";",
    "!",
    "^",
    "|",
    ":",
    "a ",
    "a\n",
    "a: ",
    "a: b\n  ",
    "a: b :: C\n  ",
    "+ a\n",
    "+ a :: B | \n",
    "a -> (\n",
    "a -> A |\n",
    "sealed\n",
    "abstract\n",
    "class ",
    "uses: #(\n  ",
    "  uses: A\n",
    "  a => 1\n",
    "  a => (\n",
    "A >> a\n",
    "A(\n",
    "A >> b => 1\n",
    "type A = (\n",
    "@expect\n",
    "state: a = \n",
    "\u{e9}\n",
    "a => 1. ",
    "a => ",
    "x match: [",
    "x match: [1 -> ",
    "1 -> ",
    "when: [",
    "a := ",
    "a :: B := ",
    "#(a) := ",
    "{a} := ",
    "<<",
    "a:8/",
    "A b: 1 ",
    "...a ",
    "p@N ",
    "@primitive ",
    "-1 ",
    "1 ",
    "Object subclass: A\n",
    "Protocol define: A\n",
    "internal type A = B\n",
    "  state: a = 1\n",
    "  a -> A\n",
    "  < a -> A\n",
    "  a: b\n  c: d\n",
    "    a: b\n",
    "=> ",
    "-> ",
    ":: ",
    ">> ",
    "\\ ",
    "& ",
    ", ",
    "= ",
    "super ",
    "{a, ",
    "#{a => ",
    "[:x ",
    "[| a ",
    "\n  @expect dnu\n",
    "  internal class ",
    "  class a -> (",
    "a: (b) ",
    "a: b -> (A) ",
    "A | ",
    "(A) ",
    "a :: -> A(",
    "1 foo; ",
];

const SURROUNDINGS: [&str; 8] = [
    "",
    "Object subclass: Q\n",
    "Object subclass: Q\n  a => ",
    "Protocol define: Q\n  ",
    "Protocol define: Q\n  a => ",
    "m => (",
    "\"{",
    "x match: [",
];

/// Looks per byte that no text may exceed.
const MAX_WORK: u64 = 80;

/// Asserts that four times the text takes about four times the steps.
fn assert_linear(surrounding: &str, piece: &str) -> Result<(), String> {
    let make = |bytes: usize| format!("{surrounding}{}", piece.repeat(bytes / piece.len() + 1)).into_bytes();
    let (small, large) = (make(1500), make(6000));
    let (few, many) = (parse(&small).work, parse(&large).work);
    if many * 2 > few * 11 || many > MAX_WORK * large.len() as u64 {
        return Err(format!("{surrounding:?} and {piece:?} again and again: {few} steps, then {many}"));
    }
    Ok(())
}

#[test]
fn no_repeated_piece_takes_square_time() {
    let slow: Vec<String> = ADVERSARIES
        .iter()
        .flat_map(|piece| SURROUNDINGS.iter().filter_map(move |s| assert_linear(s, piece).err()))
        .collect();
    assert!(slow.is_empty(), "{slow:#?}");
}

/// Each member looked for the end of its line again.
#[test]
fn members_of_a_protocol_on_one_line_take_linear_time() {
    for piece in ["a => 1. ", ". a ", "a: b -> (A) .", "a :: -> A(a => 1. ", "  class a -> (a => 1. "] {
        assert_eq!(assert_linear("Protocol define: Q\n  ", piece), Ok(()));
    }
}

#[test]
fn ten_megabytes_are_read_in_linear_time() {
    let small = class_file(5_000, 7).into_bytes();
    let large = small.repeat(10 * 1024 * 1024 / small.len() + 1);
    let per_byte = |source: &[u8]| parse(source).work as f64 / source.len() as f64;
    let (few, many) = (per_byte(&small), per_byte(&large));
    assert!(large.len() >= 10 * 1024 * 1024);
    assert!(many < few * 1.2, "{few} steps a byte, then {many}");
}

#[test]
fn long_chains_are_read_without_recursion() {
    for piece in ["+ 1 ", "foo ", "; foo ", "-> a ", "** 2 ", "x := ", "a.b"] {
        on_small_stack(format!("m => a {}", piece.repeat(20_000)).into_bytes());
    }
}

/// A return whose value is a match without a receiver, cut off.
#[test]
fn a_match_without_receiver_and_end_gives_a_tree() {
    everything(b"^ match: [");
}

#[test]
fn what_the_fuzzer_reached_gives_trees() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus");
    let files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()).collect();
    assert!(files.len() > 400);
    files.iter().for_each(|file| everything(&std::fs::read(file).unwrap()));
}

#[test]
fn the_corpus_is_valid() {
    for seed in 0..30 {
        let source = class_file(400, seed);
        assert!(codes(&source).is_empty(), "seed {seed}: {:?}", codes(&source));
        check_tree(source.as_bytes(), &parse(source.as_bytes()));
        assert!(methods(&source).len() > 20);
    }
}

const PIECES: [&str; 63] = [
    "Object subclass: Q",
    "Protocol define: P",
    "\n  ",
    "\n",
    "\n    ",
    " => ",
    "a",
    "foo: ",
    "X",
    "class ",
    "sealed ",
    "self.x",
    " := ",
    " :: ",
    "(",
    ")",
    "[",
    "]",
    "#(",
    "#{",
    "#[",
    "{",
    "}",
    ", ",
    ". ",
    "! ",
    "; ",
    "^ ",
    " + ",
    " -> ",
    " >> ",
    "\"",
    "\"{",
    "1",
    "-1",
    "2.5",
    "$a",
    "#sym",
    " | ",
    ":x ",
    "match: [",
    "when: [",
    "uses: ",
    "excluding: ",
    "state: ",
    "field: ",
    "@expect dnu",
    "@primitive",
    "// c",
    "/// d",
    "/* c */",
    "'",
    "é",
    " & ",
    "\\",
    "<<",
    "...",
    "p@N",
    "type T = ",
    "Erlang lists ",
    "\u{0}",
    "\t",
    "\r\n",
];

/// Text made of pieces that the language knows, so that parsers get past the first token.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(&PIECES[..]);
    prop::collection::vec(piece, 0..120).prop_map(|p| p.concat().into_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn random_bytes_give_a_tree(source in prop::collection::vec(any::<u8>(), 0..600)) {
        everything(&source);
    }

    #[test]
    fn random_pieces_give_a_tree(source in pieces()) {
        everything(&source);
    }

    #[test]
    fn damaged_files_give_a_tree(
        seed in 0u64..1000,
        cuts in prop::collection::vec((any::<prop::sample::Index>(), 0usize..40, prop::collection::vec(any::<u8>(), 0..4)), 1..6),
    ) {
        let mut source = class_file(60, seed).into_bytes();
        for (at, len, insert) in cuts {
            if source.is_empty() { break; }
            let at = at.index(source.len());
            let end = (at + len).min(source.len());
            source.splice(at..end, insert);
        }
        everything(&source);
    }

    #[test]
    fn mixed_pieces_take_linear_time(
        pieces in prop::collection::vec(prop::sample::select(&ADVERSARIES[..]), 2..5),
        surrounding in prop::sample::select(&SURROUNDINGS[..]),
    ) {
        prop_assert_eq!(assert_linear(surrounding, &pieces.concat()), Ok(()));
    }

    #[test]
    fn random_noise_gives_few_errors(source in prop::collection::vec(any::<u8>(), 300)) {
        prop_assert!(parse(&source).diagnostics.len() < 100);
    }

    /// What a method's slice says of itself is what the file says of the method.
    #[test]
    fn slices_read_like_the_file(seed in 0u64..1000) {
        let source = class_file(80, seed);
        let parse = parse(source.as_bytes());
        for entry in facts::method_entries(&parse.tree) {
            if entry.origin == facts::Origin::SlotAccessor { continue; }
            let span = facts::method_span(&parse.tree, &entry.class, &entry.selector, entry.side);
            if let Ok(span) = span {
                prop_assert_eq!(span, entry.span);
            }
            let slice = entry.span.slice(source.as_bytes());
            let plain = |hits: Vec<facts::SendHit>| hits.into_iter().map(|h| (h.selector, h.line, h.recv)).collect::<Vec<_>>();
            prop_assert_eq!(plain(facts::find_all_sends(slice)), plain(entry.sends));
            let plain = |hits: Vec<facts::ReferenceHit>| hits.into_iter().map(|h| (h.class, h.line)).collect::<Vec<_>>();
            prop_assert_eq!(plain(facts::find_references(slice)), plain(entry.references));
        }
    }
}
