//! Rules of the grammar reference that no other test shows, by section.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;
use beamtalk_lang::ast::{File, Item};
use beamtalk_lang::facts::{self, Side};
use beamtalk_lang::lexer::{TokenKind, lex};
use beamtalk_lang::parser::{Parse, parse, parse_method};
use beamtalk_lang::tree::NodeKind;
use common::*;

const CLEAN: [&str; 0] = [];

fn file<'t>(parse: &'t Parse<'_>) -> File<'t> {
    parse.tree.root().as_file().unwrap()
}

fn kinds(source: &str) -> Vec<TokenKind> {
    lex(source.as_bytes()).tokens.iter().map(|t| t.kind).filter(|k| *k != TokenKind::Eof).collect()
}

// §1: text and trivia.

#[test]
fn carriage_returns_and_tabs_are_blanks() {
    let source = "Object subclass: Q\r\n\ta => 1\r\n\tb => self c\r\n";
    assert_eq!(codes(source), CLEAN);
    assert_eq!(methods(source), ["a", "b"]);
    assert_eq!(slice(source, "Q", "a", Side::Instance), Ok("\ta => 1\r\n".into()));
}

#[test]
fn comments_stand_between_any_two_tokens() {
    let source = "Object /* a\n */ subclass: // b\n Q\n  at: /* c */ k /* d */ :: /* e */ T => // f\n    self /* g */ x\n";
    assert_eq!(codes(source), CLEAN);
    assert_eq!(methods(source), ["at:"]);
    // A line end inside a block comment counts as one.
    assert_eq!(body("a /*\n*/ b"), "(Ident a) (Ident b)");
}

#[test]
fn an_empty_line_separates_nothing() {
    assert_eq!(body("self\n\n\n      foo: 1"), "(KeywordSend (Ident self) foo: (Integer 1))");
    assert_eq!(methods("Object subclass: Q\n  a =>\n\n\n    1\n\n    2\n"), ["a"]);
}

#[test]
fn an_unclosed_comment_takes_the_rest() {
    let source = "Object subclass: Q\n  a => 1\n  /* b => 2\n";
    assert_eq!(methods(source), ["a"]);
    assert_eq!(codes(source), ["unterminated_comment"]);
}

#[test]
fn docs_of_every_declaration_that_takes_them() {
    let source = "\
/// alias
type Weight = Integer
/// class
Value subclass: Q
  /// slot
  field: a
  /// method
  class sealed m => 1
  /// before
  @expect dnu
  n => 2
  /// slot before
  @expect type \"why\"
  field: b
";
    let parse = parse(source.as_bytes());
    assert_eq!(codes(source), CLEAN);
    let class = file(&parse).classes().next().unwrap();
    let doc = |d: Option<String>| d.unwrap_or_default();
    assert_eq!(doc(file(&parse).aliases().next().unwrap().doc()), "alias");
    assert_eq!(doc(class.doc()), "class");
    assert_eq!(class.slots().map(|s| doc(s.doc())).collect::<Vec<_>>(), ["slot", "slot before"]);
    assert_eq!(class.methods().map(|m| doc(m.doc())).collect::<Vec<_>>(), ["method", "before"]);
}

#[test]
fn doc_text_drops_slashes_and_one_blank() {
    let source = "Object subclass: Q\n  ///one\n  ///   two\n  ///\n  a => 1\n";
    let parse = parse(source.as_bytes());
    let method = file(&parse).classes().next().unwrap().methods().next().unwrap();
    assert_eq!(method.doc().unwrap(), "one\n  two\n");
}

#[test]
fn another_comment_breaks_a_doc() {
    let source = "Object subclass: Q\n  /// lost\n  // other\n  /// kept\n  a => 1\n";
    let parse = parse(source.as_bytes());
    assert_eq!(file(&parse).classes().next().unwrap().methods().next().unwrap().doc().unwrap(), "kept");
}

// §2: tokens.

