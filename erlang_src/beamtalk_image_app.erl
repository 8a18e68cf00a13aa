%% @doc The application `beamtalk_image'. Its data outlives its processes; see `docs/architecture.md'.
-module(beamtalk_image_app).
-behaviour(application).

-export([start/2, stop/1]).

%% @private
-spec start(application:start_type(), term()) -> {ok, pid()} | {error, term()}.
start(_Type, _Args) ->
    beamtalk_image_sup:start_link().

%% @private
-spec stop(term()) -> ok.
stop(_State) ->
    ok.
