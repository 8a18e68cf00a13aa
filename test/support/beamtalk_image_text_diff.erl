%% The difference of two texts as a host shows it: every line once, prefixed by two characters.
-module(beamtalk_image_text_diff).

-export([unified/2]).

-spec unified(binary(), binary()) -> binary().
unified(Old, New) ->
    iolist_to_binary([[Sign, Line, $\n] || {Sign, Line} <- merged(lines(Old), lines(New))]).

lines(<<>>) ->
    [];
lines(Text) ->
    Lines = binary:split(Text, <<"\n">>, [global]),
    case lists:last(Lines) of
        <<>> -> lists:droplast(Lines);
        _ -> Lines
    end.

%% Along a longest common subsequence; where both ways are as long, what goes stands before what comes.
merged(Old, New) ->
    merged(Old, New, lengths(Old, New)).

merged([], New, _) -> [{"+ ", Line} || Line <- New];
merged(Old, [], _) -> [{"- ", Line} || Line <- Old];
merged([Line | Old], [Line | New], Lengths) -> [{"  ", Line} | merged(Old, New, Lengths)];
merged([Gone | Old], [Come | New] = News, Lengths) ->
    At = {length(Old), length(News)},
    case maps:get(At, Lengths) >= maps:get({length(Old) + 1, length(New)}, Lengths) of
        true -> [{"- ", Gone} | merged(Old, News, Lengths)];
        false -> [{"+ ", Come} | merged([Gone | Old], New, Lengths)]
    end.

%% Length of the longest common subsequence of every pair of tails, by how many lines each tail has.
lengths(Old, New) ->
    Tails = fun(Lines) -> lists:reverse([lists:nthtail(N, Lines) || N <- lists:seq(0, length(Lines))]) end,
    lists:foldl(
        fun({OldTail, NewTail}, Lengths) ->
            Lengths#{{length(OldTail), length(NewTail)} => common(OldTail, NewTail, Lengths)}
        end,
        #{},
        [{OldTail, NewTail} || OldTail <- Tails(Old), NewTail <- Tails(New)]
    ).

common([], _, _) -> 0;
common(_, [], _) -> 0;
common([Line | Old], [Line | New], Lengths) -> 1 + maps:get({length(Old), length(New)}, Lengths);
common([_ | Old] = Olds, [_ | New] = News, Lengths) ->
    max(maps:get({length(Old), length(News)}, Lengths), maps:get({length(Olds), length(New)}, Lengths)).