#[test]
fn runs_of_operator_characters() {
    use TokenKind as K;
    assert_eq!(kinds("+-1"), [K::BinOp, K::Integer]);
    assert_eq!(kinds("x =-1"), [K::Ident, K::BinOp, K::Integer]);
    assert_eq!(kinds(">>="), [K::GtGt, K::Eq]);
    assert_eq!(kinds("=:= =/= =>"), [K::BinOp, K::BinOp, K::FatArrow]);
    assert_eq!(kinds("a +// b\n"), [K::Ident, K::BinOp, K::Ident]);
    assert_eq!(kinds("a-1"), [K::Ident, K::Integer]);
    assert_eq!(kinds("#a::B"), [K::Symbol, K::Colon, K::Name]);
    assert_eq!(
        kinds("a::B a:=b a:b"),
        [K::Ident, K::DColon, K::Name, K::Ident, K::Assign, K::Ident, K::Keyword, K::Ident]
    );
}

#[test]
fn words_keep_their_meaning_outside_their_place() {
    for word in
        ["abstract", "sealed", "typed", "internal", "class", "type", "Protocol", "Self", "super", "uses"]
    {
        assert_eq!(method_codes(&format!("m => self {word}")), CLEAN, "{word}");
        if !matches!(word, "super" | "Protocol" | "Self") {
            assert_eq!(method_codes(&format!("m => {word} := 1. {word} foo")), CLEAN, "{word}");
        }
    }
    for word in ["subclass", "define", "extending", "native", "handleScope", "match", "when", "excluding"] {
        assert_eq!(selectors(&format!("m => x := self {word}: 1")), [format!("{word}:")]);
        let source = format!("Object subclass: Q\n  a => 1\n  {word}: x => 2\n");
        assert_eq!(methods(&source), ["a", &format!("{word}:")], "{word}");
        assert_eq!(codes(&source), CLEAN, "{word}");
    }
}

// §3: statements.

#[test]
fn file_statements_need_no_separator() {
    let source = "a foo 2 \"s\" b bar";
    assert_eq!(codes(source), CLEAN);
    assert_eq!(file(&parse(source.as_bytes())).items().count(), 3);
}

#[test]
fn a_separator_before_an_end_is_no_error() {
    assert_eq!(method_codes("m => [a.]. b."), CLEAN);
    assert_eq!(methods("Object subclass: Q\n  a => 1.\n  b => 2.\n"), ["a", "b"]);
    assert_eq!(codes("Object subclass: Q\n  a => 1.\n  b => 2.\n"), CLEAN);
}

#[test]
fn a_typed_target_is_a_word_alone() {
    assert_eq!(method_codes("m => (a) :: Integer := 1"), ["unexpected_token"]);
    assert_eq!(body("a :: A := b :: B := 1").matches("(Assign").count(), 2);
}

// §4: expressions.

#[test]
fn lists_end_in_one_tail() {
    assert_eq!(body("#(a, b | c d)"), "(List #( (Ident a) , (Ident b) | (UnarySend (Ident c) d) ))");
    assert_eq!(method_codes("m => #(a, | b)"), CLEAN);
    assert_eq!(method_codes("m => #(a | b, c)").len(), 1);
    assert_eq!(method_codes("m => #(a | b + c)").len(), 1);
    assert_eq!(method_codes("m => #[a | b]").len(), 1);
}

#[test]
fn rest_elements_stand_last_and_in_patterns_only() {
    assert_eq!(method_codes("m => #[a, ...b]"), ["bad_pattern"]);
    assert_eq!(method_codes("m => #[a, ...b] foo"), ["bad_pattern"]);
    assert_eq!(method_codes("m => #[...a, b] := c"), ["bad_pattern"]);
    assert_eq!(method_codes("m => #(...a) := c"), CLEAN);
    assert_eq!(method_codes("m => x match: [#[...a, b] -> 1]"), ["bad_pattern"]);
    assert_eq!(method_codes("m => x match: [{...a} -> 1]"), ["bad_pattern"]);
}

#[test]
fn arms_need_a_separator() {
    assert_eq!(method_codes("m => x match: [1 -> a 2 -> b]"), ["unexpected_token"]);
    assert_eq!(body("x match: [1 -> a 2 -> b]").matches("(MatchArm").count(), 2);
    assert_eq!(method_codes("m => x matchExhaustive: [#a -> 1;; #b -> 2;]"), CLEAN);
}

