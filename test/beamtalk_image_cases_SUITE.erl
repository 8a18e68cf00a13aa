%% Faults that people met in live images and their indexes, one small case each, named by its number.
-module(beamtalk_image_cases_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([
    a1_override_overwrites_instead_of_shadowing/1,
    a2_class_side_is_an_afterthought_in_the_key/1,
    a5_reload_of_the_class_touches_a_foreign_owner/1,
    a6_last_writer_wins_silently/1,
    b1_reindexing_adds_without_deleting/1,
    b2_deleting_goes_by_the_target/1,
    b5_partial_update_is_taken_for_a_full_one/1,
    c8_answer_is_stale/1,
    c10_users_index_is_out_of_step/1,
    h1_state_is_tied_to_one_module_load/1,
    h2_bad_call_poisons_the_next/1,
    h4_native_calls_block_or_leak/1,
    h5_state_is_tied_to_a_mortal_process/1
]).
-export([on_node_h1/0]).

all() ->
    [
        a1_override_overwrites_instead_of_shadowing,
        a2_class_side_is_an_afterthought_in_the_key,
        a5_reload_of_the_class_touches_a_foreign_owner,
        a6_last_writer_wins_silently,
        b1_reindexing_adds_without_deleting,
        b2_deleting_goes_by_the_target,
        b5_partial_update_is_taken_for_a_full_one,
        c8_answer_is_stale,
        c10_users_index_is_out_of_step,
        h1_state_is_tied_to_one_module_load,
        h2_bad_call_poisons_the_next,
        h4_native_calls_block_or_leak,
        h5_state_is_tied_to_a_mortal_process
    ].

init_per_suite(Config) ->
    #{level := Level} = logger:get_primary_config(),
    ok = logger:set_primary_config(level, none),
    {ok, _} = application:ensure_all_started(beamtalk_image),
    [{log_level, Level} | Config].

end_per_suite(Config) ->
    ok = logger:set_primary_config(level, proplists:get_value(log_level, Config)).

init_per_testcase(_Case, Config) ->
    ok = beamtalk_image_abuse_host:start(),
    ok = beamtalk_image_abuse_app:run(),
    Config.

end_per_testcase(_Case, _Config) ->
    ok = beamtalk_image:sync(),
    ok = beamtalk_image_abuse_app:halt_and_wait(),
    ok = beamtalk_image_abuse_host:stop(),
    #{extensions := #{entries := 0, conflicts := 0}, xref := #{methods := 0},
        protocols := #{protocols := 0, users := 0}} = beamtalk_image:info(),
    ok.

%% ---- A
%% -------------------------------------------------------------------------------------------------------

a1_override_overwrites_instead_of_shadowing(_Config) ->
    %% The class's own method answers 1, the extension 2; a dispatcher asks the registry first.
    Send = fun(Selector) ->
        case beamtalk_extensions:lookup('C', Selector) of
            {ok, Fun, p} -> Fun([], self());
            not_found ->
                case beamtalk_xref:method_info('C', false, Selector) of
                    undefined -> does_not_understand;
                    #{provenance := class_body} -> 1
                end
        end
    end,
    ok = beamtalk_xref:register_class('C', [#{selector => m, line => 1, sends => [#{selector => local}]}]),
    ?assertEqual(1, Send(m)),
    ok = beamtalk_extensions:register('C', m, fun(_, _) -> 2 end, p, <<"extended">>),
    ok = beamtalk_image:sync(),
    ?assertEqual(2, Send(m)),
    ?assertMatch(#{provenance := extension}, beamtalk_xref:method_info('C', false, m)),
    ok = beamtalk_extensions:unregister('C', m),
    ?assertEqual(1, Send(m)),
    ?assertMatch([#{owner := 'C'}], beamtalk_xref:senders_of(local)),
    ?assertEqual([], beamtalk_xref:senders_of(extended)),
    %% The second removal is of the local method, the third finds nothing.
    ok = beamtalk_xref:purge_method('C', false, m),
    ?assertEqual(does_not_understand, Send(m)),
    ok = beamtalk_extensions:unregister('C', m),
    ok = beamtalk_xref:purge_method('C', false, m),
    ?assertEqual([], beamtalk_xref:implementors_of(m)).

a2_class_side_is_an_afterthought_in_the_key(_Config) ->
    Fun = fun(Side) -> fun(_, _) -> Side end end,
    [begin
        ok = beamtalk_extensions:register(Key, m, Fun(Key), other, <<"other">>),
        ok = beamtalk_extensions:register(Key, m, Fun(Key), p, atom_to_binary(Sent))
    end || {Key, Sent} <- [{'C', sent_by_instance}, {'C class', sent_by_class}]],
    ok = beamtalk_image:sync(),
    [begin
        {ok, Found, p} = beamtalk_extensions:lookup(Key, m),
        ?assertEqual(Key, Found([], self()))
    end || Key <- ['C', 'C class']],
    Instance = instance_side(),
    ok = beamtalk_extensions:unregister('C', m, true),
    ?assertEqual(not_found, beamtalk_extensions:lookup('C class', m)),
    ?assertEqual(not_found, beamtalk_extensions:getSource('C class', m)),
    ?assertEqual(undefined, beamtalk_xref:method_info('C class', false, m)),
    ?assertEqual([], beamtalk_xref:senders_of(sent_by_class)),
    ?assertEqual([{'C', false}], beamtalk_xref:implementors_of(m)),
    ?assertEqual([{'C', m, [other, p]}], beamtalk_extensions:conflicts()),
    ?assertEqual([{'C', m}], beamtalk_extensions:extensions_by(p)),
    ?assertEqual(Instance, instance_side()).

instance_side() ->
    {beamtalk_extensions:lookup('C', m), beamtalk_extensions:getSource('C', m), beamtalk_extensions:list('C'),
        beamtalk_extensions:extenders_of('C'), beamtalk_xref:method_info('C', false, m),
        beamtalk_xref:senders_of(sent_by_instance)}.

a5_reload_of_the_class_touches_a_foreign_owner(_Config) ->
    Fun = fun(_, _) -> extended end,
    ok = beamtalk_extensions:register('C', m, Fun, p, <<"extended">>),
    ok = beamtalk_extensions:register('C', other, Fun, q),
    ok = beamtalk_image:sync(),
    [begin
        ok = beamtalk_xref:purge_class('C'),
        ok = beamtalk_xref:register_class('C', Rows),
        ok = beamtalk_protocol_registry:invalidate_conforms_cache()
    end || Rows <- [[#{selector => n, line => 1}], [], [#{selector => n, line => 3},
        #{selector => m, line => 4, sends => [#{selector => local}]}]]],
    ?assertEqual({ok, Fun, p}, beamtalk_extensions:lookup('C', m)),
    ?assertEqual([{m, p}, {other, q}], lists:sort(beamtalk_extensions:list('C'))),
    ?assertEqual([], beamtalk_extensions:conflicts()),
    ?assertMatch(#{provenance := extension}, beamtalk_xref:method_info('C', false, m)),
    ?assertMatch(#{provenance := extension}, beamtalk_xref:method_info('C', false, other)),
    ok = beamtalk_extensions:register('C', m, Fun, p, <<"extended_again">>),
    ok = beamtalk_image:sync(),
    ?assertMatch([#{method := m}], beamtalk_xref:senders_of(extended_again)),
    ?assertEqual([], beamtalk_xref:senders_of(extended)),
    ok = beamtalk_extensions:unregister('C', m),
    ?assertMatch(#{provenance := class_body, line := 4}, beamtalk_xref:method_info('C', false, m)),
    ?assertMatch([#{method := m, line := 4}], beamtalk_xref:senders_of(local)).

a6_last_writer_wins_silently(_Config) ->
    Load = fun(Owner) -> ok = beamtalk_extensions:register('C', m, fun(_, _) -> Owner end, Owner,
        atom_to_binary(Owner)) end,
    Wins = fun(Owner) ->
        {ok, Fun, Owner} = beamtalk_extensions:lookup('C', m),
        ?assertEqual(Owner, Fun([], self())),
        ?assertEqual({ok, atom_to_binary(Owner)}, beamtalk_extensions:getSource('C', m)),
        ?assertEqual([{m, Owner}], beamtalk_extensions:list('C'))
    end,
    Load(p1),
    ?assertEqual([], beamtalk_extensions:conflicts()),
    [begin
        Load(Owner),
        Wins(Owner),
        ?assertEqual([{'C', m, [p1, p2]}], beamtalk_extensions:conflicts()),
        ?assertEqual([], beamtalk_extensions:extensions_by(Other))
    end || _ <- lists:seq(1, 20), {Owner, Other} <- [{p2, p1}, {p1, p2}]],
    Load(p1),
    Wins(p1).

%% ---- B
%% -------------------------------------------------------------------------------------------------------

b1_reindexing_adds_without_deleting(_Config) ->
    Load = fun(Sends) -> ok = beamtalk_xref:register_class('C', [#{selector => m, line => 1,
        sends => Sends}]) end,
    Load([#{selector => a, line => 3}]),
    ?assertMatch([#{line := 3}], beamtalk_xref:senders_of(a)),
    Load([#{selector => a, line => 9}]),
    ?assertMatch([#{line := 9}], beamtalk_xref:senders_of(a)),
    Load([]),
    ?assertEqual([], beamtalk_xref:senders_of(a)).

b2_deleting_goes_by_the_target(_Config) ->
    ok = beamtalk_xref:register_class('D', [#{selector => x, line => 1, sends => [#{selector => m,
        line => 2}],
        references => [#{class => 'C'}]}]),
    Own = [#{selector => m, line => 1, sends => [#{selector => outgoing}], references => [#{class => 'D'}]}],
    ok = beamtalk_xref:register_class('C', Own),
    Sender = beamtalk_xref:senders_of(m),
    ?assertMatch([#{owner := 'D', method := x, line := 2}], Sender),
    ok = beamtalk_xref:purge_class('C'),
    ok = beamtalk_xref:register_class('C', Own),
    ?assertEqual(Sender, beamtalk_xref:senders_of(m)),
    ?assertEqual([{'C', false}], beamtalk_xref:implementors_of(m)),
    ok = beamtalk_xref:purge_method('C', false, m),
    ?assertEqual(Sender, beamtalk_xref:senders_of(m)),
    ?assertMatch([#{owner := 'D'}], beamtalk_xref:references_to('C')),
    ?assertEqual([], beamtalk_xref:senders_of(outgoing)),
    ?assertEqual([], beamtalk_xref:references_to('D')),
    ?assertEqual([], beamtalk_xref:implementors_of(m)).

b5_partial_update_is_taken_for_a_full_one(_Config) ->
    ok = beamtalk_xref:register_class('C', [#{selector => p, line => 1, sends => [#{selector => a}]},
        #{selector => q, line => 5, sends => [#{selector => b}]}]),
    %% An extension whose text is still being read when another takes its place.
    ok = beamtalk_image_abuse_host:close_gate(find_sends, [<<"late">>]),
    ok = beamtalk_extensions:register('C', ext, fun() -> ok end, pkg, <<"late">>),
    Reader = beamtalk_image_abuse_host:wait_at_gate(),
    ok = beamtalk_xref:put_method('C', false, p, #{line => 1, sends => [#{selector => c}],
        provenance => put_method}),
    ok = beamtalk_extensions:register('C', ext, fun() -> ok end, pkg, <<"timely">>),
    ok = beamtalk_image_abuse_host:open_gate(Reader),
    ok = beamtalk_image:sync(),
    ?assertMatch([#{method := q, line := 5}], beamtalk_xref:senders_of(b)),
    ?assertEqual([], beamtalk_xref:senders_of(a)),
    ?assertMatch([#{method := p}], beamtalk_xref:senders_of(c)),
    ?assertEqual([], beamtalk_xref:senders_of(late)),
    ?assertMatch([#{method := ext}], beamtalk_xref:senders_of(timely)),
    %% And one that was taken out altogether.
    ok = beamtalk_image_abuse_host:close_gate(find_sends, [<<"late">>]),
    ok = beamtalk_extensions:register('C', ext, fun() -> ok end, pkg, <<"late">>),
    Again = beamtalk_image_abuse_host:wait_at_gate(),
    ok = beamtalk_extensions:unregister('C', ext),
    ok = beamtalk_image_abuse_host:open_gate(Again),
    ok = beamtalk_image:sync(),
    ?assertEqual([], beamtalk_xref:senders_of(late)),
    ?assertEqual(undefined, beamtalk_xref:method_info('C', false, ext)).

%% ---- C
%% -------------------------------------------------------------------------------------------------------

%% What the host does for each change stands in its step.
c8_answer_is_stale(_Config) ->
    Changed = fun() -> ok = beamtalk_protocol_registry:invalidate_conforms_cache() end,
    Define = fun(Provided) ->
        ok = beamtalk_protocol_registry:register_protocol(#{name => 'T', module => t_module,
            required_methods => [#{selector => m, arity => 0}], provided_methods => Provided})
    end,
    Row = #{line => 1, provenance => put_method},
    ok = beamtalk_image_abuse_host:add('S', none, [inherited]),
    ok = beamtalk_image_abuse_host:add('C', none, []),
    ok = beamtalk_xref:register_class('S', [#{selector => m, line => 1}]),
    ok = beamtalk_image_abuse_host:add('S', #{instance => [m]}),
    ok = beamtalk_xref:register_class('C', []),
    Define([]),
    Steps = [
        {as_it_was, false, fun() -> ok end},
        {method_added, true, fun() ->
            ok = beamtalk_image_abuse_host:add('C', #{instance => [m]}),
            ok = beamtalk_xref:put_method('C', false, m, Row),
            Changed()
        end},
        {method_removed, false, fun() ->
            ok = beamtalk_image_abuse_host:add('C', #{instance => []}),
            ok = beamtalk_xref:purge_method('C', false, m),
            Changed()
        end},
        {superclass_changed, true, fun() -> ok = beamtalk_image_abuse_host:add('C', #{super => 'S'}),
            Changed() end},
        {superclass_changed_back, false, fun() -> ok = beamtalk_image_abuse_host:add('C', #{super => none}),
            Changed() end},
        {extension_on_the_superclass, false, fun() ->
            ok = beamtalk_extensions:register('S class', m, fun() -> ok end, pkg)
        end},
        {added_again, true, fun() ->
            ok = beamtalk_image_abuse_host:add('C', #{instance => [m]}),
            ok = beamtalk_xref:put_method('C', false, m, Row),
            Changed()
        end},
        {provision_gained, false, fun() -> Define([#{selector => p, arity => 0}]) end},
        {provision_met, true, fun() ->
            ok = beamtalk_image_abuse_host:add('C', #{instance => [m, p]}),
            ok = beamtalk_xref:register_class('C',
                [#{selector => m, line => 1}, #{selector => p, line => 2}]),
            Changed()
        end},
        {class_removed, false, fun() ->
            ok = beamtalk_image_abuse_host:drop('C'),
            ok = beamtalk_image:class_removed('C', c_module)
        end},
        {class_defined_anew, true, fun() ->
            ok = beamtalk_image_abuse_host:add('C', none, [m, p]),
            ok = beamtalk_xref:register_class('C', [#{selector => m, line => 1}]),
            Changed()
        end},
        {protocol_removed, false, fun() -> ok = beamtalk_protocol_registry:unregister_protocol(t_module) end}
    ],
    [begin
        Change(),
        ?assertEqual({Step, Answer}, {Step, beamtalk_protocol_registry:conforms_to('C', 'T')}),
        ?assertEqual({Step, Answer}, {Step, beamtalk_protocol_registry:conforms_to('C', 'T')})
    end || {Step, Answer, Change} <- Steps],
    ?assertNot(beamtalk_protocol_registry:conforms_to('C', 'NoSuch')).

c10_users_index_is_out_of_step(_Config) ->
    Flattened = fun(Class, Module, Uses) ->
        %% As a class start or redefinition does it.
        Rows = [#{selector => own, line => 1} | [#{selector => provided, line => 2} || 'T' <- Uses]],
        ok = beamtalk_image_abuse_host:add(Class, none, [Selector || #{selector := Selector} <- Rows]),
        ok = beamtalk_xref:purge_class(Class),
        ok = beamtalk_xref:register_class(Class, Rows),
        ok = beamtalk_xref:set_provenance(Class, maps:from_list([{provided, 'T'} || 'T' <- Uses])),
        ok = beamtalk_protocol_registry:register_uses(Class, Module, Uses),
        ok = beamtalk_protocol_registry:invalidate_conforms_cache()
    end,
    Trait = fun() ->
        ok = beamtalk_protocol_registry:register_protocol(#{name => 'T', module => t_module,
            required_methods => [#{selector => own, arity => 0}],
                provided_methods => [#{selector => provided, arity => 0}]})
    end,
    Trait(),
    [Flattened(Class, Module, ['T']) || {Class, Module} <- [{'A', a_module}, {'B', b_module}]],
    Flattened('Unrelated', u_module, []),
    Users = fun() -> beamtalk_protocol_registry:users_of('T') end,
    ?assertEqual(['A', 'B'], Users()),
    [begin
        Reload(),
        ?assertEqual(['A', 'B'], Users()),
        ?assertEqual(['T'], beamtalk_protocol_registry:used_protocols('A'))
    end || Reload <- [Trait, fun() -> Flattened('A', a_module, ['T']) end, fun() ->
        Flattened('Unrelated', u_module, []) end,
        fun() -> ok = beamtalk_protocol_registry:unregister_protocol(t_module), Trait() end]],
    ?assertMatch(#{provenance := protocol, origin := 'T'}, beamtalk_xref:method_info('A', false, provided)),
    ?assert(beamtalk_protocol_registry:conforms_to('A', 'T')),
    Flattened('A', a_module, []),
    ?assertEqual(['B'], Users()),
    ?assertEqual(undefined, beamtalk_xref:method_info('A', false, provided)),
    ?assertNot(beamtalk_protocol_registry:conforms_to('A', 'T')),
    ?assert(beamtalk_protocol_registry:conforms_to('B', 'T')),
    ok = beamtalk_image_abuse_host:drop('B'),
    ok = beamtalk_image:class_removed('B', b_module),
    ?assertEqual([], Users()),
    ?assertEqual([], beamtalk_protocol_registry:used_protocols('B')),
    Trait(),
    ?assertEqual(['T'], beamtalk_protocol_registry:all_protocol_names()).

%% ---- H
%% -------------------------------------------------------------------------------------------------------

h1_state_is_tied_to_one_module_load(_Config) ->
    Peer = beamtalk_image_abuse_node:start(),
    try
        ok = beamtalk_image_abuse_node:call(Peer, ?MODULE, on_node_h1)
    after
        beamtalk_image_abuse_node:stop(Peer)
    end.

on_node_h1() ->
    ok = logger:set_primary_config(level, none),
    {ok, _} = application:ensure_all_started(beamtalk_image),
    ok = beamtalk_image_abuse_host:start(),
    ok = beamtalk_image_abuse_app:run(),
    fill(),
    Before = filled(),
    [begin
        _ = code:load_file(beamtalk_image_nif),
        ?assertEqual(Before, filled())
    end || _ <- [1, 2]],
    _ = code:purge(beamtalk_image_nif),
    ?assertEqual(Before, filled()),
    true = code:delete(beamtalk_image_nif),
    _ = code:purge(beamtalk_image_nif),
    ?assertEqual(Before, filled()),
    fill(),
    ?assertEqual(Before, filled()),
    ok.

h2_bad_call_poisons_the_next(_Config) ->
    fill(),
    Before = filled(),
    Deep = lists:foldl(fun(_, Inner) -> [Inner] end, [], lists:seq(1, 100_000)),
    Good = #{selector => m, line => 1},
    [begin
        ?assertError(_, Bad()),
        ?assertEqual(Before, filled())
    end || Bad <- [
        fun() -> beamtalk_xref:register_class('C', [Good | improper]) end,
        fun() -> beamtalk_xref:register_class('C', [Good, Good#{line => 1 bsl 80}]) end,
        fun() -> beamtalk_xref:register_class('C', [Good, Deep]) end,
        fun() -> beamtalk_xref:put_method('C', false, m, Good#{sends => Deep}) end,
        fun() -> beamtalk_extensions:register('C', ext, Deep, pkg) end,
        fun() -> beamtalk_extensions:register('C', ext, fun() -> ok end, pkg, <<1:7>>) end,
        fun() -> beamtalk_extensions:lookup_chain(Deep, m) end,
        fun() -> beamtalk_extensions:lookup_chain(['C' | 'D'], m) end,
        fun() -> beamtalk_protocol_registry:register_protocol(#{name => 'T', required_methods => [Deep]}) end,
        fun() -> beamtalk_protocol_registry:register_uses('C', [Deep]) end,
        fun() -> beamtalk_image_nif:xref_put_method('C', 1 bsl 64, m, Good) end,
        fun() -> apply(beamtalk_image_nif, extension_lookup, ['C']) end,
        fun() -> apply(beamtalk_image_nif, extension_lookup, ['C', m, extra]) end
    ]].

h4_native_calls_block_or_leak(_Config) ->
    Classes = [{list_to_atom("Many" ++ integer_to_list(N)), N} || N <- lists:seq(1, 5_000)],
    Selectors = [list_to_atom("sel" ++ integer_to_list(N)) || N <- lists:seq(1, 20)],
    Load = fun() ->
        [ok = beamtalk_xref:register_class(Class, [#{selector => Selector, line => N,
            sends => [#{selector => everywhere}]}
            || Selector <- Selectors]) || {Class, N} <- Classes]
    end,
    Test = self(),
    Ticker = spawn_link(fun() -> tick(Test, 0) end),
    Load(),
    ?assertEqual(100_000, length(beamtalk_xref:senders_of(everywhere))),
    ?assertEqual(5_000, length(beamtalk_xref:implementors_of(hd(Selectors)))),
    Ticker ! stop,
    %% Another process kept its pace.
    receive {ticks, Ticks} -> ?assert(Ticks > 10, Ticks) end,
    Held = fun() -> Load(), beamtalk_image_nif:allocated() end,
    First = Held(),
    [Held() || _ <- [1, 2]],
    Last = Held(),
    ?assert(abs(Last - First) < First div 50, {First, Last}),
    [ok = beamtalk_xref:forget_class(Class) || {Class, _} <- Classes],
    ?assert(beamtalk_image_nif:allocated() < First div 4, {First, beamtalk_image_nif:allocated()}).

tick(Test, Count) ->
    receive
        stop -> Test ! {ticks, Count}
    after 5 -> tick(Test, Count + 1)
    end.

h5_state_is_tied_to_a_mortal_process(_Config) ->
    fill(),
    Before = filled(),
    Stop = atomics:new(1, []),
    Readers = [spawn_monitor(fun() -> read(Stop, Before, 0) end) || _ <- lists:seq(1, 8)],
    Names = [beamtalk_xref | [Id || {Id, _, worker, _} <- supervisor:which_children(beamtalk_image_sup)]],
    [begin
        Pids = [whereis(Name) || Name <- lists:usort(Victims)],
        [exit(Pid, kill) || Pid <- Pids],
        back(lists:usort(Victims), Pids),
        ?assertEqual(Before, filled())
    end || One <- Names, Other <- Names, One =< Other, Victims <- [[One, Other]]],
    atomics:put(Stop, 1, 1),
    [receive {'DOWN', Monitor, process, Pid, Why} -> ?assertMatch({done, N} when N > 0, Why) end
        || {Pid, Monitor} <- Readers],
    ?assertEqual(Before, filled()).

read(Stop, Expected, Count) ->
    Expected = filled(),
    case atomics:get(Stop, 1) of
        1 -> exit({done, Count + 1});
        0 -> read(Stop, Expected, Count + 1)
    end.

back(Names, Pids) ->
    case [Name || {Name, Pid} <- lists:zip(Names, Pids), lists:member(whereis(Name), [undefined, Pid])] of
        [] -> ok;
        _ -> timer:sleep(5), back(Names, Pids)
    end.

fill() ->
    ok = beamtalk_image_abuse_host:add('C', none, [m]),
    ok = beamtalk_xref:register_class('C', [#{selector => m, line => 2, sends => [#{selector => s,
        recv_type => 'T'}],
        references => [#{class => 'D'}]}]),
    ok = beamtalk_extensions:register('C', ext, fun constant/0, p1),
    ok = beamtalk_extensions:register('C', ext, fun constant/0, p2, <<"s">>),
    ok = beamtalk_protocol_registry:register_protocol(
        #{name => 'T', module => t_module, required_methods => [#{selector => m, arity => 0}]}),
    ok = beamtalk_protocol_registry:register_uses('C', c_module, [{'T', <<"hash">>}]),
    ok = beamtalk_image:sync().

constant() -> constant.

filled() ->
    {
        beamtalk_extensions:lookup('C', ext), beamtalk_extensions:conflicts(),
            beamtalk_extensions:listAllWithSource(),
        [maps:remove(gen, Row) || Row <- lists:sort(beamtalk_xref:senders_of(s))],
            beamtalk_xref:implementors_of(m),
        beamtalk_xref:defined_selectors('C', false), length(beamtalk_xref:references_to('D')),
        beamtalk_protocol_registry:protocol_info('T'), beamtalk_protocol_registry:used_protocol_hashes('C'),
        beamtalk_protocol_registry:users_of('T'), beamtalk_protocol_registry:conforms_to('C', 'T')
    }.
