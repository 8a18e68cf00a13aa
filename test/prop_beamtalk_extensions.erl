%% The extension registry against its naive model under random histories, with the rows that it puts into the
%% index; and the same comparison against registries with seeded faults, each of which it must notice.
-module(prop_beamtalk_extensions).

-include_lib("eunit/include/eunit.hrl").

-define(CASES, 80).

prop_registry_is_its_model() ->
    proper:forall(beamtalk_image_gen:extension_history(), fun(History) ->
        beamtalk_image_model:agrees(beamtalk_image_model_extensions, real(), History)
    end).

extensions_test_() ->
    {setup, fun start/0, fun stop/1, [
        {"random histories leave what the model says", {timeout, 60, fun() ->
            Found = proper:counterexample(prop_registry_is_its_model(), [quiet, {numtests, ?CASES},
                {max_size, 30}]),
            ?assertEqual(true, explained(Found))
        end}},
        {"every seeded fault is noticed", {timeout, 60, fun() ->
            Type = beamtalk_image_gen:extension_history(),
            ?assertEqual([],
                beamtalk_image_model:survivors(beamtalk_image_model_extensions, fun faulty/1, Type,
                    {faults(), ?CASES}))
        end}}
    ]}.

explained(true) -> true;
explained([History]) ->
    {History, beamtalk_image_model:compare(beamtalk_image_model_extensions, real(), History)}.

%% ---- The registry -----------------------------------------------------------------------------------------

start() ->
    #{level := Level} = logger:get_primary_config(),
    ok = logger:set_primary_config(level, none),
    {ok, Started} = application:ensure_all_started(beamtalk_image),
    ok = beamtalk_image_leftovers:empty(),
    ok = beamtalk_image_fake_host:start(),
    ok = beamtalk_image_fake_host:script(find_sends, fun([Source]) -> {ok, hits(Source)} end),
    {ok, Index} = beamtalk_xref:start_link(),
    unlink(Index),
    #{level => Level, started => Started}.

stop(#{level := Level, started := Started}) ->
    ok = beamtalk_image:sync(),
    ok = beamtalk_image_fake_host:stop(),
    ok = beamtalk_image_leftovers:empty(),
    [ok = application:stop(App) || App <- lists:reverse(Started)],
    ok = logger:set_primary_config(level, Level).

hits(Source) ->
    Words = [Word || Word <- binary:split(Source, <<"\n">>, [global]), Word =/= <<>>],
    [#{selector => Word, line => Line, recv => self, target_module => <<>>}
        || {Word, Line} <- lists:zip(Words, lists:seq(1, length(Words)))].

real() ->
    #{reset => fun reset/0, run => fun run/1, reads => fun reads/0}.

reset() ->
    ok = beamtalk_image:sync(),
    ok = beamtalk_image:clear(extensions),
    ok = beamtalk_image:clear(xref).

run({register, Key, Selector, Fun, Owner, undefined}) ->
    beamtalk_extensions:register(Key, Selector, beamtalk_image_model_extensions:function(Fun), Owner);
run({register, Key, Selector, Fun, Owner, Source}) ->
    beamtalk_extensions:register(Key, Selector, beamtalk_image_model_extensions:function(Fun), Owner, Source);
run({unregister, Key, Selector}) ->
    beamtalk_extensions:unregister(Key, Selector);
run({unregister, Name, Selector, ClassSide}) ->
    beamtalk_extensions:unregister(Name, Selector, ClassSide);
run({purge_class, Key}) ->
    beamtalk_extensions:purge_class(Key);
run({init}) ->
    beamtalk_extensions:init();
run({define, Name, Selectors}) ->
    beamtalk_xref:register_class(Name, [#{selector => S, line => 1, sends => [#{selector => S, line => 7}]}
        || S <- Selectors]);
run({redefine, Name, Selectors}) ->
    ok = beamtalk_xref:purge_class(Name),
    run({define, Name, Selectors});
run({undefine, Name}) ->
    beamtalk_xref:purge_class(Name).

%% Every read, in an order that can be compared. Sends of texts are there once the background work is done.
reads() ->
    ok = beamtalk_image:sync(),
    Selectors = beamtalk_image_gen:selectors(),
    ClassKeys = beamtalk_image_gen:class_keys(),
    Keys = [{Key, S} || Key <- ClassKeys, S <- Selectors],
    maps:from_list(
        [{{lookup, At}, beamtalk_extensions:lookup(Key, S)} || {Key, S} = At <- Keys] ++
        [{{has, At}, beamtalk_extensions:has(Key, S)} || {Key, S} = At <- Keys] ++
        [{{source, At}, beamtalk_extensions:getSource(Key, S)} || {Key, S} = At <- Keys] ++
        [{{list, Key}, lists:sort(beamtalk_extensions:list(Key))} || Key <- ClassKeys] ++
        [{{extenders, Key}, beamtalk_extensions:extenders_of(Key)} || Key <- ClassKeys] ++
        [{{by, Owner}, lists:sort(beamtalk_extensions:extensions_by(Owner))}
            || Owner <- beamtalk_image_gen:owners()] ++
        [{{chain, Chain, S}, beamtalk_extensions:lookup_chain(Chain, S)}
            || Chain <- [['A', 'B', 'C'], ['C class', 'A class', 'A'], []], S <- Selectors] ++
        [{sourced, lists:sort(beamtalk_extensions:listAllWithSource())},
            {conflicts, lists:sort(beamtalk_extensions:conflicts())}] ++
        [{{info, At}, provenance(beamtalk_xref:method_info(Key, false, S))} || {Key, S} = At <- Keys] ++
        [{{senders, S}, lists:sort([{Owner, Method, Line}
            || #{owner := Owner, class_side := false, method := Method,
                line := Line} <- beamtalk_xref:senders_of(S)])}
            || S <- Selectors] ++
        [{{implementors, S}, beamtalk_xref:implementors_of(S)} || S <- Selectors]
    ).

