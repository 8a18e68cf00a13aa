%% Wrong, broken, deep and huge input at every door: an error each time, never the end of the VM, never a
%% panic, and
%% nothing half written. What could end a VM runs on a node of its own.
-module(beamtalk_image_abuse_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([
    nif_takes_a_term_outside_its_type/1,
    function_takes_a_term_outside_its_type/1,
    odd_term_under_an_entry_key_ends_the_vm/1,
    deep_term_in_a_stored_term_ends_the_vm/1,
    huge_input_breaks_the_next_call/1,
    malformed_entry_leaves_half_a_class/1,
    malformed_entry_replaces_a_method/1,
    malformed_definition_replaces_a_protocol/1,
    malformed_uses_replace_a_list/1,
    malformed_origins_change_rows/1,
    refusal_does_not_say_where/1,
    last_row_of_a_receiver_type_decides/1,
    name_outside_latin1_is_lost/1,
    longest_name_breaks_a_removal/1,
    broken_compiler_answer_reaches_the_caller/1,
    undecodable_text_is_stored/1,
    huge_nameless_definition_floods_the_log/1
]).
-export([
    on_node_wrong_nif_calls/0,
    on_node_wrong_calls/1,
    on_node_odd_entries/0,
    on_node_deep_terms/0,
    on_node_huge_input/0,
    log/2
]).

%% What only the image's own processes call.
-define(OUR_OWN, [index_sends]).
-define(XREF(Function), fun beamtalk_xref:Function).

all() ->
    [
        nif_takes_a_term_outside_its_type,
        function_takes_a_term_outside_its_type,
        odd_term_under_an_entry_key_ends_the_vm,
        deep_term_in_a_stored_term_ends_the_vm,
        huge_input_breaks_the_next_call,
        malformed_entry_leaves_half_a_class,
        malformed_entry_replaces_a_method,
        malformed_definition_replaces_a_protocol,
        malformed_uses_replace_a_list,
        malformed_origins_change_rows,
        refusal_does_not_say_where,
        last_row_of_a_receiver_type_decides,
        name_outside_latin1_is_lost,
        longest_name_breaks_a_removal,
        broken_compiler_answer_reaches_the_caller,
        undecodable_text_is_stored,
        huge_nameless_definition_floods_the_log
    ].

init_per_suite(Config) ->
    {ok, _} = application:ensure_all_started(beamtalk_image),
    Config.

end_per_suite(_Config) ->
    ok.

init_per_testcase(_Case, Config) ->
    open(),
    Config.

end_per_testcase(_Case, _Config) ->
    shut(),
    #{extensions := #{entries := 0}, xref := #{classes := 0, methods := 0},
        protocols := #{protocols := 0, users := 0}} =
        beamtalk_image:info(),
    ok.

%% ---- On a node of its own
%% ------------------------------------------------------------------------------------

nif_takes_a_term_outside_its_type(_Config) ->
    on_node(on_node_wrong_nif_calls, []).

function_takes_a_term_outside_its_type(_Config) ->
    [on_node(on_node_wrong_calls, [Module])
        || Module <- [beamtalk_extensions, beamtalk_xref, beamtalk_protocol_registry, beamtalk_image]],
    ok.

odd_term_under_an_entry_key_ends_the_vm(_Config) ->
    on_node(on_node_odd_entries, []).

deep_term_in_a_stored_term_ends_the_vm(_Config) ->
    on_node(on_node_deep_terms, []).

huge_input_breaks_the_next_call(_Config) ->
    on_node(on_node_huge_input, []).

on_node(Function, Args) ->
    Peer = beamtalk_image_abuse_node:start(),
    try
        ok = beamtalk_image_abuse_node:call(Peer, ?MODULE, Function, Args)
    after
        beamtalk_image_abuse_node:stop(Peer)
    end.

on_node_wrong_nif_calls() ->
    prepare(),
    Nifs = beamtalk_image_abuse_terms:nifs(beamtalk_image_nif),
    Signatures = [Signature || {F,
        Types} = Signature <- beamtalk_image_abuse_terms:signatures(beamtalk_image_nif),
        lists:member({F, length(Types)}, Nifs)],
    ?assertEqual(lists:sort(Nifs), lists:sort([{F, length(Types)} || {F, Types} <- Signatures])),
    Calls = beamtalk_image_abuse_terms:wrong_calls(Signatures, any_atom),
    ?assertEqual([], not_refused(beamtalk_image_nif, Calls, [badarg])),
    ?assert(length(Calls) > 4_000),
    serves_as_before().

on_node_wrong_calls(Module) ->
    prepare(),
    Callbacks = [F || Behaviour <- behaviours(Module), {F, _} <- Behaviour:behaviour_info(callbacks)],
    Signatures = [Signature || {F, [_ | _]} = Signature <- beamtalk_image_abuse_terms:signatures(Module),
        not lists:member(F, Callbacks), not lists:member(F, ?OUR_OWN)],
    %% The index takes any atom for a status or provenance where it builds an entry, and says so where it
    %% stores one.
    Literals = case Module of beamtalk_xref -> any_atom; _ -> literals end,
    Calls = beamtalk_image_abuse_terms:wrong_calls(Signatures, Literals),
    ?assertEqual([], not_refused(Module, Calls, [badarg, function_clause, badfun, badarity])),
    ?assert(length(Calls) > 200),
    serves_as_before().

%% Calls that were taken, raised something else, or changed a store.
not_refused(Module, Calls, Documented) ->
    lists:usort(lists:flatmap(fun({F, Args, Position}) ->
        Before = counts(),
        Answer = attempt(fun() -> apply(Module, F, Args) end),
        case {is_refusal(Answer, Documented), counts()} of
            {true, Before} -> [];
            {true, _} -> [{F, Position, stored}];
            {false, _} -> [{F, Position, kind_of(Answer)}]
        end
    end, Calls)).

behaviours(Module) ->
    lists:append([List || {behaviour, List} <- Module:module_info(attributes)]).

%% Every term under every key of an entry, right and wrong alike: stored whole or refused whole.
on_node_odd_entries() ->
    prepare(),
    Keys = [class_side, line, sends, references, unresolved_sends, source_status, provenance, origin,
        extension_version, completes, synthetic_origin, unknown_key],
    Terms = beamtalk_image_abuse_terms:everything() ++ beamtalk_image_abuse_terms:deep(),
    InSend = [#{Key => Term} || Key <- [line, recv_kind, target_module, recv_type], Term <- Terms],
    Entries =
        [#{Key => Term} || Key <- Keys, Term <- Terms] ++
            [#{sends => [Send#{selector => sent}]} || Send <- InSend] ++
            [#{sends => [#{selector => Term}]} || Term <- Terms] ++
            [#{references => [#{class => Term}]} || Term <- Terms] ++
            [#{unresolved_sends => [#{selector => Term}]} || Term <- Terms] ++
            [#{unresolved_sends => [#{selector => <<"none such">>, target_module => Term}]} || Term <- Terms],
    Outcomes = [odd_entry(maps:merge(#{selector => odd, line => 1}, Entry)) || Entry <- Entries],
    ?assertEqual([refused, stored], lists:usort(Outcomes)),
    Definitions = [#{name => 'Odd', Key => Term}
        || Key <- [required_methods, required_class_methods, provided_methods, extending, module, doc],
            Term <- Terms],
    ?assertEqual([refused, stored], lists:usort([odd_definition(Definition) || Definition <- Definitions])),
    serves_as_before().

odd_entry(Entry) ->
    Before = counts(),
    Stored = attempt(fun() -> beamtalk_xref:put_method('Odd', false, odd, Entry) end),
    case Stored of
        {answer, ok} ->
            %% Whatever was taken can be read and taken out again.
            [_ = beamtalk_xref:senders_of(Sent, 'Odd') || Sent <- [sent, plain]],
            _ = beamtalk_xref:references_to(plain),
            ok = beamtalk_xref:forget_class('Odd'),
            ?assertEqual(without_version(Before), without_version(counts())),
            stored;
        {error, badarg} ->
            ?assertEqual(Before, counts()),
            ?assertEqual({error, badarg}, attempt(fun() -> beamtalk_xref:register_class('Odd', [Entry]) end)),
            ?assertEqual(Before, counts()),
            refused
    end.

odd_definition(Definition) ->
    Before = counts(),
    case attempt(fun() -> beamtalk_protocol_registry:register_protocol(Definition) end) of
        {answer, ok} ->
            Read = beamtalk_protocol_registry:protocol_info('Odd'),
            ?assert(Read =:= Definition),
            _ = beamtalk_protocol_registry:required_methods('Odd'),
            _ = beamtalk_protocol_registry:conforms_to('Abused', 'Odd'),
            ok = beamtalk_protocol_registry:register_protocol(#{name => 'Odd', module => odd_module}),
            ok = beamtalk_protocol_registry:unregister_protocol(odd_module),
            stored;
        {error, badarg} ->
            ?assertEqual(Before, counts()),
            refused
    end.

on_node_deep_terms() ->
    prepare(),
    [begin
        Fun = fun() -> Deep end,
        ok = beamtalk_extensions:register('Deep', m, Fun, pkg),
        {ok, Back, pkg} = beamtalk_extensions:lookup('Deep', m),
        {ok, 'Deep', Back2, pkg} = beamtalk_extensions:lookup_chain(['Shallow', 'Deep'], m),
        ?assert(Back() =:= Deep),
        ?assert(Back2() =:= Deep),
        ok = beamtalk_extensions:unregister('Deep', m),
        ok = beamtalk_protocol_registry:register_protocol(#{name => 'Deep', doc => Deep, module => deep}),
        #{doc := Doc} = beamtalk_protocol_registry:protocol_info('Deep'),
        ?assert(Doc =:= Deep),
        ok = beamtalk_protocol_registry:unregister_protocol(deep)
    end || Deep <- beamtalk_image_abuse_terms:deep()],
    serves_as_before().

on_node_huge_input() ->
    prepare(),
    Million = lists:seq(1, 1_000_000),
    Source = binary:copy(<<"x">>, 64 bsl 20),
    ok = beamtalk_extensions:register('Huge', m, fun() -> Million end, pkg, Source),
    {ok, Source} = beamtalk_extensions:getSource('Huge', m),
    {ok, Fun, pkg} = beamtalk_extensions:lookup('Huge', m),
    ?assert(Fun() =:= Million),
    ok = beamtalk_extensions:unregister('Huge', m),
    ?assertError(badarg, beamtalk_xref:register_class('Huge', Million)),
    ?assertError(badarg, beamtalk_xref:register_class('Huge', lists:duplicate(200_000, #{selector => m}))),
    ?assertError(badarg, beamtalk_extensions:lookup_chain(lists:duplicate(1_000_000, x), m)),
    ?assertError(badarg, beamtalk_protocol_registry:register_uses('Huge', Million)),
    ?assertEqual(undefined, beamtalk_xref:method_info('Huge', false, m)),
    %% One method that sends one selector from very many lines, and one that sends very many unknown ones.
    Lines = 50_000,
    ok = beamtalk_xref:put_method('Huge', false, m, #{line => 1,
        sends => [#{selector => huge_send, line => Line} || Line <- lists:seq(1, Lines)],
        unresolved_sends => [#{selector => <<"no name ", (integer_to_binary(Line))/binary>>, line => Line}
            || Line <- lists:seq(1, Lines)]}),
    ?assertEqual(Lines, length(beamtalk_xref:senders_of(huge_send))),
    ok = beamtalk_xref:forget_class('Huge'),
    ?assertEqual([], beamtalk_xref:senders_of(huge_send)),
    serves_as_before().

prepare() ->
    {ok, _} = application:ensure_all_started(beamtalk_image),
    ok = logger:set_primary_config(level, none),
    open(),
    ok = beamtalk_extensions:register('Kept', m, fun kept/0, pkg, <<"kept_send">>),
    ok = beamtalk_image:sync(),
    ok = beamtalk_xref:register_class('Kept', [#{selector => own, line => 3,
        sends => [#{selector => sent_by_kept}]}]),
    ok = beamtalk_protocol_registry:register_protocol(#{name => 'KeptProtocol', module => kept_module,
        required_methods => [#{selector => own, arity => 0}]}),
    ok = beamtalk_protocol_registry:register_uses('Kept', kept_module, ['KeptProtocol']).

kept() -> kept.

serves_as_before() ->
    ?assertNotEqual(undefined, whereis(beamtalk_xref)),
    ?assertEqual({ok, fun kept/0, pkg}, beamtalk_extensions:lookup('Kept', m)),
    ?assertEqual({ok, <<"kept_send">>}, beamtalk_extensions:getSource('Kept', m)),
    ?assertMatch(#{line := 3}, beamtalk_xref:method_info('Kept', false, own)),
    ?assertMatch([#{owner := 'Kept', method := own}], beamtalk_xref:senders_of(sent_by_kept)),
    ?assertEqual([own], beamtalk_protocol_registry:required_methods('KeptProtocol')),
    ?assertEqual(['Kept'], beamtalk_protocol_registry:users_of('KeptProtocol')),
    ok = beamtalk_extensions:register('Next', m, fun kept/0, pkg),
    ok = beamtalk_extensions:unregister('Next', m),
    ok.

%% ---- Contents
%% ------------------------------------------------------------------------------------------------

%% The index is all or nothing per class: good entries around a bad one are not taken either.
malformed_entry_leaves_half_a_class(_Config) ->
    Kept = #{selector => kept, line => 5, sends => [#{selector => kept_send}]},
    ok = beamtalk_xref:register_class('C', [Kept]),
    Before = counts(),
    Good = #{selector => good, line => 1, sends => [#{selector => good_send}]},
    [begin
        ?assertEqual({bad, 2, Key, 2}, refusal(?XREF(register_class/2), ['C', [Good, Bad,
            Good#{selector => also}]])),
        ?assertEqual(Before, counts())
    end || {Bad, Key} <- bad_entries()],
    ?assertMatch([#{method := kept, line := 5}], beamtalk_xref:senders_of(kept_send)),
    ?assertEqual([kept], beamtalk_xref:defined_selectors('C', false)),
    ?assertEqual([], beamtalk_xref:senders_of(good_send)).

malformed_entry_replaces_a_method(_Config) ->
    ok = beamtalk_xref:register_class('C', [#{selector => m, line => 5,
        sends => [#{selector => kept_send}]}]),
    Before = counts(),
    [begin
        ?assertEqual({bad, 1, Key, 4}, refusal(?XREF(put_method/4), ['C', false, m, Bad])),
        ?assertEqual(Before, counts())
    end || {Bad, Key} <- bad_entries(), is_map(Bad), not is_overridden(Key, Bad)],
    ?assertMatch([#{method := m, line := 5}], beamtalk_xref:senders_of(kept_send)).

%% Side and selector of the arguments count, whatever the map says.
is_overridden(class_side, _Entry) -> true;
is_overridden(selector, Entry) -> not is_map_key(sends, Entry) andalso not is_map_key(unresolved_sends,
    Entry);
is_overridden(_Key, _Entry) -> false.

malformed_definition_replaces_a_protocol(_Config) ->
    Kept = #{name => 'P', required_methods => [#{selector => a, arity => 0}], module => mod},
    ok = beamtalk_protocol_registry:register_protocol(Kept),
    Before = counts(),
    Lists = [x, #{}, [1], [#{}], [#{selector => 1}], [#{selector => a} | x], [#{selector => a}, []], <<>>],
    Bad = [{#{Key => Value}, Key} || Key <- [required_methods, required_class_methods, provided_methods],
        Value <- Lists] ++
        [{#{Key => Value}, Key} || Key <- [extending, module], Value <- [1, "P", [], #{}]],
    [begin
        ?assertEqual({bad, 1, Key, 1},
            refusal(fun beamtalk_protocol_registry:register_protocol/1, [maps:merge(Kept, Wrong)])),
        ?assertEqual(Before, counts())
    end || {Wrong, Key} <- Bad ++ [{#{name => 1}, name}]],
    ?assertEqual(Kept, beamtalk_protocol_registry:protocol_info('P')),
    %% A term without a name is no definition: reported, not refused.
    [?assertEqual(ok, beamtalk_protocol_registry:register_protocol(Term))
        || Term <- [1, x, #{}, [], #{doc => none}]],
    ?assertEqual(['P'], beamtalk_protocol_registry:all_protocol_names()).

malformed_uses_replace_a_list(_Config) ->
    ok = beamtalk_protocol_registry:register_uses('C', mod, ['P', {'Q', <<1>>}]),
    Before = counts(),
    [begin
        ?assertEqual({error, badarg}, attempt(fun() -> beamtalk_protocol_registry:register_uses('C', mod,
            Bad) end)),
        ?assertEqual(Before, counts())
    end || Bad <- [[1], ['R' | 'S'], ['R', {'S'}], ['R', {'S', s}], [{1, <<>>}], [{'S', <<1:3>>}], [["R"]],
        [#{}],
        [{'S', <<>>, x}]]],
    ?assertEqual([{'P', undefined}, {'Q', <<1>>}], beamtalk_protocol_registry:used_protocol_hashes('C')),
    ?assertEqual([], beamtalk_protocol_registry:users_of('R')).

malformed_origins_change_rows(_Config) ->
    ok = beamtalk_xref:register_class('C', [#{selector => m, line => 1}]),
    ok = beamtalk_xref:set_provenance('C', #{m => 'P'}),
    Before = counts(),
    [begin
        ?assertEqual({error, badarg}, attempt(fun() -> beamtalk_xref:set_provenance('C', Bad) end)),
        ?assertEqual(Before, counts())
    end || Bad <- [#{1 => 'Q'}, #{m => 1}, #{m => <<"Q">>}, #{<<"m">> => 'Q'}, #{[] => []}]],
    ?assertMatch(#{origin := 'P'}, beamtalk_xref:method_info('C', false, m)).

%% Design 2.17: the error names index, key and value, also where the list itself is broken.
refusal_does_not_say_where(_Config) ->
    Good = #{selector => m, line => 1},
    ?assertMatch({bad, 2, _, 2}, refusal(?XREF(register_class/2), ['C', [Good | x]])),
    ?assertMatch({bad, _, _, 2}, refusal(?XREF(set_provenance/2), ['C', #{m => 1}])),
    ?assertMatch({bad, 2, _, 3}, refusal(fun beamtalk_protocol_registry:register_uses/3, ['C', mod, ['P',
        1]])),
    try beamtalk_xref:register_class('C', [Good, Good#{line => nought}]) of
        ok -> error(taken)
    catch
        error:badarg:Stack ->
            [{_, _, _, Info} | _] = Stack,
            #{cause := #{index := 2, key := line, value := nought}} = proplists:get_value(error_info, Info),
            #{2 := Text} = beamtalk_image_errors:format_error(badarg, Stack),
            ?assertNotEqual(nomatch, string:find(Text, "nought"))
    end.

%% What is wrong with an entry may stand in its last element.
last_row_of_a_receiver_type_decides(_Config) ->
    Nested = fun(Depth) ->
        lists:foldl(fun(_, Inner) -> {union, [Inner, 'A']} end, 'B', lists:seq(1, Depth))
    end,
    ok = beamtalk_xref:put_method('C', false, m, #{line => 1, sends => [#{selector => s,
        recv_type => Nested(8)}]}),
    [#{recv_type := Back}] = beamtalk_xref:senders_of(s),
    ?assertEqual(Nested(8), Back),
    [?assertEqual({bad, 1, recv_type, 4}, refusal(?XREF(put_method/4), ['C', false, m,
        #{line => 1, sends => [#{selector => s}, #{selector => s, recv_type => Type}]}]))
        || Type <- [Nested(1_000), {union, ['A', 'B', 1]}, {union, ['A' | 'B']},
            {intersection, ['A', {union, [<<>>]}]}]],
    ?assertMatch([#{recv_type := Back}], beamtalk_xref:senders_of(s)).

bad_entries() ->
    Good = #{selector => m, line => 1},
    Lists = fun(Key) -> [{Good#{Key => Value}, Key} || Value <- [x, [x | y], [1], <<>>, #{},
        [#{selector => a, class => a} | x]]] end,
    InSend = fun(Send) -> Good#{sends => [#{selector => a}, Send]} end,
    [{Entry, entry} || Entry <- [1, x, [], {}, <<>>, [{selector, m}]]] ++
        [{#{}, selector}, {#{line => 1}, selector}, {#{selector => m}, line}] ++
        [{Good#{selector => Value}, selector} || Value <- [1, "m", <<"m">>, [], #{}]] ++
        [{Good#{line => Value}, line} || Value <- [0, -1, 1.0, 1 bsl 32, 1 bsl 64, 1 bsl 200, <<"1">>,
            one]] ++
        [{Good#{class_side => Value}, class_side} || Value <- [1, undefined, class, []]] ++
        [{Good#{source_status => Value}, source_status} || Value <- [1, unknown, <<"indexed">>]] ++
        [{Good#{provenance => Value}, provenance} || Value <- [1, unknown, undefined]] ++
        [{Good#{origin => Value}, origin} || Value <- [1, "P", <<>>]] ++
        Lists(sends) ++ Lists(references) ++ Lists(unresolved_sends) ++
        [{InSend(#{}), selector}, {InSend(#{selector => 1}), selector},
            {InSend(#{selector => a, line => 0}), line},
            {InSend(#{selector => a, line => 1 bsl 40}), line},
                {InSend(#{selector => a, recv_kind => self}), recv_kind},
            {InSend(#{selector => a, target_module => <<"lists">>}), target_module}] ++
        [{InSend(#{selector => a, recv_type => Type}), recv_type}
            || Type <- [1, <<>>, [], ['A'], {union}, {union, 'A'}, {union, [1]}, {union, ['A' | 'B']},
                {either, ['A']},
                {union, ['A'], 'B'}, #{}]] ++
        [{Good#{references => [#{class => 'A'}, #{}]}, class}, {Good#{references => [#{class => 1}]}, class},
            {Good#{references => [#{class => 'A', line => 0}]}, line}] ++
        [{Good#{unresolved_sends => [#{selector => Value}]}, selector}
            || Value <- [1, "a", <<255>>, <<1:3>>]] ++
        [{Good#{unresolved_sends => [#{}]}, selector},
            {Good#{unresolved_sends => [#{selector => <<"a">>, target_module => <<255>>}]}, target_module}].

%% ---- Names
%% ---------------------------------------------------------------------------------------------------

name_outside_latin1_is_lost(_Config) ->
    Names = ['Ünder', 'Σ', '漢字 class', '😀', list_to_atom(lists:duplicate(255, 16#1F600)), '', ' class'],
    [begin
        Fun = fun() -> Name end,
        ok = beamtalk_extensions:register(Name, Name, Fun, Name, <<"x"/utf8>>),
        ok = beamtalk_extensions:register(Name, Name, Fun, other_owner, <<"x"/utf8>>),
        ?assertEqual({ok, Fun, other_owner}, beamtalk_extensions:lookup(Name, Name)),
        ?assertEqual([{Name, other_owner}], beamtalk_extensions:list(Name)),
        ?assertEqual([{Name, Name, lists:sort([Name, other_owner])}], beamtalk_extensions:conflicts()),
        ok = beamtalk_extensions:unregister(Name, Name),
        ok = beamtalk_image:sync(),
        ok = beamtalk_xref:register_class(Name, [#{selector => Name, line => 2, origin => Name,
            sends => [#{selector => Name, target_module => Name, recv_kind => erlang_ffi,
                recv_type => {union, [Name]}}],
            references => [#{class => Name}],
                unresolved_sends => [#{selector => <<"noch kein Wort ß"/utf8>>}]}]),
        ?assertMatch([#{owner := Name, method := Name, target_module := Name, recv_type := {union, [Name]}}],
            beamtalk_xref:senders_of(Name)),
        ?assertMatch([#{owner := Name, method := Name}], beamtalk_xref:references_to(Name)),
        ?assertMatch([#{owner := Name, method := Name, line := 2}],
            beamtalk_xref:callers_of_native_module(Name)),
        ?assertEqual([{Name, false}], beamtalk_xref:implementors_of(Name)),
        ?assertMatch(#{origin := Name}, beamtalk_xref:method_info(Name, false, Name)),
        ok = beamtalk_xref:forget_class(Name),
        ok = beamtalk_protocol_registry:register_protocol(#{name => Name, module => Name,
            required_methods => [#{selector => Name, arity => 0}],
                provided_methods => [#{selector => Name}]}),
        ok = beamtalk_protocol_registry:register_uses(Name, Name, [Name]),
        ?assertEqual([Name], beamtalk_protocol_registry:all_protocol_names()),
        ?assertEqual([Name], beamtalk_protocol_registry:required_methods(Name)),
        ?assertEqual([Name], beamtalk_protocol_registry:users_of(Name)),
        ok = beamtalk_protocol_registry:unregister_protocol(Name),
        ?assertEqual([], beamtalk_protocol_registry:users_of(Name)),
        ?assertEqual([], beamtalk_protocol_registry:all_protocol_names())
    end || Name <- Names].

%% A class whose tag would be too long for an atom has no class side here, and everything else of it works.
longest_name_breaks_a_removal(_Config) ->
    Long = list_to_atom(lists:duplicate(255, $x)),
    Fun = fun() -> ok end,
    ok = beamtalk_extensions:register(Long, m, Fun, pkg),
    ?assertEqual(ok, beamtalk_extensions:unregister(Long, m, true)),
    ?assertEqual({ok, Fun, pkg}, beamtalk_extensions:lookup(Long, m)),
    ok = beamtalk_xref:register_class(Long, [#{selector => own, line => 1}]),
    ok = beamtalk_protocol_registry:register_protocol(#{name => Long, module => Long, required_methods => [],
        required_class_methods => [#{selector => Long, arity => 0}]}),
    ok = beamtalk_protocol_registry:register_uses(Long, Long, [Long]),
    ?assertNot(beamtalk_protocol_registry:conforms_to(Long, Long)),
    ?assertEqual([], beamtalk_protocol_registry:user_class_objects(Long)),
    ?assert(is_list(beamtalk_protocol_registry:required_methods(Long))),
    ?assertEqual(ok, beamtalk_image:class_removed(Long, Long)),
    ?assertEqual(not_found, beamtalk_extensions:lookup(Long, m)),
    ?assertEqual(undefined, beamtalk_xref:method_info(Long, false, own)),
    ?assertNot(beamtalk_protocol_registry:is_protocol(Long)),
    ?assertEqual([], beamtalk_protocol_registry:used_protocols(Long)).

%% ---- The host's compiler
%% -------------------------------------------------------------------------------------

%% Contract 3.2: a failing compiler means no sends; an answer that is no answer is a failure.
broken_compiler_answer_reaches_the_caller(_Config) ->
    Hit = #{selector => <<"sent">>, line => 1, recv => self, target_module => <<>>},
    Broken = [{ok, x}, {ok, [Hit | x]}, {ok, [1, #{}, Hit#{selector => 1}]}, oops, {error, [diagnostic]},
        {ok, 1}],
    Raising = [fun() -> exit(timeout) end, fun() -> error(undef) end, fun() -> throw(oops) end],
    with_compiler(fun(Compile) ->
        [begin
            Compile(Answer),
            Entry = beamtalk_xref:build_method_entry(false, m, <<"text">>, indexed, put_method),
            ?assertMatch(#{selector := m, line := 1, source_status := indexed, provenance := put_method},
                Entry),
            ?assertEqual([], [Send || #{selector := Selector} = Send <- maps:get(sends, Entry),
                Selector =/= sent]),
            ok = beamtalk_xref:put_method('C', false, m, Entry)
        end || Answer <- [fun() -> Term end || Term <- Broken] ++ Raising]
    end).

%% Whatever text the compiler hands over, the entry made of it can be stored.
undecodable_text_is_stored(_Config) ->
    Hit = #{selector => <<"sent">>, line => 1, recv => self, target_module => <<>>},
    Wide = unicode:characters_to_binary(lists:duplicate(255, 16#1F600)),
    Hits = [Hit#{selector => <<255, 254>>}, Hit#{target_module => <<255>>},
        Hit#{selector => binary:copy(<<"x">>, 256)},
        Hit#{selector => <<>>}, Hit#{line => 0}, Hit#{line => 1 bsl 40}, Hit#{recv => 1},
            Hit#{selector => Wide},
        Hit#{target_module => binary:copy(<<"m">>, 10_000)}],
    with_compiler(fun(Compile) ->
        [begin
            Compile(fun() -> {ok, [Odd, Hit#{line => 7}]} end),
            Entry = beamtalk_xref:build_method_entry(false, m, <<"text">>, indexed, put_method),
            ok = beamtalk_xref:put_method('C', false, m, Entry),
            ?assert(lists:member(7, [Line || #{line := Line} <- beamtalk_xref:senders_of(sent)]))
        end || Odd <- Hits]
    end).

with_compiler(Test) ->
    ok = beamtalk_image_abuse_host:start(),
    try
        Test(fun(Answer) -> beamtalk_image_abuse_host:replace(find_sends, fun(_) -> Answer() end) end)
    after
        beamtalk_image_abuse_host:stop()
    end,
    ok.

%% ---- The log
%% -------------------------------------------------------------------------------------------------

%% The event is formatted in the caller, which may be a class process.
huge_nameless_definition_floods_the_log(_Config) ->
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => self(), level => warning}),
    try
        ok = beamtalk_protocol_registry:register_protocol(lists:seq(1, 100_000)),
        receive
            {logged, #{level := warning, meta := #{domain := [beamtalk, runtime]}} = Event} ->
                Size = iolist_size(unicode:characters_to_binary(logger_formatter:format(Event, #{}))),
                ?assert(Size < 10_000, Size)
        after 5_000 -> error(not_logged)
        end
    after
        logger:remove_handler(?MODULE)
    end.

log(Event, #{config := Test}) ->
    Test ! {logged, Event}.

%% ---- Means
%% ---------------------------------------------------------------------------------------------------

open() ->
    ok = beamtalk_image:clear(extensions),
    ok = beamtalk_image:clear(protocols),
    {ok, Pid} = beamtalk_xref:start_link(),
    unlink(Pid),
    ok = beamtalk_image:clear(xref),
    ok.

shut() ->
    ok = beamtalk_image:sync(),
    ok = gen_server:stop(beamtalk_xref),
    ok = beamtalk_image:clear(extensions),
    ok = beamtalk_image:clear(protocols).

%% Everything that a write changes, the versions included.
counts() ->
    {beamtalk_image_nif:extension_counts(), beamtalk_image_nif:xref_counts(),
        beamtalk_image_nif:protocol_counts()}.

without_version({Extensions, Xref, Protocols}) ->
    [lists:keydelete(version, 1, Counts) || Counts <- [Extensions, Xref, Protocols]].

is_refusal({answer, {bad_entry, Index, Key, _}}, _) -> is_integer(Index) andalso is_atom(Key);
is_refusal({answer, {error, _}}, _) -> true;
%% A log that nobody has opened looks no further.
is_refusal({answer, closed}, _) -> true;
is_refusal({error, Reason}, Documented) -> lists:member(Reason, Documented);
is_refusal(_, _) -> false.

attempt(Call) ->
    try
        {answer, Call()}
    catch
        error:{Reason, _} -> {error, Reason};
        Class:Reason -> {Class, Reason}
    end.

%% What can be printed of an answer that may be deep.
kind_of({answer, _}) -> answered;
kind_of({Class, Reason}) when is_atom(Reason) -> {Class, Reason};
kind_of({Class, _}) -> Class.

refusal(Fun, Args) ->
    try
        {taken, apply(Fun, Args)}
    catch
        error:badarg:Stack ->
            [{Module, _Function, Args, Info} | _] = Stack,
            case {erlang:fun_info(Fun, module), proplists:get_value(error_info, Info)} of
                {{module, Module}, #{cause := #{index := Index, key := Key, argument := Argument}}} ->
                    {bad, Index, Key, Argument};
                _ ->
                    badarg_without_words
            end
    end.
