%% The protocol registry, point by point as the host relies on it (contract §4 and §9).
-module(beamtalk_protocol_registry_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2, log/2]).
-export([
    definition_comes_back_changed/1,
    redefinition_leaves_the_old_module_in_charge/1,
    nameless_term_is_stored/1,
    unregistering_takes_protocols_of_others/1,
    uses_outlive_their_module/1,
    class_object_is_not_started/1,
    class_object_is_started_in_vain/1,
    failing_class_object_fails_the_registration/1,
    class_start_that_calls_back_hangs/1,
    required_methods_are_out_of_order/1,
    missing_key_drops_inherited_requirements/1,
    extending_cycle_never_ends/1,
    unknown_name_is_no_empty_answer/1,
    unknown_protocol_is_conformed_to/1,
    empty_protocol_is_conformed_to_by_classes_only/1,
    instance_requirement_is_not_asked_of_the_host/1,
    class_requirement_is_looked_for_in_the_wrong_place/1,
    provided_methods_do_not_count/1,
    index_makes_a_negative_answer/1,
    positive_answer_needs_a_message/1,
    class_that_is_gone_conforms_by_its_rows/1,
    answer_through_an_exception_is_remembered/1,
    remembered_answer_is_asked_again/1,
    answer_survives_what_forgets_it/1,
    answer_is_forgotten_with_the_class_process/1,
    classes_of_a_protocol_are_incomplete/1,
    uses_index_loses_a_direction/1,
    provided_methods_are_not_inherited/1,
    class_objects_are_of_dead_classes/1,
    class_removal_leaves_uses/1
]).

