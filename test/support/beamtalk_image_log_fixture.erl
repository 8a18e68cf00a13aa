%% A ChangeLog for a case: a home of its own, the fake host, what the module logs, and lines and entries to
%% put in.
-module(beamtalk_image_log_fixture).

-export([start/1, stop/0, open/1, open/2, serve/1, close/0, dir/1, log_file/1]).
-export([settings/1, entry/1, entry/2, line/1, line/2, write_log/2, seqs/0, warnings/1, await/1, parallel/1]).

-define(LOG, beamtalk_workspace_changelog).
-define(SETTINGS, [changelog_bound, changelog_slack, changelog_durability, changelog_fail_point]).

%% Makes `Home' the home of every workspace of the case and catches what the log says.
-spec start(file:filename()) -> ok.
start(Home) ->
    ok = filelib:ensure_dir(filename:join(Home, "x")),
    ok = beamtalk_image_fake_host:start(),
    ok = beamtalk_image_fake_host:option(home, Home),
    beamtalk_image_log_events:start([?LOG]).

%% Ends whatever the case left open.
-spec stop() -> ok.
stop() ->
    ok = close(),
    lists:foreach(fun(Key) -> application:unset_env(beamtalk_image, Key) end, ?SETTINGS),
    ok = beamtalk_image_log_events:stop(),
    beamtalk_image_fake_host:stop().

%% Starts the server on a workspace. Answers what it logged.
-spec open(binary()) -> [{logger:level(), binary()}].
open(Id) ->
    open(Id, #{}).

-spec open(binary() | undefined, #{atom() => term()}) -> [{logger:level(), binary()}].
open(Id, Settings) ->
    ok = settings(Settings),
    ok = serve(Id),
    beamtalk_image_log_events:take_texts().

%% Starts the server apart from the caller: a case that fails must not end the run in its own way.
-spec serve(binary() | undefined) -> ok.
serve(Id) ->
    {ok, Pid} = ?LOG:start_link(#{workspace_id => Id}),
    true = unlink(Pid),
    ok.

-spec settings(#{atom() => term()}) -> ok.
settings(Settings) ->
    lists:foreach(
        fun({Key, Value}) -> application:set_env(beamtalk_image, Key, Value) end,
        maps:to_list(Settings)
    ).

%% The orderly end, also of a run whose process is gone.
-spec close() -> ok.
close() ->
    case whereis(?LOG) of
        undefined -> beamtalk_image_nif:changelog_end();
        _ -> gen_server:stop(?LOG)
    end.

-spec dir(binary()) -> file:filename().
dir(Id) ->
    ?LOG:changes_dir(Id).

-spec log_file(binary()) -> file:filename().
log_file(Id) ->
    filename:join(dir(Id), "changes.jsonl").

%% What is appended: a patch of method `m<N>', whose texts tell their number.
-spec entry(non_neg_integer()) -> map().
entry(N) ->
    entry(N, #{}).

-spec entry(non_neg_integer(), map()) -> map().
entry(N, More) ->
    Number = integer_to_binary(N),
    maps:merge(
        #{
            class => <<"Counter">>, selector => <<"m", Number/binary>>, kind => instance, intent => durable,
            flushable => true, author => <<"repl">>, author_kind => human,
            source => <<"new ", Number/binary>>, prev_source => <<"old ", Number/binary>>
        },
        More
    ).

%% A line as the original writes it, without bodies and without newline.
-spec line(non_neg_integer()) -> binary().
line(Seq) ->
    line(Seq, #{}).

-spec line(non_neg_integer(), #{binary() => iodata()}) -> binary().
line(Seq, More) ->
    Fields = maps:merge(
        #{
            <<"author">> => "\"repl\"", <<"author_kind">> => "\"human\"", <<"class">> => "\"Counter\"",
            <<"epoch">> => "1", <<"flushable">> => "true", <<"flushed">> => "false",
            <<"intent">> => "\"durable\"", <<"kind">> => "\"instance\"",
            <<"not_flushable_reason">> => "null", <<"prev_source_ref">> => "null",
            <<"selector">> => ["\"m", integer_to_binary(Seq), "\""], <<"seq">> => integer_to_binary(Seq),
            <<"side">> => "null", <<"sourceFile">> => "null", <<"source_ref">> => "null",
            <<"span">> => "null", <<"ts">> => "5"
        },
        More
    ),
    Pairs = [["\"", Key, "\":", Value] || {Key, Value} <- lists:sort(maps:to_list(Fields))],
    iolist_to_binary(["{", lists:join(",", Pairs), "}"]).

-spec write_log(binary(), iodata()) -> ok.
write_log(Id, Bytes) ->
    ok = filelib:ensure_dir(log_file(Id)),
    file:write_file(log_file(Id), Bytes).

-spec seqs() -> [non_neg_integer()].
seqs() ->
    [?LOG:entry_seq(Entry) || Entry <- ?LOG:entries()].

-spec warnings([{logger:level(), binary()}]) -> [binary()].
warnings(Texts) ->
    [Text || {Level, Text} <- Texts, logger:compare_levels(Level, warning) =/= lt].

%% Waits until the condition holds; the case's time trap is the only limit.
-spec await(fun(() -> boolean())) -> ok.
await(Holds) ->
    case Holds() of
        true ->
            ok;
        false ->
            receive
            after 1 -> await(Holds)
            end
    end.

%% Runs all at once and answers their answers in order; what one raises fails the caller.
-spec parallel([fun(() -> term())]) -> [term()].
parallel(Funs) ->
    Self = self(),
    Workers = [spawn_monitor(fun() ->
        receive go -> ok end,
        Self ! {self(), Fun()}
    end) || Fun <- Funs],
    lists:foreach(fun({Pid, _}) -> Pid ! go end, Workers),
    [
        receive
            {Pid, Answer} ->
                true = erlang:demonitor(Ref, [flush]),
                Answer;
            {'DOWN', Ref, process, Pid, Reason} ->
                error({worker_failed, Reason})
        end
     || {Pid, Ref} <- Workers
    ].
