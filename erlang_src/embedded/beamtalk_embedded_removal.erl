%% @doc Removal of a whole class from the embedded image, in the runtime's order: what the ChangeLog must keep
%% is read before anything is torn down, the registries follow the class, the record comes last.
-module(beamtalk_embedded_removal).

-include_lib("kernel/include/logger.hrl").

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
            ok = beamtalk_embedded_class:stop(Pid),
            ok = beamtalk_image:class_removed(Name, Module),
            _ = is_map_key(beam, Row) andalso beamtalk_embedded_loader:unload(Module),
            record(Name, Row),
            nil
    end.

refuse_if_subclassed(_Name, []) ->
    ok;
refuse_if_subclassed(Name, Subclasses) ->
    beamtalk_live_errors:raise(runtime_error, Name, removeFromSystem,
        io_lib:format("~ts has subclasses: ~ts", [Name, lists:join(", ", [atom_to_list(S) || S <- Subclasses])]),
        <<"remove its subclasses first">>).

record(Name, Row) ->
    {Kind, Author} = beamtalk_image_host:author(),
    Entry = maps:merge(
        #{class => atom_to_binary(Name), kind => 'remove-class', intent => durable, author => Author,
            author_kind => Kind},
        maps:merge(located(maps:get(origin, Row)), prior(maps:get(source, Row)))
    ),
    try beamtalk_workspace_changelog:append(Entry) of
        {ok, _Seq} -> ok;
        {error, Reason} -> warn(Name, Reason)
    catch
        _:Reason -> warn(Name, Reason)
    end.

located(dynamic) -> #{flushable => false, not_flushable_reason => <<"dynamic">>};
located({file, File}) ->
    case beamtalk_image_host:file_scope(File) of
        project -> #{flushable => true, source_file => File};
        dependency -> #{flushable => false, not_flushable_reason => <<"dependency:", File/binary>>}
    end.

prior(undefined) -> #{};
prior(Source) -> #{prev_source => Source}.

warn(Name, Reason) ->
    ?LOG_WARNING("the removal of class ~ts took effect but could not be recorded: ~tp", [Name, Reason],
        #{domain => [beamtalk, runtime]}).
