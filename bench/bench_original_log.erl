%% @doc The ChangeLog as the original module shapes it: one server, entries in an ordered table, each body
%% written beside its name and renamed, each line appended to a file opened for it, nothing synced. Past the
%% bound every append archives what is over it in two files, writes the whole log anew and refills the table.
%% Opening decodes every line, and asks the disk about each entry by itself. Made from contract facts, to
%% measure against; it mends and checks nothing.
-module(bench_original_log).
-behaviour(gen_server).

-export([start_link/1, append/1, size/0]).
-export([init/1, handle_call/3, handle_cast/2]).

-define(BOUND, 1_000).

-type config() :: #{dir => file:filename()}.

%% @doc Starts the server on a folder, or in memory without one.
-spec start_link(config()) -> {ok, pid()} | {error, term()}.
start_link(Config) ->
    case gen_server:start_link({local, ?MODULE}, ?MODULE, Config, []) of
        ignore -> {error, ignore};
        Started -> Started
    end.

-spec append(map()) -> {ok, non_neg_integer()}.
append(Input) -> gen_server:call(?MODULE, {append, Input}, infinity).

-spec size() -> non_neg_integer().
size() -> ets:info(?MODULE, size).

%% @private
-spec init(config()) -> {ok, map()}.
init(Config) ->
    ?MODULE = ets:new(?MODULE, [ordered_set, named_table, protected]),
    undefined = put(?MODULE, binary:compile_pattern([<<"\"">>, <<"\\">>])),
    Dir = maps:get(dir, Config, undefined),
    Entries = load(Dir),
    true = ets:insert(?MODULE, [{Seq, Entry} || #{<<"seq">> := Seq} = Entry <- Entries]),
    Highest = fun(Key, None) -> lists:max([None | [maps:get(Key, Entry) || Entry <- Entries]]) end,
    {ok, #{dir => Dir, seq => Highest(<<"seq">>, -1) + 1, epoch => Highest(<<"epoch">>, 0) + 1,
        segments => 0}}.

%% @private
-spec handle_call({append, map()}, gen_server:from(), map()) -> {reply, {ok, non_neg_integer()}, map()}.
handle_call({append, Input}, _From, #{dir := Dir, seq := Seq, epoch := Epoch} = State) ->
    Refs = [
        {Field, body(Dir, Seq, Suffix, maps:get(Key, Input, undefined))}
        || {Field, Key, Suffix} <- [
            {<<"source_ref">>, source, "source"}, {<<"prev_source_ref">>, prev_source, "prev"}
        ]
    ],
    Entry = maps:merge(maps:from_list(Refs), #{
        <<"seq">> => Seq,
        <<"epoch">> => Epoch,
        <<"ts">> => erlang:system_time(millisecond),
        <<"class">> => maps:get(class, Input),
        <<"selector">> => maps:get(selector, Input),
        <<"kind">> => atom_to_binary(maps:get(kind, Input)),
        <<"intent">> => atom_to_binary(maps:get(intent, Input)),
        <<"flushable">> => maps:get(flushable, Input),
        <<"flushed">> => false,
        <<"author">> => maps:get(author, Input),
        <<"author_kind">> => atom_to_binary(maps:get(author_kind, Input)),
        <<"sourceFile">> => maps:get(source_file, Input, null),
        <<"span">> => maps:get(span, Input, null),
        <<"not_flushable_reason">> => null
    }),
    ok = write_line(Dir, Entry),
    true = ets:insert(?MODULE, {Seq, Entry}),
    {reply, {ok, Seq}, rotate(State#{seq := Seq + 1})}.

%% @private
-spec handle_cast(term(), map()) -> {noreply, map()}.
handle_cast(_Message, State) -> {noreply, State}.

%% ---- Disk -------------------------------------------------------------------------------------------------

body(_Dir, _Seq, _Suffix, undefined) ->
    null;
body(undefined, _Seq, _Suffix, _Text) ->
    null;
body(Dir, Seq, Suffix, Text) ->
    Name = lists:flatten(io_lib:format("~6..0b-~s.bt", [Seq, Suffix])),
    ok = replace(filename:join([Dir, "sources", Name]), Text),
    list_to_binary(Name).

replace(Path, Bytes) ->
    ok = filelib:ensure_dir(Path),
    Temporary = Path ++ ".tmp",
    ok = file:write_file(Temporary, Bytes),
    file:rename(Temporary, Path).

write_line(undefined, _Entry) -> ok;
write_line(Dir, Entry) -> file:write_file(log_file(Dir), [encode(Entry), $\n], [append]).

log_file(Dir) -> filename:join(Dir, "changes.jsonl").

rotate(#{dir := undefined} = State) ->
    State;
rotate(#{dir := Dir, segments := Segments} = State) ->
    case ets:info(?MODULE, size) - ?BOUND of
        Over when Over > 0 ->
            All = [Entry || {_Seq, Entry} <- ets:tab2list(?MODULE)],
            {Old, Kept} = lists:split(Over, All),
            Archive = filename:join(Dir, "archive"),
            Stamp = io_lib:format("~b-~b", [erlang:system_time(millisecond), Segments + 1]),
            ok = filelib:ensure_dir(filename:join(Archive, "x")),
            ok = file:write_file(filename:join(Archive, ["changes-", Stamp, ".jsonl.gz"]),
                zlib:gzip(lines(Old))),
            Names = [binary_to_list(Ref) || Entry <- Old, Key <- [<<"source_ref">>, <<"prev_source_ref">>],
                Ref <- [maps:get(Key, Entry)], Ref =/= null],
            Bodies = [{Name, filename:join([Dir, "sources", Name])} || Name <- Names],
            Tar = lists:flatten(filename:join(Archive, ["sources-", Stamp, ".tar.gz"])),
            ok = erl_tar:create(Tar, Bodies, [compressed]),
            ok = replace(log_file(Dir), lines(Kept)),
            lists:foreach(fun({_, Path}) -> ok = file:delete(Path) end, Bodies),
            true = ets:delete_all_objects(?MODULE),
            true = ets:insert(?MODULE, [{Seq, Entry} || #{<<"seq">> := Seq} = Entry <- Kept]),
            State#{segments := Segments + 1};
        _ ->
            State
    end.

lines(Entries) -> iolist_to_binary([[encode(Entry), $\n] || Entry <- Entries]).

load(undefined) ->
    [];
load(Dir) ->
    ok = filelib:ensure_dir(log_file(Dir)),
    case file:read_file(log_file(Dir)) of
        {ok, Bytes} ->
            [judged(Dir, decode(Line)) || Line <- binary:split(Bytes, <<"\n">>, [global, trim])];
        {error, enoent} ->
            []
    end.

judged(Dir, #{<<"sourceFile">> := File, <<"prev_source_ref">> := Ref, <<"span">> := Span} = Entry) when
    File =/= null, Ref =/= null
->
    {ok, Text} = file:read_file(File),
    {ok, Body} = file:read_file(filename:join([Dir, "sources", Ref])),
    #{<<"start">> := Start, <<"end">> := End} = Span,
    Entry#{orphan => binary:part(Text, Start, End - Start) =/= Body};
judged(_Dir, Entry) ->
    Entry#{orphan => false}.

%% ---- JSON, as much of it as the log uses ------------------------------------------------------------------

encode(Map) when is_map(Map) ->
    Pairs = [[encode_key(Key), $:, encode(Value)] || {Key, Value} <- maps:to_list(Map), Key =/= orphan],
    [${, lists:join($,, Pairs), $}];
encode(Text) when is_binary(Text) ->
    %% Nearly no text of a log has anything to escape.
    case binary:match(Text, get(?MODULE)) of
        nomatch -> [$", Text, $"];
        _ -> [$", binary:replace(Text, [<<"\"">>, <<"\\">>], <<"\\">>, [global, {insert_replaced, 1}]), $"]
    end;
encode(Number) when is_integer(Number) -> integer_to_binary(Number);
encode(Word) when is_atom(Word) -> atom_to_binary(Word).

encode_key(Key) when is_atom(Key) -> encode_key(atom_to_binary(Key));
encode_key(Key) -> [$", Key, $"].

decode(Text) ->
    {Value, <<>>} = value(Text),
    Value.

value(<<"{", Rest/binary>>) -> pairs(Rest, []);
value(<<"\"", Rest/binary>>) -> text(Rest);
value(<<"null", Rest/binary>>) -> {null, Rest};
value(<<"true", Rest/binary>>) -> {true, Rest};
value(<<"false", Rest/binary>>) -> {false, Rest};
value(Rest) -> digits(Rest, 0).

digits(<<Digit, Rest/binary>>, Number) when Digit >= $0, Digit =< $9 ->
    digits(Rest, Number * 10 + Digit - $0);
digits(Rest, Number) -> {Number, Rest}.

text(Rest) ->
    {At, 1} = binary:match(Rest, <<"\"">>),
    <<Text:At/binary, _, Left/binary>> = Rest,
    {Text, Left}.

pairs(<<"\"", Rest/binary>>, Pairs) ->
    {Key, <<":", Left/binary>>} = text(Rest),
    {Value, After} = value(Left),
    Found = [{Key, Value} | Pairs],
    case After of
        <<",", More/binary>> -> pairs(More, Found);
        <<"}", More/binary>> -> {maps:from_list(Found), More}
    end.
