%% Bodies against a naive model: random methods with variables that blocks share, branches, loops, returns out
%% of blocks and recursion must answer and leave what a few lines of Erlang say; and the comparison must
%% notice wrong models.
-module(prop_beamtalk_embedded).

-include_lib("eunit/include/eunit.hrl").

-define(CASES, 150).
-define(VARIABLES, [a, b, c]).

bodies_test_() ->
    {setup, fun start/0, fun(_) -> beamtalk_embedded:stop() end, [
        {"random bodies do what the model says", {timeout, 120, fun() ->
            ?assertEqual(true, proper:counterexample(prop_body(right), [quiet, {numtests, ?CASES}, {max_size, 25}]))
        end}},
        {"every wrong model is noticed", {timeout, 120, fun() ->
            [?assertMatch([_], proper:counterexample(prop_body(Fault), [quiet, {numtests, 2_000}, {max_size, 25}]))
                || Fault <- [blocks_keep_their_writes, return_leaves_the_block_only, right_operand_first]]
        end}}
    ]}.

start() ->
    {ok, _} = beamtalk_embedded:start(#{project => "."}).

prop_body(Model) ->
    proper:forall(body(), fun(Body) ->
        Answer = real(Body),
        0 = beamtalk_embedded_eval:frames(),
        Answer =:= model(Body, Model)
    end).

%% ---- The real thing ------------------------------------------------------------------------------------------

%% As a method, and typed at a prompt with a block around it.
real(Body) ->
    Statements = ["    a := 1\n    b := 2\n    c := 3\n", [["    ", text(Statement), "\n"] || Statement <- Body],
        "    #(#end, a, b, c)\n"],
    _ = beamtalk_embedded_loader:text(iolist_to_binary(["Value subclass: Made\n  go =>\n", Statements]), dynamic),
    {ok, Answer} = beamtalk_image:eval("Made new go"),
    case has_return(Body) of
        true ->
            Answer;
        false ->
            %% The same answer twice: a block that is called again finds its variables fresh.
            {ok, [Answer, Answer]} = beamtalk_image:eval(["f := [\n", Statements, "]\n#(f value, f value)"]),
            Answer
    end.

text({int, N}) -> integer_to_list(N);
text({var, Name}) -> atom_to_list(Name);
text({op, Op, Left, Right}) -> ["(", text(Left), " ", atom_to_list(Op), " ", text(Right), ")"];
text({set, Name, Value}) -> ["(", atom_to_list(Name), " := ", text(Value), ")"];
text({'if', Left, Right, Then, Else}) ->
    ["((", text(Left), " < ", text(Right), ") ifTrue: [", text(Then), "] ifFalse: [", text(Else), "])"];
text({block, First, Last}) -> ["[", text(First), ". ", text(Last), "] value"];
text({apply, Value, Body}) -> ["([:p | c := c + p. ", text(Body), "] value: ", text(Value), ")"];
text({repeat, N, Body}) -> [integer_to_list(N), " timesRepeat: [", text(Body), "]"];
text({each, Elements, Body}) ->
    ["#(", lists:join(", ", [text(E) || E <- Elements]), ") do: [:e | b := b - e. ", text(Body), "]"];
text({return_if, Left, Right, Value}) ->
    ["(", text(Left), " < ", text(Right), ") ifTrue: [^ #(#early, ", text(Value), ")]"].

%% ---- The model -----------------------------------------------------------------------------------------------

model(Body, Model) ->
    try
        Env = lists:foldl(
            fun(Statement, Before) ->
                {_, After} = run(Statement, Before, Model),
                After
            end,
            #{a => 1, b => 2, c => 3},
            Body
        ),
        ['end' | [maps:get(Name, Env) || Name <- ?VARIABLES]]
    catch
        throw:{early, Value} -> [early, Value]
    end.

run({int, N}, Env, _) -> {N, Env};
run({var, Name}, Env, _) -> {maps:get(Name, Env), Env};
run({op, Op, Left, Right}, Env, right_operand_first = Model) ->
    {B, Env1} = run(Right, Env, Model),
    {A, Env2} = run(Left, Env1, Model),
    {erlang:Op(A, B), Env2};
run({op, Op, Left, Right}, Env, Model) ->
    {A, Env1} = run(Left, Env, Model),
    {B, Env2} = run(Right, Env1, Model),
    {erlang:Op(A, B), Env2};
run({set, Name, Value}, Env, Model) ->
    {V, Env1} = run(Value, Env, Model),
    {V, Env1#{Name := V}};
run({'if', Left, Right, Then, Else}, Env, Model) ->
    {A, Env1} = run(Left, Env, Model),
    {B, Env2} = run(Right, Env1, Model),
    case A < B of
        true -> run(Then, Env2, Model);
        false -> run(Else, Env2, Model)
    end;
run({block, First, Last}, Env, Model) ->
    {_, Env1} = run(First, Env, Model),
    {V, Env2} = run(Last, Env1, Model),
    {V, written(Env, Env2, Model)};
run({apply, Value, Body}, Env, Model) ->
    {P, #{c := C} = Env1} = run(Value, Env, Model),
    {V, Env2} = run(Body, Env1#{c := C + P}, Model),
    {V, written(Env1, Env2, Model)};
run({repeat, N, Body}, Env, Model) ->
    {nil, times(N, Body, Env, Model)};
run({each, Elements, Body}, Env, Model) ->
    {Values, Env1} = lists:mapfoldl(fun(E, Before) -> run(E, Before, Model) end, Env, Elements),
    {nil, lists:foldl(fun(E, #{b := B} = Before) ->
        {_, After} = run(Body, Before#{b := B - E}, Model),
        After
    end, Env1, Values)};
run({return_if, Left, Right, Value}, Env, Model) ->
    {A, Env1} = run(Left, Env, Model),
    {B, Env2} = run(Right, Env1, Model),
    case A < B of
        true when Model =:= return_leaves_the_block_only -> run(Value, Env2, Model);
        true ->
            {V, _} = run(Value, Env2, Model),
            throw({early, V});
        false -> {nil, Env2}
    end.

times(0, _Body, Env, _Model) -> Env;
times(N, Body, Env, Model) ->
    {_, After} = run(Body, Env, Model),
    times(N - 1, Body, After, Model).

written(Before, _After, blocks_keep_their_writes) -> Before;
written(_Before, After, _Model) -> After.

has_return(Term) when is_tuple(Term) -> element(1, Term) =:= return_if orelse has_return(tuple_to_list(Term));
has_return([Head | Tail]) -> has_return(Head) orelse has_return(Tail);
has_return(_Leaf) -> false.

%% ---- Bodies --------------------------------------------------------------------------------------------------

body() ->
    proper_types:sized(fun(Size) -> proper_types:list(statement(Size)) end).

statement(Size) ->
    Value = value(Size div 2),
    proper_types:frequency([
        {4, {set, variable(), Value}},
        {2, {block, Value, Value}},
        {2, {repeat, proper_types:range(0, 3), Value}},
        {2, {each, proper_types:list(value(Size div 6)), Value}},
        {1, {return_if, Value, Value, Value}},
        {1, {repeat, proper_types:range(0, 3), {return_if, Value, Value, Value}}}
    ]).

value(0) ->
    proper_types:oneof([{int, proper_types:range(0, 9)}, {var, variable()}]);
value(Size) ->
    Half = proper_types:lazy(fun() -> value(Size div 2) end),
    proper_types:frequency([
        {2, value(0)},
        %% No products: a variable squared again and again outgrows every machine.
        {3, {op, proper_types:oneof(['+', '-']), Half, Half}},
        {2, {set, variable(), Half}},
        {2, {'if', Half, Half, Half, Half}},
        {1, {apply, Half, Half}}
    ]).

variable() ->
    proper_types:oneof(?VARIABLES).
