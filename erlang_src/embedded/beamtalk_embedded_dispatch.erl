%% @doc Message sends in the embedded image: a walk along the class chain that asks the extension registry
%% first at every level (ADR 0032, ADR 0066), with nothing cached.
%%
%% A class object answers from its class side along the superclasses, then as an instance of `Class'.
%% Class-side methods run in the process of the class; what `Class' and its ancestors define runs in the
%% sender. A send to a class from within its own process is refused at once, since that process cannot answer
%% it.
-module(beamtalk_embedded_dispatch).

-export([send/3, cast/3, self_send/4, super_send/5]).
-export([class_of/1, fields/1, understands/2, definer/2, chain/1, local_definition/3]).
-export_type([receiver/0]).

-type receiver() :: term().
-type class_key() :: atom().

%% @doc Sends a message and answers its value.
-spec send(receiver(), atom(), [term()]) -> term().
send({beamtalk_object, _, _, Pid} = Receiver, Selector, _Args) when Pid =:= self() ->
    beamtalk_live_errors:raise(
        dispatch_error,
        class_of(Receiver),
        Selector,
        io_lib:format("~ts cannot be sent a message from within its own process", [name(class_of(Receiver))]),
        <<"send it from another process, or leave the block before asking the class">>
    );
send({beamtalk_erlang_module, Module}, Selector, Args) ->
    apply(Module, function_name(Selector), Args);
send(Receiver, Selector, Args) ->
    Key = class_of(Receiver),
    case is_actor(Receiver) of
        {true, Pid} ->
            beamtalk_embedded_actor:send(Pid, Selector, Args);
        false ->
            case find(chain(Key), Selector) of
                {found, Level, Method} -> run(Method, Level, Args, Receiver);
                not_found -> does_not_understand(Receiver, Selector)
            end
    end.

%% @doc Sends without waiting for an answer; only an actor makes a difference.
-spec cast(receiver(), atom(), [term()]) -> ok.
cast(Receiver, Selector, Args) ->
    case is_actor(Receiver) of
        {true, Pid} ->
            beamtalk_embedded_actor:cast(Pid, Selector, Args);
        false ->
            _ = send(Receiver, Selector, Args),
            ok
    end.

%% The function of a foreign call: the first keyword, or the unary selector. At most one name for each
%% selector.
function_name(Selector) ->
    [Name | _] = binary:split(atom_to_binary(Selector), <<":">>),
    binary_to_atom(Name).

%% @doc A send to `self' within a method of an actor or a value, with its state: late bound, in the same
%% process.
-spec self_send(atom(), [term()], receiver(), map()) -> {term(), map()}.
self_send(Selector, Args, Self, State) ->
    case find(chain(class_of(Self)), Selector) of
        {found, _Level, Method} -> apply_method(function(Method), Args, Self, State);
        not_found -> does_not_understand(Self, Selector)
    end.

%% @doc A send to `super': the walk begins above the class key that defines the sending method.
-spec super_send(class_key(), atom(), [term()], receiver(), map()) -> {term(), map()}.
super_send(Definer, Selector, Args, Self, State) ->
    Above = above(Definer, chain(class_of(Self))),
    case find(Above, Selector) of
        {found, _Level, Method} -> apply_method(function(Method), Args, Self, State);
        not_found -> does_not_understand(Self, Selector)
    end.

above(Definer, Chain) ->
    case lists:dropwhile(fun(Key) -> Key =/= Definer end, Chain) of
        [Definer | Above] -> Above;
        [] -> []
    end.

%% A class-side method runs in the process of the class, unless it needs nothing of it.
run(Method, Level, Args, {beamtalk_object, _, _, Pid} = Class) ->
    case beamtalk_image_names:is_class_tag(Level) andalso not in_sender(Method) of
        true -> beamtalk_embedded_class:class_send(Pid, function(Method), Args, Class);
        false -> answer(function(Method), Args, Class)
    end;
run(Method, _Level, Args, Receiver) ->
    answer(function(Method), Args, Receiver).