#[test]
fn arm_bodies_assign_to_words_and_slots_only() {
    assert_eq!(method_codes("m => x match: [1 -> a := 2; 2 -> self.b := 3]"), CLEAN);
    assert_eq!(method_codes("m => x match: [1 -> #[a] := b]"), ["bad_assignment_target"]);
    assert_eq!(method_codes("m => x match: [1 -> a b; c]").len(), 1);
    assert_eq!(method_codes("m => x match: [1 -> (a b; c)]"), CLEAN);
}

#[test]
fn only_a_cascade_goes_on_behind_a_match() {
    assert_eq!(method_codes("m => x match: [1 -> a] + 2"), ["unexpected_token"]);
    assert_eq!(method_codes("m => x match: [1 -> a] foo: 2"), ["unexpected_token"]);
    assert_eq!(selectors("m => x foo match: [1 -> a]; bar"), ["foo", "bar"]);
    assert_eq!(method_codes("m => y := x match: [1 -> a]"), CLEAN);
}

#[test]
fn directives_stand_in_method_bodies() {
    assert_eq!(codes("@primitive"), ["unexpected_token"]);
    assert_eq!(codes("Value subclass: Q\n  field: a = @intrinsic x\n"), ["unexpected_token"]);
    assert_eq!(codes("Object subclass: Q\n  a => @primitive \"x\"\n  b => @intrinsic size\n"), CLEAN);
    assert_eq!(codes("Q >> a => [@primitive]"), CLEAN);
    assert_eq!(codes("@expect dnu\nfoo bar"), CLEAN);
}

#[test]
fn every_category_of_expect() {
    for category in [
        "dnu",
        "type",
        "unused",
        "dead_assignment",
        "deprecation",
        "actor_new",
        "visibility",
        "unresolved_class",
        "unresolved_ffi",
        "arity_mismatch",
        "shadowed_class",
        "type_annotation",
        "inheritance",
        "sendability",
        "all",
    ] {
        assert_eq!(method_codes(&format!("m =>\n  @expect {category} \"why\"\n  self x")), CLEAN);
    }
}

#[test]
fn slot_accesses_of_any_word() {
    assert_eq!(body("Name.x"), "(SlotAccess (ClassRef Name) . x)");
    assert_eq!(body("super.x"), "(SlotAccess (Super super) . x)");
    assert_eq!(body("a foo: b.c"), "(KeywordSend (Ident a) foo: (SlotAccess (Ident b) . c))");
    assert_eq!(sends("m => p@N.x y"), ["y 1 other"]);
}

#[test]
fn erlang_class_messages_name_no_module() {
    for word in [
        "new",
        "spawn",
        "class",
        "methods",
        "superclass",
        "subclasses",
        "allSubclasses",
        "class_name",
        "module_name",
        "printString",
    ] {
        assert_eq!(sends(&format!("m => Erlang {word}")), [format!("{word} 1 other")]);
    }
    assert_eq!(sends("m => Erlang + 1"), ["+ 1 other"]);
    assert_eq!(sends("m => Erlang lists + 1"), ["+ 1 erlang_ffi lists", "lists 1 erlang_ffi lists"]);
    assert_eq!(sends("m => p := Erlang lists. p foo"), ["lists 1 erlang_ffi lists", "foo 1 other"]);
}

// §5: patterns and types.

#[test]
fn constructors_take_simple_values() {
    assert_eq!(
        body("x match: [Pair left: -1 right: nil -> 1]"),
        "(Match (Ident x) match: [ (MatchArm (PatConstructor Pair left: (PatLiteral -1) right: (PatNil nil)) -> (Integer 1)) ])"
    );
    assert_eq!(method_codes("m => x match: [Pair left: {a} -> 1]").len(), 1);
    assert_eq!(method_codes("m => x match: [Ok value: v when: [v > 1] -> 1]"), CLEAN);
}

#[test]
fn binary_segments() {
    assert_eq!(body("<<a>> := b").matches("PatBinary").count(), 0, "a binary is no target of an assignment");
    for spec in
        ["integer", "float", "binary", "bytes", "utf8", "signed", "unsigned", "big", "little", "native"]
    {
        assert_eq!(method_codes(&format!("m => x match: [<<a:8/{spec}>> -> a]")), CLEAN, "{spec}");
    }
    assert_eq!(method_codes("m => x match: [<<a/nonsense>> -> a]"), ["bad_pattern"]);
    assert_eq!(method_codes("m => x match: [<<a:>> -> a]"), ["bad_pattern"]);
}

