//! Statements, expressions, patterns and types: grammar reference §3 to §5.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;
use common::*;

const CLEAN: [&str; 0] = [];

#[test]
fn statements_are_separated_by_dot_bang_or_line() {
    assert_eq!(body("a. b"), "(Ident a) (Ident b)");
    assert_eq!(body("a\n  b"), "(Ident a) (Ident b)");
    assert_eq!(body("a b! c"), "(Cast (UnarySend (Ident a) b) !) (Ident c)");
    assert_eq!(method_codes("m => a b! c"), CLEAN);
    assert_eq!(method_codes("m => a := 1 !"), ["cast_of_non_send"]);
    assert_eq!(method_codes("m => a b; c !"), ["cast_of_non_send"]);
    assert_eq!(method_codes("m => 3 !"), ["cast_of_non_send"]);
    assert_eq!(method_codes("m => a foo 2"), ["unexpected_token"]);
}

#[test]
fn returns_stand_wherever_a_statement_does() {
    assert_eq!(body("^ a := b"), "(Return ^ (Assign (Ident a) := (Ident b)))");
    assert_eq!(method_codes("m => x ifTrue: [^ 1]\n  (^ 2)"), CLEAN);
    assert_eq!(method_codes("m => x match: [1 -> ^ 2; _ -> a := 3; _ -> self.b := 4]"), CLEAN);
    assert_eq!(method_codes("m => a := ^ 1"), ["expected_expression"]);
    assert_eq!(method_codes("m => a foo: ^ 1"), ["expected_expression"]);
}

#[test]
fn assignments_chain_and_check_their_targets() {
    assert_eq!(body("a := b := 1"), "(Assign (Ident a) := (Assign (Ident b) := (Integer 1)))");
    assert_eq!(
        body("self.a.b := 1"),
        "(Assign (SlotAccess (SlotAccess (Ident self) . a) . b) := (Integer 1))"
    );
    assert_eq!(body("n :: Integer := 0"), "(Assign (Ident n) :: (TypeName Integer) := (Integer 0))");
    assert_eq!(method_codes("m => n :: A | B := 0"), CLEAN);
    assert_eq!(method_codes("m => a b := 1"), ["bad_assignment_target"]);
    assert_eq!(method_codes("m => (a) := 1"), ["bad_assignment_target"]);
    assert_eq!(method_codes("m => self.x :: Integer := 1"), ["unexpected_token"]);
}

#[test]
fn destructuring_targets() {
    assert_eq!(
        body("{a, {_, 1}} := c"),
        "(Destructure (PatTuple { (PatBind a) , (PatTuple { (PatWildcard _) , (PatLiteral 1) }) }) := (Ident c))"
    );
    assert_eq!(
        body("#(a, _) := c"),
        "(Destructure (PatList #( (PatBind a) , (PatWildcard _) )) := (Ident c))"
    );
    assert_eq!(
        body("#{#k => v, \"s\" => _} := c"),
        "(Destructure (PatMap #{ (PatMapEntry (PatLiteral #k) => (PatBind v)) , \
         (PatMapEntry (PatLiteral \"s\") => (PatWildcard _)) }) := (Ident c))"
    );
    assert_eq!(method_codes("m => #[a b] := c"), ["bad_pattern"]);
    assert_eq!(method_codes("m => #{1 => b} := c"), ["bad_pattern"]);
    assert_eq!(method_codes("m => #{#a => 2} := c"), ["bad_pattern"]);
}

#[test]
fn unary_selectors_stay_on_their_line() {
    assert_eq!(body("a\n    b"), "(Ident a) (Ident b)");
    assert_eq!(body("a foo:\n    b"), "(KeywordSend (Ident a) foo: (Ident b))");
    assert_eq!(body("a +\n    b"), "(BinarySend (Ident a) + (Ident b))");
    assert_eq!(body("a; \n    b"), "(Cascade (Ident a) ; (Message b))");
}

#[test]
fn a_line_may_begin_with_any_of_these_and_is_a_new_statement() {
    for start in
        ["x", "X", "1", "-1", "\"s\"", "#s", "$c", "(1)", "[1]", "#(1)", "#[1]", "#{}", "^ 1", "@primitive"]
    {
        let parse = beamtalk_lang::parser::parse_method(b"").tree.node_count();
        assert!(parse > 0);
        let shape = body(&format!("a\n    {start}"));
        assert!(shape.starts_with("(Ident a) "), "{start}: {shape}");
    }
}

