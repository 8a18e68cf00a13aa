%% @doc Runs what somebody types: expressions with variables that stay, definitions, and changes of single
%% methods. The prompt, scripts and {@link beamtalk_image:eval/1} are made of it.
-module(beamtalk_embedded_session).

-export([new/0, eval/2, program/1, printed/1]).
-export_type([session/0, outcome/0]).

-opaque session() :: beamtalk_embedded_eval:bindings().
-type outcome() :: {ok, term()} | {error, Exception :: map()}.

%% @doc A session without variables.
-spec new() -> session().
new() -> #{}.

%% @doc Runs a text and answers the value of its last part. A class or protocol that it defines belongs to no
%% file; `Name >> sel => ...' patches the class. What fails leaves the parts before it done, and the variables
%% as they were before the failing part.
-spec eval(iodata(), session()) -> {outcome(), session()}.
eval(Input, Session) ->
    Text = unicode:characters_to_binary(Input),
    case beamtalk_reading:items(Text) of
        {ok, Items} -> parts(Items, Text, nil, Session);
        {error, Diagnostics} ->
            {{error, exception(beamtalk_embedded_loader:refused(<<"input">>, Diagnostics))}, Session}
    end.

%% @doc Runs a text of its own.
-spec program(iodata()) -> {ok, term()} | {error, beamtalk_image_errors:structured()}.
program(Input) ->
    case eval(Input, new()) of
        {{ok, Value}, _Session} ->
            ok = beamtalk_embedded_eval:sweep(Value),
            {ok, Value};
        {{error, #{error := Error}}, _Session} -> {error, Error}
    end.

%% @doc The `printString' of a value. One that cannot be printed says so.
-spec printed(term()) -> binary().
printed(Value) ->
    try beamtalk_embedded_dispatch:send(Value, printString, []) of
        Text when is_binary(Text) -> readable(unicode:characters_to_binary(Text), Value);
        _ -> readable(beamtalk_embedded_primitives:printed(Value), Value)
    catch
        _:_ -> readable(error, Value)
    end.

%% Bytes that are no text are shown as bytes.
readable(Text, _Value) when is_binary(Text) -> Text;
readable(_NoText, Value) -> unicode:characters_to_binary(io_lib:format("~tp", [Value])).

parts([], _Text, Value, Session) ->
    ok = beamtalk_embedded_eval:sweep([Value, Session]),
    {{ok, Value}, Session};
parts([Part | Rest], Text, _Before, Session) ->
    try part(Part, Text, Session) of
        {Value, Next} -> parts(Rest, Text, Value, Next)
    catch
        Class:Reason:Stack -> {{error, beamtalk_embedded_eval:raised(Class, Reason, Stack)}, Session}
    end.

part({statement, Statement}, _Text, Session) ->
    beamtalk_embedded_eval:statements([Statement], nil, Session);
part({class, Name, _, _, _, _, _, {Start, End}}, Text, Session) ->
    Source = binary:part(Text, Start, End - Start),
    _ = beamtalk_embedded_loader:text(Source, dynamic),
    ok = beamtalk_embedded_changes:new_class(Name, Source),
    {beamtalk_embedded:class(Name), Session};
part({protocol, Name, _, _, _, {Start, End}}, Text, Session) ->
    _ = beamtalk_embedded_loader:text(binary:part(Text, Start, End - Start), dynamic),
    {beamtalk_embedded:class(Name), Session};
part({extension, Class, {method, Selector, Side, _, _, {Start, End, _}}}, Text, Session) ->
    Method = beamtalk_embedded_compiler:without_target(binary:part(Text, Start, End - Start)),
    ok = patched(beamtalk_protocol_registry:is_protocol(Class), Class, Side, Selector, Method),
    Receiver =
        case Side of
            instance -> beamtalk_embedded:class(Class);
            class -> beamtalk_embedded:metaclass(Class)
        end,
    {beamtalk_embedded_dispatch:send(Receiver, '>>', [Selector]), Session};
part({method, _, _, _, _, _}, _Text, _Session) ->
    beamtalk_live_errors:raise(compile_error, 'Workspace', undefined,
        <<"a method stands alone here">>, <<"write `Name >> selector => ...` to put it into a class">>).

patched(true, Protocol, _Side, Selector, _Method) ->
    ok = beamtalk_embedded_changes:refuse_library_protocol(Protocol, Selector),
    beamtalk_live_errors:raise(runtime_error, 'Protocol', Selector,
        io_lib:format("~ts cannot be edited method by method here", [Protocol]), <<"load its file again">>);
patched(false, Class, Side, _Selector, Method) ->
    case beamtalk_embedded:class(Class) of
        undefined ->
            beamtalk_live_errors:raise(class_not_found, Class, undefined,
                io_lib:format("there is no class ~ts", [Class]), <<"load it first">>);
        _ ->
            _ = beamtalk_embedded_changes:patch(Class, Side, Method),
            ok
    end.

exception(Error) ->
    #{'$beamtalk_class' => 'Error', error => Error}.
