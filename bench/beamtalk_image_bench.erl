%% @doc The benchmark: both ETS baselines and the product, side by side in one run.
%%
%% `bench/run.sh' compiles and calls it. `full' measures and writes `docs/figures/raw-OTP.csv', then
%% everything made from it: the table, the plots and the README's part. `quick' proves in some seconds that
%% the harness works and that the stores agree, and writes nothing. `render' makes table, plots and README
%% part again from the raw rounds, `check' fails if they are not what the raw rounds make.
%%
%% Stores are measured in turn within each round. A round is the fastest of some slices, each in a process of
%% its own and some milliseconds long, which keeps out most of what else the machine does. Tables show the
%% median of the rounds. Loading and memory have one slice a round.
-module(beamtalk_image_bench).

-export([main/1, run/1, quick/0, render/0, update_readme/0, check/0]).
-export_type([options/0]).

-type options() :: #{
    sizes := [pos_integer() | real],
    rounds := pos_integer(),
    %% A round of a row is the fastest of so many slices, each about so many nanoseconds long.
    slices := pos_integer(),
    target := pos_integer(),
    stores => [bench_store:id()],
    rows => [bench_rows:id()]
}.

-define(FIGURES, "docs/figures").
-define(README, "README.md").
-define(BEGIN, <<"<!-- bench:begin -->">>).
-define(END, <<"<!-- bench:end -->">>).

%% The original-shaped store is left out above this many classes: each registration sweeps three whole tables
%% and walks every row of a popular key. Five thousand classes take it the better part of an hour.
-define(MOST_ORIGINAL, 1_000).

