%% @doc What the ChangeLog keeps of a class that leaves the system.
%%
%% The text and where it lives must be read before the class is torn down, and the record comes last, when the removal has
%% taken effect: {@link snapshot/1}, the teardown with `beamtalk_image:class_removed/2' in it, {@link record/1}.
-module(beamtalk_remove_class).

-include_lib("kernel/include/logger.hrl").

-export([snapshot/1, record/1]).
-export_type([snapshot/0]).

-opaque snapshot() :: beamtalk_workspace_changelog:append_input().

%% @doc What a `remove-class' entry will say: the class's whole text, its file if a flush may delete it and otherwise why it
%% may not, and who removes it. Asks the host, so it must run before the class is gone.
-spec snapshot(Class :: atom()) -> snapshot().
snapshot(Class) when is_atom(Class) ->
    {Kind, Author} = beamtalk_image_host:author(),
    Entry = #{class => atom_to_binary(Class), kind => 'remove-class', intent => durable, author => Author, author_kind => Kind},
    maps:merge(Entry, maps:merge(located(beamtalk_image_host:class_origin(Class)), prior(beamtalk_image_host:class_source(Class)))).

%% @doc Appends the entry. A log that fails is warned about; the removal has happened all the same.
-spec record(snapshot()) -> ok.
record(#{class := Class} = Snapshot) ->
    try beamtalk_workspace_changelog:append(Snapshot) of
        {ok, _Seq} -> ok;
        {error, Reason} -> warn(Class, Reason)
    catch
        _:Reason -> warn(Class, Reason)
    end.

located(stdlib) ->
    #{flushable => false, not_flushable_reason => <<"stdlib">>};
located(dynamic) ->
    #{flushable => false, not_flushable_reason => <<"dynamic">>};
located({file, File}) ->
    case beamtalk_image_host:file_scope(File) of
        project -> #{flushable => true, source_file => File};
        dependency -> #{flushable => false, not_flushable_reason => <<"dependency:", File/binary>>}
    end.

prior(undefined) -> #{};
prior(Source) -> #{prev_source => Source}.

warn(Class, Reason) ->
    ?LOG_WARNING("the removal of class ~ts took effect but could not be recorded: ~tp", [Class, Reason],
        #{domain => [beamtalk, runtime]}).
