%% @doc The baseline shaped like the registries that the image replaces: ETS bags, scanned and deleted by the
%% table.
%%
%% Sites lie in bags keyed by what is sent or referenced; owner and generation are inside the value. A class
%% that is registered again gets a new generation, and its old rows are swept by a message that the server
%% sends itself. A read copies the table of generations before and after its fetch and tries again while the
%% copies differ. Writes go through one server. Extensions live in three tables (function, source, conflicts),
%% changed one after another.
%%
%% Written from a description of that layout, for comparison only.
-module(bench_original).
-behaviour(bench_store).
-behaviour(gen_server).

-export([start/1]).
-export([
    register/5, unregister/2, lookup/2, lookup_chain/2, has/2, source/2, list/1, extensions_by/1,
    register_class/2, purge_class/1, put_method/4, purge_method/3,
    senders_of/1, references_to/1, implementors_of/1, method_info/3, defined_selectors/2,
    callers_of_native_module/1,
    register_protocol/1, required_methods/1, conforms_to/2, invalidate/0,
    load/2, sync/0, stop/0
]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(FUNS, bench_original_funs).
-define(SOURCES, bench_original_sources).
-define(CONFLICTS, bench_original_conflicts).
-define(METHODS, bench_original_methods).
-define(SENDERS, bench_original_senders).
-define(REFERENCES, bench_original_references).
-define(GENERATIONS, bench_original_generations).
-define(PROTOCOLS, bench_original_protocols).
-define(ANSWERS, bench_original_answers).
-define(COUNTER, '$counter').
-define(RETRIES, 100).

%% @doc Starts the store, empty.
-spec start(bag) -> bench_store:ops().
start(bag) ->
    {ok, Pid} = gen_server:start({local, ?MODULE}, ?MODULE, [], []),
    #{
        register => fun ?MODULE:register/5,
        unregister => fun ?MODULE:unregister/2,
        lookup => fun ?MODULE:lookup/2,
        lookup_chain => fun ?MODULE:lookup_chain/2,
        has => fun ?MODULE:has/2,
        source => fun ?MODULE:source/2,
        list => fun ?MODULE:list/1,
        extensions_by => fun ?MODULE:extensions_by/1,
        register_class => fun ?MODULE:register_class/2,
        purge_class => fun ?MODULE:purge_class/1,
        put_method => fun ?MODULE:put_method/4,
        purge_method => fun ?MODULE:purge_method/3,
        senders_of => fun ?MODULE:senders_of/1,
        references_to => fun ?MODULE:references_to/1,
        implementors_of => fun ?MODULE:implementors_of/1,
        method_info => fun ?MODULE:method_info/3,
        defined_selectors => fun ?MODULE:defined_selectors/2,
        callers_of_native_module => fun ?MODULE:callers_of_native_module/1,
        register_protocol => fun ?MODULE:register_protocol/1,
        required_methods => fun ?MODULE:required_methods/1,
        conforms_to => fun ?MODULE:conforms_to/2,
        invalidate => fun ?MODULE:invalidate/0,
        load => fun ?MODULE:load/2,
        sync => fun ?MODULE:sync/0,
        processes => fun() -> [Pid] end,
        stop => fun ?MODULE:stop/0
    }.

%% Extensions

%% @private
-spec register(atom(), atom(), function(), atom(), binary() | undefined) -> ok.
register(ClassKey, Selector, Fun, Owner, Source) ->
    Key = {ClassKey, Selector},
    case ets:lookup(?FUNS, Key) of
        [{_, _, Other}] when Other =/= Owner ->
            Now = erlang:system_time(millisecond),
            ets:insert(?CONFLICTS, [{Key, Other, Now}, {Key, Owner, Now}]);
        _ ->
            true
    end,
    ets:insert(?FUNS, {Key, Fun, Owner}),
    case Source of
        undefined -> ets:delete(?SOURCES, Key);
        _ -> ets:insert(?SOURCES, {Key, Source})
    end,
    put_method(ClassKey, false, Selector, bench_host:method_entry(Selector, Source)).

%% @private
-spec unregister(atom(), atom()) -> ok.
unregister(ClassKey, Selector) ->
    Key = {ClassKey, Selector},
    ets:delete(?FUNS, Key),
    ets:delete(?SOURCES, Key),
    ets:delete(?CONFLICTS, Key),
    purge_method(ClassKey, false, Selector).

