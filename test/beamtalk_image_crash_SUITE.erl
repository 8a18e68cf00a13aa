%% What dies, is reloaded or is missing, and what must still be there afterwards: everything but the process.
-module(beamtalk_image_crash_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([
    killed_process_takes_data_or_readers_along/1,
    killed_supervisor_takes_data_along/1,
    write_is_lost_while_the_index_server_is_dead/1,
    orderly_end_leaves_the_index_open/1,
    index_opened_anew_lacks_registered_extensions/1,
    killed_indexer_forgets_what_it_had_to_do/1,
    next_run_finds_entries_of_the_last/1,
    end_of_a_run_is_missed_by_a_killed_guard/1,
    end_of_a_run_is_missed_while_the_image_is_down/1,
    late_end_of_a_run_empties_the_next/1,
    second_init_empties_a_registry/1,
    reloaded_nif_module_loses_data/1,
    purged_nif_module_raises_or_loses_data/1,
    purged_nif_module_comes_back_by_itself/1,
    missing_library_breaks_sends/1,
    broken_library_file_is_not_told/1,
    purged_module_of_a_fun_ends_the_vm/1,
    purged_module_leaves_dangling_literals/1
]).
-export([on_node_reload/0, on_node_purge/0, on_node_purge_interactive/0, on_node_no_library/1,
    on_node_install/2,
    on_node_purged_fun/0, on_node_purged_literals/0]).
-export([log/2]).

all() ->
    [
        killed_process_takes_data_or_readers_along,
        killed_supervisor_takes_data_along,
        write_is_lost_while_the_index_server_is_dead,
        orderly_end_leaves_the_index_open,
        index_opened_anew_lacks_registered_extensions,
        killed_indexer_forgets_what_it_had_to_do,
        next_run_finds_entries_of_the_last,
        end_of_a_run_is_missed_by_a_killed_guard,
        end_of_a_run_is_missed_while_the_image_is_down,
        late_end_of_a_run_empties_the_next,
        second_init_empties_a_registry,
        reloaded_nif_module_loses_data,
        purged_nif_module_raises_or_loses_data,
        purged_nif_module_comes_back_by_itself,
        missing_library_breaks_sends,
        broken_library_file_is_not_told,
        purged_module_of_a_fun_ends_the_vm,
        purged_module_leaves_dangling_literals
    ].

init_per_suite(Config) ->
    #{level := Level} = logger:get_primary_config(),
    %% Every kill is a report.
    ok = logger:set_primary_config(level, none),
    [{log_level, Level} | Config].

end_per_suite(Config) ->
    ok = logger:set_primary_config(level, proplists:get_value(log_level, Config)).

init_per_testcase(_Case, Config) ->
    {ok, _} = application:ensure_all_started(beamtalk_image),
    ok = beamtalk_image_abuse_host:start(),
    ok = beamtalk_image_abuse_app:run(),
    ?assertEqual({0, 0}, entries()),
    Config.

end_per_testcase(_Case, _Config) ->
    ok = beamtalk_image:sync(),
    _ = application:stop(beamtalk_image_abuse_app),
    _ = application:unload(beamtalk_image_abuse_app),
    ok = beamtalk_image_abuse_host:stop(),
    eventually(fun() -> entries() =:= {0, 0} end),
    #{xref := #{classes := 0, methods := 0, sends := 0},
        protocols := #{users := 0, answers := 0}} = beamtalk_image:info(),
    ok.

%% ---- Kills
%% ---------------------------------------------------------------------------------------------------

%% H5
killed_process_takes_data_or_readers_along(_Config) ->
    fill(),
    Before = snapshot(),
    Names = mortal(),
    ?assert(lists:member(beamtalk_image_guard, Names)),
    ?assert(lists:member(beamtalk_image_indexer, Names)),
    ?assert(lists:member(beamtalk_xref, Names)),
    Rounds = [[Name] || Name <- Names] ++ [[One, Other] || One <- Names, Other <- Names, One < Other],
    under_load(fun() ->
        [begin
            kill(Victims),
            ?assertEqual(Before, snapshot())
        end || _ <- [1, 2, 3], Victims <- Rounds]
    end),
    ?assertEqual(Before, snapshot()).

killed_supervisor_takes_data_along(_Config) ->
    fill(),
    Before = snapshot(),
    under_load(fun() ->
        [begin
            Pid = Victim(),
            exit(Pid, kill),
            eventually(fun() -> not is_process_alive(Pid) end),
            eventually(fun() -> {ok, [beamtalk_image]} =:=
                application:ensure_all_started(beamtalk_image) end),
            ?assertEqual(Before, snapshot()),
            %% A while of nothing but load.
            timer:sleep(300)
        end || Victim <- [fun() -> whereis(beamtalk_image_sup) end,
            fun() -> application_controller:get_master(beamtalk_image) end]]
    end),
    ?assertEqual(Before, snapshot()).

%% Design 2.8: running means open.
write_is_lost_while_the_index_server_is_dead(_Config) ->
    fill(),
    Before = snapshot(),
    ok = supervisor:terminate_child(beamtalk_image_abuse_app, beamtalk_xref),
    {ok, Server} = beamtalk_xref:start_link(),
    unlink(Server),
    ?assertEqual([], beamtalk_xref:senders_of(never)),
    fill(),
    exit(Server, kill),
    eventually(fun() -> whereis(beamtalk_xref) =:= undefined end),
    ?assertEqual(Before, snapshot()),
    ok = beamtalk_xref:register_class('Late', [#{selector => m, line => 4, sends => [#{selector => late}]}]),
    ok = beamtalk_xref:put_method('Late', true, n, #{line => 5}),
    ok = beamtalk_xref:purge_class('C1'),
    ok = beamtalk_extensions:register('Late', ext, fun() -> ok end, pkg),
    ok = beamtalk_xref:set_provenance('Late', #{m => 'P'}),
    {ok, Next} = beamtalk_xref:start_link(),
    unlink(Next),
    ?assertMatch([#{owner := 'Late', line := 4}], beamtalk_xref:senders_of(late)),
    ?assertMatch(#{provenance := protocol, origin := 'P'}, beamtalk_xref:method_info('Late', false, m)),
    ?assertMatch(#{line := 5}, beamtalk_xref:method_info('Late', true, n)),
    ?assertMatch(#{provenance := extension}, beamtalk_xref:method_info('Late', false, ext)),
    ?assertEqual([], beamtalk_xref:defined_selectors('C1', false)),
    ?assertEqual({error, {already_started, Next}}, beamtalk_xref:start_link()),
    ok = gen_server:stop(Next).

orderly_end_leaves_the_index_open(_Config) ->
    fill(),
    Entry = #{selector => m, line => 1},
    ok = supervisor:terminate_child(beamtalk_image_abuse_app, beamtalk_xref),
    ?assertEqual([], beamtalk_xref:senders_of(common)),
    ?assertEqual([], beamtalk_xref:references_to('C1')),
    ?assertEqual([], beamtalk_xref:implementors_of(m)),
    ?assertEqual([], beamtalk_xref:defined_selectors('C1', false)),
    ?assertEqual(undefined, beamtalk_xref:method_info('C1', false, m)),
    ?assertEqual([], beamtalk_xref:callers_of_native_module(lists)),
    ?assertEqual([], beamtalk_xref:senders_of(common, 'C1')),
    %% Every class that defines something is a fallback then.
    #{indexed := [], fallback_classes := Fallback} = beamtalk_xref:senders_of_bt(common),
    ?assertEqual(['C1', 'C2'], lists:sort(Fallback)),
    [?assertExit({noproc, _}, Write()) || Write <- [
        fun() -> beamtalk_xref:register_class('X', [Entry]) end,
        fun() -> beamtalk_xref:register_class('X', []) end,
        fun() -> beamtalk_xref:put_method('X', false, m, Entry) end,
        fun() -> beamtalk_xref:purge_method('X', false, m) end,
        fun() -> beamtalk_xref:purge_class('X') end,
        fun() -> beamtalk_xref:purge_extension('X', m) end,
        fun() -> beamtalk_xref:forget_class('X') end,
        fun() -> beamtalk_xref:set_provenance('X', #{}) end
    ]],
    ?assertEqual(ok, beamtalk_extensions:safe_xref(fun() -> beamtalk_xref:purge_class('X') end)),
    %% Building an entry needs no server, and registering an extension must not fail for want of one.
    ?assertMatch(#{selector := m}, beamtalk_xref:build_method_entry(false, m, <<"common">>, indexed,
        put_method)),
    ok = beamtalk_extensions:register('X', m, fun() -> ok end, pkg, <<"common">>),
    ok = beamtalk_image:class_removed('X', x_module),
    ?assertEqual(not_found, beamtalk_extensions:lookup('X', m)),
    {ok, _} = supervisor:restart_child(beamtalk_image_abuse_app, beamtalk_xref),
    %% Extensions are live all the time and come back; what the class itself had is its own to register.
    ?assertEqual(undefined, beamtalk_xref:method_info('C1', false, m)),
    #{indexed := Rows} = beamtalk_xref:defined_selectors_bt(),
    ?assertEqual([ext, unsourced], lists:usort([Selector || #{selector := Selector} <- Rows])).

%% The methods are live all the time, so they must be in an index that opens anew.
index_opened_anew_lacks_registered_extensions(_Config) ->
    ok = beamtalk_extensions:register('C1', sourced, fun() -> ok end, pkg, <<"sent_by_ext">>),
    ok = beamtalk_image:sync(),
    ?assertMatch([#{owner := 'C1'}], beamtalk_xref:senders_of(sent_by_ext)),
    ok = supervisor:terminate_child(beamtalk_image_abuse_app, beamtalk_xref),
    ok = beamtalk_extensions:register('C1', meanwhile, fun() -> ok end, pkg, <<"sent_meanwhile">>),
    {ok, Server} = supervisor:restart_child(beamtalk_image_abuse_app, beamtalk_xref),
    _ = sys:get_state(Server),
    ok = beamtalk_image:sync(),
    ?assertMatch(#{provenance := extension}, beamtalk_xref:method_info('C1', false, sourced)),
    ?assertMatch([#{owner := 'C1', method := sourced}], beamtalk_xref:senders_of(sent_by_ext)),
    ?assertMatch([#{owner := 'C1', method := meanwhile}], beamtalk_xref:senders_of(sent_meanwhile)),
    ?assertMatch(#{indexed := []}, beamtalk_xref:senders_of_bt(sent_by_ext)).

killed_indexer_forgets_what_it_had_to_do(_Config) ->
    ok = beamtalk_image_abuse_host:close_gate(find_sends, [<<"first_send">>]),
    ok = beamtalk_extensions:register('C', first, fun() -> ok end, pkg, <<"first_send">>),
    Indexer = beamtalk_image_abuse_host:wait_at_gate(),
    ok = beamtalk_extensions:register('C', second, fun() -> ok end, pkg, <<"second_send">>),
    ok = beamtalk_extensions:register('C', replaced, fun() -> ok end, pkg, <<"old_send">>),
    ok = beamtalk_extensions:register('C', replaced, fun() -> ok end, pkg, <<"new_send">>),
    Waiting = spawn_monitor(fun() -> ok = beamtalk_image:sync() end),
    ?assertEqual(Indexer, whereis(beamtalk_image_indexer)),
    kill([beamtalk_image_indexer]),
    ok = beamtalk_image:sync(),
    {Waiter, Monitor} = Waiting,
    receive {'DOWN', Monitor, process, Waiter, Why} -> ?assertEqual(normal, Why) end,
    ?assertMatch([#{method := first}], beamtalk_xref:senders_of(first_send)),
    ?assertMatch([#{method := second}], beamtalk_xref:senders_of(second_send)),
    ?assertMatch([#{method := replaced}], beamtalk_xref:senders_of(new_send)),
    ?assertEqual([], beamtalk_xref:senders_of(old_send)),
    %% Nothing is asked of the compiler a second time.
    kill([beamtalk_image_indexer]),
    beamtalk_image_abuse_host:forget_asked(),
    ok = beamtalk_image:sync(),
    ?assertEqual(0, beamtalk_image_abuse_host:asked(find_sends)).

%% ---- Runs
%% ----------------------------------------------------------------------------------------------------

next_run_finds_entries_of_the_last(_Config) ->
    fill(),
    ok = beamtalk_image_abuse_app:halt(),
    %% Without a next run too: entries go with the run.
    eventually(fun() -> entries() =:= {0, 0} end),
    ?assertEqual(not_found, beamtalk_extensions:lookup('C1', ext)),
    ok = beamtalk_image_abuse_app:run(),
    ?assertEqual({0, 0}, entries()),
    ?assertEqual([], beamtalk_extensions:conflicts()),
    ?assertEqual([], beamtalk_protocol_registry:users_of('P')),
    ?assertEqual([], beamtalk_xref:senders_of(common)).

end_of_a_run_is_missed_by_a_killed_guard(_Config) ->
    [begin
        fill(),
        ?assertNotEqual({0, 0}, entries()),
        kill([beamtalk_image_guard || Before]),
        ok = beamtalk_image_abuse_app:halt(),
        kill([beamtalk_image_guard || not Before]),
        eventually(fun() -> entries() =:= {0, 0} end),
        ok = beamtalk_image_abuse_app:run(),
        ?assertEqual({0, 0}, entries()),
        %% The new run is not mistaken for the old one.
        fill(),
        kill([beamtalk_image_guard]),
        ?assertMatch({ok, _, _}, beamtalk_extensions:lookup('C1', ext)),
        ?assert(beamtalk_protocol_registry:is_protocol('P'))
    end || Before <- [true, false]].

end_of_a_run_is_missed_while_the_image_is_down(_Config) ->
    fill(),
    ok = application:stop(beamtalk_image),
    %% The data is not the processes'.
    ?assertMatch({ok, _, _}, beamtalk_extensions:lookup('C1', ext)),
    ok = beamtalk_image_abuse_app:halt(),
    ok = beamtalk_image_abuse_app:run(),
    ?assertEqual({0, 0}, entries()),
    fill(),
    ok = application:start(beamtalk_image),
    ?assertMatch({ok, _, _}, beamtalk_extensions:lookup('C1', ext)),
    ok = beamtalk_image_abuse_app:halt(),
    eventually(fun() -> entries() =:= {0, 0} end).

late_end_of_a_run_empties_the_next(_Config) ->
    [begin
        Key = list_to_atom("run" ++ integer_to_list(N)),
        ok = beamtalk_extensions:register(Key, m, fun() -> N end, pkg),
        ok = beamtalk_image_abuse_app:halt(),
        ok = beamtalk_image_abuse_app:run(),
        ?assertEqual({0, 0}, entries()),
        ok = beamtalk_extensions:register('This', m, fun() -> N end, pkg),
        ok = beamtalk_protocol_registry:register_protocol(#{name => 'This', module => this}),
        _ = sys:get_state(beamtalk_image_guard),
        ?assertEqual({1, 1}, entries())
    end || N <- lists:seq(1, 100)].

second_init_empties_a_registry(_Config) ->
    fill(),
    Before = snapshot(),
    [ok = Init() || _ <- [1, 2], Init <- [fun beamtalk_extensions:init/0,
        fun beamtalk_protocol_registry:init/0]],
    %% From a process of the same run.
    Test = self(),
    spawn(fun() ->
        group_leader(application_controller:get_master(beamtalk_image_abuse_app), self()),
        Test ! {answers, beamtalk_extensions:init(), beamtalk_protocol_registry:init()}
    end),
    receive {answers, ok, ok} -> ok end,
    ?assertEqual(Before, snapshot()).

%% ---- The module and its library
%% --------------------------------------------------------------------------------

%% H1
reloaded_nif_module_loses_data(_Config) ->
    on_node(on_node_reload, []).

on_node_reload() ->
    prepare_node(),
    fill(),
    Before = snapshot(),
    [begin
        ?assertMatch({error, on_load_failure}, code:load_file(beamtalk_image_nif)),
        ?assertEqual(none, beamtalk_image_nif:load_error()),
        ?assertEqual(Before, snapshot())
    end || _ <- [1, 2]],
    _ = code:soft_purge(beamtalk_image_nif),
    _ = code:purge(beamtalk_image_nif),
    ?assertEqual(Before, snapshot()),
    ok = beamtalk_extensions:register('C9', m, fun() -> ok end, pkg),
    ?assert(beamtalk_extensions:has('C9', m)),
    ok.

%% With the module away, and nobody who loads it.
purged_nif_module_raises_or_loses_data(_Config) ->
    on_node(on_node_purge, []).

on_node_purge() ->
    prepare_node(),
    fill(),
    Before = snapshot(),
    Path = code:get_path(),
    {_, Binary, File} = code:get_object_code(beamtalk_image_nif),
    Elsewhere = [Dir || Dir <- Path, not filelib:is_file(filename:join(Dir, filename:basename(File)))],
    [begin
        ok = search(Elsewhere),
        true = code:delete(beamtalk_image_nif),
        away(),
        code:purge(beamtalk_image_nif),
        away(),
        ok = search(Path),
        {module, beamtalk_image_nif} = code:load_binary(beamtalk_image_nif, File, Binary),
        ?assertEqual(none, beamtalk_image_nif:load_error()),
        ?assertEqual(Before, snapshot())
    end || _ <- [1, 2]],
    ok.

%% The code server asks the boot loader last, which has a path of its own.
search(Path) ->
    ok = erl_prim_loader:set_path(Path),
    true = code:set_path(Path),
    ok.

away() ->
    ?assertEqual(not_found, beamtalk_extensions:lookup('C1', ext)),
    ?assertEqual(false, beamtalk_extensions:has('C1', ext)),
    ?assertEqual(not_found, beamtalk_extensions:lookup_chain(['C1'], ext)),
    ?assertEqual(not_found, beamtalk_extensions:getSource('C1', ext)),
    ?assertEqual([], beamtalk_extensions:listAllWithSource()),
    ?assertEqual(false, beamtalk_protocol_registry:is_protocol('P')),
    ?assertEqual(false, beamtalk_protocol_registry:conforms_to('C1', 'P')),
    ?assertEqual(ok, beamtalk_protocol_registry:invalidate_conforms_cache()),
    ?assertEqual([], beamtalk_xref:senders_of(common)).

%% With the module on the path a call loads it again: refused while old code is there, done once that is
%% purged.
purged_nif_module_comes_back_by_itself(_Config) ->
    on_node(on_node_purge_interactive, []).

on_node_purge_interactive() ->
    prepare_node(),
    fill(),
    Before = snapshot(),
    [begin
        true = code:delete(beamtalk_image_nif),
        Answer = beamtalk_extensions:lookup('C1', ext),
        ?assert(Answer =:= not_found orelse is_tuple(Answer)),
        code:purge(beamtalk_image_nif),
        ?assertMatch({ok, _, pkg2}, beamtalk_extensions:lookup('C1', ext)),
        ?assertEqual(Before, snapshot())
    end || _ <- [1, 2]],
    ok.

%% Contract 0.4-2, design 2.9
missing_library_breaks_sends(Config) ->
    Path = without_library(Config),
    Peer = beamtalk_image_abuse_node:start(Path),
    try
        ok = beamtalk_image_abuse_node:call(Peer, ?MODULE, on_node_no_library, [enoent]),
        %% Once the library is there, loading the module is all it takes.
        Library = filename:join(code:priv_dir(beamtalk_image), "beamtalk_image_nif.so"),
        Target = filename:join([filename:dirname(hd(Path)), "priv", "beamtalk_image_nif.so"]),
        ok = beamtalk_image_abuse_node:call(Peer, ?MODULE, on_node_install, [Library, Target])
    after
        beamtalk_image_abuse_node:stop(Peer)
    end.

broken_library_file_is_not_told(Config) ->
    [Ebin | _] = Path = without_library(Config),
    File = filename:join([filename:dirname(Ebin), "priv", "beamtalk_image_nif.so"]),
    ok = file:write_file(File, <<"no library">>),
    Peer = beamtalk_image_abuse_node:start(Path),
    try
        ok = beamtalk_image_abuse_node:call(Peer, ?MODULE, on_node_no_library, [broken])
    after
        beamtalk_image_abuse_node:stop(Peer)
    end.

without_library(Config) ->
    Home = filename:join([proplists:get_value(priv_dir, Config),
        integer_to_list(erlang:unique_integer([positive])),
        "beamtalk_image"]),
    Ebin = filename:join(Home, "ebin"),
    ok = filelib:ensure_dir(filename:join([Home, "priv", "x"])),
    ok = filelib:ensure_dir(filename:join(Ebin, "x")),
    Original = filename:dirname(code:which(beamtalk_image_nif)),
    [{ok, _} = file:copy(File, filename:join(Ebin, filename:basename(File)))
        || File <- filelib:wildcard(filename:join(Original, "*"))],
    %% A path is searched from its end when it is given as a list of -pa, so the last one wins.
    [Ebin, filename:dirname(code:which(?MODULE)), filename:dirname(code:which(beamtalk_image_abuse_host)),
        Ebin].

on_node_no_library(_Why) ->
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => self(), level => error}),
    _ = logger:remove_handler(default),
    {ok, _} = application:ensure_all_started(beamtalk_image),
    ?assertNotEqual(none, beamtalk_image_nif:load_error()),
    ?assert(is_told()),
    #{nif := {not_loaded, _}} = beamtalk_image:info(),
    away(),
    ?assertEqual(ok, beamtalk_extensions:init()),
    ?assertEqual(ok, beamtalk_protocol_registry:init()),
    ?assertError({nif_not_loaded, _}, beamtalk_extensions:register('C1', ext, fun() -> ok end, pkg)),
    ?assertError({nif_not_loaded, _}, beamtalk_protocol_registry:register_protocol(#{name => 'P'})),
    {error, [#{code := <<"nif_not_loaded">>}]} = beamtalk_lang:parse(<<"Object subclass: Q">>),
    {error, [_]} = beamtalk_image_host_runtime:find_sends(<<"m => self n">>),
    {error, noproc, _} = beamtalk_lang:resolve_method_span(<<"Object subclass: Q">>, <<"Q">>, <<"m">>, instance),
    ?assertEqual(ok, beamtalk_extensions:purge_class('C1')),
    ?assertEqual(ok, beamtalk_extensions:unregister('C1', ext)),
    %% A runtime boots, runs and ends, twice, and the image stands by.
    ok = beamtalk_image_abuse_host:start(),
    [begin
        ok = beamtalk_image_abuse_app:run(),
        ?assert(is_pid(whereis(beamtalk_xref))),
        ?assertExit({noproc, _}, beamtalk_xref:register_class('C1', [])),
        ?assertEqual(ok, beamtalk_image:class_removed('C1', c1)),
        ok = beamtalk_image:sync(),
        ok = beamtalk_image_abuse_app:halt(),
        timer:sleep(200)
    end || _ <- [1, 2]],
    ?assert(lists:keymember(beamtalk_image, 1, application:which_applications())),
    ?assertNotEqual(none, beamtalk_image_nif:load_error()),
    ok.

on_node_install(Library, Target) ->
    {ok, _} = file:copy(Library, Target),
    {module, _} = code:load_file(beamtalk_image_nif),
    ?assertEqual(none, beamtalk_image_nif:load_error()),
    ok = beamtalk_image_abuse_app:run(),
    ok = beamtalk_extensions:register('C1', ext, fun() -> ok end, pkg),
    ?assertMatch({ok, _, pkg}, beamtalk_extensions:lookup('C1', ext)),
    ok = beamtalk_image_abuse_app:halt().

is_told() ->
    receive
        {logged, #{meta := #{domain := [beamtalk, runtime]}, msg := {Format, Args}}} when is_list(Format) ->
            string:find(io_lib:format(Format, Args), "load") =/= nomatch orelse is_told();
        {logged, _} ->
            is_told()
    after 1_000 ->
        false
    end.

log(Event, #{config := Test}) ->
    Test ! {logged, Event}.

%% ---- Modules of registered terms
%% ------------------------------------------------------------------------------

purged_module_of_a_fun_ends_the_vm(_Config) ->
    on_node(on_node_purged_fun, []).

on_node_purged_fun() ->
    prepare_node(),
    ok = load_method_module(1),
    Local = beamtalk_image_abuse_method:local(),
    External = fun beamtalk_image_abuse_method:method/2,
    ok = beamtalk_extensions:register('C', local, Local, pkg),
    ok = beamtalk_extensions:register('C', external, External, pkg),
    true = code:delete(beamtalk_image_abuse_method),
    _ = code:purge(beamtalk_image_abuse_method),
    erlang:garbage_collect(),
    [begin
        {ok, Gone, pkg} = beamtalk_extensions:lookup('C', Selector),
        ?assert(is_function(Gone, 2)),
        ?assertError(_, Gone([], self()))
    end || _ <- lists:seq(1, 1_000), Selector <- [local, external]],
    %% Its new version is another function, except through its name.
    ok = load_method_module(2),
    {ok, Old, pkg} = beamtalk_extensions:lookup('C', local),
    ?assertError(_, Old([], self())),
    {ok, Named, pkg} = beamtalk_extensions:lookup('C', external),
    ?assertEqual({2, []}, Named([], self())),
    ok = beamtalk_extensions:register('C', local, beamtalk_image_abuse_method:local(), pkg),
    {ok, New, pkg} = beamtalk_extensions:lookup('C', local),
    ?assertEqual({2, []}, New([], self())),
    ok = beamtalk_extensions:purge_class('C').

%% Constants of a module live in an area that goes with it; what is registered is kept as a copy.
purged_module_leaves_dangling_literals(_Config) ->
    on_node(on_node_purged_literals, []).

on_node_purged_literals() ->
    prepare_node(),
    ok = load_method_module(1),
    ok = beamtalk_protocol_registry:register_protocol(beamtalk_image_abuse_method:definition()),
    ok = beamtalk_extensions:register('C', m, beamtalk_image_abuse_method:closing(), pkg,
        beamtalk_image_abuse_method:text()),
    Definition = binary_to_term(term_to_binary(beamtalk_image_abuse_method:definition())),
    Text = binary:copy(beamtalk_image_abuse_method:text()),
    true = code:delete(beamtalk_image_abuse_method),
    _ = code:purge(beamtalk_image_abuse_method),
    erlang:garbage_collect(),
    %% Whoever overwrites the freed area must not change an answer.
    [load_method_module(N) || N <- lists:seq(2, 30)],
    ?assertEqual(Definition, beamtalk_protocol_registry:protocol_info('FromConstants')),
    {ok, Fun, pkg} = beamtalk_extensions:lookup('C', m),
    ?assertEqual({env, [Definition]}, erlang:fun_info(Fun, env)),
    ?assertEqual({ok, Text}, beamtalk_extensions:getSource('C', m)),
    ok.

load_method_module(Version) ->
    Text = io_lib:format(
        "-module(beamtalk_image_abuse_method).~n"
        "-export([local/0, method/2, definition/0, closing/0, text/0]).~n"
        "local() -> fun(Args, _Self) -> {~w, Args} end.~n"
        "method(Args, _Self) -> {~w, Args}.~n"
        "definition() -> #{name => 'FromConstants', doc => \"of version ~w\","
        " required_methods => [#{selector => a, arity => 0}, #{selector => b, arity => 1}]}.~n"
        "closing() -> D = definition(), close(D).~n"
        "close(D) -> fun(_Args, _Self) -> D end.~n"
        "text() -> <<\"constant text of version ~w that is too long for a process heap .............\">>.~n",
        [Version, Version, Version, Version]
    ),
    {ok, Tokens, _} = erl_scan:string(lists:flatten(Text)),
    {ok, Module, Binary} = compile:forms(forms(Tokens, [], [])),
    _ = code:purge(Module),
    {module, Module} = code:load_binary(Module, "in memory", Binary),
    ok.

forms([], [], Forms) ->
    lists:reverse(Forms);
forms([{dot, _} = Dot | Rest], Form, Forms) ->
    {ok, Parsed} = erl_parse:parse_form(lists:reverse([Dot | Form])),
    forms(Rest, [], [Parsed | Forms]);
forms([Token | Rest], Form, Forms) ->
    forms(Rest, [Token | Form], Forms).

%% ---- Means
%% ---------------------------------------------------------------------------------------------------

on_node(Function, Args) ->
    Peer = beamtalk_image_abuse_node:start(),
    try
        ok = beamtalk_image_abuse_node:call(Peer, ?MODULE, Function, Args)
    after
        beamtalk_image_abuse_node:stop(Peer)
    end.

prepare_node() ->
    ok = logger:set_primary_config(level, none),
    {ok, _} = application:ensure_all_started(beamtalk_image),
    ok = beamtalk_image_abuse_host:start(),
    ok = beamtalk_image_abuse_app:run().

%% The processes that a kill can reach, by name.
mortal() ->
    Children = [Id || {Id, Pid, worker, _} <- supervisor:which_children(beamtalk_image_sup), is_pid(Pid)],
    lists:sort([beamtalk_xref | Children]).

kill(Names) ->
    Pids = [{Name, whereis(Name)} || Name <- Names],
    [exit(Pid, kill) || {_, Pid} <- Pids],
    [eventually(fun() -> is_pid(whereis(Name)) andalso whereis(Name) =/= Pid end) || {Name, Pid} <- Pids],
    ok.

eventually(Condition) -> eventually(Condition, 1_000).

eventually(_Condition, 0) -> error(never);
eventually(Condition, Times) -> Condition() orelse begin timer:sleep(5), eventually(Condition, Times - 1) end.

entries() ->
    #{extensions := #{entries := Extensions}, protocols := #{protocols := Protocols}} = beamtalk_image:info(),
    {Extensions, Protocols}.

fill() ->
    ok = beamtalk_image_abuse_host:add('C1', 'C2', [m, n]),
    ok = beamtalk_image_abuse_host:add('C2', none, [m]),
    [ok = beamtalk_xref:register_class(Class, [
        #{selector => m, line => 2, sends => [#{selector => common, recv_type => {union, ['C1', 'P']}},
            #{selector => reverse, recv_kind => erlang_ffi, target_module => lists}]},
        #{selector => n, line => 9, references => [#{class => 'C1', line => 10}],
            unresolved_sends => [#{selector => <<"no name yet, and none later">>}]}
    ]) || Class <- ['C1', 'C2']],
    [ok = beamtalk_extensions:register(Class, ext, fun constant/0, Owner, <<"common">>)
        || Owner <- [pkg, pkg2], Class <- ['C1', 'C1 class']],
    ok = beamtalk_extensions:register('C1', unsourced, fun constant/0, pkg),
    ok = beamtalk_protocol_registry:register_protocol(
        #{name => 'P', module => p_module, required_methods => [#{selector => m, arity => 0}],
            provided_methods => [#{selector => n, arity => 0}]}),
    ok = beamtalk_protocol_registry:register_uses('C1', c1_module, ['P', {'Q', <<"hash">>}]),
    ok = beamtalk_xref:set_provenance('C1', #{n => 'P'}),
    ok = beamtalk_image:sync().

constant() -> constant.

%% Everything that a reader can ask.
snapshot() ->
    ok = beamtalk_image:sync(),
    [lists:sort(Answer) || Answer <- [
        beamtalk_extensions:list('C1'), beamtalk_extensions:list('C1 class'),
            beamtalk_extensions:extensions_by(pkg),
        beamtalk_extensions:extensions_by(pkg2), beamtalk_extensions:conflicts(),
        %% The writer's own come and go.
        [Sourced || {Class, _, _} = Sourced <- beamtalk_extensions:listAllWithSource(), Class =/= 'Busy']
    ]] ++ [lists:sort([maps:remove(gen, Row) || Row <- Rows]) || Rows <- [
        beamtalk_xref:senders_of(common), beamtalk_xref:senders_of(common, 'C2'),
            beamtalk_xref:references_to('C1'),
        beamtalk_xref:callers_of_native_module(lists),
        [beamtalk_xref:method_info('C1', false, Selector) || Selector <- [m, n, ext, unsourced]]
    ]] ++ [
        beamtalk_extensions:lookup('C1', ext),
        beamtalk_xref:implementors_of(ext), beamtalk_xref:defined_selectors('C1', false),
        maps:map(fun(_, Rows) -> lists:sort(Rows) end, beamtalk_xref:all_sends_bt()),
        beamtalk_protocol_registry:protocol_info('P'), beamtalk_protocol_registry:used_protocol_hashes('C1'),
        beamtalk_protocol_registry:users_of('P'), beamtalk_protocol_registry:provided_methods('P'),
        beamtalk_protocol_registry:conforms_to('C1', 'P'), beamtalk_protocol_registry:conforms_to('C2', 'P')
    ].

%% Eight readers and a writer of other keys, none of which may see anything but its own right answers.
under_load(Test) ->
    Expected = steady(),
    Stop = atomics:new(1, []),
    Readers = [spawn_monitor(fun() -> read(Stop, Expected, 0) end) || _ <- lists:seq(1, 8)],
    Writer = spawn_monitor(fun() -> write(Stop, 1) end),
    try
        Test()
    after
        atomics:put(Stop, 1, 1)
    end,
    Counts = [receive {'DOWN', Monitor, process, Pid, Why} -> {done, Count} = Why, Count end
        || {Pid, Monitor} <- [Writer | Readers]],
    ?assert(lists:min(Counts) > 10, Counts).

steady() ->
    {
        beamtalk_extensions:lookup('C1', ext),
        beamtalk_extensions:has('C1 class', ext),
        beamtalk_extensions:lookup_chain(['C2', 'C1'], ext),
        beamtalk_extensions:getSource('C1', ext),
        lists:sort(beamtalk_extensions:list('C1')),
        lists:sort([{Owner, Line} || #{owner := Owner, line := Line} <- beamtalk_xref:senders_of(common)]),
        beamtalk_xref:implementors_of(m),
        beamtalk_xref:defined_selectors('C1', false),
        [Owner || #{owner := Owner} <- beamtalk_xref:callers_of_native_module(lists)],
        beamtalk_protocol_registry:protocol_info('P'),
        beamtalk_protocol_registry:users_of('P'),
        beamtalk_protocol_registry:conforms_to('C1', 'P'),
        beamtalk_protocol_registry:conforms_to('C2', 'P')
    }.

read(Stop, Expected, Count) ->
    case atomics:get(Stop, 1) of
        1 ->
            exit({done, Count});
        0 ->
            case steady() of
                Expected -> read(Stop, Expected, Count + 1);
                Other -> exit({wrong_answer, Count, Other})
            end
    end.

write(Stop, Count) ->
    ok = beamtalk_xref:register_class('Busy', [#{selector => busy, line => Count}]),
    [#{line := Count}] = [beamtalk_xref:method_info('Busy', false, busy)],
    ok = beamtalk_extensions:register('Busy', busy_ext, fun() -> Count end, pkg9, <<"busy_send">>),
    {ok, Fun, pkg9} = beamtalk_extensions:lookup('Busy', busy_ext),
    Count = Fun(),
    ok = beamtalk_extensions:unregister('Busy', busy_ext),
    ok = beamtalk_protocol_registry:register_uses('Busy', ['R']),
    ['Busy'] = beamtalk_protocol_registry:users_of('R'),
    ok = beamtalk_protocol_registry:invalidate_conforms_cache(),
    ok = beamtalk_image:class_removed('Busy', busy_module),
    undefined = beamtalk_xref:method_info('Busy', false, busy),
    [] = beamtalk_protocol_registry:users_of('R'),
    case atomics:get(Stop, 1) of
        1 -> exit({done, Count});
        0 -> write(Stop, Count + 1)
    end.
