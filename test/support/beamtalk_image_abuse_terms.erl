%% Terms that no caller should pass, and the question which of them a spec keeps out.
%%
%% Functions and argument types are read from the compiled module, so a function that is added later is
%% abused too.
-module(beamtalk_image_abuse_terms).

-export([nifs/1, signatures/1, wrong_calls/2, everything/0, deep/0, depth/0]).
-export_type([signature/0, call/0]).

-type signature() :: {Function :: atom(), [Type :: tuple()]}.
-type call() :: {Function :: atom(), Args :: [term()], Position :: pos_integer()}.

-define(DEPTH, 100_000).

%% How deep the deep terms are.
-spec depth() -> pos_integer().
depth() -> ?DEPTH.

%% The functions that a module declares to be native.
-spec nifs(module()) -> [{atom(), arity()}].
nifs(Module) ->
    [_ | _] = lists:append([List || {attribute, _, nifs, List} <- forms(Module)]).

%% Every exported function of a module that has a spec, with the types of its arguments.
-spec signatures(module()) -> [signature()].
signatures(Module) ->
    Forms = forms(Module),
    Exported = Module:module_info(exports),
    Types = maps:from_list([{Name, Is} || {attribute, _, type, {Name, Is, []}} <- Forms]),
    [{Function, [inline(Type, Types) || Type <- arguments(Clause)]}
        || {attribute, _, spec, {{Function, Arity}, [Clause | _]}} <- Forms,
            lists:member({Function, Arity}, Exported)].

forms(Module) ->
    Beam =
        case code:get_object_code(Module) of
            {Module, Binary, _File} -> Binary;
            error -> code:which(Module)
        end,
    {ok, {Module, [{abstract_code, {_, Forms}}]}} = beam_lib:chunks(Beam, [abstract_code]),
    Forms.

arguments({type, _, bounded_fun, [Fun, _Constraints]}) -> arguments(Fun);
arguments({type, _, 'fun', [{type, _, product, Types}, _Result]}) -> Types.

inline({ann_type, _, [_Name, Type]}, Types) ->
    inline(Type, Types);
inline({user_type, _, Name, []}, Types) ->
    inline(maps:get(Name, Types), Types);
inline({type, Line, Name, Args}, Types) when is_list(Args) ->
    {type, Line, Name, [inline(Arg, Types) || Arg <- Args]};
inline(Type, _Types) ->
    Type.

