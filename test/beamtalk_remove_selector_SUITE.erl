%% Removal of methods on the embedded image: ADR 0112, case by case, and what the ChangeLog keeps of it.
-module(beamtalk_remove_selector_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    extension_goes_before_the_local_method/1,
    absent_is_an_outcome_of_its_own/1,
    removal_exposes_what_is_inherited/1,
    sides_are_two_methods/1,
    argument_that_is_no_symbol_is_a_type_error/1,
    block_that_asks_its_own_class_gets_a_structured_error/1,
    library_methods_go_but_are_not_flushable/1,
    owner_of_an_extension_is_recorded/1,
    removal_from_a_projects_file_has_no_place/1,
    failing_log_warns_and_the_removal_stands/1,
    step_that_raises_leaves_the_others_done/1,
    eight_removers_leave_one_entry_a_removal/1,
    removed_class_does_not_come_back_with_its_extensions/1
]).

all() ->
    [Case || {Case, 1} <- ?MODULE:module_info(exports), Case =/= module_info, Case =/= all].

init_per_testcase(_Case, Config) ->
    Home = os:getenv("HOME"),
    Folder = proplists:get_value(priv_dir, Config),
    Workspace = integer_to_binary(erlang:unique_integer([positive])),
    true = os:putenv("HOME", Folder),
    {ok, _} = beamtalk_embedded:start(#{project => Folder, workspace_id => Workspace}),
    {ok, _} = beamtalk_embedded:define_class('Beacon', #{
        superclass => 'Actor', kind => actor, methods => #{greet => fun([], _) -> <<"base greet">> end}
    }),
    {ok, _} = define_counter(),
    [{home, Home}, {folder, Folder} | Config].

end_per_testcase(_Case, Config) ->
    ok = beamtalk_embedded:stop(),
    true = os:putenv("HOME", proplists:get_value(home, Config)),
    #{extensions := #{entries := 0}, xref := #{methods := 0}, protocols := #{users := 0}} = beamtalk_image:info(),
    ok.

