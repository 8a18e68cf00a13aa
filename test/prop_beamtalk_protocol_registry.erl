%% The protocol registry against its naive model under random histories of protocols, uses, classes and
%% extensions; and the same comparison against registries with seeded faults, each of which it must notice.
-module(prop_beamtalk_protocol_registry).

-include_lib("eunit/include/eunit.hrl").

-define(CASES, 80).
-define(MODEL, beamtalk_image_model_protocols).

prop_registry_is_its_model() ->
    proper:forall(beamtalk_image_gen:protocol_history(), fun(History) ->
        beamtalk_image_model:agrees(?MODEL, real(), History)
    end).

protocols_test_() ->
    {setup, fun start/0, fun stop/1, [
        {"random histories leave what the model says", {timeout, 60, fun() ->
            Found = proper:counterexample(prop_registry_is_its_model(), [quiet, {numtests, ?CASES},
                {max_size, 30}]),
            ?assertEqual(true, explained(Found))
        end}},
        {"every seeded fault is noticed", {timeout, 60, fun() ->
            Type = beamtalk_image_gen:protocol_history(),
            ?assertEqual([], beamtalk_image_model:survivors(?MODEL, fun faulty/1, Type, {faults(), ?CASES}))
        end}},
        {"an answer that began under an earlier hierarchy is not remembered", fun late_answer/0},
        {"a repeated question asks no class", fun repeated_question/0}
    ]}.

explained(true) -> true;
explained([History]) -> {History, beamtalk_image_model:compare(?MODEL, real(), History)}.

