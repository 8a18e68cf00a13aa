%% @doc Supervises the helpers of the image: the log reader, the guard over application ends and the background
%% indexer. None of them holds data, so a restart loses nothing.
-module(beamtalk_image_sup).
-behaviour(supervisor).

-export([start_link/0]).
-export([init/1]).

%% @private
-spec start_link() -> supervisor:startlink_ret().
start_link() ->
    supervisor:start_link({local, ?MODULE}, ?MODULE, []).

%% @private
-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    %% A crash here must never take the image down: many restarts are allowed before giving up.
    Flags = #{strategy => one_for_one, intensity => 100, period => 10},
    {ok, {Flags, [worker(Module) || Module <- [beamtalk_image_log, beamtalk_image_guard, beamtalk_image_indexer]]}}.

worker(Module) ->
    #{id => Module, start => {Module, start_link, []}, restart => permanent, shutdown => 5_000, type => worker}.
