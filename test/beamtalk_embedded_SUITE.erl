%% Bodies in the embedded image: what the evaluator must get right, and how text becomes running classes.
-module(beamtalk_embedded_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, init_per_testcase/2, end_per_testcase/2, hold/0]).
-export([
    return_in_a_block_leaves_its_method_and_no_other/1,
    return_of_a_method_that_is_over_is_an_error/1,
    handler_does_not_catch_a_return/1,
    ensure_block_runs_on_every_way_out/1,
    blocks_share_the_variables_of_their_method/1,
    recursion_has_fresh_variables/1,
    escaped_block_keeps_its_variables/1,
    block_in_another_process_sees_what_it_saw/1,
    frames_go_with_their_calls/1,
    self_sends_are_bound_late_and_super_statically/1,
    cascade_sends_to_the_receiver_of_its_first_message/1,
    literals_print_as_they_are_written/1,
    patterns_match_in_order/1,
    foreign_calls_reach_functions/1,
    actor_state_survives_blocks_and_self_sends/1,
    failing_actor_method_leaves_the_state/1,
    values_are_never_changed/1,
    class_variables_belong_to_the_class/1,
    wrong_text_changes_nothing/1,
    names_of_one_text_are_bounded/1,
    code_in_use_refuses_the_edit/1,
    prompt_forgets_frames_of_blocks_that_are_gone/1,
    actors_end_with_their_class/1,
    exceptions_are_objects_of_classes/1,
    mutilated_text_is_read_or_refused/1,
    long_chains_are_no_deep_recursion/1,
    classes_and_protocols_share_names/1,
    evaluation_without_an_image_is_an_error/1
]).

all() ->
    [Case || {Case, 1} <- ?MODULE:module_info(exports), Case =/= module_info, Case =/= all].

