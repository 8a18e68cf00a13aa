%% Each of the three registries works while the others are still the originals: one story, told under all
%% eight combinations of ours and table-shaped stand-ins for the originals (contract §1.1, end).
-module(beamtalk_image_adoption_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([
    all_ours/1,
    original_extensions/1,
    original_index/1,
    original_protocols/1,
    only_our_extensions/1,
    only_our_index/1,
    only_our_protocols/1,
    all_originals/1,
    ours_come_back_after_the_originals/1
]).

all() ->
    [Case || {Case, _} <- combinations()] ++ [ours_come_back_after_the_originals].

%% The modules that are the originals' in each case.
combinations() ->
    [Extensions, Index, Protocols] = beamtalk_image_originals:modules(),
    [
        {all_ours, []},
        {original_extensions, [Extensions]},
        {original_index, [Index]},
        {original_protocols, [Protocols]},
        {only_our_extensions, [Index, Protocols]},
        {only_our_index, [Extensions, Protocols]},
        {only_our_protocols, [Extensions, Index]},
        {all_originals, [Extensions, Index, Protocols]}
    ].

init_per_suite(Config) ->
    {ok, Started} = application:ensure_all_started(beamtalk_image),
    [{started, Started} | Config].

end_per_suite(Config) ->
    [ok = application:stop(App) || App <- lists:reverse(proplists:get_value(started, Config))],
    ok.

init_per_testcase(Case, Config) ->
    ok = beamtalk_image_leftovers:empty(),
    Before = beamtalk_image_leftovers:picture(),
    ok = beamtalk_image_originals:install(proplists:get_value(Case, combinations(), [])),
    ok = beamtalk_image_fake_host:start(),
    ok = beamtalk_image_log_events:start([beamtalk_image | beamtalk_image_originals:modules()]),
    [{before, Before} | Config].

end_per_testcase(_Case, Config) ->
    ok = beamtalk_image_log_events:stop(),
    ok = stop_index(),
    ok = drop_tables(),
    ok = beamtalk_image_fake_host:stop(),
    ok = beamtalk_image_originals:restore(),
    ok = beamtalk_image_leftovers:empty(),
    beamtalk_image_leftovers:assert_none(proplists:get_value(before, Config)).

stop_index() ->
    case whereis(beamtalk_xref) of
        undefined -> ok;
        Pid -> gen_server:stop(Pid)
    end.

%% The stand-ins' tables belong to the process that called `init/0', as the originals' do.
drop_tables() ->
    Tables = [beamtalk_extensions, beamtalk_extension_sources, beamtalk_extension_conflicts,
        beamtalk_protocol_registry, beamtalk_protocol_conforms_cache],
    lists:foreach(fun(Table) -> ets:info(Table, id) =:= undefined orelse ets:delete(Table) end, Tables).

all_ours(_Config) -> story([]).
original_extensions(_Config) -> story([beamtalk_extensions]).
original_index(_Config) -> story([beamtalk_xref]).
original_protocols(_Config) -> story([beamtalk_protocol_registry]).
only_our_extensions(_Config) -> story([beamtalk_xref, beamtalk_protocol_registry]).
only_our_index(_Config) -> story([beamtalk_extensions, beamtalk_protocol_registry]).
only_our_protocols(_Config) -> story([beamtalk_extensions, beamtalk_xref]).
all_originals(_Config) -> story([beamtalk_extensions, beamtalk_xref, beamtalk_protocol_registry]).

%% The way back and forth within one node: what stood in the native stores still stands.
ours_come_back_after_the_originals(_Config) ->
    Fun = fun(_Args, _Self) -> kept end,
    ok = beamtalk_extensions:register('Kept', m, Fun, pkg),
    ok = beamtalk_image_originals:install(beamtalk_image_originals:modules()),
    ?assertError(badarg, beamtalk_extensions:lookup('Kept', m)),
    ok = beamtalk_image_originals:restore(),
    ?assertEqual({ok, Fun, pkg}, beamtalk_extensions:lookup('Kept', m)).

%% ---- The story --------------------------------------------------------------------------------------------

story(Originals) ->
    ?assertEqual(Originals, lists:filter(fun beamtalk_image_originals:is_original/1,
        beamtalk_image_originals:modules())),
    boot(),
    ?assertEqual([], warnings()),
    classes_start(),
    extensions_dispatch_and_are_indexed(),
    extensions_change_owner(),
    protocols_are_satisfied_and_asked_once(),
    receiver_types_filter_senders(),
    protocol_objects_start(),
    a_class_asks_about_itself(),
    live_patch_and_redefinition(),
    library_reads(),
    extensions_leave(),
    class_leaves(),
    host_removes_a_class(),
    index_is_away().

boot() ->
    ok = beamtalk_extensions:init(),
    ok = beamtalk_protocol_registry:init(),
    {ok, Pid} = beamtalk_xref:start_link(),
    ?assertEqual(Pid, whereis(beamtalk_xref)),
    ?assertEqual({error, {already_started, Pid}}, beamtalk_xref:start_link()).

classes_start() ->
    _ = beamtalk_image_fake_host:class('Root', #{
        instance_methods => [size, name],
        class_methods => [new],
        method_xref => [
            #{selector => size, line => 3, sends => [
                #{selector => count, recv_kind => self_recv, line => 4}
            ]},
            #{selector => name, line => 7, references => [#{class => 'String', line => 8}]},
            #{selector => new, class_side => true, line => 10}
        ]
    }),
    _ = beamtalk_image_fake_host:class('Leaf', #{
        superclass => 'Root',
        instance_methods => [grow],
        method_xref => [
            #{selector => grow, line => 2, sends => [
                #{selector => size, line => 2, recv_type => 'Sized'},
                #{selector => size, line => 3, recv_type => 'Root'},
                #{selector => size, line => 4, recv_type => 'Elsewhere'},
                #{selector => size, line => 5, recv_type => 'Root class'},
                #{selector => size, line => 6}
            ]}
        ]
    }),
    _ = beamtalk_image_fake_host:class('Elsewhere', none, [], []),
    ?assertEqual([{'Root', false}], beamtalk_xref:implementors_of(size)),
    ?assertEqual([name, size], beamtalk_xref:defined_selectors('Root', false)),
    ?assertEqual([new], beamtalk_xref:defined_selectors('Root', true)),
    ?assertMatch([#{owner := 'Root', method := size, line := 4}], beamtalk_xref:senders_of(count)),
    ?assertMatch([#{owner := 'Root', method := name, line := 8}], beamtalk_xref:references_to('String')),
    ?assertMatch(#{provenance := class_body, line := 3}, beamtalk_xref:method_info('Root', false, size)).

extensions_dispatch_and_are_indexed() ->
    Source = <<"shout => self size">>,
    ok = beamtalk_image_fake_host:sends(Source, {ok, [
        #{selector => <<"size">>, line => 1, recv => self, target_module => <<>>}
    ]}),
    Shout = fun(_Args, _Self) -> shout end,
    Make = fun(_Args, _Self) -> make end,
    ok = beamtalk_extensions:register('Leaf', shout, Shout, pkg_a, Source),
    ok = beamtalk_extensions:register('Leaf class', make, Make, pkg_a),
    ?assertEqual({ok, Shout, pkg_a}, beamtalk_extensions:lookup('Leaf', shout)),
    ?assertEqual({ok, Make, pkg_a}, beamtalk_extensions:lookup('Leaf class', make)),
    ?assertEqual(not_found, beamtalk_extensions:lookup('Root', shout)),
    ?assertEqual([{make, pkg_a}], beamtalk_extensions:list('Leaf class')),
    ?assertEqual([{'Leaf', shout}, {'Leaf class', make}],
        lists:sort(beamtalk_extensions:extensions_by(pkg_a))),
    %% The definition stands at once, the sends when the background is done.
    ?assertMatch(#{provenance := extension, source_status := indexed, line := 1},
        beamtalk_xref:method_info('Leaf', false, shout)),
    ?assertMatch(#{provenance := extension, source_status := unindexed_runtime_fun},
        beamtalk_xref:method_info('Leaf class', false, make)),
    ?assertEqual([{'Leaf class', false}], beamtalk_xref:implementors_of(make)),
    ok = beamtalk_image:sync(),
    ?assertEqual([grow, grow, grow, grow, grow, shout],
        lists:sort([Method || #{method := Method} <- beamtalk_xref:senders_of(size)])).

extensions_change_owner() ->
    ?assertEqual([], warnings()),
    Louder = fun(_Args, _Self, State) -> {louder, State} end,
    ok = beamtalk_extensions:register('Leaf', shout, Louder, pkg_b),
    ?assertMatch([{warning, #{domain := [beamtalk, runtime]}}], warnings()),
    ?assertEqual({ok, Louder, pkg_b}, beamtalk_extensions:lookup('Leaf', shout)),
    ?assertEqual([{'Leaf', shout, [pkg_a, pkg_b]}], beamtalk_extensions:conflicts()),
    ?assertEqual([pkg_b], beamtalk_extensions:extenders_of('Leaf')),
    ?assertEqual(not_found, beamtalk_extensions:getSource('Leaf', shout)),
    ok = beamtalk_image:sync(),
    ?assertMatch(#{source_status := unindexed_runtime_fun}, beamtalk_xref:method_info('Leaf', false, shout)),
    ?assertEqual([grow], lists:usort([Method || #{method := Method} <- beamtalk_xref:senders_of(size)])).

protocols_are_satisfied_and_asked_once() ->
    ok = beamtalk_protocol_registry:register_protocol(
        #{name => 'Sized', module => sized, required_methods => [#{selector => size, arity => 0}]}),
    ok = beamtalk_protocol_registry:register_protocol(
        #{name => 'Made', module => sized, extending => 'Sized', required_methods => [],
            required_class_methods => [#{selector => make, arity => 0}, #{selector => new, arity => 0}]}),
    ?assertEqual([size], beamtalk_protocol_registry:required_methods('Sized')),
    ?assertEqual([size, 'class make', 'class new'], beamtalk_protocol_registry:required_methods('Made')),
    %% `make' is a class-side extension on Leaf alone, `new' comes from its superclass.
    ?assertEqual([true, true, false], [
        beamtalk_protocol_registry:conforms_to('Leaf', 'Sized'),
        beamtalk_protocol_registry:conforms_to('Leaf', 'Made'),
        beamtalk_protocol_registry:conforms_to('Root', 'Made')
    ]),
    ?assertEqual(['Made', 'Sized'], beamtalk_protocol_registry:protocols_for_class('Leaf')),
    ?assertEqual(['Leaf', 'Root'], beamtalk_protocol_registry:conforming_classes('Sized')),
    ok = beamtalk_image_fake_host:forget_counts(),
    ?assert(beamtalk_protocol_registry:conforms_to('Leaf', 'Made')),
    ?assertNot(beamtalk_protocol_registry:conforms_to('Root', 'Made')),
    ?assertEqual(0, beamtalk_image_fake_host:messages()),
    %% The extension goes, the answers are forgotten, and the next one is right.
    ok = beamtalk_extensions:unregister('Leaf', make, true),
    ok = beamtalk_protocol_registry:invalidate_conforms_cache(),
    ?assertNot(beamtalk_protocol_registry:conforms_to('Leaf', 'Made')).

receiver_types_filter_senders() ->
    Lines = fun(Changed) ->
        lists:sort([Line || #{line := Line} <- beamtalk_xref:senders_of(size, Changed)])
    end,
    %% Line 2 is typed by a protocol, 3 by Root, 4 by Elsewhere, 5 by the class side of Root, 6 not at all.
    ?assertEqual([2, 3, 6], Lines('Root')),
    ?assertEqual([2, 3, 6], Lines('Leaf')),
    ?assertEqual([4, 6], Lines('Elsewhere')),
    ?assertEqual([5, 6], Lines('Leaf class')).

protocol_objects_start() ->
    ?assertEqual([], beamtalk_image_fake_host:started()),
    _ = beamtalk_image_fake_host:class('Protocol', none, [], []),
    ok = register_empty('Shown', shown),
    ?assertMatch([{'Shown', #{superclass := 'Protocol', module := beamtalk_protocol_object}}],
        beamtalk_image_fake_host:started()),
    ?assertEqual([conformingClasses, requiredMethods], beamtalk_xref:defined_selectors('Shown', true)),
    ok = register_empty('Shown', shown),
    ?assertMatch([_], beamtalk_image_fake_host:started()),
    ok = beamtalk_protocol_registry:unregister_protocol(shown),
    ?assertNot(beamtalk_protocol_registry:is_protocol('Shown')).

%% A question from inside the class cannot be answered by it; nothing may crash or hang.
a_class_asks_about_itself() ->
    ok = beamtalk_protocol_registry:invalidate_conforms_cache(),
    ok = beamtalk_protocol_registry:register_protocol(
        #{name => 'Deaf', module => deaf, required_methods => [#{selector => nobody_knows, arity => 0}]}),
    ?assertNot(beamtalk_image_fake_host:run_in_class_process('Leaf', fun() ->
        beamtalk_protocol_registry:conforms_to('Leaf', 'Deaf')
    end)),
    ok = beamtalk_protocol_registry:unregister_protocol(deaf),
    ?assert(beamtalk_protocol_registry:conforms_to('Leaf', 'Sized')).

live_patch_and_redefinition() ->
    Source = <<"size => self weigh">>,
    ok = beamtalk_image_fake_host:sends(Source, {ok, [
        #{selector => <<"weigh">>, line => 1, recv => self, target_module => <<>>}
    ]}),
    ok = beamtalk_image_fake_host:patch('Root', false, size, Source),
    ?assertMatch(#{provenance := put_method, line := 1}, beamtalk_xref:method_info('Root', false, size)),
    ?assertMatch([#{owner := 'Root', recv_kind := self_recv}], beamtalk_xref:senders_of(weigh)),
    ?assertEqual([], beamtalk_xref:senders_of(count)),
    ?assertEqual([name, size], beamtalk_xref:defined_selectors('Root', false)),
    ok = beamtalk_image_fake_host:redefine('Root', #{
        instance_methods => [name],
        method_xref => [#{selector => name, line => 1}]
    }),
    ?assertEqual([name], beamtalk_xref:defined_selectors('Root', false)),
    ?assertEqual([], beamtalk_xref:senders_of(weigh)),
    ?assertEqual([], beamtalk_xref:implementors_of(size)),
    ?assertNot(beamtalk_protocol_registry:conforms_to('Leaf', 'Sized')).

%% `Elsewhere' defines nothing and `Plain' was never indexed, so only the latter is left to the library.
library_reads() ->
    _ = warnings(),
    _ = beamtalk_image_fake_host:class('Plain', none, [anything], []),
    #{indexed := Rows, fallback_classes := Fallback} = beamtalk_xref:implementors_of_bt(grow),
    ?assertEqual([#{owner => 'Leaf', class_side => false}], Rows),
    ?assertEqual(['Plain'], Fallback),
    ?assertEqual(
        [{warning, #{event => xref_miss, reason => xref_miss, class => 'Plain', query => implementorsOf,
            domain => [beamtalk, runtime]}}],
        warnings()
    ),
    ?assertMatch(#{indexed := [size]}, beamtalk_xref:all_sent_selectors_bt()),
    ok = beamtalk_image_fake_host:remove_class('Plain'),
    _ = warnings(),
    ok.

extensions_leave() ->
    ok = beamtalk_extensions:unregister('Leaf', shout),
    ?assertNot(beamtalk_extensions:has('Leaf', shout)),
    ?assertEqual(undefined, beamtalk_xref:method_info('Leaf', false, shout)),
    ?assertEqual([], beamtalk_extensions:conflicts()),
    ?assertEqual([grow], beamtalk_xref:defined_selectors('Leaf', false)).

class_leaves() ->
    Fun = fun(_Args, _Self) -> ok end,
    [ok = beamtalk_extensions:register(Key, m, Fun, pkg_a) || Key <- ['Leaf', 'Leaf class', 'Root']],
    ok = register_empty('Own', leaf),
    ok = beamtalk_image_fake_host:remove_class('Leaf'),
    _ = warnings(),
    ok = beamtalk_image:class_removed('Leaf', leaf),
    ?assertEqual([], warnings()),
    ?assertEqual([{'Root', m}], beamtalk_extensions:extensions_by(pkg_a)),
    ?assertEqual([], beamtalk_xref:senders_of(size)),
    ?assertEqual([], beamtalk_xref:defined_selectors('Leaf', false)),
    ?assertEqual([], beamtalk_xref:defined_selectors('Leaf class', false)),
    ?assertEqual([{'Root', false}], beamtalk_xref:implementors_of(m)),
    ?assertNot(beamtalk_protocol_registry:is_protocol('Own')),
    ?assert(beamtalk_protocol_registry:is_protocol('Sized')),
    %% A class of the same name starts with nothing of the old one.
    _ = beamtalk_image_fake_host:class('Leaf', 'Root', [], []),
    ?assertEqual(not_found, beamtalk_extensions:lookup('Leaf', m)),
    ?assertEqual(undefined, beamtalk_xref:method_info('Leaf', false, m)).

%% The host's own removal purges the index first and the extensions after it (contract §7).
host_removes_a_class() ->
    Rows = [#{selector => own, line => 1}],
    _ = beamtalk_image_fake_host:class('Gone', #{instance_methods => [own], method_xref => Rows}),
    Fun = fun(_Args, _Self) -> ok end,
    [ok = beamtalk_extensions:register(Key, added, Fun, pkg_c) || Key <- ['Gone', 'Gone class']],
    ok = beamtalk_image_fake_host:remove_class('Gone'),
    ok = beamtalk_extensions:safe_xref(fun() -> beamtalk_xref:purge_class('Gone') end),
    ok = beamtalk_extensions:purge_class('Gone'),
    ok = beamtalk_extensions:purge_class('Gone class'),
    ok = beamtalk_protocol_registry:unregister_protocol(gone),
    ok = beamtalk_image:sync(),
    _ = beamtalk_image_fake_host:class('Gone', #{instance_methods => [own], method_xref => Rows}),
    ?assertEqual([own], beamtalk_xref:defined_selectors('Gone', false)),
    ?assertEqual([], beamtalk_xref:implementors_of(added)),
    ?assertEqual([], beamtalk_extensions:extensions_by(pkg_c)),
    ok = beamtalk_image_fake_host:remove_class('Gone').

%% The other registries go on while the index is away, and its reads are empty.
index_is_away() ->
    ok = gen_server:stop(beamtalk_xref),
    Fun = fun(_Args, _Self) -> ok end,
    ok = beamtalk_extensions:register('Leaf', later, Fun, pkg_a, <<"later => 1">>),
    ok = beamtalk_image:sync(),
    ?assertEqual({ok, Fun, pkg_a}, beamtalk_extensions:lookup('Leaf', later)),
    ok = beamtalk_extensions:unregister('Leaf', later),
    ok = beamtalk_extensions:purge_class('Root'),
    ?assertNot(beamtalk_extensions:has('Root', m)),
    ok = beamtalk_image_fake_host:redefine('Root', #{instance_methods => [size]}),
    ?assert(beamtalk_protocol_registry:conforms_to('Leaf', 'Sized')),
    ?assertEqual([], beamtalk_xref:implementors_of(name)),
    ?assertEqual([], beamtalk_xref:senders_of(size, 'Root')),
    ?assertExit({noproc, _}, beamtalk_xref:purge_class('Root')),
    ok = beamtalk_protocol_registry:unregister_protocol(sized).

register_empty(Name, Module) ->
    beamtalk_protocol_registry:register_protocol(#{name => Name, module => Module, required_methods => []}).

warnings() ->
    [{Level, Meta} || {_Module, Level, Meta} <- beamtalk_image_log_events:take(),
        logger:compare_levels(Level, warning) =/= lt].
