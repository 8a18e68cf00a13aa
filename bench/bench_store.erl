%% @doc What the benchmark asks of a store, and the check that all stores answer alike.
%%
%% A store hands out its operations as funs, so that a measured call goes straight to the function under test:
%% for the NIF-backed store these are the exported functions of the registries themselves.
-module(bench_store).

-export([stores/0, title/1, start/1, agree/2]).
-export_type([id/0, ops/0, extension/0]).

-type id() :: original | keyed_hash | keyed_ordered | nif.
-type ops() :: #{atom() => function()}.
%% `register/5', `unregister/2', `lookup/2', `lookup_chain/2', `has/2', `source/2', `list/1',
%% `extensions_by/1'; `register_class/2', `purge_class/1', `put_method/4', `purge_method/3', `senders_of/1',
%% `references_to/1', `implementors_of/1', `method_info/3', `defined_selectors/2',
%% `callers_of_native_module/1'; `register_protocol/1', `required_methods/1', `conforms_to/2', `invalidate/0';
%% `load/2' (classes and extensions by the quickest way that ends in the same state), `sync/0' (waits for work
%% that a write left behind), `processes/0' (those that belong to the store), `stop/0'.
-type extension() :: {ClassKey :: atom(), Selector :: atom(), function(), Owner :: atom()}.

-callback start(Layout :: atom()) -> ops().

-define(STORES, [
    {original, bench_original, bag, "original-shaped ETS"},
    {keyed_hash, bench_keyed, hash, "keyed ETS, hash tables"},
    {keyed_ordered, bench_keyed, ordered, "keyed ETS, ordered tables"},
    {nif, bench_nif, none, "beamtalk_image"}
]).

%% @doc Every store, the product last.
-spec stores() -> [id()].
stores() -> [Id || {Id, _Module, _Layout, _Title} <- ?STORES].

%% @doc What tables call a store.
-spec title(id()) -> string().
title(Id) ->
    {Id, _Module, _Layout, Title} = lists:keyfind(Id, 1, ?STORES),
    Title.

%% @doc Starts a store, empty.
-spec start(id()) -> ops().
start(Id) ->
    {Id, Module, Layout, _Title} = lists:keyfind(Id, 1, ?STORES),
    Module:start(Layout).

