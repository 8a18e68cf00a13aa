%% @doc Changes of single methods that the ChangeLog keeps, and taking changes back.
-module(beamtalk_embedded_changes).

-include_lib("kernel/include/logger.hrl").

-export([compile/4, patch/3, new_class/2, revert/1, refuse_library_protocol/2]).

%% @doc Compiles a text as the method of the selector; a text that defines another one is refused.
-spec compile(atom(), instance | class, atom(), binary()) -> atom().
compile(Class, Side, Selector, Text) ->
    case beamtalk_reading:fragment(Text) of
        {ok, {method, Other, _, _, _, _}} when Other =/= Selector ->
            beamtalk_live_errors:raise(compile_error, Class, Selector,
                io_lib:format("the text defines #~ts, not #~ts", [Other, Selector]), undefined);
        _ ->
            patch(Class, Side, Text)
    end.

%% @doc Puts a method into a running class and records it. Answers its selector.
-spec patch(atom(), instance | class, binary()) -> atom().
patch(Class, Side, Text) ->
    patch(Class, Side, Text, #{}).

patch(Class, Side, Text, Author) ->
    Selector = beamtalk_embedded_loader:patch(Class, Side, Text),
    Details = patched(beamtalk_image_host:class_origin(Class), Class, Selector, Side),
    record(maps:merge(Details, Author#{
        class => atom_to_binary(Class), selector => atom_to_binary(Selector), kind => Side, side => Side, source => Text
    })),
    Selector.

%% A method that its file lacks is one to be added there.
patched(Origin, Class, Selector, Side) ->
    case {beamtalk_remove_selector:classified(Origin, Class, Selector, Side, undefined), Origin} of
        {#{not_flushable_reason := <<"not_on_disk">>}, {file, File}} -> #{flushable => true, source_file => File};
        {Details, _} -> Details
    end.

%% @doc Refuses the change of a method of a protocol that belongs to the library.
-spec refuse_library_protocol(atom(), Selector :: term()) -> ok.
refuse_library_protocol(_Protocol, NoSymbol) when not is_atom(NoSymbol) ->
    ok;
refuse_library_protocol(Protocol, Selector) ->
    case beamtalk_embedded_table:protocol(Protocol) of
        {ok, stdlib} ->
            beamtalk_live_errors:raise(runtime_error, 'Protocol', Selector,
                io_lib:format("Cannot recompile '~ts' on stdlib protocol '~ts': built-in protocols are read-only "
                    "in the workspace", [Selector, Protocol]),
                undefined);
        _ ->
            ok
    end.

%% @doc Records a class that was defined at a prompt, where it belongs to no file.
-spec new_class(atom(), binary()) -> ok.
new_class(Class, Text) ->
    record(#{class => atom_to_binary(Class), kind => 'new-class', source => Text, flushable => false,
        not_flushable_reason => <<"dynamic">>}).

record(Details) ->
    {Kind, Author} = beamtalk_image_host:author(),
    Entry = maps:merge(#{intent => durable, author => Author, author_kind => Kind}, Details),
    try beamtalk_workspace_changelog:append(Entry) of
        {ok, _Seq} -> ok;
        {error, Reason} -> warn(Entry, Reason)
    catch
        _:Reason -> warn(Entry, Reason)
    end.

warn(#{class := Class}, Reason) ->
    ?LOG_WARNING("a change of ~ts took effect but could not be recorded: ~tp", [Class, Reason],
        #{domain => [beamtalk, runtime]}).

%% @doc Takes the newest change of the entry's method or class back, by the entry's number. What it brings
%% back is a change of its own; an addition that is taken back is not.
-spec revert(non_neg_integer()) -> nil.
revert(Seq) ->
    IsIt = fun(Entry) -> beamtalk_workspace_changelog:entry_seq(Entry) =:= Seq end,
    case lists:filter(IsIt, beamtalk_workspace_changelog:entries()) of
        [Entry] ->
            Class = beamtalk_workspace_changelog:entry_class(Entry),
            Selector = selector(beamtalk_workspace_changelog:entry_selector(Entry)),
            Side = beamtalk_workspace_changelog:entry_side(Entry),
            reverted(beamtalk_workspace_changelog:find_revert_target(Class, Selector, Side));
        [] ->
            nothing(no_entry)
    end.

selector(undefined) -> <<"new-class">>;
selector(Selector) -> Selector.

reverted({ok, Body, Entry}) ->
    Class = class(Entry),
    Side = beamtalk_workspace_changelog:entry_side(Entry),
    case beamtalk_workspace_changelog:entry_layer(Entry) of
        <<"extension">> -> extended(Class, Side, Body, owner(Entry));
        _ -> patch(Class, Side, Body, #{author => <<"repl/revert">>})
    end,
    nil;
reverted({remove, Entry}) ->
    case beamtalk_workspace_changelog:entry_kind(Entry) of
        'new-class' ->
            _ = beamtalk_embedded_removal:remove_from_system(class(Entry));
        _ ->
            Selector = binary_to_existing_atom(beamtalk_workspace_changelog:entry_selector(Entry)),
            removed(beamtalk_image_host:remove_method(class(Entry), Selector,
                beamtalk_workspace_changelog:entry_side(Entry)))
    end,
    nil;
reverted({reinstall_class, Text, Entry}) ->
    Origin =
        case beamtalk_workspace_changelog:entry_source_file(Entry) of
            undefined -> dynamic;
            File -> {file, File}
        end,
    _ = beamtalk_embedded_loader:text(Text, Origin),
    _ = beamtalk_workspace_changelog:mark_flushed([beamtalk_workspace_changelog:entry_seq(Entry)]),
    nil;
reverted({error, Reason}) ->
    nothing(Reason).

removed(removed) -> ok;
removed(absent) -> ok;
removed({error, Error}) -> beamtalk_image_host:raise_error(Error).

nothing(no_entry) ->
    beamtalk_live_errors:raise(runtime_error, 'Workspace', 'revert:', <<"there is no such change to take back">>,
        <<"see `Workspace changes`">>);
nothing(no_prev_source) ->
    beamtalk_live_errors:raise(runtime_error, 'Workspace', 'revert:',
        <<"what stood there before is not recorded">>, undefined).

class(Entry) -> binary_to_existing_atom(beamtalk_workspace_changelog:entry_class(Entry)).

owner(Entry) ->
    case beamtalk_workspace_changelog:entry_owner(Entry) of
        undefined -> workspace;
        Owner -> binary_to_atom(Owner)
    end.

%% The text on disk names the class that it extends; the one that ran does not.
extended(Class, Side, Body, Owner) ->
    Origin =
        case beamtalk_embedded_table:owner(Owner) of
            {ok, Known} -> Known;
            undefined -> dynamic
        end,
    Text =
        case beamtalk_reading:items(Body) of
            {ok, [{extension, _, _} | _]} -> Body;
            _ -> [target(Class, Side), Body]
        end,
    beamtalk_embedded_loader:extension(iolist_to_binary(Text), Owner, Origin).

target(Class, instance) -> [atom_to_binary(Class), " >> "];
target(Class, class) -> [atom_to_binary(Class), " class >> "].
