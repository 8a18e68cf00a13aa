%% @doc An actor of the embedded image: a process with a state, whose methods run in it one at a time. It ends
%% with its class and with the image.
-module(beamtalk_embedded_actor).
-behaviour(gen_server).

-export([start/2, send/3, cast/3]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(TIMEOUT, 5_000).

%% @doc Starts an actor of a class. Its slots have their default values, but for those given; then it is sent
%% `initialize', if it understands that. What that raises is raised here.
-spec start(atom(), map()) -> {beamtalk_object, atom(), module(), pid()}.
start(Class, Slots) ->
    #{module := Module} = beamtalk_embedded_table:class(Class),
    case gen_server:start(?MODULE, {Class, Slots}, []) of
        {ok, Pid} -> {beamtalk_object, Class, Module, Pid};
        {error, {raised, Kind, Reason, Stack}} -> erlang:raise(Kind, Reason, Stack)
    end.

%% @doc Sends a message to an actor; what its method raises is raised in the sender.
-spec send(pid(), atom(), [term()]) -> term().
send(Pid, Selector, Args) ->
    case gen_server:call(Pid, {send, Selector, Args}, ?TIMEOUT) of
        {ok, Answer} -> Answer;
        {raised, Class, Reason, Stack} -> erlang:raise(Class, Reason, Stack)
    end.

%% @doc Sends a message to an actor and does not wait; what its method raises is lost.
-spec cast(pid(), atom(), [term()]) -> ok.
cast(Pid, Selector, Args) ->
    gen_server:cast(Pid, {send, Selector, Args}).

%% @private
-spec init({atom(), map()}) -> {ok, {tuple(), map()}} | {stop, term()}.
init({Class, Slots}) ->
    #{module := Module, pid := ClassPid} = beamtalk_embedded_table:class(Class),
    _ = monitor(process, ClassPid),
    _ = monitor(process, beamtalk_embedded_table),
    Self = {beamtalk_object, Class, Module, self()},
    State = maps:merge(beamtalk_embedded_dispatch:fields(Class), Slots),
    case beamtalk_embedded_dispatch:understands(Class, initialize) of
        false ->
            {ok, {Self, State}};
        true ->
            try beamtalk_embedded_dispatch:self_send(initialize, [], Self, State) of
                {_Answer, Next} -> {ok, {Self, Next}}
            catch
                Kind:Reason:Stack -> {stop, {raised, Kind, Reason, Stack}}
            end
    end.

%% @private
-spec handle_call(term(), gen_server:from(), State) -> {reply, term(), State}.
handle_call({send, Selector, Args}, _From, {Self, State}) ->
    try beamtalk_embedded_dispatch:self_send(Selector, Args, Self, State) of
        {Answer, Next} ->
            ok = beamtalk_embedded_eval:sweep(Next),
            {reply, {ok, Answer}, {Self, Next}}
    catch
        Class:Reason:Stack -> {reply, {raised, Class, Reason, Stack}, {Self, State}}
    end;
handle_call(_Request, _From, State) ->
    {reply, {error, unknown_request}, State}.

%% @private
-spec handle_cast(term(), State) -> {noreply, State}.
handle_cast({send, Selector, Args}, {Self, State}) ->
    try beamtalk_embedded_dispatch:self_send(Selector, Args, Self, State) of
        {_Answer, Next} -> {noreply, {Self, Next}}
    catch
        _Class:_Reason -> {noreply, {Self, State}}
    end;
handle_cast(_Message, State) ->
    {noreply, State}.

%% @private
-spec handle_info(term(), State) -> {noreply, State} | {stop, normal, State}.
handle_info({'DOWN', _, process, _, _}, State) ->
    {stop, normal, State};
handle_info(_Message, State) ->
    {noreply, State}.
