%% @doc The ChangeLog: the durable record of live changes, what differs from disk, and how to undo it.
%%
%% The log lives in the NIF and on disk; `docs/changelog-format.md' is its format. The server process holds no
%% data: its registered name is what the host looks for, and its orderly end ends the workspace run. A crash
%% of the process leaves the run open: reads and writes go on, and the next start continues the same epoch.
%% Writes run in the caller on a dirty scheduler, one at a time; readers see one whole state and never wait
%% for a writer.
%%
%% Settings are environment keys of the application `beamtalk_image', read on start: `changelog_bound'
%% (entries kept, 1000), `changelog_slack' (how far below the bound a rotation goes, 100) and
%% `changelog_durability' (`os', the default, or `fsync'). A value that is none is refused by key.
%% `changelog_fail_point' is for crash tests: the name of a point in the writer, a colon and a count, at which
%% the node ends as if killed; a pipe's path behind another colon makes the writer wait for that pipe instead.
-module(beamtalk_workspace_changelog).
-behaviour(gen_server).

-include_lib("kernel/include/logger.hrl").
-include("beamtalk_image_read.hrl").

-export([
    start_link/1,
    changes_dir/1,
    append/1,
    entries/0,
    size/0,
    active_entries/0,
    flushable_pending/0,
    epoch/0,
    mark_flushed/1,
    clear/0,
    find_revert_target/2,
    find_revert_target/3,
    changeLog/0,
    change_entries/0,
    dirtyMethods/0,
    body_delta/2,
    entry_to_json/1,
    entry_from_json/1
]).
-export([
    entry_seq/1,
    entry_epoch/1,
    entry_class/1,
    entry_selector/1,
    entry_kind/1,
    entry_side/1,
    entry_flushable/1,
    entry_not_flushable_reason/1,
    entry_flushed/1,
    entry_intent/1,
    entry_author_kind/1,
    entry_is_orphan/1,
    entry_is_prior_epoch/1,
    entry_source_file/1,
    entry_span/1,
    entry_source_ref/1,
    entry_prev_source_ref/1,
    entry_layer/1,
    entry_owner/1,
    read_source_body/1,
    read_prev_source_body/1
]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).
-export_type([entry/0, append_input/0, kind/0, side/0, intent/0, author_kind/0, span/0]).

%% The fields as the NIF makes them, in its order.
-record(change, {
    seq :: non_neg_integer(),
    epoch :: non_neg_integer(),
    ts :: integer(),
    class :: binary(),
    selector :: binary() | undefined,
    kind :: kind(),
    side :: side() | undefined,
    stored_side :: side() | undefined,
    flushable :: boolean(),
    not_flushable_reason :: binary() | undefined,
    flushed :: boolean(),
    intent :: intent(),
    author :: binary(),
    author_kind :: author_kind(),
    source_file :: binary() | undefined,
    span :: {non_neg_integer(), non_neg_integer()} | undefined,
    source_ref :: binary() | undefined,
    prev_source_ref :: binary() | undefined,
    layer :: binary() | undefined,
    owner :: binary() | undefined,
    orphan :: boolean(),
    prior_epoch :: boolean()
}).

-opaque entry() :: #change{}.
-type kind() :: instance | class | 'new-class' | 'remove-method' | 'remove-class' | unknown.
-type side() :: instance | class.
-type intent() :: durable | ephemeral | unknown.
-type author_kind() :: human | agent | unknown.
-type span() :: #{start := non_neg_integer(), 'end' := non_neg_integer()}.
-type append_input() :: #{
    class := binary(),
    kind := kind(),
    intent := intent(),
    flushable := boolean(),
    author := binary(),
    author_kind := author_kind(),
    selector => binary() | undefined,
    side => side() | undefined,
    source => binary() | undefined,
    prev_source => binary() | undefined,
    source_file => binary() | undefined,
    span => span() | undefined,
    not_flushable_reason => binary() | undefined,
    layer => extension | local | undefined,
    owner => atom() | undefined,
    _ => _
}.
-type revert_target() ::
    {ok, binary(), entry()}
    | {remove, entry()}
    | {reinstall_class, binary(), entry()}
    | {error, no_entry | no_prev_source}.