%% @doc For `erl -s': the mode as an atom. Ends the node, with 1 if anything failed.
-spec main([atom()]) -> no_return().
main([Mode]) ->
    ok = logger:set_primary_config(level, warning),
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
    Raw = run(#{sizes => [109, 1_000, 5_000, real], rounds => 5, slices => 15, target => 2_000_000}),
    ok = filelib:ensure_dir(raw_file()),
    ok = file:write_file(raw_file(), Raw),
    render();
mode(quick) ->
    quick();
mode(render) ->
    render();
mode(check) ->
    check();
mode(Other) ->
    throw(io_lib:format("no mode ~ts; there are full, quick, render and check", [Other])).

%% @doc Few rounds at small sizes, printed; writes nothing. Fails if the stores disagree or a row cannot be
%% run.
-spec quick() -> ok.
quick() ->
    Raw = bench_table:parse(run(#{sizes => [60, 109], rounds => 2, slices => 2, target => 500_000})),
    io:put_chars(bench_table:compact(Raw)),
    Plots = bench_plots:all(Raw),
    true = lists:all(fun({_Name, Svg}) -> is_binary(Svg) end, Plots),
    ok.

%% @doc Measures and answers the raw rounds as text.
-spec run(options()) -> binary().
run(#{sizes := Sizes} = Options) ->
    ok = refuse_debug(),
    progress("the load of the machine is ~ts; measure on a quiet one", [load_average()]),
    Stores = maps:get(stores, Options, bench_store:stores()),
    ok = agree(Stores),
    Environment = environment(Options),
    Lines = [Line || Size <- Sizes, Line <- measure_size(image(Size), Stores, Options)],
    iolist_to_binary([Environment, "size,row,store,round,value,note\n", Lines]).

refuse_debug() ->
    _ = application:load(beamtalk_image),
    _ = code:ensure_loaded(beamtalk_image_nif),
    case beamtalk_image_nif:load_error() of
        none -> ok;
        Reason -> throw(io_lib:format("the library is not loaded: ~tp", [Reason]))
    end,
    case beamtalk_image_nif:build_profile() of
        release -> ok;
        Profile -> throw(io_lib:format("a ~p build is not measured; build a release", [Profile]))
    end.

image(real) ->
    case bench_image:real() of
        {ok, Image} -> Image;
        {error, Reason} -> throw(Reason)
    end;
image(Count) ->
    bench_image:synthetic(Count).

agree(Ids) ->
    #{classes := Classes} = Image = bench_image:synthetic(45),
    ok = bench_host:set_up(Image#{started := [Name || {Name, _, _} <- Classes]}),
    Stores = [{Id, bench_store:start(Id)} || Id <- Ids],
    {ok, Count} = bench_store:agree(Stores, Image),
    lists:foreach(fun({_, #{stop := Stop}}) -> ok = Stop() end, Stores),
    ok = bench_host:tear_down(),
    progress("~b stores agree, ~b answers compared", [length(Ids), Count]).

%% One size: loading and memory on fresh stores, then every call on the stores as loaded last.
measure_size(#{name := Name, classes := Classes} = Image, All, Options) ->
    progress("~ts classes", [Name]),
    TooSlow = [Id || Id <- All, Id =:= original, length(Classes) > ?MOST_ORIGINAL],
    Ids = All -- TooSlow,
    %% Rounds read the image where it lies: no measurement copies it into its process.
    ok = persistent_term:put(?MODULE, {Image, bench_image:probes(Image)}),
    ok = bench_host:set_up(Image),
    Loaded = load(Name, Ids, Options),
    Stores = maps:from_list([{Id, complete(Id)} || Id <- Ids]),
    Lines = calls(Name, Ids, Stores, Options),
    lists:foreach(fun(#{stop := Stop}) -> ok = Stop() end, maps:values(Stores)),
    ok = bench_host:tear_down(),
    _ = persistent_term:erase(?MODULE),
    LeftOut = [
        line(Name, RowId, Id, none, none, "loading it at this size takes the better part of an hour")
        || #{id := RowId} = Row <- bench_rows:all(), wanted(Row, Options), Id <- TooSlow
    ],
    [Loaded, Lines, LeftOut].

%% The rounds of loading; what the last one loaded stays.
load(Name, Ids, #{rounds := Most} = Options) ->
    Rounds =
        case wanted(bench_rows:row(load), Options) orelse wanted(bench_rows:row(memory), Options) of
            true -> Most;
            false -> 1
        end,
    [load(Name, Id, Round, Rounds) || Round <- lists:seq(1, Rounds), Id <- rotate(Round, Ids)].

load(Name, Id, Round, Rounds) ->
    {#{classes := Classes}, _} = persistent_term:get(?MODULE),
    {Ops, Bytes, Time} = fresh(Id, fun(#{register_class := Register, sync := Sync}) ->
        lists:foreach(fun({Class, _, Entries}) -> ok = Register(Class, Entries) end, Classes),
        Sync()
    end),
    keep(Id, Ops, Round =:= Rounds),
    Count = length(Classes),
    [line(Name, load, Id, Round, Time / Count, ""), line(Name, memory, Id, Round, Bytes / Count, "")].

fresh(Id, Load) ->
    Before = bytes([]),
    #{processes := Processes} = Ops = bench_store:start(Id),
    Time = in_process(fun() ->
        Start = erlang:monotonic_time(nanosecond),
        Load(Ops),
        erlang:monotonic_time(nanosecond) - Start
    end),
    {Ops, bytes(Processes()) - Before, Time}.

keep(Id, Ops, true) ->
    put({?MODULE, Id}, Ops),
    ok;
keep(_Id, #{stop := Stop}, false) ->
    Stop().

%% All that a store can hold: tables, binaries, saved terms and code on the BEAM's side, the heaps of its
%% processes (tables of ETS are in the first, queues and states in the second), and what the library has
%% allocated. The same sum for every store.
bytes(Processes) ->
    lists:foreach(fun erlang:garbage_collect/1, processes()),
    Heaps = [Bytes || Pid <- Processes, {memory, Bytes} <- [process_info(Pid, memory)]],
    settled(erlang:memory(system) + beamtalk_image_nif:allocated(), 50) + lists:sum(Heaps).

%% Big drops are done in the background, on either side.
settled(Last, Left) ->
    timer:sleep(20),
    case erlang:memory(system) + beamtalk_image_nif:allocated() of
        Now when Left =:= 0; abs(Now - Last) < 4_096 -> Now;
        Now -> settled(Now, Left - 1)
    end.

complete(Id) ->
    {#{extensions := Extensions, protocols := Protocols}, _} = persistent_term:get(?MODULE),
    #{load := Load, register_protocol := Register, sync := Sync} = Ops = erase({?MODULE, Id}),
    ok = Load([], Extensions),
    lists:foreach(fun(Protocol) -> ok = Register(Protocol) end, Protocols),
    ok = Sync(),
    Ops.

calls(Name, Ids, Stores, #{rounds := Rounds, slices := Slices, target := Target} = Options) ->
    {_, Probes} = persistent_term:get(?MODULE),
    Rows = [Row || Row <- bench_rows:calls(), wanted(Row, Options)],
    {Run, Empty} = lists:partition(fun(Row) -> bench_rows:pool(Row, Probes) =/= [] end, Rows),
    Counts = maps:from_list([
        {{RowId, Id}, calibrate(Row, maps:get(Id, Stores), Target)}
        || #{id := RowId} = Row <- Run, Id <- Ids
    ]),
    [
        [
            line(Name, RowId, Id, none, none, "the image has no key with ten such rows")
            || #{id := RowId} <- Empty, Id <- Ids
        ],
        [
            begin
                Count = maps:get({RowId, Id}, Counts),
                Time = fastest(Slices, Row, maps:get(Id, Stores), Count),
                line(Name, RowId, Id, Round, Time / answer_rows(Row, Probes), "")
            end
            || Round <- lists:seq(1, Rounds), #{id := RowId} = Row <- Run, Id <- rotate(Round, Ids)
        ]
    ].

wanted(#{id := Id}, Options) -> lists:member(Id, maps:get(rows, Options, [Id])).

answer_rows(#{per := row}, #{hot_sender := {_Selector, Rows}}) -> Rows;
answer_rows(_Row, _Probes) -> 1.

%% The number of calls that takes about as long as a measurement should. It warms the call up, too.
calibrate(Row, Ops, Target) -> calibrate(Row, Ops, Target, 1).

calibrate(Row, Ops, Target, Count) ->
    {Time, Done} = measured(Row, Ops, Count),
    if
        Done < Count -> Done;
        Time >= Target -> Count;
        Time * 20 >= Target -> max(1, round(Count * Target / Time));
        true -> calibrate(Row, Ops, Target, Count * 10)
    end.

%% What interrupts a slice is the machine's affair and not the store's; a slice is short enough that some
%% escape.
fastest(Slices, Row, Ops, Count) ->
    lists:min([
        begin
            {Time, Done} = measured(Row, Ops, Count),
            Time / Done
        end
        || _ <- lists:seq(1, Slices)
    ]).

measured(Row, Ops, Count) ->
    in_process(fun() ->
        {_, Probes} = persistent_term:get(?MODULE),
        bench_rows:measure(Row, Ops, bench_rows:pool(Row, Probes), Count)
    end).

in_process(Fun) ->
    Parent = self(),
    {Pid, Ref} = spawn_opt(fun() -> Parent ! {self(), Fun()} end, [monitor, {min_heap_size, 10_000}]),
    receive
        {Pid, Answer} -> receive {'DOWN', Ref, process, Pid, _} -> Answer end;
        {'DOWN', Ref, process, Pid, Reason} -> error({measurement_failed, Reason})
    end.

%% Another store goes first in each round.
rotate(Round, Ids) ->
    {Front, Back} = lists:split(Round rem length(Ids), Ids),
    Back ++ Front.

line(Size, Row, Store, Round, Value, Note) ->
    io_lib:format("~ts,~s,~s,~s,~s,~s~n", [Size, Row, Store, field(Round), field(Value), Note]).

field(none) -> "";
field(Round) when is_integer(Round) -> integer_to_list(Round);
field(Value) -> float_to_list(Value, [{decimals, 1}]).

environment(#{rounds := Rounds}) ->
    {{Year, Month, Day}, _} = calendar:universal_time(),
    [
        io_lib:format("# ~s: ~ts~n", [Key, Value])
        || {Key, Value} <- [
            {"otp", erlang:system_info(otp_release)},
            {"erts", erlang:system_info(version)},
            {"emulator", atom_to_list(erlang:system_info(emu_flavor))},
            {"architecture", erlang:system_info(system_architecture)},
            {"processor", processor()},
            {"schedulers", integer_to_list(erlang:system_info(schedulers_online))},
            {"library", atom_to_list(beamtalk_image_nif:build_profile())},
            {"rounds", integer_to_list(Rounds)},
            {"load before", load_average()},
            {"date", io_lib:format("~4..0b-~2..0b-~2..0b", [Year, Month, Day])}
        ]
    ].

processor() ->
    case file:read_file("/proc/cpuinfo") of
        {ok, Text} ->
            case re:run(Text, "^model name\\s*:\\s*(.*)$", [multiline, {capture, all_but_first, binary}]) of
                {match, [Model]} -> Model;
                nomatch -> "unknown"
            end;
        {error, _} ->
            "unknown"
    end.

%% How busy the machine was: rounds of a busy one say little.
load_average() ->
    case file:read_file("/proc/loadavg") of
        {ok, Text} -> hd(binary:split(Text, <<" ">>));
        {error, _} -> "unknown"
    end.

raw_file() -> filename:join(?FIGURES, "raw-" ++ erlang:system_info(otp_release) ++ ".csv").

%% @doc Writes table, plots and the README's part from the raw rounds.
-spec render() -> ok.
render() ->
    lists:foreach(fun({File, Content}) -> ok = file:write_file(File, Content) end, figures()),
    update_readme().

%% @doc Puts the table between its markers in the README.
-spec update_readme() -> ok.
update_readme() ->
    {Text, Wanted} = readme(),
    case Text of
        Wanted -> ok;
        _ -> file:write_file(?README, Wanted)
    end.

%% @doc Fails unless table, plots and README are what the raw rounds make.
-spec check() -> ok.
check() ->
    {Text, Wanted} = readme(),
    Made = filelib:wildcard(filename:join(?FIGURES, "*.svg")),
    Stale =
        [File || {File, Content} <- figures(), file:read_file(File) =/= {ok, Content}] ++
        [?README || Text =/= Wanted] ++
        [File || File <- Made, not lists:keymember(File, 1, figures())],
    case Stale of
        [] -> ok;
        _ -> throw(["not what the raw rounds make, run `bench/run.sh render`: ", lists:join(", ", Stale)])
    end.

figures() ->
    Raws = raws(),
    [
        {filename:join(?FIGURES, "table.md"), bench_table:full(Raws)}
        | [{filename:join(?FIGURES, Name), Svg} || {Name, Svg} <- bench_plots:all(lists:last(Raws))]
    ].

readme() ->
    case file:read_file(?README) of
        {ok, Text} ->
            case {binary:split(Text, ?BEGIN), binary:split(Text, ?END)} of
                {[Head, _], [_, Tail]} ->
                    Table = bench_table:compact(lists:last(raws())),
                    {Text, iolist_to_binary([Head, ?BEGIN, "\n", Table, ?END, Tail])};
                _ ->
                    throw([?README, " lacks the markers ", ?BEGIN, " and ", ?END])
            end;
        {error, Reason} ->
            throw([?README, ": ", file:format_error(Reason)])
    end.

%% The raw rounds of every OTP release measured, the newest release last.
raws() ->
    case filelib:wildcard(filename:join(?FIGURES, "raw-*.csv")) of
        [] ->
            throw("no raw rounds in " ?FIGURES ", run `bench/run.sh full`");
        Files ->
            Parsed = [begin {ok, Text} = file:read_file(File), bench_table:parse(Text) end || File <- Files],
            lists:sort(fun(A, B) -> bench_table:release(A) =< bench_table:release(B) end, Parsed)
    end.

progress(Format, Args) -> io:format(standard_error, "bench: " ++ Format ++ "~n", Args).
