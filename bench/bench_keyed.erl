%% @doc The baseline as someone who knows ETS well would lay it out: everything under the key it is asked by.
%%
%% A method's row names what the method sends, references and calls, so that its rows elsewhere are found by
%% key; nothing walks a table. Extensions are one row for dispatch and one for the rest. Conformance answers
%% carry a stamp that is compared with an atomic counter, and positive answers come from the index before any
%% class is asked.
%%
%% Rows found by a key that many share (a selector and its senders) come in two layouts, since neither wins
%% throughout: `hash', a duplicate bag, is quickest to read and has to search among the rows of a popular key
%% when it deletes; `ordered', an ordered set, finds every row in logarithmic time and pays for a prefix read.
%% The hash layout replaces a class by deleting and inserting, so a concurrent reader may miss it for a
%% moment; that is let pass, to its advantage.
-module(bench_keyed).
-behaviour(bench_store).
-behaviour(gen_server).

-export([start/1]).
-export([init/1, handle_call/3, handle_cast/2]).

-record(keyed, {
    layout :: hash | ordered,
    server :: pid() | undefined,
    stamp :: atomics:atomics_ref(),
    %% {{ClassKey, Selector}, Fun, Owner}
    funs :: ets:tid(),
    %% {{ClassKey, Selector}, Owner, Source, Owners}, ordered, for the questions by class key
    extensions :: ets:tid(),
    %% {{Owner, ClassKey, Selector}}, ordered
    owners :: ets:tid(),
    %% {{Class, Side}, Selectors}; {Class} for a class that was registered as a whole
    classes :: ets:tid(),
    %% {{Class, Side, Selector}, Line, Status, Provenance, Sent, Referenced, Modules}
    methods :: ets:tid(),
    senders :: ets:tid(),
    references :: ets:tid(),
    implementors :: ets:tid(),
    callers :: ets:tid(),
    protocols :: ets:tid(),
    answers :: ets:tid()
}).

%% @doc Starts the store, empty.
-spec start(hash | ordered) -> bench_store:ops().
start(Layout) ->
    {ok, Pid} = gen_server:start(?MODULE, Layout, []),
    K = (gen_server:call(Pid, tables))#keyed{server = Pid},
    #keyed{funs = Funs, extensions = Extensions, owners = Owners} = K,
    #{
        register => fun(C, S, F, O, Source) -> call(K, {register, C, S, F, O, Source}) end,
        unregister => fun(C, S) -> call(K, {unregister, C, S}) end,
        lookup => fun(C, S) when is_atom(C), is_atom(S) -> lookup(Funs, C, S) end,
        lookup_chain => fun(Cs, S) -> lookup_chain(Funs, Cs, S) end,
        has => fun(C, S) -> ets:member(Funs, {C, S}) end,
        source => fun(C, S) -> source(Extensions, C, S) end,
        list => fun(C) ->
            ets:select(Extensions, [{{{C, '$1'}, '$2', '_', '_'}, [], [{{'$1', '$2'}}]}])
        end,
        extensions_by => fun(O) -> ets:select(Owners, [{{{O, '$1', '$2'}}, [], [{{'$1', '$2'}}]}]) end,
        register_class => fun(C, Entries) -> call(K, {register_class, C, Entries}) end,
        purge_class => fun(C) -> call(K, {purge_class, C}) end,
        put_method => fun(C, Side, S, Entry) -> call(K, {put_method, C, Side, S, Entry}) end,
        purge_method => fun(C, Side, S) -> call(K, {purge_method, C, Side, S}) end,
        senders_of => fun(S) -> senders_of(K, S) end,
        references_to => fun(C) -> references_to(K, C) end,
        implementors_of => fun(S) -> implementors_of(K, S) end,
        method_info => fun(C, Side, S) -> method_info(K, C, Side, S) end,
        defined_selectors => fun(C, Side) -> selectors(K, C, Side) end,
        callers_of_native_module => fun(M) -> callers_of(K, M) end,
        register_protocol => fun(Definition) -> call(K, {register_protocol, Definition}) end,
        required_methods => fun(Name) ->
            bench_host:requirement_names(
                required(K, Name, required_methods), required(K, Name, required_class_methods)
            )
        end,
        conforms_to => fun(C, Name) -> conforms_to(K, C, Name) end,
        invalidate => fun() -> invalidate(K) end,
        load => fun(Classes, Added) -> load(K, Classes, Added) end,
        sync => fun() -> call(K, sync) end,
        processes => fun() -> [Pid] end,
        stop => fun() -> gen_server:stop(Pid, normal, infinity) end
    }.