#[test]
fn unions_are_loosest_and_one_node() {
    let source = "m -> A | B & C | D => 1";
    let parse = parse_method(source.as_bytes());
    let ty = parse.tree.root().preorder().find(|n| n.kind() == NodeKind::TypeUnion).unwrap();
    assert_eq!(
        shape(ty),
        "(TypeUnion (TypeName A) | (TypeIntersection (TypeName B) & (TypeName C)) | (TypeName D))"
    );
    assert_eq!(method_codes("m -> Block(E, Boolean) => 1"), CLEAN);
    assert_eq!(method_codes("m -> Symbol \\ #on => 1"), CLEAN);
    assert_eq!(codes("Object subclass: Q\n  m -> List(E) class => 1\n").len(), 1);
    assert_eq!(method_codes("m: a :: true | false -> nil => 1"), CLEAN);
}

// §6: declarations.

#[test]
fn a_class_without_superclass_members_or_end_of_line() {
    assert_eq!(codes("nil subclass: Root"), CLEAN);
    assert_eq!(codes("Object subclass: Q\n"), CLEAN);
    assert_eq!(codes("abstract sealed typed internal Object subclass: Q"), CLEAN);
    assert_eq!(codes("Object subclass: Q(T :: Bound(X))\n  a => 1").len(), 1);
    assert_eq!(methods("Object subclass: Q(T :: Bound(X))\n  a => 1"), ["a"]);
}

#[test]
fn a_clauses_argument_stands_on_its_line() {
    let source = "Object subclass: Q native:\n  a => 1\n";
    assert_eq!(codes(source), ["header_clause"]);
    assert_eq!(methods(source), ["a"]);
}

#[test]
fn periods_between_members_are_skipped() {
    let source = "Value subclass: Q\n  field: a = 1.\n  .\n  b => 2.\n  field: c.\n  d => 3\n";
    assert_eq!(codes(source), CLEAN);
    assert_eq!(methods(source), ["b", "d"]);
}

#[test]
fn slots_and_methods_mix() {
    let source = "Value subclass: Q\n  a => 1\n  field: x = #(\n    1,\n    2)\n  b => 2.\n    state: y = 3\n  c => 4\n";
    assert_eq!(methods(source), ["a", "b", "c"]);
    assert_eq!(file(&parse(source.as_bytes())).classes().next().unwrap().slots().count(), 2);
}

#[test]
fn operators_behind_a_slot_are_methods_of_their_own() {
    for op in ["=", "&", "\\", "->", "-", "**"] {
        for slot in ["field: a", "field: a :: T", "field: a = 1"] {
            let source = format!("Value subclass: Q\n  {slot}\n  {op} o => 1\n  b => 2\n");
            assert_eq!(codes(&source), CLEAN, "{source}");
            assert_eq!(methods(&source), [op, "b"], "{source}");
        }
    }
}

#[test]
fn a_method_named_like_the_mark_of_extensions() {
    let source = "Object subclass: Q\n  a => Other\n  >> o => 1\n  b => 2\n";
    assert_eq!(codes(source), CLEAN);
    assert_eq!(methods(source), ["a", ">>", "b"]);
    let source = "Protocol define: Q\n  Upper\n  >> o => 1\n";
    assert_eq!(methods(source), [">>"]);
    assert_eq!(methods("Tap\n  >> a => 1\n"), ["a"]);
}

#[test]
fn declarations_inside_brackets_are_none() {
    assert_eq!(methods("Object subclass: Q\n  a => (A subclass: B)\n  b => [A >> c]\n"), ["a", "b"]);
    assert_eq!(codes("Object subclass: Q\n  a => (A subclass: B)\n"), CLEAN);
}

#[test]
fn an_alias_inside_a_body_needs_the_member_column() {
    let source = "Object subclass: Q\n  a => 1\n  type Weight = Integer\n";
    assert_eq!(file(&parse(source.as_bytes())).aliases().count(), 1);
    let source = "Object subclass: Q\n  a => 1\n    type Weight = Integer\n";
    assert_eq!(file(&parse(source.as_bytes())).aliases().count(), 0);
}

