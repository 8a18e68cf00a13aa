%% An application that opens the registries and runs the index, as a runtime does.
-module(beamtalk_image_abuse_app).
-behaviour(application).
-behaviour(supervisor).

-export([run/0, run_at_once/0, halt/0, halt_and_wait/0]).
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

%% The same, and waits until its registries have gone with it, which the guard sees to once it hears.
-spec halt_and_wait() -> ok.
halt_and_wait() ->
    ok = ?MODULE:halt(),
    gone(500).

gone(Tries) ->
    case beamtalk_image:info() of
        #{extensions := #{entries := 0}, protocols := #{protocols := 0, users := 0}} -> ok;
        _ when Tries > 0 -> timer:sleep(10), gone(Tries - 1);
        Left -> {still_there, Left}
    end.

start(_Type, _Args) ->
    ok = beamtalk_extensions:init(),
    ok = beamtalk_protocol_registry:init(),
    supervisor:start_link({local, ?MODULE}, ?MODULE, []).

stop(_State) ->
    ok.

init([]) ->
    Index = #{id => beamtalk_xref, start => {beamtalk_xref, start_link, []}, shutdown => 5_000},
    {ok, {#{intensity => 1_000, period => 1}, [Index]}}.