%% A1
extension_goes_before_the_local_method(_Config) ->
    ok = beamtalk_embedded:extend('Counter', greet, fun([], _) -> <<"extension">> end, pkg, <<"greet => 1">>),
    C = spawned(),
    ?assertEqual(<<"extension">>, send(C, greet)),
    ?assertEqual(counter(), remove(counter(), greet)),
    ?assertEqual(<<"counter greet">>, send(C, greet)),
    ?assertMatch(#{provenance := class_body}, beamtalk_xref:method_info('Counter', false, greet)),
    ?assertEqual(counter(), remove(counter(), greet)),
    ?assertEqual(<<"base greet">>, send(C, greet)),
    ?assertMatch({selector_not_found, _, _}, failure(fun() -> remove(counter(), greet) end)),
    ?assertEqual([<<"extension">>, <<"local">>], layers()).

%% E1
absent_is_an_outcome_of_its_own(_Config) ->
    ?assertEqual(counter(), remove(counter(), greet)),
    Before = {beamtalk_workspace_changelog:size(), beamtalk_xref:defined_selectors('Counter', false)},
    Block = fun() -> <<"not here">> end,
    lists:foreach(
        fun({Selector, Text}) ->
            {Kind, Message, Hint} = failure(fun() -> remove(counter(), Selector) end),
            ?assertEqual(selector_not_found, Kind),
            ?assertEqual(Text, Message),
            ?assert(is_binary(Hint)),
            ?assertEqual(<<"not here">>, send(counter(), 'removeSelector:ifAbsent:', [Selector, Block]))
        end,
        [
            {greet, <<"Counter does not define #greet locally: inherited from Beacon "
                "(see whichClassIncludesSelector:); nothing to remove here">>},
            {never, <<"Counter does not define #never (locally or as an extension)">>}
        ]
    ),
    {selector_not_found, _, WithSenders} = failure(fun() -> remove(counter(), vanished) end),
    ?assertMatch({_, _}, binary:match(WithSenders, <<"1 sender">>)),
    ?assertEqual(Before, {beamtalk_workspace_changelog:size(), beamtalk_xref:defined_selectors('Counter', false)}).

%% E2
removal_exposes_what_is_inherited(_Config) ->
    C = spawned(),
    ?assertEqual(counter(), remove(counter(), greet)),
    ?assertEqual(<<"base greet">>, send(C, greet)),
    ?assertEqual(<<"base greet">>, send(spawned(), greet)),
    ?assertNot(send(counter(), 'includesSelector:', [greet])),
    ?assert(send(C, 'respondsTo:', [greet])),
    ?assertEqual(beamtalk_embedded:class('Beacon'), send(counter(), 'whichClassIncludesSelector:', [greet])).

%% E4, the removal itself
sides_are_two_methods(_Config) ->
    Meta = beamtalk_embedded:metaclass('Counter'),
    ?assertEqual(<<"counting">>, send(counter(), kind)),
    ?assertEqual(Meta, remove(Meta, kind)),
    ?assertMatch({does_not_understand, _, _}, failure(fun() -> send(counter(), kind) end)),
    ?assertEqual(<<"instance">>, send(spawned(), kind)),
    [Entry] = beamtalk_workspace_changelog:entries(),
    ?assertEqual('remove-method', beamtalk_workspace_changelog:entry_kind(Entry)),
    ?assertEqual(class, beamtalk_workspace_changelog:entry_side(Entry)).

%% 8.5-4
argument_that_is_no_symbol_is_a_type_error(_Config) ->
    lists:foreach(
        fun(Wrong) ->
            ?assertMatch({type_error, _, _}, failure(fun() -> remove(counter(), Wrong) end)),
            ?assertMatch({type_error, _, _},
                failure(fun() -> send(counter(), 'removeSelector:ifAbsent:', [Wrong, fun() -> 1 end]) end))
        end,
        [<<"greet">>, 7, [greet], #{}]
    ),
    ?assertMatch({type_error, _, _},
        failure(fun() -> send(counter(), 'removeSelector:ifAbsent:', [greet, not_a_block]) end)),
    ?assertEqual(0, beamtalk_workspace_changelog:size()).

%% E7
block_that_asks_its_own_class_gets_a_structured_error(_Config) ->
    Own = fun() -> send(counter(), 'includesSelector:', [greet]) end,
    Other = fun() -> send(beamtalk_embedded:class('Beacon'), 'includesSelector:', [greet]) end,
    Raising = fun() -> error(from_the_block) end,
    {Time, Failure} = timer:tc(fun() ->
        failure(fun() -> send(counter(), 'removeSelector:ifAbsent:', [nothing, Own]) end)
    end),
    ?assertMatch({dispatch_error, _, _}, Failure),
    ?assert(Time < 4_000_000),
    ?assert(send(counter(), 'removeSelector:ifAbsent:', [nothing, Other])),
    ?assertError(from_the_block, send(counter(), 'removeSelector:ifAbsent:', [nothing, Raising])),
    ?assertEqual(<<"counting">>, send(counter(), kind)).

library_methods_go_but_are_not_flushable(_Config) ->
    Integer = beamtalk_embedded:class('Integer'),
    ?assertEqual(Integer, remove(Integer, isZero)),
    ?assertMatch({does_not_understand, _, _}, failure(fun() -> send(3, isZero) end)),
    [Entry] = beamtalk_workspace_changelog:entries(),
    ?assertNot(beamtalk_workspace_changelog:entry_flushable(Entry)),
    ?assertEqual(<<"stdlib">>, beamtalk_workspace_changelog:entry_not_flushable_reason(Entry)),
    ?assertEqual(undefined, beamtalk_workspace_changelog:entry_source_file(Entry)),
    ?assertMatch(#{'Integer' := #{elements := [isZero]}}, beamtalk_workspace_changelog:dirtyMethods()).

%% The extender is remembered, and its text comes back from the body file.
owner_of_an_extension_is_recorded(_Config) ->
    ok = beamtalk_embedded:extend('Counter class', twice, fun([], _) -> 2 end, shouting, <<"twice => 2">>),
    Meta = beamtalk_embedded:metaclass('Counter'),
    Meta = remove(Meta, twice),
    [Entry] = beamtalk_workspace_changelog:entries(),
    ?assertEqual(<<"shouting">>, beamtalk_workspace_changelog:entry_owner(Entry)),
    ?assertEqual(<<"extension">>, beamtalk_workspace_changelog:entry_layer(Entry)),
    ?assertEqual({ok, <<"twice => 2">>}, beamtalk_workspace_changelog:read_prev_source_body(Entry)),
    ?assertEqual(class, beamtalk_workspace_changelog:entry_side(Entry)),
    ?assertEqual([], beamtalk_extensions:list('Counter class')).

%% A7. The class's own method is looked for in the class's file, an extension in its extender's.
removal_from_a_projects_file_has_no_place(Config) ->
    Folder = unicode:characters_to_binary(proplists:get_value(folder, Config)),
    [Own, Other] = [filename:join(Folder, Name) || Name <- [<<"Filed.bt">>, <<"Filed+Shout.bt">>]],
    Method = <<"  /// Answers one.\n  one => 1\n">>,
    ok = file:write_file(Own, ["Object subclass: Filed\n", Method, "  two => 2\n"]),
    ok = file:write_file(Other, <<"Filed >> shout => self one\n">>),
    {ok, _} = beamtalk_embedded:define_class('Filed', #{
        superclass => 'Object', origin => {file, Own}, methods => #{one => fun([], _) -> 1 end}
    }),
    ok = beamtalk_embedded:extend('Filed', shout, fun([], _) -> 1 end, 'Filed+Shout', undefined),
    Class = beamtalk_embedded:class('Filed'),
    [Class = remove(Class, Selector) || Selector <- [one, shout]],
    [Local, Extension] = beamtalk_workspace_changelog:entries(),
    ?assert(beamtalk_workspace_changelog:entry_flushable(Local)),
    ?assertEqual(Own, beamtalk_workspace_changelog:entry_source_file(Local)),
    ?assertEqual(#{start => 23, 'end' => 23 + byte_size(Method)}, beamtalk_workspace_changelog:entry_span(Local)),
    ?assertEqual({ok, Method}, beamtalk_workspace_changelog:read_prev_source_body(Local)),
    ?assertEqual(Other, beamtalk_workspace_changelog:entry_source_file(Extension)),
    ?assertEqual(#{start => 0, 'end' => 27}, beamtalk_workspace_changelog:entry_span(Extension)).

%% F4, as far as removal goes
failing_log_warns_and_the_removal_stands(_Config) ->
    ok = supervisor:terminate_child(beamtalk_embedded, beamtalk_workspace_changelog),
    ok = beamtalk_image_log_events:start([beamtalk_remove_selector]),
    Answer = remove(counter(), greet),
    Events = beamtalk_image_log_events:take(),
    ok = beamtalk_image_log_events:stop(),
    ?assertEqual(counter(), Answer),
    ?assertMatch([{beamtalk_remove_selector, warning, _}], Events),
    ?assertEqual(<<"base greet">>, send(spawned(), greet)),
    {ok, _} = supervisor:restart_child(beamtalk_embedded, beamtalk_workspace_changelog).

%% 8.5-1
step_that_raises_leaves_the_others_done(_Config) ->
    ok = beamtalk_embedded:extend('Counter', shout, fun([], _) -> 1 end, pkg, undefined),
    ok = beamtalk_embedded:extend('Counter class', shout, fun([], _) -> 1 end, pkg, undefined),
    ok = beamtalk_protocol_registry:register_uses('Counter', some_module, ['Printable']),
    ok = supervisor:terminate_child(beamtalk_embedded, beamtalk_xref),
    %% The class still runs, as after a failed unloading, and the index is away.
    ok = beamtalk_image:class_removed('Counter', some_module),
    ?assertEqual([], beamtalk_extensions:list('Counter')),
    ?assertEqual([], beamtalk_extensions:list('Counter class')),
    ?assertEqual([], beamtalk_protocol_registry:used_protocols('Counter')),
    {ok, _} = supervisor:restart_child(beamtalk_embedded, beamtalk_xref),
    ?assertEqual([], beamtalk_xref:implementors_of(shout)).

%% Each removal is one entry, whoever came first.
eight_removers_leave_one_entry_a_removal(_Config) ->
    Selectors = [list_to_atom("s" ++ integer_to_list(N)) || N <- lists:seq(1, 40)],
    {ok, _} = beamtalk_embedded:define_class('Busy', #{
        superclass => 'Object', methods => maps:from_list([{S, fun([], _) -> S end} || S <- Selectors])
    }),
    [ok = beamtalk_embedded:extend('Busy', S, fun([], _) -> S end, pkg, undefined) || S <- Selectors],
    Test = self(),
    Workers = [spawn_monitor(fun() ->
        Outcomes = [beamtalk_remove_selector:remove('Busy', S, instance) || _ <- [1, 2, 3], S <- Selectors],
        Test ! {outcomes, Outcomes}
    end) || _ <- lists:seq(1, 8)],
    All = lists:append([receive {outcomes, Outcomes} -> Outcomes end || _ <- Workers]),
    [receive {'DOWN', Ref, process, Pid, Reason} -> ?assertEqual(normal, Reason) end || {Pid, Ref} <- Workers],
    Removed = [Layer || {removed, Layer, _} <- All],
    ?assertEqual(length(All), length(Removed) + length([absent || absent <- All])),
    ?assertEqual(40, length([extension || extension <- Removed])),
    ?assertEqual(40, length([local || local <- Removed])),
    ?assertEqual(80, beamtalk_workspace_changelog:size()),
    ?assertEqual([], beamtalk_xref:defined_selectors('Busy', false)),
    ?assertEqual([], beamtalk_extensions:list('Busy')).

removed_class_does_not_come_back_with_its_extensions(_Config) ->
    ok = beamtalk_embedded:extend('Counter', shout, fun([], _) -> 1 end, pkg, undefined),
    ?assertEqual(nil, send(counter(), removeFromSystem)),
    ?assertEqual(undefined, beamtalk_embedded:class('Counter')),
    ?assertEqual([], beamtalk_xref:defined_selectors('Counter', false)),
    [Entry] = beamtalk_workspace_changelog:entries(),
    ?assertEqual('remove-class', beamtalk_workspace_changelog:entry_kind(Entry)),
    {ok, _} = define_counter(),
    ?assertMatch({does_not_understand, _, _}, failure(fun() -> send(spawned(), shout) end)),
    ?assertEqual([], beamtalk_xref:implementors_of(shout)).

%% ---- Helpers ------------------------------------------------------------------------------------------------

define_counter() ->
    beamtalk_embedded:define_class('Counter', #{
        superclass => 'Beacon',
        kind => actor,
        methods => #{
            greet => #{'fun' => fun([], _) -> <<"counter greet">> end, source => <<"greet => 1">>},
            kind => fun([], _) -> <<"instance">> end,
            calls => #{'fun' => fun([], _) -> nil end, sends => [#{selector => vanished}]}
        },
        class_methods => #{kind => fun([], _) -> <<"counting">> end}
    }).

counter() -> beamtalk_embedded:class('Counter').

spawned() -> send(counter(), spawn).

send(Receiver, Selector) -> beamtalk_embedded:send(Receiver, Selector).

send(Receiver, Selector, Args) -> beamtalk_embedded:send(Receiver, Selector, Args).

remove(Receiver, Selector) -> send(Receiver, 'removeSelector:', [Selector]).

layers() ->
    [beamtalk_workspace_changelog:entry_layer(Entry) || Entry <- beamtalk_workspace_changelog:entries()].

failure(Fun) ->
    try Fun() of
        Answer -> {no_failure, Answer}
    catch
        error:#{error := {beamtalk_error, Kind, _, _, Message, Hint, _}} -> {Kind, Message, Hint}
    end.
