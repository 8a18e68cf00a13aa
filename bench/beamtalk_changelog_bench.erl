%% @doc The benchmark of the ChangeLog: appends and opening, at both levels of durability, one and two writers
%% and in memory, beside the shape of the original (bench_original_log), which syncs nothing.
%%
%% `bench/changelog.sh full' measures and writes `docs/figures/changelog-OTP.csv', one line a round, and the
%% table made from it; `quick' runs everything once at a small size and writes nothing; `render' makes the
%% table again, `check' fails if it is not what the raw rounds make. Every single append is timed; a round
%% gives the median and the 99th percentile of its appends, the table the median of the rounds.
-module(beamtalk_changelog_bench).

-export([main/1]).
-export([home_dir/0]).

-define(FIGURES, "docs/figures").
-define(TABLE, "docs/figures/changelog.md").
-define(ORIGINAL, bench_original_log).
-define(LOG, beamtalk_workspace_changelog).
-define(FOLDER, {?MODULE, folder}).

-type row() :: {Id :: string(), fun((scale()) -> [non_neg_integer()])}.
-type scale() :: full | quick.

%% @doc For `erl -s': the mode as an atom. Ends the node, with 1 if anything failed.
-spec main([atom()]) -> no_return().
main([Mode]) ->
    ok = logger:set_primary_config(level, error),
    ok = io:setopts(standard_io, [{encoding, unicode}]),
    try
        ok = mode(Mode),
        halt(0)
    catch
        throw:Reason ->
            io:format(standard_error, "bench: ~ts~n", [Reason]),
            halt(1);
        Class:Reason:Stack ->
            io:format(standard_error, "bench: ~tp:~tp~n~tp~n", [Class, Reason, Stack]),
            halt(1)
    end.

mode(full) ->
    Raw = run(full, 5),
    ok = filelib:ensure_dir(raw_file()),
    ok = file:write_file(raw_file(), Raw),
    mode(render);
mode(quick) ->
    io:put_chars(table(run(quick, 2)));
mode(render) ->
    file:write_file(?TABLE, [table(Raw) || Raw <- raws()]);
mode(check) ->
    Wanted = iolist_to_binary([table(Raw) || Raw <- raws()]),
    case file:read_file(?TABLE) of
        {ok, Wanted} -> ok;
        _ -> throw("not what the raw rounds make, run `bench/changelog.sh render`: " ?TABLE)
    end;
mode(Other) ->
    throw(io_lib:format("no mode ~ts; there are full, quick, render and check", [Other])).

raw_file() -> filename:join(?FIGURES, "changelog-" ++ erlang:system_info(otp_release) ++ ".csv").

raws() ->
    [
        begin
            {ok, Raw} = file:read_file(File),
            Raw
        end
     || File <- lists:sort(filelib:wildcard(filename:join(?FIGURES, "changelog-*.csv")))
    ].

%% ---- Measuring --------------------------------------------------------------------------------------------

run(Scale, Rounds) ->
    {ok, _} = application:ensure_all_started(beamtalk_image),
    case beamtalk_image_nif:build_profile() of
        release -> ok;
        Profile -> throw(io_lib:format("a ~p build is not measured; build a release", [Profile]))
    end,
    ok = beamtalk_image_host:set_module(?MODULE),
    Head = [
        io_lib:format("# otp: ~s~n# schedulers: ~b~n# rounds: ~b~n# load before: ~ts~n", [
            erlang:system_info(otp_release), erlang:system_info(schedulers_online), Rounds, load_average()
        ]),
        "row,round,median,p99\n"
    ],
    Lines = [measured(Row, Round, Scale) || Round <- lists:seq(1, Rounds), Row <- rows()],
    iolist_to_binary([Head, Lines]).

measured({Id, Run}, Round, Scale) ->
    Folder = string:trim(os:cmd("mktemp -d")),
    ok = persistent_term:put(?FOLDER, Folder),
    try lists:sort(Run(Scale)) of
        Times ->
            io_lib:format("~s,~b,~.1f,~.1f~n", [Id, Round, at(Times, 0.5) / 1_000, at(Times, 0.99) / 1_000])
    after
        ok = file:del_dir_r(Folder)
    end.

