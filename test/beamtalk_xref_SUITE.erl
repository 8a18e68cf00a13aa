%% The cross-reference index, point by point as the host relies on it (contract §3).
-module(beamtalk_xref_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2, log/2]).
-export([
    absent_keys_take_their_defaults/1,
    unknown_keys_are_refused/1,
    registration_keeps_methods_that_went/1,
    registration_needs_a_purge_before/1,
    empty_registration_is_no_registration/1,
    first_of_two_entries_loses/1,
    purge_leaves_rows_or_knowledge/1,
    generation_is_used_twice/1,
    patch_touches_siblings/1,
    patch_obeys_the_map_instead_of_its_arguments/1,
    patch_of_an_unknown_class_is_invisible/1,
    method_purge_takes_siblings_or_the_class/1,
    entry_is_built_wrongly/1,
    compiler_is_asked_in_vain/1,
    unknown_selector_is_lost_for_good/1,
    unknown_module_is_lost_for_good/1,
    sites_lack_keys/1,
    equal_sends_are_two_rows/1,
    implementors_are_unsorted_or_repeated/1,
    undefined_and_unscannable_are_confused/1,
    native_callers_are_wrong/1,
    rows_of_unloaded_classes_are_dropped/1,
    filter_excludes_without_proof/1,
    filter_confuses_sides/1,
    filter_mistakes_compound_types/1,
    filter_asks_twice_about_a_name/1,
    deep_chain_is_cut_off/1,
    cycle_of_classes_hangs/1,
    rows_for_the_library_are_of_unloaded_classes/1,
    fallback_is_judged_wrongly/1,
    indexed_class_is_asked_by_message/1,
    class_that_is_starting_is_a_miss/1,
    miss_is_not_told/1,
    sends_of_sourced_extensions_are_reported_twice/1,
    extension_overwrites_the_local_row/1,
    extension_makes_a_class_indexed/1,
    redefinition_loses_extension_rows/1,
    origin_is_lost_at_the_next_registration/1,
    origin_sticks_when_it_is_no_longer_stated/1,
    patched_method_keeps_its_origin/1,
    server_answers_what_it_does_not_know/1,
    index_that_opened_rewrites_rows_behind_its_starter/1
]).

-define(CASES, [
    absent_keys_take_their_defaults, unknown_keys_are_refused, registration_keeps_methods_that_went,
    registration_needs_a_purge_before, empty_registration_is_no_registration, first_of_two_entries_loses,
    purge_leaves_rows_or_knowledge, generation_is_used_twice, patch_touches_siblings,
    patch_obeys_the_map_instead_of_its_arguments, patch_of_an_unknown_class_is_invisible,
    method_purge_takes_siblings_or_the_class, entry_is_built_wrongly, compiler_is_asked_in_vain,
    unknown_selector_is_lost_for_good, unknown_module_is_lost_for_good, sites_lack_keys,
        equal_sends_are_two_rows,
    implementors_are_unsorted_or_repeated, undefined_and_unscannable_are_confused, native_callers_are_wrong,
    rows_of_unloaded_classes_are_dropped, filter_excludes_without_proof, filter_confuses_sides,
    filter_mistakes_compound_types, filter_asks_twice_about_a_name, deep_chain_is_cut_off,
        cycle_of_classes_hangs,
    rows_for_the_library_are_of_unloaded_classes, fallback_is_judged_wrongly,
        indexed_class_is_asked_by_message,
    class_that_is_starting_is_a_miss, miss_is_not_told, sends_of_sourced_extensions_are_reported_twice,
    extension_overwrites_the_local_row, extension_makes_a_class_indexed, redefinition_loses_extension_rows,
    origin_is_lost_at_the_next_registration, origin_sticks_when_it_is_no_longer_stated,
    patched_method_keeps_its_origin, server_answers_what_it_does_not_know,
    index_that_opened_rewrites_rows_behind_its_starter
]).

all() -> ?CASES.

init_per_suite(Config) ->
    #{level := Level} = logger:get_primary_config(),
    %% Every run of an application is a report.
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
    ok = logger:unset_module_level(beamtalk_xref),
    ok = beamtalk_image:sync(),
    ok = beamtalk_image_abuse_app:halt_and_wait(),
    ok = beamtalk_image_abuse_host:stop(),
    #{xref := #{classes := 0, methods := 0, sends := 0, references := 0, unresolved_sends := 0,
        sent_selectors := 0}} =
        beamtalk_image:info(),
    ok.

%% ---- Input
%% ---------------------------------------------------------------------------------------------------

