%% @doc Removal of a whole class from the embedded image, in the runtime's order: what the ChangeLog must keep
%% is read before anything is torn down, the registries follow the class, the record comes last.
-module(beamtalk_embedded_removal).

-export([remove_from_system/1]).

%% @doc Removes a class and answers nil. A class of the library, one with subclasses and one that does not
%% exist are refused, and nothing changes.
-spec remove_from_system(atom()) -> nil.
remove_from_system(Name) ->
    case beamtalk_embedded_table:class(Name) of
        undefined ->
            beamtalk_live_errors:raise(class_not_found, Name, removeFromSystem,
                io_lib:format("there is no class ~ts", [Name]), undefined);
        #{module := beamtalk_protocol_object} ->
            beamtalk_live_errors:raise(runtime_error, Name, removeFromSystem,
                io_lib:format("~ts is a protocol, not a class", [Name]), undefined);
        #{origin := stdlib} ->
            beamtalk_live_errors:raise(runtime_error, Name, removeFromSystem,
                io_lib:format("~ts belongs to the standard library and cannot be removed", [Name]),
                <<"remove single methods with removeSelector:">>);
        #{pid := Pid, module := Module} = Row ->
            refuse_if_subclassed(Name, beamtalk_embedded_table:subclasses(Name)),
            Snapshot = beamtalk_remove_class:snapshot(Name),
            ok = beamtalk_embedded_class:stop(Pid),
            ok = beamtalk_image:class_removed(Name, Module),
            _ = is_map_key(beam, Row) andalso beamtalk_embedded_loader:unload(Module),
            ok = beamtalk_remove_class:record(Snapshot),
            nil
    end.

refuse_if_subclassed(_Name, []) ->
    ok;
refuse_if_subclassed(Name, Subclasses) ->
    beamtalk_live_errors:raise(runtime_error, Name, removeFromSystem,
        io_lib:format("~ts has subclasses: ~ts", [Name, lists:join(", ", [atom_to_list(S) || S <- Subclasses])]),
        <<"remove its subclasses first">>).
