%% The cross-reference index against its naive model under random histories; and the same comparison against
%% indexes with seeded faults, each of which it must notice.
-module(prop_beamtalk_xref).

-include_lib("eunit/include/eunit.hrl").

-define(CASES, 80).
-define(MODEL, beamtalk_image_model_xref).

prop_index_is_its_model() ->
    proper:forall(beamtalk_image_gen:xref_history(), fun(History) ->
        beamtalk_image_model:agrees(?MODEL, real(), History)
    end).

xref_test_() ->
    {setup, fun start/0, fun stop/1, [
        {"random histories leave what the model says", {timeout, 60, fun() ->
            Found = proper:counterexample(prop_index_is_its_model(), [quiet, {numtests, ?CASES}, {max_size,
                30}]),
            ?assertEqual(true, explained(Found))
        end}},
        {"every seeded fault is noticed", {timeout, 60, fun() ->
            Type = beamtalk_image_gen:xref_history(),
            ?assertEqual([], beamtalk_image_model:survivors(?MODEL, fun faulty/1, Type, {faults(), ?CASES}))
        end}}
    ]}.

explained(true) -> true;
explained([History]) -> {History, beamtalk_image_model:compare(?MODEL, real(), History)}.

%% ---- The index --------------------------------------------------------------------------------------------