#[test]
fn keyword_columns_in_classes() {
    // At member column no keyword continues; deeper ones do; later parts must not stand left of the first.
    let source =
        text("Object subclass: Q⏎··a =>⏎····self tank⏎······pour: 1⏎······into: self.cup⏎····self report");
    assert_eq!(file_sends(&source), ["pour:into: 4 other", "tank 3 self", "report 6 self"]);
    let source = text("Object subclass: Q⏎··a => self⏎··foo: 1⏎··b => 2");
    assert_eq!(codes(&source), ["unexpected_keyword_line"]);
    assert_eq!(methods(&source), ["a", "b"]);
    let source = text("Object subclass: Q⏎··a =>⏎····self foo: [⏎··bar: 1⏎··]⏎··b => 2");
    assert_eq!(methods(&source), ["a", "b"]);
    // Inside brackets the column means nothing.
    let source = text("Object subclass: Q⏎··a => (self⏎··foo: 1)⏎··b => 2");
    assert_eq!(codes(&source), CLEAN);
}

#[test]
fn member_column_is_the_headers_own() {
    let source = text("Object subclass: Q⏎····a => self⏎····foo: x => 1⏎····b => self⏎······foo: 2");
    assert_eq!(methods(&source), ["a", "foo:", "b"]);
    assert_eq!(file_sends(&source), ["foo: 5 self"]);
}

#[test]
fn slot_defaults_begin_no_keyword_message_on_a_new_line() {
    let source = text("Object subclass: Q⏎··state: a = x⏎··foo: y => 1⏎··state: b = (1⏎····+ 2)⏎··b => 2");
    assert_eq!(methods(&source), ["foo:", "b"]);
    let source = text("Object subclass: Q⏎··state: a = x foo: 1⏎····bar: 2⏎··state: b = 3");
    assert_eq!(file_sends(&source), ["foo:bar: 2 other"]);
}

#[test]
fn precedence_levels() {
    assert_eq!(grouped("a + b * c"), "(a + (b * c))");
    assert_eq!(grouped("a - b - c"), "((a - b) - c)");
    assert_eq!(grouped("a ++ b < c"), "((a ++ b) < c)");
    assert_eq!(grouped("a < b =:= c"), "((a < b) =:= c)");
    assert_eq!(grouped("a >> b == c"), "(a >> (b == c))");
    assert_eq!(grouped("a -> b >> c"), "(a -> (b >> c))");
    assert_eq!(grouped("a foo + b bar: c baz % d"), "(((a foo) + b) bar: ((c baz) % d))");
    assert_eq!(grouped("a b: c d: e f"), "(a b: c d: (e f))");
}

#[test]
fn other_operators_are_no_infix_operators() {
    for op in ["&", "~=", "\\\\", "?", "=", ","] {
        assert_eq!(method_codes(&format!("m => a {op} b")), ["no_infix_operator"], "{op}");
    }
    assert_eq!(
        methods("Object subclass: Q\n  & x => 1\n  , y => 2\n  = z => 3\n  -> w => 4\n  >> v => 5"),
        ["&", ",", "=", "->", ">>"]
    );
}

#[test]
fn cascades() {
    assert_eq!(sends("m => a + b; c"), ["+ 1 other", "c 1 other"]);
    assert_eq!(sends("m => self b c; d"), ["c 1 other", "b 1 self", "d 1 other"]);
    assert_eq!(sends("m => self; c"), ["c 1 self"]);
    assert_eq!(sends("m => self a; b; c: self d"), ["a 1 self", "b 1 self", "c: 1 self", "d 1 self"]);
    assert_eq!(method_codes("m => x f; + 3 * 4"), ["unexpected_token"]);
    assert_eq!(method_codes("m => x f;"), ["unexpected_token"]);
    assert_eq!(
        sends("m => Erlang lists a: 1; b: 2"),
        ["a: 1 erlang_ffi lists", "lists 1 erlang_ffi lists", "b: 1 erlang_ffi lists"]
    );
}

#[test]
fn blocks() {
    assert_eq!(body("[]"), "(Block [ ])");
    assert_eq!(body("[:x | ]"), "(Block [ (BlockParam : x) | ])");
    assert_eq!(
        body("[:a :b | a. b]"),
        "(Block [ (BlockParam : a) (BlockParam : b) | (Ident a) . (Ident b) ])"
    );
    assert_eq!(method_codes("m => [:a:b | a]"), ["block_parameters"]);
    assert_eq!(method_codes("m => [:a]"), ["block_parameters"]);
    assert_eq!(method_codes("m => [| t | t]"), ["block_locals"]);
    assert_eq!(method_codes("m => [:x :: (A | B) | x]"), CLEAN);
    assert_eq!(method_codes("m => [1 2]"), ["unexpected_token"]);
    assert_eq!(method_codes("m => [1. 2\n3]"), CLEAN);
}

