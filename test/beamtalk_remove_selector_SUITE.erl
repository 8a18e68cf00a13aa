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
    removal_meets_registrations_and_redefinitions/1,
    entry_says_what_a_flush_needs/1,
    extension_is_attributed_to_the_extended_class/1,
    author_is_lost/1,
    removed_class_does_not_come_back_with_its_extensions/1,
    removed_class_leaves_no_text_to_bring_it_back/1
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
    [{home, Home}, {folder, Folder}, {workspace, Workspace} | Config].

end_per_testcase(_Case, Config) ->
    ok = beamtalk_embedded:stop(),
    true = os:putenv("HOME", proplists:get_value(home, Config)),
    #{extensions := #{entries := 0}, xref := #{methods := 0},
        protocols := #{users := 0}} = beamtalk_image:info(),
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
    ?assertEqual(Before, {beamtalk_workspace_changelog:size(),
        beamtalk_xref:defined_selectors('Counter', false)}).

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
    [receive {'DOWN', Ref, process, Pid, Reason} -> ?assertEqual(normal, Reason) end
        || {Pid, Ref} <- Workers],
    Removed = [Layer || {removed, Layer, _} <- All],
    ?assertEqual(length(All), length(Removed) + length([absent || absent <- All])),
    ?assertEqual(40, length([extension || extension <- Removed])),
    ?assertEqual(40, length([local || local <- Removed])),
    ?assertEqual(80, beamtalk_workspace_changelog:size()),
    ?assertEqual([], beamtalk_xref:defined_selectors('Busy', false)),
    ?assertEqual([], beamtalk_extensions:list('Busy')).

%% The same while others register extensions, redefine the class and patch it. Afterwards whatever is left is
%% removed, too: nothing remains in any index, and the log has one entry for each removal that was answered.
removal_meets_registrations_and_redefinitions(_Config) ->
    Selectors = [list_to_atom("r" ++ integer_to_list(N)) || N <- lists:seq(1, 12)],
    Define = fun() ->
        Methods = maps:from_list([{S, fun([], _) -> S end} || S <- Selectors]),
        {ok, _} = beamtalk_embedded:define_class('Busy', #{
            superclass => 'Object', methods => Methods, class_methods => Methods
        })
    end,
    Define(),
    Keys = [{'Busy', instance}, {'Busy class', class}],
    Remove = fun() ->
        [beamtalk_remove_selector:remove('Busy', S, Side) || S <- Selectors, {_, Side} <- Keys]
    end,
    Extend = fun(Owner) ->
        [ok = beamtalk_embedded:extend(Key, S, fun([], _) -> Owner end, Owner, <<"x => 1">>)
            || S <- Selectors, {Key, _} <- Keys]
    end,
    Patch = fun() ->
        {_, _, _, Pid} = beamtalk_embedded:class('Busy'),
        [ok = beamtalk_embedded_class:put_method(Pid, instance, S, fun([], _) -> S end, <<"x => 2">>)
            || S <- Selectors]
    end,
    Rounds = fun(Count, Work) -> lists:append([Work() || _ <- lists:seq(1, Count)]) end,
    Nothing = fun(Work) -> fun() -> _ = Work(), [] end end,
    Outcomes = lists:append(beamtalk_image_log_fixture:parallel(
        [fun() -> Rounds(8, Remove) end || _ <- lists:seq(1, 4)] ++
            [fun() -> Rounds(8, Nothing(fun() -> Extend(Owner) end)) end || Owner <- [pkg_a, pkg_b]] ++
            [fun() -> Rounds(8, Nothing(Define)) end, fun() -> Rounds(8, Nothing(Patch)) end]
    )),
    Left = lists:append([Remove(), Remove(), Remove()]),
    ?assertEqual([], [Other || Other <- Outcomes ++ Left, Other =/= absent, not is_removed(Other)]),
    ?assert(lists:all(fun(Outcome) -> Outcome =:= absent end, Remove())),
    Removed = [Layer || {removed, Layer, _} <- Outcomes ++ Left],
    ?assert(length(Removed) > 48),
    %% The live log holds a thousand at most; numbers count every entry there was.
    [Last | _] = lists:reverse(beamtalk_workspace_changelog:entries()),
    ?assertEqual(length(Removed), beamtalk_workspace_changelog:entry_seq(Last) + 1),
    ?assertEqual({[], []}, {beamtalk_xref:defined_selectors('Busy', false),
        beamtalk_xref:defined_selectors('Busy', true)}),
    ?assertEqual([], [S || S <- Selectors, beamtalk_xref:implementors_of(S) =/= []]),
    ?assertEqual([], [Key || {Key, _} <- Keys, beamtalk_extensions:list(Key) =/= []]),
    ?assertEqual([], lists:append([beamtalk_extensions:extensions_by(Owner) || Owner <- [pkg_a, pkg_b]])),
    ?assertEqual([], [Key || {Key, _, _} <- beamtalk_extensions:conflicts(),
        Key =:= 'Busy' orelse Key =:= 'Busy class']).