%% Calls in which one argument, and only it, lies outside its type. `Literals' says whether an atom stands
%% for itself in
%% a type, as it does in a guarded function, or for any atom, as it does in a NIF.
-spec wrong_calls([signature()], literals | any_atom) -> [call()].
wrong_calls(Signatures, Literals) ->
    Everything = everything() ++ deep(),
    [{Function, replace(Position, Term, [valid(Other) || Other <- Types]), Position}
        || {Function, Types} <- Signatures,
            {Position, Type} <- enumerate(Types),
            Term <- Everything,
            not admits(Type, Term, Literals)].

enumerate(List) -> lists:zip(lists:seq(1, length(List)), List).

replace(Position, Term, List) ->
    {Before, [_ | After]} = lists:split(Position - 1, List),
    Before ++ [Term | After].

valid({type, _, boolean, []}) -> false;
valid({type, _, function, []}) -> fun() -> ok end;
valid({type, _, 'fun', _}) -> fun() -> ok end;
valid({type, _, list, _}) -> [];
valid({type, _, map, _}) -> #{selector => abused, line => 1};
valid({type, _, Integer, []}) when Integer =:= non_neg_integer; Integer =:= pos_integer; Integer =:=
    integer -> 1;
valid({type, _, binary, []}) -> <<>>;
valid({type, _, pid, []}) -> self();
valid({type, _, union, [Type | _]}) -> valid(Type);
valid({type, _, tuple, any}) -> selectors;
valid({atom, _, Atom}) -> Atom;
valid(_) -> abused.

%% Whether a term may belong to a type. What is not told apart here counts as belonging.
admits({type, _, Name, []}, Term, _) when Name =:= atom; Name =:= module -> is_atom(Term);
admits({type, _, boolean, []}, Term, _) -> is_boolean(Term);
admits({type, _, function, []}, Term, _) -> is_function(Term);
admits({type, _, 'fun', [{type, _, product, Args}, _]}, Term, _) -> is_function(Term, length(Args));
admits({type, _, list, Of}, Term, Literals) ->
    is_proper(Term) andalso
        lists:all(fun(Element) -> lists:all(fun(T) -> admits(T, Element, Literals) end, Of) end, Term);
admits({type, _, map, _}, Term, _) -> is_map(Term);
admits({type, _, tuple, any}, Term, _) -> is_tuple(Term);
admits({type, _, tuple, Types}, Term, Literals) ->
    is_tuple(Term) andalso tuple_size(Term) =:= length(Types) andalso
        lists:all(fun({T, E}) -> admits(T, E, Literals) end, lists:zip(Types, tuple_to_list(Term)));
admits({type, _, binary, []}, Term, _) -> is_binary(Term);
admits({type, _, integer, []}, Term, _) -> is_integer(Term);
%% Versions rise from one; zero is the version of nothing.
admits({type, _, Natural, []}, Term, _) when Natural =:= pos_integer; Natural =:= non_neg_integer ->
    is_integer(Term) andalso Term >= 0;
admits({type, _, pid, []}, Term, _) -> is_pid(Term);
admits({type, _, union, Types}, Term, Literals) ->
    lists:any(fun(Type) -> admits(Type, Term, Literals) end, Types);
admits({atom, _, Atom}, Term, literals) -> Term =:= Atom;
admits({atom, _, _}, Term, any_atom) -> is_atom(Term);
admits(_, _, _) -> true.

is_proper([_ | Tail]) -> is_proper(Tail);
is_proper(Tail) -> Tail =:= [].

%% One or more terms of each kind.
-spec everything() -> [term()].
everything() ->
    [
        0, -1, 1, 1 bsl 32, 1 bsl 64, -(1 bsl 70), 1 bsl 4096, 0.5, -0.0, 1.0e308,
        [], "text", [1], [0.5], [<<>>], [{}], [make_ref()], [[]], [a | b], [1 | 2], [[] | x], [#{} | #{}],
        <<>>, <<"text">>, <<255, 254, 0>>, <<1:3>>, binary:copy(<<"x">>, 1_000_000),
        {}, {a}, {a, b}, {a, b, c}, {union, x}, {1, <<>>}, list_to_tuple(lists:seq(1, 10_000)),
        #{}, #{a => 1}, #{1 => 2}, maps:from_list([{N, N} || N <- lists:seq(1, 1_000)]),
        make_ref(), self(), hd(erlang:ports()), fun() -> ok end, fun(_, _) -> ok end, fun erlang:self/0,
        plain, 'Ünder', 'Σ', list_to_atom(lists:duplicate(255, $x)),
        list_to_atom(lists:duplicate(255, 16#3A3))
    ].

%% Terms nested as deep as no recursive walk survives on a thread's stack.
-spec deep() -> [term()].
deep() ->
    [
        nest(fun(Inner) -> [Inner] end, []),
        nest(fun(Inner) -> [Inner | x] end, x),
        nest(fun(Inner) -> {Inner} end, {}),
        nest(fun(Inner) -> {union, [Inner]} end, dynamic),
        nest(fun(Inner) -> {intersection, [Inner, dynamic]} end, dynamic),
        nest(fun(Inner) -> #{selector => a, line => 1, sends => [Inner]} end, #{}),
        nest(fun(Inner) -> fun() -> Inner end end, none)
    ].

nest(Wrap, Start) ->
    lists:foldl(fun(_, Inner) -> Wrap(Inner) end, Start, lists:seq(1, ?DEPTH)).