-define(DOMAIN, #{domain => [beamtalk, runtime]}).

%% ---- The process ------------------------------------------------------------------------------------------

%% @doc Starts the server and opens the log of the workspace `workspace_id', or one in memory without it.
%%
%% A folder that another node has open is refused with `{error, {locked, Text}}', and the text names the other
%% one's process and host; nothing was read or written. A supervisor that starts this among its children
%% therefore does not start, and hands the reason on; one that restarts it gives up after as many attempts as
%% it allows. The other node must end first, since two writers would destroy the log. A folder that cannot be
%% written is no error: what can be read is read, a warning says what failed, and each write tries again.
%% `{error, {bad_setting, Key, Value}}' names a setting that is none.
-spec start_link(Config :: #{workspace_id => binary() | undefined, _ => _}) -> {ok, pid()} | {error, term()}.
start_link(Config) when is_map(Config) ->
    case gen_server:start_link({local, ?MODULE}, ?MODULE, Config, []) of
        ignore -> {error, ignore};
        Started -> Started
    end.

%% @doc The folder of a workspace's log; `undefined' for the one in memory.
-spec changes_dir(WorkspaceId :: binary() | undefined) -> string() | undefined.
changes_dir(undefined) ->
    undefined;
changes_dir(WorkspaceId) when is_binary(WorkspaceId) ->
    Base =
        case home_dir() of
            false -> filename:join(filename:basedir(user_cache, "beamtalk"), "workspaces");
            Home -> filename:join([Home, ".beamtalk", "workspaces"])
        end,
    filename:join([Base, unicode:characters_to_list(WorkspaceId), "changes"]).

home_dir() ->
    try
        beamtalk_image_host:home_dir()
    catch
        _:_ -> false
    end.

%% @private
-spec init(map()) -> {ok, []} | {stop, term()}.
init(Config) ->
    process_flag(trap_exit, true),
    ok = beamtalk_image_host:set_log_domain(runtime),
    case settings() of
        {ok, Settings} -> started(open(changes_dir(maps:get(workspace_id, Config, undefined)), Settings));
        {error, Reason} -> {stop, Reason}
    end.

started({ok, _Epoch, Events}) ->
    lists:foreach(fun log_event/1, Events),
    {ok, []};
started({error, Reason}) ->
    {stop, Reason}.

settings() ->
    Settings = [
        {Key, application:get_env(beamtalk_image, Key, Default), Is}
        || {Key, Default, Is} <- [
            {changelog_bound, 1_000, fun(Bound) -> is_integer(Bound) andalso Bound > 0 end},
            {changelog_slack, 100, fun(Slack) -> is_integer(Slack) andalso Slack >= 0 end},
            {changelog_durability, os, fun(Level) -> lists:member(Level, [os, fsync]) end},
            {changelog_fail_point, none, fun(Point) -> Point =:= none orelse is_binary(Point) end}
        ]
    ],
    case [{bad_setting, Key, Value} || {Key, Value, Is} <- Settings, not Is(Value)] of
        [] -> {ok, [Value || {_Key, Value, _Is} <- Settings]};
        [Bad | _] -> {error, Bad}
    end.

open(Dir, [Bound, Slack, Durability, FailPoint]) ->
    Path =
        case Dir of
            undefined -> none;
            _ -> unicode:characters_to_binary(Dir)
        end,
    beamtalk_image_nif:changelog_open(Path, Bound, Slack, Durability =:= fsync, FailPoint).

%% @private
-spec handle_call(term(), gen_server:from(), []) -> {reply, {error, unknown_request}, []}.
handle_call(_Request, _From, []) ->
    {reply, {error, unknown_request}, []}.

%% @private
-spec handle_cast(term(), []) -> {noreply, []}.
handle_cast(_Message, []) ->
    {noreply, []}.

%% @private
-spec handle_info(term(), []) -> {noreply, []}.
handle_info(_Message, []) ->
    {noreply, []}.

%% @private
-spec terminate(term(), []) -> ok.
terminate(Reason, []) when Reason =:= normal; Reason =:= shutdown; element(1, Reason) =:= shutdown ->
    beamtalk_image_nif:changelog_end();
terminate(_Crash, []) ->
    ok.

%% What the store did or found comes back as values and is told once.
log_event({unknown, _Seq, Field, Value}) ->
    ?LOG_WARNING("ChangeLog: the word ~ts of the field ~ts is unknown; the line is kept as it is",
        [Value, Field],
        ?DOMAIN#{field => binary_to_existing_atom(Field), value => Value});
log_event({skipped, Line, Offset, Length, Why}) ->
    ?LOG_WARNING("ChangeLog: line ~b (~b bytes at ~b) is no entry and is kept as it is: ~ts",
        [Line, Length, Offset, Why], ?DOMAIN);
log_event({repair, What}) ->
    ?LOG_WARNING("ChangeLog: mended: ~ts", [What], ?DOMAIN);
log_event({unreadable, Reason}) ->
    ?LOG_WARNING("ChangeLog: the log cannot be read and counts as empty; it is not overwritten: ~tp",
        [Reason],
        ?DOMAIN#{reason => Reason});
log_event({problem, Reason}) ->
    ?LOG_WARNING("ChangeLog: ~tp; the next write tries again", [Reason], ?DOMAIN#{reason => Reason});
log_event({rotated, Moved, Segment, none}) ->
    ?LOG_INFO("ChangeLog: ~b entries moved to ~ts", [Moved, Segment], ?DOMAIN);
log_event({rotated, Moved, Segment, LeftOver}) ->
    ?LOG_WARNING("ChangeLog: ~b entries moved to ~ts; a body file could not be deleted: ~tp",
        [Moved, Segment, LeftOver], ?DOMAIN#{reason => LeftOver});
log_event({rotation_failed, Reason}) ->
    ?LOG_ERROR("ChangeLog: the oldest entries could not be archived, the log goes on growing: ~tp", [Reason],
        ?DOMAIN#{reason => Reason}).

%% ---- Writing ----------------------------------------------------------------------------------------------

%% @doc Records a change and answers its number. Bodies are on disk before the line that names them, and the
%% entry is visible when this returns. A failure answers a structured error of kind `changelog_write_error';
%% no number is used and nothing becomes visible. Without a running log it exits with `{noproc, _}'.
-spec append(append_input()) -> {ok, non_neg_integer()} | {error, beamtalk_image_errors:structured()}.
append(Input) when is_map(Input) ->
    case ?READ(beamtalk_image_nif:changelog_append(with_texts(Input)), closed) of
        {ok, {Seq, Events}} ->
            lists:foreach(fun log_event/1, Events),
            {ok, Seq};
        {error, Reason} ->
            {error, write_error(Reason, <<"check that the workspace folder can be written and has room">>)};
        {bad_entry, _, Key, Value} ->
            {error, write_error({bad_field, Key, Value},
                <<"hand in every mandatory field, and names as UTF-8">>)};
        closed ->
            exit({noproc, {?MODULE, append, [Input]}})
    end.

%% The log knows text; layer and owner come as the atoms that the registries use.
with_texts(Input) ->
    maps:map(
        fun
            (Key, Value) when Key =:= layer; Key =:= owner ->
                case is_atom(Value) andalso Value =/= undefined of
                    true -> atom_to_binary(Value);
                    false -> Value
                end;
            (_Key, Value) ->
                Value
        end,
        Input
    ).

write_error(Reason, Hint) ->
    beamtalk_image_errors:structured(
        changelog_write_error,
        'ChangeLog',
        'append:',
        io_lib:format("the change took effect but could not be recorded: ~tP", [Reason, 20]),
        Hint,
        #{reason => Reason}
    ).

%% @doc Sets the flag of those entries that are there and ignores other numbers. The rewritten log is on disk
%% before readers see the change; on failure nothing changes.
-spec mark_flushed(Seqs :: [non_neg_integer()]) -> ok | {error, term()}.
mark_flushed([]) ->
    ok;
mark_flushed(Seqs) when is_list(Seqs) ->
    case ?READ(beamtalk_image_nif:changelog_mark_flushed(Seqs), closed) of
        {ok, Events} -> lists:foreach(fun log_event/1, Events);
        {error, Reason} -> {error, Reason};
        closed -> exit({noproc, {?MODULE, mark_flushed, [Seqs]}})
    end.

%% @doc Empties the log in memory and on disk. Body files and archives stay, numbering and epoch go on. A disk
%% that refuses leaves everything as it was and answers the reason.
-spec clear() -> ok | {error, term()}.
clear() ->
    case ?READ(beamtalk_image_nif:changelog_clear(), closed) of
        {ok, Events} -> lists:foreach(fun log_event/1, Events);
        {error, Reason} -> {error, Reason};
        closed -> exit({noproc, {?MODULE, clear, []}})
    end.

%% ---- Reading ----------------------------------------------------------------------------------------------

%% @doc All entries by rising number.
-spec entries() -> [entry()].
entries() -> ?READ(beamtalk_image_nif:changelog_entries(all), []).

%% @doc How many entries there are.
-spec size() -> non_neg_integer().
size() -> ?READ(beamtalk_image_nif:changelog_size(), 0).

%% @doc Entries of this run that are neither orphaned nor flushed.
-spec active_entries() -> [entry()].
active_entries() -> ?READ(beamtalk_image_nif:changelog_entries(active), []).

%% @doc Active entries that are durable and may be flushed.
-spec flushable_pending() -> [entry()].
flushable_pending() -> ?READ(beamtalk_image_nif:changelog_entries(pending), []).

%% @doc The number of the current run; 0 for a log in memory.
-spec epoch() -> non_neg_integer().
epoch() ->
    case ?READ(beamtalk_image_nif:changelog_epoch(), closed) of
        closed -> exit({noproc, {?MODULE, epoch, []}});
        Epoch -> Epoch
    end.

-spec entry_seq(entry()) -> non_neg_integer().
entry_seq(#change{seq = Seq}) -> Seq.

-spec entry_epoch(entry()) -> non_neg_integer().
entry_epoch(#change{epoch = Epoch}) -> Epoch.

-spec entry_class(entry()) -> binary().
entry_class(#change{class = Class}) -> Class.

-spec entry_selector(entry()) -> binary() | undefined.
entry_selector(#change{selector = Selector}) -> Selector.

-spec entry_kind(entry()) -> kind().
entry_kind(#change{kind = Kind}) -> Kind.

%% @doc The stored side, else the one that the kind tells.
-spec entry_side(entry()) -> side() | undefined.
entry_side(#change{side = Side}) -> Side.

-spec entry_flushable(entry()) -> boolean().
entry_flushable(#change{flushable = Flushable}) -> Flushable.

-spec entry_not_flushable_reason(entry()) -> binary() | undefined.
entry_not_flushable_reason(#change{not_flushable_reason = Reason}) -> Reason.

-spec entry_flushed(entry()) -> boolean().
entry_flushed(#change{flushed = Flushed}) -> Flushed.

-spec entry_intent(entry()) -> intent().
entry_intent(#change{intent = Intent}) -> Intent.

-spec entry_author_kind(entry()) -> author_kind().
entry_author_kind(#change{author_kind = Kind}) -> Kind.

-spec entry_is_orphan(entry()) -> boolean().
entry_is_orphan(#change{orphan = Orphan}) -> Orphan.

-spec entry_is_prior_epoch(entry()) -> boolean().
entry_is_prior_epoch(#change{prior_epoch = Prior}) -> Prior.

-spec entry_source_file(entry()) -> binary() | undefined.
entry_source_file(#change{source_file = File}) -> File.

-spec entry_span(entry()) -> span() | undefined.
entry_span(#change{span = undefined}) -> undefined;
entry_span(#change{span = {Start, End}}) -> #{start => Start, 'end' => End}.

-spec entry_source_ref(entry()) -> binary() | undefined.
entry_source_ref(#change{source_ref = Ref}) -> Ref.

-spec entry_prev_source_ref(entry()) -> binary() | undefined.
entry_prev_source_ref(#change{prev_source_ref = Ref}) -> Ref.

%% @doc For a removal: the layer it took the method from, `<<"extension">>' or `<<"local">>', if it was
%% recorded.
-spec entry_layer(entry()) -> binary() | undefined.
entry_layer(#change{layer = Layer}) -> Layer.

%% @doc For the removal of an extension: the package that had contributed it, if it was recorded.
-spec entry_owner(entry()) -> binary() | undefined.
entry_owner(#change{owner = Owner}) -> Owner.

%% @doc The recorded new text.
-spec read_source_body(entry()) -> {ok, binary()} | {error, term()}.
read_source_body(#change{source_ref = undefined}) -> {error, no_source};
read_source_body(#change{source_ref = Ref}) -> beamtalk_image_nif:changelog_body(Ref).

%% @doc The recorded earlier text.
-spec read_prev_source_body(entry()) -> {ok, binary()} | {error, term()}.
read_prev_source_body(#change{prev_source_ref = undefined}) -> {error, no_prev_source};
read_prev_source_body(#change{prev_source_ref = Ref}) -> beamtalk_image_nif:changelog_body(Ref).

%% @private
-spec entry_to_json(entry()) -> binary().
entry_to_json(#change{} = Entry) -> beamtalk_image_nif:changelog_to_json(Entry).

%% @private
-spec entry_from_json(binary()) -> entry().
entry_from_json(Line) when is_binary(Line) ->
    case beamtalk_image_nif:changelog_from_json(Line) of
        {ok, Entry, Events} ->
            lists:foreach(fun log_event/1, Events),
            Entry;
        {error, Why} ->
            error({not_an_entry, Why})
    end.

%% ---- Reverting --------------------------------------------------------------------------------------------

%% @doc As {@link find_revert_target/3} on whichever side the newest entry is.
-spec find_revert_target(Class :: binary(), Selector :: atom() | binary()) -> revert_target().
find_revert_target(Class, Selector) ->
    find_revert_target(Class, Selector, undefined).

%% @doc What reverting the newest active entry of a class and selector means. `remove' is answered only where
%% the method provably did not exist before. The selector `new-class' stands for the changes of the whole
%% class.
-spec find_revert_target(Class :: binary(), Selector :: atom() | binary(), Side :: side() | undefined) ->
    revert_target().
find_revert_target(Class, Selector, Side) when is_atom(Selector) ->
    find_revert_target(Class, atom_to_binary(Selector), Side);
find_revert_target(Class, Selector, Side) when is_binary(Class), is_binary(Selector) ->
    case ?READ(beamtalk_image_nif:changelog_revert_target(Class, Selector, Side), {error, no_entry}) of
        {span, #change{seq = Seq, class = Name, selector = Method, side = OnSide}, File} ->
            beamtalk_image_nif:changelog_revert_after(Seq, located(File, Name, Method, OnSide));
        Decided ->
            Decided
    end.

%% The method's text in a file, as far as the host can tell.
located(File, Class, Selector, Side) ->
    try beamtalk_image_host:method_span(File, Class, Selector, Side) of
        {ok, _Span, Body} -> {ok, Body};
        {error, selector_not_found, _} -> selector_not_found;
        {error, _, _} -> failed
    catch
        _:_ -> failed
    end.

%% ---- Value objects for the language -----------------------------------------------------------------------

%% @doc The log as a value object.
-spec changeLog() -> #{'$beamtalk_class' := 'ChangeLog', entries := [map()]}.
changeLog() ->
    #{'$beamtalk_class' => 'ChangeLog', entries => change_entries()}.

%% @doc Every entry as a value object by rising number, with what it counts for now, all of one state of the
%% log. `clean' and `diff' compare the method on disk with the recorded text, for entries that are active and
%% not shadowed. Each source file is read once; the host is asked only about entries that were not compared
%% with the same text before.
-spec change_entries() -> [map()].
change_entries() ->
    Rows = [{Row, delta(Row)} || Row <- ?READ(beamtalk_image_nif:changelog_listing(), [])],
    ok =
        case [Result || {_Row, {_Clean, _Diff, Result}} <- Rows] of
            [] -> ok;
            New -> ?READ(beamtalk_image_nif:changelog_remember(New), ok)
        end,
    [change_entry(Row, element(1, Delta), or_nil(element(2, Delta))) || {Row, Delta} <- Rows].

change_entry({#change{seq = Seq} = Entry, Active, Shadowed, _Step}, Clean, Diff) ->
    #{
        '$beamtalk_class' => 'ChangeEntry',
        seq => Seq,
        className => name(Entry#change.class),
        selector => name_or_nil(Entry#change.selector),
        kind => Entry#change.kind,
        side => or_nil(Entry#change.side),
        intent => Entry#change.intent,
        authorKind => Entry#change.author_kind,
        flushable => Entry#change.flushable,
        flushed => Entry#change.flushed,
        orphan => Entry#change.orphan,
        priorEpoch => Entry#change.prior_epoch,
        active => Active,
        shadowed => Shadowed,
        clean => Clean,
        sourceFile => or_nil(Entry#change.source_file),
        diff => Diff
    }.

%% Clean, the difference, and what is to be remembered of it. One entry must not fail the listing, and what
%% failed may succeed the next time.
delta({_Entry, _Active, _Shadowed, none}) ->
    {false, undefined};
delta({_Entry, _Active, _Shadowed, {known, Clean, Diff}}) ->
    {Clean, Diff};
delta({#change{seq = Seq} = Entry, _Active, _Shadowed, Step}) ->
    try compared(Step, Entry) of
        failed -> {false, undefined};
        {false, undefined} -> {false, undefined};
        {Clean, Diff} -> {Clean, Diff, {Seq, element(2, Step), Clean, Diff}}
    catch
        _:_ -> {false, undefined}
    end.

compared({text, _Key, Text}, _Entry) ->
    {false, beamtalk_image_host:diff(<<>>, Text)};
compared({span, _Key, File, Memory}, #change{class = Class, selector = Selector, side = Side}) ->
    case located(File, Class, Selector, Side) of
        failed -> failed;
        selector_not_found -> body_delta(<<>>, Memory);
        {ok, Disk} -> body_delta(Disk, Memory)
    end.

%% @private
%% Whether two method texts are the same but for layout, and the difference if they are not.
-spec body_delta(Disk :: binary(), Memory :: binary()) -> {true, undefined} | {false, binary() | undefined}.
body_delta(Disk, Memory) ->
    case beamtalk_image_nif:changelog_delta(Disk, Memory) of
        clean -> {true, undefined};
        {differs, OnDisk, InMemory} -> {false, beamtalk_image_host:diff(OnDisk, InMemory)}
    end.

%% @doc The selectors with active entries, by class: a Set object for each class. Shadowed and clean entries
%% count, and an entry of a whole class counts as `new-class'.
-spec dirtyMethods() -> #{Class :: atom() => Selectors :: map()}.
dirtyMethods() ->
    maps:from_list([
        {name(Class), beamtalk_image_host:make_set([name(Selector) || Selector <- Selectors])}
        || {Class, Selectors} <- ?READ(beamtalk_image_nif:changelog_dirty(), [])
    ]).

name_or_nil(undefined) -> nil;
name_or_nil(Name) -> name(Name).

%% A recorded name that no atom can spell is shown as far as one can.
name(Name) ->
    binary_to_atom(string:slice(Name, 0, 255)).

or_nil(undefined) -> nil;
or_nil(Value) -> Value.
