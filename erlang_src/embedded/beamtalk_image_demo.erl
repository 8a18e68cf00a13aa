%% @doc What `make demo' runs: the index of a real standard library is loaded and asked, extensions win and
%% leave, and methods are removed from a running image (ADR 0112), with the ChangeLog that this leaves on
%% disk.
-module(beamtalk_image_demo).

-export([main/0, run/2]).

-define(IMAGE, "data/stdlib-image.terms").
%% A question is asked so often; the median is shown.
-define(ROUNDS, 31).

-type store() :: #{atom() => function()}.

%% @doc Runs the demo on the image in the current directory and ends the node.
-spec main() -> no_return().
main() ->
    Status =
        try
            run(?IMAGE, baseline()),
            0
        catch
            Class:Reason:Stack ->
                io:format(standard_error, "the demo failed: ~tp:~tp~n~tp~n", [Class, Reason, Stack]),
                1
        end,
    halt(Status).

%% The keyed ETS layout of the benchmarks, if it is on the code path.
baseline() ->
    Store = bench_store,
    case code:ensure_loaded(Store) of
        {module, Store} -> Store:start(keyed_hash);
        {error, _} -> none
    end.

%% @doc Loads the image in `File' and prints what the registries answer, beside the times of a baseline store.
-spec run(file:name_all(), store() | none) -> ok.
run(File, Baseline) ->
    ok = logger:set_primary_config(level, error),
    {ok, Terms} = file:consult(File),
    {ok, _} = application:ensure_all_started(beamtalk_image),
    ok = beamtalk_extensions:init(),
    ok = beamtalk_protocol_registry:init(),
    {ok, Index} = beamtalk_xref:start_link(),
    load(Terms, Baseline),
    questions(Terms, Baseline),
    extensions(Baseline),
    true = unlink(Index),
    ok = gen_server:stop(Index),
    ok = beamtalk_image:clear(extensions),
    ok = beamtalk_image:clear(protocols),
    removal().

%% ---- A real image --------------------------------------------------------------------------------------------