call(#keyed{server = Pid}, Request) -> gen_server:call(Pid, Request, infinity).

load(K, Classes, Extensions) ->
    lists:foreach(fun({Class, _, Entries}) -> ok = call(K, {register_class, Class, Entries}) end, Classes),
    lists:foreach(fun({C, S, F, O}) -> ok = call(K, {register, C, S, F, O, undefined}) end, Extensions).

%% @private
-spec init(hash | ordered) -> {ok, #keyed{}}.
init(Layout) ->
    Set = fun() -> ets:new(?MODULE, [set, protected, {read_concurrency, true}]) end,
    Ordered = fun() -> ets:new(?MODULE, [ordered_set, protected, {read_concurrency, true}]) end,
    Shared =
        case Layout of
            hash -> fun() -> ets:new(?MODULE, [duplicate_bag, protected, {read_concurrency, true}]) end;
            ordered -> Ordered
        end,
    {ok, #keyed{
        layout = Layout,
        stamp = atomics:new(1, []),
        funs = Set(),
        extensions = Ordered(),
        owners = Ordered(),
        classes = Set(),
        methods = Set(),
        senders = Shared(),
        references = Shared(),
        implementors = Shared(),
        callers = Shared(),
        protocols = Set(),
        answers = ets:new(?MODULE, [set, public, {read_concurrency, true}])
    }}.

%% @private
-spec handle_call(term(), gen_server:from(), #keyed{}) -> {reply, ok | #keyed{}, #keyed{}}.
handle_call(tables, _From, K) ->
    {reply, K, K};
handle_call({register, ClassKey, Selector, Fun, Owner, Source}, _From, K) ->
    register(K, ClassKey, Selector, Fun, Owner, Source),
    {reply, ok, K};
handle_call({unregister, ClassKey, Selector}, _From, K) ->
    unregister(K, ClassKey, Selector),
    {reply, ok, K};
handle_call({register_class, Class, Entries}, _From, K) ->
    register_class(K, Class, Entries),
    {reply, ok, K};
handle_call({purge_class, Class}, _From, K) ->
    purge_class(K, Class),
    {reply, ok, K};
handle_call({put_method, Class, Side, Selector, Entry}, _From, K) ->
    put_method(K, Class, Entry#{class_side => Side, selector => Selector}),
    {reply, ok, K};
handle_call({purge_method, Class, Side, Selector}, _From, K) ->
    purge_method(K, Class, Side, Selector),
    {reply, ok, K};
handle_call({register_protocol, #{name := Name} = Definition}, _From, K) ->
    true = ets:insert(K#keyed.protocols, {Name, Definition}),
    invalidate(K),
    {reply, ok, K};
handle_call(sync, _From, K) ->
    {reply, ok, K}.

%% @private
-spec handle_cast(term(), #keyed{}) -> {noreply, #keyed{}}.
handle_cast(_Request, K) ->
    {noreply, K}.

%% Extensions

register(K, ClassKey, Selector, Fun, Owner, Source) ->
    #keyed{funs = Funs, extensions = Extensions, owners = Owners} = K,
    Key = {ClassKey, Selector},
    All =
        case ets:lookup(Extensions, Key) of
            [{_, Owner, _, Known}] ->
                Known;
            [{_, Other, _, Known}] ->
                true = ets:delete(Owners, {Other, ClassKey, Selector}),
                ordsets:add_element(Owner, Known);
            [] ->
                [Owner]
        end,
    true = ets:insert(Extensions, {Key, Owner, Source, All}),
    true = ets:insert(Owners, {{Owner, ClassKey, Selector}}),
    true = ets:insert(Funs, {Key, Fun, Owner}),
    invalidate(K),
    put_method(K, ClassKey, bench_host:method_entry(Selector, Source)).

unregister(#keyed{funs = Funs, extensions = Extensions, owners = Owners} = K, ClassKey, Selector) ->
    Key = {ClassKey, Selector},
    case ets:lookup(Extensions, Key) of
        [{_, Owner, _, _}] ->
            true = ets:delete(Funs, Key),
            true = ets:delete(Extensions, Key),
            true = ets:delete(Owners, {Owner, ClassKey, Selector}),
            invalidate(K),
            purge_method(K, ClassKey, false, Selector);
        [] ->
            ok
    end.

lookup(Funs, ClassKey, Selector) ->
    case ets:lookup(Funs, {ClassKey, Selector}) of
        [{_, Fun, Owner}] -> {ok, Fun, Owner};
        [] -> not_found
    end.

lookup_chain(_Funs, [], _Selector) ->
    not_found;
lookup_chain(Funs, [ClassKey | Rest], Selector) ->
    case lookup(Funs, ClassKey, Selector) of
        {ok, Fun, Owner} -> {ok, ClassKey, Fun, Owner};
        not_found -> lookup_chain(Funs, Rest, Selector)
    end.

source(Extensions, ClassKey, Selector) ->
    case ets:lookup(Extensions, {ClassKey, Selector}) of
        [{_, _, Source, _}] when is_binary(Source) -> {ok, Source};
        _ -> not_found
    end.

%% Cross-reference index, writing

register_class(#keyed{classes = Classes} = K, Class, Entries) ->
    forget_methods(K, Class),
    Keyed = [{{maps:get(class_side, E, false), maps:get(selector, E)}, E} || E <- Entries],
    Unique = lists:ukeysort(1, Keyed),
    insert_methods(K, Class, [Entry || {_, Entry} <- Unique]),
    true = ets:insert(Classes, [
        {Class},
        {{Class, false}, [Selector || {{false, Selector}, _} <- Unique]},
        {{Class, true}, [Selector || {{true, Selector}, _} <- Unique]}
    ]).

purge_class(#keyed{classes = Classes} = K, Class) ->
    forget_methods(K, Class),
    true = ets:delete(Classes, Class),
    true = ets:delete(Classes, {Class, false}),
    true = ets:delete(Classes, {Class, true}).

put_method(#keyed{classes = Classes} = K, Class, #{selector := Selector} = Entry) ->
    Side = maps:get(class_side, Entry, false),
    Known = selectors(K, Class, Side),
    case lists:member(Selector, Known) of
        true ->
            forget_method(K, Class, Side, Selector);
        false ->
            true = ets:insert(Classes, {{Class, Side}, ordsets:add_element(Selector, Known)})
    end,
    insert_methods(K, Class, [Entry]).

purge_method(#keyed{classes = Classes} = K, Class, Side, Selector) ->
    Known = selectors(K, Class, Side),
    case lists:member(Selector, Known) of
        true ->
            forget_method(K, Class, Side, Selector),
            true = ets:insert(Classes, {{Class, Side}, ordsets:del_element(Selector, Known)});
        false ->
            true
    end.

insert_methods(K, Class, Entries) ->
    #keyed{layout = Layout, senders = Senders, references = References} = K,
    #keyed{implementors = Implementors, callers = Callers, methods = Methods} = K,
    Rows = [method_rows(Class, Entry) || Entry <- Entries],
    true = ets:insert(Senders, shared(Layout, [Row || {_, Sends, _, _} <- Rows, Row <- Sends])),
    true = ets:insert(References, shared(Layout, [Row || {_, _, Refs, _} <- Rows, Row <- Refs])),
    true = ets:insert(Callers, shared(Layout, [Row || {_, _, _, Calls} <- Rows, Row <- Calls])),
    Own = [Method || {Method, _, _, _} <- Rows],
    Defined = [{{Selector, Class, Side}, []} || {{_, Side, Selector}, _, _, _, _, _, _} <- Own],
    true = ets:insert(Implementors, shared(Layout, Defined)),
    true = ets:insert(Methods, Own).

%% The method's own row, and those under other keys as {Key, Information}.
method_rows(Class, #{selector := Selector, line := Line} = Entry) ->
    Side = maps:get(class_side, Entry, false),
    Sends = lists:usort([
        {
            maps:get(selector, S),
            maps:get(line, S, Line),
            maps:get(recv_kind, S, other),
            maps:get(target_module, S, undefined),
            maps:get(recv_type, S, dynamic)
        }
        || S <- maps:get(sends, Entry, [])
    ]),
    References = lists:usort([
        {maps:get(class, R), maps:get(line, R, Line)}
        || R <- maps:get(references, Entry, [])
    ]),
    Calls = lists:ukeysort(1, [{M, At} || {_, At, erlang_ffi, M, _} <- Sends, M =/= undefined]),
    Method = {
        {Class, Side, Selector},
        Line,
        maps:get(source_status, Entry, indexed),
        maps:get(provenance, Entry, class_body),
        lists:usort([Sent || {Sent, _, _, _, _} <- Sends]),
        lists:usort([Referenced || {Referenced, _} <- References]),
        [M || {M, _} <- Calls]
    },
    {
        Method,
        [
            {{Sent, Class, Side, Selector}, {At, Kind, Module, Type}}
            || {Sent, At, Kind, Module, Type} <- Sends
        ],
        [{{Referenced, Class, Side, Selector}, {At}} || {Referenced, At} <- References],
        [{{M, Class, Side, Selector}, {first_line(M, Sends)}} || {M, _} <- Calls]
    }.

first_line(Module, Sends) -> lists:min([At || {_, At, erlang_ffi, M, _} <- Sends, M =:= Module]).

%% Rows in the form of the layout. Rows of one key follow each other.
shared(ordered, Rows) ->
    gather(Rows);
shared(hash, Rows) ->
    [flat(Row) || Row <- Rows].

flat({{Key, Class, Side, Selector}, {Line, Kind, Module, Type}}) ->
    {Key, Class, Side, Selector, Line, Kind, Module, Type};
flat({{Key, Class, Side, Selector}, {Line}}) ->
    {Key, Class, Side, Selector, Line};
flat({{Key, Class, Side}, []}) ->
    {Key, Class, Side}.

gather([{Key, One}, {Key, Two} | Rest]) -> gather([{Key, [Two, One]} | Rest], Key);
gather([Row | Rest]) -> [Row | gather(Rest)];
gather([]) -> [].

gather([{Key, Several}, {Key, Next} | Rest], Key) -> gather([{Key, [Next | Several]} | Rest], Key);
gather(Rows, _Key) -> [hd(Rows) | gather(tl(Rows))].

forget_methods(K, Class) ->
    lists:foreach(
        fun(Side) -> [forget_method(K, Class, Side, Selector) || Selector <- selectors(K, Class, Side)] end,
        [false, true]
    ).

forget_method(K, Class, Side, Selector) ->
    #keyed{layout = Layout, senders = Senders, references = References} = K,
    #keyed{implementors = Implementors, callers = Callers, methods = Methods} = K,
    case ets:take(Methods, {Class, Side, Selector}) of
        [{_, _, _, _, Sent, Referenced, Modules}] when Layout =:= ordered ->
            [ets:delete(Senders, {Key, Class, Side, Selector}) || Key <- Sent],
            [ets:delete(References, {Key, Class, Side, Selector}) || Key <- Referenced],
            [ets:delete(Callers, {Key, Class, Side, Selector}) || Key <- Modules],
            ets:delete(Implementors, {Selector, Class, Side});
        [{_, _, _, _, Sent, Referenced, Modules}] ->
            [ets:match_delete(Senders, {Key, Class, Side, Selector, '_', '_', '_', '_'}) || Key <- Sent],
            [ets:match_delete(References, {Key, Class, Side, Selector, '_'}) || Key <- Referenced],
            [ets:match_delete(Callers, {Key, Class, Side, Selector, '_'}) || Key <- Modules],
            ets:delete_object(Implementors, {Selector, Class, Side});
        [] ->
            true
    end.

%% Cross-reference index, reading

senders_of(#keyed{layout = hash, senders = Senders}, Selector) ->
    [
        site(C, Side, M, L, Kind, Module, Type)
        || {_, C, Side, M, L, Kind, Module, Type} <- ets:lookup(Senders, Selector)
    ];
senders_of(#keyed{senders = Senders}, Selector) ->
    [
        site(C, Side, M, L, Kind, Module, Type)
        || {{_, C, Side, M}, Found} <- ets:match_object(Senders, {{Selector, '_', '_', '_'}, '_'}),
            {L, Kind, Module, Type} <- each(Found)
    ].

site(Class, Side, Method, Line, Kind, Module, Type) ->
    #{
        owner => Class, class_side => Side, method => Method, line => Line,
        recv_kind => Kind, target_module => Module, recv_type => Type, gen => 0
    }.

references_to(#keyed{layout = hash, references = References}, Class) ->
    [reference(C, Side, M, L) || {_, C, Side, M, L} <- ets:lookup(References, Class)];
references_to(#keyed{references = References}, Class) ->
    [
        reference(C, Side, M, L)
        || {{_, C, Side, M}, Found} <- ets:match_object(References, {{Class, '_', '_', '_'}, '_'}),
            {L} <- each(Found)
    ].

reference(Class, Side, Method, Line) ->
    #{owner => Class, class_side => Side, method => Method, line => Line, gen => 0}.

each(Several) when is_list(Several) -> Several;
each(One) -> [One].

implementors_of(#keyed{layout = hash, implementors = Implementors}, Selector) ->
    lists:sort([{Class, Side} || {_, Class, Side} <- ets:lookup(Implementors, Selector)]);
implementors_of(#keyed{implementors = Implementors}, Selector) ->
    [{Class, Side} || {{_, Class, Side}, _} <- ets:match_object(Implementors, {{Selector, '_', '_'}, '_'})].

method_info(#keyed{methods = Methods}, Class, Side, Selector) ->
    case ets:lookup(Methods, {Class, Side, Selector}) of
        [{_, Line, Status, Provenance, _, _, _}] ->
            #{owner => Class, line => Line, source_status => Status, provenance => Provenance, gen => 0};
        [] ->
            undefined
    end.

selectors(#keyed{classes = Classes}, Class, Side) ->
    case ets:lookup(Classes, {Class, Side}) of
        [{_, Selectors}] -> Selectors;
        [] -> []
    end.

callers_of(#keyed{layout = hash, callers = Callers}, Module) ->
    callers(lists:sort([{C, M, Side, L} || {_, C, Side, M, L} <- ets:lookup(Callers, Module)]));
callers_of(#keyed{callers = Callers}, Module) ->
    Found = ets:match_object(Callers, {{Module, '_', '_', '_'}, '_'}),
    callers(lists:sort([{C, M, Side, L} || {{_, C, Side, M}, {L}} <- Found])).

callers(Rows) -> [#{owner => C, class_side => Side, method => M, line => L} || {C, M, Side, L} <- Rows].

%% Protocols

required(K, Name, Key) -> bench_host:requirements(Name, Key, fun(Asked) -> definition(K, Asked) end).

definition(#keyed{protocols = Protocols}, Name) ->
    case ets:lookup(Protocols, Name) of
        [{_, Definition}] -> Definition;
        [] -> undefined
    end.

invalidate(#keyed{stamp = Stamp}) -> atomics:add(Stamp, 1, 1).

conforms_to(#keyed{stamp = Counter, answers = Answers} = K, Class, Name) ->
    Stamp = atomics:get(Counter, 1),
    case ets:lookup(Answers, {Class, Name}) of
        [{_, Stamp, Answer}] ->
            Answer;
        _ ->
            Answer = definition(K, Name) =/= undefined andalso ask(K, Class, Name),
            true = ets:insert(Answers, {{Class, Name}, Stamp, Answer}),
            Answer
    end.

ask(#keyed{funs = Funs} = K, Class, Name) ->
    Chain = chain(Class),
    lists:all(
        fun(S) -> is_indexed(K, Chain, false, S) orelse bench_host:understands(Class, S) end,
        required(K, Name, required_methods)
    ) andalso
        lists:all(
            fun(S) ->
                is_indexed(K, Chain, true, S) orelse
                    bench_host:class_side_has(Class, S, fun(C, X) -> ets:member(Funs, {C, X}) end)
            end,
            required(K, Name, required_class_methods)
        ).

is_indexed(#keyed{methods = Methods}, Chain, Side, Selector) ->
    lists:any(fun(Class) -> ets:member(Methods, {Class, Side, Selector}) end, Chain).

chain(Class) ->
    case bench_host:superclass_row(Class) of
        {ok, none} -> [Class];
        {ok, Super} -> [Class | chain(Super)];
        not_found -> []
    end.
