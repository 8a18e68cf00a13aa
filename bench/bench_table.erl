%% @doc From raw rounds to tables. The same rounds always make the same text.
-module(bench_table).

-export([parse/1, release/1, compact/1, full/1]).
-export([sizes/1, value/4, keyed/3, ratio/4]).
-export_type([raw/0]).

-type raw() :: #{
    environment := #{binary() => binary()},
    sizes := [binary()],
    values := #{{Size :: binary(), bench_rows:id(), bench_store:id()} => [float()]},
    notes := #{{Size :: binary(), bench_rows:id(), bench_store:id()} => binary()}
}.

%% What counts as the same. Sizes grow 46 times from the smallest synthetic image to the largest, and caches
%% with them; medians of one run differ by some per cent.
-define(FLAT, 2.0).
-define(NOISE, 0.95).

%% @doc Reads raw rounds.
-spec parse(binary()) -> raw().
parse(Text) ->
    Lines = binary:split(Text, <<"\n">>, [global, trim_all]),
    {Comments, [_Header | Rows]} = lists:splitwith(fun(Line) -> binary:first(Line) =:= $# end, Lines),
    %% Their modules hold the names that the rounds may have.
    _ = {bench_rows:all(), bench_store:stores()},
    lists:foldl(
        fun(Row, Raw) -> row(binary:split(Row, <<",">>, [global]), Raw) end,
        #{
            environment => maps:from_list([pair(Comment) || Comment <- Comments]),
            sizes => [],
            values => #{},
            notes => #{}
        },
        Rows
    ).

pair(<<"# ", Comment/binary>>) ->
    [Key, Value] = binary:split(Comment, <<": ">>),
    {Key, Value}.

