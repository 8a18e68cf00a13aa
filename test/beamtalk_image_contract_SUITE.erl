%% The names by which a host and its compiler know the modules (contract §0.3, §2 to §5, §9): exported
%% functions with their specs and parameter names, exported types. The lists below are the contract's, written
%% as specs.
-module(beamtalk_image_contract_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1]).
-export([
    every_promised_function_is_exported/1,
    nothing_else_is_exported/1,
    server_modules_are_servers/1,
    specs_take_what_is_promised_and_answer_no_less_precisely/1,
    parameters_are_named_as_callers_name_them/1,
    results_that_compiled_code_types_are_spelled_out/1,
    promised_types_are_exported/1,
    types_hold_what_is_promised/1,
    a_vaguer_or_narrower_spec_is_found/1
]).

all() ->
    [
        every_promised_function_is_exported,
        nothing_else_is_exported,
        server_modules_are_servers,
        specs_take_what_is_promised_and_answer_no_less_precisely,
        parameters_are_named_as_callers_name_them,
        results_that_compiled_code_types_are_spelled_out,
        promised_types_are_exported,
        types_hold_what_is_promised,
        a_vaguer_or_narrower_spec_is_found
    ].

init_per_suite(Config) ->
    case application:load(beamtalk_image) of
        ok -> [{loaded, true} | Config];
        {error, {already_loaded, beamtalk_image}} -> [{loaded, false} | Config]
    end.

end_per_suite(Config) ->
    case proplists:get_value(loaded, Config) of
        true -> application:unload(beamtalk_image);
        false -> ok
    end.

%% ---- The contract's lists ---------------------------------------------------------------------------------

%% Modules that must be there, and those of whom the rest is asked.
modules() ->
    [beamtalk_extensions, beamtalk_xref, beamtalk_protocol_registry, beamtalk_workspace_changelog].

existing() ->
    Existing = [Module || Module <- modules(), code:which(Module) =/= non_existing],
    ?assertEqual([], modules() -- Existing),
    Existing.

promised(beamtalk_extensions) ->
    [
        "init() -> ok",
        "register(Class :: atom(), Selector :: atom(), Fun :: function(), Owner :: atom()) -> ok",
        "register(Class :: atom(), Selector :: atom(), Fun :: function(), Owner :: atom(), "
        "Source :: binary() | undefined) -> ok",
        "unregister(ClassKey :: atom(), Selector :: atom()) -> ok",
        "unregister(ClassName :: atom(), Selector :: atom(), ClassSide :: boolean()) -> ok",
        "purge_class(ClassKey :: atom()) -> ok",
        "lookup(ClassKey :: atom(), Selector :: atom()) -> {ok, function(), atom()} | not_found",
        "has(ClassKey :: atom(), Selector :: atom()) -> boolean()",
        "list(ClassKey :: atom()) -> [{atom(), atom()}]",
        "extenders_of(ClassKey :: atom()) -> [atom()]",
        "extensions_by(Owner :: atom()) -> [{atom(), atom()}]",
        "getSource(ClassKey :: atom(), Selector :: atom()) -> {ok, binary()} | not_found",
        "listAllWithSource() -> [{atom(), atom(), binary()}]",
        "conflicts() -> [{atom(), atom(), [atom()]}]",
        "safe_xref(Fun :: fun(() -> ok)) -> ok"
    ];
promised(beamtalk_xref) ->
    [
        "start_link() -> {ok, pid()} | {error, term()}",
        "register_class(Class :: atom(), Entries :: [method_xref_entry()]) -> ok",
        "purge_class(Class :: atom()) -> ok",
        "put_method(Class :: atom(), ClassSide :: boolean(), Selector :: atom(), "
        "Entry :: method_xref_entry()) -> ok",
        "purge_method(Class :: atom(), ClassSide :: boolean(), Selector :: atom()) -> ok",
        "build_method_entry(ClassSide :: boolean(), Selector :: atom(), Source :: term(), "
        "SourceStatus :: source_status(), Provenance :: provenance()) -> method_xref_entry()",
        "senders_of(Selector :: atom()) -> [site()]",
        "senders_of(Selector :: atom(), Changed :: atom()) -> [site()]",
        "references_to(Class :: atom()) -> [site()]",
        "implementors_of(Selector :: atom()) -> [{atom(), boolean()}]",
        "defined_selectors(Class :: atom(), ClassSide :: boolean()) -> [atom()]",
        "method_info(Class :: atom(), ClassSide :: boolean(), Selector :: atom()) -> "
        "method_info() | undefined",
        "callers_of_native_module(Module :: atom()) -> [native_caller_row()]",
        "hierarchy_related_classes(Class :: atom()) -> sets:set(atom())",
        "senders_of_bt(Selector :: atom()) -> #{indexed := [bt_row()], fallback_classes := [atom()]}",
        "references_to_bt(Class :: atom()) -> #{indexed := [bt_row()], fallback_classes := [atom()]}",
        "implementors_of_bt(Selector :: atom()) -> #{indexed := [impl_row()], fallback_classes := [atom()]}",
        "defined_selectors_bt() -> #{indexed := [selector_row()], fallback_classes := [atom()]}",
        "all_sends_bt() -> #{indexed := [send_row()], fallback_classes := [atom()]}",
        "all_sent_selectors_bt() -> #{indexed := [atom()], fallback_classes := [atom()]}"
    ];
