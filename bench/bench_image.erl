%% @doc The images that the benchmark loads, and what it asks about them.
%%
%% A synthetic image has classes of 20 methods with 8 sends each. What is sent, implemented and referenced is
%% skewed as in a real library: a few selectors everywhere, most of them rare. Some keys have exactly ten rows
%% at any size, so that a call's cost can be followed while the image grows around an answer that stays the
%% same. The generator is seeded: the same size is the same image on every run.
-module(bench_image).

-export([synthetic/1, real/0, probes/1]).
-export_type([image/0, class/0]).

-type class() :: {Name :: atom(), Superclass :: atom(), [Entry :: map()]}.
-type image() :: #{
    name := string(),
    classes := [class()],
    extensions := [bench_store:extension()],
    protocols := [map()],
    %% Class and protocol of conformance questions whose requirements are defined four levels up.
    conforming := [{atom(), atom()}],
    %% Classes that need a process.
    started := [atom()]
}.

-define(METHODS, 20).
-define(SENDS, 8).
-define(OWN_METHODS, 12).
-define(TENFOLD, 8).
-define(REAL, "data/stdlib-image.terms").

%% @doc An image of `Count' classes.
-spec synthetic(pos_integer()) -> image().
synthetic(Count) ->
    Seed = rand:seed_s(exsss, {Count, 8, 20}),
    {Classes, _} = lists:mapfoldl(fun(I, Rand) -> class(I, Count, Rand) end, Seed, lists:seq(0, Count - 1)),
    complete(integer_to_list(Count), Classes, []).

%% @doc The image of a real standard library, as recorded in `data/stdlib-image.terms'.
-spec real() -> {ok, image()} | {error, string()}.
real() ->
    case file:consult(?REAL) of
        {ok, Terms} ->
            Classes = [{Name, Super, Entries} || {class, Name, Super, Entries} <- Terms],
            {ok, complete("real", Classes, [Definition || {protocol, _, Definition} <- Terms])};
        {error, Reason} ->
            {error, lists:flatten(io_lib:format("~s: ~s", [?REAL, file:format_error(Reason)]))}
    end.

complete(Name, Classes, Protocols) ->
    {Conforming, Made, Started} = conformance(Classes),
    #{
        name => Name,
        classes => Classes,
        extensions => extensions(Classes),
        protocols => Protocols ++ Made,
        conforming => Conforming,
        started => Started
    }.

class(I, Count, Rand) ->
    Probe = tenfold(I, Count),
    {Common, Rand1} = distinct(?METHODS - ?OWN_METHODS, universe(Count), [], Rand),
    Selectors = [own_selector(I, J, Probe) || J <- lists:seq(1, ?OWN_METHODS)] ++ [message(K) || K <- Common],
    {Entries, Rand2} = lists:mapfoldl(
        fun({J, Selector}, R) -> entry(I, J, Selector, Probe, Count, R) end,
        Rand1,
        lists:zip(lists:seq(1, ?METHODS), Selectors)
    ),
    {{class_name(I), superclass(I), Entries}, Rand2}.

superclass(0) -> none;
superclass(I) -> class_name((I - 1) div 3).

%% The number of the tenfold key that this class carries a row of: ten classes for each number.
tenfold(I, Count) ->
    Stride = max(1, Count div 10),
    case {I rem Stride, I div Stride} of
        {Probe, Nth} when Probe < ?TENFOLD, Nth < 10 -> Probe;
        _ -> none
    end.

own_selector(_I, 1, Probe) when is_integer(Probe) -> name("tenfold~b", [Probe]);
own_selector(I, J, _Probe) -> name("own~bOf~b", [J, I]).

entry(I, J, Selector, Probe, Count, Rand) ->
    Lines = lists:seq(2, ?SENDS + 1),
    {Sends, Rand1} = lists:mapfoldl(fun(Line, R) -> send(I, Line, Count, R) end, Rand, Lines),
    {References, Rand2} = lists:mapfoldl(
        fun(Line, R) ->
            {K, R1} = rank(Count, R),
            {#{class => class_name(K), line => Line}, R1}
        end,
        Rand1,
        [2, 3]
    ),
    Entry = #{
        selector => Selector,
        class_side => J rem 10 =:= 0,
        line => 10 * J,
        sends => Sends,
        references => References,
        source_status => indexed,
        provenance => class_body
    },
    {tenfold_entry(J, Probe, Entry), Rand2}.

