%% @doc What `@primitive' means in the library of the embedded image, by class key and selector, and the few
%% named objects that are no classes.
-module(beamtalk_embedded_primitives).

-export([call/4, attempt/4, global/1, array/1, printed/1, display/1, setter/1, exception_fields/1]).

-import(beamtalk_embedded_dispatch, [send/3]).

%% @doc Runs the primitive of a class key and selector. One that does not take this receiver or these
%% arguments raises `type_error'.
-spec call(atom(), atom(), term(), [term()]) -> term().
call(Class, Selector, Self, Args) ->
    case attempt(Class, Selector, Self, Args) of
        {ok, Answer} ->
            Answer;
        no_primitive ->
            beamtalk_live_errors:raise(type_error, Class, Selector,
                io_lib:format("~ts>>~ts does not take ~ts", [Class, Selector,
                    lists:join(", ", [printed(Arg) || Arg <- Args])]),
                undefined)
    end.

%% @doc The same, but answers `no_primitive' where there is none that fits.
-spec attempt(atom(), atom(), term(), [term()]) -> {ok, term()} | no_primitive.
attempt(Class, Selector, Self, Args) ->
    case primitive(beamtalk_image_names:base_name(Class), Selector, Args, Self) of
        '$no_primitive' -> no_primitive;
        Answer -> {ok, Answer}
    end.

%% @doc The objects that programs name like classes.
-spec global(atom()) -> {ok, term()} | undefined.
global('Workspace') -> {ok, #{'$beamtalk_class' => 'WorkspaceInterface'}};
global('Transcript') -> {ok, #{'$beamtalk_class' => 'TranscriptStream'}};
global(_Name) -> undefined.

%% @doc An Array over the elements.
-spec array([term()]) -> map().
array(Elements) -> #{'$beamtalk_class' => 'Array', elements => Elements}.

%% @doc The selector that answers a value with another slot.
-spec setter(atom()) -> binary().
setter(Slot) ->
    <<First, Rest/binary>> = atom_to_binary(Slot),
    <<"with", (string:uppercase(<<First>>))/binary, Rest/binary, ":">>.

%% ---- Objects -------------------------------------------------------------------------------------------------

primitive('ProtoObject', class, [], Self) -> class_of(Self);
primitive('ProtoObject', '==', [Other], Self) -> Self =:= Other;
primitive('Object', 'respondsTo:', [Selector], Self) when is_atom(Selector) ->
    beamtalk_embedded_dispatch:understands(key(Self), Selector);
primitive('Object', printString, [], Self) -> printed(Self);
primitive('Object', 'isKindOf:', [{beamtalk_object, _, _, _} = Class], Self) ->
    lists:member(name(Class), beamtalk_embedded_dispatch:chain(key(Self)));
primitive('Object', hash, [], Self) -> erlang:phash2(Self);
primitive('Object', 'perform:', [Selector], Self) when is_atom(Selector) -> send(Self, Selector, []);
primitive('Object', 'perform:withArguments:', [Selector, Args], Self) when is_atom(Selector) ->
    send(Self, Selector, elements(Args));
primitive('Object', 'error:', [Text], Self) when is_binary(Text) ->
    beamtalk_live_errors:raise(error, key(Self), 'error:', Text, undefined);
primitive('Object', subclassResponsibility, [], Self) ->
    beamtalk_live_errors:raise(subclass_responsibility, key(Self), undefined,
        <<"a subclass must define this method">>, undefined);

%% ---- Classes -------------------------------------------------------------------------------------------------

primitive('Behaviour', Selector, Args, Self) ->
    beamtalk_embedded_reflection:behaviour(Selector, Args, Self);
primitive('Protocol', Selector, Args, _Self) ->
    beamtalk_embedded_reflection:protocol(Selector, Args);
primitive('SystemNavigation', Selector, Args, _Self) ->
    beamtalk_embedded_reflection:navigation(Selector, Args);
primitive('WorkspaceInterface', Selector, Args, _Self) ->
    beamtalk_embedded_reflection:workspace(Selector, Args);
primitive('ChangeLog', dirtyMethods, [], _Self) ->
    beamtalk_workspace_changelog:dirtyMethods();
primitive('Value', new, [], Class) ->
    Name = name(Class),
    (beamtalk_embedded_dispatch:fields(Name))#{'$beamtalk_class' => Name};
primitive('Value', 'new:', [Slots], Class) when is_map(Slots) ->
    Name = name(Class),
    Defaults = beamtalk_embedded_dispatch:fields(Name),
    case maps:keys(Slots) -- maps:keys(Defaults) of
        [] ->
            (maps:merge(Defaults, Slots))#{'$beamtalk_class' => Name};
        Unknown ->
            beamtalk_live_errors:raise(no_such_slot, Name, 'new:',
                io_lib:format("~ts has no slots ~ts", [Name, printed(lists:sort(Unknown))]), undefined)
    end;
primitive('Actor', spawn, [], Class) -> beamtalk_embedded_actor:start(name(Class), #{});
primitive('Actor', 'spawnWith:', [Slots], Class) when is_map(Slots) ->
    beamtalk_embedded_actor:start(name(Class), Slots);

%% ---- Numbers -------------------------------------------------------------------------------------------------

primitive('Number', '+', [B], A) when is_number(B) -> A + B;
primitive('Number', '-', [B], A) when is_number(B) -> A - B;
primitive('Number', '*', [B], A) when is_number(B) -> A * B;
primitive('Number', '/', [B], A) when is_number(B), B == 0 -> zero_division(A, '/');
primitive('Number', '/', [B], A) when is_integer(A), is_integer(B), A rem B =:= 0 -> A div B;
primitive('Number', '/', [B], A) when is_number(B) -> A / B;
primitive('Number', '%', [B], A) when is_integer(A), is_integer(B) -> modulo(A, B);
primitive('Number', '**', [B], A) when is_integer(A), is_integer(B), B >= 0 -> power(A, B, 1);
primitive('Number', '**', [B], A) when is_number(B) -> math:pow(A, B);
primitive('Number', '<', [B], A) when is_number(B) -> A < B;
primitive('Number', '>', [B], A) when is_number(B) -> A > B;
primitive('Number', '<=', [B], A) when is_number(B) -> A =< B;
primitive('Number', '>=', [B], A) when is_number(B) -> A >= B;
primitive('Number', abs, [], A) -> abs(A);
primitive('Number', rounded, [], A) -> round(A);
primitive('Number', truncated, [], A) -> trunc(A);
primitive('Number', asFloat, [], A) -> A * 1.0;
primitive('Number', printString, [], A) -> printed(A);
primitive('Integer', 'div:', [0], A) -> zero_division(A, 'div:');
primitive('Integer', 'div:', [B], A) when is_integer(B) -> A div B;
primitive('Integer', asCharacter, [], A) when A >= 0 -> <<A/utf8>>;
primitive('Integer', 'to:', [B], A) when is_integer(B), B >= A -> lists:seq(A, B);
primitive('Integer', 'to:', [B], _A) when is_integer(B) -> [];

%% ---- Strings and symbols -------------------------------------------------------------------------------------

primitive('String', '++', [B], A) when is_binary(B) -> <<A/binary, B/binary>>;
primitive('String', '<', [B], A) when is_binary(B) -> A < B;
primitive('String', '>', [B], A) when is_binary(B) -> A > B;
primitive('String', '<=', [B], A) when is_binary(B) -> A =< B;
primitive('String', '>=', [B], A) when is_binary(B) -> A >= B;
primitive('String', size, [], A) -> string:length(A);
primitive('String', uppercase, [], A) -> string:uppercase(A);
primitive('String', lowercase, [], A) -> string:lowercase(A);
primitive('String', trim, [], A) -> string:trim(A);
primitive('String', reversed, [], A) -> unicode:characters_to_binary(string:reverse(A));
primitive('String', 'includesSubstring:', [B], A) when is_binary(B) -> binary:match(A, B) =/= nomatch orelse B =:= <<>>;
primitive('String', 'startsWith:', [B], A) when is_binary(B) -> string:prefix(A, B) =/= nomatch;
primitive('String', 'split:', [B], A) when is_binary(B), B =/= <<>> -> binary:split(A, B, [global]);
primitive('String', 'replaceAll:with:', [B, C], A) when is_binary(B), B =/= <<>>, is_binary(C) ->
    binary:replace(A, B, C, [global]);
primitive('String', asInteger, [], A) ->
    try
        binary_to_integer(A)
    catch
        error:badarg -> nil
    end;
%% Only a symbol that exists: text that is asked about makes no name.
primitive('String', asSymbol, [], A) ->
    try
        binary_to_existing_atom(A)
    catch
        error:_ -> nil
    end;
primitive('Symbol', asString, [], A) -> atom_to_binary(A);

%% ---- Collections ---------------------------------------------------------------------------------------------

primitive('List', size, [], A) -> length(A);
primitive('List', 'do:', [Block], A) when is_function(Block, 1) ->
    lists:foreach(Block, A),
    nil;
primitive('List', 'collect:', [Block], A) when is_function(Block, 1) -> [Block(E) || E <- A];
primitive('List', 'select:', [Block], A) when is_function(Block, 1) -> [E || E <- A, true(Block(E))];
primitive('List', 'inject:into:', [First, Block], A) when is_function(Block, 2) ->
    lists:foldl(fun(E, Sum) -> Block(Sum, E) end, First, A);
primitive('List', 'detect:ifNone:', [Block, None], A) when is_function(Block, 1), is_function(None, 0) ->
    case lists:search(fun(E) -> true(Block(E)) end, A) of
        {value, Found} -> Found;
        false -> None()
    end;
primitive('List', 'includes:', [E], A) -> lists:member(E, A);
primitive('List', 'add:', [E], A) -> A ++ [E];
primitive('List', 'addFirst:', [E], A) -> [E | A];
primitive('List', '++', [B], A) when is_list(B) -> A ++ B;
primitive('List', 'at:', [N], A) when is_integer(N) ->
    case N >= 1 andalso N =< length(A) of
        true -> lists:nth(N, A);
        false -> out_of_bounds('List', N, length(A))
    end;
primitive('List', first, [], [E | _]) -> E;
primitive('List', first, [], []) -> out_of_bounds('List', 1, 0);
primitive('List', rest, [], [_ | Rest]) -> Rest;
primitive('List', rest, [], []) -> [];
primitive('List', reversed, [], A) -> lists:reverse(A);
primitive('List', sort, [], A) -> lists:sort(fun(X, Y) -> not true(send(Y, '<', [X])) end, A);
primitive('List', 'sort:', [Block], A) when is_function(Block, 2) -> lists:sort(fun(X, Y) -> true(Block(X, Y)) end, A);
primitive('List', 'join:', [Between], A) when is_binary(Between) ->
    iolist_to_binary(lists:join(Between, [display(E) || E <- A]));
primitive('List', asArray, [], A) -> array(A);
primitive('List', asSet, [], A) -> beamtalk_image_host:make_set(A);
primitive('List', printString, [], A) -> printed(A);
primitive('Dictionary', size, [], A) -> map_size(A);
primitive('Dictionary', keys, [], A) -> lists:sort(maps:keys(A));
primitive('Dictionary', values, [], A) -> [maps:get(Key, A) || Key <- lists:sort(maps:keys(A))];
primitive('Dictionary', 'at:ifAbsent:', [Key, Block], A) when is_function(Block, 0) ->
    case A of
        #{Key := Value} -> Value;
        _ -> Block()
    end;
primitive('Dictionary', 'at:put:', [Key, Value], A) -> A#{Key => Value};
primitive('Dictionary', 'includesKey:', [Key], A) -> is_map_key(Key, A);
primitive('Dictionary', 'removeKey:', [Key], A) -> maps:remove(Key, A);
primitive('Dictionary', printString, [], A) -> printed(A);

%% ---- Blocks --------------------------------------------------------------------------------------------------

primitive('Block', value, [], Self) when is_function(Self, 0) -> Self();
primitive('Block', 'value:', [A], Self) when is_function(Self, 1) -> Self(A);
primitive('Block', 'value:value:', [A, B], Self) when is_function(Self, 2) -> Self(A, B);
primitive('Block', 'value:value:value:', [A, B, C], Self) when is_function(Self, 3) -> Self(A, B, C);
primitive('Block', Selector, Args, Self) when
    Selector =:= value; Selector =:= 'value:'; Selector =:= 'value:value:'; Selector =:= 'value:value:value:'
->
    {arity, Arity} = erlang:fun_info(Self, arity),
    beamtalk_live_errors:raise(arity_mismatch, 'Block', Selector,
        io_lib:format("a block of ~b parameters cannot take ~b", [Arity, length(Args)]), undefined);
primitive('Block', numArgs, [], Self) ->
    {arity, Arity} = erlang:fun_info(Self, arity),
    Arity;
primitive('Block', 'whileTrue:', [Body], Self) when is_function(Self, 0), is_function(Body, 0) ->
    while(true, Self, Body);
primitive('Block', 'whileFalse:', [Body], Self) when is_function(Self, 0), is_function(Body, 0) ->
    while(false, Self, Body);
primitive('Block', 'on:do:', [Class, Handler], Self) when is_function(Self, 0), is_function(Handler) ->
    try
        Self()
    catch
        Kind:Reason:Stack ->
            handled(beamtalk_embedded_eval:is_return(Kind, Reason), Class, Handler, Kind, Reason, Stack)
    end;
primitive('Block', 'ensure:', [Last], Self) when is_function(Self, 0), is_function(Last, 0) ->
    try
        Self()
    after
        Last()
    end;

%% ---- Exceptions ----------------------------------------------------------------------------------------------

primitive('Exception', 'signal:', [Text], Self) when is_binary(Text) ->
    Class = key(Self),
    Kind = maps:get(kind, Self, nil),
    error(Self#{error => beamtalk_image_errors:structured(signalled(Kind), Class, undefined, Text, undefined, #{})});
primitive('Exception', signal, [], #{error := {beamtalk_error, _, _, _, _, _, _}} = Self) -> error(Self);
primitive('Exception', signal, [], Self) -> primitive('Exception', 'signal:', [atom_to_binary(key(Self))], Self);
primitive('Exception', Field, [], Self) -> maps:get(Field, exception_fields(Self), '$no_primitive');

%% ---- Output --------------------------------------------------------------------------------------------------

primitive('TranscriptStream', 'show:', [Value], Self) ->
    io:put_chars(display(Value)),
    Self;
primitive('TranscriptStream', cr, [], Self) ->
    io:nl(),
    Self;
primitive(_Class, _Selector, _Args, _Self) ->
    '$no_primitive'.

signalled(nil) -> error;
signalled(Kind) -> Kind.

handled(true, _Class, _Handler, Kind, Reason, Stack) ->
    erlang:raise(Kind, Reason, Stack);
handled(false, Class, Handler, Kind, Reason, Stack) ->
    Exception = beamtalk_embedded_eval:raised(Kind, Reason, Stack),
    Key = key(Exception),
    case lists:member(name(Class), beamtalk_embedded_dispatch:chain(Key)) of
        true when is_function(Handler, 0) -> Handler();
        true -> Handler(Exception);
        false -> erlang:raise(Kind, Reason, Stack)
    end.

%% @doc What an exception says of itself.
-spec exception_fields(map()) -> map().
exception_fields(#{error := {beamtalk_error, Kind, Class, Selector, Message, Hint, _Details}}) ->
    #{kind => Kind, errorClass => nil(Class), selector => nil(Selector), message => Message, messageText => Message,
        hint => nil(Hint)};
exception_fields(_NotSignalled) ->
    #{kind => nil, errorClass => nil, selector => nil, message => nil, messageText => nil, hint => nil}.

nil(undefined) -> nil;
nil(Value) -> Value.

while(Wanted, Condition, Body) ->
    case Condition() of
        Wanted ->
            _ = Body(),
            while(Wanted, Condition, Body);
        _ ->
            nil
    end.

true(true) -> true;
true(false) -> false;
true(Other) ->
    beamtalk_live_errors:raise(type_error, key(Other), undefined,
        io_lib:format("~ts is neither true nor false", [printed(Other)]), undefined).

modulo(A, 0) -> zero_division(A, '%');
modulo(A, B) -> ((A rem B) + B) rem B.

power(_Base, 0, Product) -> Product;
power(Base, N, Product) when N band 1 =:= 1 -> power(Base * Base, N bsr 1, Product * Base);
power(Base, N, Product) -> power(Base * Base, N bsr 1, Product).

zero_division(A, Selector) ->
    beamtalk_live_errors:raise(division_by_zero, key(A), Selector, <<"division by zero">>, undefined).

out_of_bounds(Class, N, Size) ->
    beamtalk_live_errors:raise(index_out_of_bounds, Class, 'at:',
        io_lib:format("there is no element ~b; the size is ~b", [N, Size]), <<"the first element is 1">>).

elements(#{'$beamtalk_class' := 'Array', elements := Elements}) -> Elements;
elements(List) when is_list(List) -> List.

class_of({beamtalk_object, 'Metaclass', _, _}) ->
    beamtalk_embedded:class('Metaclass');
class_of({beamtalk_object, Class, _, _} = Self) ->
    case beamtalk_image_names:is_class_tag(Class) of
        true -> beamtalk_embedded:metaclass(name(Self));
        false -> beamtalk_embedded:class(Class)
    end;
class_of(Self) ->
    beamtalk_embedded:class(key(Self)).

key(Self) -> beamtalk_embedded_dispatch:class_of(Self).

name({beamtalk_object, _, _, Pid}) -> beamtalk_embedded_class:class_name(Pid).

%% ---- Printing ------------------------------------------------------------------------------------------------

%% @doc How a value is displayed within text.
-spec display(term()) -> binary().
display(Value) -> send(Value, displayString, []).

%% @doc How a value prints by itself; its parts are sent `printString'.
-spec printed(term()) -> binary().
printed(Integer) when is_integer(Integer) -> integer_to_binary(Integer);
printed(Float) when is_float(Float) -> iolist_to_binary(io_lib:format("~p", [Float]));
printed(Text) when is_binary(Text) -> quoted(Text);
printed(Word) when Word =:= true; Word =:= false; Word =:= nil -> atom_to_binary(Word);
printed(Symbol) when is_atom(Symbol) -> symbol(atom_to_binary(Symbol));
printed([]) -> <<"#()">>;
printed(List) when is_list(List) -> sequence(<<"#(">>, proper(List), <<")">>);
printed(Block) when is_function(Block) -> <<"a Block">>;
printed({beamtalk_object, 'Metaclass', _, Pid}) -> <<(class_name(Pid))/binary, " class">>;
printed({beamtalk_object, Class, _, Pid}) ->
    case beamtalk_image_names:is_class_tag(Class) of
        true -> class_name(Pid);
        false -> one_of(Class)
    end;
