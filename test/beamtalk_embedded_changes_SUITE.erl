%% Live changes of classes that come from files: what they do to the running class, its text and the
%% ChangeLog, how they are taken back, and what the prompt's commands make of them.
-module(beamtalk_embedded_changes_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    patch_replaces_one_method_and_nothing_else/1,
    patch_that_adds_goes_to_the_end_of_the_class/1,
    patch_knows_its_side/1,
    patch_keeps_strings_over_lines/1,
    text_of_another_selector_is_refused/1,
    text_with_two_methods_is_refused/1,
    library_classes_are_read_only/1,
    removal_takes_the_method_with_its_docs/1,
    reverted_patch_is_the_text_on_disk/1,
    reverted_addition_is_gone/1,
    reverted_removal_is_back_on_its_side_only/1,
    reverted_class_removal_is_back/1,
    reverted_extension_removal_wins_again/1,
    extension_without_a_file_comes_back/1,
    failing_default_leaves_the_class/1,
    extension_file_loaded_again_is_all_there_is/1,
    accessor_of_a_slot_cannot_be_removed/1,
    changes_say_what_differs/1,
    commands_build_expressions/1,
    prompt_reads_on_until_input_is_whole/1
]).

-define(TEXT, <<
    "/// A counter.\n"
    "Actor subclass: Counter\n"
    "  state: value = 0\n"
    "\n"
    "  // === Counting ===\n"
    "\n"
    "  /// One more.\n"
    "  increment -> Integer => self.value := self.value + 1\n"
    "\n"
    "  greet -> String => \"hello\"\n"
    "\n"
    "  class greet -> String => \"class hello\"\n"
>>).

all() ->
    [Case || {Case, 1} <- ?MODULE:module_info(exports), Case =/= module_info, Case =/= all].