promised(beamtalk_protocol_registry) ->
    [
        "init() -> ok",
        "register_protocol(Definition :: map()) -> ok",
        "unregister_protocol(Module :: module()) -> ok",
        "invalidate_conforms_cache() -> ok",
        "protocol_info(Name :: atom()) -> map() | undefined",
        "is_protocol(Name :: atom()) -> boolean()",
        "all_protocol_names() -> [atom()]",
        "required_methods(Name :: atom()) -> [atom()]",
        "conforms_to(Class :: atom(), Name :: atom()) -> boolean()",
        "protocols_for_class(Class :: atom()) -> [atom()]",
        "conforming_classes(Name :: atom()) -> [atom()]",
        "provided_methods(Name :: atom()) -> [atom()]",
        "register_uses(Class :: atom(), Names :: [atom()]) -> ok",
        "unregister_uses(Class :: atom()) -> ok",
        "used_protocols(Class :: atom()) -> [atom()]",
        "users_of(Name :: atom()) -> [atom()]",
        "user_class_objects(Name :: atom()) -> [{beamtalk_object, atom(), module(), pid()}]",
        "conforming_class_objects(Name :: atom()) -> [{beamtalk_object, atom(), module(), pid()}]"
    ];
promised(beamtalk_workspace_changelog) ->
    [
        "start_link(#{workspace_id => binary() | undefined}) -> {ok, pid()} | {error, term()}",
        "changes_dir(binary() | undefined) -> string() | undefined",
        "append(append_input()) -> {ok, non_neg_integer()} | {error, tuple()}",
        "entries() -> [entry()]",
        "size() -> non_neg_integer()",
        "active_entries() -> [entry()]",
        "flushable_pending() -> [entry()]",
        "epoch() -> non_neg_integer()",
        "mark_flushed([non_neg_integer()]) -> ok | {error, term()}",
        %% Callers match `ok'; a log that could not be emptied must not say so (8.4-11).
        "clear() -> ok | {error, term()}",
        "find_revert_target(Class :: binary(), Selector :: atom() | binary()) -> "
        "{ok, binary(), entry()} | {remove, entry()} | {reinstall_class, binary(), entry()} | "
        "{error, atom()}",
        "find_revert_target(Class :: binary(), Selector :: atom() | binary(), "
        "Side :: instance | class | undefined) -> "
        "{ok, binary(), entry()} | {remove, entry()} | {reinstall_class, binary(), entry()} | "
        "{error, atom()}",
        "changeLog() -> #{'$beamtalk_class' := 'ChangeLog', entries := [map()]}",
        "change_entries() -> [map()]",
        "dirtyMethods() -> #{atom() => map()}",
        "body_delta(Disk :: binary(), Memory :: binary()) -> "
        "{true, undefined} | {false, binary() | undefined}",
        "entry_to_json(entry()) -> binary()",
        "entry_from_json(binary()) -> entry()",
        "read_source_body(entry()) -> {ok, binary()} | {error, term()}",
        "read_prev_source_body(entry()) -> {ok, binary()} | {error, term()}",
        "entry_seq(entry()) -> non_neg_integer()",
        "entry_epoch(entry()) -> non_neg_integer()",
        "entry_class(entry()) -> binary()",
        "entry_selector(entry()) -> binary() | undefined",
        "entry_kind(entry()) -> kind()",
        "entry_side(entry()) -> instance | class | undefined",
        "entry_flushable(entry()) -> boolean()",
        "entry_not_flushable_reason(entry()) -> binary() | undefined",
        "entry_flushed(entry()) -> boolean()",
        "entry_intent(entry()) -> intent()",
        "entry_author_kind(entry()) -> author_kind()",
        "entry_is_orphan(entry()) -> boolean()",
        "entry_is_prior_epoch(entry()) -> boolean()",
        "entry_source_file(entry()) -> binary() | undefined",
        "entry_span(entry()) -> span() | undefined",
        "entry_source_ref(entry()) -> binary() | undefined",
        "entry_prev_source_ref(entry()) -> binary() | undefined"
    ].

%% What we export beyond the contract, each for a reason: the façade, the indexer and the modules among
%% themselves. The servers' own callbacks are added by `server_callbacks/0'.
more(beamtalk_extensions) ->
    [{lookup_chain, 2}, {take, 3}, {clear, 0}, {index_sends, 3}, {pending_sends, 0}, {index_all, 0}];
more(beamtalk_xref) ->
    [{forget_class, 1}, {purge_extension, 2}, {restrict_provenance, 2}, {set_provenance, 2}];
more(beamtalk_protocol_registry) ->
    [{register_uses, 3}, {used_protocol_hashes, 1}];
more(beamtalk_workspace_changelog) ->
    [{entry_layer, 1}, {entry_owner, 1}].

servers() ->
    [beamtalk_xref, beamtalk_workspace_changelog].

server_callbacks() ->
    [{init, 1}, {handle_call, 3}, {handle_cast, 2}, {handle_info, 2}, {handle_continue, 2}, {terminate, 2},
        {code_change, 3}].

%% Types that other modules of the host name.
promised_types(beamtalk_extensions) ->
    [];
promised_types(beamtalk_xref) ->
    [site, method_info, native_caller_row, source_status, provenance, method_xref_entry, bt_row, impl_row,
        selector_row, send_row, bt_recv_kind, recv_kind, recv_type];
promised_types(beamtalk_protocol_registry) ->
    [];
promised_types(beamtalk_workspace_changelog) ->
    [entry, append_input, kind, side, intent, author_kind, span].

%% What is in the types of rows that are answered: every value has these keys, and perhaps more.
answered_types(beamtalk_xref) ->
    [
        "site() :: #{owner := atom(), class_side := boolean(), method := atom(), line := pos_integer(), "
        "recv_kind => recv_kind(), target_module => atom(), recv_type => recv_type(), _ => _}",
        "method_info() :: #{owner := atom(), line := pos_integer(), source_status := source_status(), "
        "provenance := provenance(), _ => _}",
        "native_caller_row() :: #{owner := atom(), class_side := boolean(), method := atom(), "
        "line := pos_integer(), _ => _}",
        "bt_row() :: #{owner := atom(), class_side := boolean(), method := atom(), "
        "line := pos_integer(), _ => _}",
        "impl_row() :: #{owner := atom(), class_side := boolean(), _ => _}",
        "selector_row() :: #{owner := atom(), class_side := boolean(), selector := atom(), _ => _}",
        "send_row() :: #{sent := atom(), owner := atom(), class_side := boolean(), method := atom(), "
        "line := pos_integer(), recv := bt_recv_kind(), _ => _}"
    ];
answered_types(beamtalk_workspace_changelog) ->
    [
        "span() :: #{start := non_neg_integer(), 'end' := non_neg_integer()}",
        "side() :: instance | class | undefined"
    ];
answered_types(_Module) ->
    [].

%% What is in the types of things that are taken.
taken_types(beamtalk_xref) ->
    [
        "method_xref_entry() :: #{selector := atom(), line := pos_integer(), class_side => boolean(), "
        "sends => [map()], references => [map()], "
        "source_status => indexed | unindexed_runtime_fun | synthetic, "
        "provenance => class_body | extension | class_builder | put_method | protocol, "
        "synthetic_origin => pos_integer()}"
    ];
taken_types(beamtalk_workspace_changelog) ->
    [
        "append_input() :: #{class := binary(), kind := kind(), intent := intent(), flushable := boolean(), "
        "author := binary(), author_kind := author_kind(), selector => binary() | undefined, "
        "side => instance | class | undefined, "
        "source => binary() | undefined, prev_source => binary() | undefined, "
        "source_file => binary() | undefined, span => span() | undefined, "
        "not_flushable_reason => binary() | undefined}",
        "side() :: instance | class"
    ];
taken_types(_Module) ->
    [].

%% Closed enumerations: nothing more, nothing less.
enumerations(beamtalk_xref) ->
    [
        "source_status() :: indexed | unindexed_runtime_fun | synthetic",
        "provenance() :: class_body | extension | class_builder | put_method | protocol",
        "recv_kind() :: self_recv | super_recv | erlang_ffi | other",
        "bt_recv_kind() :: self | super | erlang_ffi | other",
        "recv_type() :: dynamic | atom() | {union, [recv_type()]} | {intersection, [recv_type()]}"
    ];
enumerations(beamtalk_workspace_changelog) ->
    [
        "kind() :: instance | class | 'new-class' | 'remove-method' | 'remove-class' | unknown",
        "intent() :: durable | ephemeral | unknown",
        "author_kind() :: human | agent | unknown"
    ];
enumerations(_Module) ->
    [].

%% ---- Cases ------------------------------------------------------------------------------------------------

every_promised_function_is_exported(_Config) ->
    ?assertEqual([], [
        {Module, Function, Arity}
        || Module <- existing(), {Function, Arity, _} <- parsed(Module),
            not lists:member({Function, Arity}, exports(Module))
    ]).

nothing_else_is_exported(_Config) ->
    Lists = [{Module, allowed(Module)} || Module <- existing()],
    ?assertEqual([], [
        {Module, Export} || {Module, Allowed} <- Lists, Export <- exports(Module) -- Allowed
    ]),
    %% A name that nobody exports any more has no place on the list.
    ?assertEqual([], [
        {Module, Export} || {Module, _} <- Lists, Export <- more(Module) -- exports(Module)
    ]).

server_modules_are_servers(_Config) ->
    ?assertEqual([], [
        Module
        || Module <- existing(), lists:member(Module, servers()),
            not lists:member(gen_server, lists:append(
                [Behaviours || {behaviour, Behaviours} <- Module:module_info(attributes)]))
    ]).

specs_take_what_is_promised_and_answer_no_less_precisely(_Config) ->
    ?assertEqual([], [
        Fault
        || Module <- existing(), {Function, Arity, Promised} <- parsed(Module),
            Given <- [beamtalk_image_specs:spec(Module, Function, Arity)],
            Fault <- spec_faults(Module, Function, Promised, Given)
    ]).

%% Beamtalk code calls with keywords, which the compiler matches against the names of the parameters: in the
%% spec, and in the head of the function where that has variables. Where the contract names none, any will do.
parameters_are_named_as_callers_name_them(_Config) ->
    Named = [
        {Module, Function, Arity, [Name || {ann_type, _, [{var, _, Name}, _]} <- Args]}
        || Module <- existing(), {Function, Arity, {Args, _}} <- parsed(Module)
    ],
    ?assertEqual(
        [],
        [
            {Module, Function, expected, Names, spec, Given}
            || {Module, Function, Arity, Names} <- Named,
                Names =/= [],
                Given <- [beamtalk_image_specs:parameter_names(Module, Function, Arity)],
                Given =/= Names
        ]
    ),
    ?assertEqual(
        [],
        [
            {Module, Function, expected, Names, head, Head}
            || {Module, Function, Arity, Names} <- Named,
                length(Names) > 1,
                Head <- beamtalk_image_specs:head_names(Module, Function, Arity),
                {Name, Given} <- lists:zip(Names, Head),
                Given =/= none,
                Given =/= Name
        ]
    ).

%% Two results get their type from the spec itself (contract §0.3): no name of another type may stand between.
results_that_compiled_code_types_are_spelled_out(_Config) ->
    {ok, {_, Pairs}} = beamtalk_image_specs:spec(beamtalk_extensions, list, 1),
    ?assertMatch(
        {type, _, list, [{type, _, tuple, [{type, _, atom, []}, {type, _, atom, []}]}]},
        Pairs
    ),
    case lists:member(beamtalk_workspace_changelog, existing()) of
        true ->
            {ok, {_, Log}} = beamtalk_image_specs:spec(beamtalk_workspace_changelog, changeLog, 0),
            {type, _, map, Fields} = Log,
            ?assertMatch(
                [{atom, _, 'ChangeLog'}],
                [Value || {type, _, map_field_exact, [{atom, _, '$beamtalk_class'}, Value]} <- Fields]
            );
        false ->
            ok
    end.

promised_types_are_exported(_Config) ->
    ?assertEqual([], [
        {Module, Type}
        || Module <- existing(), Type <- promised_types(Module),
            not lists:member({Type, 0}, beamtalk_image_specs:exported_types(Module))
    ]).

types_hold_what_is_promised(_Config) ->
    Existing = existing(),
    Precise = fun beamtalk_image_specs:at_least_as_precise/3,
    ?assertEqual([], unmet(Existing, fun answered_types/1, Precise)),
    Takes = fun beamtalk_image_specs:accepts/3,
    ?assertEqual([], unmet(Existing, fun taken_types/1, Takes)),
    ?assertEqual([], unmet(Existing, fun enumerations/1, Precise)),
    ?assertEqual([], unmet(Existing, fun enumerations/1, Takes)).

unmet(Modules, Lists, Holds) ->
    [
        {Module, Name}
        || Module <- Modules, Text <- Lists(Module),
            {Name, Promised} <- [beamtalk_image_specs:parse_type(Text)],
            not holds(Holds, Module, beamtalk_image_specs:type(Module, Name), Promised)
    ].

holds(_Holds, _Module, none, _Promised) -> false;
holds(Holds, Module, {ok, Type}, Promised) -> Holds(Module, Type, Promised).

%% The comparison itself: what it must notice.
a_vaguer_or_narrower_spec_is_found(_Config) ->
    Module = beamtalk_xref,
    Faults = fun(Promised, Given) ->
        {f, _, PromisedSpec} = beamtalk_image_specs:parse_spec(Promised),
        {f, _, GivenSpec} = beamtalk_image_specs:parse_spec(Given),
        [Fault || {_, _, Fault, _} <- spec_faults(Module, f, PromisedSpec, {ok, GivenSpec})]
    end,
    ?assertEqual([], Faults("f(A :: atom()) -> boolean()", "f(atom() | pid()) -> true")),
    ?assertEqual([], Faults("f() -> [site()]", "f() -> [site()]")),
    ?assertEqual([], Faults("f() -> #{a := atom(), _ => _}", "f() -> #{a := b, c => pid()}")),
    ?assertEqual([result], Faults("f() -> [site()]", "f() -> list()")),
    ?assertEqual([result], Faults("f() -> boolean()", "f() -> atom()")),
    ?assertEqual([result], Faults("f() -> [site()]", "f() -> [method_info()]")),
    ?assertEqual([result], Faults("f() -> ok", "f() -> ok | error")),
    ?assertEqual([result], Faults("f() -> #{a := atom()}", "f() -> #{a => atom()}")),
    ?assertEqual([result], Faults("f() -> #{a := atom()}", "f() -> #{a := atom(), b := atom()}")),
    ?assertEqual([result], Faults("f() -> {ok, binary()}", "f() -> {ok, binary(), atom()}")),
    ?assertEqual([{argument, 1}], Faults("f(A :: atom()) -> ok", "f(a | b) -> ok")),
    ?assertEqual([{argument, 2}], Faults("f(A :: atom(), B :: binary() | undefined) -> ok",
        "f(atom(), binary()) -> ok")).

spec_faults(Module, Function, _Promised, none) ->
    [{Module, Function, spec, none}];
spec_faults(Module, Function, {Args, Result}, {ok, {GivenArgs, GivenResult}}) ->
    [
        {Module, Function, {argument, Index}, Given}
        || {Index, Passed, Given} <- lists:zip3(lists:seq(1, length(Args)), Args, GivenArgs),
            not beamtalk_image_specs:accepts(Module, Given, Passed)
    ] ++
        [
            {Module, Function, result, GivenResult}
            || not beamtalk_image_specs:at_least_as_precise(Module, GivenResult, Result)
        ].

parsed(Module) ->
    [beamtalk_image_specs:parse_spec(Text) || Text <- promised(Module)].

exports(Module) ->
    Module:module_info(exports) -- [{module_info, 0}, {module_info, 1}].

allowed(Module) ->
    Promised = [{Function, Arity} || {Function, Arity, _} <- parsed(Module)],
    Callbacks =
        case lists:member(Module, servers()) of
            true -> server_callbacks();
            false -> []
        end,
    Promised ++ more(Module) ++ Callbacks.