#[test]
fn extension_targets() {
    let source = "p@Tap class >> internal make => 1\nTap >> sealed drain: n -> Tap => 2\n";
    assert_eq!(codes(source), CLEAN);
    assert_eq!(methods(source), ["class make", "drain:"]);
    assert_eq!(slice(source, "Tap", "make", Side::Class), Ok("p@Tap class >> internal make => 1\n".into()));
    assert_eq!(methods("lower >> x => 1"), [""; 0]);
}

#[test]
fn docs_above_an_extension_belong_to_its_span() {
    let source = "/// doc\nTap >> drain => 1\n";
    assert_eq!(slice(source, "Tap", "drain", Side::Instance), Ok(source.into()));
}

// §6.1: protocols and traits.

#[test]
fn extending_counts_only_behind_the_header() {
    let source = "Protocol define: P extending: tools@Q\n  a -> X\n  extending: y -> X\n";
    let parse = parse(source.as_bytes());
    let protocol = file(&parse).protocols().next().unwrap();
    assert_eq!(protocol.extending().unwrap().name().unwrap().text, "Q");
    assert_eq!(
        protocol.requirements().map(|r| r.selector_text().into_owned()).collect::<Vec<_>>(),
        ["a", "extending:"]
    );
}

#[test]
fn a_uses_line_of_a_generic_protocol_over_lines() {
    let source = "Value subclass: Q\n  uses: P(Map(K, V)) excluding: #(\n    #a,\n    #b\n  )\n  c => 1\n";
    assert_eq!(codes(source), CLEAN);
    assert_eq!(methods(source), ["c"]);
    let parse = parse(source.as_bytes());
    let class = file(&parse).classes().next().unwrap();
    assert_eq!(class.uses().next().unwrap().excluding().count(), 2);
}

#[test]
fn a_comma_ends_an_operator_symbol() {
    let source = "Value subclass: Q\n  uses: P excluding: #(#<, #>, #'at:put:', #->)\n";
    let parse = parse(source.as_bytes());
    let uses = file(&parse).classes().next().unwrap().uses().next().unwrap();
    assert_eq!(uses.excluding().map(|s| s.text).collect::<Vec<_>>(), ["<", ">", "at:put:", "->"]);
    assert_eq!(codes(source), CLEAN);
}

#[test]
fn an_arrow_inside_aliasing_makes_no_method() {
    let source = "Value subclass: Q\n  uses: P aliasing: #{#a => #b}\n  c => 1\n";
    assert_eq!(codes(source), CLEAN);
    assert_eq!(methods(source), ["c"]);
    assert_eq!(methods("Value subclass: Q\n  uses: x excluding: y => 1\n"), ["uses:excluding:"]);
}

#[test]
fn a_method_with_self_types_and_super_in_a_protocol() {
    let source = "Protocol define: P\n  at: o :: Self -> Self => super at: o\n";
    assert_eq!(codes(source), CLEAN);
    assert_eq!(entries(source)[0].sends[0].recv, facts::Recv::Super);
}

#[test]
fn protocol_ends_at_other_declarations() {
    let source = "Protocol define: P\n  a -> X\nTap >> b => 1\ntype Weight = Integer\n";
    let parse = parse(source.as_bytes());
    let items: Vec<_> = file(&parse).items().collect();
    assert!(matches!(items[..], [Item::Protocol(_), Item::Extension(_), Item::Alias(_)]), "{items:?}");
}

// §7: methods.

#[test]
fn methods_named_like_modifiers() {
    let source = "Object subclass: Q\n  class -> X => 1\n  internal -> X => 2\n  class class -> X => 3\n  internal class internal => 4\n";
    assert_eq!(codes(source), CLEAN);
    assert_eq!(methods(source), ["class", "internal", "class class", "class internal"]);
}