init_per_testcase(_Case, Config) ->
    {ok, _} = beamtalk_embedded:start(#{project => proplists:get_value(priv_dir, Config)}),
    Config.

end_per_testcase(_Case, _Config) ->
    ok = beamtalk_embedded:stop().

return_in_a_block_leaves_its_method_and_no_other(_Config) ->
    define("Value subclass: R\n"
        "  first: list => list do: [:e | e > 1 ifTrue: [^ e]]. nil\n"
        "  outer: list =>\n    found := self first: list\n    #(found, #after)\n"
        "  arm: x => x match: [1 -> ^ #one; _ -> nil]. #other\n"),
    ?assertEqual(2, value("R new first: #(1, 2, 3)")),
    ?assertEqual([3, 'after'], value("R new outer: #(1, 3)")),
    ?assertEqual([nil, 'after'], value("R new outer: #(1)")),
    ?assertEqual([one, other], value("#(R new arm: 1, R new arm: 2)")).

return_of_a_method_that_is_over_is_an_error(_Config) ->
    define("Value subclass: R\n  make => [^ 1]\n"),
    ?assertEqual(dead_return, kind("R new make value")).

handler_does_not_catch_a_return(_Config) ->
    define("Value subclass: R\n  go => [[^ 1] on: Exception do: [:e | 2]] value. 3\n"),
    ?assertEqual(1, value("R new go")).

ensure_block_runs_on_every_way_out(_Config) ->
    define("Actor subclass: R\n  state: log = #()\n  log => self.log\n"
        "  note: x => self.log := self.log add: x\n"
        "  back => [^ 1] ensure: [self note: #back]\n"
        "  fail => [[nil boom] ensure: [self note: #fail]] on: Error do: [:e | e kind]\n"
        "  plain => [2] ensure: [self note: #plain]\n"),
    ?assertEqual([1, does_not_understand, 2], value("r := R spawn. a := #(r back, r fail, r plain). a")),
    ?assertEqual([back, fail, plain], value("r := R spawn. r back. r fail. r plain. r log")).

blocks_share_the_variables_of_their_method(_Config) ->
    define("Value subclass: R\n"
        "  sum: list =>\n    total := 0\n    list do: [:e | total := total + e]\n    total\n"
        "  branches: b =>\n    b ifTrue: [x := 1] ifFalse: [x := 2]\n    x\n"
        "  loop =>\n    n := 0\n    [n < 5] whileTrue: [n := n + 1]\n    n\n"),
    ?assertEqual([6, 1, 2, 5],
        value("#(R new sum: #(1, 2, 3), R new branches: true, R new branches: false, R new loop)")).

recursion_has_fresh_variables(_Config) ->
    define("Value subclass: R\n"
        "  fact: n =>\n    m := n\n    n =:= 0 ifTrue: [^ 1]\n    below := self fact: n - 1\n    m * below\n"
        "  block =>\n    f := nil\n    f := [:n | m := n. n =:= 0 ifTrue: [1] ifFalse: [r := f value: n - 1. m * r]]\n"
        "    f value: 5\n"),
    ?assertEqual([120, 120], value("#((R new fact: 5), R new block)")).

escaped_block_keeps_its_variables(_Config) ->
    define("Value subclass: R\n  counter =>\n    n := 0\n    [n := n + 1]\n"),
    ?assertEqual([1, 2, 1], value("c := R new counter. d := R new counter. #(c value, c value, d value)")).

block_in_another_process_sees_what_it_saw(_Config) ->
    define("Actor subclass: Runner\n  run: block => block value\n"),
    ?assertEqual([7, 3], value("x := 3. r := Runner spawn. #(r run: [x := x + 4. x], x)")).

%% A leak would show in any process that lives long.
frames_go_with_their_calls(_Config) ->
    define("Actor subclass: R\n  state: kept = nil\n  make => self.kept := [1]\n"
        "  work => #(1, 2, 3) inject: 0 into: [:s :e | s + e]\n  boom => [nil boom] on: Error do: [:e | e kind]\n"
        "  adder => [:x | x]\n  frames => Erlang beamtalk_embedded_eval frames\n"),
    R = beamtalk_embedded:send(beamtalk_embedded:class('R'), spawn),
    Send = fun(Selector) -> beamtalk_embedded:send(R, Selector) end,
    First = Send(frames),
    [Send(Selector) || _ <- lists:seq(1, 50), Selector <- [work, boom, adder, make]],
    ?assert(Send(frames) =< First + 2),
    _ = value("R spawn work"),
    ?assertEqual(0, beamtalk_embedded_eval:frames()).

self_sends_are_bound_late_and_super_statically(_Config) ->
    define("Value subclass: A\n  name => \"a\"\n  show => self name\n  class make => self new show\n"),
    define("A subclass: B\n  name => \"b\" ++ super name\n"),
    define("B subclass: C\n  name => \"c\" ++ super name\n"),
    ?assertEqual([<<"a">>, <<"cba">>, <<"cba">>], value("#(A new show, C new show, C make)")),
    define("B subclass: C\n  name => \"d\"\n"),
    ?assertEqual(<<"d">>, value("C new show")).

cascade_sends_to_the_receiver_of_its_first_message(_Config) ->
    define("Actor subclass: Log\n  state: all = #()\n  add: x => self.all := self.all add: x\n  all => self.all\n"),
    ?assertEqual([1, 2, 3], value("l := Log spawn. l add: 1; add: 2; add: 1 + 2; all")).

literals_print_as_they_are_written(_Config) ->
    [?assertEqual(list_to_binary(Text), printed(Text)) || Text <- [
        "42", "-7", "1.5", "\"say \"\"hi\"\"\"", "#name", "#at:put:", "#+", "#'two words'", "nil", "true",
        "#(1, \"a\", #b)", "#[1, 2]", "#{#a => 1, #b => #(2)}", "#()"
    ]],
    ?assertEqual(<<"\"1 and sym {x}\"">>, printed("\"{0 + 1} and {#sym} \\{x\\}\"")),
    ?assertEqual([255, $a, 10], value("#(16rFF, $a, $\\n)")),
    ?assertEqual([1, 2, 3], value("#(1 | #(2, 3))")).

patterns_match_in_order(_Config) ->
    define("Value subclass: P\n  field: x = 0\n  field: y = 0\n"),
    define("Value subclass: M\n  of: v => v match: [\n    0 -> #zero\n    n :: Integer when: [n > 10] -> #big\n"
        "    n :: Number -> n\n    nil -> #none\n    #[a, ...rest] -> rest\n    P x: 1 y: b -> b\n"
        "    #{#k => w} -> w\n    _ -> #other]\n"),
    ?assertEqual([zero, big, 5, none, [2, 3], 7, 8, other],
        value("m := M new. #(m of: 0, m of: 11, m of: 5, m of: nil, m of: #[1, 2, 3], m of: (P x: 1 y: 7), "
            "m of: #{#k => 8}, m of: \"text\")")),
    ?assertEqual(match_error, kind("3 match: [4 -> 5]")),
    ?assertEqual([1, [2]], value("#[a, ...b] := #[1, 2]. #(a, b)")).

foreign_calls_reach_functions(_Config) ->
    ?assertEqual([3, 2, 1], value("Erlang lists reverse: #(1, 2, 3)")),
    ?assertEqual([4, 5], value("m := Erlang lists. m seq: 4 to: 5")),
    ?assertEqual(erlang_error, kind("Erlang lists reverse: 3")),
    ?assertEqual(node(), value("Erlang erlang node")).

actor_state_survives_blocks_and_self_sends(_Config) ->
    define("Actor subclass: R\n  state: n = 0\n  inc => self.n := self.n + 1\n"
        "  many: k => k timesRepeat: [self inc. self.n := self.n + 10]. self.n\n  n => self.n\n"),
    ?assertEqual([33, 33], value("r := R spawn. #(r many: 3, r n)")),
    ?assertEqual(does_not_understand, kind("R spawn missing")).

failing_actor_method_leaves_the_state(_Config) ->
    define("Actor subclass: R\n  state: n = 0\n  bad =>\n    self.n := 5\n    nil boom\n  n => self.n\n"),
    ?assertEqual([does_not_understand, 0], value("r := R spawn. #([r bad] on: Error do: [:e | e kind], r n)")).

values_are_never_changed(_Config) ->
    define("Value subclass: P\n  field: x = 0\n  bad => self.x := 1\n"),
    ?assertEqual([3, 0], value("p := P new. q := p withX: 3. #(q x, p x)")),
    ?assertEqual(immutable_value, kind("P new bad")),
    ?assertEqual(no_such_slot, kind("P new: #{#z => 1}")).

class_variables_belong_to_the_class(_Config) ->
    define("Value subclass: C\n  classState: made = 0\n  class next => self.made := self.made + 1\n"),
    define("C subclass: D\n"),
    ?assertEqual([1, 2], value("#(C next, C next)")),
    define("Value subclass: C\n  classState: made = 0\n  class next => self.made := self.made + 10\n"),
    ?assertEqual(12, value("C next")).

%% D1 of a single class
wrong_text_changes_nothing(_Config) ->
    define("Value subclass: R\n  a => 1\n"),
    Before = {beamtalk_embedded_table:class('R'), beamtalk_xref:defined_selectors('R', false)},
    [?assertEqual(Kind, kind(fun() -> define(Text) end)) || {Kind, Text} <- [
        {compile_error, "Value subclass: R\n  a => (1\n"},
        {class_not_found, "Missing subclass: R\n  a => 2\n"},
        {compile_error, "Value subclass: R\n  a => 2\n  b => 1\n  a => 3\n"},
        {compile_error, "R >> a => 2\n\nR >> a => 3\n"},
        {compile_error, "Value subclass: R\n  state: x = 1\n  a => 2\n"},
        {compile_error, "Pid subclass: R\n  state: x = 1\n  a => 2\n"},
        {compile_error, "Behaviour subclass: R\n  field: x = 1\n  a => 2\n"},
        {compile_error, "Value subclass: R\n  a => 2\n  == other => true\n"},
        {compile_error, "Value subclass: R\n  a => @intrinsic foo\n"},
        {runtime_error, "Value subclass: Integer\n  a => 2\n"}
    ]],
    ?assertEqual(Before, {beamtalk_embedded_table:class('R'), beamtalk_xref:defined_selectors('R', false)}),
    ?assertEqual(1, value("R new a")).

names_of_one_text_are_bounded(_Config) ->
    Names = [["  never_seen_", integer_to_list(N), " => 1\n"] || N <- lists:seq(1, 10_100)],
    Count = erlang:system_info(atom_count),
    ?assertEqual(compile_error, kind(fun() -> define(["Value subclass: R\n", Names]) end)),
    ?assert(erlang:system_info(atom_count) - Count < 10_050),
    ?assertMatch({ok, _}, beamtalk_lang:parse(<<"Value subclass: R\n  a_name_that_nobody_made => 1\n">>)),
    ?assertError(badarg, binary_to_existing_atom(<<"a_name_that_nobody_", "made">>)).

%% D4 of a single class: nobody is killed
code_in_use_refuses_the_edit(_Config) ->
    define("Actor subclass: R\n  wait: pid =>\n    Erlang erlang send: pid with: #started\n"
        "    Erlang beamtalk_embedded_SUITE hold\n    1\n"),
    R = beamtalk_embedded:send(beamtalk_embedded:class('R'), spawn),
    {beamtalk_object, _, _, Pid} = R,
    Me = self(),
    Caller = spawn_link(fun() -> Me ! {answer, beamtalk_embedded:send(R, 'wait:', [Me])} end),
    receive started -> ok end,
    define("Actor subclass: R\n  wait: pid => 2\n"),
    ?assertEqual(code_in_use, kind(fun() -> define("Actor subclass: R\n  wait: pid => 3\n") end)),
    Pid ! go_on,
    receive {answer, Answer} -> ?assertEqual(1, Answer) end,
    ?assert(is_pid(Caller)),
    ?assertEqual(2, beamtalk_embedded:send(R, 'wait:', [Me])),
    define("Actor subclass: R\n  wait: pid => 3\n"),
    ?assertEqual(3, beamtalk_embedded:send(R, 'wait:', [Me])).

%% A prompt with one block among its variables must not keep a frame for every line.
prompt_forgets_frames_of_blocks_that_are_gone(_Config) ->
    Typed = ["b := [1]", "n := 0", "inc := [n := n + 1]", "inc value", "inc value", "b value", "n"],
    {Values, Session} = lists:mapfoldl(
        fun(Line, Before) ->
            {{ok, Value}, After} = beamtalk_embedded_session:eval(Line, Before),
            {Value, After}
        end,
        beamtalk_embedded_session:new(),
        Typed ++ lists:duplicate(50, "b value")
    ),
    ?assertEqual([1, 1], [lists:nth(N, Values) || N <- [6, length(Values)]]),
    ?assert(beamtalk_embedded_eval:frames() < 6),
    {{ok, nil}, _} = beamtalk_embedded_session:eval("b := nil. inc := nil", Session),
    ?assertEqual(0, beamtalk_embedded_eval:frames()).

actors_end_with_their_class(_Config) ->
    define("Actor subclass: R\n  a => 1\n"),
    {beamtalk_object, _, _, Pid} = value("R spawn"),
    Monitor = monitor(process, Pid),
    value("R removeFromSystem"),
    receive {'DOWN', Monitor, process, Pid, Reason} -> ?assertEqual(normal, Reason) end.

exceptions_are_objects_of_classes(_Config) ->
    define("Error subclass: Late\n  field: days = 0\n  kind => #late\n"),
    ?assertEqual([<<"too late">>, 3], value("[(Late new withDays: 3) signal: \"too late\"] on: Late do: [:e | "
        "#(e message, e days)]")),
    ?assertEqual(outer, value("[[1 foo] on: Late do: [#inner]] on: Exception do: [#outer]")),
    ?assertEqual(again, value("[[1 foo] on: Error do: [:e | e signal]] on: Error do: [#again]")),
    ?assertEqual(division_by_zero, kind("1 / 0")),
    ?assertEqual(type_error, kind("1 + \"a\"")),
    ?assertEqual(arity_mismatch, kind("[:x | x] value")).

%% Whatever is cut out of a text: it is read, or refused with a place; the reader and the checks agree which.
mutilated_text_is_read_or_refused(_Config) ->
    Files = filelib:wildcard(filename:join([code:priv_dir(beamtalk_image), "bt", "*.bt"])),
    ?assert(length(Files) > 30),
    Outcomes = [
        begin
            <<Before:At/binary, _:Length/binary, After/binary>> = Text,
            Cut = <<Before/binary, After/binary>>,
            Mistakes = [D || {ok, Found} <- [beamtalk_lang:parse(Cut)], #{severity := error} = D <- Found],
            case beamtalk_reading:items(Cut) of
                {ok, Items} when is_list(Items) -> read;
                {error, [#{line := Line, message := <<_, _/binary>>} | _]} when Line >= 1, Mistakes =/= [] -> refused
            end
        end
        || File <- Files, {ok, Text} <- [file:read_file(File)], {At, Length} <- cuts(byte_size(Text))
    ],
    ?assertEqual([read, refused], lists:usort(Outcomes)).

cuts(Size) ->
    [{At, Length} || N <- lists:seq(1, 12), At <- [(N * 7919) rem Size], Length <- [min(N, Size - At)]].

long_chains_are_no_deep_recursion(_Config) ->
    Sends = lists:duplicate(20_000, " yourself"),
    ?assertEqual(7, value(["7", Sends])),
    ?assertEqual(20_001, value(["1", lists:duplicate(20_000, " + 1")])),
    ?assertEqual(7, value(["x := ", lists:duplicate(5_000, "y := "), "7"])).

classes_and_protocols_share_names(_Config) ->
    define("Protocol define: P\n  a -> Integer\n"),
    ?assertEqual(runtime_error, kind(fun() -> define("Value subclass: P\n  a => 1\n") end)),
    ?assertEqual(runtime_error, kind(fun() -> define("Value subclass: Comparable\n  a => 1\n") end)),
    ?assertEqual(runtime_error, kind(fun() -> define("Protocol define: Comparable\n  a -> Integer\n") end)),
    ?assertEqual(runtime_error, kind(fun() -> define("Protocol define: Integer\n  a -> Integer\n") end)),
    ?assertEqual(runtime_error, kind("P removeFromSystem")),
    ?assertEqual([a], value("Protocol requiredMethods: #P")).

evaluation_without_an_image_is_an_error(_Config) ->
    ok = beamtalk_embedded:stop(),
    ?assertEqual(no_workspace, kind("1 + 1")),
    {ok, _} = beamtalk_embedded:start(#{project => "."}),
    ?assertEqual(2, value("1 + 1")).

%% Called from a body.
hold() ->
    receive go_on -> ok end.

define(Text) ->
    beamtalk_embedded_loader:text(iolist_to_binary(Text), dynamic).

value(Text) ->
    {ok, Value} = beamtalk_image:eval(Text),
    Value.

printed(Text) ->
    beamtalk_embedded_session:printed(value(Text)).

kind(Fun) when is_function(Fun) ->
    try Fun() of
        Answer -> {no_error, Answer}
    catch
        error:#{error := {beamtalk_error, Kind, _, _, _, _, _}} -> Kind
    end;
kind(Text) ->
    {error, {beamtalk_error, Kind, _, _, _, _, _}} = beamtalk_image:eval(Text),
    Kind.
