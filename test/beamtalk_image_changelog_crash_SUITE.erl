%% What the ChangeLog owes to a node that is killed, to a second node, and to a disk that is full or may not
%% be written.
%%
%% The writers are nodes of their own and die by SIGKILL at a named point of the write path. How often at each
%% point is `CHANGELOG_KILLS' in the environment, three unless it says otherwise; the core's own kill test
%% does twenty each whenever it runs (native/image/tests/changelog_kill.rs).
-module(beamtalk_image_changelog_crash_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([init/1]).
-export([
    killed_writer_loses_or_halves_an_entry/1,
    second_node_writes_into_an_open_folder/1,
    full_disk_breaks_the_log_or_the_change/1,
    full_disk_stops_a_rotation_half_way/1,
    read_only_folder_is_no_reason_not_to_start/1
]).

-import(beamtalk_image_log_fixture, [
    open/1, open/2, close/0, dir/1, log_file/1, entry/1, entry/2, seqs/0, warnings/1
]).

-define(LOG, beamtalk_workspace_changelog).
-define(ROTATION, #{changelog_bound => 12, changelog_slack => 4}).

suite() ->
    [{timetrap, {minutes, 20}}].

all() ->
    [
        killed_writer_loses_or_halves_an_entry,
        second_node_writes_into_an_open_folder,
        full_disk_breaks_the_log_or_the_change,
        full_disk_stops_a_rotation_half_way,
        read_only_folder_is_no_reason_not_to_start
    ].

init_per_suite(Config) ->
    {ok, Started} = application:ensure_all_started(beamtalk_image),
    [{started, Started} | Config].

end_per_suite(Config) ->
    [ok = application:stop(App) || App <- lists:reverse(proplists:get_value(started, Config))],
    ok.

init_per_testcase(Case, Config) ->
    Before = beamtalk_image_leftovers:picture(),
    Home = filename:join(proplists:get_value(priv_dir, Config), atom_to_list(Case)),
    ok = beamtalk_image_log_fixture:start(Home),
    [{before, Before}, {home, Home} | Config].

end_per_testcase(_Case, Config) ->
    ok = beamtalk_image_log_fixture:stop(),
    unmount(proplists:get_value(home, Config)),
    beamtalk_image_leftovers:assert_none(proplists:get_value(before, Config)).

%% As a supervisor of one permanent child.
init([Id]) ->
    Child = #{id => ?LOG, start => {?LOG, start_link, [#{workspace_id => Id}]}, shutdown => 5_000},
    {ok, {#{intensity => 5, period => 60}, [Child]}}.

%% ---- Kills ------------------------------------------------------------------------------------------------

%% Every point of the write path, the same folder again and again for each: nothing acknowledged is lost,
%% nothing is there twice or in part, every reference resolves to its own bytes, a mark stays.
killed_writer_loses_or_halves_an_entry(Config) ->
    Kills = list_to_integer(os:getenv("CHANGELOG_KILLS", "3")),
    Home = proplists:get_value(home, Config),
    Counts = [{Point, kills(Point, Kills, filename:join(Home, Point))} || Point <- points()],
    ct:pal("kills~n~ts~b in all", [
        [io_lib:format("  ~-24s~b~n", [Point, Count]) || {Point, Count} <- Counts],
        lists:sum([Count || {_, Count} <- Counts])
    ]),
    ?assertEqual([], [Point || {Point, Count} <- Counts, Count =/= Kills]).

%% Before the body, in it, between body and line, in the line, after it; every step of a rotation, of a
%% rewrite and of clearing.
points() ->
    ["before_body", "inside_body", "between_body_and_line", "inside_line", "after_line", "rotation_planned",
        "rotation_segment", "rotation_bodies", "inside_rewrite", "before_rename", "after_rename",
        "rotation_pruning", "rotation_done", "before_marks", "before_clear"].

kills(Point, Kills, Home) ->
    Words = Home ++ ".words",
    ok = beamtalk_image_fake_host:option(home, Home),
    lists:foldl(
        fun(Round, Known) ->
            At = Point ++ ":" ++ integer_to_list(count(Point, Round)),
            Port = beamtalk_image_log_writer:start(Point,
                #{home => Home, words => Words, point => At, env => ?ROTATION}),
            {Status, Output} = ended(Port, []),
            %% 128 and the signal's number.
            ?assertEqual({At, 137, <<>>}, {At, Status, Output}),
            after_a_kill(At, beamtalk_image_log_writer:acknowledged(Words), Known)
        end,
        {0, #{}},
        lists:seq(1, Kills)
    ),
    Kills.

%% The first rounds already reach a rotation; marks and rewrites come sooner.
count("before_marks", Round) -> 1 + Round rem 2;
count(Point, Round) ->
    EveryAppend = ["before_body", "inside_body", "between_body_and_line", "inside_line", "after_line"],
    case lists:member(Point, EveryAppend) of
        true -> 1 + Round * 7 rem 23;
        false -> 1 + Round rem 4
    end.

ended(Port, Output) ->
    receive
        {Port, {data, Bytes}} -> ended(Port, [Output, Bytes]);
        {Port, {exit_status, Status}} -> {Status, iolist_to_binary(Output)}
    end.

%% `Known' is how many words earlier rounds left, and what was found to be there after them. Answers the same
%% for the next round.
after_a_kill(At, Words, {Read, Known}) ->
    New = lists:nthtail(Read, Words),
    ?assertMatch({At, [ready | _]}, {At, New ++ [ready || New =:= [], startup_point(At)]}),
    Acknowledged = maps:from_list([{Seq, {Epoch, Turn}} || {appended, Seq, Epoch, Turn} <- New]),
    ?assertEqual({At, []}, {At, [Seq || Seq <- maps:keys(Acknowledged), is_map_key(Seq, Known)]}),
    Owed = maps:merge(Known, Acknowledged),
    Cleared = cleared_below(New, 0, 0),
    Live = live(At),
    Found = maps:merge(archived(Live), maps:map(fun(_, {Epoch, Turn, _}) -> {Epoch, Turn} end, Live)),
    ?assertEqual({At, []}, {At, [
        {Seq, Was}
        || {Seq, Was} <- maps:to_list(Owed), Seq >= Cleared, maps:get(Seq, Found, lost) =/= Was
    ]}),
    ?assertEqual({At, []}, {At, [
        Seq
        || {marked, Seq} <- Words, {_, _, false} <- [maps:get(Seq, Live, gone)]
    ]}),
    %% At most the append that was under way shows without having been acknowledged.
    ?assert(length([Seq || Seq <- maps:keys(Found), not is_map_key(Seq, Owed)]) =< 1),
    {length(Words), Found}.

