%% Specs and types as a compiler reads them from the abstract code of a `.beam' file, and whether one type is
%% as precise as another.
-module(beamtalk_image_specs).

-export([forms/1, exported_types/1, spec/3, parameter_names/3, head_names/3, parse_spec/1, parse_type/1]).
-export([accepts/3, at_least_as_precise/3, type/2]).

-type spec() :: {Args :: [tuple()], Result :: tuple()}.

%% ---- Reading ----------------------------------------------------------------------------------------------

%% The abstract code; a module without it types nothing.
-spec forms(module()) -> [tuple()].
forms(Module) ->
    case get({?MODULE, Module}) of
        undefined ->
            {ok, {Module, [{abstract_code, {raw_abstract_v1, Forms}}]}} =
                beam_lib:chunks(code:which(Module), [abstract_code]),
            put({?MODULE, Module}, Forms),
            Forms;
        Forms ->
            Forms
    end.

-spec exported_types(module()) -> [{atom(), arity()}].
exported_types(Module) ->
    lists:usort(lists:append([Types || {attribute, _, export_type, Types} <- forms(Module)])).

%% A spec with one clause; with several, or none, there is nothing to compare.
-spec spec(module(), atom(), arity()) -> {ok, spec()} | none.
spec(Module, Function, Arity) ->
    case [Clauses || {attribute, _, spec, {Key, Clauses}} <- forms(Module), Key =:= {Function, Arity}] of
        [[Clause]] -> {ok, fun_type(Clause)};
        _ -> none
    end.

fun_type({type, _, 'fun', [{type, _, product, Args}, Result]}) ->
    {Args, Result};
fun_type({type, _, bounded_fun, [Fun, Constraints]}) ->
    Bound = maps:from_list([
        {Name, Type}
        || {type, _, constraint, [{atom, _, is_subtype}, [{var, _, Name}, Type]]} <- Constraints
    ]),
    {Args, Result} = fun_type(Fun),
    {[substitute(Arg, Bound) || Arg <- Args], substitute(Result, Bound)}.

%% Names that a spec gives to its arguments; `none' for one without a name.
-spec parameter_names(module(), atom(), arity()) -> [atom()].
parameter_names(Module, Function, Arity) ->
    {ok, {Args, _Result}} = spec(Module, Function, Arity),
    [
        case Arg of
            {ann_type, _, [{var, _, Name}, _]} -> Name;
            _ -> none
        end
        || Arg <- Args
    ].

%% The variables in the head of every clause, leading underscores aside; `none' for a pattern.
-spec head_names(module(), atom(), arity()) -> [[atom()]].
head_names(Module, Function, Arity) ->
    [Clauses] = [Clauses || {function, _, F, A, Clauses} <- forms(Module), F =:= Function, A =:= Arity],
    [[head_name(Pattern) || Pattern <- Patterns] || {clause, _, Patterns, _, _} <- Clauses].

head_name({var, _, Name}) -> list_to_atom(string:trim(atom_to_list(Name), leading, "_"));
head_name(_Pattern) -> none.

-spec parse_spec(string()) -> {atom(), arity(), spec()}.
parse_spec(Text) ->
    {attribute, _, spec, {{Function, Arity}, [Clause]}} = parse("-spec " ++ Text ++ "."),
    {Function, Arity, fun_type(Clause)}.

-spec parse_type(string()) -> {atom(), tuple()}.
parse_type(Text) ->
    {attribute, _, type, {Name, Type, []}} = parse("-type " ++ Text ++ "."),
    {Name, Type}.

parse(Text) ->
    {ok, Tokens, _} = erl_scan:string(Text),
    {ok, Form} = erl_parse:parse_form(Tokens),
    Form.

%% The definition of a type of the module.
-spec type(module(), atom()) -> {ok, tuple()} | none.
type(Module, Name) ->
    case definition(Module, Name, 0) of
        {Type, []} -> {ok, Type};
        none -> none
    end.

definition(Module, Name, Arity) ->
    Definitions = [
        {Type, Vars}
        || {attribute, _, Kind, {Defined, Type, Vars}} <- forms(Module),
            Kind =:= type orelse Kind =:= opaque,
            Defined =:= Name,
            length(Vars) =:= Arity
    ],
    case Definitions of
        [{Type, Vars}] -> {Type, [Var || {var, _, Var} <- Vars]};
        [] -> none
    end.

%% ---- Comparing --------------------------------------------------------------------------------------------

%% Whether everything of type `Given' fits `Wanted'; names of types are the module's.
-spec at_least_as_precise(module(), tuple(), tuple()) -> boolean().
at_least_as_precise(Module, Given, Wanted) ->
    is_subtype(in(Module, Given), in(Module, Wanted), []).