in_sender(#{in_sender := InSender}) -> InSender;
in_sender(_Extension) -> false.

function(#{'fun' := Fun}) -> Fun;
function(Fun) -> Fun.

answer(Fun, Args, Self) ->
    {Answer, _} = apply_method(Fun, Args, Self, #{}),
    Answer.

apply_method(Fun, Args, Self, State) when is_function(Fun, 3) -> Fun(Args, Self, State);
apply_method(Fun, Args, Self, State) when is_function(Fun, 2) -> {Fun(Args, Self), State}.

%% The whole chain is asked of the registry at once; a local method nearer to the receiver still comes first.
find(Chain, Selector) ->
    case beamtalk_extensions:lookup_chain(Chain, Selector) of
        not_found -> find_local(Chain, Selector, none);
        {ok, Key, Fun, _Owner} -> find_local(Chain, Selector, {Key, Fun})
    end.

find_local([], _Selector, _Extension) ->
    not_found;
find_local([Key | _], _Selector, {Key, Fun}) ->
    {found, Key, Fun};
find_local([Key | Rest], Selector, Extension) ->
    case beamtalk_embedded_table:method(Key, Selector) of
        {ok, #{'fun' := Fun} = Method} ->
            case is_there(Fun) of
                true -> {found, Key, Method};
                false -> find_local(Rest, Selector, Extension)
            end;
        undefined ->
            find_local(Rest, Selector, Extension)
    end.

%% A module that is loaded without a function no longer has the method, even if its row is still there.
is_there(Fun) ->
    case erlang:fun_info(Fun, type) of
        {type, local} ->
            true;
        {type, external} ->
            {module, Module} = erlang:fun_info(Fun, module),
            {name, Name} = erlang:fun_info(Fun, name),
            erlang:function_exported(Module, Name, 3)
    end.

%% @doc The class keys along which a message to an instance of the class key is looked up, nearest first.
-spec chain(class_key()) -> [class_key()].
chain(Key) ->
    case beamtalk_image_names:is_class_tag(Key) of
        false ->
            [Key | beamtalk_image_chain:ancestors(Key)];
        true ->
            Name = beamtalk_image_names:base_name(Key),
            Tags = [beamtalk_image_names:class_tag(Class) || Class <- [Name | beamtalk_image_chain:ancestors(Name)]],
            Tags ++ chain('Class')
    end.

%% @doc The class key of a receiver: its class, or the tag of the class that it stands for.
-spec class_of(receiver()) -> class_key().
class_of({beamtalk_object, 'Metaclass', _Module, Pid}) ->
    %% The metaclass of a class has the same process; its own class side is that of `Metaclass'.
    _ = Pid,
    'Metaclass';
class_of({beamtalk_object, Class, _Module, _Pid}) -> Class;
class_of(#{'$beamtalk_class' := Class}) -> Class;
class_of(Integer) when is_integer(Integer) -> 'Integer';
class_of(Float) when is_float(Float) -> 'Float';
class_of(String) when is_binary(String) -> 'String';
class_of(true) -> 'True';
class_of(false) -> 'False';
class_of(nil) -> 'UndefinedObject';
class_of(Symbol) when is_atom(Symbol) -> 'Symbol';
class_of(List) when is_list(List) -> 'List';
class_of(Block) when is_function(Block) -> 'Block';
class_of(Map) when is_map(Map) -> 'Dictionary';
class_of({beamtalk_erlang_module, _Module}) -> 'ErlangModule';
class_of(Tuple) when is_tuple(Tuple) -> 'Tuple';
class_of(Pid) when is_pid(Pid) -> 'Pid';
class_of(_Other) -> 'Object'.

is_actor({beamtalk_object, 'Metaclass', _, _}) ->
    false;
is_actor({beamtalk_object, Class, _, Pid}) ->
    case beamtalk_image_names:is_class_tag(Class) of
        true -> false;
        false -> {true, Pid}
    end;
is_actor(_Other) ->
    false.

%% @doc The slots of a new instance of a class, inherited ones included.
-spec fields(atom()) -> #{atom() => term()}.
fields(Class) ->
    lists:foldr(
        fun(Name, Fields) ->
            case beamtalk_embedded_table:class(Name) of
                #{slots := Slots} ->
                    maps:merge(Fields, maps:from_list([{S, beamtalk_embedded_eval:default(D)} || {S, D} <- Slots]));
                #{fields := Own} ->
                    maps:merge(Fields, Own);
                undefined ->
                    Fields
            end
        end,
        #{},
        [Class | beamtalk_image_chain:ancestors(Class)]
    ).

%% @doc Whether an instance of the class key understands a selector.
-spec understands(class_key(), atom()) -> boolean().
understands(Key, Selector) ->
    definer(Key, Selector) =/= none.

%% @doc The class key along the chain that supplies the selector, as dispatch finds it.
-spec definer(class_key(), atom()) -> class_key() | none.
definer(Key, Selector) ->
    case find(chain(Key), Selector) of
        {found, Level, _Method} -> Level;
        not_found -> none
    end.

%% @doc What a class itself defines for a selector on a side.
-spec local_definition(atom(), atom(), instance | class) -> {ok, beamtalk_embedded_table:method()} | undefined.
local_definition(Class, Selector, instance) ->
    beamtalk_embedded_table:method(Class, Selector);
local_definition(Class, Selector, class) ->
    beamtalk_embedded_table:method(beamtalk_image_names:class_tag(Class), Selector).

does_not_understand(Receiver, Selector) ->
    Key = class_of(Receiver),
    beamtalk_live_errors:raise(
        does_not_understand,
        Key,
        Selector,
        io_lib:format("~ts does not understand #~ts", [name(Key), name(Selector)]),
        <<"use respondsTo: to check before sending">>
    ).

name(Atom) -> atom_to_binary(Atom).