#[test]
fn every_operator_may_be_defined() {
    for op in [
        "+", "-", "*", "/", "<", ">", "=", "~", "%", "&", "?", ",", "\\", "->", ">>", "++", "**", "<=>", "~=",
    ] {
        let source = format!("Object subclass: Q\n  a => 1\n  {op} o => 2\n  class {op} o :: Q -> Q => 3\n");
        assert_eq!(methods(&source), ["a", op, &format!("class {op}")], "{op}");
        assert_eq!(codes(&source), CLEAN, "{op}");
    }
}

#[test]
fn missing_types_in_a_header_are_reported_there() {
    for header in ["a -> => 1", "a :: => 1", "at: k :: => 1"] {
        let source = format!("Object subclass: Q\n  {header}\n  b => 2\n");
        assert_eq!(codes(&source), ["bad_type"], "{header}");
        assert_eq!(methods(&source).last().unwrap(), "b", "{header}");
        assert_eq!(methods(&source).len(), 2, "{header}");
    }
}

#[test]
fn a_member_at_column_zero_behind_the_header() {
    let source = "Object subclass: Q\na => 1\n  c foo\nb => 2\n";
    assert_eq!(codes(source), CLEAN);
    assert_eq!(methods(source), ["a", "b"]);
    assert_eq!(entries(source)[0].sends.len(), 1);
}

#[test]
fn column_zero_ends_a_class() {
    let source = "Object subclass: Q\n  a => 1\nfoo bar\n";
    assert_eq!(codes(source), CLEAN);
    assert_eq!(file(&parse(source.as_bytes())).items().count(), 2);
}

#[test]
fn an_expect_ends_a_body() {
    let source = "Object subclass: Q\n  a => 1\n  @expect dnu\n  b => 2\n";
    assert_eq!(codes(source), CLEAN);
    assert_eq!(slice(source, "Q", "a", Side::Instance), Ok("  a => 1\n".into()));
    let source = "Object subclass: Q\n  a =>\n    @expect dnu\n    self b\n";
    assert_eq!(entries(source)[0].sends.len(), 1);
}

#[test]
fn empty_lines_and_comments_end_no_body() {
    let source = "Object subclass: Q\n  a =>\n    1\n\n  // at member column\n\n    self b\n  c => 2\n";
    assert_eq!(methods(source), ["a", "c"]);
    assert_eq!(entries(source)[0].sends.len(), 1);
}

// §9: spans.

#[test]
fn a_cast_mark_and_a_comment_on_the_last_line_are_inside() {
    let source = "Object subclass: Q\n  a => self b ! // c\n  // d\n  e => 1";
    assert_eq!(slice(source, "Q", "a", Side::Instance), Ok("  a => self b ! // c\n".into()));
    assert_eq!(slice(source, "Q", "e", Side::Instance), Ok("  e => 1".into()));
}

#[test]
fn an_expect_line_stands_outside_of_a_span() {
    let source = "Object subclass: Q\n  /// d\n  @expect dnu\n  a => 1\n";
    assert_eq!(slice(source, "Q", "a", Side::Instance), Ok("  a => 1\n".into()));
}

#[test]
fn a_wrapped_header_without_body_is_its_first_line() {
    let source = "Object subclass: Q\n  at: a\n    put: b =>\n  c => 1\n";
    assert_eq!(slice(source, "Q", "at:put:", Side::Instance), Ok("  at: a\n".into()));
}

#[test]
fn a_package_is_no_part_of_the_class_name() {
    let source = "tools@Tap >> a => 1\n";
    assert_eq!(slice(source, "Tap", "a", Side::Instance), Ok(source.into()));
    assert_eq!(slice(source, "tools@Tap", "a", Side::Instance), Err("bad_argument"));
}

#[test]
fn two_classes_of_one_name_are_searched() {
    let source = "Object subclass: Q\n  a => 1\nObject subclass: Q\n  b => 2\n  a => 3\n";
    assert_eq!(slice(source, "Q", "b", Side::Instance), Ok("  b => 2\n".into()));
    assert_eq!(slice(source, "Q", "a", Side::Instance), Err("ambiguous"));
}

#[test]
fn every_operator_selector_can_be_asked_for() {
    for op in ["+", "=:=", "->", ">>", ",", "\\", "=/="] {
        let source = format!("Object subclass: Q\n  a => 1\n  {op} o => 2\n");
        assert_eq!(slice(&source, "Q", op, Side::Instance), Ok(format!("  {op} o => 2\n")), "{op}");
    }
}