provenance(undefined) -> undefined;
provenance(#{provenance := Provenance, source_status := Status}) -> {Provenance, Status}.

%% ---- Seeded faults ----------------------------------------------------------------------------------------

faulty({_Name, Make}) -> Make(real()).

%% Each takes the real registry and spoils one thing.
faults() ->
    [
        {forgets_the_class_side, commands(fun
            ({unregister, Name, Selector, true}) -> [{unregister, Name, Selector, false}];
            (Command) -> [Command]
        end)},
        {removes_both_sides, commands(fun
            ({unregister, Name, Selector, ClassSide}) ->
                [{unregister, Name, Selector, not ClassSide}, {unregister, Name, Selector, ClassSide}];
            (Command) -> [Command]
        end)},
        {purges_both_sides, commands(fun
            ({purge_class, Name}) when Name =:= 'A'; Name =:= 'B' ->
                [{purge_class, beamtalk_image_gen:tag(Name)}, {purge_class, Name}];
            (Command) -> [Command]
        end)},
        {keeps_the_earlier_source, commands(fun
            ({register, Key, Selector, Fun, Owner, undefined} = Command) ->
                case beamtalk_extensions:getSource(Key, Selector) of
                    {ok, Source} -> [{register, Key, Selector, Fun, Owner, Source}];
                    not_found -> [Command]
                end;
            (Command) -> [Command]
        end)},
        {forgets_conflicts_on_reload, commands(fun
            ({register, Key, Selector, _, Owner, _} = Command) ->
                case beamtalk_extensions:lookup(Key, Selector) of
                    {ok, _, Owner} -> [{unregister, Key, Selector}, Command];
                    _ -> [Command]
                end;
            (Command) -> [Command]
        end)},
        {removal_loses_conflicts_of_siblings, commands(fun
            ({unregister, Key, Selector} = Command) ->
                Siblings = [{S, beamtalk_extensions:lookup(Key, S), beamtalk_extensions:getSource(Key, S)}
                    || {S, _} <- beamtalk_extensions:list(Key), S =/= Selector],
                lists:append([[{unregister, Key, S}, {register, Key, S, Fun([], self), Owner, source(Source)}]
                    || {S, {ok, Fun, Owner}, Source} <- Siblings]) ++ [Command];
            (Command) -> [Command]
        end)},
        {first_registration_wins, commands(fun
            ({register, Key, Selector, _, Owner, _} = Command) ->
                case beamtalk_extensions:lookup(Key, Selector) of
                    {ok, Fun, Other} when Other =/= Owner ->
                        Source = source(beamtalk_extensions:getSource(Key, Selector)),
                        [Command, {register, Key, Selector, Fun([], self), Other, Source}];
                    _ -> [Command]
                end;
            (Command) -> [Command]
        end)},
        {reload_of_the_class_wipes_extensions, commands(fun
            ({redefine, Name, Selectors}) -> [{purge_class, Name}, {define, Name, Selectors}];
            (Command) -> [Command]
        end)},
        {removal_takes_the_local_row_too, fun(#{run := Run} = Real) ->
            Real#{run := fun
                ({unregister, Key, Selector} = Command) ->
                    Answer = Run(Command),
                    ok = beamtalk_xref:purge_method(Key, false, Selector),
                    Answer;
                (Command) -> Run(Command)
            end}
        end},
        {index_by_owner_keeps_the_dead, stateful(fun
            ({register, Key, Selector, _, Owner, _}, Owned) -> [{Owner, {Key, Selector}} | Owned];
            (_, Owned) -> Owned
        end, fun(Owned, Reads) ->
            maps:map(fun
                ({by, Owner}, Keys) -> lists:usort(Keys ++ [Key || {O, Key} <- Owned, O =:= Owner]);
                (_, Read) -> Read
            end, Reads)
        end)},
        {look_up_falls_back_to_the_instance_side, reads(fun(Reads) ->
            maps:map(fun
                ({lookup, {'A class', S}}, not_found) -> maps:get({lookup, {'A', S}}, Reads);
                (_, Read) -> Read
            end, Reads)
        end)}
    ].

source({ok, Source}) -> Source;
source(not_found) -> undefined.

%% A fault in what is done: each command becomes others, of which the last one's answer counts.
commands(Change) ->
    fun(#{run := Run} = Real) ->
        Real#{run := fun(Command) -> lists:last([Run(C) || C <- Change(Command)]) end}
    end.

%% A fault in what is answered.
reads(Change) ->
    fun(#{reads := Reads} = Real) -> Real#{reads := fun() -> Change(Reads()) end} end.

%% A fault that remembers something.
stateful(Note, Change) ->
    fun(#{reset := Reset, run := Run, reads := Reads} = Real) ->
        Real#{
            reset := fun() -> put(?MODULE, []), Reset() end,
            run := fun(Command) -> put(?MODULE, Note(Command, get(?MODULE))), Run(Command) end,
            reads := fun() -> Change(get(?MODULE), Reads()) end
        }
    end.
