%% The extension registry through its public functions: what open classes promise to the dispatcher.
-module(beamtalk_extensions_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([find_sends/1]).
-export([
    registered_function_is_answered_as_registered/1,
    sides_of_one_name_do_not_meet/1,
    alternating_owners_are_remembered_once/1,
    chain_answers_the_first_level_that_has_the_selector/1,
    source_follows_the_entry/1,
    removal_takes_only_its_own_key/1,
    reads_beyond_the_row_limit_are_complete/1,
    registration_survives_a_dead_index/1,
    removal_exposes_the_local_row/1,
    late_answer_of_a_replaced_extension_is_dropped/1,
    registering_forgets_conformance_answers/1
]).

all() ->
    [Case || {Case, 1} <- ?MODULE:module_info(exports), Case =/= module_info,
        not lists:member(Case, [init_per_suite, end_per_suite, find_sends])].

init_per_suite(Config) ->
    {ok, _} = application:ensure_all_started(beamtalk_image),
    Config.

end_per_suite(_Config) ->
    ok.

init_per_testcase(_Case, Config) ->
    ok = beamtalk_image:clear(extensions),
    ok = beamtalk_image:clear(xref),
    ok = beamtalk_extensions:init(),
    Config.

end_per_testcase(_Case, _Config) ->
    stop_index(),
    ok = beamtalk_image_host:set_module(undefined),
    ok = beamtalk_image:clear(extensions),
    #{extensions := #{entries := 0, class_keys := 0, owners := 0, conflicts := 0}} = beamtalk_image:info(),
    ok.

registered_function_is_answered_as_registered(_Config) ->
    First = fun(_Args, _Self) -> first end,
    Second = fun(_Args, _Self, State) -> {second, State} end,
    ?assertEqual(not_found, beamtalk_extensions:lookup('Counter', greet)),
    ok = beamtalk_extensions:register('Counter', greet, First, pkg),
    ?assertEqual({ok, First, pkg}, beamtalk_extensions:lookup('Counter', greet)),
    ok = beamtalk_extensions:register('Counter', greet, Second, pkg),
    ?assertEqual({ok, Second, pkg}, beamtalk_extensions:lookup('Counter', greet)),
    ?assert(beamtalk_extensions:has('Counter', greet)),
    ?assertNot(beamtalk_extensions:has('Counter', bye)).

%% A2
sides_of_one_name_do_not_meet(_Config) ->
    Instance = fun(_, _) -> instance end,
    Class = fun(_, _) -> class end,
    ok = beamtalk_extensions:register('C', m, Instance, p1),
    ok = beamtalk_extensions:register('C', m, Instance, p2),
    ok = beamtalk_extensions:register('C class', m, Class, p1, <<"m => 1">>),
    ok = beamtalk_extensions:register('C class', m, Class, p2, <<"m => 1">>),
    ?assertEqual({ok, Instance, p2}, beamtalk_extensions:lookup('C', m)),
    ?assertEqual({ok, Class, p2}, beamtalk_extensions:lookup('C class', m)),
    ok = beamtalk_extensions:unregister('C', m, true),
    ?assertEqual(not_found, beamtalk_extensions:lookup('C class', m)),
    ?assertEqual(not_found, beamtalk_extensions:getSource('C class', m)),
    ?assertEqual({ok, Instance, p2}, beamtalk_extensions:lookup('C', m)),
    ?assertEqual([{'C', m, [p1, p2]}], beamtalk_extensions:conflicts()).

%% A6
alternating_owners_are_remembered_once(_Config) ->
    Fun = fun(_, _) -> ok end,
    [ok = beamtalk_extensions:register('C', m, Fun, Owner) || _ <- lists:seq(1, 50), Owner <- [zeta, alpha]],
    ?assertEqual([{'C', m, [alpha, zeta]}], beamtalk_extensions:conflicts()),
    ?assertEqual([{m, alpha}], beamtalk_extensions:list('C')),
    ?assertEqual([], beamtalk_extensions:extensions_by(zeta)),
    ok = beamtalk_extensions:unregister('C', m),
    ?assertEqual([], beamtalk_extensions:conflicts()).

chain_answers_the_first_level_that_has_the_selector(_Config) ->
    Fun = fun(_, _) -> ok end,
    ok = beamtalk_extensions:register('B', m, Fun, pkg),
    ok = beamtalk_extensions:register('Object', m, fun(_, _) -> other end, pkg),
    ?assertEqual({ok, 'B', Fun, pkg}, beamtalk_extensions:lookup_chain(['A', 'B', 'Object'], m)),
    ?assertEqual(not_found, beamtalk_extensions:lookup_chain(['A'], m)),
    ?assertEqual(not_found, beamtalk_extensions:lookup_chain([], m)),
    ?assertError(badarg, beamtalk_extensions:lookup_chain(['A' | 'B'], m)).

source_follows_the_entry(_Config) ->
    Fun = fun(_, _) -> ok end,
    ok = beamtalk_extensions:register('C', m, Fun, pkg, <<"m => 1">>),
    ?assertEqual({ok, <<"m => 1">>}, beamtalk_extensions:getSource('C', m)),
    ?assertEqual([{'C', m, <<"m => 1">>}], beamtalk_extensions:listAllWithSource()),
    ok = beamtalk_extensions:register('C', m, Fun, pkg),
    ?assertEqual(not_found, beamtalk_extensions:getSource('C', m)),
    ?assertEqual([], beamtalk_extensions:listAllWithSource()).

removal_takes_only_its_own_key(_Config) ->
    Fun = fun(_, _) -> ok end,
    Keys = [{'C', a}, {'C', b}, {'C class', a}, {'D', a}],
    [ok = beamtalk_extensions:register(Key, Selector, Fun, pkg) || {Key, Selector} <- Keys],
    ok = beamtalk_extensions:unregister('C', nothing_there),
    ?assertEqual(lists:sort(Keys), lists:sort(beamtalk_extensions:extensions_by(pkg))),
    ok = beamtalk_extensions:purge_class('C'),
    ?assertEqual([{'C class', a}, {'D', a}], lists:sort(beamtalk_extensions:extensions_by(pkg))).

reads_beyond_the_row_limit_are_complete(_Config) ->
    Fun = fun(_, _) -> ok end,
    Selectors = [list_to_atom("sel" ++ integer_to_list(N)) || N <- lists:seq(1, 1_500)],
    [ok = beamtalk_extensions:register('C', Selector, Fun, pkg) || Selector <- Selectors],
    ?assertEqual(lists:sort([{S, pkg} || S <- Selectors]), lists:sort(beamtalk_extensions:list('C'))),
    ?assertEqual(1_500, length(beamtalk_extensions:extensions_by(pkg))).

%% 8.1-6
registration_survives_a_dead_index(_Config) ->
    ?assertEqual(undefined, whereis(beamtalk_xref)),
    ok = beamtalk_extensions:register('C', m, fun(_, _) -> ok end, pkg, <<"m => self foo">>),
    ?assert(beamtalk_extensions:has('C', m)),
    ok = beamtalk_extensions:unregister('C', m).

%% A5, 8.2-5
removal_exposes_the_local_row(_Config) ->
    start_index(),
    Local = #{selector => m, line => 7, sends => [#{selector => local_send}]},
    ok = beamtalk_xref:register_class('C', [Local]),
    ok = beamtalk_extensions:register('C', m, fun(_, _) -> ok end, pkg),
    ?assertMatch(#{provenance := extension}, beamtalk_xref:method_info('C', false, m)),
    ?assertEqual([], beamtalk_xref:senders_of(local_send)),
    %% A redefinition, as the host does it, leaves the extension on top.
    ok = beamtalk_xref:purge_class('C'),
    ?assertEqual(undefined, beamtalk_xref:method_info('C', false, m)),
    ok = beamtalk_xref:register_class('C', [Local]),
    ?assertMatch(#{provenance := extension}, beamtalk_xref:method_info('C', false, m)),
    ok = beamtalk_extensions:unregister('C', m),
    ?assertMatch(#{provenance := class_body, line := 7}, beamtalk_xref:method_info('C', false, m)),
    ?assertMatch([#{owner := 'C', line := 7}], beamtalk_xref:senders_of(local_send)).

%% B5
late_answer_of_a_replaced_extension_is_dropped(_Config) ->
    start_index(),
    Test = self(),
    ok = beamtalk_image_host:set_module(?MODULE),
    persistent_term:put({?MODULE, compiler}, Test),
    ok = beamtalk_extensions:register('C', m, fun(_, _) -> ok end, pkg, <<"m => self old">>),
    Worker = receive {asked, Pid, <<"m => self old">>} -> Pid end,
    ok = beamtalk_extensions:register('C', m, fun(_, _) -> ok end, pkg, <<"m => self new">>),
    ?assertMatch(#{source_status := indexed}, beamtalk_xref:method_info('C', false, m)),
    Worker ! {answer, old_send},
    Again = receive {asked, Pid2, <<"m => self new">>} -> Pid2 end,
    ?assertEqual([], beamtalk_xref:senders_of(old_send)),
    Again ! {answer, new_send},
    ok = beamtalk_image:sync(),
    ?assertEqual([], beamtalk_xref:senders_of(old_send)),
    ?assertMatch([#{owner := 'C', method := m}], beamtalk_xref:senders_of(new_send)).

%% 8.1-8
registering_forgets_conformance_answers(_Config) ->
    ok = beamtalk_protocol_registry:register_protocol(
        #{name => 'P', required_methods => [], required_class_methods => [#{selector => make, arity => 0}],
            module => ?MODULE}),
    ?assertNot(beamtalk_protocol_registry:conforms_to('Loose', 'P')),
    ok = beamtalk_extensions:register('Loose class', make, fun(_, _) -> ok end, pkg),
    ?assert(beamtalk_protocol_registry:conforms_to('Loose', 'P')),
    ok = beamtalk_extensions:unregister('Loose', make, true),
    ?assertNot(beamtalk_protocol_registry:conforms_to('Loose', 'P')),
    ok = beamtalk_protocol_registry:unregister_protocol(?MODULE).

%% ---- The compiler of the host, one answer at a time ----------------------------------------------------------

find_sends(Source) ->
    persistent_term:get({?MODULE, compiler}) ! {asked, self(), Source},
    receive
        {answer, Selector} ->
            {ok, [#{selector => atom_to_binary(Selector), line => 1, recv => self, target_module => <<>>}]}
    end.

start_index() ->
    {ok, Pid} = beamtalk_xref:start_link(),
    unlink(Pid).

stop_index() ->
    case whereis(beamtalk_xref) of
        undefined -> ok;
        Pid -> gen_server:stop(Pid)
    end.