%% @private
-spec lookup(atom(), atom()) -> {ok, function(), atom()} | not_found.
lookup(ClassKey, Selector) when is_atom(ClassKey), is_atom(Selector) ->
    case ets:lookup(?FUNS, {ClassKey, Selector}) of
        [{_, Fun, Owner}] -> {ok, Fun, Owner};
        [] -> not_found
    end.

%% @private
-spec lookup_chain([atom()], atom()) -> {ok, atom(), function(), atom()} | not_found.
lookup_chain([], _Selector) ->
    not_found;
lookup_chain([ClassKey | Rest], Selector) ->
    case lookup(ClassKey, Selector) of
        {ok, Fun, Owner} -> {ok, ClassKey, Fun, Owner};
        not_found -> lookup_chain(Rest, Selector)
    end.

%% @private
-spec has(atom(), atom()) -> boolean().
has(ClassKey, Selector) -> ets:member(?FUNS, {ClassKey, Selector}).

%% @private
-spec source(atom(), atom()) -> {ok, binary()} | not_found.
source(ClassKey, Selector) ->
    case ets:lookup(?SOURCES, {ClassKey, Selector}) of
        [{_, Source}] -> {ok, Source};
        [] -> not_found
    end.

%% @private
-spec list(atom()) -> [{atom(), atom()}].
list(ClassKey) ->
    [{Selector, Owner} || [Selector, Owner] <- ets:match(?FUNS, {{ClassKey, '$1'}, '_', '$2'})].

%% @private
-spec extensions_by(atom()) -> [{atom(), atom()}].
extensions_by(Owner) -> [Key || [Key] <- ets:match(?FUNS, {'$1', '_', Owner})].

%% Cross-reference index, writing

%% @private
-spec register_class(atom(), [map()]) -> ok.
register_class(Class, Entries) -> call({register_class, Class, Entries}).

%% @private
-spec purge_class(atom()) -> ok.
purge_class(Class) -> call({purge_class, Class}).

%% @private
-spec put_method(atom(), boolean(), atom(), map()) -> ok.
put_method(Class, ClassSide, Selector, Entry) -> call({put_method, Class, ClassSide, Selector, Entry}).

%% @private
-spec purge_method(atom(), boolean(), atom()) -> ok.
purge_method(Class, ClassSide, Selector) -> call({purge_method, Class, ClassSide, Selector}).

%% @private
%% Ends in the state that registering one after another ends in, without the sweep of three tables after each.
-spec load([bench_image:class()], [bench_store:extension()]) -> ok.
load(Classes, Extensions) -> call({load, Classes, Extensions}).

%% @private
-spec sync() -> ok.
sync() -> call(sync).

%% @private
-spec stop() -> ok.
stop() -> gen_server:stop(?MODULE, normal, infinity).

call(Request) -> gen_server:call(?MODULE, Request, infinity).

%% @private
-spec init([]) -> {ok, []}.
init([]) ->
    Options = [named_table, public, {read_concurrency, true}],
    _ = [ets:new(Table, [set | Options]) || Table <- [?FUNS, ?SOURCES, ?GENERATIONS, ?PROTOCOLS, ?ANSWERS]],
    _ = [ets:new(Table, [bag | Options]) || Table <- [?CONFLICTS, ?METHODS, ?SENDERS, ?REFERENCES]],
    ets:insert(?ANSWERS, {?COUNTER, 0}),
    {ok, []}.

%% @private
-spec handle_call(term(), gen_server:from(), []) -> {reply, ok, []}.
handle_call({register_class, Class, Entries}, _From, []) ->
    Generation = generation(Class, 0) + 1,
    insert_entries(Class, Generation, Entries),
    ets:insert(?GENERATIONS, {Class, Generation}),
    self() ! {sweep, Class, Generation},
    {reply, ok, []};
