%% @doc Which plots are made from raw rounds.
-module(bench_plots).

-export([all/1]).

%% @doc File names and pictures.
-spec all(bench_table:raw()) -> [{string(), binary()}].
all(Raw) ->
    Plots = [
        {"reads.svg", "Reads: cost of a call against classes in the image",
            [lookup_miss, lookup_hit, chain_miss, senders, references, implementors, method_info, defined,
                callers, remembered, anew]},
        {"writes.svg", "Writes and memory against classes in the image",
            [register, put_method, purge_method, purge_class, register_class, same_class, load, memory]}
    ],
    [{Name, bench_svg:panels(Title, legend(), panels(Ids, Raw))} || {Name, Title, Ids} <- Plots] ++
        [{"ratios.svg", ratios(Raw)}].

legend() -> [{Store, bench_store:title(Store)} || Store <- bench_store:stores()].

panels(Ids, Raw) ->
    Sizes = [Size || Size <- bench_table:sizes(Raw), Size =/= <<"real">>],
    [
        {title(Id, Label), Unit, Series}
        || Id <- Ids,
            #{label := Label, unit := Unit} <- [bench_rows:row(Id)],
            Series <- [[{Store, points(Id, Store, Sizes, Raw)} || Store <- bench_store:stores()]],
            lists:any(fun({_, Points}) -> Points =/= [] end, Series)
    ].

points(Id, Store, Sizes, Raw) ->
    [
        {binary_to_integer(Size), Value}
        || Size <- Sizes, Value <- [bench_table:value(Id, Store, Size, Raw)], is_float(Value)
    ].

ratios(Raw) ->
    Size = middle([Size || Size <- bench_table:sizes(Raw), Size =/= <<"real">>]),
    Bars = [
        {plain(Label), [{Style, Ratio} || {Style, {ok, Ratio}} <- Of]}
        || #{id := Id, label := Label} <- bench_rows:all(),
            Of <- [[{Style, known(bench_table:ratio(Id, Baseline, Size, Raw))}
                || {Style, Baseline} <- [{original, original}, {keyed_hash, keyed}]]],
            lists:any(fun({_, Found}) -> Found =/= none end, Of)
    ],
    bench_svg:bars(
        ["How many times faster, or smaller, at ", binary_to_list(Size), " classes"],
        [{original, "than original-shaped ETS"}, {keyed_hash, "than keyed ETS, the better layout"}],
        Bars
    ).

middle(Sizes) -> lists:nth((length(Sizes) + 1) div 2, Sizes).

known(undefined) -> none;
known(Ratio) -> {ok, Ratio}.

%% A panel is narrower than some labels.
title(register_class, _Label) -> "register_class/2, all changed";
title(same_class, _Label) -> "register_class/2, unchanged";
title(chain_miss, _Label) -> "look-up, four levels missing";
title(anew, _Label) -> "conforms_to/2 asked anew";
title(load, _Label) -> "loading the index, per class";
title(_Id, Label) -> plain(Label).

plain(Label) -> [Char || Char <- Label, Char =/= $`].
