%% The ChangeLog from Erlang: what it makes of damaged, foreign and hostile folders, and what it promises
%% while several processes use it (contract §5 and §8.4). What a crash leaves is in
%% beamtalk_image_changelog_crash_SUITE.
-module(beamtalk_workspace_changelog_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2, end_per_testcase/2]).
-export([init/1]).
-export([
    line_is_glued_to_a_torn_tail/1,
    damage_in_the_middle_is_cut_off_or_hidden/1,
    rewrite_loses_what_it_does_not_understand/1,
    folder_of_the_original_opens_differently/1,
    folder_of_ours_is_unreadable_to_others/1,
    numbers_begin_again_after_clear/1,
    numbers_begin_again_after_an_unreadable_log/1,
    cleared_entries_come_back/1,
    millionth_body_overwrites_another/1,
    bytes_or_names_come_back_changed/1,
    bad_input_ends_the_server_or_leaves_a_trace/1,
    reference_leads_out_of_the_folder/1,
    pipe_device_or_gigabyte_is_read_as_a_source_file/1,
    hostile_folder_ends_the_node/1,
    name_that_no_atom_spells_fails_the_listing/1,
    orphans_are_what_nobody_lost/1,
    non_ascii_path_makes_an_orphan/1,
    crash_of_the_server_begins_another_epoch/1,
    log_in_memory_dies_with_the_server/1,
    setting_is_ignored_or_taken_for_another/1,
    archives_move_entries_one_by_one/1,
    pending_entry_is_rotated_before_a_finished_one/1,
    reader_waits_for_a_writer/1,
    reader_sees_half_a_change/1,
    sixteen_writers_mix_lines_or_bodies/1,
    rotation_under_writers_loses_or_doubles_entries/1,
    extension_removal_passes_for_a_methods/1,
    dirty_methods_differ_from_the_originals/1,
    unchanged_file_is_compiled_again/1,
    listing_shows_an_old_comparison/1
]).

-import(beamtalk_image_log_fixture, [
    open/1, open/2, close/0, dir/1, log_file/1, entry/1, entry/2, line/1, line/2, write_log/2, seqs/0,
        warnings/1,
    await/1, parallel/1
]).

-define(LOG, beamtalk_workspace_changelog).

suite() ->
    [{timetrap, {minutes, 2}}].

all() ->
    [Case || {Case, 1} <- ?MODULE:module_info(exports), Case =/= module_info, Case =/= init,
        not lists:prefix("init_per", atom_to_list(Case)), not lists:prefix("end_per", atom_to_list(Case))].

init_per_suite(Config) ->
    {ok, Started} = application:ensure_all_started(beamtalk_image),
    [{started, Started} | Config].

end_per_suite(Config) ->
    [ok = application:stop(App) || App <- lists:reverse(proplists:get_value(started, Config))],
    ok.

init_per_testcase(Case, Config) ->
    Before = beamtalk_image_leftovers:picture(),
    Home = filename:join(proplists:get_value(priv_dir, Config), atom_to_list(Case)),
    ok = beamtalk_image_log_fixture:start(Home),
    [{before, Before}, {home, Home} | Config].

end_per_testcase(_Case, Config) ->
    ok = beamtalk_image_log_fixture:stop(),
    beamtalk_image_leftovers:assert_none(proplists:get_value(before, Config)).

