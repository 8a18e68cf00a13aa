%% @doc The few classes that every image starts with, and what their objects answer to.
-module(beamtalk_embedded_library).

-export([classes/0]).

%% @doc Names and definitions, superclasses first.
-spec classes() -> [{atom(), beamtalk_embedded_class:definition()}].
classes() ->
    [
        library('ProtoObject', none, #{class => fun class/2, '==' => fun identical/2}, #{}),
        library('Object', 'ProtoObject', object_methods(), #{}),
        library('Behaviour', 'Object', behaviour_methods(), #{}),
        library('Class', 'Behaviour', #{}, #{}),
        library('Metaclass', 'Behaviour', #{}, #{}),
        library('Protocol', 'Object', #{}, protocol_methods()),
        library('Value', 'Object', #{}, #{new => fun new_value/2}),
        library('Actor', 'Object', #{}, #{spawn => fun spawn_actor/2}),
        library('Integer', 'Object', integer_methods(), #{}),
        library('String', 'Object', #{size => fun([], Self) -> string:length(Self) end}, #{}),
        library('Symbol', 'Object', #{}, #{}),
        library('Boolean', 'Object', #{}, #{}),
        library('True', 'Boolean', #{}, #{}),
        library('False', 'Boolean', #{}, #{}),
        library('UndefinedObject', 'Object', #{}, #{}),
        library('List', 'Object', #{size => fun([], Self) -> length(Self) end}, #{}),
        library('Block', 'Object', #{value => fun([], Self) -> Self() end}, #{})
    ].

library(Name, Super, Methods, ClassMethods) ->
    {Name, #{superclass => Super, origin => stdlib, methods => Methods, class_methods => ClassMethods}}.

object_methods() ->
    #{
        'respondsTo:' => fun([Selector], Self) ->
            beamtalk_embedded_dispatch:understands(beamtalk_embedded_dispatch:class_of(Self), Selector)
        end,
        'isNil' => fun([], Self) -> Self =:= nil end
    }.

integer_methods() ->
    #{
        '+' => fun([Other], Self) -> Self + Other end,
        '<' => fun([Other], Self) -> Self < Other end,
        'isZero' => fun([], Self) -> Self =:= 0 end
    }.

%% What a class object answers, in the sender.
behaviour_methods() ->
    #{
        name => fun([], Self) -> name(Self) end,
        superclass => fun([], Self) ->
            #{superclass := Super} = beamtalk_embedded_table:class(name(Self)),
            case Super of
                none -> nil;
                _ -> beamtalk_embedded:class(Super)
            end
        end,
        methods => fun([], Self) -> beamtalk_embedded_table:selectors(key(Self)) end,
        'includesSelector:' => fun([Selector], Self) ->
            beamtalk_embedded_dispatch:local_definition(name(Self), Selector, side(Self)) =/= undefined
        end,
        'whichClassIncludesSelector:' => fun([Selector], Self) ->
            case beamtalk_embedded_dispatch:definer(key(Self), Selector) of
                none -> nil;
                Key -> beamtalk_embedded:class(beamtalk_image_names:base_name(Key))
            end
        end,
        'conformsTo:' => fun([Protocol], Self) -> beamtalk_protocol_registry:conforms_to(name(Self), Protocol) end,
        usedProtocols => fun([], Self) -> beamtalk_protocol_registry:used_protocols(name(Self)) end,
        'removeSelector:' => fun([Selector], Self) ->
            beamtalk_remove_selector:classRemoveSelector(Self, Selector)
        end,
        'removeSelector:ifAbsent:' => fun([Selector, Block], Self) ->
            beamtalk_remove_selector:classRemoveSelectorIfAbsent(Self, Selector, Block)
        end,
        removeFromSystem => fun([], Self) -> beamtalk_embedded_removal:remove_from_system(name(Self)) end
    }.

protocol_methods() ->
    #{
        'requiredMethods:' => fun([Name], _Self) -> beamtalk_protocol_registry:required_methods(Name) end,
        'providedMethods:' => fun([Name], _Self) -> beamtalk_protocol_registry:provided_methods(Name) end,
        'usersOf:' => fun([Name], _Self) -> beamtalk_protocol_registry:user_class_objects(Name) end,
        'conformingClasses:' => fun([Name], _Self) -> beamtalk_protocol_registry:conforming_class_objects(Name) end
    }.

class([], {beamtalk_object, 'Metaclass', _, _}) ->
    beamtalk_embedded:class('Metaclass');
class([], {beamtalk_object, Class, _, _} = Self) ->
    case beamtalk_image_names:is_class_tag(Class) of
        true -> beamtalk_embedded:metaclass(name(Self));
        false -> beamtalk_embedded:class(Class)
    end;
class([], Self) ->
    beamtalk_embedded:class(beamtalk_embedded_dispatch:class_of(Self)).

identical([Other], Self) -> Self =:= Other.

new_value([], Self) ->
    Class = name(Self),
    (beamtalk_embedded_dispatch:fields(Class))#{'$beamtalk_class' => Class}.

spawn_actor([], Self) ->
    beamtalk_embedded_actor:start(name(Self)).

name({beamtalk_object, _, _, Pid}) -> beamtalk_embedded_class:class_name(Pid).

side({beamtalk_object, 'Metaclass', _, _}) -> class;
side({beamtalk_object, _, _, _}) -> instance.

%% The class key whose methods a class or metaclass stands for.
key(Self) ->
    case side(Self) of
        instance -> name(Self);
        class -> beamtalk_image_names:class_tag(name(Self))
    end.