%% 3.1
absent_keys_take_their_defaults(_Config) ->
    ok = beamtalk_xref:register_class('C', [#{selector => m, line => 7, sends => [#{selector => s}],
        references => [#{class => 'R'}]}]),
    ?assertMatch(#{owner := 'C', line := 7, source_status := indexed, provenance := class_body},
        beamtalk_xref:method_info('C', false, m)),
    ?assertNot(maps:is_key(origin, beamtalk_xref:method_info('C', false, m))),
    ?assertMatch([#{owner := 'C', class_side := false, method := m, line := 7, recv_kind := other,
        target_module := undefined, recv_type := dynamic}], beamtalk_xref:senders_of(s)),
    ?assertMatch([#{owner := 'C', class_side := false, method := m, line := 7}],
        beamtalk_xref:references_to('R')),
    ?assertEqual(undefined, beamtalk_xref:method_info('C', true, m)).

unknown_keys_are_refused(_Config) ->
    ok = beamtalk_xref:register_class('C', [#{selector => m, line => 1, synthetic_origin => 5,
        <<"new">> => [x],
        sends => [#{selector => s, later => #{}}], references => [#{class => 'R', 1 => 2}]}]),
    ?assertEqual(1, length(beamtalk_xref:senders_of(s))),
    ?assertEqual(1, length(beamtalk_xref:references_to('R'))).

%% ---- Writing
%% -------------------------------------------------------------------------------------------------

%% 3.2, B1
registration_keeps_methods_that_went(_Config) ->
    ok = beamtalk_xref:register_class('C', [
        #{selector => kept, line => 1, sends => [#{selector => a}], references => [#{class => 'R'}]},
        #{selector => gone, line => 2, sends => [#{selector => a}, #{selector => only_gone},
            #{selector => f, recv_kind => erlang_ffi, target_module => lists}],
                references => [#{class => 'R'}]},
        #{selector => gone, class_side => true, line => 2, sends => [#{selector => a}]}
    ]),
    ?assertEqual(3, length(beamtalk_xref:senders_of(a))),
    ok = beamtalk_xref:register_class('C', [#{selector => kept, line => 9, sends => [#{selector => b}]}]),
    ?assertEqual([], beamtalk_xref:senders_of(a)),
    ?assertEqual([], beamtalk_xref:senders_of(only_gone)),
    ?assertMatch([#{line := 9}], beamtalk_xref:senders_of(b)),
    ?assertEqual([], beamtalk_xref:references_to('R')),
    ?assertEqual([], beamtalk_xref:implementors_of(gone)),
    ?assertEqual([], beamtalk_xref:callers_of_native_module(lists)),
    ?assertEqual([kept], beamtalk_xref:defined_selectors('C', false)),
    ?assertEqual([], beamtalk_xref:defined_selectors('C', true)),
    ?assertEqual(undefined, beamtalk_xref:method_info('C', true, gone)).

registration_needs_a_purge_before(_Config) ->
    [ok = beamtalk_xref:register_class('C', [#{selector => m, line => Line, sends => [#{selector => s}]}])
        || Line <- [3, 5]],
    ?assertMatch([#{line := 5}], beamtalk_xref:senders_of(s)).

empty_registration_is_no_registration(_Config) ->
    ok = beamtalk_image_abuse_host:add('C', none, [m]),
    ?assertMatch(#{fallback_classes := ['C']}, beamtalk_xref:defined_selectors_bt()),
    ok = beamtalk_xref:register_class('C', []),
    ?assertMatch(#{fallback_classes := []}, beamtalk_xref:defined_selectors_bt()).

%% [I] of 3.4
first_of_two_entries_loses(_Config) ->
    ok = beamtalk_xref:register_class('C', [#{selector => m, line => 1, sends => [#{selector => first}]},
        #{selector => m, line => 2, sends => [#{selector => second}]},
            #{selector => m, class_side => true, line => 3}]),
    ?assertMatch(#{line := 1}, beamtalk_xref:method_info('C', false, m)),
    ?assertMatch(#{line := 3}, beamtalk_xref:method_info('C', true, m)),
    ?assertEqual([], beamtalk_xref:senders_of(second)).

purge_leaves_rows_or_knowledge(_Config) ->
    ok = beamtalk_image_abuse_host:add('C', none, [m]),
    ok = beamtalk_xref:register_class('C', [#{selector => m, line => 1, sends => [#{selector => s}],
        references => [#{class => 'R'}]}, #{selector => n, class_side => true, line => 1,
            sends => [#{selector => s}]}]),
    ok = beamtalk_xref:register_class('D', [#{selector => m, line => 1, sends => [#{selector => s}],
        references => [#{class => 'C'}]}]),
    ok = beamtalk_xref:purge_class('C'),
    ok = beamtalk_xref:purge_class('Unknown'),
    ?assertMatch([#{owner := 'D'}], beamtalk_xref:senders_of(s)),
    ?assertEqual([], beamtalk_xref:references_to('R')),
    %% References to the class from others stay.
    ?assertMatch([#{owner := 'D'}], beamtalk_xref:references_to('C')),
    ?assertEqual([{'D', false}], beamtalk_xref:implementors_of(m)),
    ?assertMatch(#{fallback_classes := ['C']}, beamtalk_xref:senders_of_bt(s)).

%% 8.2-4: a reader that compares versions must not be taken in.
generation_is_used_twice(_Config) ->
    Generations = [begin
        ok = beamtalk_xref:purge_class('C'),
        ok = beamtalk_xref:register_class('C', [#{selector => m, line => Line}]),
        maps:get(gen, beamtalk_xref:method_info('C', false, m))
    end || Line <- lists:seq(1, 20)],
    ?assertEqual(Generations, lists:usort(Generations)).

patch_touches_siblings(_Config) ->
    ok = beamtalk_xref:register_class('C', [#{selector => p, line => 1, sends => [#{selector => a}]},
        #{selector => q, line => 2, sends => [#{selector => b}]}]),
    ok = beamtalk_xref:put_method('C', false, p, #{line => 1, sends => [#{selector => c}],
        provenance => put_method}),
    ?assertEqual([], beamtalk_xref:senders_of(a)),
    ?assertMatch([#{method := q, line := 2}], beamtalk_xref:senders_of(b)),
    ?assertMatch([#{method := p}], beamtalk_xref:senders_of(c)),
    ?assertMatch(#{provenance := put_method}, beamtalk_xref:method_info('C', false, p)),
    ?assertMatch(#{provenance := class_body}, beamtalk_xref:method_info('C', false, q)).

patch_obeys_the_map_instead_of_its_arguments(_Config) ->
    ok = beamtalk_xref:put_method('C', true, p, #{selector => other, class_side => false, line => 4}),
    ?assertMatch(#{line := 4}, beamtalk_xref:method_info('C', true, p)),
    ?assertEqual(undefined, beamtalk_xref:method_info('C', false, other)),
    ?assertEqual([{'C', true}], beamtalk_xref:implementors_of(p)).

patch_of_an_unknown_class_is_invisible(_Config) ->
    ok = beamtalk_image_abuse_host:add('C', none, [m]),
    ok = beamtalk_xref:put_method('C', false, m, #{line => 1, sends => [#{selector => s}]}),
    ?assertMatch(#{indexed := [#{owner := 'C', method := m}], fallback_classes := []},
        beamtalk_xref:senders_of_bt(s)).

method_purge_takes_siblings_or_the_class(_Config) ->
    ok = beamtalk_image_abuse_host:add('C', none, [m]),
    Rows = [{m, false}, {m, true}, {n, false}],
    ok = beamtalk_xref:register_class('C', [#{selector => Selector, class_side => Side, line => 1,
        sends => [#{selector => s}], references => [#{class => 'R'}]} || {Selector, Side} <- Rows]),
    ok = beamtalk_xref:purge_method('C', false, unknown),
    ok = beamtalk_xref:purge_method('Unknown', false, m),
    ok = beamtalk_xref:purge_method('C', false, m),
    Left = [{m, true}, {n, false}],
    ?assertEqual(Left, lists:sort([{M, Side} || #{method := M,
        class_side := Side} <- beamtalk_xref:senders_of(s)])),
    ?assertEqual(Left, lists:sort([{M, Side} || #{method := M,
        class_side := Side} <- beamtalk_xref:references_to('R')])),
    ?assertEqual([{'C', true}], beamtalk_xref:implementors_of(m)),
    [ok = beamtalk_xref:purge_method('C', Side, M) || {M, Side} <- Left],
    ?assertMatch(#{indexed := [], fallback_classes := []}, beamtalk_xref:senders_of_bt(s)).

%% ---- Building entries
%% ----------------------------------------------------------------------------------------

entry_is_built_wrongly(_Config) ->
    Long = binary:copy(<<"x">>, 256),
    beamtalk_image_abuse_host:replace(find_sends, fun(_) ->
        {ok, [Hit#{line => 3} || Hit <- [
            #{selector => <<"known">>, recv => self, target_module => <<>>},
            #{selector => <<"known">>, recv => super, target_module => <<>>},
            #{selector => <<"reverse">>, recv => erlang_ffi, target_module => <<"lists">>},
            #{selector => <<"known">>, recv => something_new, target_module => <<>>},
            #{selector => Long, recv => self, target_module => <<>>},
            #{selector => <<"not an atom at all 1">>, recv => self, target_module => <<>>},
            #{selector => <<"known">>, recv => erlang_ffi, target_module => <<"not an atom at all 2">>}
        ]]}
    end),
    _ = known,
    Entry = beamtalk_xref:build_method_entry(true, m, <<"text">>, indexed, class_builder),
    ?assertMatch(#{selector := m, class_side := true, line := 1, references := [], source_status := indexed,
        provenance := class_builder}, Entry),
    Send = fun(Selector, Kind, Module) ->
        #{selector => Selector, line => 3, recv_kind => Kind, target_module => Module, recv_type => dynamic}
    end,
    ?assertEqual([Send(known, self_recv, undefined), Send(known, super_recv, undefined),
        Send(reverse, erlang_ffi, lists),
        Send(known, other, undefined), Send(known, erlang_ffi, undefined)], maps:get(sends, Entry)).

compiler_is_asked_in_vain(_Config) ->
    ok = beamtalk_xref:purge_class('C'),
    [?assertMatch(#{sends := []}, beamtalk_xref:build_method_entry(false, m, Source, Status, extension))
        || {Source, Status} <- [{<<"known">>, unindexed_runtime_fun}, {<<>>, indexed}, {undefined, indexed},
            {"known", indexed}, {[<<"known">>], indexed}]],
    ?assertEqual(0, beamtalk_image_abuse_host:asked(find_sends)),
    ?assertMatch(#{sends := [#{selector := known}]},
        beamtalk_xref:build_method_entry(false, m, <<"known">>, synthetic, extension)),
    beamtalk_image_abuse_host:replace(find_sends, fun(_) -> {error, [timeout]} end),
    ?assertMatch(#{sends := []}, beamtalk_xref:build_method_entry(false, m, <<"known">>, indexed,
        put_method)),
    ?assertError(function_clause, beamtalk_xref:build_method_entry(no, m, <<>>, indexed, put_method)),
    ?assertError(function_clause, beamtalk_xref:build_method_entry(true, "m", <<>>, indexed, put_method)),
    %% No server is needed.
    ok = supervisor:terminate_child(beamtalk_image_abuse_app, beamtalk_xref),
    ?assertMatch(#{sends := []}, beamtalk_xref:build_method_entry(false, m, <<>>, indexed, put_method)).

%% 8.2-13
unknown_selector_is_lost_for_good(_Config) ->
    Text = fresh_text(),
    ok = beamtalk_image_abuse_host:add('C', none, [m]),
    Entry = beamtalk_xref:build_method_entry(false, m, Text, indexed, put_method),
    ?assertMatch(#{sends := [], unresolved_sends := [#{selector := Text}]}, Entry),
    ok = beamtalk_xref:put_method('C', false, m, Entry),
    ?assertMatch(#{indexed := []}, beamtalk_xref:all_sends_bt()),
    ?assertMatch(#{indexed := []}, beamtalk_xref:all_sent_selectors_bt()),
    Selector = binary_to_atom(Text),
    ?assertMatch([#{owner := 'C', method := m, line := 1, recv_kind := self_recv, recv_type := dynamic,
        target_module := undefined}], beamtalk_xref:senders_of(Selector)),
    ?assertMatch([_], beamtalk_xref:senders_of(Selector, 'C')),
    ?assertMatch(#{indexed := [#{owner := 'C', method := m}]}, beamtalk_xref:senders_of_bt(Selector)),
    ?assertMatch(#{indexed := [#{sent := Selector, recv := self}]}, beamtalk_xref:all_sends_bt()),
    ?assertMatch(#{indexed := [Selector]}, beamtalk_xref:all_sent_selectors_bt()),
    ok = beamtalk_xref:purge_method('C', false, m),
    ?assertEqual([], beamtalk_xref:senders_of(Selector)).

unknown_module_is_lost_for_good(_Config) ->
    Module = fresh_text(),
    Selector = fresh_text(),
    beamtalk_image_abuse_host:replace(find_sends, fun(_) ->
        {ok, [#{selector => Name, line => Line, recv => erlang_ffi, target_module => Module}
            || {Name, Line} <- [{<<"known">>, 5}, {Selector, 3}]]}
    end),
    ok = beamtalk_xref:put_method('C', false, m,
        beamtalk_xref:build_method_entry(false, m, <<"text">>, indexed, put_method)),
    ?assertEqual([#{owner => 'C', class_side => false, method => m, line => 3}],
        beamtalk_xref:callers_of_native_module(binary_to_atom(Module))),
    ?assertMatch([#{line := 5}], beamtalk_xref:senders_of(known)),
    ?assertMatch([#{line := 3}], beamtalk_xref:senders_of(binary_to_atom(Selector))).

fresh_text() ->
    Text = <<"fresh ", (integer_to_binary(erlang:unique_integer([positive])))/binary, " ",
        (integer_to_binary(erlang:system_time()))/binary>>,
    ?assertError(badarg, binary_to_existing_atom(Text)),
    Text.

%% ---- Plain reads
%% ---------------------------------------------------------------------------------------------

%% 3.3
sites_lack_keys(_Config) ->
    ok = beamtalk_image_abuse_host:add('C', none, []),
    ok = beamtalk_xref:register_class('C', [#{selector => m, class_side => true, line => 1,
        source_status => synthetic,
        provenance => class_builder, references => [#{class => 'R', line => 6}],
        sends => [#{selector => s, line => 2, recv_kind => erlang_ffi, target_module => lists,
            recv_type => {union, ['A', {intersection, ['B', 'C class']}]}}]}]),
    Keys = fun(Rows) -> [lists:sort(maps:keys(Row)) || Row <- Rows] end,
    [Site] = beamtalk_xref:senders_of(s),
    ?assertEqual([gen, class_side, line, method, owner, recv_kind, recv_type, target_module] -- [gen],
        lists:sort(maps:keys(Site)) -- [gen]),
    ?assertMatch(#{class_side := true, line := 2, recv_kind := erlang_ffi, target_module := lists,
        recv_type := {union, ['A', {intersection, ['B', 'C class']}]}, gen := _}, Site),
    ?assertMatch([#{owner := 'C', class_side := true, method := m, line := 6, gen := _}],
        beamtalk_xref:references_to('R')),
    ?assertMatch(#{owner := 'C', line := 1, source_status := synthetic, provenance := class_builder,
        gen := _},
        beamtalk_xref:method_info('C', true, m)),
    ?assertEqual([[class_side, line, method, owner]], Keys(beamtalk_xref:callers_of_native_module(lists))),
    ?assertEqual([[class_side, line, method, owner]],
        Keys(maps:get(indexed, beamtalk_xref:senders_of_bt(s)))),
    ?assertEqual([[class_side, line, method, owner]],
        Keys(maps:get(indexed, beamtalk_xref:references_to_bt('R')))),
    ?assertEqual([#{owner => 'C', class_side => true}],
        maps:get(indexed, beamtalk_xref:implementors_of_bt(m))),
    ?assertEqual([#{owner => 'C', class_side => true, selector => m}],
        maps:get(indexed, beamtalk_xref:defined_selectors_bt())),
    ?assertEqual([#{owner => 'C', class_side => true, method => m, line => 2, sent => s, recv => erlang_ffi}],
        maps:get(indexed, beamtalk_xref:all_sends_bt())).

%% 3.4: set semantics, and nothing more than that is merged.
equal_sends_are_two_rows(_Config) ->
    Send = #{selector => s, line => 2},
    Sends = [Send, Send, Send#{line => 3}, Send#{recv_kind => self_recv}, Send#{recv_type => 'A'},
        Send#{recv_kind => erlang_ffi, target_module => lists}, Send#{recv_type => 'A'}],
    ok = beamtalk_xref:register_class('C', [#{selector => m, line => 1, sends => Sends,
        references => [#{class => 'R'}, #{class => 'R'}, #{class => 'R', line => 2}]}]),
    ?assertEqual(5, length(beamtalk_xref:senders_of(s))),
    ?assertEqual(2, length(beamtalk_xref:references_to('R'))).

implementors_are_unsorted_or_repeated(_Config) ->
    Classes = ['Zeta', 'Alpha', 'Beta', 'alpha', 'Ünder'],
    [ok = beamtalk_xref:register_class(Class, [#{selector => m, class_side => Side, line => 1}
        || Side <- [true, false]])
        || Class <- Classes],
    ok = beamtalk_extensions:register('Beta', m, fun() -> ok end, pkg),
    ok = beamtalk_extensions:register('Beta class', m, fun() -> ok end, pkg),
    Expected = lists:sort([{'Beta class', false} | [{Class, Side}
        || Class <- Classes, Side <- [true, false]]]),
    ?assertEqual(Expected, beamtalk_xref:implementors_of(m)),
    ok = beamtalk_xref:register_class('C', [#{selector => S, line => 1} || S <- [z, a, 'Ü', m, 'a:b:', '+',
        '']]),
    ?assertEqual(lists:sort([z, a, 'Ü', m, 'a:b:', '+', '']), beamtalk_xref:defined_selectors('C', false)).

undefined_and_unscannable_are_confused(_Config) ->
    ok = beamtalk_extensions:register('C', m, fun() -> ok end, pkg),
    ?assertMatch(#{owner := 'C', line := 1, source_status := unindexed_runtime_fun, provenance := extension},
        beamtalk_xref:method_info('C', false, m)),
    ?assertEqual(undefined, beamtalk_xref:method_info('C', false, n)),
    ?assertEqual(undefined, beamtalk_xref:method_info('C', true, m)),
    ?assertEqual(undefined, beamtalk_xref:method_info('D', false, m)).

native_callers_are_wrong(_Config) ->
    Call = fun(Line) -> #{selector => f, line => Line, recv_kind => erlang_ffi, target_module => lists} end,
    [ok = beamtalk_xref:register_class(Class, [
        #{selector => z, line => 1, sends => [Call(9), Call(4), Call(6)]},
        #{selector => a, line => 1, sends => [Call(2), (Call(1))#{recv_kind => other},
            (Call(1))#{target_module => maps}]},
        #{selector => none, line => 1, sends => [(Call(1))#{recv_kind => self_recv}]}
    ]) || Class <- ['D', 'C']],
    ?assertEqual([{'C', a, 2}, {'C', z, 4}, {'D', a, 2}, {'D', z, 4}],
        [{Owner, Method, Line} || #{owner := Owner, method := Method,
            line := Line} <- beamtalk_xref:callers_of_native_module(lists)]),
    ?assertEqual(2, length(beamtalk_xref:callers_of_native_module(maps))),
    ?assertEqual([], beamtalk_xref:callers_of_native_module('$no such module')).

rows_of_unloaded_classes_are_dropped(_Config) ->
    ok = beamtalk_xref:register_class('Gone', [#{selector => m, line => 1, sends => [#{selector => s}]}]),
    ?assertMatch([#{owner := 'Gone'}], beamtalk_xref:senders_of(s)),
    ?assertEqual([{'Gone', false}], beamtalk_xref:implementors_of(m)),
    ?assertEqual(#{indexed => [], fallback_classes => []}, beamtalk_xref:senders_of_bt(s)).

%% ---- Receiver types (3.5)
%% --------------------------------------------------------------------------------------

%% 'Top' > 'Mid' > 'Low', 'Side' beside them; protocol 'Speaks' is what 'Mid' and below conform to.
typed(Types) ->
    ok = beamtalk_image_abuse_host:add('Top', none, []),
    ok = beamtalk_image_abuse_host:add('Mid', 'Top', [speak]),
    ok = beamtalk_image_abuse_host:add('Low', 'Mid', []),
    ok = beamtalk_image_abuse_host:add('Side', none, []),
    ok = beamtalk_protocol_registry:register_protocol(
        #{name => 'Speaks', required_methods => [#{selector => speak, arity => 0}]}),
    ok = beamtalk_xref:register_class('User', [#{selector => list_to_atom("m" ++ integer_to_list(N)),
        line => N,
        sends => [maps:merge(#{selector => s}, case Type of absent -> #{}; _ -> #{recv_type => Type} end)]}
        || {N, Type} <- lists:zip(lists:seq(1, length(Types)), Types)]).

kept(Changed, Types) ->
    ok = typed(Types),
    [lists:nth(Line, Types) || Line <- lists:sort([Line || #{line := Line} <- beamtalk_xref:senders_of(s,
        Changed)])].

filter_excludes_without_proof(_Config) ->
    Types = [absent, dynamic, 'Top', 'Mid', 'Low', 'Side', 'Unknown', 'Speaks'],
    ?assertEqual([absent, dynamic, 'Top', 'Mid', 'Low', 'Unknown', 'Speaks'], kept('Mid', Types)),
    ?assertEqual([absent, dynamic, 'Top', 'Mid', 'Low', 'Unknown', 'Speaks'], kept('Low', Types)),
    %% Descendants count; a protocol is asked about the changed class alone.
    ?assertEqual([absent, dynamic, 'Top', 'Mid', 'Low', 'Unknown'], kept('Top', Types)),
    ?assertEqual([absent, dynamic, 'Side', 'Unknown'], kept('Side', Types)),
    ?assertEqual([absent, dynamic, 'Unknown'], kept('Elsewhere', Types)),
    %% Order and rows are those of senders_of/1.
    All = beamtalk_xref:senders_of(s),
    Some = beamtalk_xref:senders_of(s, 'Mid'),
    ?assertEqual(Some, [Row || Row <- All, lists:member(Row, Some)]).

filter_confuses_sides(_Config) ->
    Types = ['Mid', 'Mid class', 'Top class', 'Side class', 'Unknown class', 'Unknown', 'Speaks',
        'Speaks class', dynamic],
    ?assertEqual(['Mid', 'Unknown', 'Speaks', dynamic], kept('Mid', Types)),
    ?assertEqual(['Mid class', 'Top class', 'Unknown class', 'Speaks class', dynamic],
        kept('Mid class', Types)).

filter_mistakes_compound_types(_Config) ->
    Types = [{union, []}, {intersection, []}, {union, ['Side', 'Mid']}, {union, ['Side']},
        {intersection, ['Side', 'Mid']},
        {intersection, ['Top', 'Mid']}, {union, ['Mid class', 'Side']}, {intersection, [dynamic, 'Side']},
        {union, [dynamic, 'Side']}, {union, [{intersection, ['Mid', 'Side']}, 'Unknown']},
        {intersection, [{union, ['Mid', 'Side']}, 'Speaks']}],
    ?assertEqual([{intersection, []}, {union, ['Side', 'Mid']}, {intersection, ['Top', 'Mid']},
        {union, [dynamic, 'Side']},
        {union, [{intersection, ['Mid', 'Side']}, 'Unknown']},
            {intersection, [{union, ['Mid', 'Side']}, 'Speaks']}],
        kept('Mid', Types)).

filter_asks_twice_about_a_name(_Config) ->
    ok = typed(lists:append(lists:duplicate(20, ['Speaks', {union, ['Speaks', 'Side']}, 'Unknown', 'Top']))),
    beamtalk_image_abuse_host:forget_asked(),
    %% Nobody traces itself.
    {Asker, Monitor} = spawn_monitor(fun() ->
        receive go -> exit({rows, length(beamtalk_xref:senders_of(s, 'Mid'))}) end
    end),
    1 = erlang:trace(Asker, true, [call]),
    _ = erlang:trace_pattern({beamtalk_protocol_registry, '_', '_'}, true, []),
    Asker ! go,
    receive {'DOWN', Monitor, process, Asker, Why} -> ?assertEqual({rows, 80}, Why) end,
    Delivered = erlang:trace_delivered(Asker),
    receive {trace_delivered, Asker, Delivered} -> ok end,
    _ = erlang:trace_pattern({beamtalk_protocol_registry, '_', '_'}, false, []),
    Calls = traced(),
    Asked = [Name || {is_protocol, [Name]} <- Calls],
    ?assertEqual(['Side', 'Speaks', 'Top', 'Unknown'], lists:sort(Asked)),
    ?assertEqual([['Mid', 'Speaks']], [Args || {conforms_to, Args} <- Calls]).

traced() ->
    receive
        {trace, _, call, {_, Function, Args}} -> [{Function, Args} | traced()]
    after 0 -> []
    end.

%% 8.2-15
deep_chain_is_cut_off(_Config) ->
    Names = [list_to_atom("Deep" ++ integer_to_list(N)) || N <- lists:seq(1, 100)],
    [ok = beamtalk_image_abuse_host:add(Name, Super, [])
        || {Name, Super} <- lists:zip(Names, [none | lists:droplast(Names)])],
    Set = beamtalk_xref:hierarchy_related_classes('Deep50'),
    ?assertEqual(lists:sort(Names), lists:sort(sets:to_list(Set))),
    ?assert(is_map(Set)),
    ok = beamtalk_xref:register_class('User', [#{selector => m, line => 1, sends => [#{selector => s,
        recv_type => 'Deep1'}]}]),
    ?assertMatch([_], beamtalk_xref:senders_of(s, 'Deep100')).

cycle_of_classes_hangs(_Config) ->
    [ok = beamtalk_image_abuse_host:add(Name, Super, [])
        || {Name, Super} <- [{'A', 'B'}, {'B', 'C'}, {'C', 'A'}, {'Own', 'Own'}]],
    ?assertEqual(['A', 'B', 'C'], lists:sort(sets:to_list(beamtalk_xref:hierarchy_related_classes('B')))),
    ?assertEqual(['Own'], sets:to_list(beamtalk_xref:hierarchy_related_classes('Own'))),
    ?assertEqual(['Alone'], sets:to_list(beamtalk_xref:hierarchy_related_classes('Alone'))).

%% ---- Reads for the library (3.6)
%% --------------------------------------------------------------------------------

queries() ->
    [
        {sendersOf, fun() -> beamtalk_xref:senders_of_bt(s) end},
        {referencesTo, fun() -> beamtalk_xref:references_to_bt('R') end},
        {implementorsOf, fun() -> beamtalk_xref:implementors_of_bt(m) end},
        {selectorsMatching, fun beamtalk_xref:defined_selectors_bt/0},
        {unimplementedSelectors, fun beamtalk_xref:all_sends_bt/0},
        {unusedSelectors, fun beamtalk_xref:all_sent_selectors_bt/0}
    ].

rows_for_the_library_are_of_unloaded_classes(_Config) ->
    ok = beamtalk_image_abuse_host:add('Loaded', none, [m]),
    [ok = beamtalk_xref:register_class(Class, [#{selector => m, line => 1, references => [#{class => 'R'}],
        sends => [#{selector => s}, #{selector => ffi, recv_kind => erlang_ffi}]}])
            || Class <- ['Loaded', 'Unloaded']],
    ok = beamtalk_extensions:register('Loaded class', m, fun() -> ok end, pkg),
    [begin
        #{indexed := Rows, fallback_classes := []} = Ask(),
        ?assertEqual({Query, ['Loaded']}, {Query, lists:usort([maps:get(owner, Row) || Row <- Rows,
            is_map(Row)] ++
            ['Loaded' || Query =:= unusedSelectors])})
    end || {Query, Ask} <- queries()],
    %% Calls of Erlang functions are no sends of their selectors.
    ?assertEqual([s], maps:get(indexed, beamtalk_xref:all_sent_selectors_bt())),
    ?assertEqual([erlang_ffi, other], lists:sort([Recv || #{recv := Recv} <- maps:get(indexed,
        beamtalk_xref:all_sends_bt())])).

fallback_is_judged_wrongly(_Config) ->
    ok = beamtalk_image_abuse_host:add('Indexed', none, [m]),
    ok = beamtalk_image_abuse_host:add('Instance', none, [m]),
    ok = beamtalk_image_abuse_host:add('ClassSide', #{class => [m]}),
    ok = beamtalk_image_abuse_host:add('Empty', none, []),
    ok = beamtalk_image_abuse_host:add('Dead', none, [m]),
    ok = beamtalk_image_abuse_host:add('Silent', none, [m]),
    ok = beamtalk_xref:register_class('Indexed', [#{selector => other, line => 1}]),
    beamtalk_image_abuse_host:replace(instance_selectors, fun([Name]) ->
        case Name of
            'Dead' -> exit({noproc, Name});
            'Silent' -> exit({timeout, Name});
            'Instance' -> [m];
            _ -> []
        end
    end),
    [begin
        #{indexed := Rows, fallback_classes := Fallback} = Ask(),
        ?assertEqual({Query, ['ClassSide', 'Instance']}, {Query, lists:sort(Fallback)}),
        ?assert(is_list(Rows))
    end || {Query, Ask} <- queries()].

%% 3.6: a healthy system sends no message.
indexed_class_is_asked_by_message(_Config) ->
    [ok = beamtalk_image_abuse_host:add(Name, none, [m]) || Name <- ['A', 'B', 'C']],
    [ok = beamtalk_xref:register_class(Name, []) || Name <- ['A', 'B', 'C']],
    beamtalk_image_abuse_host:forget_asked(),
    [#{fallback_classes := []} = Ask() || {_, Ask} <- queries()],
    ?assertEqual(0,
        beamtalk_image_abuse_host:asked(instance_selectors) +
            beamtalk_image_abuse_host:asked(class_selectors)),
    ok = beamtalk_xref:purge_class('B'),
    [#{fallback_classes := ['B']} = Ask() || {_, Ask} <- queries()],
    ?assertEqual(0, beamtalk_image_abuse_host:asked(instance_selectors, ['A'])),
    ?assert(beamtalk_image_abuse_host:asked(instance_selectors, ['B']) > 0).

%% 8.2-11: it is loaded, it is asked, and by the time it answers it has registered.
class_that_is_starting_is_a_miss(_Config) ->
    ok = beamtalk_image_abuse_host:add('Starting', none, [m]),
    listen(warning),
    beamtalk_image_abuse_host:replace(instance_selectors, fun(['Starting']) ->
        ok = beamtalk_xref:register_class('Starting',
            [#{selector => m, line => 3, sends => [#{selector => s}]}]),
        [m]
    end),
    ?assertEqual(#{indexed => [#{owner => 'Starting', class_side => false, method => m, line => 3}],
        fallback_classes => []},
        beamtalk_xref:senders_of_bt(s)),
    ?assertEqual([], heard()).

miss_is_not_told(_Config) ->
    ok = beamtalk_image_abuse_host:add('Missed', none, [m]),
    ok = beamtalk_image_abuse_host:add('Also', none, [m]),
    listen(warning),
    [begin
        #{fallback_classes := Fallback} = Ask(),
        ?assertEqual(['Also', 'Missed'], lists:sort(Fallback)),
        Reports = [Report || #{level := warning, msg := {report, #{query := Q} = Report},
            meta := Meta} <- heard(),
            Q =:= Query, maps:get(domain, Meta) =:= [beamtalk, runtime]],
        ?assertEqual(['Also', 'Missed'], lists:sort([Class || #{event := xref_miss, reason := xref_miss,
            class := Class,
            domain := [beamtalk, runtime]} <- Reports])),
        ?assertEqual(2, length(Reports))
    end || {Query, Ask} <- queries()].

%% 8.2-6: the library scans the texts of extensions itself.
sends_of_sourced_extensions_are_reported_twice(_Config) ->
    ok = beamtalk_image_abuse_host:add('C', none, [m]),
    ok = beamtalk_xref:register_class('C', [#{selector => m, line => 1, sends => [#{selector => s}]}]),
    ok = beamtalk_extensions:register('C', ext, fun() -> ok end, pkg, <<"s\nonly_ext">>),
    ok = beamtalk_image:sync(),
    ?assertEqual([ext, m], lists:sort([Method || #{method := Method} <- beamtalk_xref:senders_of(s)])),
    ?assertEqual([m], [Method || #{method := Method} <- maps:get(indexed, beamtalk_xref:senders_of_bt(s))]),
    ?assertEqual([s], [Sent || #{sent := Sent} <- maps:get(indexed, beamtalk_xref:all_sends_bt())]),
    ?assertEqual([s], maps:get(indexed, beamtalk_xref:all_sent_selectors_bt())),
    %% It is defined all the same.
    ?assertEqual([ext, m], lists:sort([S || #{selector := S} <- maps:get(indexed,
        beamtalk_xref:defined_selectors_bt())])),
    ?assertEqual([#{owner => 'C', class_side => false}],
        maps:get(indexed, beamtalk_xref:implementors_of_bt(ext))).

%% ---- Layers and origins
%% ----------------------------------------------------------------------------------------

%% 8.2-5
extension_overwrites_the_local_row(_Config) ->
    Local = #{selector => m, line => 7, sends => [#{selector => local_send}],
        references => [#{class => 'R'}]},
    ok = beamtalk_xref:register_class('C', [Local]),
    ok = beamtalk_extensions:register('C', m, fun() -> ok end, pkg, <<"ext_send">>),
    ok = beamtalk_image:sync(),
    ?assertEqual([], beamtalk_xref:senders_of(local_send)),
    ?assertMatch([#{line := 1}], beamtalk_xref:senders_of(ext_send)),
    ?assertEqual([], beamtalk_xref:references_to('R')),
    ?assertEqual([{'C', false}], beamtalk_xref:implementors_of(m)),
    ?assertEqual([m], beamtalk_xref:defined_selectors('C', false)),
    %% A live patch of the class goes beneath it.
    ok = beamtalk_xref:put_method('C', false, m, #{line => 8, sends => [#{selector => patched}],
        provenance => put_method}),
    ?assertEqual([], beamtalk_xref:senders_of(patched)),
    ok = beamtalk_extensions:unregister('C', m),
    ?assertMatch([#{line := 8}], beamtalk_xref:senders_of(patched)),
    ?assertMatch(#{provenance := put_method}, beamtalk_xref:method_info('C', false, m)),
    ?assertEqual([], beamtalk_xref:senders_of(ext_send)).

%% 8.2-8, 8.5-3
extension_makes_a_class_indexed(_Config) ->
    ok = beamtalk_image_abuse_host:add('C', none, [m]),
    ok = beamtalk_extensions:register('C', ext, fun() -> ok end, pkg, <<"s">>),
    ok = beamtalk_image:sync(),
    ?assertMatch(#{fallback_classes := ['C']}, beamtalk_xref:senders_of_bt(s)),
    ok = beamtalk_extensions:unregister('C', ext),
    ?assertMatch(#{fallback_classes := ['C']}, beamtalk_xref:senders_of_bt(s)).

%% As the host redefines: purge, then registration.
redefinition_loses_extension_rows(_Config) ->
    ok = beamtalk_extensions:register('C', ext, fun() -> ok end, pkg, <<"ext_send">>),
    ok = beamtalk_image:sync(),
    [begin
        ok = beamtalk_xref:purge_class('C'),
        ok = beamtalk_xref:register_class('C', [#{selector => m, line => Line}, #{selector => ext,
            line => Line}]),
        ?assertMatch(#{provenance := extension}, beamtalk_xref:method_info('C', false, ext)),
        ?assertMatch([#{method := ext}], beamtalk_xref:senders_of(ext_send)),
        ?assertMatch(#{line := Line}, beamtalk_xref:method_info('C', false, m))
    end || Line <- [1, 2, 3]],
    ok = beamtalk_extensions:unregister('C', ext),
    ?assertMatch(#{provenance := class_body, line := 3}, beamtalk_xref:method_info('C', false, ext)).

origin_is_lost_at_the_next_registration(_Config) ->
    Rows = fun(Line) -> [#{selector => S, class_side => Side, line => Line} || {S, Side} <- [{a, false}, {b,
        false}, {a, true}]] end,
    ok = beamtalk_xref:register_class('C', Rows(1)),
    ok = beamtalk_xref:set_provenance('C', #{a => 'T'}),
    Check = fun(Line) ->
        ?assertMatch(#{provenance := protocol, origin := 'T', line := Line},
            beamtalk_xref:method_info('C', false, a)),
        ?assertMatch(#{provenance := class_body, line := Line}, beamtalk_xref:method_info('C', false, b)),
        ?assertNot(maps:is_key(origin, beamtalk_xref:method_info('C', false, b))),
        %% Only the instance side is flattened.
        ?assertMatch(#{provenance := class_body}, beamtalk_xref:method_info('C', true, a))
    end,
    Check(1),
    ok = beamtalk_xref:register_class('C', Rows(2)),
    Check(2),
    ok = beamtalk_xref:purge_class('C'),
    ok = beamtalk_xref:register_class('C', Rows(3)),
    Check(3),
    %% Stated before the class is there.
    ok = beamtalk_xref:set_provenance('Later', #{a => 'T'}),
    ok = beamtalk_xref:register_class('Later', Rows(4)),
    ?assertMatch(#{origin := 'T'}, beamtalk_xref:method_info('Later', false, a)),
    %% And where rows carry their own.
    ok = beamtalk_xref:register_class('D', [#{selector => a, line => 1, provenance => protocol,
        origin => 'U'}]),
    ?assertMatch(#{provenance := protocol, origin := 'U'}, beamtalk_xref:method_info('D', false, a)),
    [ok = beamtalk_xref:forget_class(Class) || Class <- ['C', 'Later', 'D']].

origin_sticks_when_it_is_no_longer_stated(_Config) ->
    ok = beamtalk_xref:register_class('C', [#{selector => a, line => 1}, #{selector => b, line => 1}]),
    ok = beamtalk_xref:set_provenance('C', #{a => 'T', b => 'T'}),
    ok = beamtalk_xref:set_provenance('C', #{b => 'U'}),
    ?assertMatch(#{provenance := class_body}, beamtalk_xref:method_info('C', false, a)),
    ?assertNot(maps:is_key(origin, beamtalk_xref:method_info('C', false, a))),
    ?assertMatch(#{provenance := protocol, origin := 'U'}, beamtalk_xref:method_info('C', false, b)),
    ok = beamtalk_xref:set_provenance('C', #{}),
    ?assertMatch(#{provenance := class_body}, beamtalk_xref:method_info('C', false, b)),
    ok = beamtalk_xref:set_provenance('C', #{a => 'T'}),
    ok = beamtalk_xref:forget_class('C'),
    ok = beamtalk_xref:register_class('C', [#{selector => a, line => 1}]),
    ?assertMatch(#{provenance := class_body}, beamtalk_xref:method_info('C', false, a)).

%% A live patch is the class's own method.
patched_method_keeps_its_origin(_Config) ->
    ok = beamtalk_xref:register_class('C', [#{selector => a, line => 1}]),
    ok = beamtalk_xref:set_provenance('C', #{a => 'T'}),
    ok = beamtalk_xref:put_method('C', false, a, #{line => 1, provenance => put_method}),
    ?assertMatch(#{provenance := put_method}, beamtalk_xref:method_info('C', false, a)),
    ?assertNot(maps:is_key(origin, beamtalk_xref:method_info('C', false, a))),
    ok = beamtalk_xref:forget_class('C').

%% ---- The process
%% -----------------------------------------------------------------------------------------------

server_answers_what_it_does_not_know(_Config) ->
    Pid = whereis(beamtalk_xref),
    ?assertEqual({error, unknown_request}, gen_server:call(beamtalk_xref, anything)),
    ok = gen_server:cast(beamtalk_xref, anything),
    beamtalk_xref ! anything,
    ?assertEqual({error, {already_started, Pid}}, beamtalk_xref:start_link()),
    ?assertEqual(Pid, whereis(beamtalk_xref)),
    ok = supervisor:terminate_child(beamtalk_image_abuse_app, beamtalk_xref),
    listen(info),
    {ok, _} = supervisor:restart_child(beamtalk_image_abuse_app, beamtalk_xref),
    _ = sys:get_state(beamtalk_xref),
    ?assertMatch([#{meta := #{domain := [beamtalk, runtime]}}],
        [Event || #{level := info} = Event <- heard()]).

%% Whoever has started it, registered something and waited for the background finds it done, and done once.
index_that_opened_rewrites_rows_behind_its_starter(_Config) ->
    [begin
        ok = beamtalk_image_abuse_app:halt(),
        ok = beamtalk_image_abuse_app:run_at_once(),
        ok = beamtalk_extensions:register('C', m, fun() -> ok end, pkg, <<"s">>),
        ok = beamtalk_image:sync(),
        Rows = beamtalk_xref:senders_of(s),
        ?assertMatch([#{method := m}], Rows),
        _ = sys:get_state(beamtalk_xref),
        ?assertEqual(Rows, beamtalk_xref:senders_of(s)),
        ok = beamtalk_image:sync(),
        ?assertEqual(Rows, beamtalk_xref:senders_of(s))
    end || _ <- lists:seq(1, 50)],
    ok.

%% ---- Means
%% -------------------------------------------------------------------------------------------------------

listen(Level) ->
    ok = logger:set_module_level(beamtalk_xref, Level),
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => self(), level => Level}).

heard() ->
    receive
        {logged, #{meta := #{mfa := {beamtalk_xref, _, _}}} = Event} -> [Event | heard()];
        {logged, _} -> heard()
    after 50 -> []
    end.

log(Event, #{config := Test}) ->
    Test ! {logged, Event}.
