%% @doc What classes, protocols, the navigation and the workspace of the embedded image answer about the
%% image, and how they change it. Runs in the sender, since most of it asks classes.
-module(beamtalk_embedded_reflection).

-export([behaviour/3, protocol/2, navigation/2, workspace/2]).

-type answer() :: term().
%% `$no_primitive' where there is none.

%% ---- Classes -------------------------------------------------------------------------------------------------

%% @doc What a class answers of itself.
-spec behaviour(atom(), [term()], tuple()) -> answer().
behaviour(name, [], Self) -> name(Self);
behaviour(superclass, [], Self) ->
    #{superclass := Super} = beamtalk_embedded_table:class(name(Self)),
    class_or_nil(Super);
behaviour(subclasses, [], Self) -> classes(beamtalk_embedded_table:subclasses(name(Self)));
behaviour(allSubclasses, [], Self) -> classes(beamtalk_embedded_table:all_subclasses(name(Self)));
behaviour(methods, [], Self) ->
    Extensions = [Selector || {Selector, _Owner} <- beamtalk_extensions:list(key(Self))],
    lists:usort(beamtalk_embedded_table:selectors(key(Self)) ++ Extensions);
behaviour('includesSelector:', [Selector], Self) when is_atom(Selector) ->
    beamtalk_embedded_dispatch:local_definition(name(Self), Selector, side(Self)) =/= undefined;
behaviour('canUnderstand:', [Selector], Self) when is_atom(Selector) ->
    beamtalk_embedded_dispatch:understands(key(Self), Selector);
behaviour('whichClassIncludesSelector:', [Selector], Self) when is_atom(Selector) ->
    case beamtalk_embedded_dispatch:definer(key(Self), Selector) of
        none -> nil;
        Key -> beamtalk_embedded:class(beamtalk_image_names:base_name(Key))
    end;
behaviour('>>', [Selector], Self) when is_atom(Selector) ->
    case beamtalk_embedded_dispatch:definer(key(Self), Selector) of
        none -> nil;
        Key -> method(Key, Selector)
    end;
behaviour(source, [], Self) -> nil(beamtalk_image_host:class_source(name(Self)));
behaviour(sourceFile, [], Self) ->
    case beamtalk_embedded_table:protocol(name(Self)) of
        {ok, Origin} -> file(Origin);
        undefined -> file(beamtalk_image_host:class_origin(name(Self)))
    end;
behaviour(reload, [], Self) ->
    case behaviour(sourceFile, [], Self) of
        nil ->
            beamtalk_live_errors:raise(runtime_error, name(Self), reload,
                io_lib:format("~ts comes from no file", [name(Self)]), undefined);
        File ->
            _ = beamtalk_embedded_loader:file(File),
            Self
    end;
behaviour('conformsTo:', [Protocol], Self) when is_atom(Protocol) ->
    beamtalk_protocol_registry:conforms_to(name(Self), Protocol);
behaviour(usedProtocols, [], Self) -> beamtalk_protocol_registry:used_protocols(name(Self));
behaviour(allUsedProtocols, [], Self) -> all_used(name(Self));
behaviour('usesProtocol:', [Protocol], Self) when is_atom(Protocol) -> lists:member(Protocol, all_used(name(Self)));
behaviour('removeSelector:', [Selector], Self) ->
    ok = beamtalk_embedded_changes:refuse_library_protocol(name(Self), Selector),
    beamtalk_remove_selector:classRemoveSelector(Self, Selector);
behaviour('removeSelector:ifAbsent:', [Selector, Block], Self) ->
    ok = beamtalk_embedded_changes:refuse_library_protocol(name(Self), Selector),
    beamtalk_remove_selector:classRemoveSelectorIfAbsent(Self, Selector, Block);
behaviour(removeFromSystem, [], Self) -> beamtalk_embedded_removal:remove_from_system(name(Self));
behaviour('compile:source:', [Selector, Text], Self) when is_atom(Selector), is_binary(Text) ->
    beamtalk_embedded_changes:compile(name(Self), side(Self), Selector, Text),
    method(key(Self), Selector);
behaviour(_Selector, _Args, _Self) -> '$no_primitive'.

%% Own ones first, then those of the superclasses.
all_used(Name) ->
    Chain = [Name | beamtalk_image_chain:ancestors(Name)],
    lists:foldl(
        fun(Class, Seen) -> Seen ++ (beamtalk_protocol_registry:used_protocols(Class) -- Seen) end, [], Chain).

method(Key, Selector) ->
    Class = beamtalk_image_names:base_name(Key),
    Side = case beamtalk_image_names:is_class_tag(Key) of true -> class; false -> instance end,
    #{'$beamtalk_class' => 'CompiledMethod', className => Class, selector => Selector, side => Side,
        origin => origin(Class, Side, Selector), source => nil(method_source(Key, Class, Side, Selector))}.

origin(Class, Side, Selector) ->
    case beamtalk_xref:method_info(Class, Side =:= class, Selector) of
        #{origin := Origin} when Origin =/= undefined -> Origin;
        _ -> nil
    end.

%% What dispatch finds: an extension first.
method_source(Key, Class, Side, Selector) ->
    case beamtalk_extensions:lookup(Key, Selector) of
        {ok, _Fun, _Owner} ->
            case beamtalk_extensions:getSource(Key, Selector) of
                {ok, Text} -> Text;
                not_found -> undefined
            end;
        not_found ->
            beamtalk_image_host:local_source(Class, Selector, Side)
    end.

%% ---- Protocols -----------------------------------------------------------------------------------------------

%% @doc What `Protocol' answers of the protocols.
-spec protocol(atom(), [term()]) -> answer().
protocol('requiredMethods:', [Name]) when is_atom(Name) -> beamtalk_protocol_registry:required_methods(Name);
protocol('providedMethods:', [Name]) when is_atom(Name) -> beamtalk_protocol_registry:provided_methods(Name);
protocol('usersOf:', [Name]) when is_atom(Name) -> beamtalk_protocol_registry:user_class_objects(Name);
protocol('conformingClasses:', [Name]) when is_atom(Name) -> beamtalk_protocol_registry:conforming_class_objects(Name);
protocol(all, []) -> lists:sort(beamtalk_protocol_registry:all_protocol_names());
protocol(_Selector, _Args) -> '$no_primitive'.