tenfold_entry(2, Probe, #{sends := Sends} = Entry) when is_integer(Probe) ->
    Entry#{sends := [(hd(Sends))#{selector := name("sentTenfold~b", [Probe])} | Sends]};
tenfold_entry(3, Probe, #{sends := Sends} = Entry) when is_integer(Probe) ->
    Call = #{
        selector => 'call:', line => 1, recv_kind => erlang_ffi, recv_type => 'ErlangModule',
        target_module => name("tenfold_module_~b", [Probe])
    },
    Entry#{sends := [Call | Sends]};
tenfold_entry(4, Probe, #{references := References} = Entry) when is_integer(Probe) ->
    Entry#{references := [#{class => name("Tenfold~b", [Probe]), line => 1} | References]};
tenfold_entry(_J, _Probe, Entry) ->
    Entry.

send(I, Line, Count, Rand) ->
    {K, Rand1} = rank(universe(Count), Rand),
    {Kind, Rand2} = rand:uniform_s(10, Rand1),
    {C, Rand3} = rank(Count, Rand2),
    Send = #{selector => message(K), line => Line},
    Rest =
        case Kind of
            _ when Kind =< 2 ->
                #{
                    recv_kind => erlang_ffi, recv_type => 'ErlangModule',
                    target_module => name("native_module_~b", [C div 2])
                };
            _ when Kind =< 5 ->
                #{recv_kind => self_recv, recv_type => class_name(I), target_module => undefined};
            6 ->
                #{recv_kind => other, recv_type => dynamic, target_module => undefined};
            _ ->
                #{recv_kind => other, recv_type => class_name(C), target_module => undefined}
        end,
    {maps:merge(Send, Rest), Rand3}.

distinct(0, _Size, Ranks, Rand) ->
    {Ranks, Rand};
distinct(Left, Size, Ranks, Rand) ->
    {K, Rand1} = rank(Size, Rand),
    case lists:member(K, Ranks) of
        true -> distinct(Left, Size, Ranks, Rand1);
        false -> distinct(Left - 1, Size, [K | Ranks], Rand1)
    end.

%% Different selectors in a library grow with it.
universe(Count) -> 5 * Count + 50.

%% A number from 0 to `Size' - 1, the k-th about as likely as 1/(k + 1.5).
rank(Size, Rand) ->
    {U, Rand1} = rand:uniform_s(Rand),
    {min(Size - 1, trunc(1.5 * math:pow((Size + 1.5) / 1.5, U) - 1.5)), Rand1}.

message(K) when K rem 2 =:= 0 -> name("message~b", [K]);
message(K) -> name("message~b:", [K]).

class_name(I) -> name("Class~b", [I]).

name(Format, Args) -> list_to_atom(lists:flatten(io_lib:format(Format, Args))).

%% One extension a class, every other one on its class side.
extensions(Classes) ->
    [
        {
            extended_key(I, Name),
            name("extended~b", [I rem 40]),
            method(I rem 16),
            name("package~b", [I rem 20])
        }
        || {I, {Name, _, _}} <- lists:zip(lists:seq(1, length(Classes)), Classes)
    ].

extended_key(I, Name) when I rem 2 =:= 0 -> Name;
extended_key(_I, Name) -> bench_host:class_tag(Name).

%% Sixteen funs, since copying one counts in the fun's own shared counter.
method(0) -> fun(_Args, Self) -> {0, Self} end;
method(1) -> fun(_Args, Self) -> {1, Self} end;
method(2) -> fun(_Args, Self) -> {2, Self} end;
method(3) -> fun(_Args, Self) -> {3, Self} end;
method(4) -> fun(_Args, Self) -> {4, Self} end;
method(5) -> fun(_Args, Self) -> {5, Self} end;
method(6) -> fun(_Args, Self) -> {6, Self} end;
method(7) -> fun(_Args, Self) -> {7, Self} end;
method(8) -> fun(_Args, Self) -> {8, Self} end;
method(9) -> fun(_Args, Self) -> {9, Self} end;
method(10) -> fun(_Args, Self) -> {10, Self} end;
method(11) -> fun(_Args, Self) -> {11, Self} end;
method(12) -> fun(_Args, Self) -> {12, Self} end;
method(13) -> fun(_Args, Self) -> {13, Self} end;
method(14) -> fun(_Args, Self) -> {14, Self} end;
method(15) -> fun(_Args, Self) -> {15, Self} end.

%% Up to sixteen classes with a protocol of three selectors that are defined four levels above and not nearer.
conformance(Classes) ->
    ByName = maps:from_list([{Name, {Super, instance_side(Entries)}} || {Name, Super, Entries} <- Classes]),
    Found = [
        {Chain, lists:sublist(Selectors, 3)}
        || {Name, _, _} <- Classes,
            [_, _, _, _, Top] = Chain <- [lists:sublist(chain(Name, ByName), 5)],
            Selectors <- [selectors(Top, ByName) -- lists:flatmap(fun(C) -> selectors(C, ByName) end,
                lists:droplast(Chain))],
            length(Selectors) >= 3
    ],
    Chosen = spread(16, Found),
    Numbered = lists:zip(lists:seq(1, length(Chosen)), Chosen),
    {
        [{hd(Chain), name("Protocol~b", [I])} || {I, {Chain, _}} <- Numbered],
        [
            #{
                name => name("Protocol~b", [I]),
                module => name("bench_protocol_~b", [I]),
                required_methods => [#{selector => S, arity => 0} || S <- Selectors],
                required_class_methods => [],
                extending => undefined,
                type_params => [],
                doc => none
            }
            || {I, {_, Selectors}} <- Numbered
        ],
        lists:usort(lists:append([Chain || {Chain, _} <- Chosen]))
    }.

instance_side(Entries) -> [maps:get(selector, E) || E <- Entries, not maps:get(class_side, E, false)].

chain(Name, ByName) ->
    case ByName of
        #{Name := {Super, _}} -> [Name | chain(Super, ByName)];
        _ -> []
    end.

selectors(Name, ByName) ->
    {_Super, Selectors} = maps:get(Name, ByName),
    Selectors.

%% @doc What the measured calls are given: lists of arguments, spread over the image.
-spec probes(image()) -> map().
probes(#{classes := Classes, extensions := Extensions, conforming := Conforming}) ->
    Methods = [
        {Name, maps:get(class_side, Entry, false), maps:get(selector, Entry), Entry}
        || {Name, _, Entries} <- Classes, Entry <- Entries
    ],
    Senders = tally([
        {maps:get(selector, S), maps:remove(selector, S), Name, Side, Selector}
        || {Name, Side, Selector, Entry} <- Methods, S <- maps:get(sends, Entry, [])
    ]),
    References = tally([
        {maps:get(class, R), maps:remove(class, R), Name, Side, Selector}
        || {Name, Side, Selector, Entry} <- Methods, R <- maps:get(references, Entry, [])
    ]),
    Implementors = tally([{Selector, Name, Side} || {Name, Side, Selector, _} <- Methods]),
    Callers = tally([
        {maps:get(target_module, S), Name, Side, Selector}
        || {Name, Side, Selector, Entry} <- Methods, S <- maps:get(sends, Entry, []),
            maps:get(target_module, S, undefined) =/= undefined
    ]),
    Names = [Name || {Name, _, _} <- Classes],
    Unextended = [S || {_, _, S, _} <- spread(256, Methods)],
    #{
        misses => lists:zip(fill(256, spread(256, Names)), fill(256, Unextended)),
        hits => [{Key, Selector} || {Key, Selector, _, _} <- spread(256, Extensions)],
        chains => lists:zip([fours(I, Names) || I <- lists:seq(1, 256)], fill(256, Unextended)),
        extensions => [{K, S, F, O, undefined} || {K, S, F, O} <- spread(64, Extensions)],
        sourced => [
            {K, S, F, O, <<"message0 message1: message2">>}
            || {K, S, F, O} <- spread(64, Extensions)
        ],
        senders => tens(Senders),
        hot_sender => lists:last(lists:keysort(2, Senders)),
        references => tens(References),
        implementors => tens(Implementors),
        callers => tens(Callers),
        methods => [{Name, Side, Selector} || {Name, Side, Selector, _} <- spread(256, Methods)],
        defined => spread(256, lists:usort([{Name, Side} || {Name, Side, _, _} <- Methods])),
        entries => spread(64, Methods),
        patched => [
            {Name, Side, Selector, Form}
            || {Name, Side, Selector, Entry} <- spread(64, Methods), Form <- [moved(Entry), Entry]
        ],
        classes => [{Name, Entries} || {Name, _, Entries} <- spread(64, Classes)],
        redefined => [
            {Name, Form}
            || {Name, _, Entries} <- spread(64, Classes),
                Form <- [[moved(Entry) || Entry <- Entries], Entries]
        ],
        conforming => Conforming
    }.

%% The same method with every row one line further down.
moved(#{line := Line} = Entry) ->
    Down = fun(Row) -> maps:update_with(line, fun(At) -> At + 1 end, Line + 1, Row) end,
    Entry#{
        line := Line + 1,
        sends => [Down(Send) || Send <- maps:get(sends, Entry, [])],
        references => [Down(Reference) || Reference <- maps:get(references, Entry, [])]
    }.

tally(Rows) ->
    Counts = lists:foldl(
        fun(Row, Known) -> maps:update_with(element(1, Row), fun(N) -> N + 1 end, 1, Known) end,
        #{},
        lists:usort(Rows)
    ),
    lists:sort(maps:to_list(Counts)).

%% Keys with exactly ten rows, at most 64; none in an image that has no such key.
tens(Counts) -> spread(64, [Key || {Key, 10} <- Counts]).

fours(I, Names) ->
    Count = length(Names),
    [lists:nth((I * 7 + J * 3) rem Count + 1, Names) || J <- lists:seq(1, 4)].

fill(Length, List) -> lists:sublist(lists:append(lists:duplicate(Length div length(List) + 1, List)), Length).

%% At most `Most' of the list, evenly spread over it.
spread(Most, List) ->
    case length(List) of
        Length when Length =< Most ->
            List;
        Length ->
            Array = list_to_tuple(List),
            [element(I * Length div Most + 1, Array) || I <- lists:seq(0, Most - 1)]
    end.