%% As a supervisor of one permanent child, for the cases about processes.
init([Id]) ->
    Child = #{id => ?LOG, start => {?LOG, start_link, [#{workspace_id => Id}]}, shutdown => 5_000},
    {ok, {#{intensity => 5, period => 60}, [Child]}}.

%% ---- Tails and damage -------------------------------------------------------------------------------------

%% F1: whatever the last write left, the next line stands alone, everything whole is there, and it is told
%% once.
line_is_glued_to_a_torn_tail(_Config) ->
    Whole = [[line(Seq), "\n"] || Seq <- [0, 1, 2]],
    Fourth = line(3, #{<<"author">> => unicode:characters_to_binary("\"Jürgen\"")}),
    {At, 2} = binary:match(Fourth, <<"ü"/utf8>>),
    Tails = [
        {half, binary:part(Fourth, 0, 60), torn},
        {mid_character, binary:part(Fourth, 0, At + 1), torn},
        {half_and_zeros, [binary:part(Fourth, 0, 60), binary:copy(<<0>>, 700)], torn},
        {zeros, binary:copy(<<0>>, 4_096), none},
        {no_newline, Fourth, whole},
        {whole_and_zeros, [Fourth, binary:copy(<<0>>, 100)], whole}
    ],
    lists:foreach(
        fun({Name, Tail, Is}) ->
            Id = atom_to_binary(Name),
            ok = write_log(Id, [Whole, Tail]),
            ?assertMatch({Name, [_]}, {Name, warnings(open(Id))}),
            Kept =
                case Is of
                    whole -> [0, 1, 2, 3];
                    _ -> [0, 1, 2]
                end,
            ?assertEqual({Name, Kept}, {Name, seqs()}),
            {ok, New} = ?LOG:append(entry(99)),
            ?assertEqual({Name, Kept ++ [New]}, {Name, seqs()}),
            ok = close(),
            ?assertEqual({Name, []}, {Name, warnings(open(Id))}),
            ?assertEqual({Name, Kept ++ [New]}, {Name, seqs()}),
            ok = close(),
            {Read, Others} = beamtalk_image_log_reader:read(dir(Id)),
            ?assertEqual({Name, Kept ++ [New], []}, {Name, [Seq || #{seq := Seq} <- Read], Others}),
            %% What was cut is kept beside the log.
            Repairs = filelib:wildcard("tail-*.bin", filename:join(dir(Id), "repairs")),
            case Is of
                torn ->
                    [File] = Repairs,
                    {ok, Bytes} = file:read_file(filename:join([dir(Id), "repairs", File])),
                    Cut = iolist_to_binary(Tail),
                    ?assertEqual(Bytes, binary:part(Cut, 0, byte_size(Bytes)));
                _ ->
                    ?assertEqual({Name, []}, {Name, Repairs})
            end
        end,
        Tails
    ).

%% F3: one bad line of ten costs that line, is told with its place, and outlives every rewrite.
damage_in_the_middle_is_cut_off_or_hidden(_Config) ->
    Damaged = <<"{\"seq\":2,\"ts\":", 16#ff, 0, 16#fe, " broken\"}">>,
    Lines = [line(0), line(1), Damaged | [line(Seq) || Seq <- lists:seq(3, 9)]],
    ok = write_log(<<"w">>, [[Line, "\n"] || Line <- Lines]),
    [Warning] = warnings(open(<<"w">>)),
    Offset = byte_size(line(0)) + byte_size(line(1)) + 2,
    Place = iolist_to_binary(io_lib:format("line 3 (~b bytes at ~b)", [byte_size(Damaged), Offset])),
    ?assertMatch({_, _}, binary:match(Warning, Place)),
    Entries = [0, 1 | lists:seq(3, 9)],
    ?assertEqual(Entries, seqs()),
    {ok, 10} = ?LOG:append(entry(10)),
    ok = ?LOG:mark_flushed([5, 10]),
    ?assertEqual(length(Entries) + 1, ?LOG:size()),
    ?assertMatch({ok, <<"old 11">>, _}, begin
        {ok, 11} = ?LOG:append(entry(11)),
        ?LOG:find_revert_target(<<"Counter">>, <<"m11">>)
    end),
    ok = close(),
    [_, _, Third | _] = beamtalk_image_log_reader:lines(log_file(<<"w">>)),
    ?assertEqual(Damaged, Third),
    ?assertMatch([_], warnings(open(<<"w">>))).

%% F11, 8.4-9: unknown kinds, words and fields, odd layout, malformed and repeated lines.
rewrite_loses_what_it_does_not_understand(_Config) ->
    Odd = [
        line(0, #{<<"kind">> => "\"rename-method\""}),
        line(1, #{<<"intent">> => "\"sometimes\"", <<"author_kind">> => "\"robot\""}),
        line(2, #{<<"side">> => "\"both\"", <<"kind">> => "\"remove-method\""}),
        line(3, #{<<"later">> => "{\"a\":[1,2.50,\"\\u00e9\"],\"b\":{}}"}),
        <<"  { \"ts\" : 5 ,\t\"seq\":4,\"epoch\":1,\"class\":\"C\",\"author\":\"x\",\"kind\":\"class\",",
            "\"intent\":\"durable\",\"author_kind\":\"human\",\"flushable\":false }  ">>,
        <<"not json at all">>,
        <<>>,
        line(3, #{<<"class">> => "\"Again\""}),
        <<"{\"seq\":6,\"epoch\":1}">>
    ],
    Plain = [line(Seq) || Seq <- lists:seq(7, 10)],
    ok = write_log(<<"w">>, [[Line, "\n"] || Line <- Odd ++ Plain]),
    _ = open(<<"w">>, #{changelog_bound => 50, changelog_slack => 1}),
    ?assertEqual([unknown, instance, 'remove-method', instance, class], lists:sublist(kinds(), 5)),
    ?assertEqual([0, 1, 2, 3, 4, 7, 8, 9, 10], seqs()),
    ok = ?LOG:mark_flushed([7]),
    ok = close(),
    {ok, Marked} = file:read_file(log_file(<<"w">>)),
    Expected = Odd ++ [line(7, #{<<"flushed">> => "true"}) | tl(Plain)],
    ?assertEqual(iolist_to_binary([[Line, "\n"] || Line <- Expected]), Marked),
    %% The next start is over its bound: what moves and what stays is as it stood.
    _ = open(<<"w">>, #{changelog_bound => 4, changelog_slack => 1}),
    ?assertEqual([8, 9, 10], seqs()),
    ok = close(),
    Archive = filename:join(dir(<<"w">>), "archive"),
    [Segment] = filelib:wildcard("changes-*.jsonl.gz", Archive),
    {ok, Packed} = file:read_file(filename:join(Archive, Segment)),
    Archived = binary:split(zlib:gunzip(Packed), <<"\n">>, [global, trim]),
    Live = binary:split(element(2, file:read_file(log_file(<<"w">>))), <<"\n">>, [global, trim]),
    ?assertEqual(lists:sort(Expected), lists:sort(Archived ++ Live)).

kinds() ->
    [?LOG:entry_kind(Entry) || Entry <- ?LOG:entries()].

%% ---- Both ways --------------------------------------------------------------------------------------------

%% Two folders that the original wrote, and one of version 1 of ours: the same entries, fields and bodies as a reader of the contract finds.
folder_of_the_original_opens_differently(_Config) ->
    ok = copy_tree(beamtalk_image_fixtures:path("test/fixtures/changelog/original"), dir(<<"plain">>)),
    ok = copy_tree(beamtalk_image_fixtures:path("test/fixtures/changelog/ours"), dir(<<"ours">>)),
    Rotated = beamtalk_image_fixtures:path("test/fixtures/changelog/original-rotated.tar.gz"),
    Unpacked = filename:dirname(dir(<<"rotated">>)),
    ok = erl_tar:extract(Rotated, [compressed, {cwd, Unpacked}]),
    lists:foreach(
        fun(Id) ->
            {Expected, []} = beamtalk_image_log_reader:read(dir(Id)),
            ?assert(length(Expected) >= 5),
            {Segments, Bodies} = beamtalk_image_log_reader:archives(dir(Id)),
            ?assertEqual([], warnings(open(Id))),
            ?assertEqual(Expected, [fields(Entry) || Entry <- ?LOG:entries()]),
            ?assert(lists:all(fun ?LOG:entry_is_prior_epoch/1, ?LOG:entries())),
            Highest = lists:max([Seq || #{seq := Seq} <- Expected]),
            ?assertEqual({ok, Highest + 1}, ?LOG:append(entry(1))),
            ?assertEqual(lists:max([Epoch || #{epoch := Epoch} <- Expected]) + 1, ?LOG:epoch()),
            ok = close(),
            ?assertMatch({Segments, Bodies}, archives_before(Id, length(Segments), Bodies))
        end,
        [<<"plain">>, <<"rotated">>, <<"ours">>]
    ).

%% Archives that were there are still there, the same.
archives_before(Id, Count, Bodies) ->
    {Segments, Now} = beamtalk_image_log_reader:archives(dir(Id)),
    {lists:sublist(Segments, Count), maps:with(maps:keys(Bodies), Now)}.

%% Every kind and field that we write, and a rotation, as a reader of the contract alone sees it.
folder_of_ours_is_unreadable_to_others(_Config) ->
    _ = open(<<"w">>, #{changelog_bound => 12, changelog_slack => 4}),
    Source = unicode:characters_to_binary("größe => 1\r\n"),
    Inputs = [
        entry(0),
        entry(1, #{kind => class, source_file => <<"/tmp/a.bt">>, span => #{start => 3, 'end' => 9}}),
        entry(2, #{kind => 'new-class', selector => undefined, prev_source => undefined, source => Source}),
        entry(3, #{kind => 'remove-method', side => class, source => undefined, layer => extension,
            owner => pkg,
            flushable => false, not_flushable_reason => <<"extension">>}),
        entry(4, #{kind => 'remove-class', selector => undefined, source => undefined}),
        entry(5, #{intent => ephemeral, author_kind => agent, class => unicode:characters_to_binary("Größe")})
    ],
    lists:foreach(fun(Input) -> {ok, _} = ?LOG:append(Input) end, Inputs),
    ok = ?LOG:mark_flushed([1]),
    Mine = [fields(Entry) || Entry <- ?LOG:entries()],
    {Read, []} = beamtalk_image_log_reader:read(dir(<<"w">>)),
    ?assertEqual(Mine, Read),
    lists:foreach(fun(N) -> {ok, _} = ?LOG:append(entry(N)) end, lists:seq(6, 14)),
    {Live, []} = beamtalk_image_log_reader:read(dir(<<"w">>)),
    ?assertEqual([fields(Entry) || Entry <- ?LOG:entries()], Live),
    {[Segment], Bodies} = beamtalk_image_log_reader:archives(dir(<<"w">>)),
    ?assertEqual(lists:seq(0, 14), lists:sort([Seq || #{seq := Seq} <- Segment ++ Live])),
    Refs = [Ref || Entry <- Segment, Key <- [source_ref, prev_source_ref], #{Key := Ref} <- [Entry],
        Ref =/= undefined],
    ?assertEqual(lists:sort(Refs), lists:sort(maps:keys(Bodies))),
    %% Lines are short whatever the bodies weigh.
    {ok, _} = ?LOG:append(entry(15, #{source => binary:copy(<<"x">>, 100_000)})),
    ?assert(lists:all(fun(Line) -> byte_size(Line) < 500 end,
        beamtalk_image_log_reader:lines(log_file(<<"w">>)))),
    lists:foreach(
        fun(Line) ->
            Entry = ?LOG:entry_from_json(Line),
            ?assertEqual(Line, ?LOG:entry_to_json(Entry))
        end,
        beamtalk_image_log_reader:lines(log_file(<<"w">>))
    ).

%% An entry as beamtalk_image_log_reader describes one.
fields(Entry) ->
    #{
        seq => ?LOG:entry_seq(Entry),
        epoch => ?LOG:entry_epoch(Entry),
        class => ?LOG:entry_class(Entry),
        selector => ?LOG:entry_selector(Entry),
        kind => ?LOG:entry_kind(Entry),
        side => ?LOG:entry_side(Entry),
        flushable => ?LOG:entry_flushable(Entry),
        flushed => ?LOG:entry_flushed(Entry),
        intent => ?LOG:entry_intent(Entry),
        author_kind => ?LOG:entry_author_kind(Entry),
        not_flushable_reason => ?LOG:entry_not_flushable_reason(Entry),
        source_file => ?LOG:entry_source_file(Entry),
        span => ?LOG:entry_span(Entry),
        source_ref => ?LOG:entry_source_ref(Entry),
        prev_source_ref => ?LOG:entry_prev_source_ref(Entry),
        bodies => {?LOG:read_source_body(Entry), ?LOG:read_prev_source_body(Entry)}
    }.

copy_tree(From, To) ->
    lists:foreach(
        fun(Name) ->
            Source = filename:join(From, Name),
            Target = filename:join(To, Name),
            ok = filelib:ensure_dir(Target),
            case filelib:is_dir(Source) of
                true -> copy_tree(Source, Target);
                false -> {ok, _} = file:copy(Source, Target)
            end
        end,
        element(2, file:list_dir(From))
    ).

%% ---- Numbers and names ------------------------------------------------------------------------------------

%% 8.4-5
numbers_begin_again_after_clear(_Config) ->
    _ = open(<<"w">>),
    [{ok, 0}, {ok, 1}, {ok, 2}] = [?LOG:append(entry(N)) || N <- [0, 1, 2]],
    [First | _] = ?LOG:entries(),
    ok = ?LOG:clear(),
    ?assertEqual([], ?LOG:entries()),
    ?assertEqual({ok, 3}, ?LOG:append(entry(3))),
    ok = ?LOG:clear(),
    ?assertEqual(ok, ?LOG:clear()),
    ok = close(),
    [] = warnings(open(<<"w">>)),
    ?assertEqual(2, ?LOG:epoch()),
    ?assertEqual([], ?LOG:entries()),
    ?assertEqual({ok, 4}, ?LOG:append(entry(4))),
    %% Bodies of what was cleared are still those of what was cleared.
    ?assertEqual({ok, <<"new 0">>}, ?LOG:read_source_body(First)).

numbers_begin_again_after_an_unreadable_log(_Config) ->
    _ = open(<<"w">>),
    [{ok, 0}, {ok, 1}, {ok, 2}] = [?LOG:append(entry(N)) || N <- [0, 1, 2]],
    ok = close(),
    Aside = log_file(<<"w">>) ++ ".aside",
    ok = file:rename(log_file(<<"w">>), Aside),
    ok = file:make_dir(log_file(<<"w">>)),
    ?assertMatch([_ | _], warnings(open(<<"w">>))),
    ?assertEqual({2, []}, {?LOG:epoch(), ?LOG:entries()}),
    ?assertMatch({error, {beamtalk_error, changelog_write_error, _, _, _, _, _}}, ?LOG:append(entry(3))),
    ok = close(),
    ok = file:del_dir(log_file(<<"w">>)),
    ok = file:rename(Aside, log_file(<<"w">>)),
    [] = warnings(open(<<"w">>)),
    ?assertEqual({3, [0, 1, 2]}, {?LOG:epoch(), seqs()}),
    {ok, Next} = ?LOG:append(entry(4)),
    ?assert(Next > 2),
    ?assertEqual([{ok, <<"new ", N>>} || N <- "0124"], [?LOG:read_source_body(Entry)
        || Entry <- ?LOG:entries()]).

%% 8.4-11: an emptying that the disk refuses is an error, and nothing is emptied.
cleared_entries_come_back(_Config) ->
    _ = open(<<"w">>),
    {ok, 0} = ?LOG:append(entry(0)),
    InTheWay = filename:join(dir(<<"w">>), "marks.json.tmp"),
    ok = file:make_dir(InTheWay),
    ?assertMatch({error, _}, ?LOG:clear()),
    ?assertEqual([0], seqs()),
    ok = file:del_dir(InTheWay),
    ?assertEqual(ok, ?LOG:clear()),
    ok = close(),
    [] = warnings(open(<<"w">>)),
    ?assertEqual([], seqs()).

%% 8.4-16, the names
millionth_body_overwrites_another(_Config) ->
    ok = write_log(<<"w">>, [line(999_997), "\n"]),
    _ = open(<<"w">>),
    Numbers = lists:seq(999_998, 1_000_002),
    ?assertEqual([{ok, N} || N <- Numbers], [?LOG:append(entry(N)) || N <- Numbers]),
    ok = close(),
    _ = open(<<"w">>),
    [_ | Entries] = ?LOG:entries(),
    ?assertEqual(
        [{{ok, <<"new ", (integer_to_binary(N))/binary>>}, {ok, <<"old ", (integer_to_binary(N))/binary>>}}
            || N <- Numbers],
        [{?LOG:read_source_body(Entry), ?LOG:read_prev_source_body(Entry)} || Entry <- Entries]
    ),
    ?assertEqual(10, length(filelib:wildcard("*.bt", filename:join(dir(<<"w">>), "sources")))).

%% F12
bytes_or_names_come_back_changed(_Config) ->
    Selectors = [<<"<">>, <<"/">>, <<"->">>, <<"at:put:">>, <<"foo">>, <<"Foo">>, <<"..">>, <<"größe"/utf8>>],
    Bodies = [
        <<>>, <<"a\r\nb\r\n">>, <<"nul", 0, "nul">>, <<16#ff, 16#fe, 16#80>>,
            unicode:characters_to_binary([16#1F600]),
        unicode:characters_to_binary([16#2028, $x, 16#2029]), <<"\"\\\n{}">>, binary:copy(<<"x">>, 70_000)
    ],
    Inputs = lists:zip(Selectors, Bodies),
    _ = open(<<"w">>),
    [
        {ok, _} = ?LOG:append(entry(0, #{selector => Selector, source => Body, prev_source => Body}))
     || {Selector, Body} <- Inputs
    ],
    ok = close(),
    [] = warnings(open(<<"w">>)),
    ?assertEqual(
        [{Selector, {ok, Body}, {ok, Body}} || {Selector, Body} <- Inputs],
        [{?LOG:entry_selector(E), ?LOG:read_source_body(E), ?LOG:read_prev_source_body(E)}
            || E <- ?LOG:entries()]
    ),
    ?assertEqual(length(Inputs), length(beamtalk_image_log_reader:lines(log_file(<<"w">>)))),
    {ok, Names} = file:list_dir(filename:join(dir(<<"w">>), "sources")),
    ?assertEqual(2 * length(Inputs), length(lists:usort([string:lowercase(Name) || Name <- Names]))).

%% 8.4-10
bad_input_ends_the_server_or_leaves_a_trace(_Config) ->
    _ = open(<<"w">>),
    Server = whereis(?LOG),
    {ok, 0} = ?LOG:append(entry(0)),
    Good = entry(1),
    Mandatory = [class, kind, intent, flushable, author, author_kind],
    Bad =
        [maps:remove(Key, Good) || Key <- Mandatory] ++
            [Good#{Key => Value} || {Key, Value} <- [
                {class, <<16#ff>>}, {class, 'Counter'}, {selector, foo}, {selector, <<16#c3>>}, {kind, patch},
                {kind, <<"instance">>}, {intent, often}, {flushable, yes}, {author, <<16#80, "x">>},
                {author_kind, robot}, {side, both}, {source, text}, {prev_source, [<<"a">>]},
                {source_file, <<16#ff>>}, {span, {1, 2}}, {span, #{start => -1, 'end' => 2}},
                {span, #{start => 1}}, {not_flushable_reason, <<16#ff>>}
            ]],
    lists:foreach(
        fun(Input) ->
            ?assertMatch({error, {beamtalk_error, changelog_write_error, 'ChangeLog', 'append:', _, _,
                #{reason := _}}},
                ?LOG:append(Input))
        end,
        Bad
    ),
    ?assertEqual({error, no_entry}, ?LOG:find_revert_target(<<16#ff>>, <<16#c3>>)),
    ?assertEqual(ok, ?LOG:mark_flushed([-1, 1 bsl 70, none])),
    ?assertEqual({Server, 1}, {whereis(?LOG), ?LOG:size()}),
    ?assertEqual({ok, 1}, ?LOG:append(Good#{unknown_key => self()})),
    ?assertEqual(2, length(beamtalk_image_log_reader:lines(log_file(<<"w">>)))),
    ?assertEqual(4, length(filelib:wildcard("*", filename:join(dir(<<"w">>), "sources")))).

%% ---- Hostile folders --------------------------------------------------------------------------------------

reference_leads_out_of_the_folder(Config) ->
    Secret = filename:join(proplists:get_value(home, Config), "secret.bt"),
    ok = file:write_file(Secret, <<"secret">>),
    Sources = filename:join(dir(<<"w">>), "sources"),
    ok = filelib:ensure_dir(filename:join(Sources, "x")),
    ok = file:write_file(filename:join(dir(<<"w">>), "beside.bt"), <<"secret">>),
    ok = file:make_symlink(Secret, filename:join(Sources, "000001-source.bt")),
    ok = file:make_dir(filename:join(Sources, "000002-source.bt")),
    Refs = [Secret, "../beside.bt", "000001-source.bt", "000002-source.bt", "..", ".", "",
        "a/../../beside.bt"],
    Lines = [line(N, #{<<"source_ref">> => ["\"", Ref, "\""]})
        || {N, Ref} <- lists:zip(lists:seq(0, 7), Refs)],
    ok = write_log(<<"w">>, [[Line, "\n"] || Line <- Lines]),
    _ = open(<<"w">>),
    Answers = [?LOG:read_source_body(Entry) || Entry <- ?LOG:entries()],
    ?assertEqual(8, length(Answers)),
    ?assertEqual([], [Answer || {ok, _} = Answer <- Answers]),
    ok = close(),
    %% The folder of bodies itself as a link.
    ok = file:del_dir_r(Sources),
    Elsewhere = filename:join(proplists:get_value(home, Config), "elsewhere"),
    ok = file:make_dir(Elsewhere),
    Names = ["000003-source.bt", "000004-prev.bt", "000004-source.bt"],
    [ok = file:write_file(filename:join(Elsewhere, Name), <<"secret">>) || Name <- Names],
    ok = file:make_symlink(Elsewhere, Sources),
    ok = write_log(<<"w">>, [line(3, #{<<"source_ref">> => "\"000003-source.bt\""}), "\n"]),
    _ = open(<<"w">>),
    [Entry] = ?LOG:entries(),
    ?assertMatch({error, _}, ?LOG:read_source_body(Entry)),
    ?assertMatch({error, _}, ?LOG:append(entry(4))),
    {ok, Left} = file:list_dir(Elsewhere),
    ?assertEqual([{Name, {ok, <<"secret">>}} || Name <- Names],
        [{Name, file:read_file(filename:join(Elsewhere, Name))} || Name <- lists:sort(Left)]).

%% Each would hang, fill the memory or act on a device if it were read.
pipe_device_or_gigabyte_is_read_as_a_source_file(Config) ->
    Home = proplists:get_value(home, Config),
    Pipe = filename:join(Home, "pipe.bt"),
    "" = os:cmd("mkfifo '" ++ Pipe ++ "'"),
    Huge = filename:join(Home, "huge.bt"),
    {ok, File} = file:open(Huge, [write, raw]),
    {ok, _} = file:position(File, 1 bsl 30),
    ok = file:truncate(File),
    ok = file:close(File),
    Link = filename:join(Home, "zero.bt"),
    ok = file:make_symlink("/dev/zero", Link),
    Files = [Pipe, Huge, Link, "/dev/zero", "/dev/tty", "/proc/kmsg", Home, Home ++ "/missing.bt",
        "/dev/stdin"],
    Append = fun() ->
        [
            {ok, _} = ?LOG:append(entry(N, #{source_file => iolist_to_binary(Path),
                span => #{start => 0, 'end' => 5}}))
         || {N, Path} <- lists:zip(lists:seq(1, length(Files)), Files)
        ]
    end,
    _ = open(<<"w">>),
    Append(),
    Rows = ?LOG:change_entries(),
    ?assertEqual([{false, nil} || _ <- Files], [{Clean, Diff} || #{clean := Clean, diff := Diff} <- Rows]),
    {ok, _} = ?LOG:append(entry(1, #{source_file => iolist_to_binary(Pipe), prev_source => undefined})),
    ?assertEqual({error, no_prev_source}, ?LOG:find_revert_target(<<"Counter">>, <<"m1">>)),
    ok = close(),
    _ = open(<<"w">>),
    Orphans = [?LOG:entry_seq(E) || E <- ?LOG:entries(), ?LOG:entry_is_orphan(E)],
    ?assertEqual(lists:seq(0, length(Files) - 1), Orphans).

%% One folder with all of it at once: a line of 100 MB, deep JSON, NULs, invalid UTF-8, numbers out of range.
%% What is whole is read, the rest stays, and appending works.
hostile_folder_ends_the_node(_Config) ->
    Deep = [binary:copy(<<"[">>, 200_000), binary:copy(<<"]">>, 200_000)],
    DeepObject = line(1, #{<<"extra">> => [binary:copy(<<"{\"a\":">>, 50_000), "1",
        binary:copy(<<"}">>, 50_000)]}),
    Giant = binary:copy(<<"x">>, 1_000_000),
    ok = write_log(<<"w">>, [line(0), "\n"]),
    {ok, File} = file:open(log_file(<<"w">>), [append, raw, binary]),
    lists:foreach(fun(_) -> ok = file:write(File, Giant) end, lists:seq(1, 100)),
    ok = file:write(File, ["\n", Deep, "\n", DeepObject, "\n", <<0, 0, 0>>, "\n", <<16#c0, 16#80, 16#ff>>,
        "\n"]),
    ok = file:write(File, [line(2, #{<<"seq">> => "-1"}), "\n", line(2, #{<<"seq">> => "1e400"}), "\n"]),
    ok = file:write(File, [line(2, #{<<"seq">> => "99999999999999999999"}), "\n", line(3), "\n"]),
    ok = file:close(File),
    Size = filelib:file_size(log_file(<<"w">>)),
    Warnings = warnings(open(<<"w">>)),
    ?assert(length(Warnings) >= 7),
    Seqs = seqs(),
    ?assertEqual([0, 3], [Seq || Seq <- Seqs, Seq =/= 1]),
    {ok, New} = ?LOG:append(entry(4)),
    ok = ?LOG:mark_flushed([0, New]),
    %% `false' became `true' twice, one byte shorter; nothing else is gone.
    After = filelib:file_size(log_file(<<"w">>)),
    Line = byte_size(lists:last(beamtalk_image_log_reader:lines(log_file(<<"w">>)))) + 1,
    ?assertEqual(Size - 1 + Line, After),
    ?assertEqual(Seqs ++ [New], seqs()),
    ?assertEqual(length(Seqs) + 1, length(?LOG:change_entries())),
    ok = close(),
    %% A log that is a link is not followed, and what it leads to not written.
    Target = log_file(<<"w">>) ++ ".target",
    ok = file:rename(log_file(<<"w">>), Target),
    ok = file:make_symlink(Target, log_file(<<"w">>)),
    ?assertMatch([_ | _], warnings(open(<<"w">>))),
    ?assertEqual([], seqs()),
    ?assertMatch({error, _}, ?LOG:append(entry(5))),
    ?assertEqual(After, filelib:file_size(Target)).

name_that_no_atom_spells_fails_the_listing(_Config) ->
    Long = binary:copy(<<"ü"/utf8>>, 300),
    _ = open(<<"w">>),
    {ok, 0} = ?LOG:append(entry(0, #{class => Long, selector => Long})),
    {ok, 1} = ?LOG:append(entry(1)),
    [Row, #{className := 'Counter'}] = ?LOG:change_entries(),
    Shown = list_to_atom(lists:duplicate(255, $ü)),
    ?assertMatch(#{className := Shown, selector := Shown}, Row),
    ?assertMatch(#{'Counter' := _, Shown := _}, ?LOG:dirtyMethods()),
    ?assertEqual(Long, ?LOG:entry_class(hd(?LOG:entries()))).

%% ---- Restarts ---------------------------------------------------------------------------------------------

%% 8.4-15, F10: flushed entries and class removals whose file still stands are no orphans; a changed file
%% makes one.
orphans_are_what_nobody_lost(Config) ->
    File = filename:join(proplists:get_value(home, Config), "a.bt"),
    Text = <<"Object subclass: A\n  a => 1\n  b => 2\n">>,
    ok = file:write_file(File, Text),
    {At, Length} = binary:match(Text, <<"  a => 1\n">>),
    InFile = #{source_file => iolist_to_binary(File), prev_source => <<"  a => 1\n">>,
        span => #{start => At, 'end' => At + Length}},
    _ = open(<<"w">>),
    {ok, 0} = ?LOG:append(entry(0, InFile)),
    {ok, 1} = ?LOG:append(entry(1, InFile)),
    {ok, 2} = ?LOG:append(entry(2, #{kind => 'remove-class', selector => undefined, source => undefined,
        source_file => iolist_to_binary(File), prev_source => Text})),
    ok = ?LOG:mark_flushed([1]),
    ok = close(),
    Orphans = fun() ->
        _ = open(<<"w">>),
        Flags = [?LOG:entry_is_orphan(Entry) || Entry <- ?LOG:entries()],
        ok = close(),
        Flags
    end,
    ?assertEqual([false, false, false], Orphans()),
    ok = file:write_file(File, <<"Object subclass: A\n  b => 2\n">>),
    ?assertEqual([true, false, true], Orphans()).

%% 8.4-14
non_ascii_path_makes_an_orphan(Config) ->
    Folder = filename:join(proplists:get_value(home, Config), "größe"),
    File = filename:join(Folder, "日本.bt"),
    ok = filelib:ensure_dir(File),
    ok = file:write_file(File, <<"old 0">>),
    Id = <<"wörk"/utf8>>,
    _ = open(Id),
    {ok, 0} = ?LOG:append(entry(0, #{source_file => unicode:characters_to_binary(File),
        span => #{start => 0, 'end' => 5}})),
    ok = close(),
    ?assertEqual([], warnings(open(Id))),
    ?assertEqual([false], [?LOG:entry_is_orphan(Entry) || Entry <- ?LOG:entries()]).

%% 8.4-4: killed, the server is started again by its supervisor and the run goes on; meanwhile nothing stands
%% still.
crash_of_the_server_begins_another_epoch(_Config) ->
    process_flag(trap_exit, true),
    {ok, Supervisor} = supervisor:start_link(?MODULE, [<<"w">>]),
    {ok, 0} = ?LOG:append(entry(0)),
    lists:foreach(
        fun(N) ->
            Server = whereis(?LOG),
            ok = sys:suspend(Supervisor),
            true = exit(Server, kill),
            await(fun() -> whereis(?LOG) =:= undefined end),
            {ok, N} = ?LOG:append(entry(N)),
            ?assertEqual(N + 1, length(?LOG:active_entries())),
            ok = sys:resume(Supervisor),
            await(fun() -> is_pid(whereis(?LOG)) end),
            ?assertEqual({1, N + 1}, {?LOG:epoch(), length(?LOG:active_entries())})
        end,
        [1, 2, 3]
    ),
    true = exit(Supervisor, shutdown),
    receive {'EXIT', Supervisor, shutdown} -> ok end,
    ?assertEqual([], ?LOG:entries()),
    ?assertExit({noproc, _}, ?LOG:append(entry(9))),
    [] = warnings(open(<<"w">>)),
    ?assertEqual({2, [], [0, 1, 2, 3]}, {?LOG:epoch(), ?LOG:active_entries(), seqs()}).

log_in_memory_dies_with_the_server(_Config) ->
    _ = open(undefined, #{}),
    {ok, 0} = ?LOG:append(entry(0)),
    Server = whereis(?LOG),
    true = exit(Server, kill),
    await(fun() -> whereis(?LOG) =:= undefined end),
    _ = open(undefined, #{}),
    ?assertEqual({0, [0]}, {?LOG:epoch(), seqs()}),
    ?assertEqual({error, no_workspace}, ?LOG:read_source_body(hd(?LOG:entries()))).

setting_is_ignored_or_taken_for_another(_Config) ->
    process_flag(trap_exit, true),
    lists:foreach(
        fun({Key, Value}) ->
            ok = application:set_env(beamtalk_image, Key, Value),
            ?assertEqual({error, {bad_setting, Key, Value}}, ?LOG:start_link(#{workspace_id => <<"w">>})),
            ok = application:unset_env(beamtalk_image, Key)
        end,
        [{changelog_bound, 0}, {changelog_bound, many}, {changelog_slack, -1}, {changelog_durability, always}]
    ),
    ok = application:set_env(beamtalk_image, changelog_slack, 1_000),
    ?assertMatch({error, {bad_setting, _}}, ?LOG:start_link(#{workspace_id => <<"w">>})),
    ok = application:unset_env(beamtalk_image, changelog_slack),
    ?assertNot(filelib:is_dir(dir(<<"w">>))),
    _ = open(<<"w">>, #{changelog_durability => fsync}),
    ?assertEqual({ok, 0}, ?LOG:append(entry(0))).

%% ---- Rotation ---------------------------------------------------------------------------------------------

%% 8.4-1: past the bound one append in slack archives, the others write a line.
archives_move_entries_one_by_one(_Config) ->
    _ = open(<<"w">>, #{changelog_bound => 20, changelog_slack => 5}),
    Archives = fun() -> length(filelib:wildcard("changes-*", filename:join(dir(<<"w">>), "archive"))) end,
    Sizes = lists:map(
        fun(N) ->
            {ok, N} = ?LOG:append(entry(N)),
            {?LOG:size(), Archives()}
        end,
        lists:seq(0, 49)
    ),
    ?assertEqual(20, lists:max([Size || {Size, _} <- Sizes])),
    %% 50 entries, of which 20 fit: then one rotation for each six.
    ?assertEqual(5, Archives()),
    ?assertEqual({15, 1}, lists:nth(21, Sizes)).

%% 8.4-2, F6
pending_entry_is_rotated_before_a_finished_one(_Config) ->
    _ = open(<<"w">>, #{changelog_bound => 6, changelog_slack => 2}),
    [{ok, N} = ?LOG:append(entry(N)) || N <- lists:seq(0, 5)],
    ok = ?LOG:mark_flushed([3, 4]),
    {ok, 6} = ?LOG:append(entry(5)),
    %% Flushed 3 and 4 go, then 5, which 6 shadows; 0, 1 and 2 still pend.
    ?assertEqual([0, 1, 2, 6], seqs()),
    ?assertEqual([0, 1, 2, 6], [?LOG:entry_seq(Entry) || Entry <- ?LOG:flushable_pending()]),
    ok = close(),
    Ready = filename:join(dir(<<"w">>), "archive"),
    ok = file:del_dir_r(Ready),
    ok = file:write_file(Ready, <<"in the way">>),
    _ = open(<<"w">>, #{changelog_bound => 6, changelog_slack => 2}),
    [{ok, _} = ?LOG:append(entry(N)) || N <- lists:seq(7, 9)],
    Texts = beamtalk_image_log_events:take_texts(),
    ?assert(lists:member(error, [Level || {Level, _} <- Texts])),
    ?assertEqual([0, 1, 2, 6, 7, 8, 9], seqs()),
    ok = file:delete(Ready),
    {ok, 10} = ?LOG:append(entry(10)),
    ?assertEqual([7, 8, 9, 10], seqs()).

%% ---- Several processes ------------------------------------------------------------------------------------

%% A writer stands inside its line, half of it on disk; every read answers all the same, and shows nothing of
%% it.
reader_waits_for_a_writer(Config) ->
    Pipe = filename:join(proplists:get_value(home, Config), "hold"),
    "" = os:cmd("mkfifo '" ++ Pipe ++ "'"),
    _ = open(<<"w">>, #{changelog_fail_point => iolist_to_binary(["inside_line:3:", Pipe])}),
    [{ok, N} = ?LOG:append(entry(N)) || N <- [0, 1]],
    Self = self(),
    _ = spawn_link(fun() -> Self ! {appended, ?LOG:append(entry(2))} end),
    await(fun() ->
        {ok, Bytes} = file:read_file(log_file(<<"w">>)),
        binary:last(Bytes) =/= $\n
    end),
    ?assertEqual([0, 1], seqs()),
    ?assertEqual({2, 1}, {?LOG:size(), ?LOG:epoch()}),
    ?assertEqual(2, length(?LOG:active_entries())),
    ?assertEqual(2, length(?LOG:flushable_pending())),
    ?assertEqual(2, length(?LOG:change_entries())),
    ?assertEqual([<<"new 0">>, <<"new 1">>], [Text || E <- ?LOG:entries(),
        {ok, Text} <- [?LOG:read_source_body(E)]]),
    ?assertMatch({ok, <<"old 1">>, _}, ?LOG:find_revert_target(<<"Counter">>, <<"m1">>)),
    ?assertEqual({error, no_entry}, ?LOG:find_revert_target(<<"Counter">>, <<"m2">>)),
    ?assertMatch(#{'Counter' := #{elements := [m0, m1]}}, ?LOG:dirtyMethods()),
    receive
        {appended, Early} -> error({not_held, Early})
    after 0 -> ok
    end,
    {ok, Opened} = file:open(Pipe, [write, raw]),
    ok = file:close(Opened),
    ?assertEqual({ok, 2}, receive {appended, Answer} -> Answer end),
    ?assertEqual([0, 1, 2], seqs()).

%% 8.4-3: readers poll while marks, rotations and clears go on. A mark of several shows whole or not at all,
%% and a log never shows fewer entries than a rotation leaves.
reader_sees_half_a_change(_Config) ->
    _ = open(<<"w">>, #{changelog_bound => 40, changelog_slack => 20}),
    [{ok, N} = ?LOG:append(entry(N)) || N <- lists:seq(0, 29)],
    Stop = atomics:new(1, []),
    Reader = fun Read(Seen) ->
        Entries = ?LOG:entries(),
        Seqs = [?LOG:entry_seq(Entry) || Entry <- Entries],
        true = length(Entries) >= 20,
        Seqs = lists:usort(Seqs),
        %% Entries are marked in blocks of five.
        Blocks = lists:foldl(
            fun(Entry, Map) ->
                Key = ?LOG:entry_seq(Entry) div 5,
                Map#{Key => [?LOG:entry_flushed(Entry) | maps:get(Key, Map, [])]}
            end,
            #{},
            Entries
        ),
        [] = [Key || {Key, Flags} <- maps:to_list(Blocks), length(lists:usort(Flags)) =/= 1],
        Listed = ?LOG:change_entries(),
        [] = [Row || #{active := false, shadowed := true} = Row <- Listed],
        case atomics:get(Stop, 1) of
            0 -> Read(Seen + 1);
            1 -> Seen + 1
        end
    end,
    Writer = fun() ->
        lists:foreach(
            fun(Block) ->
                ok = ?LOG:mark_flushed(lists:seq(5 * Block, 5 * Block + 4)),
                [{ok, _} = ?LOG:append(entry(N)) || N <- lists:seq(1, 5)]
            end,
            lists:seq(0, 60)
        ),
        ok = atomics:put(Stop, 1, 1),
        done
    end,
    [done | Reads] = parallel([Writer | lists:duplicate(4, fun() -> Reader(0) end)]),
    ?assert(lists:all(fun(Count) -> Count > 1 end, Reads)).

%% F5: 3,200 appends of 0.1 to 64 KB by 16 processes.
sixteen_writers_mix_lines_or_bodies(_Config) ->
    _ = open(<<"w">>, #{changelog_bound => 10_000}),
    Text = fun(Writer, N) ->
        Tag = iolist_to_binary(io_lib:format("~b.~b ", [Writer, N])),
        Size = 100 * (1 bsl ((Writer + N) rem 10)) + N,
        binary:part(binary:copy(Tag, Size div byte_size(Tag) + 1), 0, Size)
    end,
    Write = fun(Writer) ->
        [
            begin
                {ok, Seq} = ?LOG:append(entry(N, #{author => integer_to_binary(Writer),
                    prev_source => undefined,
                    source => Text(Writer, N)})),
                {Seq, Writer, N}
            end
         || N <- lists:seq(1, 200)
        ]
    end,
    Acknowledged = lists:append(parallel([fun() -> Write(Writer) end || Writer <- lists:seq(1, 16)])),
    ?assertEqual(lists:seq(0, 3_199), lists:sort([Seq || {Seq, _, _} <- Acknowledged])),
    ok = close(),
    {Read, []} = beamtalk_image_log_reader:read(dir(<<"w">>)),
    ?assertEqual(lists:seq(0, 3_199), [Seq || #{seq := Seq} <- Read]),
    Bodies = maps:from_list([{Seq, Body} || #{seq := Seq, bodies := {{ok, Body}, _}} <- Read]),
    ?assertEqual([], [
        {Seq, Writer, N}
        || {Seq, Writer, N} <- Acknowledged, maps:get(Seq, Bodies) =/= Text(Writer, N)
    ]).

%% F6: archives and live log together hold every entry once, in order, each with its bodies.
rotation_under_writers_loses_or_doubles_entries(_Config) ->
    _ = open(<<"w">>, #{changelog_bound => 10, changelog_slack => 3}),
    Write = fun(Writer) ->
        [{ok, _} = ?LOG:append(entry(N, #{selector => <<"s", Writer, N>>})) || N <- lists:seq(1, 60)],
        ok
    end,
    _ = parallel([fun() -> Write(Writer) end || Writer <- lists:seq($a, $h)]),
    Entries = ?LOG:entries(),
    ?assert(length(Entries) =< 10),
    ok = close(),
    {Segments, Bodies} = beamtalk_image_log_reader:archives(dir(<<"w">>)),
    {Live, []} = beamtalk_image_log_reader:read(dir(<<"w">>)),
    ?assert(lists:all(fun rising/1, [Live | Segments])),
    All = [Seq || #{seq := Seq} <- lists:append([Live | Segments])],
    ?assertEqual(lists:seq(0, 479), lists:sort(All)),
    ?assertEqual([], [Seq || #{seq := Seq, bodies := {New, Old}} <- Live, element(1, New) =/= ok orelse
        element(1, Old) =/= ok]),
    ?assertEqual([], [
        Ref
        || Entry <- lists:append(Segments), Key <- [source_ref, prev_source_ref],
            Ref <- [maps:get(Key, Entry)], not is_map_key(Ref, Bodies)
    ]),
    ?assertEqual(2 * length(Live), length(filelib:wildcard("*", filename:join(dir(<<"w">>), "sources")))).

rising(Entries) ->
    Seqs = [Seq || #{seq := Seq} <- Entries],
    Seqs =:= lists:usort(Seqs).

%% ---- Meaning ----------------------------------------------------------------------------------------------

%% 8.4-17
extension_removal_passes_for_a_methods(_Config) ->
    _ = open(<<"w">>),
    Removal = #{kind => 'remove-method', side => instance, source => undefined},
    {ok, 0} = ?LOG:append(entry(0, Removal#{layer => extension, owner => pkg, flushable => false,
        not_flushable_reason => <<"extension">>})),
    {ok, 1} = ?LOG:append(entry(1, Removal#{layer => local})),
    Check = fun() ->
        [Extension, Local] = ?LOG:entries(),
        ?assertEqual({<<"extension">>, <<"pkg">>}, {?LOG:entry_layer(Extension),
            ?LOG:entry_owner(Extension)}),
        ?assertEqual({<<"local">>, undefined}, {?LOG:entry_layer(Local), ?LOG:entry_owner(Local)})
    end,
    Check(),
    {ok, <<"old 0">>, Target} = ?LOG:find_revert_target(<<"Counter">>, m0),
    ?assertEqual(<<"extension">>, ?LOG:entry_layer(Target)),
    ok = ?LOG:mark_flushed([1]),
    ok = close(),
    _ = open(<<"w">>),
    Check().

%% 8.4-18 stays as it is.
dirty_methods_differ_from_the_originals(_Config) ->
    _ = open(undefined, #{}),
    [{ok, _} = ?LOG:append(entry(1)) || _ <- [1, 2]],
    {ok, _} = ?LOG:append(entry(0, #{kind => 'remove-class', selector => undefined, class => <<"Gone">>})),
    ?assertMatch(#{'Counter' := #{elements := [m1]}, 'Gone' := #{elements := ['new-class']}},
        ?LOG:dirtyMethods()).

%% 8.4-12: the host's compiler is asked once for each text, and a file is read once a listing.
unchanged_file_is_compiled_again(Config) ->
    {File, Text} = file_of_two(Config),
    _ = open(<<"w">>),
    [{ok, _} = ?LOG:append(entry(N, #{source_file => File, selector => Selector,
        source => <<Selector/binary, " => 3">>}))
        || {N, Selector} <- [{0, <<"a">>}, {1, <<"b">>}]],
    {ok, _} = ?LOG:append(entry(2, #{kind => 'new-class', selector => undefined, class => <<"New">>})),
    ok = beamtalk_image_fake_host:forget_counts(),
    First = ?LOG:change_entries(),
    ?assertEqual(2, length(beamtalk_image_fake_host:calls(method_span))),
    ?assertMatch([#{clean := false, diff := <<"- a => 1\n+ a => 3\n">>},
        #{diff := <<"- b => 2\n+ b => 3\n">>},
        #{clean := false, diff := <<"+ new 2\n">>}], First),
    Asked = {calls(method_span), calls(diff)},
    ?assertEqual(First, ?LOG:change_entries()),
    ?assertEqual(Asked, {calls(method_span), calls(diff)}),
    ok = file:write_file(File, [Text, "// later\n"]),
    _ = ?LOG:change_entries(),
    ?assertEqual(4, calls(method_span)).

%% The other way round: an answer is not kept beyond the text that it was about, nor a failure at all.
listing_shows_an_old_comparison(Config) ->
    {File, Text} = file_of_two(Config),
    _ = open(<<"w">>),
    {ok, 0} = ?LOG:append(entry(0, #{source_file => File, selector => <<"a">>, source => <<"a => 3">>})),
    Shown = fun() -> [{Clean, Diff} || #{clean := Clean, diff := Diff} <- ?LOG:change_entries()] end,
    ok = beamtalk_image_fake_host:script(method_span, fun(_) -> error(compiler_is_down) end),
    ?assertEqual([{false, nil}], Shown()),
    ok = beamtalk_image_fake_host:unscript(method_span),
    ?assertEqual([{false, <<"- a => 1\n+ a => 3\n">>}], Shown()),
    %% The same size, and no clock that moved.
    Changed = binary:replace(Text, <<"a => 1">>, <<"a => 3">>),
    {ok, Info} = file:read_file_info(File),
    ok = spans(Changed, <<"a => 3">>, <<"b => 2">>),
    ok = file:write_file(File, Changed),
    ok = file:write_file_info(File, Info),
    ?assertEqual([{true, nil}], Shown()),
    ok = file:delete(File),
    ?assertEqual([{false, nil}], Shown()),
    ok = file:write_file(File, Text),
    ?assertEqual([{false, <<"- a => 1\n+ a => 3\n">>}], Shown()).

calls(Callback) ->
    length(beamtalk_image_fake_host:calls(Callback)).

file_of_two(Config) ->
    File = iolist_to_binary(filename:join(proplists:get_value(home, Config), "two.bt")),
    Text = <<"Object subclass: Counter\n  a => 1\n  b => 2\n">>,
    ok = file:write_file(File, Text),
    ok = spans(Text, <<"a => 1">>, <<"b => 2">>),
    ok = spans(<<Text/binary, "// later\n">>, <<"a => 1">>, <<"b => 2">>),
    {File, Text}.

spans(Text, A, B) ->
    lists:foreach(
        fun({Selector, Body}) ->
            {At, Length} = binary:match(Text, Body),
            ok = beamtalk_image_fake_host:span([Text, <<"Counter">>, Selector, instance],
                {ok, #{start => At, 'end' => At + Length}, Body})
        end,
        [{<<"a">>, A}, {<<"b">>, B}]
    ).
