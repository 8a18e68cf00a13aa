//! The samples of the grammar reference (§15) and its table of ambiguities (§11).
#![allow(clippy::unwrap_used, missing_docs)]

mod common;
use common::*;

fn m(sample: &str) -> Vec<String> {
    methods(&text(sample))
}

#[test]
fn writes_of_a_slot_are_no_sends() {
    let source = text("Actor subclass: Lamp⏎··on => self.lit := true");
    assert_eq!(methods(&source), ["on"]);
    assert_eq!(file_sends(&source), [""; 0]);
    assert_eq!(slots("on => self.lit := true"), ["lit="]);
    assert_eq!(codes(&source), [""; 0]);
}

#[test]
fn unary_keyword_and_binary_methods() {
    assert_eq!(m("Object subclass: Q⏎··a => 1⏎··b: x => x⏎··+ y => y"), ["a", "b:", "+"]);
}

#[test]
fn keyword_message_over_lines() {
    let source = text("Object subclass: Q⏎··a => self m: 1⏎····n: 2⏎··b => 3");
    assert_eq!(methods(&source), ["a", "b"]);
    assert_eq!(file_sends(&source), ["m:n: 2 self"]);
}

#[test]
fn operator_first_on_a_line() {
    let source = text("Object subclass: Q⏎··a => 1⏎····+ 2⏎··b => 3");
    assert_eq!(methods(&source), ["a", "b"]);
    let entry = &entries(&source)[0];
    assert_eq!((entry.sends[0].selector.as_str(), entry.sends[0].line), ("+", 1));
}

#[test]
fn methods_named_class() {
    assert_eq!(m("Object subclass: Q⏎··class => 1⏎··class class => 2"), ["class", "class class"]);
}

#[test]
fn span_holds_docs_but_no_comment_below() {
    let source = text("Object subclass: Q⏎··a => 1⏎····// end⏎⏎··/// d⏎··b => 2");
    assert_eq!(slice(&source, "Q", "a", common::side(false)), Ok("  a => 1\n".into()));
    assert_eq!(slice(&source, "Q", "b", common::side(false)), Ok("  /// d\n  b => 2".into()));
}

#[test]
fn cascade_goes_to_the_receiver_of_the_last_send() {
    assert_eq!(sends("m => a b; c: 1; + 2"), ["b 1 other", "c: 1 other", "+ 1 other"]);
    assert_eq!(
        body("a b; c: 1; + 2"),
        "(Cascade (UnarySend (Ident a) b) ; (Message c: (Integer 1)) ; (Message + (Integer 2)))"
    );
}

#[test]
fn precedence_from_tight_to_loose() {
    assert_eq!(grouped("2 ** 3 ** 2 - 1 == 7 -> x"), "((((2 ** (3 ** 2)) - 1) == 7) -> x)");
}

#[test]
fn holes_and_doubled_braces() {
    let method = "m => \"v={self v} {{x}}\"";
    assert_eq!(sends(method), ["v 1 self"]);
    assert_eq!(method_codes(method), ["doubled_brace"]);
}

#[test]
fn erlang_calls_are_two_rows() {
    assert_eq!(
        sends("m => (Erlang math) pow: 2 with: 3"),
        ["pow:with: 1 erlang_ffi math", "math 1 erlang_ffi math"]
    );
}

#[test]
fn match_with_type_pattern_and_guard() {
    let method = "m => x match: [#a -> self b; n :: Integer when: [n > 1] -> n; _ -> nil]";
    assert_eq!(sends(method), ["b 1 self", "> 1 other"]);
    assert_eq!(references(method), ["Integer"]);
    assert_eq!(body(&method[5..]).matches("(MatchArm").count(), 3);
    assert_eq!(method_codes(method), [""; 0]);
}

#[test]
fn destructuring_an_array() {
    let method = "m => #[p, ...q] := self r";
    assert_eq!(sends(method), ["r 1 self"]);
    assert_eq!(
        body(&method[5..]),
        "(Destructure (PatArray #[ (PatBind p) , (PatRest ... q) ]) := (UnarySend (Ident self) r))"
    );
}

