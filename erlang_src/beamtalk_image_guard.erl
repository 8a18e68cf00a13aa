%% @doc Empties a registry when the application run that opened it ends.
%%
%% Extensions and protocols live as long as the application that called their `init/0'. Tables would die with their
%% owner; native stores do not, so the run is known by its application master: a store opened under another master
%% than the one on record starts empty, and the guard empties it as soon as the master goes. All of it happens in one
%% process, so a late end of one run never empties what the next has registered.
-module(beamtalk_image_guard).
-behaviour(gen_server).

-export([start_link/0, opened/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-type store() :: extensions | protocols.

-define(MASTER(Store), {?MODULE, Store}).

%% @private
-spec start_link() -> gen_server:start_ret().
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% @doc Notes that the calling application opened the store. Outside an application it notes nothing, and the store
%% lives as long as the node. Without the guard's process the store is still emptied at the next run's start.
-spec opened(store()) -> ok.
opened(Store) ->
    case application:get_application() of
        undefined -> ok;
        {ok, _App} -> opened(Store, group_leader())
    end.

opened(Store, Master) ->
    try
        gen_server:call(?MODULE, {opened, Store, Master}, infinity)
    catch
        exit:_ -> note(Store, Master)
    end.

%% @private
-spec init([]) -> {ok, #{reference() => {store(), pid()}}}.
init([]) ->
    Known = [{Store, Master} || Store <- [extensions, protocols],
        Master <- [persistent_term:get(?MASTER(Store), undefined)], Master =/= undefined],
    {ok, lists:foldl(fun watch/2, #{}, Known)}.

%% @private
-spec handle_call(term(), gen_server:from(), State) -> {reply, ok | {error, unknown_request}, State}.
handle_call({opened, Store, Master}, _From, Watched) ->
    ok = note(Store, Master),
    case lists:member({Store, Master}, maps:values(Watched)) of
        true -> {reply, ok, Watched};
        false -> {reply, ok, watch({Store, Master}, Watched)}
    end;
handle_call(_Request, _From, Watched) ->
    {reply, {error, unknown_request}, Watched}.

%% @private
-spec handle_cast(term(), State) -> {noreply, State}.
handle_cast(_Message, Watched) ->
    {noreply, Watched}.

%% @private
-spec handle_info(term(), State) -> {noreply, State}.
handle_info({'DOWN', Ref, process, Master, _Reason}, Watched) ->
    case maps:take(Ref, Watched) of
        {{Store, Master}, Rest} ->
            persistent_term:get(?MASTER(Store), undefined) =:= Master andalso ended(Store),
            {noreply, Rest};
        error ->
            {noreply, Watched}
    end;
handle_info(_Other, Watched) ->
    {noreply, Watched}.

note(Store, Master) ->
    case persistent_term:get(?MASTER(Store), Master) of
        Master -> ok;
        Earlier -> is_running(Earlier) orelse clear(Store)
    end,
    persistent_term:put(?MASTER(Store), Master).

ended(Store) ->
    clear(Store),
    persistent_term:erase(?MASTER(Store)).

watch({Store, Master}, Watched) ->
    Watched#{erlang:monitor(process, Master) => {Store, Master}}.

is_running(Master) ->
    node(Master) =:= node() andalso is_process_alive(Master).

%% A store without its library is empty already.
clear(Store) ->
    try
        beamtalk_image:clear(Store)
    catch
        error:{nif_not_loaded, _} -> ok
    end.
