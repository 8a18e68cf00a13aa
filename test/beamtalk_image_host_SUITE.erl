%% The registries against a host that fails: classes that are dead, slow or the caller itself, and start-ups
%% that call back (contract §1, §3.6, §4.2 to §4.4).
-module(beamtalk_image_host_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([
    answer_of_a_slow_class_is_not_remembered/1,
    answer_of_a_dying_class_is_not_remembered/1,
    answer_from_inside_the_class_is_not_remembered/1,
    remembered_answers_send_no_message/1,
    healthy_index_sends_no_message/1,
    only_unindexed_classes_are_asked/1,
    silent_and_dead_classes_are_no_misses/1,
    class_object_that_does_not_start_is_a_warning/1,
    class_object_of_another_caller_is_success/1,
    start_up_of_a_class_object_may_call_every_registry/1,
    malformed_rows_fail_the_start_of_a_class/1,
    redefinition_says_anew_what_a_class_uses/1,
    live_patch_in_the_class_process_is_seen_on_return/1,
    failing_compiler_leaves_a_row_without_sends/1,
    send_of_an_unknown_name_is_found_once_an_atom_spells_it/1,
    missing_callback_is_its_default_and_a_deeper_one_is_an_error/1,
    compiler_that_is_not_loaded_yet_is_asked/1
]).

all() ->
    [
        answer_of_a_slow_class_is_not_remembered,
        answer_of_a_dying_class_is_not_remembered,
        answer_from_inside_the_class_is_not_remembered,
        remembered_answers_send_no_message,
        healthy_index_sends_no_message,
        only_unindexed_classes_are_asked,
        silent_and_dead_classes_are_no_misses,
        class_object_that_does_not_start_is_a_warning,
        class_object_of_another_caller_is_success,
        start_up_of_a_class_object_may_call_every_registry,
        malformed_rows_fail_the_start_of_a_class,
        redefinition_says_anew_what_a_class_uses,
        live_patch_in_the_class_process_is_seen_on_return,
        failing_compiler_leaves_a_row_without_sends,
        send_of_an_unknown_name_is_found_once_an_atom_spells_it,
        missing_callback_is_its_default_and_a_deeper_one_is_an_error,
        compiler_that_is_not_loaded_yet_is_asked
    ].

init_per_suite(Config) ->
    {ok, Started} = application:ensure_all_started(beamtalk_image),
    [{started, Started} | Config].

end_per_suite(Config) ->
    [ok = application:stop(App) || App <- lists:reverse(proplists:get_value(started, Config))],
    ok.

init_per_testcase(_Case, Config) ->
    ok = beamtalk_image_leftovers:empty(),
    Before = beamtalk_image_leftovers:picture(),
    ok = beamtalk_image_fake_host:start(),
    ok = beamtalk_image_fake_host:option(timeout, 50),
    ok = beamtalk_image_log_events:start([beamtalk_xref, beamtalk_protocol_registry, beamtalk_extensions]),
    ok = beamtalk_extensions:init(),
    ok = beamtalk_protocol_registry:init(),
    {ok, _} = beamtalk_xref:start_link(),
    _ = beamtalk_image_log_events:take(),
    [{before, Before} | Config].

end_per_testcase(_Case, Config) ->
    ok = beamtalk_image_log_events:stop(),
    ok = beamtalk_image_fake_host:stop(),
    ok = beamtalk_image_leftovers:empty(),
    beamtalk_image_leftovers:assert_none(proplists:get_value(before, Config)).

%% ---- Conformance: 8.3-1 -----------------------------------------------------------------------------------

answer_of_a_slow_class_is_not_remembered(_Config) ->
    sized_class(),
    ok = beamtalk_image_fake_host:slow_class('C', true),
    ?assertNot(beamtalk_protocol_registry:conforms_to('C', 'Sized')),
    ?assertMatch([{beamtalk_protocol_registry, debug, #{domain := [beamtalk, runtime]}}],
        beamtalk_image_log_events:take()),
    ok = beamtalk_image_fake_host:slow_class('C', false),
    ?assert(beamtalk_protocol_registry:conforms_to('C', 'Sized')).

answer_of_a_dying_class_is_not_remembered(_Config) ->
    sized_class(),
    ok = beamtalk_image_fake_host:kill_class('C'),
    ?assertNot(beamtalk_protocol_registry:conforms_to('C', 'Sized')),
    ?assertMatch([{beamtalk_protocol_registry, debug, _}], beamtalk_image_log_events:take()),
    %% Its process answers again, and nothing was told to forget answers meanwhile.
    ok = beamtalk_image_fake_host:script(understands, fun(['C', size]) -> true end),
    ?assert(beamtalk_protocol_registry:conforms_to('C', 'Sized')).

answer_from_inside_the_class_is_not_remembered(_Config) ->
    sized_class(),
    Ask = fun() -> beamtalk_protocol_registry:conforms_to('C', 'Sized') end,
    ?assertNot(beamtalk_image_fake_host:run_in_class_process('C', Ask)),
    ?assertMatch([{beamtalk_protocol_registry, debug, _}], beamtalk_image_log_events:take()),
    ?assert(Ask()).

remembered_answers_send_no_message(_Config) ->
    sized_class(),
    ?assert(beamtalk_protocol_registry:conforms_to('C', 'Sized')),
    ?assertNot(beamtalk_protocol_registry:conforms_to('Nobody', 'Sized')),
    ?assert(beamtalk_image_fake_host:messages('C') > 0),
    ok = beamtalk_image_fake_host:forget_counts(),
    %% Not even to a class that has died meanwhile.
    ok = beamtalk_image_fake_host:kill_class('C'),
    ?assert(beamtalk_protocol_registry:conforms_to('C', 'Sized')),
    ?assertNot(beamtalk_protocol_registry:conforms_to('Nobody', 'Sized')),
    ?assertEqual(0, beamtalk_image_fake_host:messages()),
    ?assertEqual([], beamtalk_image_fake_host:calls(understands)).

sized_class() ->
    _ = beamtalk_image_fake_host:class('C', none, [size], []),
    ok = beamtalk_protocol_registry:register_protocol(
        #{name => 'Sized', required_methods => [#{selector => size, arity => 0}]}),
    _ = beamtalk_image_log_events:take(),
    ok.

%% ---- Reads for the library --------------------------------------------------------------------------------

healthy_index_sends_no_message(_Config) ->
    Rows = [#{selector => m, line => 1, sends => [#{selector => n}], references => [#{class => 'D'}]}],
    Info = #{instance_methods => [m], method_xref => Rows},
    [beamtalk_image_fake_host:class(Name, Info) || Name <- ['C', 'D']],
    ok = beamtalk_image_fake_host:forget_counts(),
    Answers = ask_all(),
    ?assertEqual(0, beamtalk_image_fake_host:messages()),
    ?assertEqual([[] || _ <- Answers], [maps:get(fallback_classes, Answer) || {_Query, Answer} <- Answers]),
    ?assertEqual([], beamtalk_image_log_events:take()).

only_unindexed_classes_are_asked(_Config) ->
    _ = beamtalk_image_fake_host:class('Known', #{
        instance_methods => [m], method_xref => [#{selector => m, line => 1}]
    }),
    _ = beamtalk_image_fake_host:class('Unknown', none, [], [make]),
    _ = beamtalk_image_fake_host:class('Empty', none, [], []),
    ok = beamtalk_image_fake_host:forget_counts(),
    lists:foreach(
        fun({Query, #{fallback_classes := Fallback}}) ->
            ?assertEqual({Query, ['Unknown']}, {Query, Fallback})
        end,
        ask_all()
    ),
    ?assertEqual(0, beamtalk_image_fake_host:messages('Known')),
    ?assert(beamtalk_image_fake_host:messages('Unknown') > 0),
    ?assertEqual(
        [{beamtalk_xref, warning, miss('Unknown', Query)} || {Query, _} <- ask_all_queries()],
        beamtalk_image_log_events:take()
    ).

silent_and_dead_classes_are_no_misses(_Config) ->
    [beamtalk_image_fake_host:class(Name, none, [m], []) || Name <- ['Silent', 'Dead', 'Awake']],
    ok = beamtalk_image_fake_host:slow_class('Silent', true),
    Dead = beamtalk_image_fake_host:whereis_class('Dead'),
    ok = beamtalk_image_fake_host:kill_class('Dead'),
    %% The host may still list a class that has just died.
    Loaded = beamtalk_image_fake_host:loaded_classes(),
    ok = beamtalk_image_fake_host:script(loaded_classes, fun([]) -> [{'Dead', Dead} | Loaded] end),
    ?assertMatch(#{fallback_classes := ['Awake']}, beamtalk_xref:implementors_of_bt(m)),
    ?assertMatch([{_, warning, #{class := 'Awake'}}], beamtalk_image_log_events:take()).

miss(Class, Query) ->
    #{event => xref_miss, reason => xref_miss, class => Class, query => Query, domain => [beamtalk, runtime]}.

ask_all_queries() ->
    [
        {sendersOf, fun() -> beamtalk_xref:senders_of_bt(n) end},
        {referencesTo, fun() -> beamtalk_xref:references_to_bt('D') end},
        {implementorsOf, fun() -> beamtalk_xref:implementors_of_bt(m) end},
        {selectorsMatching, fun beamtalk_xref:defined_selectors_bt/0},
        {unimplementedSelectors, fun beamtalk_xref:all_sends_bt/0},
        {unusedSelectors, fun beamtalk_xref:all_sent_selectors_bt/0}
    ].

ask_all() ->
    [{Query, Ask()} || {Query, Ask} <- ask_all_queries()].

%% ---- Class objects of protocols ---------------------------------------------------------------------------

class_object_that_does_not_start_is_a_warning(_Config) ->
    _ = beamtalk_image_fake_host:class('Protocol', none, [], []),
    Failures = [
        fun([_, _]) -> {error, broken} end,
        fun([_, _]) -> exit({timeout, start}) end,
        fun([_, _]) -> error(badarg) end
    ],
    lists:foreach(
        fun(Failure) ->
            ok = beamtalk_image_fake_host:script(start_class, Failure),
            ?assertEqual(ok, register_empty('P')),
            ?assertMatch([{debug, _}, {warning, #{domain := [beamtalk, runtime]}}],
                [{Level, Meta} || {_, Level, Meta} <- beamtalk_image_log_events:take()]),
            ?assert(beamtalk_protocol_registry:is_protocol('P'))
        end,
        Failures
    ).

class_object_of_another_caller_is_success(_Config) ->
    _ = beamtalk_image_fake_host:class('Protocol', none, [], []),
    ok = beamtalk_image_fake_host:script(start_class, fun([_, _]) -> {error, {already_started, self()}} end),
    ?assertEqual(ok, register_empty('P')),
    ?assertMatch([{_, debug, _}], beamtalk_image_log_events:take()).

%% The start-up asks and writes every registry before the registration that caused it has returned.
start_up_of_a_class_object_may_call_every_registry(_Config) ->
    _ = beamtalk_image_fake_host:class('Protocol', none, [], []),
    ok = beamtalk_image_fake_host:script(start_class, fun([Name, Info]) ->
        ?assert(beamtalk_protocol_registry:is_protocol(Name)),
        ok = beamtalk_xref:purge_class(Name),
        ok = beamtalk_extensions:register(Name, extra, fun(_, _) -> extra end, pkg),
        ok = register_empty('Nested'),
        beamtalk_image_fake_class:start(Name, Info, beamtalk_image_fake_host)
    end),
    %% `Nested' already runs, so the nested registration starts nothing more.
    _ = beamtalk_image_fake_host:class('Nested', none, [], []),
    ?assertEqual(ok, register_empty('P')),
    ?assertEqual([conformingClasses, requiredMethods], beamtalk_xref:defined_selectors('P', true)),
    ?assert(beamtalk_extensions:has('P', extra)),
    ?assertEqual(['Nested', 'P'], lists:sort(beamtalk_protocol_registry:all_protocol_names())).

register_empty(Name) ->
    beamtalk_protocol_registry:register_protocol(#{name => Name, required_methods => []}).

%% ---- Start-up, redefinition, patches ----------------------------------------------------------------------

malformed_rows_fail_the_start_of_a_class(_Config) ->
    Info = #{instance_methods => [m], method_xref => [#{selector => m, line => 1}, #{line => 2}]},
    ?assertMatch({error, {start_up, error, badarg, _}}, beamtalk_image_fake_host:start_class('C', Info)),
    ?assertEqual(undefined, beamtalk_image_fake_host:whereis_class('C')),
    ?assertEqual([], beamtalk_xref:defined_selectors('C', false)),
    %% And the index goes on.
    Mended = Info#{method_xref := [#{selector => m, line => 1}]},
    ?assertMatch({ok, _}, beamtalk_image_fake_host:start_class('C', Mended)),
    ?assertEqual([m], beamtalk_xref:defined_selectors('C', false)).

redefinition_says_anew_what_a_class_uses(_Config) ->
    ok = beamtalk_image_fake_host:option(traits, true),
    _ = beamtalk_image_fake_host:class('C', #{uses => ['T2', 'T1']}),
    ?assertEqual(['T2', 'T1'], beamtalk_protocol_registry:used_protocols('C')),
    ?assertEqual(['C'], beamtalk_protocol_registry:users_of('T1')),
    ok = beamtalk_image_fake_host:redefine('C', #{uses => ['T1']}),
    ?assertEqual([], beamtalk_protocol_registry:users_of('T2')),
    ok = beamtalk_image_fake_host:redefine('C', #{}),
    ?assertEqual([], beamtalk_protocol_registry:used_protocols('C')),
    ?assertEqual([], beamtalk_protocol_registry:users_of('T1')).

live_patch_in_the_class_process_is_seen_on_return(_Config) ->
    Source = <<"m => self n">>,
    ok = beamtalk_image_fake_host:sends(Source, {ok, [
        #{selector => <<"n">>, line => 1, recv => self, target_module => <<>>}
    ]}),
    _ = beamtalk_image_fake_host:class('C', #{
        instance_methods => [other], method_xref => [#{selector => other, line => 1}]
    }),
    ok = beamtalk_protocol_registry:register_protocol(
        #{name => 'P', required_methods => [#{selector => m, arity => 0}]}),
    ?assertNot(beamtalk_protocol_registry:conforms_to('C', 'P')),
    ok = beamtalk_image_fake_host:patch('C', false, m, Source),
    ?assertMatch(#{provenance := put_method, source_status := indexed},
        beamtalk_xref:method_info('C', false, m)),
    ?assertMatch([#{owner := 'C', method := m, recv_kind := self_recv}], beamtalk_xref:senders_of(n)),
    ?assert(beamtalk_protocol_registry:conforms_to('C', 'P')).

failing_compiler_leaves_a_row_without_sends(_Config) ->
    Failures = [
        fun(_) -> {error, []} end,
        fun(_) -> error(undef) end,
        fun(_) -> exit({timeout, compiler}) end,
        fun(_) -> throw(garbage) end
    ],
    lists:foreach(
        fun(Failure) ->
            ok = beamtalk_image_fake_host:script(find_sends, Failure),
            ?assertMatch(#{sends := [], source_status := indexed},
                beamtalk_xref:build_method_entry(false, m, <<"m => self n">>, indexed, put_method))
        end,
        Failures
    ),
    ?assertEqual(4, length(beamtalk_image_fake_host:calls(find_sends))),
    %% A function without text, or no text at all: the compiler is not asked.
    ok = beamtalk_image_fake_host:forget_counts(),
    Textless = [{<<"m => self n">>, unindexed_runtime_fun}, {<<>>, indexed}, {undefined, indexed}],
    [?assertMatch(#{sends := []}, beamtalk_xref:build_method_entry(false, m, Text, Status, put_method))
        || {Text, Status} <- Textless],
    ?assertEqual([], beamtalk_image_fake_host:calls(find_sends)).

%% 8.2-13: neither a selector nor a module is lost because nobody spells it yet, and indexing makes no atom.
send_of_an_unknown_name_is_found_once_an_atom_spells_it(_Config) ->
    Unique = integer_to_binary(erlang:unique_integer([positive])),
    Selector = <<"neverSentBefore", Unique/binary>>,
    Module = <<"never_called_before_", Unique/binary>>,
    Source = <<"m => self something">>,
    ok = beamtalk_image_fake_host:sends(Source, {ok, [
        #{selector => Selector, line => 3, recv => self, target_module => <<>>},
        #{selector => <<"m">>, line => 4, recv => erlang_ffi, target_module => Module}
    ]}),
    _ = beamtalk_image_fake_host:class('C', none, [], []),
    ok = beamtalk_image_fake_host:patch('C', false, m, Source),
    ?assertError(badarg, binary_to_existing_atom(Selector)),
    ?assertError(badarg, binary_to_existing_atom(Module)),
    ?assertMatch([#{owner := 'C', method := m, line := 3, recv_kind := self_recv}],
        beamtalk_xref:senders_of(binary_to_atom(Selector))),
    ?assertMatch([#{owner := 'C', method := m, line := 4}],
        beamtalk_xref:callers_of_native_module(binary_to_atom(Module))),
    %% The same method without them: nothing of the text stays behind.
    ok = beamtalk_image_fake_host:sends(Source, {ok, []}),
    ok = beamtalk_image_fake_host:patch('C', false, m, Source),
    ?assertEqual([], beamtalk_xref:senders_of(binary_to_existing_atom(Selector))),
    ?assertEqual([], beamtalk_xref:callers_of_native_module(binary_to_existing_atom(Module))).

missing_callback_is_its_default_and_a_deeper_one_is_an_error(_Config) ->
    %% The fake host has no `class_source', so the default counts.
    ?assertEqual(undefined, beamtalk_image_host:class_source('C')),
    ?assertEqual(#{'$beamtalk_class' => 'Set', elements => [a, b]}, beamtalk_image_host:make_set([b, a, b])),
    ok = beamtalk_image_fake_host:script(home_dir, fun([]) -> beamtalk_image_nobody:home() end),
    ?assertError(undef, beamtalk_image_host:home_dir()),
    ok = beamtalk_image_fake_host:option(home, "/home/of/somebody"),
    ok = beamtalk_image_fake_host:unscript(home_dir),
    ?assertEqual("/home/of/somebody", beamtalk_image_host:home_dir()).

%% 8.2-12: a compiler on the code path counts, whether or not anybody has called it yet.
compiler_that_is_not_loaded_yet_is_asked(Config) ->
    Folder = proplists:get_value(priv_dir, Config),
    Forms = [
        {attribute, 1, module, beamtalk_compiler},
        {attribute, 1, export, [{find_all_sends_in_source, 1}]},
        {function, 1, find_all_sends_in_source, 1, [
            {clause, 1, [{var, 1, '_'}], [], [erl_parse:abstract(
                {ok, [#{selector => <<"length">>, line => 2, recv => self, target_module => <<>>}]}
            )]}
        ]}
    ],
    {ok, beamtalk_compiler, Binary} = compile:forms(Forms),
    ok = file:write_file(filename:join(Folder, "beamtalk_compiler.beam"), Binary),
    true = code:add_patha(Folder),
    ok = beamtalk_image_host:set_module(beamtalk_image_host_runtime),
    try
        ?assertEqual(false, code:is_loaded(beamtalk_compiler)),
        Entry = beamtalk_xref:build_method_entry(false, m, <<"m => self length">>, indexed, put_method),
        ?assertMatch(#{sends := [#{selector := length, line := 2, recv_kind := self_recv}]}, Entry)
    after
        true = code:del_path(Folder),
        _ = code:purge(beamtalk_compiler),
        true = code:delete(beamtalk_compiler),
        _ = code:purge(beamtalk_compiler),
        ok = beamtalk_image_host:set_module(beamtalk_image_fake_host)
    end.