%% ---- Navigation ----------------------------------------------------------------------------------------------

%% @doc What `SystemNavigation' answers of the cross-reference index.
-spec navigation(atom(), [term()]) -> answer().
navigation('sendersOf:', [Selector]) when is_atom(Selector) -> methods_at(beamtalk_xref:senders_of(Selector));
navigation('referencesTo:', [Class]) when is_atom(Class) -> methods_at(beamtalk_xref:references_to(Class));
navigation('implementorsOf:', [Selector]) when is_atom(Selector) ->
    [Object || {Class, ClassSide} <- beamtalk_xref:implementors_of(Selector), Object <- [implementor(Class, ClassSide)],
        Object =/= undefined];
navigation('methodsImplementing:', [Selector]) when is_atom(Selector) ->
    [method(class_key(Class, ClassSide), Selector) || {Class, ClassSide} <- beamtalk_xref:implementors_of(Selector)];
navigation('usersOf:', Args) -> protocol('usersOf:', Args);
navigation(_Selector, _Args) -> '$no_primitive'.

methods_at(Sites) ->
    Keys = lists:usort([{class_key(Owner, ClassSide), Method}
        || #{owner := Owner, class_side := ClassSide, method := Method} <- Sites]),
    [method(Key, Selector) || {Key, Selector} <- Keys].

implementor(Class, ClassSide) ->
    case ClassSide orelse beamtalk_image_names:is_class_tag(Class) of
        true -> beamtalk_embedded:metaclass(beamtalk_image_names:base_name(Class));
        false -> beamtalk_embedded:class(Class)
    end.

%% An extension of a class side shows under the tag already.
class_key(Class, true) ->
    case beamtalk_image_names:is_class_tag(Class) of
        true -> Class;
        false -> beamtalk_image_names:class_tag(Class)
    end;
class_key(Class, false) ->
    Class.

%% ---- The workspace -------------------------------------------------------------------------------------------

%% @doc What `Workspace' answers and does.
-spec workspace(atom(), [term()]) -> answer().
workspace(changes, []) -> beamtalk_workspace_changelog:changeLog();
workspace(classes, []) -> classes(lists:sort([Name || {Name, _Row} <- beamtalk_embedded_table:classes()]));
workspace('load:', [Path]) when is_binary(Path) -> loaded(beamtalk_embedded_loader:file(Path));
workspace('revert:', [#{'$beamtalk_class' := 'ChangeEntry', seq := Seq}]) -> beamtalk_embedded_changes:revert(Seq);
workspace(_Selector, _Args) -> '$no_primitive'.

loaded(Items) ->
    classes([Name || {Kind, Name} <- Items, Kind =/= extensions]).

%% ---- Names ---------------------------------------------------------------------------------------------------

classes(Names) ->
    [Class || Name <- Names, Class <- [beamtalk_embedded:class(Name)], Class =/= undefined].

class_or_nil(none) -> nil;
class_or_nil(Name) -> nil(beamtalk_embedded:class(Name)).

nil(undefined) -> nil;
nil(Value) -> Value.

file({file, File}) -> File;
file(_) -> nil.

name({beamtalk_object, _, _, Pid}) -> beamtalk_embedded_class:class_name(Pid).

side({beamtalk_object, 'Metaclass', _, _}) -> class;
side({beamtalk_object, _, _, _}) -> instance.

%% The class key whose methods a class or metaclass stands for.
key(Self) ->
    case side(Self) of
        instance -> name(Self);
        class -> beamtalk_image_names:class_tag(name(Self))
    end.
