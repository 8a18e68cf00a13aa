%% What a case must not leave behind. A suite takes a picture before a case and compares after it.
-module(beamtalk_image_leftovers).

-export([picture/0, assert_none/1, close_index/0, empty/0]).

-include_lib("stdlib/include/assert.hrl").

-type picture() :: #{atom() => term()}.

%% Processes, names, tables, log settings and loaded code that belong to the image or its test supports.
-spec picture() -> picture().
picture() ->
    #{primary := #{filters := Filters, level := Level}} = logger:get_config(),
    #{
        names => lists:sort([Name || Name <- registered(), is_ours(Name)]),
        tables => lists:sort([Table || Table <- ets:all(), is_atom(Table), is_ours(Table)]),
        processes => lists:sort([Pid || Pid <- processes(), Pid =/= self(), runs_ours(Pid)]),
        host => beamtalk_image_host:module(),
        code => [{Module, code:which(Module), erlang:check_old_code(Module)} || Module <- replaceable()],
        log_filters => lists:sort([Id || {Id, _} <- Filters]),
        log_level => Level,
        log_module_levels => lists:sort(logger:get_module_level())
    }.

replaceable() ->
    [beamtalk_extensions, beamtalk_xref, beamtalk_protocol_registry].

is_ours(Name) ->
    lists:prefix("beamtalk_", atom_to_list(Name)).

runs_ours(Pid) ->
    case proc_lib:initial_call(Pid) of
        {Module, _, _} -> is_ours(Module);
        false -> false
    end.

%% Nothing is there that was not there before, and the registries are empty.
-spec assert_none(picture()) -> ok.
assert_none(Before) ->
    ?assertEqual(Before, picture()),
    ?assertExit({noproc, _}, beamtalk_xref:purge_class(?MODULE)),
    Info = beamtalk_image:info(),
    ?assertEqual([], lists:flatmap(fun(Store) -> held(Store, Info) end, [extensions, xref, protocols])).

%% Every count of a store; versions only rise, and an empty store has a size.
held(Store, Info) ->
    Counts = maps:without([version, bytes], maps:get(Store, Info)),
    [{Store, Key, Count} || {Key, Count} <- maps:to_list(Counts), Count =/= 0].

%% Ends the index in order, whoever opened it and whether or not its process still runs.
-spec close_index() -> ok.
close_index() ->
    Pid =
        case whereis(beamtalk_xref) of
            undefined ->
                {ok, Started} = beamtalk_xref:start_link(),
                Started;
            Running ->
                Running
        end,
    unlink(Pid),
    ok = gen_server:stop(Pid).

%% Empties every registry and closes the index.
-spec empty() -> ok.
empty() ->
    ok = close_index(),
    ok = beamtalk_image:clear(extensions),
    ok = beamtalk_image:clear(xref),
    ok = beamtalk_image:clear(protocols).
