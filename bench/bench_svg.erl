%% @doc A small SVG writer: panels of lines on logarithmic axes, and bars around one.
%%
%% A picture brings its own background and follows the reader's colour scheme. Stores differ by colour, dash
%% and marker, so none of them has to be told by colour alone. The same data always make the same bytes.
-module(bench_svg).

-export([panels/3, bars/3]).
-export_type([series/0, panel/0, bar/0]).

-type style() :: original | keyed_hash | keyed_ordered | nif.
-type series() :: {style(), [{X :: number(), Y :: number()}]}.
-type panel() :: {Title :: unicode:chardata(), Unit :: ns | bytes, [series()]}.
-type bar() :: {Label :: unicode:chardata(), [{style(), Ratio :: number()}]}.

-define(WIDTH, 900).
-define(COLUMNS, 3).
-define(PANEL_W, 290).
-define(PANEL_H, 220).
-define(TOP, 70).

%% @doc Small multiples: one panel a call, cost against classes.
-spec panels(unicode:chardata(), [{style(), string()}], [panel()]) -> binary().
panels(Title, Legend, Panels) ->
    Rows = (length(Panels) + ?COLUMNS - 1) div ?COLUMNS,
    Height = ?TOP + Rows * ?PANEL_H + 20,
    Placed = lists:zip(lists:seq(0, length(Panels) - 1), Panels),
    picture(Title, Legend, Height, [
        panel(15 + (I rem ?COLUMNS) * ?PANEL_W, ?TOP + (I div ?COLUMNS) * ?PANEL_H, Panel)
        || {I, Panel} <- Placed
    ]).

panel(Left, Top, {Title, Unit, Series}) ->
    {X0, X1} = {Left + 48, Left + ?PANEL_W - 12},
    {Y0, Y1} = {Top + ?PANEL_H - 34, Top + 24},
    Xs = lists:usort([X || {_, Points} <- Series, {X, _} <- Points]),
    Ys = [Y || {_, Points} <- Series, {_, Y} <- Points],
    {Low, High} = decades(lists:min(Ys), lists:max(Ys)),
    X = scale(log10(hd(Xs)), log10(lists:last(Xs)), X0 + 8, X1 - 8),
    Y = scale(Low, High, Y0, Y1),
    [
        text(Left + 8, Top + 12, "start", "panel", Title),
        [
            [
                line(X0, Y(Exponent), X1, Y(Exponent), "grid"),
                text(X0 - 6, Y(Exponent) + 4, "end", "tick", quantity(Exponent, Unit))
            ]
            || Exponent <- lists:seq(Low, High)
        ],
        [text(X(log10(At)), Y0 + 16, "middle", "tick", count(At)) || At <- Xs],
        [
            [
                case Points of
                    [_, _ | _] ->
                        Path = path([{X(log10(A)), Y(log10(B))} || {A, B} <- Points]),
                        ["<polyline class=\"", class(Style), "\" points=\"", Path, "\"/>\n"];
                    _ ->
                        []
                end,
                [marker(Style, X(log10(A)), Y(log10(B))) || {A, B} <- Points]
            ]
            || {Style, Points} <- Series
        ]
    ].

%% @doc Bars on a logarithmic axis that start at one: to the right the product is faster, to the left slower.
-spec bars(unicode:chardata(), [{style(), string()}], [bar()]) -> binary().
bars(Title, Legend, Bars) ->
    Each = 38,
    Height = ?TOP + length(Bars) * Each + 40,
    {X0, X1} = {330, ?WIDTH - 60},
    Ratios = [Ratio || {_, Of} <- Bars, {_, Ratio} <- Of],
    {Low, High} = decades(min(0.5, lists:min(Ratios)), max(10, lists:max(Ratios))),
    X = scale(Low, High, X0, X1),
    Bottom = Height - 36,
    picture(Title, Legend, Height, [
        [
            [
                line(X(Exponent), ?TOP - 6, X(Exponent), Bottom, rule(Exponent)),
                text(X(Exponent), Bottom + 16, "middle", "tick", times(Exponent))
            ]
            || Exponent <- lists:seq(Low, High)
        ],
        [
            [
                text(X0 - 12, ?TOP + I * Each + 20, "end", "label", Label),
                [
                    bar(Style, X(0), X(log10(Ratio)), ?TOP + I * Each + 4 + J * 14, Ratio)
                    || {J, {Style, Ratio}} <- lists:zip(lists:seq(0, length(Of) - 1), Of)
                ]
            ]
            || {I, {Label, Of}} <- lists:zip(lists:seq(0, length(Bars) - 1), Bars)
        ]
    ]).

