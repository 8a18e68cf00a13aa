%% The sessions that the design records print, run unchanged against the embedded image.
-module(beamtalk_session_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    session_of_the_removal_record_runs/1,
    failing_line_is_shown_with_what_came/1,
    wildcards_match_between_words_only/1
]).

all() ->
    [Case || {Case, 1} <- ?MODULE:module_info(exports), Case =/= module_info, Case =/= all].

init_per_testcase(_Case, Config) ->
    Home = os:getenv("HOME"),
    Folder = proplists:get_value(priv_dir, Config),
    true = os:putenv("HOME", Folder),
    Workspace = integer_to_binary(erlang:unique_integer([positive])),
    {ok, _} = beamtalk_embedded:start(#{project => sessions(), workspace_id => Workspace}),
    [{home, Home}, {folder, Folder} | Config].

end_per_testcase(_Case, Config) ->
    ok = beamtalk_embedded:stop(),
    true = os:putenv("HOME", proplists:get_value(home, Config)),
    ok.

session_of_the_removal_record_runs(_Config) ->
    run("0112-remove-selector.btscript").

%% A script that lies must fail, and say where: else the other cases prove nothing.
failing_line_is_shown_with_what_came(Config) ->
    Script = script(Config, <<"3 + 4\n// => 7\n// a comment\n2 * 3\n// => 7\n"
        "1 foo\n// => _\n3 foo\n// => ERROR: type_error\n"
        "// @load missing.bt\n">>),
    {1, Failures} = beamtalk_embedded_script:file(Script),
    ?assertMatch(
        [
            #{line := 4, expression := <<"2 * 3">>, expected := <<"7">>, actual := <<"6">>},
            #{line := 6, actual := <<"ERROR: does_not_understand", _/binary>>},
            #{line := 8, actual := <<"ERROR: does_not_understand", _/binary>>},
            #{line := 10, actual := <<"ERROR: file_error", _/binary>>}
        ],
        Failures
    ),
    ?assertEqual(<<"line 4: 2 * 3\n- 7\n+ 6\n">>, beamtalk_embedded_script:diff([hd(Failures)])).

wildcards_match_between_words_only(Config) ->
    Script = script(Config, <<"\"a_b\"\n// => \"a_b\"\n\"axb\"\n// => \"a_b\"\n\"axb\"\n// => _x_\n\"axb\"\n// => _y_\n"
        "\"axb\"\n// => \"ax_\n\"axb\"\n// => \"x_\n"
        "1 foo\n// => ERROR: does not_#foo\n1 foo\n// => ERROR: foo_not\n">>),
    {Held, Failures} = beamtalk_embedded_script:file(Script),
    ?assertEqual({4, [3, 7, 11, 15]}, {Held, [Line || #{line := Line} <- Failures]}).

script(Config, Text) ->
    File = filename:join(proplists:get_value(folder, Config), "made.btscript"),
    ok = file:write_file(File, Text),
    File.

run(Name) ->
    Script = filename:join(sessions(), Name),
    {ok, Text} = file:read_file(Script),
    Expected = length(binary:matches(Text, <<"\n// => ">>)) + length(binary:matches(Text, <<"\n// @load-error ">>)),
    {Held, Failures} = beamtalk_embedded_script:file(Script),
    ct:pal("~ts", [beamtalk_embedded_script:diff(Failures)]),
    ?assertEqual([], Failures),
    ?assertEqual(Expected, Held).

sessions() ->
    filename:join([filename:dirname(?FILE), "fixtures", "sessions"]).
