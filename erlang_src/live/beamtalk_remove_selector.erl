%% @doc Removal of a method from a running class: `removeSelector:' and `removeSelector:ifAbsent:' (ADR 0112).
%%
%% What dispatch would find goes: an extension first, then the class's own method; a second removal takes what the
%% first one laid bare. Neither the library's classes nor sealed methods are refused, their removal is merely not
%% flushable. Each removal is recorded in the ChangeLog, best effort: a log that fails warns and the removal stands.
-module(beamtalk_remove_selector).

-include_lib("kernel/include/logger.hrl").

-export([classRemoveSelector/2, classRemoveSelectorIfAbsent/3, remove/3, classified/5]).
-export_type([details/0]).

-type side() :: instance | class.
-type layer() :: extension | local.
-type details() :: #{owner => atom(), prev_source => binary(), source_file => binary(), flushable := boolean(),
    not_flushable_reason => binary()}.
-type class_object() :: {beamtalk_object, atom(), module(), pid()}.

%% @doc Removes the method and answers the receiver, a class for its instance side or a metaclass for the class side.
%% Absent: raises `selector_not_found'; not a symbol: `type_error'; a class that does not compile without the method:
%% `runtime_error'. In each case nothing has changed.
-spec classRemoveSelector(Self :: class_object(), Selector :: term()) -> class_object().
classRemoveSelector(Self, Selector) ->
    removed_or(Self, Selector, fun(Class, Side, _Pid) -> not_found(Class, Selector, Side) end).

%% @doc The same, but answers the value of the block where the selector is absent. The block runs where blocks handed
%% to a class run, in its process.
-spec classRemoveSelectorIfAbsent(Self :: class_object(), Selector :: term(), Block :: fun(() -> term())) ->
    class_object() | term().
classRemoveSelectorIfAbsent(Self, Selector, Block) when is_function(Block, 0) ->
    removed_or(Self, Selector, fun(_Class, _Side, Pid) -> beamtalk_image_host:run_in_class(Pid, Block) end);
classRemoveSelectorIfAbsent({beamtalk_object, _, _, Pid}, Selector, _NoBlock) ->
    Class = beamtalk_image_host:class_name(Pid),
    beamtalk_live_errors:raise(type_error, Class, 'removeSelector:ifAbsent:',
        io_lib:format("the second argument for ~tp must be a block without parameters", [Selector]),
        <<"write removeSelector: #sel ifAbsent: [...]">>).

removed_or({beamtalk_object, Receiver, _Module, Pid} = Self, Selector, Absent) when is_atom(Selector) ->
    Class = beamtalk_image_host:class_name(Pid),
    Side = side(Receiver),
    case remove(Class, Selector, Side) of
        {removed, _Layer, _Details} -> Self;
        absent -> Absent(Class, Side, Pid)
    end;
removed_or({beamtalk_object, _Receiver, _Module, Pid}, Selector, _Absent) ->
    beamtalk_live_errors:raise(type_error, beamtalk_image_host:class_name(Pid), 'removeSelector:',
        io_lib:format("removeSelector: takes a symbol, not ~ts", [printed(Selector)]),
        <<"write the selector as a symbol, such as #increment or #at:put:">>).

side('Metaclass') -> class;
side(_) -> instance.

printed(Binary) when is_binary(Binary) -> io_lib:format("\"~ts\"", [Binary]);
printed(Term) -> io_lib:format("~tp", [Term]).

%% @doc Removes the method that dispatch finds at exactly this class and side. Of several callers at once, one removes
%% it and the others see what it laid bare, or nothing.
-spec remove(ClassName :: atom(), Selector :: atom(), Side :: side()) -> {removed, layer(), details()} | absent.
remove(ClassName, Selector, Side) when
    is_atom(ClassName), is_atom(Selector), Side =:= instance; is_atom(ClassName), is_atom(Selector), Side =:= class
->
    case take_extension(ClassName, Selector, Side) of
        {ok, Owner, Source} ->
            Details = extension_details(ClassName, Selector, Side, Owner, Source),
            record(ClassName, Selector, Side, extension, Details),
            {removed, extension, Details};
        not_found ->
            remove_local(ClassName, Selector, Side)
    end.

take_extension(Class, Selector, Side) ->
    _ = code:ensure_loaded(beamtalk_extensions),
    case erlang:function_exported(beamtalk_extensions, take, 3) of
        true ->
            case beamtalk_extensions:take(Class, Selector, Side =:= class) of
                {ok, _Fun, Owner, Source} -> {ok, Owner, Source};
                not_found -> not_found
            end;
        false ->
            take_from_original(Class, Selector, Side)
    end.

%% A registry without an atomic removal: a race can show one extension to two callers.
take_from_original(Class, Selector, Side) ->
    Key = class_key(Class, Side),
    case beamtalk_extensions:lookup(Key, Selector) of
        {ok, _Fun, Owner} ->
            Source = beamtalk_extensions:getSource(Key, Selector),
            ok = beamtalk_extensions:unregister(Class, Selector, Side =:= class),
            case Source of
                {ok, Text} -> {ok, Owner, Text};
                not_found -> {ok, Owner, undefined}
            end;
        not_found ->
            not_found
    end.

%% What the entry needs is read before the class changes.
remove_local(Class, Selector, Side) ->
    case beamtalk_image_host:defines_locally(Class, Selector, Side) of
        false ->
            absent;
        true ->
            Details = local_details(Class, Selector, Side),
            case beamtalk_image_host:remove_method(Class, Selector, Side) of
                removed ->
                    record(Class, Selector, Side, local, Details),
                    {removed, local, Details};
                absent ->
                    absent;
                {error, Reason} ->
                    not_removed(Class, Selector, Reason)
            end
    end.

not_removed(_Class, _Selector, Error) when element(1, Error) =:= beamtalk_error ->
    beamtalk_image_host:raise_error(Error);
not_removed(Class, Selector, Reason) ->
    beamtalk_live_errors:raise(runtime_error, Class, Selector,
        io_lib:format("~ts could not be recompiled without #~ts: ~ts", [Class, Selector, reason(Reason)]),
        <<"the class is unchanged; mend its source and remove the method again">>).

reason({compile_error, Text}) when is_binary(Text) -> Text;
reason(no_workspace) -> <<"no workspace is running">>;
reason(Reason) -> io_lib:format("~tp", [Reason]).

%% ---- What was removed ----------------------------------------------------------------------------------------

local_details(Class, Selector, Side) ->
    Prior = beamtalk_image_host:local_source(Class, Selector, Side),
    located(beamtalk_image_host:class_origin(Class), Class, Selector, Side, Prior).

%% An extension belongs to the file of whoever extends the class, not to the class's own.
extension_details(Class, Selector, Side, Owner, Source) ->
    Details =
        case beamtalk_image_host:extension_file(Owner, class_key(Class, Side), Selector) of
            {ok, File} -> located({file, File}, Class, Selector, Side, Source);
            unknown -> with_prior(Source, not_flushable(<<"extension">>))
        end,
    Details#{owner => Owner}.

%% @doc What an entry says of where a method's text lives: file, span and earlier text of a method in a file of the project,
%% otherwise the running text `Prior' and why the change cannot be flushed.
-spec classified(beamtalk_image_host:class_origin(), atom(), atom(), side(), Prior :: binary() | undefined) -> details().
classified(Origin, Class, Selector, Side, Prior) ->
    located(Origin, Class, Selector, Side, Prior).