%% Whether a function with this argument type takes everything of type `Passed'.
-spec accepts(module(), tuple(), tuple()) -> boolean().
accepts(Module, Argument, Passed) ->
    at_least_as_precise(Module, Passed, Argument).

%% Types in a plain form; a named type stays a name until it is looked into, so recursive types end.
in(_Module, {var, _, '_'}) -> any;
in(Module, {ann_type, _, [_Var, Type]}) -> in(Module, Type);
in(Module, {paren_type, _, [Type]}) -> in(Module, Type);
in(Module, {user_type, _, Name, Args}) -> {named, Module, Name, [in(Module, Arg) || Arg <- Args]};
in(Module, {remote_type, _, [{atom, _, Other}, {atom, _, Name}, Args]}) ->
    {named, Other, Name, [in(Module, Arg) || Arg <- Args]};
in(_Module, {atom, _, Atom}) -> {atom, Atom};
in(_Module, {integer, _, Integer}) -> {integer, Integer};
in(Module, {type, _, union, Types}) -> {union, [in(Module, Type) || Type <- Types]};
in(_Module, {type, _, Any, []}) when Any =:= any; Any =:= term -> any;
in(_Module, {type, _, None, []}) when None =:= none; None =:= no_return -> none;
in(_Module, {type, _, boolean, []}) -> {union, [{atom, true}, {atom, false}]};
in(_Module, {type, _, module, []}) -> atom;
in(_Module, {type, _, nil, []}) -> {list, none};
in(_Module, {type, _, string, []}) -> {list, integer};
in(_Module, {type, _, list, []}) -> {list, any};
in(Module, {type, _, List, [Type]}) when List =:= list; List =:= nonempty_list -> {list, in(Module, Type)};
in(_Module, {type, _, tuple, any}) -> tuple;
in(Module, {type, _, tuple, Types}) -> {tuple, [in(Module, Type) || Type <- Types]};
in(_Module, {type, _, map, any}) -> map;
in(Module, {type, _, map, Fields}) -> {map, [field(Module, Field) || Field <- Fields]};
in(_Module, {type, _, Function, []}) when Function =:= function; Function =:= 'fun' -> function;
in(Module, {type, _, 'fun', [{type, _, any}, Result]}) -> {function, any, in(Module, Result)};
in(Module, {type, _, 'fun', [{type, _, product, Args}, Result]}) ->
    {function, [in(Module, Arg) || Arg <- Args], in(Module, Result)};
in(_Module, {type, _, Name, []}) -> Name.

field(Module, {type, _, map_field_exact, [Key, Value]}) -> {always, in(Module, Key), in(Module, Value)};
field(Module, {type, _, map_field_assoc, [Key, Value]}) -> {perhaps, in(Module, Key), in(Module, Value)}.

is_subtype(Same, Same, _Assumed) -> true;
is_subtype(_, any, _Assumed) -> true;
is_subtype(none, _, _Assumed) -> true;
is_subtype({union, Types}, Wanted, Assumed) ->
    lists:all(fun(Type) -> is_subtype(Type, Wanted, Assumed) end, Types);
is_subtype({named, _, _, _} = Named, Wanted, Assumed) ->
    is_subtype_of_named(Named, Wanted, Named, Wanted, left, Assumed);
is_subtype(Given, {named, _, _, _} = Named, Assumed) ->
    is_subtype_of_named(Given, Named, Given, Named, right, Assumed);
is_subtype(Given, {union, Types}, Assumed) ->
    lists:any(fun(Type) -> is_subtype(Given, Type, Assumed) end, Types);
is_subtype({atom, _}, atom, _Assumed) -> true;
is_subtype({integer, N}, Wanted, Assumed) when N > 0 -> is_subtype(pos_integer, Wanted, Assumed);
is_subtype({integer, 0}, Wanted, Assumed) -> is_subtype(non_neg_integer, Wanted, Assumed);
is_subtype(pos_integer, non_neg_integer, _Assumed) -> true;
is_subtype(pos_integer, integer, _Assumed) -> true;
is_subtype(non_neg_integer, integer, _Assumed) -> true;
is_subtype({list, Given}, {list, Wanted}, Assumed) -> is_subtype(Given, Wanted, Assumed);
is_subtype({tuple, _}, tuple, _Assumed) -> true;
is_subtype({tuple, Given}, {tuple, Wanted}, Assumed) when length(Given) =:= length(Wanted) ->
    lists:all(fun({G, W}) -> is_subtype(G, W, Assumed) end, lists:zip(Given, Wanted));
is_subtype({map, _}, map, _Assumed) -> true;
is_subtype({map, Given}, {map, Wanted}, Assumed) ->
    lists:all(fun(Field) -> has_field(Field, Given, Assumed) end, Wanted) andalso
        lists:all(fun(Field) -> has_place(Field, Wanted, Assumed) end, Given);
is_subtype({function, _, _}, function, _Assumed) -> true;
is_subtype({function, Args, Given}, {function, Args, Wanted}, Assumed) -> is_subtype(Given, Wanted, Assumed);
is_subtype(_Given, _Wanted, _Assumed) -> false.

%% What every map of the wanted type has, every map of the given one has.
has_field({perhaps, _, _}, _Given, _Assumed) ->
    true;
has_field({always, Key, Wanted}, Given, Assumed) ->
    lists:any(fun(Field) -> is_that_field(Field, Key, Wanted, Assumed) end, Given).

is_that_field({always, Key, Given}, Key, Wanted, Assumed) -> is_subtype(Given, Wanted, Assumed);
is_that_field(_Field, _Key, _Wanted, _Assumed) -> false.

has_place({_, Key, Given}, Wanted, Assumed) ->
    lists:any(
        fun({_, WantedKey, Value}) ->
            is_subtype(Key, WantedKey, Assumed) andalso is_subtype(Given, Value, Assumed)
        end,
        Wanted
    ).

is_subtype_of_named(Given, Wanted, Left, Right, Side, Assumed) ->
    case lists:member({Left, Right}, Assumed) of
        true ->
            true;
        false ->
            Named =
                case Side of
                    left -> Given;
                    right -> Wanted
                end,
            case {resolve(Named), Side} of
                {none, left} -> is_subtype_unresolved(Given, Wanted, [{Left, Right} | Assumed]);
                {none, right} -> false;
                {Type, left} -> is_subtype(Type, Wanted, [{Left, Right} | Assumed]);
                {Type, right} -> is_subtype(Given, Type, [{Left, Right} | Assumed])
            end
    end.

%% A type of another application is only itself, or a member of a union that names it.
is_subtype_unresolved(Given, {union, Types}, _Assumed) -> lists:member(Given, Types);
is_subtype_unresolved(_Given, _Wanted, _Assumed) -> false.

resolve({named, Module, Name, Args}) ->
    case lists:prefix("beamtalk_", atom_to_list(Module)) andalso definition(Module, Name, length(Args)) of
        {Type, Vars} -> bind(in_open(Module, Type), maps:from_list(lists:zip(Vars, Args)));
        _ -> none
    end.

%% Type variables stay as they are until the arguments are put in.
in_open(Module, Type) ->
    in(Module, substitute_vars(Type)).

substitute_vars({var, Line, Name}) when Name =/= '_' -> {type, Line, {variable, Name}, []};
substitute_vars(Tuple) when is_tuple(Tuple), element(1, Tuple) =/= ann_type ->
    list_to_tuple([substitute_vars(Element) || Element <- tuple_to_list(Tuple)]);
substitute_vars({ann_type, Line, [Var, Type]}) -> {ann_type, Line, [Var, substitute_vars(Type)]};
substitute_vars(List) when is_list(List) -> [substitute_vars(Element) || Element <- List];
substitute_vars(Other) -> Other.

bind({variable, Name}, Bound) -> maps:get(Name, Bound);
bind(Tuple, Bound) when is_tuple(Tuple) -> list_to_tuple(bind(tuple_to_list(Tuple), Bound));
bind(List, Bound) when is_list(List) -> [bind(Element, Bound) || Element <- List];
bind(Other, _Bound) -> Other.

substitute({var, _, Name} = Var, Bound) -> maps:get(Name, Bound, Var);
substitute({ann_type, Line, [Var, Type]}, Bound) -> {ann_type, Line, [Var, substitute(Type, Bound)]};
substitute(Tuple, Bound) when is_tuple(Tuple) ->
    list_to_tuple([substitute(Element, Bound) || Element <- tuple_to_list(Tuple)]);
substitute(List, Bound) when is_list(List) -> [substitute(Element, Bound) || Element <- List];
substitute(Other, _Bound) -> Other.