#[test]
fn literals() {
    assert_eq!(body("#(h | t)"), "(List #( (Ident h) | (Ident t) ))");
    assert_eq!(body("#(1, 2,)"), "(List #( (Integer 1) , (Integer 2) , ))");
    assert_eq!(body("#[1]"), "(Array #[ (Integer 1) ])");
    assert_eq!(body("#{#a => 1}"), "(Map #{ (MapPair (Symbol #a) => (Integer 1)) })");
    assert_eq!(method_codes("m => #(a := 1)"), ["unexpected_token"]);
    assert_eq!(method_codes("m => #(1,-2)"), ["no_infix_operator"]);
    assert_eq!(method_codes("m => #{#a => 1, 2, #b => 3}"), ["unexpected_token"]);
}

#[test]
fn interpolation_pieces() {
    assert_eq!(
        body("\"a{b c: 1}d\""),
        "(Interpolation \"a (Hole { (KeywordSend (Ident b) c: (Integer 1)) }) d\")"
    );
    assert_eq!(method_codes("m => \"{a; b}\""), ["unexpected_token"]);
    assert_eq!(method_codes("m => \"{a := b}\""), ["unexpected_token"]);
    assert_eq!(method_codes("m => \"{(a}\"").len(), 1);
    assert_eq!(sends("m => \"{(self a}\"\n  self b"), ["a 1 self", "b 2 self"]);
    let source = "m => \"a{b}{c}d\"";
    let parse = beamtalk_lang::parser::parse_method(source.as_bytes());
    let node = parse.tree.root().preorder().find_map(beamtalk_lang::ast::Interpolation::cast).unwrap();
    assert_eq!(node.pieces().len(), 4);
}

#[test]
fn directives() {
    assert_eq!(body("@primitive"), "(Primitive @primitive)");
    assert_eq!(body("@primitive \"x\""), "(Primitive @primitive \"x\")");
    assert_eq!(body("@primitive\n    self foo"), "(Primitive @primitive) (UnarySend (Ident self) foo)");
    assert_eq!(body("@intrinsic size"), "(Intrinsic @intrinsic size)");
    assert_eq!(method_codes("m => @intrinsic"), ["directive_name"]);
    assert_eq!(method_codes("m =>\n    @expect dnu\n    self foo"), CLEAN);
    assert_eq!(method_codes("m =>\n    @expect dnu \"why\"\n    self foo"), CLEAN);
    assert_eq!(method_codes("m =>\n    @expect nonsense\n    self foo"), ["directive_name"]);
}

#[test]
fn qualified_names() {
    assert_eq!(body("tools@Saw new"), "(UnarySend (ClassRef tools @ Saw) new)");
    assert_eq!(references("m => tools@Saw new"), ["Saw"]);
    assert_eq!(method_codes("m => @Saw new"), ["missing_package"]);
    assert_eq!(sends("m => p@Erlang lists"), ["lists 1 other"]);
}

#[test]
fn erlang_receivers() {
    assert_eq!(sends("m => Erlang lists"), ["lists 1 erlang_ffi lists"]);
    assert_eq!(
        sends("m => Erlang lists reverse: x"),
        ["reverse: 1 erlang_ffi lists", "lists 1 erlang_ffi lists"]
    );
    assert_eq!(sends("m => ((Erlang) lists) foo"), ["foo 1 erlang_ffi lists", "lists 1 erlang_ffi lists"]);
    assert_eq!(sends("m => Erlang class"), ["class 1 other"]);
    assert_eq!(sends("m => Erlang class foo"), ["foo 1 other", "class 1 other"]);
    assert_eq!(sends("m => Erlang foo: 1"), ["foo: 1 other"]);
    assert_eq!(
        sends("m => Erlang lists a b"),
        ["b 1 other", "a 1 erlang_ffi lists", "lists 1 erlang_ffi lists"]
    );
}

#[test]
fn patterns() {
    let ok = [
        "_",
        "nil",
        "n",
        "n :: Integer",
        "1",
        "-1",
        "- 1",
        "1.5",
        "\"s\"",
        "#s",
        "$c",
        "{}",
        "{a, {b, _}}",
        "#[]",
        "#[a, 1]",
        "#[a, ...b]",
        "#[...b]",
        "#{}",
        "#{#k => v}",
        "#{\"k\" => 1, #l => _,}",
        "Ok value: v",
        "Pair left: 1 right: _",
        "<<>>",
        "<<a>>",
        "<<len:8, rest/binary>>",
        "<<a:n/unsigned-big>>",
        "<<_:4>>",
        "Foo",
    ];
    for pattern in ok {
        assert_eq!(method_codes(&format!("m => x match: [{pattern} -> 1]")), CLEAN, "{pattern}");
        assert_eq!(
            method_codes(&format!("m => x match: [{pattern} when: [y] -> 1]")),
            if pattern == "Foo" { vec!["bad_pattern"] } else { vec![] },
            "{pattern}"
        );
    }
    for bad in ["true", "false", "nil :: C", "x :: C(T)", "Ok value: v :: C", "#(a)", "#{k => v}", "+"] {
        let codes = method_codes(&format!("m => x match: [{bad} -> 1]"));
        assert!(!codes.is_empty(), "{bad} must be refused");
    }
}