#[test]
fn extension_with_types() {
    let source = "Tap >> open: n :: Integer -> Tap => self";
    let entry = &entries(source)[0];
    assert_eq!((entry.class.as_str(), entry.selector.as_str()), ("Tap", "open:"));
    let names: Vec<_> = entry.references.iter().map(|r| r.class.as_str()).collect();
    assert_eq!(names, ["Integer", "Tap"]);
}

#[test]
fn uses_clause_and_a_method_named_uses() {
    let source = text("Value subclass: Box⏎··uses: Sized excluding: #(#big)⏎··uses: depth => 1");
    assert_eq!(methods(&source), ["uses:"]);
    assert_eq!(codes(&source), [""; 0]);
    let parse = beamtalk_lang::parser::parse(source.as_bytes());
    let class = parse.tree.root().as_file().unwrap().classes().next().unwrap();
    let uses: Vec<_> = class.uses().collect();
    assert_eq!(uses.len(), 1);
    assert_eq!(uses[0].protocol().unwrap().name().unwrap().text, "Sized");
    assert_eq!(uses[0].excluding().map(|s| s.text.into_owned()).collect::<Vec<_>>(), ["big"]);
}

#[test]
fn required_and_provided() {
    let source = text(
        "Protocol define: Sized⏎··size -> Integer⏎··big -> Boolean => self size > 9⏎··< o :: Self -> Boolean",
    );
    let parse = beamtalk_lang::parser::parse(source.as_bytes());
    let protocol = parse.tree.root().as_file().unwrap().protocols().next().unwrap();
    let required: Vec<_> = protocol.requirements().map(|r| r.selector_text().into_owned()).collect();
    let provided: Vec<_> = protocol.provisions().map(|r| r.selector_text().into_owned()).collect();
    assert_eq!((required, provided), (vec!["size".into(), "<".into()], vec!["big".to_string()]));
    assert_eq!(codes(&source), [""; 0]);
}

// Ambiguities.

#[test]
fn minus_that_touches_a_digit_begins_a_literal() {
    assert_eq!(grouped("x -1"), "x ; -1");
    assert_eq!(grouped("x\n- 1"), "(x - 1)");
    assert_eq!(grouped("x\n-1"), "x ; -1");
    assert_eq!(method_codes("m => x -1"), ["blank_around_minus"]);
    let source = text("Object subclass: Q⏎··a => self x -1⏎··b => 2");
    assert_eq!(methods(&source), ["a", "b"]);
    assert_eq!(method_codes("m => [x -1]"), ["blank_around_minus"]);
}

#[test]
fn dots() {
    assert_eq!(body("a.b"), "(SlotAccess (Ident a) . b)");
    assert_eq!(body("a. b"), "(Ident a) (Ident b)");
    assert_eq!(body("a.\n b"), "(Ident a) (Ident b)");
    assert_eq!(body("a b.c"), "(UnarySend (Ident a) b) (Ident c)");
    assert_eq!(body("(a).b"), "(Paren ( (Ident a) )) (Ident b)");
    assert_eq!(body("3.b"), "(Integer 3) (Ident b)");
}

#[test]
fn words_on_a_new_line() {
    assert_eq!(grouped("a\nb"), "a ; b");
    assert_eq!(grouped("a\nb: 1"), "(a b: 1)");
    assert_eq!(grouped("a foo 2"), "(a foo) ; 2");
}

#[test]
fn arrow_without_body_is_an_association() {
    let source = text("Object subclass: Q⏎··a => 1⏎··foo -> Bar⏎··b => 2");
    assert_eq!(methods(&source), ["a", "b"]);
    assert_eq!(file_sends(&source), ["-> 3 other"]);
}

#[test]
fn class_behind_a_type() {
    assert_eq!(references("m -> Valve class => 1"), ["Valve"]);
    let source = text("Value subclass: Q⏎··field: a :: Valve⏎··class b => 1");
    assert_eq!(methods(&source), ["class b"]);
}

#[test]
fn extension_or_lookup() {
    assert_eq!(methods("Name >> sel => 1"), ["sel"]);
    assert_eq!(grouped("Name >> #sel"), "(Name >> #sel)");
}

#[test]
fn class_or_send() {
    assert_eq!(body("x := A subclass: B").matches("ClassDef").count(), 0);
    let parse = beamtalk_lang::parser::parse(b"A subclass: B");
    assert_eq!(parse.tree.root().as_file().unwrap().classes().count(), 1);
}