located(stdlib, _Class, _Selector, _Side, Prior) ->
    with_prior(Prior, not_flushable(<<"stdlib">>));
located(dynamic, _Class, _Selector, _Side, Prior) ->
    with_prior(Prior, not_flushable(<<"dynamic">>));
located({file, File}, Class, Selector, Side, Prior) ->
    case beamtalk_image_host:file_scope(File) of
        dependency -> with_prior(Prior, not_flushable(<<"dependency:", File/binary>>));
        project -> in_project(File, Class, Selector, Side, Prior)
    end.

%% The text on disk is what a revert must bring back, so it goes before the running one.
in_project(File, Class, Selector, Side, Prior) ->
    case beamtalk_lang:read_file(File) of
        {ok, Text} ->
            case span(Text, Class, Selector, Side) of
                {ok, Span, Body} -> #{flushable => true, source_file => File, span => Span, prev_source => Body};
                {error, selector_not_found} -> with_prior(Prior, not_flushable(<<"not_on_disk">>));
                {error, Why} -> with_prior(Prior, not_flushable(<<"span_unresolved:", (atom_to_binary(Why))/binary>>))
            end;
        {error, _} ->
            with_prior(Prior, not_flushable(<<"disk_read_failed">>))
    end.

span(Text, Class, Selector, Side) ->
    case beamtalk_image_host:method_span(Text, atom_to_binary(Class), atom_to_binary(Selector), Side) of
        {ok, Span, Body} -> {ok, Span, Body};
        {error, Reason, _} -> {error, Reason}
    end.