%% The marks are also written while the log opens, before the writer can say anything.
startup_point(At) -> lists:prefix("before_marks", At).

%% Below this number entries may be gone, since they were cleared, or were about to be.
cleared_below([], _Next, Below) -> Below;
cleared_below([{appended, Seq, _, _} | Words], _Next, Below) -> cleared_below(Words, Seq + 1, Below);
cleared_below([clearing | Words], Next, _Below) -> cleared_below(Words, Next, Next);
cleared_below([_ | Words], Next, Below) -> cleared_below(Words, Next, Below).

%% The live log through the store, each entry with both bodies; a second opening finds nothing to mend.
live(At) ->
    Texts = open(<<"w">>, ?ROTATION),
    ?assertEqual({At, []}, {At, [Text || Text <- warnings(Texts),
        binary:match(Text, <<"mended">>) =:= nomatch]}),
    Live = maps:from_list([
        begin
            {ok, New} = ?LOG:read_source_body(Entry),
            {ok, Old} = ?LOG:read_prev_source_body(Entry),
            {Epoch, Turn} = told(New, Old),
            ?assertEqual(Epoch, ?LOG:entry_epoch(Entry)),
            {?LOG:entry_seq(Entry), {Epoch, Turn, ?LOG:entry_flushed(Entry)}}
        end
     || Entry <- ?LOG:entries()
    ]),
    ?assertEqual(?LOG:size(), map_size(Live)),
    ok = close(),
    ?assertEqual({At, []}, {At, warnings(open(<<"w">>, ?ROTATION))}),
    ?assertEqual(lists:sort(maps:keys(Live)), seqs()),
    ok = close(),
    Live.

