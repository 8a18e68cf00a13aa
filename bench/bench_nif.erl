%% @doc The product as a store of the benchmark: its operations are the exported functions of the registries.
-module(bench_nif).
-behaviour(bench_store).

-export([start/1]).

%% @doc Starts the application with the benchmark's host and empties its registries.
-spec start(none) -> bench_store:ops().
start(none) ->
    {ok, _} = application:ensure_all_started(beamtalk_image),
    ok = beamtalk_image_host:set_module(bench_host),
    ok = beamtalk_extensions:init(),
    ok = beamtalk_protocol_registry:init(),
    {ok, Server} = beamtalk_xref:start_link(),
    %% The server outlives the process that starts the store.
    true = unlink(Server),
    ok = clear(),
    #{
        register => fun beamtalk_extensions:register/5,
        unregister => fun beamtalk_extensions:unregister/2,
        lookup => fun beamtalk_extensions:lookup/2,
        lookup_chain => fun beamtalk_extensions:lookup_chain/2,
        has => fun beamtalk_extensions:has/2,
        source => fun beamtalk_extensions:getSource/2,
        list => fun beamtalk_extensions:list/1,
        extensions_by => fun beamtalk_extensions:extensions_by/1,
        register_class => fun beamtalk_xref:register_class/2,
        purge_class => fun beamtalk_xref:purge_class/1,
        put_method => fun beamtalk_xref:put_method/4,
        purge_method => fun beamtalk_xref:purge_method/3,
        senders_of => fun beamtalk_xref:senders_of/1,
        references_to => fun beamtalk_xref:references_to/1,
        implementors_of => fun beamtalk_xref:implementors_of/1,
        method_info => fun beamtalk_xref:method_info/3,
        defined_selectors => fun beamtalk_xref:defined_selectors/2,
        callers_of_native_module => fun beamtalk_xref:callers_of_native_module/1,
        register_protocol => fun beamtalk_protocol_registry:register_protocol/1,
        required_methods => fun beamtalk_protocol_registry:required_methods/1,
        conforms_to => fun beamtalk_protocol_registry:conforms_to/2,
        invalidate => fun beamtalk_protocol_registry:invalidate_conforms_cache/0,
        load => fun load/2,
        sync => fun beamtalk_image:sync/0,
        processes => fun processes/0,
        stop => fun stop/0
    }.

load(Classes, Extensions) ->
    lists:foreach(fun({Class, _, Entries}) -> ok = beamtalk_xref:register_class(Class, Entries) end, Classes),
    lists:foreach(
        fun({ClassKey, Selector, Fun, Owner}) ->
            ok = beamtalk_extensions:register(ClassKey, Selector, Fun, Owner, undefined)
        end,
        Extensions
    ).

clear() ->
    lists:foreach(fun(Store) -> ok = beamtalk_image:clear(Store) end, [extensions, xref, protocols]).

processes() ->
    [Pid || Name <- [beamtalk_xref, beamtalk_image_sup, beamtalk_image_guard, beamtalk_image_indexer],
        Pid <- [whereis(Name)], is_pid(Pid)].

stop() ->
    ok = gen_server:stop(beamtalk_xref),
    ok = clear(),
    ok = application:stop(beamtalk_image),
    beamtalk_image_host:set_module(undefined).