not_flushable(Reason) ->
    #{flushable => false, not_flushable_reason => Reason}.

with_prior(Prior, Details) when is_binary(Prior) -> Details#{prev_source => Prior};
with_prior(undefined, Details) -> Details.

class_key(Class, instance) -> Class;
class_key(Class, class) -> beamtalk_image_names:class_tag(Class).

%% ---- The record ----------------------------------------------------------------------------------------------

%% The original log ignores `layer' and `owner'; they tell a revert whether the text was an extension's.
record(Class, Selector, Side, Layer, Details) ->
    {Kind, Author} = beamtalk_image_host:author(),
    Entry = (maps:with([prev_source, source_file, span, flushable, not_flushable_reason, owner], Details))#{
        class => atom_to_binary(Class),
        selector => atom_to_binary(Selector),
        kind => 'remove-method',
        side => Side,
        intent => durable,
        author => Author,
        author_kind => Kind,
        layer => Layer
    },
    try beamtalk_workspace_changelog:append(Entry) of
        {ok, _Seq} -> ok;
        {error, Reason} -> warn(Class, Selector, Reason)
    catch
        _:Reason -> warn(Class, Selector, Reason)
    end.

warn(Class, Selector, Reason) ->
    ?LOG_WARNING("the removal of ~ts>>~ts took effect but could not be recorded: ~tp",
        [Class, Selector, Reason], #{domain => [beamtalk, runtime]}).

%% ---- What to say when there is nothing to remove -------------------------------------------------------------

not_found(Class, Selector, Side) ->
    Receiver = receiver(Class, Side),
    case supplier(Class, Selector, Side) of
        none ->
            beamtalk_live_errors:raise(selector_not_found, Class, Selector,
                io_lib:format("~ts does not define #~ts (locally or as an extension)", [Receiver, Selector]),
                [<<"use `includesSelector:` to check first, or `removeSelector:ifAbsent:`">>,
                    senders(beamtalk_xref:senders_of(Selector), Selector)]);
        Definer ->
            beamtalk_live_errors:raise(selector_not_found, Class, Selector,
                io_lib:format("~ts does not define #~ts locally: inherited from ~ts "
                    "(see whichClassIncludesSelector:); nothing to remove here", [Receiver, Selector, Definer]),
                io_lib:format("send it to ~ts to remove it there, or use `removeSelector:ifAbsent:`", [Definer]))
    end.

receiver(Class, instance) -> atom_to_binary(Class);
receiver(Class, class) -> [atom_to_binary(Class), " class"].

senders([], _Selector) ->
    [];
senders([_], Selector) ->
    io_lib:format("; 1 sender of #~ts remains and will fail (see `sendersOf:`)", [Selector]);
senders(Sites, Selector) ->
    io_lib:format("; ~b senders of #~ts remain and will fail (see `sendersOf:`)", [length(Sites), Selector]).

%% The class above that supplies the selector, by extension or of its own. The class side goes on along the instance
%% side of Class.
supplier(Class, Selector, Side) ->
    Above = [{Ancestor, Side} || Ancestor <- beamtalk_image_chain:ancestors(Class)],
    Beyond =
        case Side of
            instance -> [];
            class -> [{Ancestor, instance} || Ancestor <- ['Class' | beamtalk_image_chain:ancestors('Class')]]
        end,
    case lists:dropwhile(fun({Name, OnSide}) -> not supplies(Name, Selector, OnSide) end, Above ++ Beyond) of
        [{Name, OnSide} | _] -> receiver(Name, OnSide);
        [] -> none
    end.

supplies(Class, Selector, Side) ->
    beamtalk_extensions:has(class_key(Class, Side), Selector) orelse
        beamtalk_image_host:defines_locally(Class, Selector, Side).
