%% A node of its own for a test that could end one: a VM exit becomes a failure with a name.
-module(beamtalk_image_abuse_node).

-export([start/0, start/1, stop/1, call/3, call/4]).
-export([apply_safely/3]).

%% A node with the code path of this one.
-spec start() -> pid().
start() ->
    start([Dir || Dir <- code:get_path(), filename:pathtype(Dir) =:= absolute]).

-spec start([file:filename()]) -> pid().
start(Path) ->
    {ok, Peer, _Node} = peer:start_link(#{
        connection => standard_io,
        wait_boot => 60_000,
        args => lists:append([["-pa", Dir] || Dir <- Path]),
        env => [{"ERL_CRASH_DUMP_SECONDS", "0"}]
    }),
    Peer.

-spec stop(pid()) -> ok.
stop(Peer) ->
    peer:stop(Peer).

-spec call(pid(), module(), atom()) -> term().
call(Peer, Module, Function) ->
    call(Peer, Module, Function, []).

%% What the function answers on the node; what it raises is raised here; the node's end is `vm_exit'.
-spec call(pid(), module(), atom(), [term()]) -> term().
call(Peer, Module, Function, Args) ->
    %% The answer of the node's last act is lost when the node goes, so the peer's own process is watched.
    Monitor = erlang:monitor(process, Peer),
    Trap = process_flag(trap_exit, true),
    try
        peer:call(Peer, ?MODULE, apply_safely, [Module, Function, Args], 180_000)
    of
        {answer, Answer} -> Answer;
        {raised, Class, Reason, Stack} -> erlang:raise(Class, Reason, Stack)
    catch
        exit:Reason when not is_map(Reason) ->
            receive
                {'DOWN', Monitor, process, Peer, Why} -> error({vm_exit, {Module, Function, Args}, Why})
            after 1_000 ->
                exit(Reason)
            end
    after
        process_flag(trap_exit, Trap),
        erlang:demonitor(Monitor, [flush])
    end.

%% Runs on the node.
-spec apply_safely(module(), atom(), [term()]) -> {answer, term()} | {raised, atom(), term(), list()}.
apply_safely(Module, Function, Args) ->
    try
        {answer, apply(Module, Function, Args)}
    catch
        Class:Reason:Stack -> {raised, Class, Reason, Stack}
    end.