printed({beamtalk_erlang_module, Module}) -> <<"Erlang ", (atom_to_binary(Module))/binary>>;
printed(#{'$beamtalk_class' := 'Array', elements := Elements}) -> sequence(<<"#[">>, Elements, <<"]">>);
printed(#{'$beamtalk_class' := 'Set', elements := Elements}) -> sequence(<<"Set(">>, Elements, <<")">>);
printed(#{'$beamtalk_class' := 'Association', key := Key, value := Value}) ->
    <<(element_printed(Key))/binary, " -> ", (element_printed(Value))/binary>>;
printed(#{'$beamtalk_class' := Class} = Value) -> slots_printed(Class, Value);
printed(Map) when is_map(Map) ->
    Pairs = [[element_printed(Key), " => ", element_printed(maps:get(Key, Map))] || Key <- lists:sort(maps:keys(Map))],
    iolist_to_binary(["#{", lists:join(", ", Pairs), "}"]);
printed(Other) -> unicode:characters_to_binary(io_lib:format("~tp", [Other])).

slots_printed(Class, Value) ->
    Slots = [Slot || Slot <- slot_names(Class), is_map_key(Slot, Value)],
    Pairs = [[atom_to_binary(Slot), ": ", element_printed(maps:get(Slot, Value))] || Slot <- Slots],
    case {Pairs, exception_fields(Value)} of
        {[], #{kind := Kind, message := Message}} when Kind =/= nil ->
            iolist_to_binary([atom_to_binary(Class), ": ", Message]);
        {[], _} ->
            one_of(Class);
        _ ->
            iolist_to_binary([atom_to_binary(Class), "(", lists:join(", ", Pairs), ")"])
    end.

one_of(Class) ->
    case atom_to_binary(Class) of
        <<First, _/binary>> = Name when First =:= $A; First =:= $E; First =:= $I; First =:= $O; First =:= $U ->
            <<"an ", Name/binary>>;
        Name ->
            <<"a ", Name/binary>>
    end.

slot_names(Class) ->
    Rows = [beamtalk_embedded_table:class(Name) || Name <- lists:reverse(beamtalk_embedded_dispatch:chain(Class))],
    [Slot || #{slots := Slots} <- Rows, {Slot, _} <- Slots].

element_printed(Value) ->
    send(Value, printString, []).

sequence(Open, Elements, Close) ->
    iolist_to_binary([Open, lists:join(", ", [element_printed(E) || E <- Elements]), Close]).

%% An improper tail, which only foreign calls answer, is shown as one more element.
proper([Head | Tail]) when is_list(Tail) -> [Head | proper(Tail)];
proper([Head | Tail]) -> [Head, Tail];
proper([]) -> [].

quoted(Text) ->
    <<"\"", (binary:replace(Text, <<"\"">>, <<"\"\"">>, [global]))/binary, "\"">>.

symbol(Text) ->
    case re:run(Text, "^([A-Za-z_][A-Za-z0-9_]*:?)([A-Za-z_][A-Za-z0-9_]*:)*$|^[-+*/<>=~%&?,\\\\]+$") of
        nomatch -> <<"#'", (binary:replace(Text, <<"'">>, <<"''">>, [global]))/binary, "'">>;
        _ -> <<"#", Text/binary>>
    end.

%% Known without a message, so that errors about a busy class can be worded.
class_name(Pid) ->
    case [Name || {Name, #{pid := Owner}} <- beamtalk_embedded_table:classes(), Owner =:= Pid] of
        [Name | _] -> atom_to_binary(Name);
        [] -> <<"a removed class">>
    end.
