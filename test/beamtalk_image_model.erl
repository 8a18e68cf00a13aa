%% Runs a history on a registry and on a naive model of it, and compares every read after every step.
%%
%% A model is a module with `new/0', `run(Command, Model)' and `reads(Model)'. What is compared with it is a
%% subject: how a command is run and how everything is read. Faulty subjects, made from the real one, must be
%% told from it.
-module(beamtalk_image_model).

-export([compare/3, agrees/3, survivors/4]).

-export_type([subject/0, fault/0]).

-type subject() :: #{reset := fun(() -> ok), run := fun((tuple()) -> term()), reads := fun(() ->
    #{term() => term()})}.
-type fault() :: {Name :: atom(), fun((subject()) -> subject())}.

%% `true', or where the two part: the step, its command, and the reads that differ as `{Read, Got, Wanted}'.
-spec compare(module(), subject(), [tuple()]) -> true | {differs, pos_integer(), tuple(), [tuple()]}.
compare(Model, #{reset := Reset} = Subject, History) ->
    ok = Reset(),
    compare(Model, Subject, History, 1, Model:new()).

compare(_Model, _Subject, [], _Step, _State) ->
    true;
compare(Model, #{run := Run, reads := Reads} = Subject, [Command | Rest], Step, State) ->
    {Wanted, Next} = Model:run(Command, State),
    Got = Run(Command),
    case [{answer, Got, Wanted} || Got =/= Wanted] ++ difference(Reads(), Model:reads(Next)) of
        [] -> compare(Model, Subject, Rest, Step + 1, Next);
        Differences -> {differs, Step, Command, Differences}
    end.

difference(Got, Wanted) ->
    Keys = lists:usort(maps:keys(Got) ++ maps:keys(Wanted)),
    [{Key, maps:get(Key, Got, missing), maps:get(Key, Wanted, missing)}
        || Key <- Keys, maps:get(Key, Got, missing) =/= maps:get(Key, Wanted, missing)].

-spec agrees(module(), subject(), [tuple()]) -> boolean().
agrees(Model, Subject, History) ->
    compare(Model, Subject, History) =:= true.

%% The faults that too few of so many histories notice: fewer than three, for what one history in a hundred
%% notices is seldom noticed by the random ones. The histories are the same each time; a hunt that succeeds by
%% luck is none.
-spec survivors(module(), fun((fault()) -> subject()), proper_types:type(), {[fault()], pos_integer()}) ->
    [{atom(), Noticed :: 0..2}].
survivors(Model, Faulty, Type, {Faults, Cases}) ->
    Histories = [History
        || N <- lists:seq(1, Cases), {ok, History} <- [proper_gen:pick(Type, 30, {N, 7, 11})]],
    Cases = length(Histories),
    Noticed = [{Name, noticed(Model, Faulty(Fault), Histories, 0)} || {Name, _} = Fault <- Faults],
    [{Name, Count} || {Name, Count} <- Noticed, Count < 3].

noticed(_Model, _Subject, _Histories, 3) ->
    3;
noticed(_Model, _Subject, [], Count) ->
    Count;
noticed(Model, Subject, [History | Rest], Count) ->
    case agrees(Model, Subject, History) of
        true -> noticed(Model, Subject, Rest, Count);
        false -> noticed(Model, Subject, Rest, Count + 1)
    end.
