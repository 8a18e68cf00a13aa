%% @doc What is measured: one row for each call of the budget, how it is run, and what the budget asks of it.
-module(bench_rows).

-export([all/0, calls/0, row/1, pool/2, measure/4]).
-export_type([row/0, id/0, demand/0]).

-type id() :: atom().
-type demand() ::
    %% The product is at least so many times faster (smaller) than a baseline; 1 means no slower.
    {times, original | keyed, number()}
    %% Costs the same at every size.
    | flat
    %% Costs at most so many times what another row costs.
    | {of_row, id(), number()}.
-type row() :: #{
    id := id(),
    label := string(),
    unit := ns | bytes,
    %% What one value is for: a call, a class of the image, or a row of the answer.
    per := call | class | row,
    run := run(),
    budget := [demand()],
    %% The budget in words.
    asks := string()
}.
-type run() ::
    load
    | memory
    %% Calls an operation with each of the probes in turn; `sync' waits at the end for work left behind.
    | {cycle, Operation :: atom(), Probes :: atom()}
    | {cycle_sync, Operation :: atom(), Probes :: atom(), Restore :: atom()}
    %% The same after one unmeasured turn.
    | {warm, Operation :: atom(), Probes :: atom()}
    %% The same from two processes at once.
    | {two, Operation :: atom(), Probes :: atom()}
    %% Writes probes that come in twos, one form and another of the same thing, so that every write changes
    %% something.
    | {pairs, Operation :: atom(), Probes :: atom()}
    %% Takes probes away, then puts them back unmeasured.
    | {consume, Operation :: atom(), Probes :: atom(), Restore :: atom()}.

%% @doc Every row, in the order of the table.
-spec all() -> [row()].
all() ->
    [
        row(lookup_miss, "extension look-up, miss", {cycle, lookup, misses},
            [{times, original, 4}, {times, keyed, 4}], "4 times faster than both"),
        row(lookup_hit, "extension look-up, hit", {cycle, lookup, hits},
            [{times, original, 2.5}, {times, keyed, 2.5}], "2.5 times faster than both"),
        row(chain_miss, "extension look-up, four levels missing", {cycle, lookup_chain, chains},
            [{times, original, 8}, {times, keyed, 8}], "8 times faster than both"),
        row(two_misses, "two callers at once, miss", {two, lookup, misses},
            [{of_row, lookup_miss, 1.25}], "as one caller"),
        row(two_hits, "two callers at once, hit", {two, lookup, hits},
            [{of_row, lookup_hit, 1.5}], "at most 1.5 times one caller"),
        row(register, "`register/5` with a live index", {cycle, register, extensions},
            [flat, {times, keyed, 1}], "flat; no slower than keyed"),
        row(register_sourced, "the same with a source, until its sends are indexed",
            {cycle_sync, register, sourced, register}, [flat], "flat"),
        (row(load, "loading the whole index, per class", load,
            [flat, {times, keyed, 1}], "linear; no slower than keyed"))#{per := class},
        row(senders, "`senders_of/1`, 10 rows", {cycle, senders_of, senders},
            [flat, {times, keyed, 1}], "flat; no slower than keyed"),
        (row(hot_senders, "`senders_of/1`, the most sent selector, per row", {cycle, senders_of, hot_sender},
            [{times, keyed, 1}], "no slower than keyed"))#{per := row},
        row(references, "`references_to/1`, 10 rows", {cycle, references_to, references},
            [flat, {times, keyed, 1}], "flat; no slower than keyed"),
        row(implementors, "`implementors_of/1`, 10 rows", {cycle, implementors_of, implementors},
            [flat, {times, keyed, 1}], "flat; faster than keyed"),
        row(method_info, "`method_info/3`", {cycle, method_info, methods},
            [flat, {times, keyed, 1}], "flat; faster than keyed"),
        row(defined, "`defined_selectors/2`", {cycle, defined_selectors, defined},
            [flat, {times, keyed, 1}], "flat; faster than keyed"),
        row(put_method, "`put_method/4`", {pairs, put_method, patched},
            [flat, {times, keyed, 1}], "flat; no slower than keyed"),
        row(purge_method, "`purge_method/3`", {consume, purge_method, entries, put_method},
            [flat, {times, keyed, 1}], "flat; no slower than keyed"),
        row(purge_class, "`purge_class/1`", {consume, purge_class, classes, register_class},
            [flat, {times, keyed, 1}], "flat; no slower than keyed"),
        row(register_class, "`register_class/2` again, every method changed",
            {pairs, register_class, redefined},
            [flat, {times, keyed, 1}], "flat; no slower than keyed"),
        row(same_class, "`register_class/2` again, nothing changed",
            {cycle_sync, register_class, classes, none},
            [flat, {times, keyed, 1}], "flat; no slower than keyed"),
        row(callers, "`callers_of_native_module/1`, 10 rows", {cycle, callers_of_native_module, callers},
            [flat, {times, keyed, 1}], "by its rows; no slower than keyed"),
        (row(memory, "memory of the index, per class", memory,
            [{times, original, 4}, {times, keyed, 2}], "a quarter of original-shaped, half of keyed"))#{
                unit := bytes, per := class
            },
        row(remembered, "`conforms_to/2`, remembered", {warm, conforms_to, conforming},
            [{times, original, 10}], "10 times faster than original-shaped"),
        row(anew, "`conforms_to/2` asked anew, 3 selectors 4 levels up", {cycle, conforms_anew, conforming},
            [{times, original, 20}], "20 times faster than original-shaped")
    ].

row(Id, Label, Run, Budget, Asks) ->
    #{id => Id, label => Label, unit => ns, per => call, run => Run, budget => Budget, asks => Asks}.

%% @doc The rows that are measured on a loaded store, call by call.
-spec calls() -> [row()].
calls() -> [Row || #{run := Run} = Row <- all(), is_tuple(Run)].

%% @doc One row.
-spec row(id()) -> row().
row(Id) ->
    [Row] = [Row || #{id := Known} = Row <- all(), Known =:= Id],
    Row.

%% @doc The arguments a row is called with, out of {@link bench_image:probes/1}; empty if the image has none.
-spec pool(row(), map()) -> list().
pool(#{run := Run}, Probes) ->
    case maps:get(element(3, Run), Probes) of
        Pool when is_list(Pool) -> Pool;
        {Selector, _Rows} -> [Selector]
    end.

%% @doc Runs a row `Count' times and answers the nanoseconds of all of it. Where probes come in twos it does
%% an even number, and a consuming row at most as many as it has probes: how many it did is answered too.
-spec measure(row(), bench_store:ops(), list(), pos_integer()) ->
    {Nanoseconds :: number(), Done :: pos_integer()}.
