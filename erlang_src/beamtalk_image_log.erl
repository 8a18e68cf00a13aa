%% @doc Turns what the library reports about itself into logger events of the domain `[beamtalk, runtime]'.
-module(beamtalk_image_log).
-behaviour(gen_server).

-include_lib("kernel/include/logger.hrl").

-export([start_link/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

%% @private
-spec start_link() -> gen_server:start_ret().
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% @private
-spec init([]) -> {ok, []}.
init([]) ->
    case beamtalk_image_nif:load_error() of
        none ->
            ok = beamtalk_image_nif:log_to_me();
        Reason ->
            ?LOG_ERROR("beamtalk_image: the native library is not loaded, so nothing can be registered: ~tp; "
                "build it with native/build.sh and restart", [Reason], #{domain => [beamtalk, runtime]})
    end,
    {ok, []}.

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
handle_info({?MODULE, Level, Target, Text}, []) ->
    logger:log(Level, "~ts: ~ts", [Target, Text], #{domain => [beamtalk, runtime]}),
    {noreply, []};
handle_info(_Message, []) ->
    {noreply, []}.
