//! Files, classes, protocols, methods and their spans: grammar reference §1, §6, §7, §9, §10.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;
use beamtalk_lang::ast::{File, Item, SlotKind};
use beamtalk_lang::facts::{self, Origin, Side, SpanErrorKind};
use beamtalk_lang::parser::{Parse, parse, parse_method};
use common::*;

const CLEAN: [&str; 0] = [];

fn file<'t>(parse: &'t Parse<'_>) -> File<'t> {
    parse.tree.root().as_file().unwrap()
}

#[test]
fn class_headers() {
    let source = "\
/// A gauge.
sealed typed tools@Value(Integer) subclass: Gauge(A, B :: Bound) native: gauge_mod
  handleScope: #local
  shapeVersion: 3
";
    let parse = parse(source.as_bytes());
    assert_eq!(codes(source), CLEAN);
    let class = file(&parse).classes().next().unwrap();
    assert_eq!(class.modifiers().map(|m| m.text).collect::<Vec<_>>(), ["sealed", "typed"]);
    let superclass = class.superclass().unwrap();
    assert_eq!((superclass.package().unwrap().text, superclass.name().unwrap().text), ("tools", "Value"));
    assert_eq!(class.superclass_args().count(), 1);
    assert_eq!(class.name().unwrap().text, "Gauge");
    let params: Vec<_> =
        class.type_params().map(|p| (p.name().unwrap().text, p.bound().map(|b| b.text))).collect();
    assert_eq!(params, [("A", None), ("B", Some("Bound"))]);
    assert_eq!(class.native().unwrap().text, "gauge_mod");
    assert_eq!(class.handle_scope().unwrap().text, "#local");
    assert_eq!(class.shape_version().unwrap().text, "3");
    assert_eq!(class.doc().unwrap(), "A gauge.");
}

#[test]
fn header_clauses_out_of_order_do_not_lose_the_class() {
    let source = "Value subclass: Q handleScope: #a native: b\n  m => 1";
    assert_eq!(codes(source), ["header_clause"]);
    assert_eq!(methods(source), ["m"]);
    assert_eq!(codes("Value subclass: #Foo\n  m => 1"), ["expected_name"]);
}

#[test]
fn a_paren_on_the_line_after_the_header_is_no_type_parameter() {
    let source = "Value subclass: Q\n\n(1 + 2) foo";
    assert_eq!(codes(source), CLEAN);
    assert_eq!(file(&parse(source.as_bytes())).items().count(), 2);
}