row([Size, Row, Store, _Round, Value, Note], #{sizes := Sizes, values := Values, notes := Notes} = Raw) ->
    Key = {Size, binary_to_existing_atom(Row), binary_to_existing_atom(Store)},
    Known = Raw#{sizes := [S || S <- Sizes, S =/= Size] ++ [Size]},
    case Value of
        <<>> -> Known#{notes := Notes#{Key => Note}};
        _ -> Known#{values := Values#{Key => [binary_to_float(Value) | maps:get(Key, Values, [])]}}
    end.

%% @doc The OTP release that the rounds were run on.
-spec release(raw()) -> integer().
release(#{environment := #{<<"otp">> := Release}}) -> binary_to_integer(Release).

%% @doc The sizes measured, smallest first, a real image last.
-spec sizes(raw()) -> [binary()].
sizes(#{sizes := Sizes}) -> lists:sort(fun(A, B) -> classes(A) =< classes(B) end, Sizes).

classes(<<"real">>) -> infinity;
classes(Size) -> binary_to_integer(Size).

%% @doc The median of a store's rounds.
-spec value(bench_rows:id(), bench_store:id() | keyed, binary(), raw()) -> float() | undefined.
value(Row, keyed, Size, Raw) ->
    {Value, _Layout} = keyed(Row, Size, Raw),
    Value;
value(Row, Store, Size, #{values := Values}) ->
    case Values of
        #{{Size, Row, Store} := Rounds} -> median(Rounds);
        _ -> undefined
    end.

%% @doc The better of the two keyed layouts, and which it is.
-spec keyed(bench_rows:id(), binary(), raw()) -> {float() | undefined, bench_store:id()}.
keyed(Row, Size, Raw) ->
    %% A number is less than an atom, so a layout that was not measured never wins.
    lists:min([{value(Row, Layout, Size, Raw), Layout} || Layout <- [keyed_hash, keyed_ordered]]).

median(Values) ->
    Sorted = lists:sort(Values),
    Length = length(Sorted),
    (lists:nth((Length + 1) div 2, Sorted) + lists:nth(Length div 2 + 1, Sorted)) / 2.

%% @doc How many times the product is faster or smaller than a baseline.
-spec ratio(bench_rows:id(), original | keyed, binary(), raw()) -> float() | undefined.
ratio(Row, Baseline, Size, Raw) ->
    case {value(Row, Baseline, Size, Raw), value(Row, nif, Size, Raw)} of
        {Theirs, Ours} when is_float(Theirs), is_float(Ours) -> Theirs / Ours;
        _ -> undefined
    end.

%% @doc One line a call: the product's medians at each size, how many times faster it is than either baseline,
%% and what the budget asks; where it loses is said beneath.
-spec compact(raw()) -> binary().
compact(Raw) ->
    Sizes = sizes(Raw),
    Rows = [Row || #{id := Id} = Row <- bench_rows:all(), Size <- [hd(Sizes)], is_measured(Id, Size, Raw)],
    unicode:characters_to_binary([
        "Medians at ", over(Sizes), " classes (", environment(Raw), "). ",
        "*Original* and *keyed* say how many times faster, or smaller, this is than the original-shaped ",
        "and the keyed ETS baseline; for keyed, the better of two layouts at each size. ",
        "Below 1 it loses.\n\n",
        "| call | this | original | keyed | budget | |\n|---|---|---|---|---|---|\n",
        [compact_row(Row, Sizes, Raw) || Row <- Rows],
        "\n",
        losses(Rows, Sizes, Raw),
        "\nTaken as *flat*: at most ", number(?FLAT), " times dearer at the largest synthetic image than at ",
        "the smallest; as *no slower* and *as fast*: within ", integer_to_list(round((1 - ?NOISE) * 100)),
        " per cent.\n"
    ]).

is_measured(Id, Size, #{values := Values, notes := Notes}) ->
    Key = {Size, Id, nif},
    is_map_key(Key, Values) orelse is_map_key(Key, Notes).

environment(#{environment := Environment}) ->
    #{
        <<"otp">> := Otp, <<"rounds">> := Rounds, <<"processor">> := Processor,
        <<"schedulers">> := Schedulers, <<"library">> := Library
    } = Environment,
    ["OTP ", Otp, ", ", Processor, ", ", Schedulers, " schedulers, ", Library, " build, ", Rounds, " rounds"].

compact_row(#{id := Id, label := Label, unit := Unit, asks := Asks} = Row, Sizes, Raw) ->
    [
        "| ", Label,
        " | ", values([value(Id, nif, Size, Raw) || Size <- Sizes], Unit),
        " | ", ratios(Id, original, Sizes, Raw),
        " | ", ratios(Id, keyed, Sizes, Raw),
        " | ", Asks,
        " | ", verdict(Row, Sizes, Raw), " |\n"
    ].

ratios(Id, Baseline, Sizes, Raw) ->
    lists:join(" / ", [emphasised(ratio(Id, Baseline, Size, Raw)) || Size <- Sizes]).

emphasised(undefined) -> "–";
emphasised(Ratio) when Ratio < ?NOISE -> ["**", number(Ratio), "**"];
emphasised(Ratio) -> number(Ratio).

verdict(#{id := Id, budget := Budget}, Sizes, Raw) ->
    case lists:flatmap(fun(Demand) -> missed(Demand, Id, Sizes, Raw) end, Budget) of
        [] -> "met";
        Missed -> ["**missed**: ", lists:join("; ", Missed)]
    end.

missed({times, Baseline, Times}, Id, Sizes, Raw) ->
    Short = [
        Size
        || Size <- Sizes, Ratio <- [ratio(Id, Baseline, Size, Raw)], is_float(Ratio), Ratio < Times * ?NOISE
    ],
    case Short of
        [] -> [];
        _ -> [[atom_to_list(Baseline), " at ", over(Short)]]
    end;
missed(flat, Id, Sizes, Raw) ->
    Costs = [Cost || Size <- Sizes, Size =/= <<"real">>, Cost <- [value(Id, nif, Size, Raw)], is_float(Cost)],
    case Costs of
        [Smallest, _ | _] ->
            case lists:last(Costs) / Smallest of
                Growth when Growth > ?FLAT -> [["grows ", number(Growth), " times"]];
                _ -> []
            end;
        _ ->
            []
    end;
missed({of_row, Other, Times}, Id, Sizes, Raw) ->
    Over = [
        [number(Mine / Theirs), " at ", classes_of(Size)]
        || Size <- Sizes, Mine <- [value(Id, nif, Size, Raw)], Theirs <- [value(Other, nif, Size, Raw)],
            is_float(Mine), is_float(Theirs), Mine > Times * Theirs
    ],
    case Over of
        [] -> [];
        _ -> [lists:join(", ", Over)]
    end.

losses(Rows, Sizes, Raw) ->
    All = [lost_to(Baseline, Rows, Sizes, Raw) || Baseline <- [original, keyed]],
    case [Lost || Lost <- All, Lost =/= []] of
        [] -> "It loses to neither baseline in this run.\n";
        Lost -> lists:join("\n", Lost)
    end.

lost_to(Baseline, Rows, Sizes, Raw) ->
    Lost = [
        [Label, " (", number(Worst), " at ", classes_of(At), ")"]
        || #{id := Id, label := Label} <- Rows,
            Ratios <- [
                [{Ratio, Size} || Size <- Sizes, Ratio <- [ratio(Id, Baseline, Size, Raw)], is_float(Ratio)]
            ],
            Ratios =/= [],
            {Worst, At} <- [lists:min(Ratios)],
            Worst < ?NOISE
    ],
    case Lost of
        [] -> [];
        _ -> ["Where it loses to ", baseline(Baseline), ", at worst: ", lists:join("; ", Lost), ".\n"]
    end.

baseline(original) -> "original-shaped ETS";
baseline(keyed) -> "keyed ETS".

%% @doc Everything: for each release measured the compact table, then median, smallest and largest round of
%% every store at every size.
-spec full([raw()]) -> binary().
full(Raws) ->
    unicode:characters_to_binary([
        "# Figures\n\nMade by `bench/run.sh render` from the raw rounds beside this file.\n",
        [
            ["\n## OTP ", integer_to_list(release(Raw)), "\n\n", compact(Raw), detail(Raw)]
            || Raw <- lists:reverse(Raws)
        ]
    ]).

detail(Raw) ->
    Stores = bench_store:stores(),
    [
        [
            "\n### ", title(Size), "\n\nMedian (smallest – largest round).\n\n",
            "| call |", [[" ", bench_store:title(Store), " |"] || Store <- Stores],
            "\n|---|", ["---|" || _ <- Stores], "\n",
            [
                [
                    "| ", Label, " |",
                    [[" ", spread(Id, Store, Size, Unit, Raw), " |"] || Store <- Stores],
                    "\n"
                ]
                || #{id := Id, label := Label, unit := Unit} <- bench_rows:all()
            ],
            unmeasured(Size, Raw)
        ]
        || Size <- sizes(Raw)
    ].

title(<<"real">>) -> "The real image";
title(Size) -> [classes_of(Size), " classes"].

spread(Id, Store, Size, Unit, #{values := Values}) ->
    case Values of
        #{{Size, Id, Store} := Rounds} ->
            [
                values([median(Rounds)], Unit),
                case Rounds of
                    [_] -> "";
                    _ -> [" (", values([lists:min(Rounds)], Unit), " – ",
                        values([lists:max(Rounds)], Unit), ")"]
                end
            ];
        _ ->
            "n/a"
    end.

%% Why something is missing: one sentence a reason.
unmeasured(Size, #{notes := Notes}) ->
    Known = [{Note, {Id, Store}} || {{S, Id, Store}, Note} <- maps:to_list(Notes), S =:= Size],
    [
        ["\nn/a: ", whom(lists:usort(proplists:get_all_values(Note, Known))), ": ", Note, ".\n"]
        || Note <- lists:usort([Note || {Note, _} <- Known])
    ].

%% A row that no store has, or a store that has no row; else the pairs.
whom(Missing) ->
    Rows = lists:usort([Id || {Id, _} <- Missing]),
    Stores = lists:usort([Store || {_, Store} <- Missing]),
    case {length(Stores) =:= length(bench_store:stores()), length(Rows) =:= length(bench_rows:all())} of
        {true, _} -> lists:join(", ", [label(Id) || Id <- Rows]);
        {false, true} -> lists:join(", ", [bench_store:title(Store) || Store <- Stores]);
        {false, false} ->
            lists:join(", ", [[label(Id), " of ", bench_store:title(Store)] || {Id, Store} <- Missing])
    end.

label(Id) ->
    #{label := Label} = bench_rows:row(Id),
    Label.

over(Sizes) -> lists:join(" / ", [classes_of(Size) || Size <- Sizes]).

classes_of(<<"real">>) -> "real";
classes_of(Size) -> thousands(binary_to_list(Size)).

%% Values side by side share the unit in which the smallest is at least one.
values(Values, Unit) ->
    case [Value || Value <- Values, is_float(Value)] of
        [] ->
            "–";
        Known ->
            {Divisor, Name} = unit(lists:min(Known), Unit),
            [lists:join(" / ", [scaled(Value, Divisor) || Value <- Values]), " ", Name]
    end.

scaled(undefined, _Divisor) -> "–";
scaled(Value, Divisor) -> number(Value / Divisor).

unit(Value, ns) when Value < 1.0e3 -> {1, "ns"};
unit(Value, ns) when Value < 1.0e6 -> {1.0e3, "µs"};
unit(Value, ns) when Value < 1.0e9 -> {1.0e6, "ms"};
unit(_Value, ns) -> {1.0e9, "s"};
unit(Value, bytes) when Value < 10_000 -> {1, "B"};
unit(_Value, bytes) -> {1.0e3, "kB"}.

number(Value) when Value < 0.995 -> float_to_list(Value, [{decimals, 2}]);
number(Value) when Value < 9.95 -> float_to_list(Value / 1, [{decimals, 1}]);
number(Value) -> thousands(integer_to_list(round(Value))).

thousands(Digits) ->
    {Head, Tail} = lists:split((length(Digits) - 1) rem 3 + 1, Digits),
    Head ++ groups(Tail).

groups([A, B, C | Rest]) -> [$,, A, B, C | groups(Rest)];
groups([]) -> [].