%% The archives through a reader of its own; nothing is both there and live, or there twice.
archived(Live) ->
    {Segments, Bodies} = beamtalk_image_log_reader:archives(dir(<<"w">>)),
    Entries = lists:append(Segments),
    Seqs = [Seq || #{seq := Seq} <- Entries],
    ?assertEqual(lists:sort(Seqs), lists:usort(Seqs)),
    ?assertEqual([], [Seq || Seq <- Seqs, is_map_key(Seq, Live)]),
    maps:from_list([
        begin
            {Epoch, Turn} = told(maps:get(NewRef, Bodies), maps:get(OldRef, Bodies)),
            {Seq, {Epoch, Turn}}
        end
     || #{seq := Seq, epoch := Epoch, source_ref := NewRef, prev_source_ref := OldRef} <- Entries
    ]).

%% Epoch and turn, if both texts are whole and of one append.
told(New, Old) ->
    [<<"new">>, Epoch, Turn | _] = binary:split(New, <<" ">>, [global]),
    Text = fun(Which) -> binary:copy(<<Which/binary, " ", Epoch/binary, " ", Turn/binary, " ">>, 400) end,
    ?assertEqual({Text(<<"new">>), Text(<<"old">>)}, {New, Old}),
    {binary_to_integer(Epoch), binary_to_integer(Turn)}.

%% ---- Two nodes --------------------------------------------------------------------------------------------

%% The second one gets an error that names the first, touches nothing, and its supervisor hands the reason on;
%% once the first is gone, even killed, the folder opens.
second_node_writes_into_an_open_folder(Config) ->
    process_flag(trap_exit, true),
    Home = proplists:get_value(home, Config),
    Peer = beamtalk_image_abuse_node:start(),
    Call = fun(Module, Function, Args) -> beamtalk_image_abuse_node:call(Peer, Module, Function, Args) end,
    {ok, _} = Call(application, ensure_all_started, [beamtalk_image]),
    ok = Call(beamtalk_image_fake_host, start, []),
    ok = Call(beamtalk_image_fake_host, option, [home, Home]),
    ok = Call(beamtalk_image_log_fixture, serve, [<<"w">>]),
    {ok, 0} = Call(?LOG, append, [entry(0)]),
    Before = picture(dir(<<"w">>)),
    {error, {locked, Text}} = ?LOG:start_link(#{workspace_id => <<"w">>}),
    ?assertMatch({_, _}, binary:match(Text, list_to_binary("process " ++ Call(os, getpid, [])))),
    {ok, Host} = inet:gethostname(),
    ?assertMatch({_, _}, binary:match(Text, list_to_binary(Host))),
    ?assertMatch({error, {shutdown, {failed_to_start_child, ?LOG, {locked, Text}}}},
        supervisor:start_link(?MODULE, [<<"w">>])),
    ?assertEqual(undefined, whereis(?LOG)),
    ?assertExit({noproc, _}, ?LOG:append(entry(1))),
    ?assertEqual(Before, picture(dir(<<"w">>))),
    {ok, 1} = Call(?LOG, append, [entry(1)]),
    %% Another workspace is nobody's business.
    [] = open(<<"other">>),
    ok = close(),
    "" = os:cmd("kill -9 " ++ Call(os, getpid, [])),
    receive {'EXIT', Peer, _} -> ok end,
    {ok, Supervisor} = supervisor:start_link(?MODULE, [<<"w">>]),
    ?assertEqual({2, [0, 1]}, {?LOG:epoch(), seqs()}),
    true = exit(Supervisor, shutdown),
    receive {'EXIT', Supervisor, shutdown} -> ok end.

%% Every file of a folder with its bytes.
picture(Dir) ->
    [
        {Name, file:read_file(filename:join(Dir, Name))}
        || Name <- lists:sort(filelib:wildcard("**", Dir)), filelib:is_regular(filename:join(Dir, Name))
    ].

%% ---- Full and read-only disks -----------------------------------------------------------------------------

%% F4, and a removal on such a disk: it takes effect, warns, and the next append after room came back is
%% whole.
full_disk_breaks_the_log_or_the_change(Config) ->
    Home = proplists:get_value(home, Config),
    ok = mount(Home, "size=1m"),
    _ = open(<<"w">>),
    Body = fun(N) -> binary:copy(<<"text ", (integer_to_binary(N))/binary, " ">>, 2_000) end,
    {Bodies, Error} = until_full(0, fun(N) -> #{source => Body(N)} end),
    ?assertMatch({beamtalk_error, changelog_write_error, 'ChangeLog', 'append:', _, _,
        #{reason := {_, _, enospc}}}, Error),
    ?assert(Bodies > 5),
    ?assertEqual(lists:seq(0, Bodies - 1), seqs()),
    %% Then until not even a line fits; nothing of the tries that failed shows.
    Filler = filename:join(Home, "filler"),
    ok = fill(Filler),
    {Kept, _} = until_full(Bodies, fun(_) -> #{source => undefined} end),
    [{error, _} = ?LOG:append(entry(N, #{source => undefined, prev_source => undefined}))
        || N <- lists:seq(1, 20)],
    ?assertEqual(lists:seq(0, Kept - 1), seqs()),
    ?assertEqual(Kept, length(beamtalk_image_log_reader:lines(log_file(<<"w">>)))),
    ?assertEqual(Bodies, length(filelib:wildcard("*", filename:join(dir(<<"w">>), "sources")))),
    ?assertMatch({error, _}, ?LOG:mark_flushed([0])),
    ?assertEqual(Kept, length(?LOG:active_entries())),
    removal_stands_without_a_log(),
    ok = file:delete(Filler),
    [ok = file:delete(filename:join([dir(<<"w">>), "sources", io_lib:format("~6..0b-source.bt", [N])]))
        || N <- [0, 1, 2]],
    ?assertEqual({ok, Kept}, ?LOG:append(entry(Kept, #{prev_source => undefined}))),
    ok = ?LOG:mark_flushed([0]),
    ok = close(),
    ?assertEqual([], warnings(open(<<"w">>))),
    ?assertEqual(lists:seq(0, Kept), seqs()),
    ?assertEqual(
        [{error, enoent} || _ <- [0, 1, 2]] ++ [{ok, Body(N)} || N <- lists:seq(3, Bodies - 1)] ++
            [{error, no_source} || _ <- lists:seq(Bodies, Kept - 1)] ++
                [{ok, <<"new ", (integer_to_binary(Kept))/binary>>}],
        [?LOG:read_source_body(Entry) || Entry <- ?LOG:entries()]
    ),
    ok = close().

%% The image's method goes although nothing can be recorded.
removal_stands_without_a_log() ->
    ok = beamtalk_extensions:init(),
    ok = beamtalk_extensions:register('Counter', shout, fun(_, _) -> loud end, pkg),
    Size = ?LOG:size(),
    ok = beamtalk_image_log_events:stop(),
    ok = beamtalk_image_log_events:start([beamtalk_remove_selector]),
    {removed, extension, #{owner := pkg}} = beamtalk_remove_selector:remove('Counter', shout, instance),
    ?assertMatch([{warning, _}], beamtalk_image_log_events:take_texts()),
    ok = beamtalk_image_log_events:stop(),
    ok = beamtalk_image_log_events:start([?LOG]),
    ?assertNot(beamtalk_extensions:has('Counter', shout)),
    ?assertEqual(Size, ?LOG:size()).

until_full(N, Texts) ->
    case ?LOG:append(entry(N, maps:merge(#{prev_source => undefined}, Texts(N)))) of
        {ok, N} -> until_full(N + 1, Texts);
        {error, Error} -> {N, Error}
    end.

%% Takes the rest of a file system, down to its last byte.
fill(Path) ->
    {ok, File} = file:open(Path, [append, raw]),
    Fill = fun Fill(Bytes) ->
        case file:write(File, Bytes) of
            ok -> Fill(Bytes);
            {error, enospc} when byte_size(Bytes) > 1 -> Fill(binary:part(Bytes, 0, byte_size(Bytes) div 2));
            {error, enospc} -> ok
        end
    end,
    ok = Fill(binary:copy(<<0>>, 65_536)),
    file:close(File).

%% F6: no room for archives. Writing goes on in the live log while it can, and the rotation is made up for.
full_disk_stops_a_rotation_half_way(Config) ->
    Home = proplists:get_value(home, Config),
    ok = mount(Home, "size=1m"),
    _ = open(<<"w">>, ?ROTATION),
    %% Random texts do not shrink in an archive.
    Text = crypto:strong_rand_bytes(48_000),
    Appended = fun(N) -> {ok, N} = ?LOG:append(entry(N, #{source => Text, prev_source => undefined})) end,
    lists:foreach(Appended, lists:seq(0, 11)),
    Filler = filename:join(Home, "filler"),
    ok = file:write_file(Filler, binary:copy(<<0>>, 330_000)),
    Appended(12),
    Texts = beamtalk_image_log_events:take_texts(),
    ?assertEqual([error], lists:usort([Level || {Level, _} <- Texts])),
    ?assertEqual(lists:seq(0, 12), seqs()),
    ?assertEqual([], filelib:wildcard("*", filename:join(dir(<<"w">>), "archive"))),
    ok = file:delete(Filler),
    Appended(13),
    ?assertEqual(lists:seq(6, 13), seqs()),
    ok = close(),
    {[Segment], Bodies} = beamtalk_image_log_reader:archives(dir(<<"w">>)),
    ?assertEqual(lists:seq(0, 5), [Seq || #{seq := Seq} <- Segment]),
    ?assertEqual([Text || _ <- Segment], [maps:get(Ref, Bodies) || #{source_ref := Ref} <- Segment]).

%% What can be read is read; each write is refused with its reason, and goes through once the disk may be
%% written.
read_only_folder_is_no_reason_not_to_start(Config) ->
    Home = proplists:get_value(home, Config),
    ok = mount(Home, "size=4m"),
    _ = open(<<"w">>),
    [{ok, N} = ?LOG:append(entry(N)) || N <- [0, 1, 2]],
    ok = close(),
    Before = picture(dir(<<"w">>)),
    ok = remount(Home, "ro"),
    ?assertMatch([_ | _], warnings(open(<<"w">>))),
    ?assertEqual([0, 1, 2], seqs()),
    ?assertEqual([{ok, <<"new ", N>>} || N <- "012"], [?LOG:read_source_body(Entry)
        || Entry <- ?LOG:entries()]),
    ?assertMatch({error, {beamtalk_error, changelog_write_error, _, _, _, _, #{reason := {_, _, erofs}}}},
        ?LOG:append(entry(3))),
    ?assertMatch({error, _}, ?LOG:mark_flushed([1])),
    ?assertMatch({error, _}, ?LOG:clear()),
    removal_stands_without_a_log(),
    ?assertEqual([0, 1, 2], seqs()),
    ?assertEqual(Before, picture(dir(<<"w">>))),
    ok = remount(Home, "rw"),
    {ok, New} = ?LOG:append(entry(3)),
    ?assertEqual([0, 1, 2, New], seqs()),
    ok = close(),
    ?assertEqual([], warnings(open(<<"w">>))),
    ?assertEqual([0, 1, 2, New], seqs()),
    ok = close().

%% A case that cannot have its own file system fails here; it needs to be root, as CI is.
mount(Path, Options) ->
    ok = filelib:ensure_dir(filename:join(Path, "x")),
    ran("mount -t tmpfs -o " ++ Options ++ " beamtalk_image '" ++ filename:absname(Path) ++ "'").

remount(Path, How) ->
    ran("mount -o remount," ++ How ++ " '" ++ filename:absname(Path) ++ "'").

unmount(Path) ->
    case os:cmd("grep -c ' " ++ filename:absname(Path) ++ " tmpfs ' /proc/mounts") of
        "0" ++ _ -> ok;
        _ -> ran("umount '" ++ filename:absname(Path) ++ "'")
    end.

ran(Command) ->
    ?assertEqual({Command, "0\n"}, {Command, os:cmd(Command ++ " >/dev/null; echo $?")}),
    ok.
