%% @doc Which variables a scope declares. Beamtalk has no declarations: a variable belongs to the innermost
%% method or block around all of its mentions, so that a block called again finds its own variables fresh and
%% shares the others.
%%
%% A method or block `{Params, Statements}' becomes `{Params, Declared, Free, Returns, Statements}':
%% `Declared' are the variables of the scope itself, `Free' those of scopes around it, `Returns' whether `^'
%% stands anywhere but as a statement of a method. A block also names the slots that it touches: `{block,
%% Code, Slots}'.
-module(beamtalk_embedded_scopes).

-export([method/2, statements/2]).
-export_type([code/0]).

-type code() :: {Params :: [atom()], Declared :: [atom()], Free :: [atom()], Returns :: boolean(),
    [beamtalk_reading:statement()]}.

%% @doc A method's parameters and statements with their scopes.
-spec method([atom()], [beamtalk_reading:statement()]) -> code().
method(Params, Statements) ->
    {Declared, Free, Body} = scope(Params, Statements, []),
    {Params, Declared, Free, returns(Statements), Body}.

%% @doc Statements that stand in a scope with variables of its own already, such as a prompt's: what they
%% mention outside of blocks belongs to that scope.
-spec statements([atom()], [beamtalk_reading:statement()]) -> code().
statements(Known, Statements) ->
    {Declared, Free, Body} = scope([], Statements, Known),
    {[], Declared, Free, returns(Statements), Body}.

%% Outer are the variables of the scopes around.
scope(Params, Statements, Outer) ->
    {Direct, Inner} = mentions(Statements),
    Several = shared(Inner, []),
    Own = (lists:usort(Direct ++ Several) -- Outer) -- Params,
    Used = lists:usort(Direct ++ lists:append(Inner)),
    Free = [Name || Name <- Used, lists:member(Name, Outer), not lists:member(Name, Params)],
    Around = lists:usort(Outer ++ Params ++ Own),
    {Own, Free, [resolve(Statement, Around) || Statement <- Statements]}.

shared([], Shared) ->
    Shared;
shared([Names | Rest], Shared) ->
    shared(Rest, [Name || Name <- Names, lists:any(fun(Other) -> lists:member(Name, Other) end, Rest)] ++ Shared).

%% The names mentioned outside of blocks, and for each block those that it mentions without being their
%% parameter.
mentions(Term) ->
    mentions(Term, {[], []}).

mentions({lit, _}, Found) -> Found;
mentions({var, Name}, {Direct, Inner}) -> {[Name | Direct], Inner};
mentions({bind, Name}, {Direct, Inner}) -> {[Name | Direct], Inner};
mentions({rest, Name}, {Direct, Inner}) -> {[Name | Direct], Inner};
mentions({typed, Name, _}, {Direct, Inner}) -> {[Name | Direct], Inner};
mentions({assign, Name, Value}, {Direct, Inner}) -> mentions(Value, {[Name | Direct], Inner});
mentions({block, Params, Statements}, {Direct, Inner}) ->
    {Within, Deeper} = mentions(Statements),
    {Direct, [lists:usort(Within ++ lists:append(Deeper)) -- Params | Inner]};
mentions(Term, Found) when is_tuple(Term) -> mentions(tuple_to_list(Term), Found);
mentions([Head | Tail], Found) -> mentions(Tail, mentions(Head, Found));
mentions(_Leaf, Found) -> Found.

resolve({lit, _} = Literal, _Around) -> Literal;
resolve({block, Params, Statements}, Around) ->
    {Declared, Free, Body} = scope(Params, Statements, Around),
    {block, {Params, Declared, Free, false, Body}, lists:usort(slots(Statements, []))};
resolve(Term, Around) when is_tuple(Term) ->
    list_to_tuple([resolve(Part, Around) || Part <- tuple_to_list(Term)]);
resolve(List, Around) when is_list(List) -> [resolve(Element, Around) || Element <- List];
resolve(Leaf, _Around) -> Leaf.

%% The slots of self that a block touches.
slots({lit, _}, Found) -> Found;
slots({slot, self, Name}, Found) -> [Name | Found];
slots({set_slot, self, Name, Value}, Found) -> slots(Value, [Name | Found]);
slots(Term, Found) when is_tuple(Term) -> slots(tuple_to_list(Term), Found);
slots([Head | Tail], Found) -> slots(Tail, slots(Head, Found));
slots(_Leaf, Found) -> Found.

%% A return that is no statement of the method itself must unwind.
returns(Statements) ->
    lists:any(fun
        ({return, Value}) -> has_return(Value);
        (Statement) -> has_return(Statement)
    end, Statements).

has_return({lit, _}) -> false;
has_return({return, _}) -> true;
has_return(Term) when is_tuple(Term) -> has_return(tuple_to_list(Term));
has_return([Head | Tail]) -> has_return(Head) orelse has_return(Tail);
has_return(_Leaf) -> false.