// §10: rows.

#[test]
fn sends_in_preorder() {
    assert_eq!(selectors("m => (self a: (b c) d: [:x | x e]) f + (g h)"), ["+", "f", "a:d:", "c", "e", "h"]);
    assert_eq!(selectors("m => a b; c: (d e); f"), ["b", "c:", "e", "f"]);
}

#[test]
fn lines_of_sends_in_cascades_and_over_lines() {
    assert_eq!(
        sends("m =>\n  [:x |\n    x a\n  ] value: 1\n    and: 2"),
        ["value:and: 4 other", "a 3 other"]
    );
    assert_eq!(sends("m =>\n  (self\n    a: 1) b"), ["b 2 other", "a: 3 self"]);
    assert_eq!(sends("m =>\n  x a\n    ; b\n    ;\n    c: 1"), ["a 2 other", "b 3 other", "c: 5 other"]);
}

#[test]
fn references_in_their_order() {
    assert_eq!(
        references(
            "at: k :: Map(K, V | W) put: v :: p -> Self | X class =>\n  A new: p@B.\n  #(C, Erlang lists: D)"
        ),
        ["Map", "K", "V", "W", "p", "X", "A", "B", "C", "Erlang", "D"]
    );
    let hits = facts::find_references(b"m =>\n  p\n@B");
    assert!(hits.iter().all(|h| h.line <= 3));
}

#[test]
fn definition_lines_skip_docs() {
    let source = "Object subclass: Q\n  /// d\n  /// e\n  class\n  sealed\n  a => 1\n";
    let entry = &entries(source)[0];
    assert_eq!((entry.line, entry.file_line), (3, 4));
}

#[test]
fn slot_accessors_name_the_files_line() {
    let source = "Value subclass: Q\n\n  field: width :: List(E) = 1\n";
    let all = facts::method_entries(&parse(source.as_bytes()).tree);
    assert_eq!(
        all.iter().map(|e| (e.selector.as_str(), e.line)).collect::<Vec<_>>(),
        [("width", 3), ("withWidth:", 3)]
    );
    assert_eq!(all[0].references.iter().map(|r| r.class.as_str()).collect::<Vec<_>>(), ["List", "E"]);
}

// §12: recovery.

#[test]
fn keys_of_a_map_at_member_column_are_no_methods() {
    let source = "Object subclass: Q\n  a => #{\n  Name => 1,\n  Other => 2\n  }\n  b => 3\n";
    assert_eq!(codes(source), CLEAN);
    assert_eq!(methods(source), ["a", "b"]);
    assert_eq!(codes("x := #{\nName => 1\n}\n"), CLEAN);
    let source = "Protocol define: Q\n  a => #{\n  Name => 1\n  }\n  b => 3\n";
    assert_eq!(codes(source), CLEAN);
    assert_eq!(methods(source), ["a", "b"]);
    // A map that is never closed still loses no neighbour.
    assert_eq!(methods("Object subclass: Q\n  a => #{\n  b => 3\n  c => 4\n"), ["a", "b", "c"]);
}

#[test]
fn an_unclosed_group_in_a_type_pattern_loses_its_arm_only() {
    let source = "Object subclass: Q\n  a => x match: [n :: C(T; #b -> self c]\n  d => 1\n";
    assert_eq!(methods(source), ["a", "d"]);
    assert_eq!(entries(source)[0].sends.iter().map(|s| s.selector.as_str()).collect::<Vec<_>>(), ["c"]);
}

#[test]
fn a_bad_map_element_ends_at_its_comma() {
    assert_eq!(selectors("m => #{#a => (x b), c d e: 1, #f => (x g)}"), ["b", "d", "g"]);
}

#[test]
fn messages_never_name_what_only_the_reader_knows() {
    let noise = b"Object subclass: Q\n  a => 'x' ) ] } => := :: ; ! ^ | @ #( {a} <<a #{a b} x -1 ... \xff";
    for finding in parse(noise).diagnostics {
        for word in ["Token", "Kind", "Node", "Ident", "BinOp", "FatArrow", "Eof"] {
            assert!(!finding.message.contains(word), "{finding:?}");
        }
    }
}