measure(#{run := {cycle, Operation, _}}, Ops, Pool, Count) ->
    {timed(fun() -> cycle(operation(Operation, Ops), Pool, Count) end), Count};
measure(#{run := {warm, Operation, _}}, Ops, Pool, Count) ->
    Fun = operation(Operation, Ops),
    cycle(Fun, Pool, length(Pool)),
    {timed(fun() -> cycle(Fun, Pool, Count) end), Count};
measure(#{run := {cycle_sync, Operation, _, Restore}}, #{sync := Sync} = Ops, Pool, Count) ->
    Time = timed(fun() ->
        cycle(operation(Operation, Ops), Pool, Count),
        Sync()
    end),
    restore(Restore, Ops, Pool),
    {Time, Count};
measure(#{run := {pairs, Operation, _}} = Row, Ops, Pool, Count) ->
    measure(Row#{run := {cycle_sync, Operation, none, none}}, Ops, Pool, Count + Count rem 2);
measure(#{run := {two, Operation, _}}, Ops, Pool, Count) ->
    {together(operation(Operation, Ops), [Pool, lists:reverse(Pool)], Count), Count};
measure(#{run := {consume, Operation, _, Restore}}, #{sync := Sync} = Ops, Pool, Count) ->
    Taken = lists:sublist(Pool, Count),
    Done = length(Taken),
    Keys = [key(Operation, Probe) || Probe <- Taken],
    Time = timed(fun() ->
        cycle(operation(Operation, Ops), Keys, Done),
        Sync()
    end),
    restore(Restore, Ops, Taken),
    {Time, Done}.

operation(conforms_anew, #{conforms_to := Ask, invalidate := Forget}) ->
    fun(Class, Protocol) ->
        ok = Forget(),
        Ask(Class, Protocol)
    end;
operation(Operation, Ops) ->
    maps:get(Operation, Ops).

key(purge_method, {Class, Side, Selector, _Entry}) -> {Class, Side, Selector};
key(purge_class, {Class, _Entries}) -> Class.

restore(none, _Ops, _Pool) ->
    ok;
restore(register, #{register := Register, sync := Sync}, Pool) ->
    [ok = Register(C, S, F, O, undefined) || {C, S, F, O, _Source} <- Pool],
    Sync();
restore(put_method, #{put_method := Put, sync := Sync}, Pool) ->
    [ok = Put(C, Side, S, E) || {C, Side, S, E} <- Pool],
    Sync();
restore(register_class, #{register_class := Register, sync := Sync}, Pool) ->
    [ok = Register(C, Es) || {C, Es} <- Pool],
    Sync().

timed(Fun) ->
    Start = erlang:monotonic_time(nanosecond),
    _ = Fun(),
    erlang:monotonic_time(nanosecond) - Start.

%% Two processes that start together, from the first start to the last end: had they waited for each other, or
%% not run at the same time at all, it would show.
together(Fun, Pools, Count) ->
    Parent = self(),
    Ready = atomics:new(1, []),
    Pids = [
        %% Each on a scheduler of its own: the VM leaves two young processes on the one that made them for longer than a slice.
        spawn_opt(fun() ->
            ok = atomics:add(Ready, 1, 1),
            await(Ready, length(Pools)),
            Start = erlang:monotonic_time(nanosecond),
            cycle(Fun, Pool, Count),
            Parent ! {self(), Start, erlang:monotonic_time(nanosecond)}
        end, [link, {scheduler, Scheduler}])
        || {Scheduler, Pool} <- lists:zip(lists:seq(1, length(Pools)), Pools)
    ],
    Spans = [receive {Pid, Start, End} -> {Start, End} end || Pid <- Pids],
    {Starts, Ends} = lists:unzip(Spans),
    lists:max(Ends) - lists:min(Starts).

await(Ready, Wanted) ->
    case atomics:get(Ready, 1) of
        Wanted -> ok;
        _ -> await(Ready, Wanted)
    end.

cycle(Fun, Pool, Count) ->
    case hd(Pool) of
        Args when tuple_size(Args) =:= 2 -> cycle2(Fun, Pool, Pool, Count);
        Args when tuple_size(Args) =:= 3 -> cycle3(Fun, Pool, Pool, Count);
        Args when tuple_size(Args) =:= 4 -> cycle4(Fun, Pool, Pool, Count);
        Args when tuple_size(Args) =:= 5 -> cycle5(Fun, Pool, Pool, Count);
        _ -> cycle1(Fun, Pool, Pool, Count)
    end.

cycle1(_Fun, _All, _Left, 0) -> ok;
cycle1(Fun, All, [], N) -> cycle1(Fun, All, All, N);
cycle1(Fun, All, [A | Left], N) -> _ = Fun(A), cycle1(Fun, All, Left, N - 1).

cycle2(_Fun, _All, _Left, 0) -> ok;
cycle2(Fun, All, [], N) -> cycle2(Fun, All, All, N);
cycle2(Fun, All, [{A, B} | Left], N) -> _ = Fun(A, B), cycle2(Fun, All, Left, N - 1).

cycle3(_Fun, _All, _Left, 0) -> ok;
cycle3(Fun, All, [], N) -> cycle3(Fun, All, All, N);
cycle3(Fun, All, [{A, B, C} | Left], N) -> _ = Fun(A, B, C), cycle3(Fun, All, Left, N - 1).

cycle4(_Fun, _All, _Left, 0) -> ok;
cycle4(Fun, All, [], N) -> cycle4(Fun, All, All, N);
cycle4(Fun, All, [{A, B, C, D} | Left], N) -> _ = Fun(A, B, C, D), cycle4(Fun, All, Left, N - 1).

cycle5(_Fun, _All, _Left, 0) -> ok;
cycle5(Fun, All, [], N) -> cycle5(Fun, All, All, N);
cycle5(Fun, All, [{A, B, C, D, E} | Left], N) -> _ = Fun(A, B, C, D, E), cycle5(Fun, All, Left, N - 1).
