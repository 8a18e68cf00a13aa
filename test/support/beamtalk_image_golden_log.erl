%% The calls of the recorded ChangeLog trace that are no plain calls: starting and stopping, looking at
%% entries and at the disk, preparing the disk. The recording writes the folder it ran in as `$DIR'.
-module(beamtalk_image_golden_log).

-export([call/4, prepare/1]).

-include_lib("stdlib/include/assert.hrl").

-define(LOG, beamtalk_workspace_changelog).

%% Copies the source files that the trace starts from, and makes the folder's `home' the host's.
-spec prepare(file:filename()) -> ok.
prepare(Dir) ->
    From = beamtalk_image_fixtures:path("test/fixtures/golden/files"),
    lists:foreach(
        fun(Name) ->
            To = filename:join([Dir, "files", Name]),
            ok = filelib:ensure_dir(To),
            {ok, _} = file:copy(filename:join(From, Name), To)
        end,
        filelib:wildcard("*.bt", From)
    ),
    beamtalk_image_fake_host:option(home, filename:join(Dir, "home")).

%% Answers as the recording writes it.
-spec call(file:filename(), module(), atom() | non_neg_integer(), [term()]) -> term().
call(Dir, Module, Function, Args) ->
    Text = unicode:characters_to_binary(Dir),
    recorded(run(Module, Function, replaced(Args, <<"$DIR">>, Text), Text), Text).

recorded(Answer, Dir) ->
    replaced(Answer, Dir, <<"$DIR">>).

run(?LOG, start_link, [Config], _Dir) ->
    {ok, Pid} = ?LOG:start_link(Config),
    true = is_pid(Pid),
    ok;
run(?LOG, stop, [], _Dir) ->
    gen_server:stop(?LOG);
run(?LOG, entries, [], _Dir) ->
    [as_map(Entry) || Entry <- ?LOG:entries()];
run(entry, Seq, [], _Dir) ->
    [Entry] = [Entry || Entry <- ?LOG:entries(), ?LOG:entry_seq(Entry) =:= Seq],
    as_map(Entry);
run(seqs, Function, [], _Dir) ->
    [?LOG:entry_seq(Entry) || Entry <- ?LOG:Function()];
run(?LOG, find_revert_target, Args, _Dir) ->
    numbered(raising(?LOG, find_revert_target, Args));
run(?LOG, changes_dir, Args, _Dir) ->
    case apply(?LOG, changes_dir, Args) of
        undefined -> undefined;
        Path when is_list(Path) -> unicode:characters_to_binary(Path)
    end;
run(?LOG, append, Args, _Dir) ->
    case raising(?LOG, append, Args) of
        {error, {beamtalk_error, _, _, _, Message, Hint, Details}} = Error ->
            ?assert(is_binary(Message) andalso byte_size(Message) > 0),
            ?assert(is_binary(Hint) andalso byte_size(Hint) > 0),
            ?assertMatch(#{reason := _}, Details),
            Error;
        Answer ->
            Answer
    end;
run(?LOG, Function, Args, _Dir) ->
    raising(?LOG, Function, Args);
run(file, write, [Path, Bytes], _Dir) ->
    ok = filelib:ensure_dir(Path),
    file:write_file(Path, Bytes);
run(file, make_dir, [Path], _Dir) ->
    ok = filelib:ensure_dir(Path),
    file:make_dir(Path);
run(file, delete, [Path], _Dir) ->
    file:delete(Path);
run(file, del_dir, [Path], _Dir) ->
    file:del_dir_r(Path);
run(disk, sources, [Id], _Dir) ->
    case file:list_dir(filename:join(?LOG:changes_dir(Id), "sources")) of
        {ok, Names} -> lists:sort([unicode:characters_to_binary(Name) || Name <- Names]);
        {error, enoent} -> []
    end;
run(disk, log, [Id, Recorded], Dir) ->
    Expected = read_lines(beamtalk_image_fixtures:path(filename:join("test/fixtures/golden", Recorded))),
    Lines = read_lines(filename:join(?LOG:changes_dir(Id), "changes.jsonl")),
    %% Decoded, since the order of keys is internal; the time stamp is not recorded.
    ?assertEqual([decoded(Line) || Line <- Expected], [decoded(recorded(Line, Dir)) || Line <- Lines]),
    length(Lines).

raising(Module, Function, Args) ->
    try
        apply(Module, Function, Args)
    catch
        Class:Reason -> {raises, Class, Reason}
    end.

as_map(Entry) ->
    Fields = [
        seq, epoch, class, selector, kind, side, flushable, not_flushable_reason, flushed, intent,
            author_kind,
        is_orphan, is_prior_epoch, source_file, span, source_ref, prev_source_ref
    ],
    Values = maps:from_list([
        {Field, ?LOG:(list_to_existing_atom("entry_" ++ atom_to_list(Field)))(Entry)}
        || Field <- Fields
    ]),
    Values#{
        source_body => ?LOG:read_source_body(Entry),
        prev_source_body => ?LOG:read_prev_source_body(Entry)
    }.

numbered({error, Reason}) -> {error, Reason};
numbered({raises, Class, Reason}) -> {raises, Class, Reason};
numbered({Tag, Entry}) -> {Tag, {entry, ?LOG:entry_seq(Entry)}};
numbered({Tag, Text, Entry}) -> {Tag, Text, {entry, ?LOG:entry_seq(Entry)}}.

read_lines(Path) ->
    {ok, Bytes} = file:read_file(Path),
    binary:split(Bytes, <<"\n">>, [global, trim]).

decoded(Line) ->
    case beamtalk_image_log_reader:decode(Line) of
        {ok, #{<<"ts">> := _} = Object} -> Object#{<<"ts">> := 0};
        _ -> Line
    end.

replaced(Binary, From, To) when is_binary(Binary) ->
    case binary:match(Binary, From) of
        {0, Length} -> <<To/binary, (binary:part(Binary, Length, byte_size(Binary) - Length))/binary>>;
        {_, _} -> binary:replace(Binary, <<$", From/binary>>, <<$", To/binary>>, [global]);
        nomatch -> Binary
    end;
replaced(Tuple, From, To) when is_tuple(Tuple) -> list_to_tuple(replaced(tuple_to_list(Tuple), From, To));
replaced([Head | Tail], From, To) -> [replaced(Head, From, To) | replaced(Tail, From, To)];
replaced(Map, From, To) when is_map(Map) -> maps:map(fun(_, Value) -> replaced(Value, From, To) end, Map);
replaced(Term, _From, _To) -> Term.
