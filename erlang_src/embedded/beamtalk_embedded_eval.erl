%% @doc Runs the body of a method: an evaluator over the tree that a class's module carries as a literal.
%%
%% The modules that classes become hold trees, not compiled bodies, because everything that a body does can
%% change while it runs: sends are bound late, blocks leave their method and write its variables, the state of
%% an actor threads through all of it, and a method is recompiled at the prompt. An evaluator is the smallest
%% thing that is right about all of this; how fast bodies run is no aim of the embedded image.
%%
%% Variables live in frames in the process's dictionary, one for each call of a method or block, so that a
%% block and its method share them. A frame goes with its call, unless a block went out of it: as the answer,
%% or into a variable, slot or exception around it. Such a frame stays until {@link sweep/1} finds that
%% nothing holds its block any longer. A block that runs in another process, or after its method's process,
%% works on the values that its variables had when it was made, as a fun does; what it assigns there stays
%% there. The state of an actor while one of its methods runs lies in the dictionary, too; a block that runs
%% elsewhere sees the slots as they were when it was made.
-module(beamtalk_embedded_eval).

-export([run/6, statements/3, default/1, sweep/1, frames/0]).
-export([raised/3, is_return/2, class_named/1]).
-export_type([bindings/0]).

-type bindings() :: #{atom() => term()}.

-record(env, {
    self :: term(),
    %% The class key that defines the running method: `super' begins above it.
    definer :: atom(),
    selector :: atom(),
    args :: [term()],
    %% Frames, innermost first.
    scopes :: [reference()],
    %% The frame of the method, to which `^' returns.
    home :: reference()
}).

-define(FRAME(Ref), {?MODULE, frame, Ref}).
-define(LIVE(Ref), {?MODULE, live, Ref}).
%% Frames that stay when their call is over, and those whose call is over.
-define(KEPT, {?MODULE, kept}).
-define(CLOSED, {?MODULE, closed}).
-define(STATE(Self), {?MODULE, state, Self}).
-define(RETURN, '$beamtalk_return').
-define(UNSET, '$beamtalk_unset').
%% In the frames that a block was made over.
-define(CAPTURED, '$beamtalk_captured').