init_per_testcase(Case, Config) ->
    Home = os:getenv("HOME"),
    Folder = filename:join(proplists:get_value(priv_dir, Config), Case),
    File = filename:join(Folder, "counter.bt"),
    ok = filelib:ensure_dir(File),
    ok = file:write_file(File, ?TEXT),
    true = os:putenv("HOME", Folder),
    {ok, _} = beamtalk_embedded:start(#{project => Folder, workspace_id => <<"w">>}),
    [{class, 'Counter'}] = beamtalk_embedded_loader:file(File),
    [{home, Home}, {folder, Folder}, {file, File} | Config].

end_per_testcase(_Case, Config) ->
    ok = beamtalk_embedded:stop(),
    true = os:putenv("HOME", proplists:get_value(home, Config)),
    ok.

patch_replaces_one_method_and_nothing_else(Config) ->
    ?assertEqual(<<"Counter>>greet">>, printed("Counter compile: #greet source: \"greet => \"\"bye\"\"\"")),
    ?assertEqual(<<"bye">>, value("Counter spawn greet")),
    ?assertEqual(<<"class hello">>, value("Counter greet")),
    Patched = binary:replace(?TEXT, <<"  greet -> String => \"hello\"">>, <<"  greet => \"bye\"">>),
    ?assertEqual(Patched, beamtalk_image_host:class_source('Counter')),
    ?assertEqual({ok, ?TEXT}, file:read_file(file(Config))),
    [Entry] = beamtalk_workspace_changelog:entries(),
    ?assertEqual(instance, beamtalk_workspace_changelog:entry_kind(Entry)),
    ?assert(beamtalk_workspace_changelog:entry_flushable(Entry)),
    ?assertEqual(file(Config), beamtalk_workspace_changelog:entry_source_file(Entry)),
    ?assertEqual({ok, <<"greet => \"bye\"">>}, beamtalk_workspace_changelog:read_source_body(Entry)),
    ?assertEqual({ok, <<"  greet -> String => \"hello\"\n">>},
        beamtalk_workspace_changelog:read_prev_source_body(Entry)).

patch_that_adds_goes_to_the_end_of_the_class(_Config) ->
    value("Counter >> twice: x => x + x"),
    ?assertEqual(8, value("Counter spawn twice: 4")),
    ?assertEqual(<<(?TEXT)/binary, "\n  twice: x => x + x\n">>, beamtalk_image_host:class_source('Counter')),
    [Entry] = beamtalk_workspace_changelog:entries(),
    ?assert(beamtalk_workspace_changelog:entry_flushable(Entry)),
    ?assertEqual(undefined, beamtalk_workspace_changelog:entry_span(Entry)).

%% E4
patch_knows_its_side(_Config) ->
    value("Counter class >> greet => \"patched\""),
    value("Counter class compile: #made source: \"/// Docs.\nmade => self new\""),
    ?assertEqual([<<"patched">>, <<"hello">>], value("#(Counter greet, Counter spawn greet)")),
    ?assertEqual([true, false], value("#(Counter class includesSelector: #made, Counter includesSelector: #made)")),
    ?assertEqual(nomatch, binary:match(beamtalk_image_host:class_source('Counter'), <<"class ///">>)),
    Entries = beamtalk_workspace_changelog:entries(),
    ?assertEqual([class, class], [beamtalk_workspace_changelog:entry_side(Entry) || Entry <- Entries]).

patch_keeps_strings_over_lines(_Config) ->
    value("Counter >> text => \"one\n      two\nthree\""),
    ?assertEqual(<<"one\n      two\nthree">>, value("Counter spawn text")).

text_of_another_selector_is_refused(_Config) ->
    unchanged(compile_error, "Counter compile: #greet source: \"other => 1\"").

text_with_two_methods_is_refused(_Config) ->
    unchanged(compile_error, "Counter compile: #greet source: \"greet => 1\nother => 2\"").

library_classes_are_read_only(_Config) ->
    unchanged(runtime_error, "Integer compile: #isZero source: \"isZero => true\""),
    unchanged(runtime_error, "Comparable >> max: other :: Self -> Self => self"),
    unchanged(runtime_error, "Comparable removeSelector: #max:"),
    unchanged(runtime_error, "Comparable removeSelector: #max: ifAbsent: [1]"),
    ?assert(lists:member('max:', value("Protocol providedMethods: #Comparable"))).

removal_takes_the_method_with_its_docs(_Config) ->
    value("Counter removeSelector: #increment"),
    Text = beamtalk_image_host:class_source('Counter'),
    ?assertEqual(nomatch, binary:match(Text, <<"One more">>)),
    ?assertMatch({_, _}, binary:match(Text, <<"=== Counting ===">>)),
    ?assertEqual(<<"hello">>, value("Counter spawn greet")),
    ?assertEqual(undefined, beamtalk_xref:method_info('Counter', false, increment)),
    ?assertNot(erlang:function_exported('bt@Counter', increment, 3)),
    value("Counter reload"),
    ?assertEqual(1, value("Counter spawn increment")).

%% G3
reverted_patch_is_the_text_on_disk(_Config) ->
    value("Counter >> greet => \"bye\""),
    revert(),
    ?assertEqual(<<"hello">>, value("Counter spawn greet")),
    ?assertEqual(?TEXT, beamtalk_image_host:class_source('Counter')),
    ?assertEqual([], value("Workspace changes pending")).

reverted_addition_is_gone(_Config) ->
    value("Counter >> extra => 1"),
    revert(),
    ?assertEqual(false, value("Counter spawn respondsTo: #extra")).

%% E4
reverted_removal_is_back_on_its_side_only(_Config) ->
    value("Counter class removeSelector: #greet"),
    value("Counter removeSelector: #greet"),
    [First | _] = [maps:get(seq, E) || E <- beamtalk_workspace_changelog:change_entries()],
    ?assertEqual(0, First),
    value("Workspace revert: (Workspace changes select: [:e | e side =:= #class]) first"),
    ?assertEqual(<<"class hello">>, value("Counter greet")),
    ?assertEqual(false, value("Counter spawn respondsTo: #greet")).

reverted_class_removal_is_back(_Config) ->
    value("Counter removeFromSystem"),
    ?assertEqual(undefined, beamtalk_embedded:class('Counter')),
    ?assertNot(erlang:function_exported('bt@Counter', greet, 3)),
    revert(),
    ?assertEqual(<<"hello">>, value("Counter spawn greet")).

%% A1, A7
reverted_extension_removal_wins_again(Config) ->
    File = unicode:characters_to_binary(filename:join(proplists:get_value(folder, Config), "loud.bt")),
    ok = file:write_file(File, <<"Counter >> greet => \"LOUD\"\n">>),
    beamtalk_embedded_loader:file(File),
    ?assertEqual(<<"LOUD">>, value("Counter spawn greet")),
    value("Counter removeSelector: #greet"),
    [Entry] = beamtalk_workspace_changelog:entries(),
    ?assertEqual(File, beamtalk_workspace_changelog:entry_source_file(Entry)),
    ?assert(beamtalk_workspace_changelog:entry_flushable(Entry)),
    ?assertEqual(<<"hello">>, value("Counter spawn greet")),
    revert(),
    ?assertEqual(<<"LOUD">>, value("Counter spawn greet")),
    ?assertMatch({ok, _, loud}, beamtalk_extensions:lookup('Counter', greet)).

%% What was never on disk comes back from the text that ran.
extension_without_a_file_comes_back(_Config) ->
    beamtalk_embedded_loader:text(<<"Counter class >> greet => \"typed\"\n">>, dynamic),
    ?assertEqual(<<"typed">>, value("Counter greet")),
    value("Counter class removeSelector: #greet"),
    ?assertEqual(<<"class hello">>, value("Counter greet")),
    revert(),
    ?assertEqual(<<"typed">>, value("Counter greet")).

failing_default_leaves_the_class(_Config) ->
    Pid = beamtalk_image_host:whereis_class('Counter'),
    {error, {beamtalk_error, does_not_understand, _, _, _, _, _}} =
        beamtalk_image:eval("Actor subclass: Counter\n  classState: n = nil boom\n  class greet => 1\n"),
    ?assertEqual(Pid, beamtalk_image_host:whereis_class('Counter')),
    ?assertEqual(<<"class hello">>, value("Counter greet")).

%% A5
extension_file_loaded_again_is_all_there_is(Config) ->
    File = filename:join(proplists:get_value(folder, Config), "more.bt"),
    ok = file:write_file(File, <<"Counter >> one => 1\n\nCounter class >> two => 2\n">>),
    beamtalk_embedded_loader:file(File),
    ?assertEqual([1, 2], value("#(Counter spawn one, Counter two)")),
    ok = file:write_file(File, <<"Counter >> one => 11\n">>),
    beamtalk_embedded_loader:file(File),
    ?assertEqual([11, false], value("#(Counter spawn one, Counter respondsTo: #two)")),
    value("Counter reload"),
    ?assertEqual(11, value("Counter spawn one")).

accessor_of_a_slot_cannot_be_removed(_Config) ->
    value("Value subclass: P\n  field: x = 1\n  y => 2\n"),
    Size = beamtalk_workspace_changelog:size(),
    ?assertMatch({error, {beamtalk_error, runtime_error, _, _, _, _, _}}, beamtalk_image:eval("P removeSelector: #x")),
    ?assertEqual([1, Size], [value("P new x"), beamtalk_workspace_changelog:size()]).

%% G1
changes_say_what_differs(_Config) ->
    value("Counter >> greet => \"a\""),
    value("Counter >> greet => \"b\""),
    ?assertEqual([<<"instance Counter>>greet">>],
        value("Workspace changes pending collect: [:e | e printString]")),
    ?assertEqual(2, value("(Workspace changes select: [:e | true]) size")),
    ?assertEqual(<<"Set(#greet)">>, printed("Workspace changes dirtyMethods at: #Counter")),
    value("Counter >> greet -> String => \"hello\""),
    ?assertEqual([], value("Workspace changes pending")).

commands_build_expressions(Config) ->
    {Shown, _} = typed([
        [":load ", file(Config)], "Counter spawn greet", ":remove-method Counter greet", ":changes",
        ":remove-method Counter class greet", ":remove-method Counter greet", ":browse Counter", ":reload",
        "Counter spawn greet", ":reload Counter", ":nonsense", ":browse Nobody", ":help", ":browse Comparable"
    ]),
    [Load, Greet, Removed, Changes, RemovedClass, Again, Browse, Reload, Back, ReloadClass, Nonsense, Nobody, Help,
        Protocol] = Shown,
    ?assertMatch(<<"Protocol define: Comparable\n  requires <\n  provides >\n", _/binary>>, Protocol),
    ?assertEqual([<<"#(Counter)\n">>, <<"\"hello\"\n">>, <<"Counter\n">>, <<"Counter class\n">>],
        [Load, Greet, Removed, RemovedClass]),
    ?assertEqual(<<"0  remove-method Counter>>greet  (counter.bt)\n">>, Changes),
    ?assertMatch(<<"selector_not_found: Counter does not define #greet", _/binary>>, Again),
    ?assertMatch({_, _}, binary:match(Again, <<"\n  hint: ">>)),
    ?assertEqual(<<"Actor subclass: Counter\n  slot value\n  increment\n">>, Browse),
    ?assertEqual([<<"#(Counter)\n">>, <<"\"hello\"\n">>, <<"Counter\n">>], [Reload, Back, ReloadClass]),
    ?assertEqual([<<"no such command; :help lists them\n">>, <<"there is no class Nobody\n">>], [Nonsense, Nobody]),
    [?assertMatch({_, _}, binary:match(Help, Command)) || Command <- [<<":load">>, <<":reload">>, <<":changes">>,
        <<":remove-method">>, <<":browse">>]].

prompt_reads_on_until_input_is_whole(_Config) ->
    {Shown, Prompts} = typed([
        "x := #(1,", "  2)", "x inject: 0 into:", "[:s :e | s + e]", "Value subclass: Q", "  field: a = 5",
        "  twice => self.a * 2", "",
        "Q new twice", "Counter >> double =>", "  self.value * 2", "(", "", "\"a", "b\""
    ]),
    ?assertEqual([<<"#(1, 2)\n">>, <<"3\n">>, <<"Q\n">>, <<"10\n">>, <<"Counter>>double\n">>],
        lists:sublist(Shown, 5)),
    ?assertMatch([<<"compile_error: ", _/binary>>, <<"\"a\nb\"\n">>], lists:nthtail(5, Shown)),
    ?assertEqual(lists:sublist(["bt> ", "  > ", "bt> ", "  > ", "bt> ", "  > ", "  > ", "  > ", "bt> "], 9),
        lists:sublist(Prompts, 9)).

%% What a prompt writes for each whole input, and which prompts it gave.
typed(Lines) ->
    Self = self(),
    put(lines, Lines),
    Read = fun(Prompt) ->
        Self ! {prompt, Prompt},
        case get(lines) of
            [] -> eof;
            [Line | Rest] ->
                put(lines, Rest),
                [unicode:characters_to_list(Line), "\n"]
        end
    end,
    ok = beamtalk_embedded_repl:run(Read, fun(Text) ->
        Self ! {shown, iolist_to_binary(Text)},
        ok
    end),
    {[Text || {shown, Text} <- flushed(), Text =/= <<"\n">>, Text =/= <<>>], get(prompts)}.

flushed() ->
    Messages = all_messages(),
    put(prompts, [Prompt || {prompt, Prompt} <- Messages]),
    Messages.

all_messages() ->
    receive
        {Kind, _} = Message when Kind =:= prompt; Kind =:= shown -> [Message | all_messages()]
    after 0 -> []
    end.

unchanged(Kind, Text) ->
    Before = {beamtalk_image_host:class_source('Counter'), beamtalk_workspace_changelog:size()},
    ?assertMatch({error, {beamtalk_error, Kind, _, _, _, _, _}}, beamtalk_image:eval(Text)),
    ?assertEqual(Before, {beamtalk_image_host:class_source('Counter'), beamtalk_workspace_changelog:size()}).

revert() ->
    value("entries := Workspace changes select: [:e | true]. Workspace revert: entries last").

value(Text) ->
    case beamtalk_image:eval(Text) of
        {ok, Value} -> Value;
        {error, Error} -> ct:fail({Text, Error})
    end.

printed(Text) ->
    beamtalk_embedded_session:printed(value(Text)).

file(Config) ->
    unicode:characters_to_binary(proplists:get_value(file, Config)).