load(Terms, Baseline) ->
    heading("A real standard library, loaded (times beside keyed ETS tables)"),
    Classes = [{Class, Entries} || {class, Class, _Super, Entries} <- Terms],
    once("load the rows of every class", Baseline, fun(#{register_class := Register}) ->
        [ok = Register(Class, Entries) || {Class, Entries} <- Classes]
    end),
    [ok = beamtalk_protocol_registry:register_protocol(Map) || {protocol, _Name, Map} <- Terms],
    #{xref := Xref, protocols := Protocols} = beamtalk_image:info(),
    say("~b classes, ~b methods, ~b sends, ~b references, ~b protocols",
        [maps:get(Key, Xref) || Key <- [classes, methods, sends, references]] ++ [maps:get(protocols, Protocols)]),
    say("the index holds ~b bytes", [maps:get(bytes, Xref)]).

questions(Terms, Baseline) ->
    heading("Senders, implementors, references"),
    Sites = often("senders of #asMilliseconds", Baseline, fun(#{senders_of := Ask}) -> Ask(asMilliseconds) end),
    [say("  ~ts", [site(Site)]) || Site <- lists:sort(Sites)],
    Implementors = often("implementors of #printString", Baseline, fun(#{implementors_of := Ask}) ->
        Ask(printString)
    end),
    say("  ~b classes, from ~ts to ~ts",
        [length(Implementors), element(1, hd(Implementors)), element(1, lists:last(Implementors))]),
    References = often("references to TimeoutProxy", Baseline, fun(#{references_to := Ask}) ->
        Ask('TimeoutProxy')
    end),
    [say("  ~ts", [site(Site)]) || Site <- lists:sort(References)],
    Sent = sent_selectors(Terms),
    Defined = lists:usort([Selector || {class, _, _, Entries} <- Terms, #{selector := Selector} <- Entries]),
    sample(often("sent but implemented nowhere", Baseline, fun(#{implementors_of := Ask}) ->
        [Selector || Selector <- Sent, Ask(Selector) =:= []]
    end)),
    sample(often("implemented but sent nowhere", Baseline, fun(#{senders_of := Ask}) ->
        [Selector || Selector <- Defined, Ask(Selector) =:= []]
    end)).

extensions(Baseline) ->
    heading("Extensions win, leave, and the rows beneath come back"),
    Shout = fun(_Args, Self) -> string:uppercase(Self) end,
    Print = fun(_Args, _Self) -> <<"extended">> end,
    show_print("before"),
    once("register two extensions of String", Baseline, fun(#{register := Register}) ->
        ok = Register('String', shout, Shout, shouting, undefined),
        ok = Register('String', printString, Print, shouting, undefined)
    end),
    {ok, Fun, Owner} = often("look up String>>shout", Baseline, fun(#{lookup := Ask}) -> Ask('String', shout) end),
    say("  owner ~ts, \"hello\" shout answers \"~ts\"", [Owner, Fun([], <<"hello">>)]),
    often("look up a selector that four levels lack", Baseline, fun(#{lookup_chain := Ask}) ->
        not_found = Ask(['String', 'Collection', 'Value', 'Object'], missing)
    end),
    show_print("with the extension"),
    once("unregister them", Baseline, fun(#{unregister := Unregister}) ->
        ok = Unregister('String', shout),
        ok = Unregister('String', printString)
    end),
    show_print("afterwards").

show_print(When) ->
    #{provenance := Provenance, line := Line} = beamtalk_xref:method_info('String', false, printString),
    say("String>>printString ~ts: ~ts, line ~b", [When, Provenance, Line]).

sent_selectors(Terms) ->
    lists:usort([Selector
        || {class, _, _, Entries} <- Terms,
           #{sends := Sends} <- Entries,
           #{selector := Selector, recv_kind := Kind} <- Sends,
           Kind =/= erlang_ffi]).

sample(Selectors) ->
    say("  ~b, such as ~ts", [length(Selectors), lists:join(", ", [[$#, atom_to_list(S)]
        || S <- lists:sublist(Selectors, 4)])]).

site(#{owner := Owner, class_side := true, method := Method, line := Line}) ->
    io_lib:format("~ts class>>~ts, line ~b", [Owner, Method, Line]);
site(#{owner := Owner, method := Method, line := Line}) ->
    io_lib:format("~ts>>~ts, line ~b", [Owner, Method, Line]).

%% The exported functions of the registries, under the names that the benchmarks give them.
ours() ->
    #{
        register_class => fun beamtalk_xref:register_class/2,
        senders_of => fun beamtalk_xref:senders_of/1,
        implementors_of => fun beamtalk_xref:implementors_of/1,
        references_to => fun beamtalk_xref:references_to/1,
        register => fun beamtalk_extensions:register/5,
        unregister => fun beamtalk_extensions:unregister/2,
        lookup => fun beamtalk_extensions:lookup/2,
        lookup_chain => fun beamtalk_extensions:lookup_chain/2
    }.

once(What, Baseline, Question) -> timed(What, 1, Baseline, Question).

often(What, Baseline, Question) -> timed(What, ?ROUNDS, Baseline, Question).

timed(What, Rounds, Baseline, Question) ->
    {Time, Answer} = median(Rounds, fun() -> Question(ours()) end),
    case Baseline of
        none ->
            say("~ts (~.1f us)", [What, Time]);
        _ ->
            {Keyed, _} = median(Rounds, fun() -> Question(Baseline) end),
            say("~ts (~.1f us, keyed ETS ~.1f us)", [What, Time, Keyed])
    end,
    Answer.

median(Rounds, Fun) ->
    Measured = [measured(Fun) || _ <- lists:seq(1, Rounds)],
    {_, Answer} = hd(Measured),
    {lists:nth((Rounds + 1) div 2, lists:sort([Time || {Time, _} <- Measured])), Answer}.

measured(Fun) ->
    Start = erlang:monotonic_time(nanosecond),
    Answer = Fun(),
    {(erlang:monotonic_time(nanosecond) - Start) / 1_000, Answer}.

%% ---- Removal (ADR 0112) --------------------------------------------------------------------------------------

removal() ->
    Folder = scratch(),
    ok = filelib:ensure_path(Folder),
    try
        true = os:putenv("HOME", Folder),
        Config = #{workspace_id => <<"demo">>, project => Folder},
        {ok, _} = beamtalk_embedded:start(Config),
        story(),
        _ = log_on_disk(Folder),
        ok = beamtalk_embedded:stop(),
        restart(Config)
    after
        _ = file:del_dir_r(Folder)
    end.

scratch() ->
    Unique = integer_to_list(erlang:system_time(nanosecond)),
    filename:join(os:getenv("TMPDIR", "/tmp"), "beamtalk_image_demo-" ++ os:getpid() ++ "-" ++ Unique).

story() ->
    heading("removeSelector: on a running image (ADR 0112)"),
    {ok, _} = beamtalk_embedded:define_class('Beacon', #{
        superclass => 'Actor',
        kind => actor,
        methods => #{greet => fun([], _Self) -> <<"base greet">> end}
    }),
    {ok, _} = define_counter(),
    Counter = beamtalk_embedded:class('Counter'),
    CounterClass = beamtalk_embedded:metaclass('Counter'),
    C = beamtalk_embedded:send(Counter, spawn),
    send("c increment", C, increment, []),
    send("c greet", C, greet, []),
    send("Counter removeSelector: #greet", Counter, 'removeSelector:', [greet]),
    send("c greet", C, greet, []),
    send("Counter removeSelector: #greet", Counter, 'removeSelector:', [greet]),
    send("Counter removeSelector: #vanished", Counter, 'removeSelector:', [vanished]),
    send("Counter removeSelector: #bogus ifAbsent: [\"not found\"]", Counter, 'removeSelector:ifAbsent:',
        [bogus, fun() -> <<"not found">> end]),
    send("Counter class removeSelector: #kind", CounterClass, 'removeSelector:', [kind]),
    send("Counter kind", Counter, kind, []),
    send("c kind", C, kind, []),
    say("-- an extension shadows Counter's own method, and goes first", []),
    {ok, _} = define_counter(),
    ok = beamtalk_embedded:extend('Counter', greet, fun([], _Self) -> <<"extension greet">> end,
        'counter+shouting', <<"greet -> String => \"extension greet\"">>),
    D = beamtalk_embedded:send(Counter, spawn),
    send("d greet", D, greet, []),
    send("Counter removeSelector: #greet", Counter, 'removeSelector:', [greet]),
    send("d greet", D, greet, []),
    send("Counter removeSelector: #greet", Counter, 'removeSelector:', [greet]),
    send("d greet", D, greet, []),
    send("Counter removeSelector: #nothing ifAbsent: [Counter includesSelector: #value]", Counter,
        'removeSelector:ifAbsent:',
        [nothing, fun() -> beamtalk_embedded:send(Counter, 'includesSelector:', [value]) end]),
    send("Counter removeSelector: \"greet\"", Counter, 'removeSelector:', [<<"greet">>]),
    send("Integer removeSelector: #isZero", beamtalk_embedded:class('Integer'), 'removeSelector:', [isZero]).

define_counter() ->
    beamtalk_embedded:define_class('Counter', #{
        superclass => 'Beacon',
        kind => actor,
        fields => #{value => 0},
        methods => #{
            increment => fun([], _Self, #{value := Value} = State) ->
                {Value + 1, State#{value := Value + 1}}
            end,
            greet => #{
                'fun' => fun([], _Self) -> <<"counter greet">> end,
                source => <<"greet -> String => \"counter greet\"">>
            },
            kind => fun([], _Self) -> <<"instance">> end,
            callsBogus => #{
                'fun' => fun([], Self, State) ->
                    beamtalk_embedded_dispatch:self_send(vanished, [], Self, State)
                end,
                sends => [#{selector => vanished, recv_kind => self_recv}]
            }
        },
        class_methods => #{kind => fun([], _Self) -> <<"counting">> end}
    }).

send(Text, Receiver, Selector, Args) ->
    say("~ts", [Text]),
    try beamtalk_embedded:send(Receiver, Selector, Args) of
        Answer -> say("  => ~ts", [printed(Answer)])
    catch
        error:#{error := {beamtalk_error, Kind, _Class, _Selector, Message, Hint, _Details}} ->
            say("  => ~ts: ~ts", [Kind, Message]),
            say("     hint: ~ts", [Hint])
    end.

printed(Binary) when is_binary(Binary) -> [$", Binary, $"];
printed({beamtalk_object, 'Metaclass', _, Pid}) -> [atom_to_list(beamtalk_embedded_class:class_name(Pid)), " class"];
printed({beamtalk_object, _, _, Pid}) -> atom_to_list(beamtalk_embedded_class:class_name(Pid));
printed(Term) -> io_lib:format("~tp", [Term]).

log_on_disk(Folder) ->
    heading("What the ChangeLog left on disk"),
    {ok, Text} = file:read_file(filename:join([Folder, ".beamtalk", "workspaces", "demo", "changes", "changes.jsonl"])),
    [say("~ts", [re:replace(Line, <<"\"ts\":[0-9]+">>, <<"\"ts\":0">>, [{return, binary}])])
        || Line <- binary:split(Text, <<"\n">>, [global, trim])].

restart(Config) ->
    heading("A new run of the same workspace"),
    {ok, _} = beamtalk_embedded:start(Config),
    {ok, _} = define_counter_in_new_run(),
    beamtalk_embedded:send(beamtalk_embedded:class('Counter'), 'removeSelector:', [kind]),
    [say("seq ~b, epoch ~b, ~ts>>~ts, side ~ts: ~ts~ts", [
        beamtalk_workspace_changelog:entry_seq(Entry),
        beamtalk_workspace_changelog:entry_epoch(Entry),
        beamtalk_workspace_changelog:entry_class(Entry),
        beamtalk_workspace_changelog:entry_selector(Entry),
        beamtalk_workspace_changelog:entry_side(Entry),
        age(beamtalk_workspace_changelog:entry_is_prior_epoch(Entry)),
        orphan(beamtalk_workspace_changelog:entry_is_orphan(Entry))
    ]) || Entry <- beamtalk_workspace_changelog:entries()],
    beamtalk_embedded:stop().

define_counter_in_new_run() ->
    {ok, _} = beamtalk_embedded:define_class('Beacon', #{superclass => 'Actor', kind => actor}),
    define_counter().

age(true) -> "an earlier run";
age(false) -> "this run".

orphan(true) -> ", orphaned";
orphan(false) -> "".

heading(Text) ->
    io:format("~n== ~ts~n", [Text]).

say(Format, Args) ->
    io:format(Format ++ "~n", Args).
