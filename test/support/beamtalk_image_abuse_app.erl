%% An application that opens the registries and runs the index, as a runtime does.
-module(beamtalk_image_abuse_app).
-behaviour(application).
-behaviour(supervisor).

-export([run/0, run_at_once/0, halt/0]).
-export([start/2, stop/1]).
-export([init/1]).

%% Begins a run, and waits until its index is ready.
-spec run() -> ok.
run() ->
    ok = run_at_once(),
    _ = sys:get_state(beamtalk_xref),
    beamtalk_image:sync().

-spec run_at_once() -> ok.
run_at_once() ->
    _ = application:load({application, ?MODULE, [
        {vsn, "1"}, {modules, [?MODULE]}, {registered, []}, {applications, [kernel, stdlib]},
            {mod, {?MODULE, []}}
    ]}),
    ok = application:start(?MODULE).

%% Ends it in good order.
-spec halt() -> ok.
halt() ->
    ok = application:stop(?MODULE),
    application:unload(?MODULE).

start(_Type, _Args) ->
    ok = beamtalk_extensions:init(),
    ok = beamtalk_protocol_registry:init(),
    supervisor:start_link({local, ?MODULE}, ?MODULE, []).

stop(_State) ->
    ok.

init([]) ->
    Index = #{id => beamtalk_xref, start => {beamtalk_xref, start_link, []}, shutdown => 5_000},
    {ok, {#{intensity => 1_000, period => 1}, [Index]}}.
