%% Puts stand-ins for the original modules, table-shaped and with the original names, in place of ours, and
%% back.
-module(beamtalk_image_originals).

-export([modules/0, install/1, restore/0, is_original/1]).

-spec modules() -> [module()].
modules() ->
    [beamtalk_extensions, beamtalk_xref, beamtalk_protocol_registry].

%% Loads the stand-ins of these modules; no process may run the modules meanwhile.
-spec install([module()]) -> ok.
install(Modules) ->
    lists:foreach(fun load/1, Modules).

%% Loads ours again, wherever a stand-in is loaded.
-spec restore() -> ok.
restore() ->
    lists:foreach(
        fun(Module) ->
            ok = replace(Module, fun() -> code:load_file(Module) end)
        end,
        [Module || Module <- modules(), is_original(Module)]
    ).

-spec is_original(module()) -> boolean().
is_original(Module) ->
    code:which(Module) =:= path(Module).

load(Module) ->
    {ok, Forms} = epp:parse_file(path(Module), []),
    {ok, Module, Beam} = compile:forms(Forms, [nowarn_missing_spec, return_errors]),
    ok = replace(Module, fun() -> code:load_binary(Module, path(Module), Beam) end).

replace(Module, Load) ->
    true = code:soft_purge(Module),
    {module, Module} = Load(),
    true = code:soft_purge(Module),
    ok.

path(Module) ->
    beamtalk_image_fixtures:path(filename:join("test/support/originals", atom_to_list(Module) ++ ".txt")).
