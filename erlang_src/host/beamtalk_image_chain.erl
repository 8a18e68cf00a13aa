%% @doc Walks along superclass rows, which take no message. A cycle ends where it closes, a long chain is walked whole.
-module(beamtalk_image_chain).

-export([ancestors/1, running/1]).

%% @doc The ancestors of a class, nearest first, as far as the host has rows.
-spec ancestors(atom()) -> [atom()].
ancestors(Class) ->
    tl(walk(Class, fun(_) -> true end, [])).

%% @doc The class and its ancestors, nearest first, up to the first that is not running.
-spec running(atom()) -> [atom()].
running(Class) ->
    walk(Class, fun(Name) -> beamtalk_image_host:whereis_class(Name) =/= undefined end, []).

walk(Class, Accept, Chain) ->
    case lists:member(Class, Chain) orelse not Accept(Class) of
        true ->
            lists:reverse(Chain);
        false ->
            case beamtalk_image_host:superclass_row(Class) of
                {ok, Super} when Super =/= none -> walk(Super, Accept, [Class | Chain]);
                _ -> lists:reverse(Chain, [Class])
            end
    end.
