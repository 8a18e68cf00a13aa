%% @doc An actor of the embedded image: a process with a state, whose methods run in it one at a time.
-module(beamtalk_embedded_actor).
-behaviour(gen_server).

-export([start/1, send/3]).
-export([init/1, handle_call/3, handle_cast/2]).

-define(TIMEOUT, 5_000).

%% @doc Starts an actor of a class with the default values of its fields.
-spec start(atom()) -> {beamtalk_object, atom(), module(), pid()}.
start(Class) ->
    {ok, Pid} = gen_server:start(?MODULE, Class, []),
    #{module := Module} = beamtalk_embedded_table:class(Class),
    {beamtalk_object, Class, Module, Pid}.

%% @doc Sends a message to an actor; what its method raises is raised in the sender.
-spec send(pid(), atom(), [term()]) -> term().
send(Pid, Selector, Args) ->
    case gen_server:call(Pid, {send, Selector, Args}, ?TIMEOUT) of
        {ok, Answer} -> Answer;
        {raised, Class, Reason, Stack} -> erlang:raise(Class, Reason, Stack)
    end.

%% @private
-spec init(atom()) -> {ok, {tuple(), map()}}.
init(Class) ->
    #{module := Module} = beamtalk_embedded_table:class(Class),
    {ok, {{beamtalk_object, Class, Module, self()}, beamtalk_embedded_dispatch:fields(Class)}}.

%% @private
-spec handle_call(term(), gen_server:from(), State) -> {reply, term(), State}.
handle_call({send, Selector, Args}, _From, {Self, State}) ->
    try beamtalk_embedded_dispatch:self_send(Selector, Args, Self, State) of
        {Answer, Next} -> {reply, {ok, Answer}, {Self, Next}}
    catch
        Class:Reason:Stack -> {reply, {raised, Class, Reason, Stack}, {Self, State}}
    end;
handle_call(_Request, _From, State) ->
    {reply, {error, unknown_request}, State}.

%% @private
-spec handle_cast(term(), State) -> {noreply, State}.
handle_cast(_Message, State) ->
    {noreply, State}.