is_removed({removed, Layer, #{flushable := _}}) -> Layer =:= local orelse Layer =:= extension;
is_removed(_) -> false.

%% The rows of ADR 0112: where the class lives decides file, span, flushability and reason; what is on disk
%% goes before what runs.
entry_says_what_a_flush_needs(Config) ->
    File = iolist_to_binary(filename:join(proplists:get_value(folder, Config), "counter.bt")),
    ok = file:write_file(File, <<"Actor subclass: Counter\n  greet => 7\n">>),
    Span = #{start => 24, 'end' => 36},
    OnDisk = fun([_, <<"Counter">>, <<"greet">>, instance]) -> {ok, Span, <<"  greet => 7">>};
                ([_, _, _, _]) -> {error, selector_not_found, <<"absent">>} end,
    Broken = fun(_) -> {error, parse_error, <<"broken">>} end,
    Missing = <<"/nowhere/", File/binary>>,
    Pipe = <<File/binary, ".pipe">>,
    "" = os:cmd("mkfifo '" ++ unicode:characters_to_list(Pipe) ++ "'"),
    lists:foreach(
        fun({Origin, Scope, Spans, Expected}) ->
            {ok, _} = define_counter(),
            Host = #{
                class_origin => fun(_) -> Origin end, file_scope => fun(_) -> Scope end, method_span => Spans
            },
            with_host(Host, fun() ->
                {removed, local, _} = beamtalk_remove_selector:remove('Counter', greet, instance)
            end),
            ?assertEqual({Origin, Expected}, {Origin, newest()})
        end,
        [
            {{file, File}, project, OnDisk, {true, undefined, File, Span, {ok, <<"  greet => 7">>}}},
            {{file, File}, project, fun(_) -> {error, selector_not_found, <<>>} end,
                {false, <<"not_on_disk">>, undefined, undefined, {ok, <<"greet => 1">>}}},
            {{file, File}, project, Broken,
                {false, <<"span_unresolved:parse_error">>, undefined, undefined, {ok, <<"greet => 1">>}}},
            {{file, Missing}, project, OnDisk,
                {false, <<"disk_read_failed">>, undefined, undefined, {ok, <<"greet => 1">>}}},
            %% What is no regular file is not waited for, and not read.
            {{file, Pipe}, project, OnDisk,
                {false, <<"disk_read_failed">>, undefined, undefined, {ok, <<"greet => 1">>}}},
            {{file, <<"/dev/zero">>}, project, OnDisk,
                {false, <<"disk_read_failed">>, undefined, undefined, {ok, <<"greet => 1">>}}},
            {{file, File}, dependency, OnDisk,
                {false, <<"dependency:", File/binary>>, undefined, undefined, {ok, <<"greet => 1">>}}},
            {stdlib, project, OnDisk, {false, <<"stdlib">>, undefined, undefined, {ok, <<"greet => 1">>}}},
            {dynamic, project, OnDisk, {false, <<"dynamic">>, undefined, undefined, {ok, <<"greet => 1">>}}}
        ]
    ).

%% A7: an extension lives in its extender's file and is classified by that, whatever the extended class is.
extension_is_attributed_to_the_extended_class(Config) ->
    File = iolist_to_binary(filename:join(proplists:get_value(folder, Config), "Counter+Shout.bt")),
    ok = file:write_file(File, <<"Counter >> shout => 9\n">>),
    Span = #{start => 0, 'end' => 21},
    Located = fun(_) -> {ok, Span, <<"Counter >> shout => 9">>} end,
    lists:foreach(
        fun({Known, Scope, Expected}) ->
            ok = beamtalk_embedded:extend('Counter', shout, fun([], _) -> 1 end, pkg, <<"shout => 1">>),
            Host = #{
                class_origin => fun(_) -> stdlib end,
                extension_file => fun([pkg, 'Counter', shout]) -> Known end,
                file_scope => fun(_) -> Scope end,
                method_span => Located
            },
            with_host(Host, fun() ->
                {removed, extension, #{owner := pkg}} =
                    beamtalk_remove_selector:remove('Counter', shout, instance)
            end),
            ?assertEqual(Expected, newest())
        end,
        [
            {{ok, File}, project, {true, undefined, File, Span, {ok, <<"Counter >> shout => 9">>}}},
            {{ok, File}, dependency,
                {false, <<"dependency:", File/binary>>, undefined, undefined, {ok, <<"shout => 1">>}}},
            {unknown, project, {false, <<"extension">>, undefined, undefined, {ok, <<"shout => 1">>}}}
        ]
    ).

author_is_lost(Config) ->
    put('$beamtalk_author_kind', agent),
    put('$beamtalk_author', <<"helper">>),
    {removed, local, _} = beamtalk_remove_selector:remove('Counter', greet, instance),
    erase('$beamtalk_author_kind'),
    {removed, local, _} = beamtalk_remove_selector:remove('Counter', kind, instance),
    erase('$beamtalk_author'),
    {removed, local, _} = beamtalk_remove_selector:remove('Counter', kind, class),
    ?assertEqual([agent, human, human],
        [beamtalk_workspace_changelog:entry_author_kind(E) || E <- beamtalk_workspace_changelog:entries()]),
    Lines = beamtalk_image_log_reader:lines(
        filename:join(beamtalk_workspace_changelog:changes_dir(proplists:get_value(workspace, Config)),
            "changes.jsonl")),
    ?assertEqual([<<"helper">>, <<"helper">>, <<"repl">>],
        [Author || Line <- Lines,
            {ok, #{<<"author">> := Author}} <- [beamtalk_image_log_reader:decode(Line)]]).

%% Flushable, reason, file, span and earlier text of the entry that was written last.
newest() ->
    Entry = lists:last(beamtalk_workspace_changelog:entries()),
    'remove-method' = beamtalk_workspace_changelog:entry_kind(Entry),
    {
        beamtalk_workspace_changelog:entry_flushable(Entry),
        beamtalk_workspace_changelog:entry_not_flushable_reason(Entry),
        beamtalk_workspace_changelog:entry_source_file(Entry),
        beamtalk_workspace_changelog:entry_span(Entry),
        beamtalk_workspace_changelog:read_prev_source_body(Entry)
    }.

%% The embedded host with some of its answers replaced.
with_host(Answers, Fun) ->
    Was = beamtalk_image_host:module(),
    ok = beamtalk_image_other_host:replace(Was, Answers),
    ok = beamtalk_image_host:set_module(beamtalk_image_other_host),
    try
        Fun()
    after
        ok = beamtalk_image_host:set_module(Was),
        ok = beamtalk_image_other_host:forget()
    end.

%% The snapshot is taken before the class is torn down, so its text can be brought back; where the class lived
%% decides whether a flush may delete it.
removed_class_leaves_no_text_to_bring_it_back(Config) ->
    Source = <<"Object subclass: Lamp\n  on => true\n">>,
    Own = iolist_to_binary(filename:join(proplists:get_value(folder, Config), "lamp.bt")),
    ok = file:write_file(Own, Source),
    Define = fun(Origin) ->
        {ok, _} = beamtalk_embedded:define_class('Lamp', #{
            superclass => 'Object', origin => Origin, source => Source,
                methods => #{on => fun([], _) -> true end}
        })
    end,
    lists:foreach(
        fun({Origin, Flushable, Reason, File}) ->
            Define(Origin),
            ok = beamtalk_embedded:extend('Lamp', dim, fun([], _) -> 1 end, pkg, undefined),
            ?assertEqual(nil, send(beamtalk_embedded:class('Lamp'), removeFromSystem)),
            {reinstall_class, Text, Entry} =
                beamtalk_workspace_changelog:find_revert_target(<<"Lamp">>, 'new-class'),
            ?assertEqual(Source, Text),
            ?assertEqual({'remove-class', undefined, Flushable, Reason, File}, {
                beamtalk_workspace_changelog:entry_kind(Entry),
                beamtalk_workspace_changelog:entry_selector(Entry),
                beamtalk_workspace_changelog:entry_flushable(Entry),
                beamtalk_workspace_changelog:entry_not_flushable_reason(Entry),
                beamtalk_workspace_changelog:entry_source_file(Entry)
            }),
            ?assertEqual({[], []}, {beamtalk_extensions:list('Lamp'),
                beamtalk_xref:defined_selectors('Lamp', false)})
        end,
        [
            {dynamic, false, <<"dynamic">>, undefined},
            {{file, Own}, true, undefined, Own},
            {{file, <<"/elsewhere/lamp.bt">>}, false, <<"dependency:/elsewhere/lamp.bt">>, undefined}
        ]
    ),
    ?assertEqual(3, beamtalk_workspace_changelog:size()).

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

%% ---- Helpers ----------------------------------------------------------------------------------------------

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
