%% @doc Runs `.btscript' files: expressions, each with the printed result that it must have.
%%
%% `// => text' behind an expression is the `printString' of its value. A `_' in it, unless letters or digits
%% stand on both sides, matches any text. `// => ERROR: text' expects an error of that kind, or one whose
%% message and hint contain the text piece by piece. Paths are relative to the script: where it stands,
%% `// @load path' loads a file, and `// @load-error path => text' one that must be refused.
%%
%% Other comments and empty lines are skipped. An expression goes on over lines while it is incomplete. One
%% without an expectation is not run.
-module(beamtalk_embedded_script).

-export([file/1, diff/1]).
-export_type([failure/0]).

-type failure() :: #{line := pos_integer(), expression := binary(), expected := binary(), actual := binary()}.

%% @doc Runs a script in the image of this node, top to bottom. Answers how many expectations held, and the
%% others.
-spec file(file:name_all()) -> {Held :: non_neg_integer(), [failure()]}.
file(Path) ->
    {ok, Text} = file:read_file(Path),
    Lines = lists:zip(lists:seq(1, length(binary:matches(Text, <<"\n">>)) + 1), binary:split(Text, <<"\n">>, [global])),
    run([{Number, string:trim(Line)} || {Number, Line} <- Lines],
        #{directory => filename:dirname(Path), session => beamtalk_embedded_session:new(), held => 0, failures => []}).

%% @doc Failures for people: the expression, what was expected and what came.
-spec diff([failure()]) -> binary().
diff(Failures) ->
    unicode:characters_to_binary([
        io_lib:format("line ~b: ~ts~n- ~ts~n+ ~ts~n", [Line, Expression, Expected, Actual])
        || #{line := Line, expression := Expression, expected := Expected, actual := Actual} <- Failures
    ]).

run([], #{held := Held, failures := Failures}) ->
    {Held, lists:reverse(Failures)};
run([{Number, <<"// @load-error ", Rest/binary>>} | Lines], State) ->
    [Path, Expected] = binary:split(Rest, <<"=>">>),
    Outcome = load(string:trim(Path), State),
    Error = <<"ERROR: ", (string:trim(Expected))/binary>>,
    run(Lines, judged(Number, <<"@load-error ", Rest/binary>>, Error, Outcome, State));
run([{Number, <<"// @load ", Path/binary>>} | Lines], State) ->
    case load(string:trim(Path), State) of
        {ok, _} -> run(Lines, State);
        Refused -> run(Lines, judged(Number, <<"@load ", Path/binary>>, <<"_">>, Refused, State))
    end;
run([{_Number, <<"//", _/binary>>} | Lines], State) ->
    run(Lines, State);
run([{_Number, <<>>} | Lines], State) ->
    run(Lines, State);
run([{Number, Line} | Lines], State) ->
    {Expression, Rest} = expression(Line, Lines),
    case Rest of
        [{_, <<"// => ", Expected/binary>>} | Behind] ->
            #{session := Session} = State,
            {Outcome, Next} = beamtalk_embedded_session:eval(Expression, Session),
            run(Behind, judged(Number, Expression, Expected, Outcome, State#{session := Next}));
        _ ->
            run(Rest, State)
    end.

%% Lines are joined while the input is incomplete and the next line is code.
expression(Text, [{_, <<"//", _/binary>>} | _] = Lines) ->
    {Text, Lines};
expression(Text, [{_, Next} | Rest] = Lines) ->
    case beamtalk_reading:input(Text) of
        open -> expression(<<Text/binary, "\n", Next/binary>>, Rest);
        _ -> {Text, Lines}
    end;
expression(Text, []) ->
    {Text, []}.

load(Path, #{directory := Directory}) ->
    try
        {ok, beamtalk_embedded_loader:file(filename:join(Directory, Path))}
    catch
        Class:Reason:Stack -> {error, beamtalk_embedded_eval:raised(Class, Reason, Stack)}
    end.

judged(Number, Expression, Expected, Outcome, #{held := Held, failures := Failures} = State) ->
    case meets(Expected, Outcome) of
        true ->
            State#{held := Held + 1};
        false ->
            Failure = #{line => Number, expression => Expression, expected => Expected, actual => shown(Outcome)},
            State#{failures := [Failure | Failures]}
    end.

meets(<<"ERROR: ", Text/binary>>, {error, #{error := {beamtalk_error, Kind, _, _, Message, Hint, _}}}) ->
    Text =:= atom_to_binary(Kind) orelse contains(pieces(Text), said(Message, Hint));
meets(Expected, {ok, Value}) ->
    matches(pieces(Expected), beamtalk_embedded_session:printed(Value));
meets(_Expected, _Outcome) ->
    false.

shown({ok, Value}) ->
    beamtalk_embedded_session:printed(Value);
shown({error, #{error := {beamtalk_error, Kind, _, _, Message, Hint, _}}}) ->
    <<"ERROR: ", (atom_to_binary(Kind))/binary, ": ", (said(Message, Hint))/binary>>.

said(Message, undefined) -> Message;
said(Message, Hint) -> <<Message/binary, " ", Hint/binary>>.

%% The text between the wildcards.
pieces(Text) ->
    re:split(Text, "_(?![A-Za-z0-9])|(?<![A-Za-z0-9])_", [unicode]).

contains(Pieces, Text) ->
    in_order(Pieces, Text) =/= nomatch.

%% The first piece begins the text and the last one ends it.
matches([Whole], Text) ->
    Whole =:= Text;
matches([First | Rest], Text) ->
    case string:prefix(Text, First) of
        nomatch ->
            false;
        Behind ->
            Last = lists:last(Rest),
            case in_order(lists:droplast(Rest), Behind) of
                nomatch -> false;
                Left -> string:prefix(string:reverse(Left), string:reverse(Last)) =/= nomatch
            end
    end.

in_order([], Text) ->
    Text;
in_order([<<>> | Pieces], Text) ->
    in_order(Pieces, Text);
in_order([Piece | Pieces], Text) ->
    case binary:match(Text, Piece) of
        {At, Length} -> in_order(Pieces, binary:part(Text, At + Length, byte_size(Text) - At - Length));
        nomatch -> nomatch
    end.
