%% A node that writes to a workspace until it is killed at a named point, and the words it leaves about what
%% was acknowledged. The words are written to a file of the test's, outside the workspace, with one system
%% call each: what stands there, the killed node had been told.
-module(beamtalk_image_log_writer).

-export([start/2, acknowledged/1]).
-export([main/1]).

-define(LOG, beamtalk_workspace_changelog).

-type acknowledged() :: {appended, Seq :: non_neg_integer(), Epoch :: pos_integer(),
    Turn :: non_neg_integer()}
    | {marked, non_neg_integer()} | clearing | cleared | ready.

%% Starts a node; answers its port, which sends `{Port, {exit_status, _}}' at its end.
-spec start(string(), #{home := file:filename(), words := file:filename(), point := string(), _ => _}) ->
    port().
start(Name, Settings) ->
    Path = [Dir || Dir <- code:get_path(), filename:pathtype(Dir) =:= absolute],
    Erl = filename:join([code:root_dir(), "bin", "erl"]),
    Eval = lists:flatten(io_lib:format("~s:main(~tp).", [?MODULE, Settings])),
    open_port({spawn_executable, Erl}, [
        {args, ["-noshell", "-noinput", "-mode", "minimal", "+S", "2:2", "-kernel", "logger_level", "error",
            "-pa"] ++ Path ++ ["-eval", Eval, "-title", Name]},
        {env, [{"ERL_CRASH_DUMP_SECONDS", "0"}]},
        exit_status,
        stderr_to_stdout,
        binary
    ]).

%% What was acknowledged, oldest first. A word that is cut off was not.
-spec acknowledged(file:filename()) -> [acknowledged()].
acknowledged(Words) ->
    case file:read_file(Words) of
        {ok, Bytes} ->
            [binary_to_term(base64:decode(Word)) || Word <- lists:droplast(binary:split(Bytes, <<"\n">>,
                [global]))];
        {error, enoent} ->
            []
    end.

%% Runs on the node.
-spec main(map()) -> no_return().
main(#{home := Home, words := Words, point := Point} = Settings) ->
    {ok, _} = application:ensure_all_started(beamtalk_image),
    ok = beamtalk_image_fake_host:start(),
    ok = beamtalk_image_fake_host:option(home, Home),
    ok = beamtalk_image_log_fixture:settings(maps:get(env, Settings, #{})),
    ok = application:set_env(beamtalk_image, changelog_fail_point, list_to_binary(Point)),
    {ok, File} = file:open(Words, [append, raw]),
    Say = fun(Word) -> ok = file:write(File, [base64:encode(term_to_binary(Word)), $\n]) end,
    {ok, _} = ?LOG:start_link(#{workspace_id => <<"w">>}),
    ok = Say(ready),
    write(0, lists:prefix("before_clear", Point), Say).

write(Turn, Clears, Say) ->
    {ok, Seq} = ?LOG:append(entry(Turn)),
    ok = Say({appended, Seq, ?LOG:epoch(), Turn}),
    case Turn rem 3 of
        0 ->
            ok = ?LOG:mark_flushed([Seq]),
            ok = Say({marked, Seq});
        _ ->
            ok
    end,
    case Clears andalso Turn rem 7 =:= 6 of
        true ->
            ok = Say(clearing),
            ok = ?LOG:clear(),
            ok = Say(cleared);
        false ->
            ok
    end,
    write(Turn + 1, Clears, Say).

%% Texts of more than one page, which tell epoch and turn.
entry(Turn) ->
    beamtalk_image_log_fixture:entry(Turn rem 5, #{
        source => text(new, ?LOG:epoch(), Turn),
        prev_source => text(old, ?LOG:epoch(), Turn)
    }).

text(Which, Epoch, Turn) ->
    iolist_to_binary(lists:duplicate(400, io_lib:format("~s ~b ~b ", [Which, Epoch, Turn]))).
