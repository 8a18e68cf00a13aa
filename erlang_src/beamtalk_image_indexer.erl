%% @doc Reads the sends out of extension sources, away from whoever registers them.
%%
%% The definition row of an extension stands before `register/5' returns; asking the compiler for its sends may take
%% seconds, so it happens here, one at a time, and an answer about an extension that has been replaced is dropped. What
%% is still to be done stands in the registry: after a crash this process goes on with it.
-module(beamtalk_image_indexer).
-behaviour(gen_server).

-export([start_link/0, index/3, resume/0, sync/0]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2]).

%% Jobs waiting at once. One that finds the queue full is done by its caller, which slows whoever floods it.
-define(LONGEST_QUEUE, 10_000).

%% @private
-spec start_link() -> gen_server:start_ret().
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% @doc Has the sends of one version of an extension indexed. Without the helper process, or with its queue full,
%% the caller does it.
-spec index(atom(), atom(), pos_integer()) -> ok.
index(ClassKey, Selector, Version) ->
    case accepts_work() of
        true -> gen_server:cast(?MODULE, {index, ClassKey, Selector, Version});
        false -> beamtalk_extensions:index_sends(ClassKey, Selector, Version)
    end.

%% @doc Has everything done that the registry says is still to be done. Without the helper process it waits for the
%% next start of one.
-spec resume() -> ok.
resume() ->
    gen_server:cast(?MODULE, resume).

%% @doc Waits until everything handed in before this call is done. Without the helper process nothing is pending.
-spec sync() -> ok.
sync() ->
    case whereis(?MODULE) of
        undefined -> ok;
        Pid -> sync(Pid)
    end.

sync(Pid) ->
    try
        gen_server:call(Pid, sync, infinity)
    catch
        %% It died meanwhile; its successor goes on with what was left, so it is the one to wait for.
        exit:_ -> timer:sleep(10), sync()
    end.

%% @private
-spec init([]) -> {ok, [], {continue, work_off}}.
init([]) ->
    {ok, [], {continue, work_off}}.

%% @private
-spec handle_continue(work_off, []) -> {noreply, []}.
handle_continue(work_off, []) ->
    work_off(),
    {noreply, []}.

%% In one go, so that whoever waits behind it finds everything done.
work_off() ->
    lists:foreach(
        fun({ClassKey, Selector, Version}) -> beamtalk_extensions:index_sends(ClassKey, Selector, Version) end,
        beamtalk_extensions:pending_sends()
    ).

%% @private
-spec handle_call(term(), gen_server:from(), []) -> {reply, ok | {error, unknown_request}, []}.
handle_call(sync, _From, []) ->
    {reply, ok, []};
handle_call(_Request, _From, []) ->
    {reply, {error, unknown_request}, []}.

%% @private
-spec handle_cast(term(), []) -> {noreply, []}.
handle_cast({index, ClassKey, Selector, Version}, []) ->
    ok = beamtalk_extensions:index_sends(ClassKey, Selector, Version),
    {noreply, []};
handle_cast(resume, []) ->
    work_off(),
    {noreply, []};
handle_cast(_Other, []) ->
    {noreply, []}.

accepts_work() ->
    case whereis(?MODULE) of
        undefined ->
            false;
        Pid ->
            case process_info(Pid, message_queue_len) of
                {message_queue_len, Length} -> Length < ?LONGEST_QUEUE;
                undefined -> false
            end
    end.