%% @doc Takes every store through one history on a small image and compares all answers after each step.
%% Raises `error:{answers_differ, Step, Question, Store, Expected, Got}' at the first difference: no number is
%% worth anything when the stores do not do the same.
-spec agree([{id(), ops()}], bench_image:image()) -> {ok, Compared :: non_neg_integer()}.
agree([{_, First} | Others] = Stores, Image) ->
    Questions = questions(Image),
    Count = lists:foldl(
        fun({Step, Write}, Compared) ->
            lists:foreach(
                fun({_, Ops}) ->
                    _ = Write(Ops),
                    call(sync, Ops, [])
                end,
                Stores
            ),
            lists:foreach(
                fun({Function, Args} = Question) ->
                    Expected = answer(Function, Args, First),
                    lists:foreach(
                        fun({Id, Ops}) ->
                            case answer(Function, Args, Ops) of
                                Expected -> ok;
                                Got -> error({answers_differ, Step, Question, Id, Expected, Got})
                            end
                        end,
                        Others
                    )
                end,
                Questions
            ),
            Compared + length(Questions) * length(Others)
        end,
        0,
        history(Image)
    ),
    {ok, Count}.

history(#{classes := Classes, extensions := Extensions, protocols := Protocols}) ->
    [{Class, _, [Entry, Other | _] = Entries}, {Second, _, _}, {Third, _, _} | _] = Classes,
    #{selector := Selector, class_side := Side} = Entry,
    [{Key, Extra, Fun, Owner} | _] = Extensions,
    Each = fun(Function, ArgLists) ->
        fun(Ops) -> lists:foreach(fun(Args) -> call(Function, Ops, Args) end, ArgLists) end
    end,
    [
        {empty, fun(_Ops) -> ok end},
        {classes, Each(register_class, [[Name, Rows] || {Name, _Super, Rows} <- Classes])},
        {extensions, Each(register, [[K, S, F, O, undefined] || {K, S, F, O} <- Extensions])},
        {protocols, Each(register_protocol, [[Protocol] || Protocol <- Protocols])},
        {source_added, Each(register, [[Key, Extra, Fun, Owner, <<"answer => 42">>]])},
        {source_gone, Each(register, [[Key, Extra, Fun, Owner, undefined]])},
        {extension_gone, Each(unregister, [[Key, Extra]])},
        {extension_back, Each(register, [[Key, Extra, Fun, Owner, undefined]])},
        {class_again, Each(register_class, [[Class, Entries]])},
        {class_smaller, Each(register_class, [[Class, tl(Entries)]])},
        {method_back, Each(put_method, [[Class, Side, Selector, Entry]])},
        {method_other, Each(put_method, [[Class, Side, Selector, Other]])},
        {method_gone, Each(purge_method, [[Class, Side, Selector]])},
        {method_unknown, Each(purge_method, [[Class, Side, 'never:defined:']])},
        {class_gone, Each(purge_class, [[Second]])},
        {class_empty, Each(register_class, [[Third, []]])},
        {conformance_forgotten, Each(invalidate, [[]])}
    ].

questions(#{classes := Classes, extensions := Extensions, protocols := Protocols}) ->
    Names = [Name || {Name, _, _} <- Classes],
    Entries = [{Name, Entry} || {Name, _, Rows} <- Classes, Entry <- Rows],
    Sends = [Send || {_, Entry} <- Entries, Send <- maps:get(sends, Entry, [])],
    Defined = lists:usort([maps:get(selector, Entry) || {_, Entry} <- Entries]),
    Sent = lists:usort([maps:get(selector, Send) || Send <- Sends]),
    References = lists:usort([
        maps:get(class, R)
        || {_, Entry} <- Entries, R <- maps:get(references, Entry, [])
    ]),
    Modules = lists:usort([maps:get(target_module, Send, undefined) || Send <- Sends]) -- [undefined],
    Methods = lists:usort([
        {Name, maps:get(class_side, E, false), maps:get(selector, E)}
        || {Name, E} <- Entries
    ]),
    Keys = [{Key, Selector} || {Key, Selector, _, _} <- Extensions],
    ClassKeys = lists:usort([Key || {Key, _} <- Keys]),
    Asked = [maps:get(name, Protocol) || Protocol <- lists:sublist(Protocols, 4)] ++ ['NoSuchProtocol'],
    lists:append([
        [{senders_of, [Selector]} || Selector <- lists:usort(['never:sent:' | Sent ++ Defined])],
        [{references_to, [Name]} || Name <- lists:usort(['NoSuchClass' | References])],
        [{implementors_of, [Selector]} || Selector <- lists:usort(Defined ++ [S || {_, S} <- Keys])],
        [{defined_selectors, [Name, Side]} || Name <- lists:usort(Names ++ ClassKeys), Side <- [false, true]],
        [{method_info, [Name, Side, Selector]} || {Name, Side, Selector} <- Methods],
        [{method_info, [Name, not Side, Selector]} || {Name, Side, Selector} <- Methods],
        [{method_info, [Key, false, Selector]} || {Key, Selector} <- Keys],
        [{callers_of_native_module, [Module]} || Module <- [no_such_module | Modules]],
        [{Function, [Key, Selector]} || Function <- [lookup, has, source], {Key, Selector} <- Keys],
        [{lookup, [Name, Selector]} || Name <- Names, {_, Selector} <- [hd(Keys)]],
        [{lookup_chain, [Names, Selector]} || {_, Selector} <- Keys],
        [{list, [Key]} || Key <- ClassKeys ++ Names],
        [{extensions_by, [Owner]} || Owner <- lists:usort([O || {_, _, _, O} <- Extensions])],
        [{required_methods, [Name]} || Name <- Asked],
        [{conforms_to, [Class, Name]} || Class <- ['NoSuchClass' | Names], Name <- Asked]
    ]).

call(Function, Ops, Args) -> apply(maps:get(Function, Ops), Args).

%% Orders and generations are each store's own affair, extra keys are harmless: neither is compared.
answer(Function, Args, Ops) -> normal(Function, call(Function, Ops, Args)).

normal(senders_of, Rows) ->
    rows([owner, class_side, method, line, recv_kind, target_module, recv_type], Rows);
normal(references_to, Rows) ->
    rows([owner, class_side, method, line], Rows);
normal(callers_of_native_module, Rows) ->
    %% Sorted by owner and method; the order between the sides of one name is free.
    {[{O, M} || #{owner := O, method := M} <- Rows], rows([owner, class_side, method, line], Rows)};
normal(method_info, #{} = Info) ->
    maps:with([owner, line, source_status, provenance], Info);
normal(Function, Answer) when Function =:= list; Function =:= extensions_by ->
    lists:sort(Answer);
normal(_Function, Answer) ->
    Answer.

rows(Keys, Rows) -> lists:sort([maps:with(Keys, Row) || Row <- Rows]).