handle_call({purge_class, Class}, _From, []) ->
    ets:match_delete(?METHODS, {{Class, '_', '_'}, '_'}),
    ets:match_delete(?SENDERS, {'_', #{owner => Class}}),
    ets:match_delete(?REFERENCES, {'_', #{owner => Class}}),
    ets:delete(?GENERATIONS, Class),
    {reply, ok, []};
handle_call({put_method, Class, ClassSide, Selector, Entry}, _From, []) ->
    Generation = generation(Class, 1),
    delete_method(Class, ClassSide, Selector),
    insert_entries(Class, Generation, [Entry#{class_side => ClassSide, selector => Selector}]),
    ets:insert_new(?GENERATIONS, {Class, Generation}),
    {reply, ok, []};
handle_call({purge_method, Class, ClassSide, Selector}, _From, []) ->
    delete_method(Class, ClassSide, Selector),
    {reply, ok, []};
handle_call({load, Classes, Extensions}, _From, []) ->
    lists:foreach(
        fun({Class, _Super, Entries}) ->
            insert_entries(Class, 1, Entries),
            ets:insert(?GENERATIONS, {Class, 1})
        end,
        Classes
    ),
    lists:foreach(
        fun({ClassKey, Selector, Fun, Owner}) ->
            ets:insert(?FUNS, {{ClassKey, Selector}, Fun, Owner}),
            insert_entries(ClassKey, 1, [bench_host:method_entry(Selector, undefined)]),
            ets:insert(?GENERATIONS, {ClassKey, 1})
        end,
        Extensions
    ),
    {reply, ok, []};
handle_call(sync, _From, []) ->
    {reply, ok, []}.

%% @private
-spec handle_cast(term(), []) -> {noreply, []}.
handle_cast(_Request, []) ->
    {noreply, []}.

%% @private
-spec handle_info(term(), []) -> {noreply, []}.
handle_info({sweep, Class, Generation}, []) ->
    Older = [{'<', '$1', Generation}],
    ets:select_delete(?METHODS, [{{{Class, '_', '_'}, #{gen => '$1'}}, Older, [true]}]),
    Site = {'_', #{owner => Class, gen => '$1'}},
    ets:select_delete(?SENDERS, [{Site, Older, [true]}]),
    ets:select_delete(?REFERENCES, [{Site, Older, [true]}]),
    {noreply, []}.

delete_method(Class, ClassSide, Selector) ->
    Site = {'_', #{owner => Class, class_side => ClassSide, method => Selector}},
    ets:delete(?METHODS, {Class, ClassSide, Selector}),
    ets:match_delete(?SENDERS, Site),
    ets:match_delete(?REFERENCES, Site).

insert_entries(Class, Generation, Entries) ->
    lists:foreach(fun(Entry) -> insert_entry(Class, Generation, Entry) end, Entries).

insert_entry(Class, Generation, #{selector := Selector, line := Line} = Entry) ->
    ClassSide = maps:get(class_side, Entry, false),
    Info = #{
        owner => Class,
        line => Line,
        source_status => maps:get(source_status, Entry, indexed),
        provenance => maps:get(provenance, Entry, class_body),
        gen => Generation
    },
    Senders = [
        {Sent, #{
            owner => Class,
            class_side => ClassSide,
            method => Selector,
            line => maps:get(line, Send, Line),
            recv_kind => maps:get(recv_kind, Send, other),
            target_module => maps:get(target_module, Send, undefined),
            recv_type => maps:get(recv_type, Send, dynamic),
            gen => Generation
        }}
        || #{selector := Sent} = Send <- maps:get(sends, Entry, [])
    ],
    References = [
        {Referenced, #{
            owner => Class,
            class_side => ClassSide,
            method => Selector,
            line => maps:get(line, Reference, Line),
            gen => Generation
        }}
        || #{class := Referenced} = Reference <- maps:get(references, Entry, [])
    ],
    ets:insert(?METHODS, {{Class, ClassSide, Selector}, Info}),
    ets:insert(?SENDERS, Senders),
    ets:insert(?REFERENCES, References).

generation(Class, Default) ->
    case ets:lookup(?GENERATIONS, Class) of
        [{_, Generation}] -> Generation;
        [] -> Default
    end.

%% Cross-reference index, reading

%% @private
-spec senders_of(atom()) -> [map()].
senders_of(Selector) -> sites(fun() -> ets:lookup(?SENDERS, Selector) end).

%% @private
-spec references_to(atom()) -> [map()].
references_to(Class) -> sites(fun() -> ets:lookup(?REFERENCES, Class) end).

%% @private
-spec implementors_of(atom()) -> [{atom(), boolean()}].
implementors_of(Selector) ->
    {Rows, Generations} = consistent(fun() ->
        ets:match(?METHODS, {{'$1', '$2', Selector}, #{gen => '$3'}})
    end),
    lists:usort([{Class, Side} || [Class, Side, Gen] <- Rows, is_current(Class, Gen, Generations)]).

%% @private
-spec method_info(atom(), boolean(), atom()) -> map() | undefined.
method_info(Class, ClassSide, Selector) ->
    {Rows, Generations} = consistent(fun() -> ets:lookup(?METHODS, {Class, ClassSide, Selector}) end),
    case [Info || {_, #{gen := Gen} = Info} <- Rows, is_current(Class, Gen, Generations)] of
        [Info | _] -> Info;
        [] -> undefined
    end.

%% @private
-spec defined_selectors(atom(), boolean()) -> [atom()].
defined_selectors(Class, ClassSide) ->
    {Rows, Generations} = consistent(fun() ->
        ets:match(?METHODS, {{Class, ClassSide, '$1'}, #{gen => '$2'}})
    end),
    lists:usort([Selector || [Selector, Gen] <- Rows, is_current(Class, Gen, Generations)]).

%% @private
-spec callers_of_native_module(atom()) -> [map()].
callers_of_native_module(Module) ->
    Sites = sites(fun() ->
        ets:match_object(?SENDERS, {'_', #{recv_kind => erlang_ffi, target_module => Module}})
    end),
    First = lists:foldl(
        fun(#{owner := Owner, method := Method, class_side := Side, line := Line}, Lines) ->
            maps:update_with({Owner, Method, Side}, fun(Known) -> min(Known, Line) end, Line, Lines)
        end,
        #{},
        Sites
    ),
    [
        #{owner => Owner, class_side => Side, method => Method, line => Line}
        || {{Owner, Method, Side}, Line} <- lists:sort(maps:to_list(First))
    ].

sites(Fetch) ->
    {Rows, Generations} = consistent(Fetch),
    [Site || {_, #{owner := Owner, gen := Gen} = Site} <- Rows, is_current(Owner, Gen, Generations)].

is_current(Class, Generation, Generations) -> maps:get(Class, Generations, none) =:= Generation.

consistent(Fetch) -> consistent(Fetch, ?RETRIES).

consistent(Fetch, Left) ->
    Before = generations(),
    Rows = Fetch(),
    case generations() of
        After when After =:= Before; Left =:= 0 -> {Rows, maps:from_list(After)};
        _ -> consistent(Fetch, Left - 1)
    end.

generations() -> ets:tab2list(?GENERATIONS).

%% Protocols

%% @private
-spec register_protocol(map()) -> ok.
register_protocol(#{name := Name} = Definition) ->
    ets:insert(?PROTOCOLS, {Name, Definition}),
    invalidate().

%% @private
-spec invalidate() -> ok.
invalidate() ->
    _ = ets:update_counter(?ANSWERS, ?COUNTER, 1),
    ok.

%% @private
-spec required_methods(atom()) -> [atom()].
required_methods(Name) ->
    bench_host:requirement_names(
        requirements(Name, required_methods), requirements(Name, required_class_methods)
    ).

requirements(Name, Key) -> bench_host:requirements(Name, Key, fun definition/1).

definition(Name) ->
    case ets:lookup(?PROTOCOLS, Name) of
        [{_, Definition}] -> Definition;
        [] -> undefined
    end.

%% @private
-spec conforms_to(atom(), atom()) -> boolean().
conforms_to(Class, Name) ->
    case definition(Name) of
        undefined ->
            false;
        _ ->
            Counter = ets:lookup_element(?ANSWERS, ?COUNTER, 2),
            case ets:lookup(?ANSWERS, {Class, Name}) of
                [{_, Answer, Counter}] ->
                    Answer;
                _ ->
                    Answer = ask(Class, Name),
                    ets:insert(?ANSWERS, {{Class, Name}, Answer, Counter}),
                    Answer
            end
    end.

ask(Class, Name) ->
    lists:all(fun(S) -> bench_host:understands(Class, S) end, requirements(Name, required_methods)) andalso
        lists:all(fun(S) -> bench_host:class_side_has(Class, S, fun has/2) end,
            requirements(Name, required_class_methods)).