%% The superclass changes, and the registry is told, after the host was asked for it and before it has
%% answered.
late_answer() ->
    ok = reset(),
    ok = run({class, 'B', #{super => none, instance => [m], rows => true}}),
    ok = run({class, 'A', #{super => 'B'}}),
    ok = beamtalk_protocol_registry:register_protocol(#{name => 'P', required_methods => [#{selector => m,
        arity => 0}]}),
    ok = beamtalk_image_fake_host:script(superclass_row, fun
        (['A']) ->
            ok = beamtalk_image_fake_host:unscript(superclass_row),
            ok = run({class, 'A', #{super => none}}),
            {ok, 'B'};
        ([_]) ->
            {ok, none}
    end),
    _ = beamtalk_protocol_registry:conforms_to('A', 'P'),
    ?assertNot(beamtalk_protocol_registry:conforms_to('A', 'P')).

%% Contract 4.4, positive and negative answers.
repeated_question() ->
    ok = reset(),
    ok = run({class, 'A', #{super => none, instance => [m], class => [n]}}),
    Requires = fun(Name, Selector) ->
        ok = beamtalk_protocol_registry:register_protocol(#{name => Name,
            required_methods => [#{selector => Selector, arity => 0}],
            required_class_methods => [#{selector => n, arity => 0}]})
    end,
    Requires('P', m),
    Requires('Q', n),
    Ask = fun() -> [beamtalk_protocol_registry:conforms_to('A', Name) || Name <- ['P', 'Q']] end,
    ?assertEqual([true, false], Ask()),
    ok = beamtalk_image_fake_host:forget_counts(),
    ?assertEqual([true, false], Ask()),
    ?assertEqual(0, beamtalk_image_fake_host:messages()).

%% ---- The registry -----------------------------------------------------------------------------------------

start() ->
    #{level := Level} = logger:get_primary_config(),
    ok = logger:set_primary_config(level, none),
    {ok, Started} = application:ensure_all_started(beamtalk_image),
    ok = beamtalk_image_leftovers:empty(),
    ok = beamtalk_image_fake_host:start(),
    {ok, Index} = beamtalk_xref:start_link(),
    unlink(Index),
    #{level => Level, started => Started}.

stop(#{level := Level, started := Started}) ->
    ok = beamtalk_image_fake_host:stop(),
    ok = beamtalk_image_leftovers:empty(),
    [ok = application:stop(App) || App <- lists:reverse(Started)],
    ok = logger:set_primary_config(level, Level).

real() ->
    #{reset => fun reset/0, run => fun run/1, reads => fun reads/0}.

reset() ->
    [ok = beamtalk_image_fake_host:remove_class(Name)
        || Name <- beamtalk_image_gen:base_names(),
            beamtalk_image_fake_host:whereis_class(Name) =/= undefined],
    ok = beamtalk_image:clear(extensions),
    ok = beamtalk_image:clear(xref),
    ok = beamtalk_image:clear(protocols).

run({invalidate}) ->
    beamtalk_protocol_registry:invalidate_conforms_cache();
run({class, Name, Facts}) ->
    class(Name, Facts);
run({class_removed, Name}) ->
    case beamtalk_image_fake_host:whereis_class(Name) of
        undefined -> ok;
        _ -> ok = beamtalk_image_fake_host:remove_class(Name)
    end,
    beamtalk_image:class_removed(Name, ?MODEL:module_of(Name));
run({extend, Key, Selector}) ->
    beamtalk_extensions:register(Key, Selector, fun(_Args, _Self) -> nil end, pkg_a);
run({unextend, Key, Selector}) ->
    beamtalk_extensions:unregister(Key, Selector);
run(Command) ->
    [Function | Args] = tuple_to_list(Command),
    apply(beamtalk_protocol_registry, Function, Args).

%% A class as the host starts or redefines it; with rows, the index knows its methods too.
class(Name, #{super := Super} = Facts) ->
    Instance = maps:get(instance, Facts, []),
    ClassSide = maps:get(class, Facts, []),
    Rows = [#{selector => S, line => 1, class_side => Side} || maps:is_key(rows, Facts),
        {Side, Selectors} <- [{false, Instance}, {true, ClassSide}], S <- Selectors],
    Info = #{superclass => Super, instance_methods => Instance, class_methods => ClassSide,
        method_xref => Rows,
        module => ?MODEL:module_of(Name)},
    case beamtalk_image_fake_host:whereis_class(Name) of
        undefined ->
            _ = beamtalk_image_fake_host:class(Name, Info),
            ok;
        _ ->
            beamtalk_image_fake_host:redefine(Name, Info)
    end.

%% Every read twice over: the second time from remembered answers.
reads() ->
    First = read_all(),
    case read_all() of
        First -> First;
        Second -> First#{again => Second}
    end.

read_all() ->
    Names = beamtalk_image_gen:protocols(),
    Bases = beamtalk_image_gen:base_names(),
    Registry = beamtalk_protocol_registry,
    maps:from_list(
        [{{info, Name}, Registry:protocol_info(Name)} || Name <- Names] ++
        [{{is_protocol, Name}, Registry:is_protocol(Name)} || Name <- Names] ++
        [{all, lists:sort(Registry:all_protocol_names())}] ++
        [{{required, Name}, Registry:required_methods(Name)} || Name <- Names] ++
        [{{provided, Name}, Registry:provided_methods(Name)} || Name <- Names] ++
        [{{conforms, Class, Name}, Registry:conforms_to(Class, Name)} || Class <- Bases, Name <- Names] ++
        [{{protocols, Class}, Registry:protocols_for_class(Class)} || Class <- Bases] ++
        [{{conforming, Name}, Registry:conforming_classes(Name)} || Name <- Names] ++
        [{{conforming_objects, Name}, tags(Registry:conforming_class_objects(Name))} || Name <- Names] ++
        [{{extended, Key}, lists:sort([S || {S, _} <- beamtalk_extensions:list(Key)])}
            || Key <- beamtalk_image_gen:class_keys()] ++
        [{{used, Class}, Registry:used_protocols(Class)} || Class <- Bases] ++
        [{{hashes, Class}, Registry:used_protocol_hashes(Class)} || Class <- Bases] ++
        [{{users, Name}, Registry:users_of(Name)} || Name <- Names] ++
        [{{user_objects, Name}, tags(Registry:user_class_objects(Name))} || Name <- Names]
    ).

%% The tag of a class object, whose module and process must be those of the running class.
tags(Objects) ->
    Live = [{beamtalk_image_gen:tag(Name), Module, Pid}
        || {Name, Module, Pid} <- beamtalk_image_fake_host:live_classes()],
    [case lists:member({Tag, Module, Pid}, Live) of
        true -> Tag;
        false -> {of_no_live_class, Tag, Module, Pid}
    end || {beamtalk_object, Tag, Module, Pid} <- Objects].

%% ---- Seeded faults ----------------------------------------------------------------------------------------

faulty({_Name, Make}) -> Make(real()).

%% Each takes the real registry and spoils one thing.
faults() ->
    [
        {class_side_is_not_required, commands(fun
            ({register_protocol, Definition}) ->
                [{register_protocol, maps:remove(required_class_methods, Definition)}];
            (Command) -> [Command]
        end)},
        {parents_are_forgotten, commands(fun
            ({register_protocol, Definition}) -> [{register_protocol, maps:remove(extending, Definition)}];
            (Command) -> [Command]
        end)},
        {uses_add_up, commands(fun
            ({register_uses, Class, Names}) ->
                [{register_uses, Class, beamtalk_protocol_registry:used_protocols(Class) ++ Names}];
            (Command) -> [Command]
        end)},
        {uses_outlive_their_module, commands(fun
            ({register_uses, Class, _Module, Names}) -> [{register_uses, Class, Names}];
            (Command) -> [Command]
        end)},
        {empty_list_keeps_uses, commands(fun
            ({register_uses, _, []}) -> [{invalidate}];
            ({unregister_uses, _}) -> [{invalidate}];
            (Command) -> [Command]
        end)},
        {hashes_are_lost, commands(fun
            ({register_uses, Class, Module, Uses}) ->
                [{register_uses, Class, Module, [case Use of {Name, _} -> Name; Name -> Name end
                    || Use <- Uses]}];
            (Command) -> [Command]
        end)},
        {class_removal_leaves_uses, commands(fun
            ({class_removed, Name} = Command) ->
                case beamtalk_protocol_registry:used_protocols(Name) of
                    [] -> [Command];
                    Uses -> [Command, {register_uses, Name, Uses}]
                end;
            (Command) -> [Command]
        end)},
        {class_removal_leaves_extensions, commands(fun
            ({class_removed, Name} = Command) ->
                Tag = beamtalk_image_gen:tag(Name),
                [Command | [{extend, Tag, S} || {S, _} <- beamtalk_extensions:list(Tag)]];
            (Command) -> [Command]
        end)},
        {answers_survive_extensions, remembering([extend, unextend])},
        {answers_survive_classes, remembering([class])},
        {answers_survive_definitions, remembering([register_protocol])},
        {users_keep_the_former, stateful(fun
            ({register_uses, Class, _}, Former) -> users(Class) ++ Former;
            ({unregister_uses, Class}, Former) -> users(Class) ++ Former;
            (_, Former) -> Former
        end, fun(Former, Reads) ->
            maps:map(fun
                ({users, Name}, Users) -> lists:usort(Users ++ [Class || {N, Class} <- Former, N =:= Name]);
                (_, Read) -> Read
            end, Reads)
        end)},
        {provided_is_not_asked_for, fun(#{reads := Reads} = Real) ->
            Real#{reads := fun() ->
                maps:map(fun
                    ({conforms, _, Name}, Answer) ->
                        Answer orelse beamtalk_protocol_registry:required_methods(Name) =:= []
                        andalso beamtalk_protocol_registry:is_protocol(Name);
                    (_, Read) -> Read
                end, Reads())
            end}
        end}
    ].

users(Class) -> [{Name, Class} || Name <- beamtalk_protocol_registry:used_protocols(Class)].

%% A fault in what is done: each command becomes others, of which the last one's answer counts.
commands(Change) ->
    fun(#{run := Run} = Real) ->
        Real#{run := fun(Command) -> lists:last([Run(C) || C <- Change(Command)]) end}
    end.

%% Conformance answers that these commands do not forget.
remembering(Kinds) ->
    stateful(fun(Command, Kept) ->
        case lists:member(element(1, Command), Kinds) of
            true -> Kept;
            false -> #{}
        end
    end, fun(Kept, Reads) ->
        Answers = maps:filter(fun(Key, _) -> is_tuple(Key) andalso element(1, Key) =:= conforms end, Reads),
        case map_size(keep(Kept)) of
            0 -> put(?MODULE, Answers), Reads;
            _ -> maps:merge(Reads, keep(Kept))
        end
    end).

keep(Kept) when is_map(Kept) -> Kept;
keep(_) -> #{}.

%% A fault that remembers something.
stateful(Note, Change) ->
    fun(#{reset := Reset, run := Run, reads := Reads} = Real) ->
        Real#{
            reset := fun() -> put(?MODULE, []), Reset() end,
            run := fun(Command) -> put(?MODULE, Note(Command, get(?MODULE))), Run(Command) end,
            reads := fun() -> Change(get(?MODULE), Reads()) end
        }
    end.