all() ->
    [
        definition_comes_back_changed,
        redefinition_leaves_the_old_module_in_charge,
        nameless_term_is_stored,
        unregistering_takes_protocols_of_others,
        uses_outlive_their_module,
        class_object_is_not_started,
        class_object_is_started_in_vain,
        failing_class_object_fails_the_registration,
        class_start_that_calls_back_hangs,
        required_methods_are_out_of_order,
        missing_key_drops_inherited_requirements,
        extending_cycle_never_ends,
        unknown_name_is_no_empty_answer,
        unknown_protocol_is_conformed_to,
        empty_protocol_is_conformed_to_by_classes_only,
        instance_requirement_is_not_asked_of_the_host,
        class_requirement_is_looked_for_in_the_wrong_place,
        provided_methods_do_not_count,
        index_makes_a_negative_answer,
        positive_answer_needs_a_message,
        class_that_is_gone_conforms_by_its_rows,
        answer_through_an_exception_is_remembered,
        remembered_answer_is_asked_again,
        answer_survives_what_forgets_it,
        answer_is_forgotten_with_the_class_process,
        classes_of_a_protocol_are_incomplete,
        uses_index_loses_a_direction,
        provided_methods_are_not_inherited,
        class_objects_are_of_dead_classes,
        class_removal_leaves_uses
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
    _ = logger:remove_handler(?MODULE),
    ok = logger:unset_module_level(beamtalk_protocol_registry),
    ok = beamtalk_image_abuse_app:halt_and_wait(),
    ok = beamtalk_image_abuse_host:stop(),
    #{protocols := #{protocols := 0, users := 0, answers := 0}} = beamtalk_image:info(),
    ok.

%% ---- Definitions
%% ---------------------------------------------------------------------------------------------

%% 4.1
definition_comes_back_changed(_Config) ->
    Definition = #{name => 'P', required_methods => [#{selector => a, arity => 0, param_types => [],
        return_type => x}],
        required_class_methods => [], extending => undefined, module => mod, type_params => ['T'],
            doc => <<"text">>,
        <<"other">> => {1, 2.0}, {deep, key} => fun lists:reverse/1},
    ok = beamtalk_protocol_registry:register_protocol(Definition),
    ?assertEqual(Definition, beamtalk_protocol_registry:protocol_info('P')),
    ?assert(beamtalk_protocol_registry:is_protocol('P')),
    ok = beamtalk_protocol_registry:register_protocol(#{name => 'P'}),
    ?assertEqual(#{name => 'P'}, beamtalk_protocol_registry:protocol_info('P')),
    ?assertEqual(['P'], beamtalk_protocol_registry:all_protocol_names()).

redefinition_leaves_the_old_module_in_charge(_Config) ->
    ok = define('P', #{module => old}),
    ok = define('P', #{module => new}),
    ok = beamtalk_protocol_registry:unregister_protocol(old),
    ?assert(beamtalk_protocol_registry:is_protocol('P')),
    ok = beamtalk_protocol_registry:unregister_protocol(new),
    ?assertNot(beamtalk_protocol_registry:is_protocol('P')).

nameless_term_is_stored(_Config) ->
    listen(warning),
    [?assertEqual(ok, beamtalk_protocol_registry:register_protocol(Term))
        || Term <- [#{}, #{module => m}, x, [], 1]],
    ?assertEqual(5, length([Event || #{level := warning} = Event <- heard()])),
    ?assertEqual([], beamtalk_protocol_registry:all_protocol_names()).

unregistering_takes_protocols_of_others(_Config) ->
    ok = define('One', #{module => m1}),
    ok = define('Two', #{module => m1}),
    ok = define('Other', #{module => m2}),
    ok = beamtalk_protocol_registry:register_protocol(#{name => 'Without'}),
    ok = beamtalk_protocol_registry:register_protocol(#{name => 'Undefined', module => undefined}),
    ok = beamtalk_protocol_registry:unregister_protocol(m1),
    ok = beamtalk_protocol_registry:unregister_protocol(no_such),
    ok = beamtalk_protocol_registry:unregister_protocol(undefined),
    Left = lists:sort(beamtalk_protocol_registry:all_protocol_names()),
    ?assert(lists:member('Other', Left)),
    ?assert(lists:member('Without', Left)),
    ?assertNot(lists:member('One', Left)),
    ?assertNot(lists:member('Two', Left)).

%% Registered with the class's module, they go with it.
uses_outlive_their_module(_Config) ->
    ok = beamtalk_protocol_registry:register_uses('A', a_module, ['P', 'Q']),
    ok = beamtalk_protocol_registry:register_uses('B', b_module, ['P']),
    ok = beamtalk_protocol_registry:register_uses('C', ['P']),
    ok = beamtalk_protocol_registry:unregister_protocol(a_module),
    ?assertEqual(['B', 'C'], beamtalk_protocol_registry:users_of('P')),
    ?assertEqual([], beamtalk_protocol_registry:users_of('Q')),
    ?assertEqual([], beamtalk_protocol_registry:used_protocols('A')),
    %% Stated anew under another module, they are that one's.
    ok = beamtalk_protocol_registry:register_uses('B', later_module, ['P']),
    ok = beamtalk_protocol_registry:unregister_protocol(b_module),
    ?assertEqual(['P'], beamtalk_protocol_registry:used_protocols('B')).

%% ---- Class objects
%% -------------------------------------------------------------------------------------------

%% 4.2
class_object_is_not_started(_Config) ->
    ok = beamtalk_image_abuse_host:add('Protocol', none, []),
    beamtalk_image_abuse_host:replace(start_class, fun([Name, Info]) -> put(started, {Name, Info}),
        {ok, self()} end),
    ok = define('P', #{doc => <<"of P">>}),
    {'P', Info} = get(started),
    ?assertMatch(#{
        module := beamtalk_protocol_object, superclass := 'Protocol', is_sealed := true, is_abstract := true,
        meta := #{is_sealed := true, is_abstract := true},
        class_methods := #{requiredMethods := #{arity := 0, is_sealed := true},
            conformingClasses := #{arity := 0, is_sealed := true}},
        instance_methods := #{}, fields := [], doc := <<"of P">>
    }, Info),
    #{class_method_signatures := Signatures, class_method_docs := Docs, method_xref := Rows} = Info,
    [begin
        ?assertEqual([conformingClasses, requiredMethods], lists:sort(maps:keys(Texts))),
        ?assert(lists:all(fun is_binary/1, maps:values(Texts)))
    end || Texts <- [Signatures, Docs]],
    [?assertNotEqual(nomatch, binary:match(Text, <<"List">>)) || Text <- maps:values(Signatures)],
    ?assertEqual([conformingClasses, requiredMethods],
        lists:sort([Selector || #{selector := Selector, class_side := true,
        line := 1, sends := [], references := [], source_status := unindexed_runtime_fun,
            provenance := class_body} <- Rows])),
    ok = define('Q', #{}),
    {'Q', #{doc := none}} = get(started).

class_object_is_started_in_vain(_Config) ->
    %% Before there is a class 'Protocol', and where one of that name runs.
    ok = define('Early', #{}),
    ok = beamtalk_image_abuse_host:add('Protocol', none, []),
    ok = beamtalk_image_abuse_host:add('Running', none, []),
    ok = define('Running', #{}),
    ?assertEqual(0, beamtalk_image_abuse_host:asked(start_class)),
    ok = define('Early', #{}),
    ?assertEqual(1, beamtalk_image_abuse_host:asked(start_class)),
    %% Unregistering leaves them alone.
    Pid = beamtalk_image_abuse_host:whereis_class('Early'),
    ok = beamtalk_protocol_registry:unregister_protocol(?MODULE),
    ?assert(is_process_alive(Pid)).

failing_class_object_fails_the_registration(_Config) ->
    ok = beamtalk_image_abuse_host:add('Protocol', none, []),
    listen(warning),
    [begin
        beamtalk_image_abuse_host:replace(start_class, fun(_) -> Start() end),
        ok = define('P', #{}),
        ?assertEqual({Warned, true}, {length(heard()), beamtalk_protocol_registry:is_protocol('P')})
    end || {Start, Warned} <- [
        {fun() -> {error, {already_started, self()}} end, 0},
        {fun() -> {ok, self()} end, 0},
        {fun() -> {error, oops} end, 1},
        {fun() -> exit({timeout, x}) end, 1},
        {fun() -> error(undef) end, 1}
    ]].

%% 0.4-3: the start-up of a class calls the registries before the start returns.
class_start_that_calls_back_hangs(_Config) ->
    ok = beamtalk_image_abuse_host:add('Protocol', none, []),
    beamtalk_image_abuse_host:replace(start_class, fun([Name, #{method_xref := Rows}]) ->
        {Pid, Monitor} = spawn_monitor(fun() ->
            ok = beamtalk_xref:register_class(Name, Rows),
            ok = beamtalk_protocol_registry:invalidate_conforms_cache(),
            true = beamtalk_protocol_registry:is_protocol(Name),
            ok = beamtalk_protocol_registry:register_uses(Name, []),
            ok = beamtalk_extensions:register(Name, ext, fun() -> ok end, pkg)
        end),
        receive {'DOWN', Monitor, process, Pid, normal} -> {ok, Pid} after 5_000 -> {error, hangs} end
    end),
    listen(warning),
    ok = define('P', #{}),
    ?assertEqual([], heard()),
    ?assertEqual([{'P', true}], beamtalk_xref:implementors_of(requiredMethods)).

%% ---- Requirements
%% --------------------------------------------------------------------------------------------

%% 4.3
required_methods_are_out_of_order(_Config) ->
    ok = define('Root', #{required_methods => members([z, shared, a]),
        required_class_methods => members([make])}),
    ok = define('Mid', #{required_methods => members([m]), extending => 'Root',
        required_class_methods => members([build, make])}),
    ok = define('Low', #{required_methods => [#{selector => y, arity => 0}, #{selector => shared,
        arity => 3}],
        extending => 'Mid'}),
    ?assertEqual([y, shared, m, z, a, 'class build', 'class make'],
        beamtalk_protocol_registry:required_methods('Low')),
    ?assertEqual([z, shared, a, 'class make'], beamtalk_protocol_registry:required_methods('Root')),
    ok = define('Orphan', #{required_methods => members([o]), extending => 'NoSuch'}),
    ?assertEqual([o], beamtalk_protocol_registry:required_methods('Orphan')).

%% 8.3-4: the same default for both sides.
missing_key_drops_inherited_requirements(_Config) ->
    ok = define('Root', #{required_methods => members([a]), required_class_methods => members([make])}),
    ok = beamtalk_protocol_registry:register_protocol(#{name => 'Bare', extending => 'Root',
        module => ?MODULE}),
    ?assertEqual([a, 'class make'], beamtalk_protocol_registry:required_methods('Bare')),
    ok = beamtalk_image_abuse_host:add('C', #{instance => [], class => [make]}),
    ?assertNot(beamtalk_protocol_registry:conforms_to('C', 'Bare')).

extending_cycle_never_ends(_Config) ->
    ok = define('Self', #{required_methods => members([a]), extending => 'Self'}),
    ok = define('X', #{required_methods => members([x]), extending => 'Y',
        provided_methods => members([px])}),
    ok = define('Y', #{required_methods => members([y]), extending => 'Z',
        provided_methods => members([py])}),
    ok = define('Z', #{required_methods => members([z]), extending => 'X'}),
    ?assertEqual([a], beamtalk_protocol_registry:required_methods('Self')),
    ?assertEqual([x, y, z], beamtalk_protocol_registry:required_methods('X')),
    ?assertEqual([py, px], beamtalk_protocol_registry:provided_methods('Y')),
    ok = beamtalk_image_abuse_host:add('C', none, [x, y, z, px, py]),
    ?assert(beamtalk_protocol_registry:conforms_to('C', 'Z')),
    ?assertEqual(['X', 'Y', 'Z'], beamtalk_protocol_registry:protocols_for_class('C')).

unknown_name_is_no_empty_answer(_Config) ->
    ?assertEqual(undefined, beamtalk_protocol_registry:protocol_info('NoSuch')),
    ?assertEqual(false, beamtalk_protocol_registry:is_protocol('NoSuch')),
    ?assertEqual([], beamtalk_protocol_registry:all_protocol_names()),
    [?assertEqual([], beamtalk_protocol_registry:Function('NoSuch'))
        || Function <- [required_methods, provided_methods,
        used_protocols, users_of, user_class_objects, conforming_class_objects, conforming_classes,
            protocols_for_class]],
    ?assertEqual(ok, beamtalk_protocol_registry:unregister_uses('NoSuch')).

%% ---- Conformance
%% ---------------------------------------------------------------------------------------------

unknown_protocol_is_conformed_to(_Config) ->
    ok = beamtalk_image_abuse_host:add('C', none, [m]),
    ?assertNot(beamtalk_protocol_registry:conforms_to('C', 'NoSuch')),
    ok = define('P', #{required_methods => members([m])}),
    ?assert(beamtalk_protocol_registry:conforms_to('C', 'P')),
    ok = beamtalk_protocol_registry:unregister_protocol(?MODULE),
    ?assertNot(beamtalk_protocol_registry:conforms_to('C', 'P')).

empty_protocol_is_conformed_to_by_classes_only(_Config) ->
    ok = define('P', #{required_methods => []}),
    ?assert(beamtalk_protocol_registry:conforms_to('NoClassAtAll', 'P')).

instance_requirement_is_not_asked_of_the_host(_Config) ->
    ok = beamtalk_image_abuse_host:add('Super', none, [a]),
    ok = beamtalk_image_abuse_host:add('C', 'Super', [b]),
    ok = define('Ab', #{required_methods => members([a, b])}),
    ok = define('Abc', #{required_methods => members([a, b, c])}),
    ?assert(beamtalk_protocol_registry:conforms_to('C', 'Ab')),
    ?assertNot(beamtalk_protocol_registry:conforms_to('C', 'Abc')),
    ?assertNot(beamtalk_protocol_registry:conforms_to('Super', 'Ab')),
    ?assertNot(beamtalk_protocol_registry:conforms_to('NoSuchClass', 'Ab')).

class_requirement_is_looked_for_in_the_wrong_place(_Config) ->
    ok = beamtalk_image_abuse_host:add('Super', #{class => [inherited]}),
    ok = beamtalk_image_abuse_host:add('C', #{super => 'Super', class => [own], instance => [instance_only]}),
    Conforms = fun(Selector) ->
        ok = define('P', #{required_methods => [], required_class_methods => members([Selector])}),
        beamtalk_protocol_registry:conforms_to('C', 'P')
    end,
    ?assert(Conforms(own)),
    ?assert(Conforms(inherited)),
    ?assertNot(Conforms(instance_only)),
    ?assertNot(Conforms(none_such)),
    Fun = fun() -> ok end,
    ok = beamtalk_extensions:register('C', on_instance, Fun, pkg),
    ok = beamtalk_extensions:register('Super class', on_super, Fun, pkg),
    ok = beamtalk_extensions:register('C class', on_own, Fun, pkg),
    ?assertNot(Conforms(on_instance)),
    %% Extensions of ancestors do not count.
    ?assertNot(Conforms(on_super)),
    ?assert(Conforms(on_own)).

%% 9.2
provided_methods_do_not_count(_Config) ->
    ok = define('T', #{required_methods => members([r]), provided_methods => members([p])}),
    ok = beamtalk_image_abuse_host:add('OnlyRequired', none, [r]),
    ok = beamtalk_image_abuse_host:add('Both', none, [r, p]),
    ?assertNot(beamtalk_protocol_registry:conforms_to('OnlyRequired', 'T')),
    ?assert(beamtalk_protocol_registry:conforms_to('Both', 'T')),
    ok = define('U', #{required_methods => [], extending => 'T'}),
    ?assertNot(beamtalk_protocol_registry:conforms_to('OnlyRequired', 'U')),
    ?assert(beamtalk_protocol_registry:conforms_to('Both', 'U')).

%% The index may lack what compiled code has.
index_makes_a_negative_answer(_Config) ->
    ok = beamtalk_image_abuse_host:add('C', none, [m]),
    ok = beamtalk_xref:register_class('C', []),
    ok = define('P', #{required_methods => members([m])}),
    ?assert(beamtalk_protocol_registry:conforms_to('C', 'P')),
    ?assert(beamtalk_image_abuse_host:asked(understands, ['C', m]) > 0).

positive_answer_needs_a_message(_Config) ->
    ok = beamtalk_image_abuse_host:add('Super', none, [a]),
    ok = beamtalk_image_abuse_host:add('C', 'Super', [b]),
    ok = beamtalk_xref:register_class('Super', [#{selector => a, line => 1}, #{selector => make,
        class_side => true, line => 1}]),
    ok = beamtalk_xref:register_class('C', [#{selector => b, line => 1}]),
    ok = define('P', #{required_methods => members([a, b]), required_class_methods => members([make])}),
    beamtalk_image_abuse_host:forget_asked(),
    ?assert(beamtalk_protocol_registry:conforms_to('C', 'P')),
    ?assertEqual([0, 0, 0], [beamtalk_image_abuse_host:asked(F) || F <- [understands, class_selectors,
        class_superclass]]).

%% Rows may outlive a class process that crashed; the host says `false' for a class that does not run.
class_that_is_gone_conforms_by_its_rows(_Config) ->
    ok = beamtalk_xref:register_class('Gone', [#{selector => m, line => 1}]),
    ok = define('P', #{required_methods => members([m])}),
    ?assertNot(beamtalk_protocol_registry:conforms_to('Gone', 'P')).

%% 8.3-1
answer_through_an_exception_is_remembered(_Config) ->
    ok = beamtalk_image_abuse_host:add('C', #{instance => [m], class => [k]}),
    ok = define('P', #{required_methods => members([m])}),
    ok = define('Q', #{required_methods => [], required_class_methods => members([k])}),
    listen(debug),
    [begin
        beamtalk_image_abuse_host:replace(Function, fun(_) -> Fail() end),
        ?assertNot(beamtalk_protocol_registry:conforms_to('C', Name)),
        ?assertMatch([#{level := debug}], heard()),
        beamtalk_image_abuse_host:restore(Function),
        %% Nothing was invalidated meanwhile.
        ?assert(beamtalk_protocol_registry:conforms_to('C', Name)),
        ok = beamtalk_protocol_registry:invalidate_conforms_cache()
    end || {Name, Function} <- [{'P', understands}, {'Q', class_selectors}],
        Fail <- [fun() -> exit({timeout, call}) end, fun() -> exit({calling_self, call}) end, fun() ->
            error(undef) end,
            fun() -> throw(oops) end]].

%% 4.4
remembered_answer_is_asked_again(_Config) ->
    ok = beamtalk_image_abuse_host:add('C', none, [m]),
    ok = define('Yes', #{required_methods => members([m])}),
    ok = define('No', #{required_methods => members([n]), required_class_methods => members([k])}),
    true = beamtalk_protocol_registry:conforms_to('C', 'Yes'),
    false = beamtalk_protocol_registry:conforms_to('C', 'No'),
    beamtalk_image_abuse_host:forget_asked(),
    [begin
        true = beamtalk_protocol_registry:conforms_to('C', 'Yes'),
        false = beamtalk_protocol_registry:conforms_to('C', 'No')
    end || _ <- lists:seq(1, 100)],
    ?assertEqual([0, 0, 0], [beamtalk_image_abuse_host:asked(F) || F <- [understands, class_selectors,
        class_superclass]]).

answer_survives_what_forgets_it(_Config) ->
    Fun = fun() -> ok end,
    ok = beamtalk_image_abuse_host:add('C', none, []),
    ok = define('P', #{required_methods => members([m])}),
    Forget = [
        {invalidate, fun beamtalk_protocol_registry:invalidate_conforms_cache/0},
        {register, fun() -> define('Other', #{}) end},
        {unregister, fun() -> beamtalk_protocol_registry:unregister_protocol(no_such_module) end},
        {extend, fun() -> beamtalk_extensions:register('C', ext, Fun, pkg) end},
        {unextend, fun() -> beamtalk_extensions:unregister('C', ext) end},
        {extend_again, fun() -> beamtalk_extensions:register('C', ext, Fun, pkg) end},
        {purge, fun() -> beamtalk_extensions:purge_class('C') end},
        {clear_index, fun() -> beamtalk_image:clear(xref) end},
        {removed, fun() -> beamtalk_image:class_removed('Unrelated', unrelated) end}
    ],
    [begin
        Answer = N rem 2 =:= 0,
        ok = beamtalk_image_abuse_host:add('C', #{instance => [m || Answer]}),
        ok = Change(),
        ?assertEqual({What, Answer}, {What, beamtalk_protocol_registry:conforms_to('C', 'P')})
    end || {N, {What, Change}} <- lists:zip(lists:seq(1, length(Forget)), Forget)].

%% [I/T] of 4.4
answer_is_forgotten_with_the_class_process(_Config) ->
    ok = beamtalk_image_abuse_host:add('C', none, [m]),
    ok = define('P', #{required_methods => members([m])}),
    true = beamtalk_protocol_registry:conforms_to('C', 'P'),
    ok = beamtalk_image_abuse_host:drop('C'),
    ?assert(beamtalk_protocol_registry:conforms_to('C', 'P')),
    ok = beamtalk_protocol_registry:invalidate_conforms_cache(),
    ?assertNot(beamtalk_protocol_registry:conforms_to('C', 'P')).

classes_of_a_protocol_are_incomplete(_Config) ->
    [ok = beamtalk_image_abuse_host:add(Name, none, Selectors)
        || {Name, Selectors} <- [{'Zeta', [m]}, {'Alpha', [m, n]}, {'Not', [n]}]],
    ok = define('P', #{required_methods => members([m])}),
    ok = define('A', #{required_methods => members([n])}),
    ok = define('Empty', #{}),
    ?assertEqual(['Alpha', 'Zeta'], beamtalk_protocol_registry:conforming_classes('P')),
    ?assertEqual(['A', 'Empty', 'P'], beamtalk_protocol_registry:protocols_for_class('Alpha')),
    ?assertEqual(['Alpha', 'Not', 'Zeta'], beamtalk_protocol_registry:conforming_classes('Empty')),
    beamtalk_image_abuse_host:replace(live_classes, fun(_) -> exit(timeout) end),
    ?assertEqual([], beamtalk_protocol_registry:conforming_classes('P')).

%% ---- Uses (9.2)
%% ----------------------------------------------------------------------------------------------

uses_index_loses_a_direction(_Config) ->
    ok = beamtalk_protocol_registry:register_uses('C', ['Zeta', 'Alpha', 'Mid']),
    ok = beamtalk_protocol_registry:register_uses('B', mod, [{'Alpha', <<"h1">>}, 'Zeta']),
    ?assertEqual(['Zeta', 'Alpha', 'Mid'], beamtalk_protocol_registry:used_protocols('C')),
    ?assertEqual([{'Alpha', <<"h1">>}, {'Zeta', undefined}],
        beamtalk_protocol_registry:used_protocol_hashes('B')),
    %% What is answered can be registered again.
    ok = beamtalk_protocol_registry:register_uses('B', mod, beamtalk_protocol_registry:used_protocol_hashes('B')),
    ?assertEqual([{'Alpha', <<"h1">>}, {'Zeta', undefined}],
        beamtalk_protocol_registry:used_protocol_hashes('B')),
    %% A refusal names the function that was called.
    ?assertEqual([{register_uses, 2}, {register_uses, 3}], [refusing(Call) || Call <- [
        fun() -> beamtalk_protocol_registry:register_uses('B', [<<"no name">>]) end,
        fun() -> beamtalk_protocol_registry:register_uses('B', mod, [<<"no name">>]) end]]),
    ?assertEqual(['B', 'C'], beamtalk_protocol_registry:users_of('Alpha')),
    ?assertEqual(['C'], beamtalk_protocol_registry:users_of('Mid')),
    ok = beamtalk_protocol_registry:register_uses('C', ['Alpha', 'New']),
    ?assertEqual([[], ['B'], ['B', 'C'], ['C']],
        [beamtalk_protocol_registry:users_of(Name) || Name <- ['Mid', 'Zeta', 'Alpha', 'New']]),
    ok = beamtalk_protocol_registry:unregister_uses('C'),
    ok = beamtalk_protocol_registry:unregister_uses('C'),
    ?assertEqual([], beamtalk_protocol_registry:used_protocols('C')),
    ?assertEqual(['B'], beamtalk_protocol_registry:users_of('Alpha')),
    ok = beamtalk_protocol_registry:register_uses('B', []),
    ?assertEqual([], beamtalk_protocol_registry:users_of('Alpha')),
    %% Uses are not the protocol's: it may come, go and come again.
    ok = beamtalk_protocol_registry:register_uses('C', ['P']),
    ok = define('P', #{}),
    ok = beamtalk_protocol_registry:unregister_protocol(?MODULE),
    ?assertEqual(['C'], beamtalk_protocol_registry:users_of('P')),
    ok = beamtalk_protocol_registry:unregister_uses('C').

refusing(Call) ->
    try Call() of
        ok -> not_refused
    catch
        error:badarg:Stack ->
            [{beamtalk_protocol_registry, Function, Args, _} | _] = Stack,
            {Function, length(Args)}
    end.

provided_methods_are_not_inherited(_Config) ->
    ok = define('Root', #{provided_methods => members([a, shared])}),
    ok = define('Low', #{provided_methods => members([z, shared]), extending => 'Root'}),
    ok = define('Bare', #{extending => 'Low'}),
    ?assertEqual([z, shared, a], beamtalk_protocol_registry:provided_methods('Low')),
    ?assertEqual([z, shared, a], beamtalk_protocol_registry:provided_methods('Bare')),
    ?assertEqual([a, shared], beamtalk_protocol_registry:provided_methods('Root')),
    ?assertEqual([], beamtalk_protocol_registry:required_methods('Low')).

class_objects_are_of_dead_classes(_Config) ->
    ok = beamtalk_image_abuse_host:add('Runs', #{instance => [m], module => runs_module}),
    ok = beamtalk_image_abuse_host:add('Also', #{instance => [m], module => also_module}),
    ok = define('P', #{required_methods => members([m])}),
    [ok = beamtalk_protocol_registry:register_uses(Class, ['P']) || Class <- ['Runs', 'NotRunning', 'Also']],
    Object = fun(Name, Tag, Module) -> {beamtalk_object, Tag, Module,
        beamtalk_image_abuse_host:whereis_class(Name)} end,
    Expected = [Object('Also', 'Also class', also_module), Object('Runs', 'Runs class', runs_module)],
    ?assertEqual(Expected, lists:sort(beamtalk_protocol_registry:user_class_objects('P'))),
    ?assertEqual(Expected, lists:sort(beamtalk_protocol_registry:conforming_class_objects('P'))),
    ok = beamtalk_image_abuse_host:drop('Also'),
    ?assertEqual([Object('Runs', 'Runs class', runs_module)],
        beamtalk_protocol_registry:user_class_objects('P')),
    beamtalk_image_abuse_host:replace(live_classes, fun(_) -> exit(noproc) end),
    ?assertEqual([], beamtalk_protocol_registry:user_class_objects('P')),
    [ok = beamtalk_protocol_registry:unregister_uses(Class) || Class <- ['Runs', 'NotRunning', 'Also']].

%% 7, 9.2
class_removal_leaves_uses(_Config) ->
    ok = beamtalk_protocol_registry:register_uses('C', ['P']),
    ok = beamtalk_protocol_registry:register_uses('D', d_module, ['P']),
    ok = define('P', #{}),
    ok = beamtalk_image:class_removed('C', c_module),
    ?assertEqual(['D'], beamtalk_protocol_registry:users_of('P')),
    ?assert(beamtalk_protocol_registry:is_protocol('P')),
    ok = beamtalk_image:class_removed('D', d_module),
    ?assertEqual([], beamtalk_protocol_registry:users_of('P')).

%% ---- Means
%% ---------------------------------------------------------------------------------------------------

define(Name, Definition) ->
    beamtalk_protocol_registry:register_protocol(maps:merge(#{name => Name, module => ?MODULE}, Definition)).

members(Selectors) -> [#{selector => Selector, arity => 0} || Selector <- Selectors].

listen(Level) ->
    ok = logger:set_module_level(beamtalk_protocol_registry, Level),
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => self(), level => Level}).

heard() ->
    receive
        {logged, #{meta := #{mfa := {beamtalk_protocol_registry, Function, _},
            domain := [beamtalk, runtime]}} = Event} when
            Function =/= register_protocol; map_get(level, Event) =/= debug ->
            [Event | heard()];
        {logged, _} ->
            heard()
    after 50 -> []
    end.

log(Event, #{config := Test}) ->
    Test ! {logged, Event}.