rule(0) -> "axis";
rule(_Exponent) -> "grid".

bar(Style, One, At, Top, Ratio) ->
    {Left, Width} = {min(One, At), max(1.0, abs(At - One))},
    {TextX, Anchor} = case At < One of
        true -> {At - 4, "end"};
        false -> {At + 4, "start"}
    end,
    [
        io_lib:format("<rect class=\"fill ~s\" x=\"~s\" y=\"~b\" width=\"~s\" height=\"12\"/>~n",
            [class(Style), fixed(Left), Top, fixed(Width)]),
        text(TextX, Top + 10, Anchor, "tick", short(Ratio))
    ].

picture(Title, Legend, Height, Content) ->
    unicode:characters_to_binary([
        io_lib:format(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ~b ~b\" "
            "width=\"~b\" height=\"~b\" role=\"img\">~n",
            [?WIDTH, Height, ?WIDTH, Height]
        ),
        "<title>", escape(Title), "</title>\n", style(),
        io_lib:format("<rect class=\"paper\" width=\"~b\" height=\"~b\"/>~n", [?WIDTH, Height]),
        text(15, 26, "start", "title", Title),
        legend(Legend),
        Content,
        "</svg>\n"
    ]).

legend(Legend) ->
    Width = (?WIDTH - 30) div max(1, length(Legend)),
    [
        [
            io_lib:format("<polyline class=\"~s\" points=\"~b,46 ~b,46\"/>~n",
                [class(Style), 15 + I * Width, 45 + I * Width]),
            marker(Style, 30.0 + I * Width, 46.0),
            text(52 + I * Width, 50, "start", "label", Label)
        ]
        || {I, {Style, Label}} <- lists:zip(lists:seq(0, length(Legend) - 1), Legend)
    ].

style() ->
    "<style>\n"
    "text{font-family:system-ui,sans-serif;fill:#24292f}\n"
    ".title{font-size:16px;font-weight:600}.panel{font-size:13px;font-weight:600}.label{font-size:12px}"
    ".tick{font-size:11px}\n"
    ".paper{fill:#ffffff}.grid{stroke:#d8dee4}.axis{stroke:#57606a;stroke-width:1.5}\n"
    "polyline{fill:none;stroke-width:2}\n"
    ".o{stroke:#b5500b;stroke-dasharray:2 3}.h{stroke:#0b6bb5;stroke-dasharray:7 3}"
    ".s{stroke:#7a4bb0;stroke-dasharray:7 3 2 3}.n{stroke:#0a7d55;stroke-width:2.5}\n"
    ".m{stroke-dasharray:none;stroke-width:1.5}.o.m,.o.fill{fill:#b5500b}.h.m,.h.fill{fill:#0b6bb5}"
    ".s.m,.s.fill{fill:#7a4bb0}.n.m,.n.fill{fill:#0a7d55}.fill{stroke:none}\n"
    "@media (prefers-color-scheme:dark){text{fill:#e6edf3}.paper{fill:#0d1117}.grid{stroke:#30363d}"
    ".axis{stroke:#9da7b3}\n"
    ".o{stroke:#f0883e}.h{stroke:#58a6ff}.s{stroke:#c297ff}.n{stroke:#3fd68f}\n"
    ".o.m,.o.fill{fill:#f0883e}.h.m,.h.fill{fill:#58a6ff}.s.m,.s.fill{fill:#c297ff}.n.m,.n.fill{fill:#3fd68f}"
    ".fill{stroke:none}}\n"
    "</style>\n".

