%% Many at once, very often and very much: what readers may never see, what must not grow, and what no call
%% may hold.
-module(beamtalk_image_stress_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([
    reader_sees_a_class_torn/1,
    reader_sees_half_a_redefinition/1,
    patch_hides_a_sibling/1,
    conflict_of_two_owners_is_lost/1,
    function_is_paired_with_another_owner/1,
    registration_of_a_neighbour_is_lost/1,
    index_disagrees_with_the_registry_after_a_race/1,
    late_answer_of_a_replaced_extension_is_indexed/1,
    conformance_answer_outlives_an_invalidation/1,
    chain_read_before_an_invalidation_is_remembered/1,
    unknown_names_become_atoms/1,
    memory_grows_with_rounds/1,
    call_holds_a_scheduler/1,
    largest_call_on_a_normal_scheduler_exceeds_its_budget/1
]).
-export([on_node_unknown_names/0, on_node_rounds/0, on_node_load/0]).

all() ->
    [
        reader_sees_a_class_torn,
        reader_sees_half_a_redefinition,
        patch_hides_a_sibling,
        conflict_of_two_owners_is_lost,
        function_is_paired_with_another_owner,
        registration_of_a_neighbour_is_lost,
        index_disagrees_with_the_registry_after_a_race,
        late_answer_of_a_replaced_extension_is_indexed,
        conformance_answer_outlives_an_invalidation,
        chain_read_before_an_invalidation_is_remembered,
        unknown_names_become_atoms,
        memory_grows_with_rounds,
        call_holds_a_scheduler,
        largest_call_on_a_normal_scheduler_exceeds_its_budget
    ].

init_per_suite(Config) ->
    #{level := Level} = logger:get_primary_config(),
    ok = logger:set_primary_config(level, error),
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
    ok.

%% ---- Atomicity
%% -----------------------------------------------------------------------------------------------

%% A version of the class carries its number in every line and has as many methods as the number says.
reader_sees_a_class_torn(_Config) ->
    ok = beamtalk_xref:register_class('K', version(1)),
    Ready = spawn_readers(4, fun() ->
        one_version([{M, Line} || #{owner := 'K', method := M,
            line := Line} <- beamtalk_xref:senders_of(common)]),
        one_version([{M, Line} || #{owner := 'K', method := M,
            line := Line} <- beamtalk_xref:references_to('R')]),
        one_version([{M, Line} || #{owner := 'K', method := M,
            line := Line} <- beamtalk_xref:callers_of_native_module(lists)]),
        one_version([{M, Line} || #{method := M, line := Line} <- beamtalk_xref:senders_of(common, 'K')]),
        %% Sizes 3 to 22 are one version each.
        Selectors = beamtalk_xref:defined_selectors('K', false),
        Selectors = lists:sort(lists:sublist(selectors(), length(Selectors))),
        true = length(Selectors) >= 3,
        [{'K', false}] = beamtalk_xref:implementors_of(hd(selectors()))
    end),
    for_a_while(fun(N) -> ok = beamtalk_xref:register_class('K', version(1 + N rem 60)) end),
    Ready().

%% What the host does on a redefinition: nothing or everything, never a part.
reader_sees_half_a_redefinition(_Config) ->
    ok = beamtalk_xref:register_class('K', version(1)),
    Ready = spawn_readers(4, fun() ->
        case [{M, Line} || #{method := M, line := Line} <- beamtalk_xref:senders_of(common)] of
            [] -> ok;
            Rows -> one_version(Rows)
        end
    end),
    for_a_while(fun(N) ->
        ok = beamtalk_xref:purge_class('K'),
        ok = beamtalk_xref:register_class('K', version(1 + N rem 60))
    end),
    Ready().

version(Version) ->
    [#{selector => Selector, line => Version,
        sends => [#{selector => common}, #{selector => reverse, recv_kind => erlang_ffi,
            target_module => lists}],
        references => [#{class => 'R'}]}
        || Selector <- lists:sublist(selectors(), size_of(Version))].

size_of(Version) -> 3 + Version rem 20.

selectors() ->
    [s00, s01, s02, s03, s04, s05, s06, s07, s08, s09, s10, s11, s12, s13, s14, s15, s16, s17, s18, s19, s20,
        s21, s22].

one_version([{_, Version} | _] = Rows) ->
    Expected = lists:sort([{Selector, Version} || Selector <- lists:sublist(selectors(), size_of(Version))]),
    Expected = lists:sort(Rows),
    ok.

patch_hides_a_sibling(_Config) ->
    ok = beamtalk_xref:register_class('K', [#{selector => p, line => 1, sends => [#{selector => a}]},
        #{selector => q, line => 1, sends => [#{selector => b}]}]),
    Ready = spawn_readers(4, fun() ->
        [#{method := q, line := 1}] = beamtalk_xref:senders_of(b),
        [p, q] = beamtalk_xref:defined_selectors('K', false),
        Sent = [Selector || Selector <- [a, c], Row <- beamtalk_xref:senders_of(Selector), p =:=
            maps:get(method, Row)],
        true = length(Sent) =< 2,
        #{line := Line} = beamtalk_xref:method_info('K', false, p),
        true = Line >= 1
    end),
    for_a_while(fun(N) ->
        [ok = beamtalk_xref:put_method('K', false, p, #{line => N, sends => [#{selector => Selector}]})
            || Selector <- [c, a]]
    end),
    Ready().

%% A6, contract 8.1-1: whoever comes second finds the first.
conflict_of_two_owners_is_lost(_Config) ->
    Keys = [{'K', list_to_atom("key" ++ integer_to_list(N))} || N <- lists:seq(1, 2_000)],
    at_once([fun() ->
        [ok = beamtalk_extensions:register(Class, Selector, fun() -> Owner end, Owner)
            || {Class, Selector} <- Keys]
    end || Owner <- [one, other]]),
    Expected = lists:sort([{Class, Selector, [one, other]} || {Class, Selector} <- Keys]),
    ?assertEqual(Expected, lists:sort(beamtalk_extensions:conflicts())),
    ByOwner = beamtalk_extensions:extensions_by(one) ++ beamtalk_extensions:extensions_by(other),
    ?assertEqual(lists:sort(Keys), lists:sort(ByOwner)).

function_is_paired_with_another_owner(_Config) ->
    Register = fun(Owner) ->
        ok = beamtalk_extensions:register('K', m, fun() -> Owner end, Owner, atom_to_binary(Owner))
    end,
    Register(one),
    Ready = spawn_readers(3, fun() ->
        {ok, Fun, Owner} = beamtalk_extensions:lookup('K', m),
        Owner = Fun(),
        {ok, 'K', Found, Of} = beamtalk_extensions:lookup_chain(['A', 'K'], m),
        Of = Found(),
        [{'K', m, Text}] = beamtalk_extensions:listAllWithSource(),
        true = lists:member(Text, [<<"one">>, <<"other">>]),
        [{m, _}] = beamtalk_extensions:list('K')
    end),
    at_once([fun() -> [Register(Owner) || _ <- lists:seq(1, 500)] end || Owner <- [one, other]]),
    Ready(),
    ?assertEqual([{'K', m, [one, other]}], beamtalk_extensions:conflicts()).

registration_of_a_neighbour_is_lost(_Config) ->
    Names = [list_to_atom("n" ++ integer_to_list(N)) || N <- lists:seq(1, 300)],
    at_once([
        fun() -> [ok = beamtalk_extensions:register('K', Name, fun() -> Name end, pkg) || Name <- Names] end,
        fun() -> [ok = beamtalk_extensions:register(Name, m, fun() -> Name end, pkg) || Name <- Names] end,
        fun() -> [ok = beamtalk_xref:put_method('K', true, Name, #{line => 1}) || Name <- Names] end,
        fun() -> [ok = beamtalk_xref:register_class(Name, [#{selector => own, line => 2}])
            || Name <- Names] end,
        fun() -> [ok = beamtalk_protocol_registry:register_uses(Name, ['P']) || Name <- Names] end,
        fun() ->
            [ok = beamtalk_protocol_registry:register_protocol(#{name => Name, module => m}) || Name <- Names]
        end
    ]),
    Sorted = lists:sort(Names),
    ?assertEqual([{Name, pkg} || Name <- Sorted], lists:sort(beamtalk_extensions:list('K'))),
    ?assertEqual(Sorted, beamtalk_xref:defined_selectors('K', true)),
    ?assertEqual(Sorted, beamtalk_xref:defined_selectors('K', false)),
    ?assertEqual([{Name, false} || Name <- Sorted], beamtalk_xref:implementors_of(own)),
    ?assertEqual([{Name, false} || Name <- Sorted], beamtalk_xref:implementors_of(m)),
    ?assertEqual(Sorted, beamtalk_protocol_registry:users_of('P')),
    ?assertEqual(Sorted, lists:sort(beamtalk_protocol_registry:all_protocol_names())),
    ok = beamtalk_protocol_registry:unregister_protocol(m),
    ?assertEqual([], beamtalk_protocol_registry:all_protocol_names()).

index_disagrees_with_the_registry_after_a_race(_Config) ->
    Keys = [{'K', list_to_atom("race" ++ integer_to_list(N))} || N <- lists:seq(1, 10)],
    Write = fun(Owner) ->
        [case rand:uniform(3) of
            1 -> ok = beamtalk_extensions:unregister(Class, Selector);
            2 -> ok = beamtalk_extensions:register(Class, Selector, fun() -> Owner end, Owner);
            3 -> ok = beamtalk_extensions:register(Class, Selector, fun() -> Owner end, Owner,
                atom_to_binary(Selector))
        end || _ <- lists:seq(1, 100), {Class, Selector} <- Keys]
    end,
    [begin
        at_once([fun() -> Write(Owner) end || Owner <- [one, other, third]]),
        ok = beamtalk_image:sync(),
        [begin
            Status =
                case {beamtalk_extensions:has(Class, Selector),
                    beamtalk_extensions:getSource(Class, Selector)} of
                    {false, not_found} -> undefined;
                    {true, not_found} -> unindexed_runtime_fun;
                    {true, {ok, _}} -> indexed
                end,
            Indexed =
                case beamtalk_xref:method_info(Class, false, Selector) of
                    undefined -> undefined;
                    #{provenance := extension, source_status := Is} -> Is
                end,
            ?assertEqual({Selector, Status}, {Selector, Indexed}),
            %% A source is its own name here, so a send is there exactly when there is a source.
            ?assertEqual(Status =:= indexed, beamtalk_xref:senders_of(Selector) =/= [])
        end || {Class, Selector} <- Keys]
    end || _ <- lists:seq(1, 4)],
    ok.

%% B5, many times and with more than one who answers.
late_answer_of_a_replaced_extension_is_indexed(_Config) ->
    Texts = [list_to_atom("answer" ++ integer_to_list(N)) || N <- lists:seq(1, 200)],
    beamtalk_image_abuse_host:replace(find_sends, fun([Source]) ->
        timer:sleep(rand:uniform(4) - 1),
        {ok, [#{selector => Source, line => 1, recv => self, target_module => <<>>}]}
    end),
    [begin
        ok = beamtalk_extensions:register('K', m, fun() -> Text end, pkg, atom_to_binary(Text)),
        {Version, sourced} = beamtalk_image_nif:extension_version('K', m),
        %% As a caller does who finds the queue full.
        spawn(fun() -> beamtalk_extensions:index_sends('K', m, Version) end)
    end || Text <- Texts],
    ok = beamtalk_image:sync(),
    timer:sleep(100),
    Last = lists:last(Texts),
    ?assertEqual([Last], [Text || Text <- Texts, beamtalk_xref:senders_of(Text) =/= []]),
    ?assertEqual(1, length(beamtalk_xref:senders_of(Last))).

%% ---- Conformance
%% ---------------------------------------------------------------------------------------------

%% Contract 4.4: after the invalidation has returned, no answer that was begun before it is served.
conformance_answer_outlives_an_invalidation(_Config) ->
    ok = beamtalk_image_abuse_host:add('C', none, []),
    ok = beamtalk_protocol_registry:register_protocol(
        #{name => 'P', module => p, required_methods => [#{selector => m, arity => 0}]}),
    Truth = atomics:new(1, []),
    beamtalk_image_abuse_host:replace(understands, fun(['C', m]) ->
        Now = atomics:get(Truth, 1) =:= 1,
        %% Slow enough to be overtaken.
        timer:sleep(rand:uniform(3) - 1),
        Now
    end),
    Ready = spawn_readers(4, fun() -> true = is_boolean(beamtalk_protocol_registry:conforms_to('C',
        'P')) end),
    Invalidate = [
        fun beamtalk_protocol_registry:invalidate_conforms_cache/0,
        fun() -> beamtalk_protocol_registry:register_protocol(#{name => 'Unrelated', module => u}) end,
        fun() -> beamtalk_protocol_registry:unregister_protocol(no_such_module) end,
        fun() -> beamtalk_extensions:register('Unrelated', m, fun() -> ok end, pkg) end,
        fun() ->
            ok = beamtalk_extensions:register('Unrelated', n, fun() -> ok end, pkg),
            beamtalk_extensions:unregister('Unrelated', n)
        end,
        fun() ->
            ok = beamtalk_extensions:register('Unrelated', n, fun() -> ok end, pkg),
            beamtalk_extensions:purge_class('Unrelated')
        end
    ],
    Stale = [{How, N} || N <- lists:seq(1, 400),
        How <- [1 + N div 2 rem length(Invalidate)],
        begin
            atomics:put(Truth, 1, N rem 2),
            ok = (lists:nth(How, Invalidate))(),
            Answers = [beamtalk_protocol_registry:conforms_to('C', 'P') || _ <- [1, 2]],
            Answers =/= [N rem 2 =:= 1, N rem 2 =:= 1]
        end],
    Ready(),
    ?assertEqual([], Stale).

%% The facts that an answer rests on are gathered after its stamp, the chain of superclasses included.
chain_read_before_an_invalidation_is_remembered(_Config) ->
    ok = beamtalk_image_abuse_host:add('C', 'Old', []),
    ok = beamtalk_image_abuse_host:add('Old', none, [m]),
    ok = beamtalk_image_abuse_host:add('New', none, []),
    ok = beamtalk_xref:register_class('Old', [#{selector => m, line => 1}]),
    ok = beamtalk_xref:register_class('New', []),
    ok = beamtalk_xref:register_class('C', []),
    ok = beamtalk_protocol_registry:register_protocol(
        #{name => 'P', module => p, required_methods => [#{selector => m, arity => 0}]}),
    [begin
        ok = beamtalk_image_abuse_host:add('C', #{super => 'Old'}),
        ok = beamtalk_protocol_registry:invalidate_conforms_cache(),
        ok = beamtalk_image_abuse_host:close_gate(Function, Args),
        {Early, Monitor} = spawn_monitor(fun() -> exit({answer, beamtalk_protocol_registry:conforms_to('C',
            'P')}) end),
        Early = beamtalk_image_abuse_host:wait_at_gate(),
        ok = beamtalk_image_abuse_host:add('C', #{super => 'New'}),
        ok = beamtalk_protocol_registry:invalidate_conforms_cache(),
        ok = beamtalk_image_abuse_host:open_gate(Early),
        receive {'DOWN', Monitor, process, Early, {answer, Answer}} -> ?assert(is_boolean(Answer)) end,
        ?assertEqual({Function, false}, {Function, beamtalk_protocol_registry:conforms_to('C', 'P')})
    end || {Function, Args} <- [{whereis_class, ['C']}, {superclass_row, ['C']}, {whereis_class, ['Old']},
        {superclass_row, ['Old']}]],
    ok.

%% ---- Levels
%% --------------------------------------------------------------------------------------------------

%% Contract 0.4-5
unknown_names_become_atoms(_Config) ->
    ok = on_node(on_node_unknown_names).

on_node_unknown_names() ->
    prepare_node(),
    Batch = 1_000,
    beamtalk_image_abuse_host:replace(find_sends, fun([Source]) ->
        From = binary_to_integer(Source),
        {ok, [#{selector => <<"unknown selector ", (integer_to_binary(N))/binary>>, line => 1, recv => other,
            target_module => <<"unknown module ", (integer_to_binary(N))/binary>>}
            || N <- lists:seq(From, From + Batch - 1)]}
    end),
    Round = fun(From) ->
        Entry = beamtalk_xref:build_method_entry(false, m, integer_to_binary(From), indexed, put_method),
        Batch = length(maps:get(unresolved_sends, Entry)),
        [] = maps:get(sends, Entry),
        ok = beamtalk_xref:put_method('C', false, m, Entry),
        ok = beamtalk_extensions:register('C', ext, fun() -> ok end, pkg, integer_to_binary(From)),
        ok = beamtalk_image:sync(),
        [] = beamtalk_xref:senders_of(known),
        #{indexed := []} = beamtalk_xref:senders_of_bt(known),
        #{indexed := []} = beamtalk_xref:all_sends_bt(),
        #{indexed := []} = beamtalk_xref:all_sent_selectors_bt(),
        [] = beamtalk_xref:callers_of_native_module(known),
        ok
    end,
    beamtalk_image_abuse_host:add('C', none, [m]),
    ok = Round(0),
    Before = erlang:system_info(atom_count),
    #{xref := #{unresolved_sends := Held}} = beamtalk_image:info(),
    ?assert(Held >= Batch),
    Starts = lists:seq(Batch, 200_000, Batch),
    [ok = Round(From) || From <- Starts],
    ?assertEqual(Before, erlang:system_info(atom_count)),
    %% Such a send is found as soon as somebody spells its name.
    Name = binary_to_atom(<<"unknown selector ", (integer_to_binary(lists:last(Starts)))/binary>>),
    ?assertMatch([_ | _], beamtalk_xref:senders_of(Name)),
    ok.

%% A million rounds of registering, asking and taking out, a third for each registry.
memory_grows_with_rounds(_Config) ->
    ok = on_node(on_node_rounds).

on_node_rounds() ->
    prepare_node(),
    Definition = #{name => 'P', module => p_module, required_methods => [#{selector => m, arity => 0}]},
    Entries = [#{selector => m, line => 1, sends => [#{selector => a}], references => [#{class => 'R'}],
        unresolved_sends => [#{selector => <<"no such selector">>}]}],
    Registries = [
        fun(N) ->
            ok = beamtalk_extensions:register('C', m, fun() -> N end, pkg),
            {ok, _, pkg} = beamtalk_extensions:lookup('C', m),
            ok = beamtalk_extensions:unregister('C', m)
        end,
        fun(_) ->
            ok = beamtalk_xref:register_class('Indexed', Entries),
            [_] = beamtalk_xref:senders_of(a),
            ok = beamtalk_xref:forget_class('Indexed')
        end,
        fun(_) ->
            ok = beamtalk_protocol_registry:register_protocol(Definition),
            #{name := 'P'} = beamtalk_protocol_registry:protocol_info('P'),
            ok = beamtalk_protocol_registry:unregister_protocol(p_module)
        end
    ],
    Rounds = 1_000_000 div 3 div 10,
    Levels = [begin
        at_once([fun() -> [Registry(N) || N <- lists:seq(1, Rounds)], ok end || Registry <- Registries]),
        level()
    end || _ <- lists:seq(1, 10)],
    %% The first tenth fills caches and carriers; from then on nothing may be added.
    [First | Later] = tl(Levels),
    [begin
        Growth = element(Place, lists:last(Later)) - element(Place, First),
        ?assert(Growth < Allowed, {What, Growth, Levels})
    end || {Place, What, Allowed} <- [{1, total, 4_000_000}, {2, allocated, 100_000}, {3, atoms, 1}]],
    #{extensions := #{entries := 0}, xref := #{methods := 0},
        protocols := #{protocols := 0}} = beamtalk_image:info(),
    ok.

level() ->
    [erlang:garbage_collect(Pid) || Pid <- processes()],
    {erlang:memory(total), beamtalk_image_nif:allocated(), erlang:system_info(atom_count)}.

%% ---- Schedulers
%% ----------------------------------------------------------------------------------------------

-define(CLASSES, 5_000).
-define(METHODS, 20).
%% Milliseconds. The budget is one; a busy machine takes a scheduler's thread away for several.
-define(LONG, 10).
-define(ATTEMPTS, 12).

%% H4: 5,000 classes are loaded and asked about meanwhile. On a busy machine the system takes threads away
%% from the VM, and
%% a process that makes no native call shows by how much. What it does differs between attempts; what a call
%% does to a
%% scheduler does not. So one attempt in which no caller was held longer than that process shows that no call
%% is long.
call_holds_a_scheduler(_Config) ->
    {Seen, Attempts} = on_node(on_node_load),
    ct:pal("long schedules in ms, {number, longest} of a process that computes alone and of callers: ~p",
        [[{{length(Alone), lists:max([0 | Alone])}, Callers} || {Alone, Callers} <- Attempts]]),
    ?assert(Seen >= ?LONG, Seen),
    ?assertMatch([{_, []} | _], Attempts).

on_node_load() ->
    prepare_node(),
    %% Ready made and off heap, so that the work measured is the registry's.
    [persistent_term:put({class, N}, {class(N), entries(N)}) || N <- lists:seq(1, ?CLASSES)],
    %% Something that does hold a scheduler is seen.
    {_, Held} = watch(fun() -> hold_a_scheduler(4 * ?LONG) end),
    Attempts = attempts(?ATTEMPTS),
    #{xref := #{classes := ?CLASSES, methods := 100_000}} = beamtalk_image:info(),
    {lists:max([0 | Held]), Attempts}.

attempts(0) ->
    [];
attempts(Left) ->
    ok = beamtalk_image:clear(xref),
    {Alone, Callers} = watch(fun load_and_ask/0),
    case [Time || Time <- Callers, Time > lists:max([0 | Alone])] of
        [] -> [{Alone, []}];
        Longer -> later(attempts(Left - 1), {Alone, Longer})
    end.

%% A quiet attempt goes first.
later([{_, []} | _] = Quiet, Noisy) -> Quiet ++ [Noisy];
later(Noisy, Earlier) -> [Earlier | Noisy].

load_and_ask() ->
    Loaded = atomics:new(1, []),
    at_once([
        fun() ->
            [begin
                {Class, Entries} = persistent_term:get({class, N}),
                ok = beamtalk_xref:register_class(Class, Entries),
                ok = beamtalk_xref:put_method(Class, false, hd(selectors()), hd(Entries)),
                ok = beamtalk_extensions:register(Class, ext, fun hold_nothing/0, pkg),
                ok = beamtalk_extensions:unregister(Class, ext),
                atomics:put(Loaded, 1, N)
            end || N <- lists:seq(1, ?CLASSES)],
            ok
        end,
        fun() -> ask(Loaded) end
    ]).

hold_nothing() -> ok.

%% Design 4: one millisecond, for whatever input. Each call is timed often, and the machine spares it once.
largest_call_on_a_normal_scheduler_exceeds_its_budget(_Config) ->
    Names = [list_to_atom("wide" ++ integer_to_list(N)) || N <- lists:seq(1, 3_000)],
    Sends = fun(Number) -> [#{selector => wide, line => Line} || Line <- lists:seq(1, Number)] end,
    [begin
        ok = beamtalk_xref:register_class('Wide', [#{selector => Name, line => 1}
            || Name <- lists:sublist(Names, Size)]),
        ok = beamtalk_xref:put_method('Wide', true, sender, #{line => 1, sends => Sends(Size),
            references => [#{class => 'R', line => Line} || Line <- lists:seq(1, Size)]}),
        [ok = beamtalk_extensions:register('Wide', Name, fun hold_nothing/0, pkg)
            || Name <- lists:sublist(Names, Size)],
        Members = [#{selector => Name, arity => 0} || Name <- lists:sublist(Names, Size)],
        Others = [#{selector => list_to_atom("other" ++ integer_to_list(N)), arity => 0}
            || N <- lists:seq(1, Size)],
        ok = beamtalk_protocol_registry:register_protocol(
            #{name => 'Parent', module => wide, required_methods => Members, provided_methods => Others}),
        ok = beamtalk_protocol_registry:register_protocol(
            #{name => 'Child', module => wide, required_methods => Others, extending => 'Parent'}),
        Source = binary:copy(<<"x">>, Size * 1_000),
        Entry = #{line => 1, sends => Sends(Size), unresolved_sends =>
            [#{selector => integer_to_binary(N), line => 1} || N <- lists:seq(1, Size)]},
        {open, Stamp} = beamtalk_image_nif:protocol_conformance('Wide', 'Child'),
        Calls = [
            {xref_senders, [wide, none]},
            {xref_references, ['R']},
            {xref_implementors, [hd(Names)]},
            {xref_selectors, ['Wide', false]},
            {xref_method, ['Wide', false, hd(Names)]},
            {xref_put_method, ['Wide', true, put, Entry]},
            {xref_purge_method, ['Wide', true, put]},
            {extension_register, ['Wide', sourced, fun hold_nothing/0, pkg, Source]},
            {extension_source, ['Wide', sourced]},
            {extension_list, ['Wide']},
            {extension_by_owner, [pkg]},
            {extension_lookup_chain, [lists:duplicate(min(Size, 1_000), 'Nothing'), m]},
            {protocol_conformance, ['Wide', 'Child']},
            {protocol_missing, ['Wide', 'Child', Stamp, lists:duplicate(min(Size, 100), 'Nothing')]}
        ],
        Times = [{Size, Function, fastest(Function, Args)} || {Function, Args} <- Calls],
        ct:pal("microseconds: ~p", [Times]),
        ?assertEqual([], [Slow || {_, _, Time} = Slow <- Times, Time > 1_000])
    end || Size <- [100, 990, 3_000]],
    ok = beamtalk_protocol_registry:unregister_protocol(wide).

fastest(Function, Args) ->
    lists:min([element(1, timer:tc(beamtalk_image_nif, Function, Args)) || _ <- lists:seq(1, 20)]).

ask(Loaded) ->
    case atomics:get(Loaded, 1) of
        ?CLASSES ->
            ok;
        0 ->
            ask(Loaded);
        Last ->
            {Class, [#{sends := [#{selector := Sent} | _]} | _]} = persistent_term:get({class, Last}),
            [_ | _] = beamtalk_xref:senders_of(Sent),
            [_ | _] = beamtalk_xref:implementors_of(hd(selectors())),
            ?METHODS = length(beamtalk_xref:defined_selectors(Class, false)),
            #{line := 1} = beamtalk_xref:method_info(Class, false, hd(selectors())),
            [_ | _] = beamtalk_xref:references_to(Class),
            _ = beamtalk_xref:senders_of(Sent, Class),
            _ = beamtalk_xref:callers_of_native_module(lists),
            not_found = beamtalk_extensions:lookup_chain([Class, 'Object'], no_such),
            false = beamtalk_protocol_registry:conforms_to(Class, 'NoSuch'),
            ask(Loaded)
    end.

class(N) -> list_to_atom("Class" ++ integer_to_list(N)).

entries(N) ->
    Sent = [list_to_atom("sent" ++ integer_to_list((N + K) rem 2_000)) || K <- lists:seq(1, 8)],
    [#{selector => Selector, line => 1, sends => [#{selector => S, line => 2} || S <- Sent],
        references => [#{class => class(N)}]}
        || Selector <- lists:sublist(selectors(), ?METHODS)].

%% The times that the VM reports for a process that only computes, and for all others.
watch(Work) ->
    Collector = spawn(fun() -> collect([]) end),
    Alone = spawn(fun() -> compute(0) end),
    Quiet = erlang:system_monitor(Collector, [{long_schedule, ?LONG}]),
    {Worker, Monitor} = spawn_monitor(Work),
    receive {'DOWN', Monitor, process, Worker, Why} -> normal = Why end,
    _ = erlang:system_monitor(Quiet),
    exit(Alone, kill),
    Collector ! {events, self()},
    receive
        {events, Events} -> {[Time || {Pid, Time} <- Events, Pid =:= Alone], [Time || {Pid, Time} <- Events,
            Pid =/= Alone]}
    end.

compute(N) -> compute(N + 1).

collect(Events) ->
    receive
        {monitor, Pid, long_schedule, Info} when is_pid(Pid) ->
            collect([{Pid, proplists:get_value(timeout, Info)} | Events]);
        {monitor, _Port, long_schedule, _} ->
            collect(Events);
        {events, Asker} ->
            Asker ! {events, Events}
    end.

%% Builds one huge tuple without a pause, ever larger until it takes long enough to be seen.
hold_a_scheduler(Milliseconds) ->
    hold_a_scheduler(Milliseconds, 1 bsl 20).

hold_a_scheduler(Milliseconds, Size) ->
    {Micros, _} = timer:tc(erlang, make_tuple, [Size, x]),
    erlang:garbage_collect(),
    case Micros > Milliseconds * 1_000 orelse Size >= (1 bsl 24) - 1 of
        true -> ok;
        false -> hold_a_scheduler(Milliseconds, min(2 * Size, (1 bsl 24) - 1))
    end.

%% ---- Means
%% ---------------------------------------------------------------------------------------------------

on_node(Function) ->
    Peer = beamtalk_image_abuse_node:start(),
    try
        beamtalk_image_abuse_node:call(Peer, ?MODULE, Function)
    after
        beamtalk_image_abuse_node:stop(Peer)
    end.

prepare_node() ->
    ok = logger:set_primary_config(level, error),
    {ok, _} = application:ensure_all_started(beamtalk_image),
    ok = beamtalk_image_abuse_host:start(),
    ok = beamtalk_image_abuse_app:run().

%% Readers that go on until the function answered here is called; it fails if one of them has.
spawn_readers(Number, Read) ->
    Stop = atomics:new(1, []),
    Readers = [spawn_monitor(fun() -> read(Stop, Read, 0) end) || _ <- lists:seq(1, Number)],
    fun() ->
        ok = atomics:put(Stop, 1, 1),
        [receive
            {'DOWN', Monitor, process, Pid, {done, Count}} -> ?assert(Count > 0);
            {'DOWN', Monitor, process, Pid, Why} -> error({reader, Why})
        end || {Pid, Monitor} <- Readers],
        ok
    end.

read(Stop, Read, Count) ->
    _ = Read(),
    case atomics:get(Stop, 1) of
        1 -> exit({done, Count + 1});
        0 -> read(Stop, Read, Count + 1)
    end.

%% Writes ahead of the readers, for two seconds and through all sixty versions at least.
for_a_while(Write) ->
    Priority = process_flag(priority, high),
    Until = erlang:monotonic_time(millisecond) + 2_000,
    ok = for_a_while(Write, Until, 1),
    _ = process_flag(priority, Priority),
    ok.

for_a_while(Write, Until, N) ->
    _ = Write(N),
    case N < 60 orelse erlang:monotonic_time(millisecond) < Until of
        true -> for_a_while(Write, Until, N + 1);
        false -> ok
    end.

%% Runs all of them at once and waits for all.
at_once(Works) ->
    Gate = make_ref(),
    Running = [spawn_monitor(fun() ->
        receive Gate -> _ = Work(), exit(done) end
    end) || Work <- Works],
    [Pid ! Gate || {Pid, _} <- Running],
    [receive {'DOWN', Monitor, process, Pid, Why} -> done = Why end || {Pid, Monitor} <- Running],
    ok.