%% @private
%% The host's part: each row has a home of its own.
-spec home_dir() -> string().
home_dir() -> persistent_term:get(?FOLDER).

at(Sorted, Part) -> lists:nth(1 + trunc((length(Sorted) - 1) * Part), Sorted).

load_average() ->
    case file:read_file("/proc/loadavg") of
        {ok, Text} -> hd(binary:split(Text, <<" ">>));
        {error, _} -> "unknown"
    end.

-spec rows() -> [row()].
rows() ->
    [
        {lists:concat([Store, " append ", Where, " ", Level, " ", Writers]), fun(Scale) ->
            appends(Store, Where, Level, Writers, Scale)
        end}
        || {Store, Levels} <- [{product, [os, fsync]}, {original, [os]}],
            Level <- Levels,
            Where <- [below, past],
            Writers <- [1, 2]
    ] ++
        [
            {lists:concat([Store, " append memory os ", Writers]), fun(Scale) ->
                appends(Store, memory, os, Writers, Scale)
            end}
            || Store <- [product, original], Writers <- [1, 2]
        ] ++
        [
            {lists:concat([Store, " open ", How, " os 1"]), fun(Scale) -> openings(Store, How, Scale) end}
            || Store <- [product, original], How <- [plain, orphans]
        ].

appends(Store, Where, Level, Writers, Scale) ->
    Append = appender(Store),
    case Where of
        past ->
            start(Store, Where, os),
            lists:foreach(fun(N) -> {ok, _} = Append(entry(N, #{})) end, lists:seq(1, 1_000)),
            stop(Store);
        _ ->
            ok
    end,
    start(Store, Where, Level),
    Each = max(1, count(Store, Where, Level, Scale) div Writers),
    Times = lists:append(parallel([fun() -> timed(Append, Each) end || _ <- lists:seq(1, Writers)])),
    stop(Store),
    Times.

%% Enough for several of the product's rotations past the bound, and less than the bound below it.
count(_Store, _Where, _Level, quick) -> 40;
count(original, past, _Level, full) -> 100;
count(product, past, _Level, full) -> 505;
count(_Store, memory, _Level, full) -> 5_000;
count(_Store, below, fsync, full) -> 300;
count(_Store, below, os, full) -> 800.

timed(Append, Count) ->
    lists:map(
        fun(N) ->
            Entry = entry(N, #{}),
            Start = erlang:monotonic_time(nanosecond),
            {ok, _} = Append(Entry),
            erlang:monotonic_time(nanosecond) - Start
        end,
        lists:seq(1, Count)
    ).

%% A log of a thousand entries, opened again and again; with orphan checks each names a file, a span and a
%% body.
openings(Store, How, Scale) ->
    File = filename:join(home_dir(), "counter.bt"),
    ok = file:write_file(File, text()),
    More =
        case How of
            plain -> #{};
            orphans ->
                #{source_file => list_to_binary(File), span => #{start => 0, 'end' => byte_size(text())}}
        end,
    start(Store, durable, os),
    Append = appender(Store),
    lists:foreach(fun(N) -> {ok, _} = Append(entry(N, More)) end, lists:seq(1, 1_000)),
    stop(Store),
    [
        begin
            Start = erlang:monotonic_time(nanosecond),
            start(Store, durable, os),
            Time = erlang:monotonic_time(nanosecond) - Start,
            1_000 = held(Store),
            stop(Store),
            Time
        end
     || _ <- lists:seq(1, case Scale of full -> 20; quick -> 3 end)
    ].

entry(N, More) ->
    maps:merge(
        #{
            class => <<"Counter">>, selector => <<"m", (integer_to_binary(N))/binary>>, kind => instance,
            intent => durable, flushable => true, author => <<"repl">>, author_kind => human,
            source => text(), prev_source => text()
        },
        More
    ).

text() -> binary:copy(<<"text">>, 75).

appender(product) -> fun ?LOG:append/1;
appender(original) -> fun ?ORIGINAL:append/1.

held(product) -> ?LOG:size();
held(original) -> ?ORIGINAL:size().

start(product, Where, Level) ->
    ok = application:set_env(beamtalk_image, changelog_durability, Level),
    Config =
        case Where of
            memory -> #{};
            _ -> #{workspace_id => <<"bench">>}
        end,
    {ok, _} = ?LOG:start_link(Config);
start(original, memory, os) ->
    {ok, _} = ?ORIGINAL:start_link(#{});
start(original, _Where, os) ->
    {ok, _} = ?ORIGINAL:start_link(#{dir => filename:join(home_dir(), "original")}).

stop(product) -> ok = gen_server:stop(?LOG);
stop(original) -> ok = gen_server:stop(?ORIGINAL).

parallel(Funs) ->
    Parent = self(),
    Workers = [
        spawn_monitor(fun() ->
            receive go -> Parent ! {self(), Fun()} end
        end)
     || Fun <- Funs
    ],
    lists:foreach(fun({Pid, _}) -> Pid ! go end, Workers),
    [
        receive
            {Pid, Answer} -> receive {'DOWN', Ref, process, Pid, _} -> Answer end;
            {'DOWN', Ref, process, Pid, Reason} -> error({measurement_failed, Reason})
        end
     || {Pid, Ref} <- Workers
    ].

%% ---- The table --------------------------------------------------------------------------------------------

table(Raw) ->
    Lines = binary:split(Raw, <<"\n">>, [global, trim]),
    Notes = [Note || <<"# ", Note/binary>> <- Lines],
    [_Heading | Rows] = [
        binary:split(Line, <<",">>, [global])
        || <<First, _/binary>> = Line <- Lines, First =/= $#
    ],
    Figures = maps:from_list([{Id, figures(Id, Rows)} || [Id | _] <- Rows]),
    Made = [
        line(What, maps:get(Product, Figures), maps:get(Original, Figures, none))
     || {What, Product, Original} <- shown()
    ],
    unicode:characters_to_binary([
        "ChangeLog, µs: median and 99th percentile (", lists:join("; ", Notes), ")\n\n",
        "| | product | p99 | original-shaped | p99 | median against it |\n|---|--:|--:|--:|--:|--:|\n",
        Made, "\n"
    ]).

shown() ->
    Bodies = "append, two bodies of 300 bytes, ",
    [
        {
            [Bodies, Says, ", ", Level, ", ", Count],
            id([product, append, Where, Level, N]),
            id([original, append, Where, Level, N])
        }
        || {Where, Says} <- [{below, "before the bound"}, {past, "past the bound"}, {memory, "in memory"}],
            Level <- case Where of memory -> ["os"]; _ -> ["os", "fsync"] end,
            {N, Count} <- [{1, "one writer"}, {2, "two writers"}]
    ] ++
        [
            {"open 1,000 entries", id([product, open, plain, os, 1]), id([original, open, plain, os, 1])},
            {"open 1,000 entries with orphan checks", id([product, open, orphans, os, 1]),
                id([original, open, orphans, os, 1])}
        ].

id(Words) -> list_to_binary(lists:join(" ", [io_lib:format("~s", [text_of(Word)]) || Word <- Words])).

text_of(Word) when is_atom(Word) -> atom_to_list(Word);
text_of(Word) when is_integer(Word) -> integer_to_list(Word);
text_of(Word) -> Word.

figures(Id, Rows) ->
    Median = fun(Values) -> at(lists:sort(Values), 0.5) end,
    Mine = [{binary_to_float(M), binary_to_float(P)} || [Row, _Round, M, P] <- Rows, Row =:= Id],
    {Median([M || {M, _} <- Mine]), Median([P || {_, P} <- Mine])}.

line(What, {Median, P99}, none) ->
    io_lib:format("| ~ts | ~s | ~s | | | |~n", [What, number(Median), number(P99)]);
line(What, {Median, P99}, {Other, OtherP99}) ->
    io_lib:format("| ~ts | ~s | ~s | ~s | ~s | ~ts |~n", [
        What, number(Median), number(P99), number(Other), number(OtherP99), ratio(Other / Median)
    ]).

number(Value) when Value < 100 -> io_lib:format("~.1f", [Value]);
number(Value) -> integer_to_list(round(Value)).

ratio(Ratio) when Ratio >= 1 -> io_lib:format("~.1f times faster", [Ratio]);
ratio(Ratio) -> io_lib:format("~.1f times slower", [1 / Ratio]).