start() ->
    #{level := Level} = logger:get_primary_config(),
    ok = logger:set_primary_config(level, none),
    {ok, Started} = application:ensure_all_started(beamtalk_image),
    ok = beamtalk_image_leftovers:empty(),
    ok = beamtalk_image_fake_host:start(),
    [ok = beamtalk_image_fake_host:superclass(Name, Super) || {Name, Super} <- ?MODEL:superclasses()],
    [start_class(Name) || Name <- ?MODEL:loaded()],
    ok = beamtalk_protocol_registry:register_protocol(#{name => 'Everybody'}),
    ok = beamtalk_protocol_registry:register_protocol(
        #{name => 'Nobody', required_methods => [#{selector => nobody_has_this, arity => 0}]}),
    {ok, Index} = beamtalk_xref:start_link(),
    unlink(Index),
    #{level => Level, started => Started}.

start_class(Name) ->
    Methods = [m || lists:member(Name, ?MODEL:with_methods())],
    beamtalk_image_fake_host:class(Name, proplists:get_value(Name, ?MODEL:superclasses()), Methods, []).

stop(#{level := Level, started := Started}) ->
    ok = beamtalk_image_fake_host:stop(),
    ok = beamtalk_image_leftovers:empty(),
    [ok = application:stop(App) || App <- lists:reverse(Started)],
    ok = logger:set_primary_config(level, Level).

real() ->
    #{reset => fun() -> beamtalk_image:clear(xref) end, run => fun run/1, reads => fun reads/0}.

run({redefine, Class, Entries}) ->
    ok = beamtalk_xref:purge_class(Class),
    beamtalk_xref:register_class(Class, Entries);
run(Command) ->
    [Function | Args] = tuple_to_list(Command),
    apply(beamtalk_xref, Function, Args).

%% Every read. A list whose order is free is sorted, and no further: a row that stands there twice is a
%% difference.
reads() ->
    Classes = beamtalk_image_gen:class_keys(),
    Selectors = beamtalk_image_gen:selectors(),
    maps:from_list(
        [{{senders, S}, sites(beamtalk_xref:senders_of(S))} || S <- Selectors] ++
        [{{senders, S, Changed}, sites(beamtalk_xref:senders_of(S, Changed))}
            || S <- Selectors, Changed <- ?MODEL:changed()] ++
        [{{references, Class}, lists:sort(bt_rows(beamtalk_xref:references_to(Class)))}
            || Class <- Classes] ++
        [{{implementors, S}, beamtalk_xref:implementors_of(S)} || S <- Selectors] ++
        [{{selectors, Class, Side}, beamtalk_xref:defined_selectors(Class, Side)}
            || Class <- Classes, Side <- [false, true]] ++
        [{{info, Class, Side, S}, info(beamtalk_xref:method_info(Class, Side, S))}
            || Class <- Classes, Side <- [false, true], S <- Selectors] ++
        [{{callers, Module}, bt_rows(beamtalk_xref:callers_of_native_module(Module))}
            || Module <- beamtalk_image_gen:native_modules()] ++
        %% Two sends on one line are two rows here, or one; both are right.
        [{{senders_bt, S}, answer(beamtalk_xref:senders_of_bt(S), fun bt_rows/1)} || S <- Selectors] ++
        [{{references_bt, Class}, answer(beamtalk_xref:references_to_bt(Class), fun bt_rows/1)}
            || Class <- Classes] ++
        [{{implementors_bt, S}, answer(beamtalk_xref:implementors_of_bt(S), fun(Rows) ->
            [{Owner, Side} || #{owner := Owner, class_side := Side} <- Rows] end)} || S <- Selectors] ++
        [
            {selectors_bt, answer(beamtalk_xref:defined_selectors_bt(), fun(Rows) ->
                [{Owner, Side, S} || #{owner := Owner, class_side := Side, selector := S} <- Rows] end)},
            {sends_bt, answer(beamtalk_xref:all_sends_bt(), fun(Rows) ->
                [{Sent, Owner, Side, M, Line, kind(Recv)}
                    || #{sent := Sent, owner := Owner, class_side := Side,
                    method := M, line := Line, recv := Recv} <- Rows] end)},
            {sent_bt, answer(beamtalk_xref:all_sent_selectors_bt(), fun(Sent) ->
                Sent = lists:usort(Sent) end)}
        ]
    ).

sites(Sites) ->
    lists:sort([{Owner, Side, M, Line, Kind, Target, Type}
        || #{owner := Owner, class_side := Side, method := M, line := Line, recv_kind := Kind,
            target_module := Target,
            recv_type := Type} <- Sites]).

bt_rows(Rows) ->
    [{Owner, Side, M, Line} || #{owner := Owner, class_side := Side, method := M, line := Line} <- Rows].

answer(#{indexed := Rows, fallback_classes := Fallback}, Shape) ->
    {lists:usort(Shape(Rows)), lists:sort(Fallback)}.

info(undefined) -> undefined;
info(#{owner := Owner, line := Line, source_status := Status, provenance := Provenance} = Info) ->
    {Owner, Line, Status, Provenance, maps:get(origin, Info, none)}.

kind(self) -> self_recv;
kind(super) -> super_recv;
kind(Kind) -> Kind.

%% ---- Seeded faults ----------------------------------------------------------------------------------------

faulty({_Name, Make}) -> Make(real()).

%% Each takes the real index and spoils one thing.
faults() ->
    [
        {forgets_the_class_side, commands(fun
            ({put_method, Class, true, Selector, Entry}) -> [{put_method, Class, false, Selector, Entry}];
            (Command) -> [Command]
        end)},
        {purges_the_other_side, commands(fun
            ({purge_method, Class, Side, Selector}) -> [{purge_method, Class, not Side, Selector}];
            (Command) -> [Command]
        end)},
        {deletes_by_target, commands(fun
            ({purge_class, Class} = Command) ->
                [{purge_method, Owner, Side, M}
                    || #{owner := Owner, class_side := Side,
                        method := M} <- beamtalk_xref:references_to(Class)] ++
                [Command];
            (Command) -> [Command]
        end)},
        {reindex_adds_only, commands(fun
            ({register_class, Class, [_ | _] = Entries}) ->
                [{put_method, Class, maps:get(class_side, Entry, false), S, Entry}
                    || #{selector := S} = Entry <- lists:reverse(Entries)];
            (Command) -> [Command]
        end)},
        {part_taken_for_the_whole, commands(fun
            ({put_method, Class, Side, Selector, #{provenance := P} = Entry}) when P =/= extension ->
                [{register_class, Class, [Entry#{class_side => Side, selector => Selector}]}];
            (Command) -> [Command]
        end)},
        {reload_wipes_extensions, commands(fun
            ({redefine, Class, Entries}) -> [{forget_class, Class}, {register_class, Class, Entries}];
            (Command) -> [Command]
        end)},
        {removal_takes_both_layers, commands(fun
            ({purge_method, _, _, _} = Command) -> [Command, Command];
            (Command) -> [Command]
        end)},
        {removal_takes_the_survivor, commands(fun
            ({purge_extension, Class, Selector}) -> [{purge_method, Class, false, Selector}];
            (Command) -> [Command]
        end)},
        {last_entry_wins, commands(fun
            ({register_class, Class, Entries}) -> [{register_class, Class, lists:reverse(Entries)}];
            (Command) -> [Command]
        end)},
        {extension_counts_as_indexed, commands(fun
            ({put_method, 'B', false, _, #{provenance := extension}} = Command) ->
                Known = not lists:member('B', maps:get(fallback_classes,
                    beamtalk_xref:defined_selectors_bt())),
                [Command] ++ [{register_class, 'B', []} || not Known];
            (Command) -> [Command]
        end)},
        {origins_end_with_reload, commands(fun
            ({register_class, Class, _} = Command) -> [{set_provenance, Class, #{}}, Command];
            (Command) -> [Command]
        end)},
        {filter_drops_what_it_does_not_know, reads(fun(Reads) ->
            maps:map(fun
                ({senders, _, _}, Sites) -> [Site || Site <- Sites, element(7, Site) =/= 'NoSuchClass'];
                (_, Read) -> Read
            end, Reads)
        end)},
        {filter_takes_a_union_for_an_intersection, reads(fun(Reads) ->
            maps:map(fun
                ({senders, _, Changed}, Sites) ->
                    [Site || Site <- Sites, case element(7, Site) of
                        {union, Names} -> lists:all(fun(Name) -> Name =:= Changed end, Names);
                        _ -> true
                    end];
                (_, Read) -> Read
            end, Reads)
        end)},
        {repeated_sends_are_reported_twice, reads(fun(Reads) ->
            maps:map(fun
                ({senders, _}, [Site | Sites]) -> [Site, Site | Sites];
                (_, Read) -> Read
            end, Reads)
        end)},
        {texts_are_not_found, commands(fun
            ({put_method, Class, Side, Selector, Entry}) ->
                [{put_method, Class, Side, Selector, maps:remove(unresolved_sends, Entry)}];
            (Command) -> [Command]
        end)}
    ].

%% A fault in what is done: each command becomes others, of which the last one's answer counts.
commands(Change) ->
    fun(#{run := Run} = Real) ->
        Real#{run := fun(Command) -> lists:last([Run(C) || C <- Change(Command)]) end}
    end.

%% A fault in what is answered.
reads(Change) ->
    fun(#{reads := Reads} = Real) -> Real#{reads := fun() -> Change(Reads()) end} end.
