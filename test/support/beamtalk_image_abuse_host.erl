%% A host of a few facts, kept in a table that the test owns. Any callback can be made to stop at a gate
%% until the test
%% lets it go on, or replaced altogether, and what was asked is counted.
-module(beamtalk_image_abuse_host).
-behaviour(beamtalk_image_host).

-export([start/0, stop/0, add/2, add/3, drop/1, replace/2, restore/1, close_gate/2, asked/1, asked/2,
    forget_asked/0]).
-export([wait_at_gate/0, open_gate/1]).
-export([
    whereis_class/1,
    loaded_classes/0,
    live_classes/0,
    descendants/1,
    superclass_row/1,
    instance_selectors/1,
    class_selectors/1,
    class_superclass/1,
    understands/2,
    start_class/2,
    find_sends/1
]).

-type facts() :: #{super => atom(), instance => [atom()], class => [atom()], module => module(),
    pid => pid()}.

-spec start() -> ok.
start() ->
    ?MODULE = ets:new(?MODULE, [named_table, public]),
    beamtalk_image_host:set_module(?MODULE).

-spec stop() -> ok.
stop() ->
    ok = beamtalk_image_host:set_module(undefined),
    [exit(Pid, kill) || {{class, _}, #{pid := Pid}} <- ets:tab2list(?MODULE)],
    ets:delete(?MODULE),
    ok.

%% Adds a running class, or changes what is known of it.
-spec add(atom(), facts()) -> ok.
add(Name, Facts) ->
    Earlier = facts(Name),
    Pid =
        case Earlier of
            #{pid := Running} -> Running;
            _ -> spawn(fun() -> receive stop -> ok end end)
        end,
    ets:insert(?MODULE, {{class, Name}, maps:merge(maps:merge(#{super => none, pid => Pid}, Earlier),
        Facts)}),
    ok.

-spec add(atom(), atom(), [atom()]) -> ok.
add(Name, Super, Instance) ->
    add(Name, #{super => Super, instance => Instance}).

-spec drop(atom()) -> ok.
drop(Name) ->
    case facts(Name) of
        #{pid := Pid} -> exit(Pid, kill);
        _ -> ok
    end,
    ets:delete(?MODULE, {class, Name}),
    ok.

%% Makes a callback answer by a function of the argument list.
-spec replace(atom(), fun((list()) -> term())) -> ok.
replace(Function, Fun) ->
    ets:insert(?MODULE, {{replaced, Function}, Fun}),
    ok.

-spec restore(atom()) -> ok.
restore(Function) ->
    ets:delete(?MODULE, {replaced, Function}),
    ok.

%% The next call with these arguments reports to the calling test and waits.
-spec close_gate(atom(), list()) -> ok.
close_gate(Function, Args) ->
    ets:insert(?MODULE, {{gate, Function, Args}, self()}),
    ok.

-spec wait_at_gate() -> pid().
wait_at_gate() ->
    receive
        {at_gate, Pid} -> Pid
    after 5_000 ->
        error(nobody_came_to_the_gate)
    end.

-spec open_gate(pid()) -> ok.
open_gate(Pid) ->
    Pid ! go_on,
    ok.

%% How often a callback was called, whatever its arguments.
-spec asked(atom()) -> non_neg_integer().
asked(Function) ->
    lists:sum([Count || {{asked, F, _}, Count} <- ets:tab2list(?MODULE), F =:= Function]).

-spec asked(atom(), list()) -> non_neg_integer().
asked(Function, Args) ->
    lists:sum([Count || {_, Count} <- ets:lookup(?MODULE, {asked, Function, Args})]).

-spec forget_asked() -> ok.
forget_asked() ->
    ets:match_delete(?MODULE, {{asked, '_', '_'}, '_'}),
    ok.

whereis_class(Name) ->
    answer(whereis_class, [Name], fun() -> maps:get(pid, facts(Name), undefined) end).

loaded_classes() ->
    answer(loaded_classes, [], fun() -> [{Name, Pid} || {{class, Name},
        #{pid := Pid}} <- ets:tab2list(?MODULE)] end).

live_classes() ->
    answer(live_classes, [], fun() ->
        [{Name, maps:get(module, Facts, Name), Pid}
            || {{class, Name}, #{pid := Pid} = Facts} <- ets:tab2list(?MODULE)]
    end).

descendants(Name) ->
    answer(descendants, [Name], fun() -> lists:sort(below([Name], [])) end).

superclass_row(Name) ->
    answer(superclass_row, [Name], fun() ->
        case facts(Name) of
            #{super := Super} -> {ok, Super};
            _ -> not_found
        end
    end).

instance_selectors(Pid) ->
    answer(instance_selectors, [name(Pid)], fun() -> maps:get(instance, facts(name(Pid)), []) end).

class_selectors(Pid) ->
    answer(class_selectors, [name(Pid)], fun() -> maps:get(class, facts(name(Pid)), []) end).

class_superclass(Pid) ->
    answer(class_superclass, [name(Pid)], fun() -> maps:get(super, facts(name(Pid)), none) end).

understands(Name, Selector) ->
    answer(understands, [Name, Selector], fun() -> understands(Name, Selector, []) end).

start_class(Name, Info) ->
    answer(start_class, [Name, Info], fun() ->
        ok = add(Name, #{super => maps:get(superclass, Info, none), module => maps:get(module, Info, Name)}),
        {ok, maps:get(pid, facts(Name))}
    end).

%% A method text is the selectors it sends, one a line.
find_sends(Source) ->
    answer(find_sends, [Source], fun() ->
        Lines = [Line || Line <- binary:split(Source, <<"\n">>, [global]), Line =/= <<>>],
        {ok, [#{selector => Line, line => N, recv => self, target_module => <<>>}
            || {N, Line} <- lists:zip(lists:seq(1, length(Lines)), Lines)]}
    end).

answer(Function, Args, Answer) ->
    _ = ets:update_counter(?MODULE, {asked, Function, Args}, 1, {{asked, Function, Args}, 0}),
    case ets:take(?MODULE, {gate, Function, Args}) of
        [{_, Test}] ->
            Test ! {at_gate, self()},
            receive go_on -> ok end;
        [] ->
            ok
    end,
    case ets:lookup(?MODULE, {replaced, Function}) of
        [{_, Replacement}] -> Replacement(Args);
        [] -> Answer()
    end.

facts(Name) ->
    case ets:lookup(?MODULE, {class, Name}) of
        [{_, Facts}] -> Facts;
        [] -> #{}
    end.

name(Pid) ->
    case [Name || {{class, Name}, #{pid := P}} <- ets:tab2list(?MODULE), P =:= Pid] of
        [Name] -> Name;
        [] -> exit({noproc, Pid})
    end.

understands(none, _Selector, _Seen) ->
    false;
understands(Name, Selector, Seen) ->
    case lists:member(Name, Seen) of
        true ->
            false;
        false ->
            Facts = facts(Name),
            lists:member(Selector, maps:get(instance, Facts, [])) orelse
                understands(maps:get(super, Facts, none), Selector, [Name | Seen])
    end.

below([], Found) ->
    Found;
below([Name | Rest], Found) ->
    Direct = [Sub || {{class, Sub}, #{super := Super}} <- ets:tab2list(?MODULE), Super =:= Name,
        not lists:member(Sub, Found)],
    below(Rest ++ Direct, Found ++ Direct).