class(original) -> "o";
class(keyed_hash) -> "h";
class(keyed_ordered) -> "s";
class(nif) -> "n".

marker(original, X, Y) ->
    io_lib:format("<rect class=\"o m\" x=\"~s\" y=\"~s\" width=\"6\" height=\"6\"/>~n",
        [fixed(X - 3), fixed(Y - 3)]);
marker(nif, X, Y) ->
    io_lib:format("<circle class=\"n m\" cx=\"~s\" cy=\"~s\" r=\"3.5\"/>~n", [fixed(X), fixed(Y)]);
marker(keyed_hash, X, Y) ->
    polygon("h", [{X, Y - 4}, {X + 4, Y + 3}, {X - 4, Y + 3}]);
marker(keyed_ordered, X, Y) ->
    polygon("s", [{X, Y - 4}, {X + 4, Y}, {X, Y + 4}, {X - 4, Y}]).

polygon(Class, Points) ->
    ["<polygon class=\"", Class, " m\" points=\"", path(Points), "\"/>\n"].

path(Points) -> lists:join(" ", [[fixed(X), ",", fixed(Y)] || {X, Y} <- Points]).

line(X0, Y0, X1, Y1, Class) ->
    io_lib:format("<line class=\"~s\" x1=\"~s\" y1=\"~s\" x2=\"~s\" y2=\"~s\"/>~n",
        [Class, fixed(X0), fixed(Y0), fixed(X1), fixed(Y1)]).

text(X, Y, Anchor, Class, Text) ->
    ["<text class=\"", Class, "\" x=\"", fixed(X), "\" y=\"", fixed(Y), "\" text-anchor=\"", Anchor, "\">",
        escape(Text), "</text>\n"].

escape(Text) ->
    [case Char of $< -> "&lt;"; $> -> "&gt;"; $& -> "&amp;"; $" -> "&quot;"; _ -> Char end
        || Char <- unicode:characters_to_list(Text)].

scale(From, To, At, End) when From =:= To -> fun(_Value) -> (At + End) / 2 end;
scale(From, To, At, End) -> fun(Value) -> At + (Value - From) * (End - At) / (To - From) end.

decades(Low, High) ->
    {From, To} = {floor(log10(Low)), ceil(log10(High))},
    case From of
        To -> {From, From + 1};
        _ -> {From, To}
    end.

log10(Value) -> math:log10(Value).

fixed(Value) -> float_to_list(Value / 1, [{decimals, 1}]).

quantity(Exponent, ns) when Exponent >= 9 -> [power(Exponent - 9), " s"];
quantity(Exponent, ns) when Exponent >= 6 -> [power(Exponent - 6), " ms"];
quantity(Exponent, ns) when Exponent >= 3 -> [power(Exponent - 3), " µs"];
quantity(Exponent, ns) -> [power(Exponent), " ns"];
quantity(Exponent, bytes) when Exponent >= 6 -> [power(Exponent - 6), " MB"];
quantity(Exponent, bytes) when Exponent >= 3 -> [power(Exponent - 3), " kB"];
quantity(Exponent, bytes) -> [power(Exponent), " B"].

times(Exponent) -> [power(Exponent), "×"].

power(Exponent) when Exponent < 0 -> ["1/", power(-Exponent)];
power(Exponent) -> ["1" | lists:duplicate(Exponent, "0")].

count(Value) -> integer_to_list(round(Value)).

short(Ratio) when Ratio < 0.995 -> float_to_list(Ratio, [{decimals, 2}]);
short(Ratio) when Ratio < 9.95 -> float_to_list(Ratio / 1, [{decimals, 1}]);
short(Ratio) -> integer_to_list(round(Ratio)).