#[test]
fn alias_or_send() {
    let parse = beamtalk_lang::parser::parse(b"type Weight = Integer");
    assert_eq!(parse.tree.root().as_file().unwrap().aliases().count(), 1);
    assert_eq!(grouped("type Weight"), "(type Weight)");
}

#[test]
fn collections() {
    assert_eq!(body("#(a b)"), "(List #( (UnarySend (Ident a) b) ))");
    assert_eq!(method_codes("m => #{a => 1}"), ["bare_word_key"]);
    assert_eq!(method_codes("m => #{#a => 1, (a) => 1, Name => 2, \"s\" => 3}"), [""; 0]);
    assert_eq!(method_codes("m => {a, b} := c"), [""; 0]);
    assert_eq!(method_codes("m => {a, b}"), ["no_tuple_literal"]);
    assert_eq!(method_codes("m => #(1 2)"), ["unexpected_token"]);
}

#[test]
fn match_only_as_first_keyword() {
    assert_eq!(selectors("m => x foo: 1 match: [y]"), ["foo:match:"]);
    assert_eq!(selectors("m => x match: blk"), ["match:"]);
}

#[test]
fn arrows_in_arms() {
    assert_eq!(
        body("x match: [1 -> #k -> v]"),
        "(Match (Ident x) match: [ (MatchArm (PatLiteral 1) -> (BinarySend (Symbol #k) -> (Ident v))) ])"
    );
    assert_eq!(body("x match: [1 -> a\n-1 -> b]").matches("(MatchArm").count(), 2);
}

#[test]
fn typed_assignment_and_cascade_over_lines() {
    assert_eq!(body("x :: A := 1"), "(Assign (Ident x) :: (TypeName A) := (Integer 1))");
    assert_eq!(body("a b\n  ; c"), "(Cascade (UnarySend (Ident a) b) ; (Message c))");
}

#[test]
fn pipe_ends_block_parameters() {
    assert_eq!(body("[:x :: A | B]"), "(Block [ (BlockParam : x :: (TypeName A)) | (ClassRef B) ])");
}

#[test]
fn trailing_semicolon_takes_a_unary_methods_name() {
    let source = text("Object subclass: Q⏎··a => x y;⏎··next => 1⏎··b: z => 2");
    assert_eq!(methods(&source), ["a", "b:"]);
    let source = text("Object subclass: Q⏎··a => x y;⏎··next: z => 1⏎··b => 2");
    assert_eq!(methods(&source), ["a", "next:", "b"]);
}

#[test]
fn statement_words_at_member_column_stay_statements() {
    let source = text("Object subclass: Q⏎··a =>⏎··x foo⏎··y bar⏎··b => 2");
    assert_eq!(methods(&source), ["a", "b"]);
    assert_eq!(entries(&source)[0].sends.len(), 2);
    let source = text("Object subclass: Q⏎··a => 1⏎x foo");
    assert_eq!(entries(&source)[0].sends.len(), 0);
}

#[test]
fn clause_words_of_the_header_come_first() {
    let source = text("Object subclass: Q⏎··native: m => 1⏎··a => 2");
    assert_eq!(methods(&source), ["a"]);
    assert_eq!(codes(&source), ["unexpected_token"]);
    let source = text("Object subclass: Q⏎··a => 2⏎··native: m => 1⏎··handleScope: s => 1");
    assert_eq!(methods(&source), ["a", "native:", "handleScope:"]);
}

#[test]
fn uses_does_not_run_into_the_next_method() {
    let source = text("Value subclass: Parcel⏎··uses: Weighable⏎··heavierThan: other => 1");
    assert_eq!(methods(&source), ["heavierThan:"]);
    assert_eq!(codes(&source), [""; 0]);
}

#[test]
fn headers_may_wrap_at_member_column_but_not_in_protocols() {
    let source = text("Object subclass: Q⏎··blend: first⏎··with: second => first mix: second");
    assert_eq!(methods(&source), ["blend:with:"]);
    let source = text("Protocol define: Q⏎··blend: first⏎··with: second => first mix: second");
    assert_eq!(methods(&source), ["with:"]);
    let source = text("Protocol define: Q⏎··blend: first⏎····with: second => first mix: second");
    assert_eq!(methods(&source), ["blend:with:"]);
}
