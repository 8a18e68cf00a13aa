%% @doc What `make demo' runs: the index of a real standard library, asked a few questions.
-module(beamtalk_image_demo).

-export([main/0, run/1]).

-define(IMAGE, "data/stdlib-image.terms").

%% @doc Runs the demo on the image in the current directory and ends the node.
-spec main() -> no_return().
main() ->
    Status =
        try
            run(?IMAGE),
            0
        catch
            Class:Reason:Stack ->
                io:format(standard_error, "the demo failed: ~tp:~tp~n~tp~n", [Class, Reason, Stack]),
                1
        end,
    halt(Status).

%% @doc Loads the image in `File' and prints what the registries answer about it.
-spec run(file:name_all()) -> ok.
run(File) ->
    ok = logger:set_primary_config(level, warning),
    {ok, _} = application:ensure_all_started(beamtalk_image),
    ok = beamtalk_extensions:init(),
    ok = beamtalk_protocol_registry:init(),
    {ok, Index} = beamtalk_xref:start_link(),
    {ok, Terms} = file:consult(File),
    load(Terms),
    questions(Terms),
    extensions(),
    true = unlink(Index),
    gen_server:stop(Index).

load(Terms) ->
    heading("A real standard library, loaded"),
    timed("load the rows of every class", fun() ->
        [ok = beamtalk_xref:register_class(Class, Entries) || {class, Class, _Super, Entries} <- Terms],
        [ok = beamtalk_protocol_registry:register_protocol(Map) || {protocol, _Name, Map} <- Terms],
        ok
    end),
    #{xref := Xref, protocols := Protocols} = beamtalk_image:info(),
    say("~b classes, ~b methods, ~b sends, ~b references, ~b protocols",
        [maps:get(Key, Xref) || Key <- [classes, methods, sends, references]] ++ [maps:get(protocols, Protocols)]),
    say("the index holds ~b bytes", [maps:get(bytes, Xref)]).

questions(Terms) ->
    heading("Senders, implementors, references"),
    Sites = timed("senders of #asMilliseconds", fun() -> beamtalk_xref:senders_of(asMilliseconds) end),
    [say("  ~ts", [site(Site)]) || Site <- lists:sort(Sites)],
    Implementors = timed("implementors of #printString", fun() -> beamtalk_xref:implementors_of(printString) end),
    say("  ~b classes, from ~ts to ~ts",
        [length(Implementors), element(1, hd(Implementors)), element(1, lists:last(Implementors))]),
    References = timed("references to TimeoutProxy", fun() -> beamtalk_xref:references_to('TimeoutProxy') end),
    [say("  ~ts", [site(Site)]) || Site <- lists:sort(References)],
    Sent = sent_selectors(Terms),
    Defined = lists:usort([Selector || {class, _, _, Entries} <- Terms, #{selector := Selector} <- Entries]),
    Unimplemented = timed("sent but implemented nowhere", fun() ->
        [Selector || Selector <- Sent, beamtalk_xref:implementors_of(Selector) =:= []]
    end),
    sample(Unimplemented),
    Unused = timed("implemented but sent nowhere", fun() ->
        [Selector || Selector <- Defined, beamtalk_xref:senders_of(Selector) =:= []]
    end),
    sample(Unused).

extensions() ->
    heading("Extensions win, leave, and the rows beneath come back"),
    Shout = fun(_Args, Self) -> string:uppercase(Self) end,
    Print = fun(_Args, _Self) -> <<"extended">> end,
    show_print("before"),
    timed("register two extensions on String", fun() ->
        ok = beamtalk_extensions:register('String', shout, Shout, shouting, <<"shout => self uppercase">>),
        ok = beamtalk_extensions:register('String', printString, Print, shouting)
    end),
    {ok, Fun, Owner} = timed("look up String>>shout", fun() -> beamtalk_extensions:lookup('String', shout) end),
    say("  owner ~ts, \"hello\" shout answers \"~ts\"", [Owner, Fun([], <<"hello">>)]),
    timed("look up a selector that four levels lack", fun() ->
        not_found = beamtalk_extensions:lookup_chain(['String', 'Collection', 'Value', 'Object'], missing)
    end),
    show_print("with the extension"),
    timed("unregister them", fun() ->
        ok = beamtalk_extensions:unregister('String', shout),
        ok = beamtalk_extensions:unregister('String', printString)
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

timed(What, Fun) ->
    {Time, Answer} = timer:tc(Fun),
    say("~ts (~b us)", [What, Time]),
    Answer.

heading(Text) ->
    io:format("~n== ~ts~n", [Text]).

say(Format, Args) ->
    io:format(Format ++ "~n", Args).
