%% What classes, protocols and the navigation of the embedded image say of themselves, for classes that come
%% from text.
-module(beamtalk_embedded_reflection_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    conformance_is_structural/1,
    conformance_follows_every_change/1,
    uses_are_direct_and_inherited/1,
    users_follow_the_text_of_the_class/1,
    methods_show_their_text/1,
    senders_and_implementors_follow_the_text/1,
    extension_is_what_a_class_shows/1,
    rows_of_values_include_accessors/1,
    provided_methods_show_their_protocol/1
]).

all() ->
    [Case || {Case, 1} <- ?MODULE:module_info(exports), Case =/= module_info, Case =/= all].

init_per_testcase(_Case, Config) ->
    {ok, _} = beamtalk_embedded:start(#{project => proplists:get_value(priv_dir, Config)}),
    Config.

end_per_testcase(_Case, _Config) ->
    ok = beamtalk_embedded:stop(),
    #{extensions := #{entries := 0}, xref := #{methods := 0}, protocols := #{users := 0}} = beamtalk_image:info(),
    ok.

conformance_is_structural(_Config) ->
    ?assertEqual([true, true, false, false],
        value("#(Integer conformsTo: #Comparable, List conformsTo: #Enumerable, Symbol conformsTo: #Comparable, "
            "Integer conformsTo: #Nothing)")),
    ?assertEqual([false, []], value("#(Integer usesProtocol: #Comparable, Integer usedProtocols)")),
    ?assert(value("(Protocol conformingClasses: #Comparable) includes: Integer")),
    ?assertEqual(['<'], value("Protocol requiredMethods: #Comparable")),
    ?assertEqual(['>', '<=', '>=', 'between:and:', 'min:', 'max:'], value("Protocol providedMethods: #Comparable")).

%% C8
conformance_follows_every_change(_Config) ->
    define("Protocol define: Named\n  name -> String\n"),
    define("Value subclass: A\n  other => 1\n"),
    define("A subclass: B\n"),
    Conforms = fun() -> value("#(A conformsTo: #Named, B conformsTo: #Named)") end,
    ?assertEqual([false, false], Conforms()),
    value("B >> name => \"b\""),
    ?assertEqual([false, true], Conforms()),
    value("B removeSelector: #name"),
    ?assertEqual([false, false], Conforms()),
    value("A >> name => \"a\""),
    ?assertEqual([true, true], Conforms()),
    define("Value subclass: B\n"),
    ?assertEqual([true, false], Conforms()),
    define("Protocol define: Named\n  name -> String\n  title -> String\n"),
    ?assertEqual([false, false], Conforms()).

uses_are_direct_and_inherited(_Config) ->
    define("Protocol define: P\n  a -> Integer\n"),
    define("Protocol define: Q\n  b -> Integer\n"),
    define("Value subclass: A\n  uses: Q\n  uses: P\n  a => 1\n  b => 2\n"),
    define("A subclass: B\n  uses: P\n"),
    ?assertEqual([['Q', 'P'], ['P'], ['P', 'Q']], value("#(A usedProtocols, B usedProtocols, B allUsedProtocols)")),
    ?assertEqual([true, true, false], value("#(B usesProtocol: #Q, A usesProtocol: #P, Object usesProtocol: #P)")).

%% C10
users_follow_the_text_of_the_class(_Config) ->
    define("Protocol define: P\n  a -> Integer\n"),
    define("Value subclass: A\n  uses: P\n  a => 1\n"),
    define("Value subclass: B\n  uses: P\n  a => 1\n"),
    Users = fun() -> value("(Protocol usersOf: #P) collect: [:c | c name]") end,
    ?assertEqual(['A', 'B'], lists:sort(Users())),
    define("Protocol define: P\n  a -> Integer\n"),
    ?assertEqual(['A', 'B'], lists:sort(Users())),
    define("Value subclass: A\n  a => 1\n"),
    ?assertEqual(['B'], Users()),
    value("B removeFromSystem"),
    ?assertEqual([], Users()).

methods_show_their_text(_Config) ->
    define("Value subclass: A\n\n  // a divider\n\n  /// Docs.\n  go: x =>\n    x\n  class make => self new\n"),
    ?assertEqual(<<"  /// Docs.\n  go: x =>\n    x\n">>, value("(A >> #go:) source")),
    ?assertEqual(<<"  class make => self new\n">>, value("(A class >> #make) source")),
    ?assertEqual([nil, 'go:', 'A', instance], value("m := A >> #go:. #(m origin, m selector, m className, m side)")),
    ?assertEqual(nil, value("A >> #missing")),
    ?assertEqual('Object', value("(A >> #isNil) className")).

%% B1, B2
senders_and_implementors_follow_the_text(_Config) ->
    define("Value subclass: A\n  go => self target: 1\n  class go => [:x | x target: 2]\n"),
    define("Value subclass: B\n  target: x => x\n"),
    Senders = fun() -> value("((SystemNavigation default sendersOf: #target:) collect: [:m | m printString])") end,
    Implementors = fun() -> value("(SystemNavigation default implementorsOf: #target:) collect: [:c | c name]") end,
    ?assertEqual([<<"A class>>go">>, <<"A>>go">>], lists:sort(Senders())),
    ?assertEqual(['B'], Implementors()),
    value("B removeSelector: #target:"),
    ?assertEqual([<<"A class>>go">>, <<"A>>go">>], lists:sort(Senders())),
    ?assertEqual([], Implementors()),
    value("A >> go => 1"),
    ?assertEqual([<<"A class>>go">>], Senders()),
    ?assertEqual([<<"A class>>go">>], [printed(M) || M <- value("SystemNavigation default sendersOf: #target:")]),
    define("Value subclass: C\n  make => B new\n"),
    ?assertEqual([make], value("(SystemNavigation default referencesTo: #B) collect: [:m | m selector]")).

%% A1
extension_is_what_a_class_shows(_Config) ->
    define("Value subclass: A\n  go => 1\n"),
    define("A >> go => 2\n\n/// Docs: not `>>`.\nA class >> make => 3 abs\n"),
    ?assertEqual(<<"/// Docs: not `>>`.\nmake => 3 abs\n">>, value("(A class >> #make) source")),
    ok = beamtalk_image:sync(),
    ?assertEqual([<<"A class>>make">>],
        value("(SystemNavigation default sendersOf: #abs) collect: [:m | m printString]")),
    ?assertEqual([2, 3], value("#(A new go, A make)")),
    ?assertEqual(<<"go => 2\n">>, value("(A >> #go) source")),
    ?assertEqual([[go], [make]], value("#(A methods, A class methods)")),
    value("A removeSelector: #go"),
    ?assertEqual(<<"  go => 1\n">>, value("(A >> #go) source")).

rows_of_values_include_accessors(_Config) ->
    define("Value subclass: A\n  field: x = 1\n"),
    ?assertEqual([withX, x], [list_to_atom(string:trim(atom_to_list(S), trailing, ":")) || S <- value("A methods")]),
    ?assertEqual(['A'], value("(SystemNavigation default implementorsOf: #withX:) collect: [:c | c name]")).

%% C1, the part of one class: what a protocol provides runs, and shows whose it is.
provided_methods_show_their_protocol(_Config) ->
    define("Protocol define: P\n  a -> Integer\n\n  twice -> Integer => self a + self a\n"),
    Text = <<"Value subclass: A\n  uses: P\n\n  a => 4\n">>,
    Flat = <<Text/binary, "  twice -> Integer => self a + self a\n">>,
    {ok, [Item]} = beamtalk_reading:items(Flat),
    [#{source := Source}] = maps:get(provided_methods, beamtalk_protocol_registry:protocol_info('P')),
    {ok, #{module := Module, beam := Beam, definition := Definition}} = beamtalk_embedded_compiler:class(
        Item, Text, dynamic, #{}, #{text => Flat, provided => #{twice => {'P', Source}}}),
    {module, Module} = code:load_binary(Module, "A", Beam),
    {ok, _} = beamtalk_embedded:define_class('A', Definition),
    ?assertEqual(8, value("A new twice")),
    ?assertEqual(['P', nil], value("#((A >> #twice) origin, (A >> #a) origin)")),
    ?assertEqual(<<"  twice -> Integer => self a + self a\n">>, value("(A >> #twice) source")),
    ?assertEqual(Text, value("A source")),
    ?assertMatch(#{provenance := protocol, origin := 'P'}, beamtalk_xref:method_info('A', false, twice)),
    ?assert(value("A conformsTo: #P")),
    ?assertEqual(<<"A>>twice">>, printed(hd(value("SystemNavigation default sendersOf: #a")))).

define(Text) ->
    beamtalk_embedded_loader:text(iolist_to_binary(Text), dynamic).

value(Text) ->
    case beamtalk_image:eval(Text) of
        {ok, Value} -> Value;
        {error, Error} -> ct:fail({Text, Error})
    end.

printed(Value) ->
    beamtalk_embedded_session:printed(Value).