#[test]
fn match_bodies_and_what_follows() {
    assert_eq!(method_codes("m => x match: [1 -> a;\n 2 -> b;\n]"), CLEAN);
    assert_eq!(method_codes("m => x match: [1 -> a\n 2 -> b]"), CLEAN);
    assert_eq!(method_codes("m => x match: [1 -> a]; foo"), CLEAN);
    assert_eq!(method_codes("m => x match: [1 -> a] foo"), ["unexpected_token"]);
    assert_eq!(sends("m => (self a) match: [p -> self b: p]"), ["a 1 self", "b: 1 self"]);
    assert_eq!(method_codes("m => x match: [1 a; 2 -> b]"), ["unexpected_token"]);
}

#[test]
fn references_in_patterns() {
    assert_eq!(
        references("m => x match: [Ok value: v -> v; e :: Error -> e; _ -> Other]"),
        ["Ok", "Error", "Other"]
    );
}

#[test]
fn types() {
    assert_eq!(
        references(
            "m: a :: Map(K, List(V)) b: c :: Integer | nil -> Self | #on | Valve class | (A & B) | X \\ #y => 1"
        ),
        ["Map", "K", "List", "V", "Integer", "nil", "Valve", "A", "B", "X"]
    );
    assert_eq!(method_codes("m -> A & B & C => 1"), CLEAN);
    assert_eq!(method_codes("m -> A & B \\ C => 1"), ["bad_type"]);
    assert_eq!(method_codes("m -> A \\\\ C => 1"), ["bad_type"]);
    assert_eq!(references("m -> Self class => Self"), ["Self"]);
    assert_eq!(method_codes("m :: -> Integer => 1"), CLEAN);
    assert_eq!(methods("Object subclass: Q\n  m :: -> Integer => 1"), ["m"]);
}

#[test]
fn not_recorded_as_references() {
    assert_eq!(references("m => [:x :: A | n :: B := C]"), ["C"]);
    assert_eq!(references("m -> #sym => #Foo"), [""; 0]);
}

#[test]
fn old_parameter_types_have_a_hint() {
    for header in ["at: a : Integer", "at: a: Integer"] {
        let source = format!("Object subclass: Q\n  {header} => 1\n  b => 2");
        assert_eq!(codes(&source), ["old_parameter_type"], "{header}");
        assert_eq!(methods(&source), ["at:", "b"]);
    }
    assert_eq!(codes("Object subclass: Q\n  a -> => 1\n  b => 2"), ["bad_type"]);
}

#[test]
fn slot_accesses() {
    assert_eq!(slots("m => self.a.b := self.c"), ["a", "c"]);
    assert_eq!(slots("m => self.a := self.b := 1"), ["a=", "b="]);
    assert_eq!(slots("m => other.x. (self).y"), [""; 0]);
    assert_eq!(slots("m => self.a foo: [self.b]"), ["a", "b"]);
    assert_eq!(slots("m => x match: [1 -> self.a := 2]"), ["a="]);
    assert_eq!(sends("m => self.slot x"), ["x 1 other"]);
}

#[test]
fn lines_of_sends() {
    assert_eq!(sends("m =>\n  a\n    foo: 1\n    bar: 2"), ["foo:bar: 3 other"]);
    assert_eq!(sends("m =>\n  [\n    1\n  ] value"), ["value 2 other"]);
    assert_eq!(sends("m =>\n  a +\n    b"), ["+ 2 other"]);
    assert_eq!(sends("m =>\n  self a;\n    b;\n    c: 1"), ["a 2 self", "b 3 self", "c: 4 self"]);
}

#[test]
fn broken_receivers_leave_a_send_out_but_not_its_arguments() {
    assert_eq!(sends("m => 'bad' foo: self bar"), ["bar 1 self"]);
    assert_eq!(sends("m => 'bad' a b; c: self d"), ["d 1 self"]);
    assert_eq!(sends("m => self foo: 'bad'"), ["foo: 1 self"]);
}

#[test]
fn receivers() {
    assert_eq!(sends("m => super x"), ["x 1 super"]);
    assert_eq!(sends("m => (self) x"), ["x 1 other"]);
    assert_eq!(sends("m => self x: (self y)"), ["x: 1 self", "y 1 self"]);
}

#[test]
fn sends_everywhere() {
    assert_eq!(
        selectors(
            "m => #(a b, #{(c d) => e f}).\n \"{g h}\".\n x := y i.\n ^ (z j)\n  w k !\n \
             q match: [n :: N when: [n l] -> n m; <<a:s>> -> #[b2 n2]]"
        ),
        ["b", "d", "f", "h", "i", "j", "k", "l", "m", "n2"]
    );
}
