%% @doc Empties a registry when the application run that opened it ends.
%%
%% Extensions and protocols live as long as the application that called their `init/0'. Tables would die with their
%% owner; native stores do not, so the run is known by its application master: a store opened under another master
%% than the one on record starts empty, and the guard empties it as soon as the master goes.
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
%% lives as long as the node.
-spec opened(store()) -> ok.
opened(Store) ->
    case {application:get_application(), group_leader()} of
        {undefined, _} ->
            ok;
        {{ok, _App}, Master} ->
            case persistent_term:get(?MASTER(Store), Master) of
                Master -> ok;
                Earlier -> is_running(Earlier) orelse clear(Store)
            end,
            persistent_term:put(?MASTER(Store), Master),
            gen_server:cast(?MODULE, {watch, Store, Master})
    end.

%% @private
-spec init([]) -> {ok, #{reference() => {store(), pid()}}}.
init([]) ->
    Known = [{Store, Master} || Store <- [extensions, protocols],
        Master <- [persistent_term:get(?MASTER(Store), undefined)], Master =/= undefined],
    {ok, lists:foldl(fun watch/2, #{}, Known)}.

%% @private
-spec handle_call(term(), gen_server:from(), State) -> {reply, {error, unknown_request}, State}.
handle_call(_Request, _From, Watched) ->
    {reply, {error, unknown_request}, Watched}.

%% @private
-spec handle_cast(term(), State) -> {noreply, State}.
handle_cast({watch, Store, Master}, Watched) ->
    case lists:member({Store, Master}, maps:values(Watched)) of
        true -> {noreply, Watched};
        false -> {noreply, watch({Store, Master}, Watched)}
    end;
handle_cast(_Other, Watched) ->
    {noreply, Watched}.

%% @private
-spec handle_info(term(), State) -> {noreply, State}.
handle_info({'DOWN', Ref, process, Master, _Reason}, Watched) ->
    case maps:take(Ref, Watched) of
        {{Store, Master}, Rest} ->
            %% A new run may have opened the store meanwhile; it started empty and must stay as it is.
            persistent_term:get(?MASTER(Store), undefined) =:= Master andalso clear(Store),
            {noreply, Rest};
        error ->
            {noreply, Watched}
    end;
handle_info(_Other, Watched) ->
    {noreply, Watched}.

watch({Store, Master}, Watched) ->
    Watched#{erlang:monitor(process, Master) => {Store, Master}}.

is_running(Master) ->
    node(Master) =:= node() andalso is_process_alive(Master).

clear(Store) ->
    beamtalk_image:clear(Store).