#[test]
fn slots() {
    let source = "Value subclass: Q\n  /// d\n  field: a :: Integer | nil = 1 + 2\n  state: late b\n  classState: c = #()\n";
    let parse = parse(source.as_bytes());
    assert_eq!(codes(source), CLEAN);
    let slots: Vec<_> = file(&parse).classes().next().unwrap().slots().collect();
    assert_eq!(
        slots.iter().map(|s| s.kind()).collect::<Vec<_>>(),
        [SlotKind::Field, SlotKind::State, SlotKind::ClassState]
    );
    assert_eq!(slots.iter().map(|s| s.name().unwrap().text).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_eq!(slots[0].ty().unwrap().text(), b"Integer | nil");
    assert_eq!(slots[0].default().unwrap().text(), b"1 + 2");
    assert_eq!(slots[0].doc().unwrap(), "d");
    assert_eq!(slots[1].modifiers().next().unwrap().text, "late");
    assert!(slots[1].ty().is_none() && slots[1].default().is_none());
    assert_eq!(slots[2].default().unwrap().text(), b"#()");
}

#[test]
fn methods_may_begin_with_a_slots_word() {
    assert_eq!(
        methods("Value subclass: Q\n  field: a\n  field: x => 1\n  state: y :: Integer => 2"),
        ["field:", "state:"]
    );
}

#[test]
fn method_headers() {
    let source = "Object subclass: Q\n  internal sealed class at: k :: Key put: v -> V => 1\n  internal => 2\n  class internal -> A => 3\n";
    let parse = parse(source.as_bytes());
    assert_eq!(codes(source), CLEAN);
    let methods: Vec<_> = file(&parse).classes().next().unwrap().methods().collect();
    assert_eq!(methods[0].modifiers().map(|m| m.text).collect::<Vec<_>>(), ["internal", "sealed", "class"]);
    assert_eq!(methods[0].selector_text(), "at:put:");
    let params: Vec<_> =
        methods[0].params().map(|p| (p.name().unwrap().text, p.ty().map(|t| t.text()))).collect();
    assert_eq!(params, [("k", Some(&b"Key"[..])), ("v", None)]);
    assert_eq!(methods[0].return_type().unwrap().text(), b"V");
    assert_eq!(methods[1].selector_text(), "internal");
    assert_eq!((methods[2].selector_text().as_ref(), methods[2].is_class_side()), ("internal", true));
}

#[test]
fn an_empty_body_is_an_error_and_loses_no_neighbour() {
    let source = "Object subclass: Q\n  a =>\n  b => 1";
    assert_eq!(codes(source), ["empty_method_body"]);
    assert_eq!(methods(source), ["a", "b"]);
    assert_eq!(slice(source, "Q", "a", Side::Instance), Ok("  a =>\n".into()));
}

#[test]
fn expect_before_members() {
    let source =
        "Object subclass: Q\n  /// d\n  @expect dnu\n  a => self foo\n  @expect type \"x\"\n  state: s = 1\n";
    assert_eq!(codes(source), CLEAN);
    assert_eq!(methods(source), ["a"]);
}

#[test]
fn unattached_docs_are_a_warning() {
    assert_eq!(codes("Object subclass: Q\n  a =>\n    /// nothing\n    1\n"), ["unattached_doc"]);
    assert_eq!(codes("Object subclass: Q\n  a => 1 /// behind code\n"), CLEAN);
    assert_eq!(codes("Value subclass: Q\n  /// d\n  uses: P\n"), ["unattached_doc"]);
    assert_eq!(codes("Object subclass: Q\n  /// lost\n\n  a => 1\n"), CLEAN);
}

#[test]
fn aliases_extensions_and_statements_stand_beside_a_class() {
    let source = "\
internal type Weight = Integer | Float
type T = Integer
Tap >> drain => 1
Tap class >> make: n => 2
tools@Tap >> + other => 3
Object subclass: Q
  a => 1

Q new a
x := 3. y foo !
";
    let parse = parse(source.as_bytes());
    assert_eq!(codes(source), ["alias_name"]);
    let kinds: Vec<_> = file(&parse)
        .items()
        .map(|i| match i {
            Item::Alias(a) => format!("alias {} {}", a.name().unwrap().text, a.is_internal()),
            Item::Extension(e) => {
                format!(
                    "{} {} {}",
                    e.target().unwrap().name().unwrap().text,
                    e.is_class_side(),
                    e.method().unwrap().selector_text()
                )
            }
            Item::Class(c) => format!("class {}", c.name().unwrap().text),
            Item::Statement(n) => format!("{:?}", n.kind()),
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(
        kinds,
        [
            "alias Weight true",
            "alias T false",
            "Tap false drain",
            "Tap true make:",
            "Tap false +",
            "class Q",
            "UnarySend",
            "Assign",
            "Cast"
        ]
    );
}

#[test]
fn extension_bodies() {
    assert_eq!(methods("A >> x =>\nfoo\nbar\nB >> y => 1"), ["x", "y"]);
    let source = "A >> x => 1.\nfoo\n";
    assert_eq!(file(&parse(source.as_bytes())).items().count(), 1);
    assert_eq!(codes("A >> internal sealed x => 1"), CLEAN);
    assert_eq!(methods("A >> class => 1"), ["class"]);
    assert_eq!(methods("A >> -> x => 1"), [""; 0]);
    // A keyword on a new line continues unless a header begins.
    assert_eq!(file_sends("A >> x => self\nfoo: 1\n  bar: 2"), ["foo:bar: 2 self"]);
    assert_eq!(codes("A >> x => 1\nfoo: y => 2"), ["unexpected_token"]);
}

#[test]
fn a_file_holds_one_class_or_protocol() {
    assert_eq!(codes("Object subclass: A\nObject subclass: B\n"), ["several_definitions"]);
    assert_eq!(codes("Object subclass: A\nProtocol define: B\n"), ["several_definitions"]);
}

#[test]
fn class_begins_end_a_body_at_any_column() {
    let source = "Object subclass: A\n  a => 1\n    Object subclass: B\n  b => 2";
    assert_eq!(
        entries(source).iter().map(|e| format!("{} {}", e.class, e.selector)).collect::<Vec<_>>(),
        ["A a", "B b"]
    );
}

#[test]
fn uses_lines() {
    let source = "\
Value subclass: Q
  uses: tools@Bag(Integer, List(E)) excluding: #(#size, #<, #'at:put:') overriding: #(#hash)
  uses: Other aliasing: #{#a => #b,
    #c => #d}
  a => 1
";
    let parse = parse(source.as_bytes());
    assert_eq!(codes(source), CLEAN);
    let uses: Vec<_> = file(&parse).classes().next().unwrap().uses().collect();
    assert_eq!(uses.len(), 2);
    assert_eq!(uses[0].protocol().unwrap().package().unwrap().text, "tools");
    assert_eq!(uses[0].type_args().count(), 2);
    assert_eq!(uses[0].excluding().map(|s| s.text).collect::<Vec<_>>(), ["size", "<", "at:put:"]);
    assert_eq!(uses[0].overriding().map(|s| s.text).collect::<Vec<_>>(), ["hash"]);
    assert_eq!(
        uses[1].aliasing().map(|(a, b)| (a.text, b.text)).collect::<Vec<_>>(),
        [("a".into(), "b".into()), ("c".into(), "d".into())]
    );
}

#[test]
fn bad_uses_lines_lose_no_method() {
    let rest = "\n  a => 1\n  b => 2\n";
    for (line, code) in [
        ("uses:", "bad_uses_line"),
        ("uses: P excluding: x", "bad_uses_line"),
        ("uses: P excluding: #(#a) excluding: #(#b)", "bad_uses_line"),
        ("uses: P foo: 1", "unexpected_token"),
        ("uses: P excluding: #(#a", "unclosed_bracket"),
        ("uses: P, Q", "bad_uses_line"),
        ("foo: bar", "unexpected_keyword_line"),
        ("used: P", "unexpected_keyword_line"),
    ] {
        let source = format!("Value subclass: Q\n  {line}{rest}");
        assert_eq!(methods(&source), ["a", "b"], "{line}");
        assert_eq!(codes(&source)[0], code, "{line}");
    }
    assert_eq!(codes("Value subclass: Q\n  a => 1\n  uses: P\n  b => 2"), ["uses_after_member"]);
    assert_eq!(codes("Value subclass: Q\n  field: x\n  uses: P\n  b => 2"), ["uses_after_member"]);
    assert_eq!(codes("Value subclass: Q\n  a => 1\n  foo: 2\n  b => 2"), ["unexpected_keyword_line"]);
}

#[test]
fn protocols() {
    let source = "\
/// Order.
Protocol define: Comparable(T) extending: Equal
  /// strict
  < other :: Self -> Boolean

  // === Derived ===

  > other :: Self -> Boolean => other < self
  between: min :: Self and: max :: Self -> Boolean =>
    (self >= min) and: [self <= max]
  class make -> Self
  class
  at: k put: v
  size
";
    let parse = parse(source.as_bytes());
    assert_eq!(codes(source), CLEAN);
    let protocol = file(&parse).protocols().next().unwrap();
    assert_eq!(protocol.name().unwrap().text, "Comparable");
    assert_eq!(protocol.extending().unwrap().name().unwrap().text, "Equal");
    assert_eq!(protocol.type_params().count(), 1);
    let required: Vec<_> = protocol
        .requirements()
        .map(|r| format!("{}{}", if r.is_class_side() { "class " } else { "" }, r.selector_text()))
        .collect();
    assert_eq!(required, ["<", "class make", "class", "at:put:", "size"]);
    assert_eq!(protocol.provisions().map(|m| m.selector_text()).collect::<Vec<_>>(), [">", "between:and:"]);
    assert_eq!(protocol.requirements().next().unwrap().doc().unwrap(), "strict");
}

#[test]
fn a_provided_body_ends_where_the_next_member_begins_whatever_that_is() {
    let source = "Protocol define: Q\n  a => self x\n  - o -> Q\n  b => self\n  foo: x\n  c => self y;\n  d\n  e => 1\n";
    let parse = parse(source.as_bytes());
    let protocol = file(&parse).protocols().next().unwrap();
    assert_eq!(protocol.provisions().map(|m| m.selector_text()).collect::<Vec<_>>(), ["a", "b", "c", "e"]);
    assert_eq!(protocol.requirements().map(|m| m.selector_text()).collect::<Vec<_>>(), ["-", "foo:"]);
}

#[test]
fn closing_brackets_at_member_column_are_no_members() {
    let source = "Protocol define: Q\n  a => self do: [\n    self x\n  ]\n  b => #(\n    1\n  )\n  c -> Q\n";
    assert_eq!(codes(source), CLEAN);
    assert_eq!(methods(source), ["a", "b"]);
}

#[test]
fn reserved_lines_of_protocols() {
    let source = "Protocol define: Q\n  uses: Other\n  overriding: x\n  uses: y => 1\n  excluding: z\n  state: s = 1\n  a => 1\n";
    let parse = parse(source.as_bytes());
    let protocol = file(&parse).protocols().next().unwrap();
    assert_eq!(protocol.provisions().map(|m| m.selector_text()).collect::<Vec<_>>(), ["uses:", "a"]);
    assert_eq!(protocol.requirements().map(|m| m.selector_text()).collect::<Vec<_>>(), ["excluding:"]);
    assert_eq!(codes(source), ["unexpected_keyword_line"]);
}

#[test]
fn statements_behind_a_protocol_are_not_swallowed() {
    let source = "Protocol define: Q\n  a -> X\n\nfoo bar\n";
    let parse = parse(source.as_bytes());
    assert_eq!(file(&parse).items().count(), 2);
    assert_eq!(codes(source), CLEAN);
}

#[test]
fn modifiers_before_a_protocol_stay_in_the_tree() {
    let parse = parse(b"sealed Protocol define: Q\n  a => 1");
    assert_eq!(file(&parse).protocols().next().unwrap().modifiers().next().unwrap().text, "sealed");
}

// Recovery.

#[test]
fn a_stray_token_in_a_class_body_loses_one_line() {
    for stray in ["]", ")", "foo", "1 + 2", "((( not a method =>", "'quoted'", "^ 3", "#{", "..."] {
        let source = format!("Object subclass: Q\n  a => 1\n\n  {stray}\n\n  b => 2\n  c => 3\n");
        let got = methods(&source);
        assert!(got.ends_with(&["b".into(), "c".into()]) && got[0] == "a", "{stray}: {got:?}");
    }
    let source = "Object subclass: Broken\n  ((( not a method =>\n  work => 1\n  work => 2\n";
    assert_eq!(methods(source), ["work", "work"]);
    assert_eq!(codes(source).len(), 1);
}

#[test]
fn an_unreadable_header_is_still_a_header() {
    let source = "Object subclass: Q\n  a => 1\n  b: x :: tools@Saw c: y -> Z => self d\n  e => 2\n";
    assert_eq!(methods(source), ["a", "b:c:", "e"]);
    assert_eq!(codes(source).len(), 1);
    assert_eq!(file_sends(source), ["d 3 self"]);
}

#[test]
fn bad_bodies_leave_their_neighbours_alone() {
    for bad in [
        "self foo: (",
        "self foo: [1",
        "#(1, 2",
        "#{#a => ",
        "x :=",
        "x +",
        "x foo:",
        "x match: [1 -> ",
        "^",
        "\"{a",
        "[:x",
        "x match: [{a",
        "(((((",
        "1 2 3",
        "(a) => => b",
        "x ; ; y",
        "@nonsense",
        "<<a>>",
        "x match: [1 -> [",
    ] {
        let source = format!("Object subclass: Q\n  a => 1\n  bad => {bad}\n  b => 2\n  c: x => 3\n");
        let got = methods(&source);
        if bad == "\"{a" {
            assert_eq!(got, ["a", "bad"], "a string without its end takes the rest");
            continue;
        }
        assert_eq!(got, ["a", "bad", "b", "c:"], "{bad}");
        assert!(!codes(&source).is_empty(), "{bad}");
        assert_eq!(slice(&source, "Q", "b", Side::Instance), Ok("  b => 2\n".into()), "{bad}");
    }
}

#[test]
fn noise_gives_few_errors() {
    let noise = "é)]} . ; § 'x @ # $ ".repeat(16);
    assert!(codes(&noise[..300]).len() < 100);
    assert!(codes(&")\n".repeat(150)).len() < 100);
    assert!(codes(&").".repeat(150)).len() < 100);
    assert!(codes(&"é".repeat(150)).len() < 100);
}

// Spans.

#[test]
fn spans_are_whole_lines_with_docs() {
    let source = "\
Object subclass: Q
  // === Filling ===

  /// one
  /// two
  a =>
    1. // end

  // other
  b => 2. // tail
  // === Next ===
  c => self x !
";
    assert_eq!(
        slice(source, "Q", "a", Side::Instance),
        Ok("  /// one\n  /// two\n  a =>\n    1. // end\n".into())
    );
    assert_eq!(slice(source, "Q", "b", Side::Instance), Ok("  b => 2. // tail\n".into()));
    assert_eq!(slice(source, "Q", "c", Side::Instance), Ok("  c => self x !\n".into()));
}

#[test]
fn span_keeps_carriage_returns_and_missing_line_ends() {
    let source = "Object subclass: Q\r\n  /// d\r\n  a => 1\r\n  b => 2";
    assert_eq!(slice(source, "Q", "a", Side::Instance), Ok("  /// d\r\n  a => 1\r\n".into()));
    assert_eq!(slice(source, "Q", "b", Side::Instance), Ok("  b => 2".into()));
}

#[test]
fn methods_on_one_line_share_it() {
    let source = "Object subclass: Q\n  a => 1. b => 2\n";
    assert_eq!(slice(source, "Q", "a", Side::Instance), slice(source, "Q", "b", Side::Instance));
}

#[test]
fn four_slashes_count_above_a_method() {
    let source = "Object subclass: Q\n  //// x\n  a => 1\n";
    assert_eq!(slice(source, "Q", "a", Side::Instance), Ok("  //// x\n  a => 1\n".into()));
}

#[test]
fn span_reasons() {
    let source =
        "Object subclass: Q\n  a => 1\n  a => 2\n  class a => 3\n  b => 4\nQ >> b => 5\nR class >> c => 6\n";
    let span = |class: &str, selector: &str, side| slice(source, class, selector, side);
    assert_eq!(span("Q", "a", Side::Instance), Err("ambiguous"));
    assert_eq!(span("Q", "a", Side::Class), Ok("  class a => 3\n".into()));
    assert_eq!(span("Q", "b", Side::Instance), Err("ambiguous"));
    assert_eq!(span("Q", "z", Side::Instance), Err("selector_not_found"));
    assert_eq!(span("R", "c", Side::Instance), Err("selector_not_found"));
    assert_eq!(span("R", "c", Side::Class), Ok("R class >> c => 6\n".into()));
    assert_eq!(span("Z", "a", Side::Instance), Err("class_not_found"));
    assert_eq!(span("", "a", Side::Instance), Err("bad_argument"));
    assert_eq!(span("Q", "a b", Side::Instance), Err("bad_argument"));
    assert_eq!(span("Q", "", Side::Instance), Err("bad_argument"));
    let tree = parse(source.as_bytes()).tree;
    let error = facts::method_span(&tree, "Q", "a", Side::Instance).unwrap_err();
    assert_eq!(error.kind, SpanErrorKind::Ambiguous);
    assert!(error.message.contains('Q') && error.message.contains('a'));
}

#[test]
fn provided_methods_resolve_like_instance_methods() {
    let source =
        "Protocol define: P\n  size -> Integer\n  /// d\n  big -> Boolean => self size > 9\n  < o :: Self\n";
    assert_eq!(
        slice(source, "P", "big", Side::Instance),
        Ok("  /// d\n  big -> Boolean => self size > 9\n".into())
    );
    assert_eq!(slice(source, "P", "size", Side::Instance), Err("selector_not_found"));
    assert_eq!(entries(source)[0].origin, Origin::Protocol);
}

#[test]
fn removing_a_span_leaves_the_rest() {
    let source = "Object subclass: Q\n  a => 1\n\n  /// d\n  b => 2\n\n  c => 3\n";
    let parse = parse(source.as_bytes());
    let span = facts::method_span(&parse.tree, "Q", "b", Side::Instance).unwrap();
    let rest = format!("{}{}", &source[..span.start as usize], &source[span.end as usize..]);
    assert_eq!(rest, "Object subclass: Q\n  a => 1\n\n\n  c => 3\n");
    assert_eq!(methods(&rest), ["a", "c"]);
}

// Entries.

#[test]
fn entries_count_lines_in_their_own_source() {
    let source = "Object subclass: Q\n\n  /// d\n  a: x :: T =>\n    x foo\n    Bar new\n";
    let entry = &entries(source)[0];
    assert_eq!((entry.line, entry.file_line), (2, 4));
    assert_eq!(
        entry.sends.iter().map(|s| (s.selector.as_str(), s.line)).collect::<Vec<_>>(),
        [("foo", 3), ("new", 4)]
    );
    assert_eq!(
        entry.references.iter().map(|r| (r.class.as_str(), r.line)).collect::<Vec<_>>(),
        [("T", 2), ("Bar", 4)]
    );
}

#[test]
fn values_get_accessors_for_their_fields() {
    let source = "Value subclass: Q\n  field: width :: Integer | nil\n  field: h = 1\n  width => 3\n";
    let all = facts::method_entries(&parse(source.as_bytes()).tree);
    let made: Vec<_> = all.iter().filter(|e| e.origin == Origin::SlotAccessor).collect();
    assert_eq!(
        made.iter().map(|e| (e.selector.as_str(), e.line)).collect::<Vec<_>>(),
        [("withWidth:", 2), ("h", 3), ("withH:", 3)]
    );
    assert_eq!(made[0].references.iter().map(|r| r.class.as_str()).collect::<Vec<_>>(), ["Integer", "nil"]);
    assert!(made.iter().all(|e| e.sends.is_empty()));
}

#[test]
fn names_too_long_for_an_atom_are_dropped() {
    let long = "x".repeat(256);
    assert_eq!(sends(&format!("m => self {long}")), [""; 0]);
    assert_eq!(sends(&format!("m => self {}", &long[1..])).len(), 1);
    assert_eq!(entries(&format!("Object subclass: Q\n  {long} => 1")).len(), 0);
    assert_eq!(slots_of(&format!("m => self.{long}")), 0);
}

fn slots_of(method: &str) -> usize {
    facts::find_slot_accesses(method.as_bytes()).len()
}

// Fragments.

#[test]
fn method_fragments() {
    for source in [
        "a => 1",
        "\n\n    /// d\n    a => 1\n",
        "class a => self b",
        "  at: k\n  put: v => self x: k\n    y: v",
    ] {
        assert_eq!(method_codes(source), CLEAN, "{source}");
        let parse = parse_method(source.as_bytes());
        assert_eq!(file(&parse).items().count(), 1);
    }
    assert_eq!(method_codes("a => 1\nb => 2"), ["unexpected_token"]);
    assert_eq!(method_codes("self foo"), ["expected_name"]);
    assert_eq!(method_codes("").len(), 1);
    // What falls out of the body is still searched.
    assert_eq!(selectors("a => self x -1 foo"), ["x", "foo"]);
    assert_eq!(sends("§§§ ((("), [""; 0]);
}