%% @doc Runs a method. `State' are the slots of an actor, and anything for other receivers; answers them anew.
-spec run(beamtalk_embedded_scopes:code(), Definer :: atom(), Selector :: atom(), Args :: [term()], Self :: term(),
    State :: map()) -> {term(), map()}.
run({Params, _, _, _, _}, Definer, Selector, Args, _Self, _State) when length(Params) =/= length(Args) ->
    beamtalk_live_errors:raise(arity_mismatch, Definer, Selector,
        io_lib:format("#~ts takes ~b arguments, not ~b", [Selector, length(Params), length(Args)]), undefined);
run({_, _, _, Returns, Body} = Code, Definer, Selector, Args, Self, State) ->
    Key = state_key(Self),
    _ = Key =:= none orelse put(Key, State),
    Home = make_ref(),
    Env = #env{self = Self, definer = Definer, selector = Selector, args = Args, scopes = [Home], home = Home},
    open(Home, frame(Code, Args)),
    Answer =
        try
            returning(Returns, Home, fun() -> body(Body, Env) end)
        catch
            Class:Reason:Stack ->
                close(Home, Reason),
                erlang:raise(Class, Reason, Stack)
        end,
    close(Home, Answer),
    case Key of
        none -> {Answer, State};
        _ -> {Answer, get(Key)}
    end.

%% @doc Runs statements among the variables of a prompt and answers the last one's value with the variables as
%% they are then. What is raised is raised here, with the assignments made so far lost.
-spec statements([beamtalk_reading:statement()], Self :: term(), bindings()) -> {term(), bindings()}.
statements(Statements, Self, Bindings) ->
    {[], Declared, _Free, _Returns, Body} = beamtalk_embedded_scopes:statements(maps:keys(Bindings), Statements),
    Home = make_ref(),
    Env = #env{self = Self, definer = none, selector = none, args = [], scopes = [Home], home = Home},
    open(Home, maps:merge(maps:from_keys(Declared, ?UNSET), Bindings)),
    try returning(true, Home, fun() -> body(Body, Env) end) of
        Answer ->
            Left = get(?FRAME(Home)),
            close(Home, [Answer, Left]),
            {Answer, maps:filter(fun(Name, Value) -> Name =/= ?CAPTURED andalso Value =/= ?UNSET end, Left)}
    catch
        Class:Reason:Stack ->
            close(Home, Reason),
            erlang:raise(Class, Reason, Stack)
    end.

%% @doc The value of a slot's default.
-spec default(beamtalk_reading:statement() | none) -> term().
default(none) ->
    nil;
default({lit, Value}) ->
    Value;
default(Tree) ->
    {Value, _} = statements([Tree], nil, #{}),
    Value.

%% @doc Forgets the frames of past calls that no block within `Roots' can reach. Does nothing while a call is
%% under way in this process, since its blocks are not to be seen.
-spec sweep(Roots :: term()) -> ok.
sweep(Roots) ->
    Closed = noted(?CLOSED),
    case Closed =/= [] andalso frames() =:= length(Closed) of
        true ->
            Reached = reach([Roots], #{}),
            {Left, Gone} = lists:partition(fun(Ref) -> is_map_key(Ref, Reached) end, Closed),
            lists:foreach(fun(Ref) -> erase(?FRAME(Ref)) end, Gone),
            _ = put(?CLOSED, Left),
            ok;
        false ->
            ok
    end.

%% @doc How many frames the process holds.
-spec frames() -> non_neg_integer().
frames() ->
    length([Ref || {?FRAME(Ref), _} <- get()]).

%% Which frames the blocks in a term can reach. A fun shows what it has closed over.
reach([], Reached) ->
    Reached;
reach([Ref | Rest], Reached) when is_reference(Ref) ->
    case Reached of
        #{Ref := _} -> reach(Rest, Reached);
        _ -> reach([get(?FRAME(Ref)) | Rest], Reached#{Ref => true})
    end;
reach([Fun | Rest], Reached) when is_function(Fun) ->
    {env, Closed} = erlang:fun_info(Fun, env),
    reach(Closed ++ Rest, Reached);
reach([[Head | Tail] | Rest], Reached) -> reach([Head, Tail | Rest], Reached);
reach([Tuple | Rest], Reached) when is_tuple(Tuple) -> reach(tuple_to_list(Tuple) ++ Rest, Reached);
reach([Map | Rest], Reached) when is_map(Map) -> reach(maps:values(Map) ++ maps:keys(Map) ++ Rest, Reached);
reach([_Leaf | Rest], Reached) -> reach(Rest, Reached).

%% ---- Frames --------------------------------------------------------------------------------------------------

frame({Params, Declared, _, _, _}, Args) ->
    maps:merge(maps:from_keys(Declared, ?UNSET), maps:from_list(lists:zip(Params, Args))).

open(Ref, Frame) ->
    put(?FRAME(Ref), Frame),
    ok.

%% A frame whose block may be in what leaves the call stays.
close(Ref, Leaving) ->
    case get(?FRAME(Ref)) of
        #{?CAPTURED := true} ->
            close_captured(Ref, Leaving);
        _ ->
            _ = erase(?FRAME(Ref)),
            ok
    end.

close_captured(Ref, Leaving) ->
    Kept = noted(?KEPT),
    IsKept = lists:member(Ref, Kept),
    _ = IsKept andalso put(?KEPT, lists:delete(Ref, Kept)),
    _ =
        case IsKept orelse has_fun(Leaving) of
            true -> put(?CLOSED, [Ref | noted(?CLOSED)]);
            false -> erase(?FRAME(Ref))
        end,
    ok.

keep(Refs) ->
    put(?KEPT, lists:usort(Refs ++ noted(?KEPT)) -- noted(?CLOSED)).

noted(Key) ->
    case get(Key) of
        undefined -> [];
        Refs -> Refs
    end.

has_fun(Term) when is_function(Term) -> true;
has_fun([Head | Tail]) -> has_fun(Head) orelse has_fun(Tail);
has_fun(Term) when is_tuple(Term) -> has_fun(tuple_to_list(Term));
has_fun(Term) when is_map(Term) -> has_fun(maps:values(Term)) orelse has_fun(maps:keys(Term));
has_fun(_Leaf) -> false.

read(Name, Scopes) ->
    case holder(Name, Scopes) of
        none -> undefined_variable(Name);
        Ref ->
            case get(?FRAME(Ref)) of
                #{Name := ?UNSET} -> undefined_variable(Name);
                #{Name := Value} -> Value
            end
    end.

write(Name, Value, [Innermost | _] = Scopes) ->
    Ref =
        case holder(Name, Scopes) of
            none -> Innermost;
            Found -> Found
        end,
    _ = Ref =:= Innermost orelse kept_by(Value, lists:takewhile(fun(Scope) -> Scope =/= Ref end, Scopes)),
    Frame = get(?FRAME(Ref)),
    put(?FRAME(Ref), Frame#{Name => Value}),
    Value.

%% A block that goes outwards takes the frames along that would have gone with their calls.
kept_by(Value, Scopes) ->
    case has_fun(Value) of
        true -> keep(Scopes);
        false -> []
    end.

holder(_Name, []) ->
    none;
holder(Name, [Ref | Rest]) ->
    case get(?FRAME(Ref)) of
        #{Name := _} -> Ref;
        _ -> holder(Name, Rest)
    end.

undefined_variable(Name) ->
    beamtalk_live_errors:raise(undefined_variable, 'UndefinedObject', Name,
        io_lib:format("~ts has no value", [Name]), <<"assign to it first">>).

%% ---- Leaving a method ----------------------------------------------------------------------------------------

returning(false, _Home, Run) ->
    Run();
returning(true, Home, Run) ->
    put(?LIVE(Home), true),
    try
        Run()
    catch
        throw:{?RETURN, Home, Value} -> Value
    after
        erase(?LIVE(Home))
    end.

%% @doc Whether what was thrown is a method being left: nobody but that method may catch it.
-spec is_return(error | exit | throw, term()) -> boolean().
is_return(throw, {?RETURN, _, _}) -> true;
is_return(_Class, _Reason) -> false.

return(Value, #env{home = Home}) ->
    case get(?LIVE(Home)) of
        true ->
            throw({?RETURN, Home, Value});
        undefined ->
            beamtalk_live_errors:raise(dead_return, 'Block', '^',
                <<"the method that this block would return from is over, or runs in another process">>,
                <<"leave the ^ away: a block answers its last statement">>)
    end.

%% ---- Statements and expressions ------------------------------------------------------------------------------

%% The statements of a method or a prompt: `^' ends them.
body([], _Env) -> nil;
body([{return, Value} | _], Env) -> eval(Value, Env);
body([{primitive, _} = Primitive], Env) -> eval(Primitive, Env);
%% What stands behind a primitive is its fallback for receivers and arguments that it does not take.
body([{primitive, Name} | Fallback], #env{definer = Definer, selector = Selector, self = Self, args = Args} = Env) ->
    case beamtalk_embedded_primitives:attempt(Definer, primitive_name(Name, Selector), Self, Args) of
        {ok, Answer} -> Answer;
        no_primitive -> body(Fallback, Env)
    end;
body([Last], Env) -> eval(Last, Env);
body([Statement | Rest], Env) ->
    _ = eval(Statement, Env),
    body(Rest, Env).

sequence([], _Env) -> nil;
sequence([Last], Env) -> eval(Last, Env);
sequence([Statement | Rest], Env) ->
    _ = eval(Statement, Env),
    sequence(Rest, Env).

eval({lit, Value}, _Env) -> Value;
eval(self, #env{self = Self}) -> Self;
eval(super, #env{self = Self}) -> Self;
eval({var, Name}, #env{scopes = Scopes}) -> read(Name, Scopes);
eval({class, Name}, _Env) -> class_named(Name);
eval({assign, Name, Value}, #env{scopes = Scopes} = Env) -> write(Name, eval(Value, Env), Scopes);
eval({slot, self, Name}, Env) -> slot(Name, Env);
eval({slot, _Base, Name}, Env) -> only_own_slots(Name, Env);
eval({set_slot, self, Name, Value}, Env) -> set_slot(Name, eval(Value, Env), Env);
eval({set_slot, _Base, Name, _Value}, Env) -> only_own_slots(Name, Env);
eval({destructure, Pattern, Tree}, Env) ->
    Value = eval(Tree, Env),
    matches(Pattern, Value, Env) orelse no_match(Value),
    Value;
eval({send, {class, 'Erlang'}, Module, []}, _Env) ->
    {beamtalk_erlang_module, Module};
eval({send, Receiver, Selector, Args}, Env) ->
    send(Receiver, Selector, Args, Env);
eval({cascade, Receiver, Messages}, Env) ->
    Send = cascade(Receiver, Env),
    lists:foldl(fun({message, Selector, Args}, _Before) -> Send(Selector, arguments(Args, Env)) end, nil, Messages);
eval({cast, {send, Receiver, Selector, Args}}, Env) ->
    beamtalk_embedded_dispatch:cast(eval(Receiver, Env), Selector, arguments(Args, Env)),
    nil;
eval({block, Code, Slots}, Env) -> block(Code, Slots, Env);
eval({match, Subject, Arms}, Env) -> arms(Arms, eval(Subject, Env), Env);
eval({list, Elements, none}, Env) -> arguments(Elements, Env);
eval({list, Elements, Tail}, Env) -> arguments(Elements, Env) ++ eval(Tail, Env);
eval({array, Elements}, Env) -> beamtalk_embedded_primitives:array(arguments(Elements, Env));
eval({map, Pairs}, Env) -> maps:from_list([{eval(Key, Env), eval(Value, Env)} || {Key, Value} <- Pairs]);
eval({interpolation, Pieces}, Env) -> iolist_to_binary([piece(Piece, Env) || Piece <- Pieces]);
eval({return, Value}, Env) -> return(eval(Value, Env), Env);
eval({primitive, Name}, #env{definer = Definer, selector = Selector, self = Self, args = Args}) ->
    beamtalk_embedded_primitives:call(Definer, primitive_name(Name, Selector), Self, Args);
%% Two forms that no text spells: what is generated for the slots of values.
eval({with_slot, Name, Value}, #env{self = Self} = Env) -> Self#{Name := eval(Value, Env)};
eval({construct, Slots}, #env{self = Self} = Env) ->
    maps:merge(beamtalk_embedded_primitives:call('Value', new, Self, []),
        maps:from_list([{Name, eval(Value, Env)} || {slot, Name, Value} <- Slots])).

primitive_name(none, Selector) -> Selector;
primitive_name(Name, _Selector) -> Name.

arguments(Trees, Env) ->
    [eval(Tree, Env) || Tree <- Trees].

piece({lit, Text}, _Env) when is_binary(Text) -> Text;
piece(Tree, Env) -> beamtalk_embedded_dispatch:send(eval(Tree, Env), displayString, []).

%% @doc What a class name stands for: a class, or one of the image's few named objects.
-spec class_named(atom()) -> term().
class_named(Name) ->
    case beamtalk_embedded:class(Name) of
        undefined ->
            case beamtalk_embedded_primitives:global(Name) of
                {ok, Value} ->
                    Value;
                undefined ->
                    beamtalk_live_errors:raise(class_not_found, Name, undefined,
                        io_lib:format("there is no class ~ts", [Name]), <<"load it, or check how it is spelled">>)
            end;
        Class ->
            Class
    end.

%% ---- Sends ---------------------------------------------------------------------------------------------------

%% The four equality operators are built in.
send(Left, '=:=', [Right], Env) -> eval(Left, Env) =:= eval(Right, Env);
send(Left, '=/=', [Right], Env) -> eval(Left, Env) =/= eval(Right, Env);
send(Left, '==', [Right], Env) -> eval(Left, Env) == eval(Right, Env);
send(Left, '/=', [Right], Env) -> eval(Left, Env) /= eval(Right, Env);
send(self, Selector, Args, Env) -> self_send(Selector, arguments(Args, Env), Env);
send(super, Selector, Args, Env) -> super_send(Selector, arguments(Args, Env), Env);
send(Receiver, Selector, Args, Env) ->
    To = eval(Receiver, Env),
    beamtalk_embedded_dispatch:send(To, Selector, arguments(Args, Env)).

cascade(self, Env) ->
    fun(Selector, Args) -> self_send(Selector, Args, Env) end;
cascade(super, Env) ->
    fun(Selector, Args) -> super_send(Selector, Args, Env) end;
cascade(Tree, Env) ->
    Receiver = eval(Tree, Env),
    fun(Selector, Args) -> beamtalk_embedded_dispatch:send(Receiver, Selector, Args) end.

%% To oneself within one's own process: no message. A block of an actor that runs elsewhere sends one.
self_send(Selector, Args, #env{self = {beamtalk_object, _, _, Pid} = Self}) when Pid =/= self() ->
    beamtalk_embedded_dispatch:send(Self, Selector, Args);
self_send(Selector, Args, #env{self = Self}) ->
    threaded(Self, fun(State) -> beamtalk_embedded_dispatch:self_send(Selector, Args, Self, State) end).

super_send(Selector, Args, #env{self = Self, definer = Definer}) ->
    threaded(Self, fun(State) -> beamtalk_embedded_dispatch:super_send(Definer, Selector, Args, Self, State) end).

threaded(Self, Send) ->
    case state_key(Self) of
        none ->
            {Answer, _} = Send(#{}),
            Answer;
        Key ->
            {Answer, Next} = Send(state(Key)),
            put(Key, Next),
            Answer
    end.

state_key({beamtalk_object, Class, _, _} = Self) when Class =/= 'Metaclass' ->
    case beamtalk_image_names:is_class_tag(Class) of
        true -> none;
        false -> ?STATE(Self)
    end;
state_key(_Other) ->
    none.

state(Key) ->
    case get(Key) of
        undefined -> #{};
        State -> State
    end.

%% ---- Slots ---------------------------------------------------------------------------------------------------

slot(Name, #env{self = Self} = Env) ->
    case slots(Self) of
        #{Name := Value} -> Value;
        _ -> no_slot(Name, Env)
    end.

slots(#{'$beamtalk_class' := _} = Value) ->
    Value;
slots({beamtalk_object, _, _, Pid} = Self) ->
    case state_key(Self) of
        none when Pid =:= self() -> beamtalk_embedded_class:variables();
        none -> #{};
        Key -> state(Key)
    end;
slots(_Other) ->
    #{}.

set_slot(Name, Value, #env{self = #{'$beamtalk_class' := Class}, selector = Selector}) ->
    beamtalk_live_errors:raise(immutable_value, Class, Selector,
        io_lib:format("a value cannot change its slot ~ts to ~ts", [Name, beamtalk_embedded_primitives:printed(Value)]),
        io_lib:format("make another value with ~ts", [beamtalk_embedded_primitives:setter(Name)]));
set_slot(Name, Value, #env{self = Self, scopes = Scopes} = Env) ->
    case slots(Self) of
        #{Name := _} = Slots ->
            _ = kept_by(Value, Scopes),
            case state_key(Self) of
                none -> beamtalk_embedded_class:put_variables(Slots#{Name := Value});
                Key -> put(Key, Slots#{Name := Value})
            end,
            Value;
        _ ->
            no_slot(Name, Env)
    end.

no_slot(Name, #env{self = Self, selector = Selector}) ->
    Class = beamtalk_embedded_dispatch:class_of(Self),
    beamtalk_live_errors:raise(no_such_slot, Class, Selector,
        io_lib:format("~ts has no slot ~ts here", [Class, Name]), <<"declare it in the class">>).

only_own_slots(Name, #env{self = Self, selector = Selector}) ->
    beamtalk_live_errors:raise(no_such_slot, beamtalk_embedded_dispatch:class_of(Self), Selector,
        io_lib:format("~ts is a slot of another object", [Name]), <<"only self has slots; send a message">>).

%% ---- Blocks --------------------------------------------------------------------------------------------------

block({Params, _, _, _, _} = Code, Slots, #env{scopes = Scopes, self = Self} = Env) ->
    {_, _, Free, _, _} = Code,
    ok = capture(Scopes),
    Values = maps:from_list([{Name, Value} || Name <- Free, {ok, Value} <- [seen(Name, Scopes)]]),
    Seen = {Values, seen_state(Self, Slots)},
    case length(Params) of
        0 -> fun() -> called(Code, [], Env, Seen) end;
        1 -> fun(A) -> called(Code, [A], Env, Seen) end;
        2 -> fun(A, B) -> called(Code, [A, B], Env, Seen) end;
        3 -> fun(A, B, C) -> called(Code, [A, B, C], Env, Seen) end;
        4 -> fun(A, B, C, D) -> called(Code, [A, B, C, D], Env, Seen) end;
        Arity ->
            beamtalk_live_errors:raise(arity_mismatch, 'Block', value,
                io_lib:format("a block with ~b parameters cannot run; four is the most", [Arity]), undefined)
    end.

%% The scopes around a captured one are captured, too.
capture([]) ->
    ok;
capture([Ref | Outer]) ->
    case get(?FRAME(Ref)) of
        #{?CAPTURED := true} ->
            ok;
        Frame ->
            _ = put(?FRAME(Ref), Frame#{?CAPTURED => true}),
            capture(Outer)
    end.

seen(Name, Scopes) ->
    case holder(Name, Scopes) of
        none -> undefined;
        Ref -> {ok, maps:get(Name, get(?FRAME(Ref)))}
    end.

%% Only what the block touches, or it would hold all that the actor ever held.
seen_state(Self, Slots) ->
    case state_key(Self) of
        none ->
            none;
        Key ->
            case get(Key) of
                undefined -> none;
                State -> maps:with(Slots, State)
            end
    end.

called({_, _, _, _, Body} = Code, Args, #env{scopes = [Outer | _] = Scopes} = Env, {Values, State}) ->
    Ref = make_ref(),
    case get(?FRAME(Outer)) of
        undefined ->
            %% Another process, or a frame that is gone: the values as they were.
            Around = make_ref(),
            open(Around, Values),
            borrowed(State, Env, fun() -> in_frame(Ref, Code, Args, Body, Env#env{scopes = [Ref, Around]}) end, Around);
        _ ->
            in_frame(Ref, Code, Args, Body, Env#env{scopes = [Ref | Scopes]})
    end.

in_frame(Ref, Code, Args, Body, Env) ->
    open(Ref, frame(Code, Args)),
    try sequence(Body, Env) of
        Answer ->
            close(Ref, Answer),
            Answer
    catch
        Class:Reason:Stack ->
            close(Ref, Reason),
            erlang:raise(Class, Reason, Stack)
    end.

%% The slots of an actor as its block saw them, in a process that has none of that actor.
borrowed(State, #env{self = Self}, Run, Around) ->
    Key = state_key(Self),
    Lent = Key =/= none andalso is_map(State) andalso get(Key) =:= undefined,
    _ = Lent andalso put(Key, State),
    try Run() of
        Answer ->
            close(Around, Answer),
            Answer
    catch
        Class:Reason:Stack ->
            close(Around, Reason),
            erlang:raise(Class, Reason, Stack)
    after
        _ = Lent andalso erase(Key)
    end.

%% ---- Matching ------------------------------------------------------------------------------------------------

arms([], Value, _Env) ->
    no_match(Value);
arms([{Pattern, Guard, Body} | Rest], Value, Env) ->
    case matches(Pattern, Value, Env) andalso holds(Guard, Env) of
        true -> eval(Body, Env);
        false -> arms(Rest, Value, Env)
    end.

holds(none, _Env) -> true;
holds(Guard, Env) -> eval(Guard, Env) =:= true.

no_match(Value) ->
    beamtalk_live_errors:raise(match_error, beamtalk_embedded_dispatch:class_of(Value), 'match:',
        io_lib:format("no pattern matches ~ts", [beamtalk_embedded_primitives:printed(Value)]),
        <<"add an arm _ -> ...">>).

matches(wildcard, _Value, _Env) -> true;
matches({lit, Literal}, Value, _Env) -> Literal =:= Value;
matches({bind, Name}, Value, #env{scopes = Scopes}) ->
    _ = write(Name, Value, Scopes),
    true;
matches({typed, Name, Class}, Value, #env{scopes = Scopes}) ->
    is_kind_of(Value, Class) andalso
        begin
            _ = write(Name, Value, Scopes),
            true
        end;
matches({tuple, Patterns}, Value, Env) when is_tuple(Value) -> all(Patterns, tuple_to_list(Value), Env);
matches({array, Patterns}, #{'$beamtalk_class' := 'Array', elements := Elements}, Env) -> all(Patterns, Elements, Env);
matches({array, Patterns}, Value, Env) when is_list(Value) -> all(Patterns, Value, Env);
matches({list, Patterns}, Value, Env) when is_list(Value) -> all(Patterns, Value, Env);
matches({map, Pairs}, Value, Env) when is_map(Value) ->
    lists:all(fun({Key, Pattern}) -> is_map_key(Key, Value) andalso matches(Pattern, maps:get(Key, Value), Env) end,
        Pairs);
matches({constructor, Class, Fields}, #{'$beamtalk_class' := _} = Value, Env) ->
    is_kind_of(Value, Class) andalso
        lists:all(fun({field, Name, Pattern}) ->
            is_map_key(Name, Value) andalso matches(Pattern, maps:get(Name, Value), Env)
        end, Fields);
matches(_Pattern, _Value, _Env) -> false.

all([{rest, Name}], Values, #env{scopes = Scopes}) ->
    _ = write(Name, Values, Scopes),
    true;
all([], [], _Env) -> true;
all([Pattern | Patterns], [Value | Values], Env) -> matches(Pattern, Value, Env) andalso all(Patterns, Values, Env);
all(_Patterns, _Values, _Env) -> false.

is_kind_of(Value, Class) ->
    lists:member(Class, beamtalk_embedded_dispatch:chain(beamtalk_embedded_dispatch:class_of(Value))).

%% ---- Errors --------------------------------------------------------------------------------------------------

%% @doc Any Erlang exception as the object that a handler gets.
-spec raised(error | exit | throw, term(), list()) -> map().
raised(error, #{'$beamtalk_class' := _, error := _} = Exception, _Stack) ->
    Exception;
raised(exit, {timeout, _}, _Stack) ->
    wrapped(timeout, <<"no answer in time">>);
raised(exit, {calling_self, _}, _Stack) ->
    wrapped(dispatch_error, <<"a process cannot be sent a message from within itself">>);
raised(exit, {Reason, {gen_server, call, _}}, _Stack) ->
    wrapped(dead_process, io_lib:format("the receiver's process is gone: ~tP", [Reason, 10]));
raised(error, undef, [{Module, Function, Args, _} | _]) when is_list(Args) ->
    wrapped(erlang_error, io_lib:format("there is no ~tp:~tp/~b", [Module, Function, length(Args)]));
raised(Class, Reason, _Stack) ->
    wrapped(erlang_error, io_lib:format("~tp: ~tP", [Class, Reason, 20])).

wrapped(Kind, Message) ->
    #{'$beamtalk_class' => 'Error',
        error => beamtalk_image_errors:structured(Kind, 'Erlang', undefined, Message, undefined, #{})}.
