%% What is asked of source text: the shapes, the bounds, and who answers when the runtime's compiler does not.
-module(beamtalk_lang_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, init_per_testcase/2, end_per_testcase/2]).
-export([
    sends_have_the_compilers_shape/1,
    text_that_is_none_is_no_error/1,
    span_holds_its_bytes/1,
    span_reasons_are_the_compilers/1,
    provided_method_of_a_protocol_is_not_found/1,
    names_of_a_text_become_atoms/1,
    finding_says_where_and_what/1,
    entries_carry_their_facts/1,
    references_and_slots_of_a_method/1,
    text_beyond_the_bound_is_read/1,
    deep_text_overflows_the_stack/1,
    long_text_holds_a_scheduler/1,
    argument_that_is_no_text_is_read/1,
    part_of_a_binary_is_read_beyond_its_end/1,
    embedded_image_knows_no_sends/1,
    absent_compiler_means_no_sends/1,
    compiler_that_fails_means_no_answer/1,
    garbage_of_a_compiler_is_passed_on/1,
    sensible_compiler_is_not_heard/1,
    extension_of_an_image_without_compiler_sends_nothing/1
]).

all() ->
    [Case || {Case, 1} <- ?MODULE:module_info(exports), Case =/= module_info, Case =/= all].

init_per_testcase(_Case, Config) ->
    Config.

end_per_testcase(_Case, _Config) ->
    ok = forget_compiler(),
    beamtalk_image_host:set_module(undefined).

%% ---- Shapes -------------------------------------------------------------------------------------------------------

sends_have_the_compilers_shape(_Config) ->
    Source = <<"at: k => self x: (Erlang lists)\n  super y\n  k z">>,
    ?assertEqual(
        {ok, [
            #{selector => <<"x:">>, line => 1, recv => self, target_module => <<>>},
            #{selector => <<"lists">>, line => 1, recv => erlang_ffi, target_module => <<"lists">>},
            #{selector => <<"y">>, line => 2, recv => super, target_module => <<>>},
            #{selector => <<"z">>, line => 3, recv => other, target_module => <<>>}
        ]},
        beamtalk_lang:find_all_sends_in_source(Source)
    ).

text_that_is_none_is_no_error(_Config) ->
    [
        ?assertEqual({ok, []}, beamtalk_lang:find_all_sends_in_source(Text))
     || Text <- [<<>>, <<"(((">>, <<255, 254, 0>>, <<"\"{">>, <<"§"/utf8>>]
    ],
    %% What can be read of a broken text still counts.
    ?assertMatch({ok, [#{selector := <<"y">>}]}, beamtalk_lang:find_all_sends_in_source(<<"m => ( self y">>)).

file() ->
    <<
        "Object subclass: Gauge\n"
        "  // === Reading ===\n"
        "\n"
        "  /// The level.\n"
        "  level => self.level // now\n"
        "\n"
        "  class make => self new\n"
        "  twice => 1\n"
        "  twice => 2\n"
        "Gauge >> drain: n -> Gauge => self level\n"
    >>.

span_holds_its_bytes(_Config) ->
    File = file(),
    Asked = [
        {<<"level">>, instance, <<"  /// The level.\n  level => self.level // now\n">>},
        {<<"make">>, class, <<"  class make => self new\n">>},
        {<<"drain:">>, instance, <<"Gauge >> drain: n -> Gauge => self level\n">>}
    ],
    lists:foreach(
        fun({Selector, Side, Body}) ->
            {ok, #{start := Start, 'end' := End}, Body} =
                beamtalk_lang:resolve_method_span(File, <<"Gauge">>, Selector, Side),
            ?assertEqual(Body, binary:part(File, Start, End - Start))
        end,
        Asked
    ).

span_reasons_are_the_compilers(_Config) ->
    Reasons = [
        {<<"Nobody">>, <<"level">>, instance, class_not_found},
        {<<"Gauge">>, <<"level">>, class, selector_not_found},
        {<<"Gauge">>, <<"twice">>, instance, ambiguous},
        {<<"not a name">>, <<"level">>, instance, bad_argument},
        {<<"Gauge">>, <<>>, instance, bad_argument},
        {<<255>>, <<"level">>, instance, bad_argument}
    ],
    lists:foreach(
        fun({Class, Selector, Side, Reason}) ->
            {error, Found, Message} = beamtalk_lang:resolve_method_span(file(), Class, Selector, Side),
            ?assertEqual({Class, Reason}, {Class, Found}),
            ?assert(is_list(unicode:characters_to_list(Message)))
        end,
        Reasons
    ).

provided_method_of_a_protocol_is_not_found(_Config) ->
    File = <<"Protocol define: Sized\n  size -> Integer\n  isBig -> Boolean => self size > 9\n">>,
    ?assertMatch({ok, _, <<"  isBig -> Boolean => self size > 9\n">>},
        beamtalk_lang:resolve_method_span(File, <<"Sized">>, <<"isBig">>, instance)),
    ?assertMatch({error, selector_not_found, _},
        beamtalk_lang:resolve_method_span(File, <<"Sized">>, <<"size">>, instance)).

names_of_a_text_become_atoms(_Config) ->
    Unique = integer_to_binary(erlang:unique_integer([positive])),
    Name = <<"neverSpelt", Unique/binary>>,
    Slot = <<"self.", Name/binary>>,
    File = <<"Object subclass: C", Name/binary, "\n  ", Name/binary, " => ", Slot/binary, " m", Name/binary>>,
    {ok, [Entry]} = beamtalk_lang:method_entries(File),
    ?assertMatch(#{selector := Name, slot_accesses := [#{slot := Name}]}, Entry),
    {ok, _, _} = beamtalk_lang:resolve_method_span(File, <<"C", Name/binary>>, Name, instance),
    {ok, _} = beamtalk_lang:parse(<<"@", Name/binary>>),
    [
        ?assertError(badarg, binary_to_existing_atom(<<Prefix/binary, Name/binary>>))
     || Prefix <- [<<>>, <<"C">>, <<"m">>]
    ].

finding_says_where_and_what(_Config) ->
    {ok, []} = beamtalk_lang:parse(<<"Object subclass: Q\n  a => 1\n">>),
    {ok, [Finding]} = beamtalk_lang:parse(<<"Object subclass: Q\n  a => x -1\n">>),
    ?assertMatch(
        #{severity := error, code := <<"blank_around_minus">>, start := 28, 'end' := 30, line := 2, column := 10,
            message := <<_/binary>>, hint := <<_/binary>>},
        Finding
    ),
    {ok, [#{code := <<"slot_keyword">>, line := 2, column := 3}]} =
        beamtalk_lang:parse(<<"Actor subclass: Q\n  field: a = 1\n">>),
    {ok, [#{severity := warning, code := <<"unattached_doc">>} = Lint]} =
        beamtalk_lang:parse(<<"/// lost\nfoo bar\n">>),
    ?assertMatch(#{hint := _}, Lint),
    ?assertMatch({ok, [#{code := <<"expected_name">>} = NoHint]} when not is_map_key(hint, NoHint),
        beamtalk_lang:parse_method(<<"self foo">>)),
    {ok, []} = beamtalk_lang:parse_method(<<"a => 1">>).

entries_carry_their_facts(_Config) ->
    File = <<
        "Value subclass: Q\n  field: w :: Integer\n\n"
        "  /// d\n  a: x :: List =>\n    self.w := x foo\n"
        "Q class >> b => 1\n"
    >>,
    {ok, [Getter, Setter, A, B]} = beamtalk_lang:method_entries(File),
    ?assertMatch(#{selector := <<"w">>, origin := slot_accessor, line := 2, sends := [],
        references := [#{class := <<"Integer">>}]}, Getter),
    ?assertMatch(#{selector := <<"withW:">>, origin := slot_accessor}, Setter),
    ?assertMatch(#{class := <<"Q">>, side := instance, selector := <<"a:">>, origin := class_body, line := 2,
        file_line := 5, sends := [#{selector := <<"foo">>, line := 3, recv := other}],
        references := [#{class := <<"List">>, line := 2}],
        slot_accesses := [#{slot := <<"w">>, line := 3, access := write}]}, A),
    ?assertMatch(#{class := <<"Q">>, side := class, selector := <<"b">>, origin := extension}, B),
    #{span := #{start := Start, 'end' := End}} = A,
    ?assertMatch(<<"  /// d\n", _/binary>>, binary:part(File, Start, End - Start)).

references_and_slots_of_a_method(_Config) ->
    Source = <<"at: k :: Key -> Box(E) =>\n  self.a := Bar new: self.b">>,
    ?assertEqual(
        {ok, [
            #{class => <<"Key">>, line => 1},
            #{class => <<"Box">>, line => 1},
            #{class => <<"E">>, line => 1},
            #{class => <<"Bar">>, line => 2}
        ]},
        beamtalk_lang:find_references_in_source(Source)
    ),
    ?assertEqual(
        {ok, [#{slot => <<"a">>, line => 2, access => write}, #{slot => <<"b">>, line => 2, access => read}]},
        beamtalk_lang:find_slot_accesses_in_source(Source)
    ).

%% ---- Bounds -------------------------------------------------------------------------------------------------------

text_beyond_the_bound_is_read(_Config) ->
    Limit = 16 * 1024 * 1024,
    Huge = binary:copy(<<" ">>, Limit + 1),
    Refused = [
        fun beamtalk_lang:parse/1,
        fun beamtalk_lang:parse_method/1,
        fun beamtalk_lang:find_all_sends_in_source/1,
        fun beamtalk_lang:find_references_in_source/1,
        fun beamtalk_lang:find_slot_accesses_in_source/1,
        fun beamtalk_lang:method_entries/1
    ],
    [?assertMatch({error, [#{code := <<"source_too_large">>, severity := error}]}, Ask(Huge)) || Ask <- Refused],
    ?assertMatch({error, bad_argument, _}, beamtalk_lang:resolve_method_span(Huge, <<"Q">>, <<"a">>, instance)),
    ?assertEqual({ok, []}, beamtalk_lang:parse(binary:part(Huge, 0, Limit))).

deep_text_overflows_the_stack(_Config) ->
    lists:foreach(
        fun(Opener) ->
            Deep = <<"m => ", (binary:copy(Opener, 100_000))/binary>>,
            {ok, Sends} = beamtalk_lang:find_all_sends_in_source(Deep),
            ?assert(is_list(Sends)),
            {ok, [_ | _]} = beamtalk_lang:parse(Deep)
        end,
        [<<"(">>, <<"[">>, <<"#{#a => ">>, <<"x match: [{">>, <<"\"{">>, <<"x foo: (">>]
    ),
    {ok, _} = beamtalk_lang:parse(<<"Object subclass: Q\n  a -> ", (binary:copy(<<"A(">>, 100_000))/binary>>).

%% The call leaves the scheduler that it came from: the flag in the source says so, and the VM keeps count.
long_text_holds_a_scheduler(_Config) ->
    Tracer = self(),
    Text = binary:copy(<<"  a => self foo: (b bar: 1)\n">>, 20_000),
    Reader = spawn_link(fun() ->
        receive go -> ok end,
        {ok, _} = beamtalk_lang:parse(<<"Object subclass: Q\n", Text/binary>>),
        Tracer ! {read, self()}
    end),
    1 = erlang:trace(Reader, true, [running, scheduler_id, {tracer, self()}]),
    Reader ! go,
    receive {read, Reader} -> ok end,
    Schedulers = traced(Reader, []),
    Normal = erlang:system_info(schedulers),
    ?assert(lists:any(fun(Id) -> Id > Normal end, Schedulers)).

traced(Pid, Seen) ->
    receive
        {trace, Pid, in, Id, _} -> traced(Pid, [Id | Seen]);
        {trace, Pid, _, _, _} -> traced(Pid, Seen);
        {trace, Pid, _, _} -> traced(Pid, Seen)
    after 0 -> Seen
    end.

argument_that_is_no_text_is_read(_Config) ->
    [?assertError(function_clause, beamtalk_lang:parse(Wrong)) || Wrong <- ["text", text, <<1:3>>, 1]],
    [
        ?assertError(function_clause, beamtalk_lang:resolve_method_span(<<>>, Class, Selector, Side))
     || {Class, Selector, Side} <- [{'Q', <<"a">>, instance}, {<<"Q">>, a, class}, {<<"Q">>, <<"a">>, both}]
    ].

part_of_a_binary_is_read_beyond_its_end(_Config) ->
    <<_:3/binary, Part:11/binary, _/binary>> = <<"xxxm => self nmore">>,
    ?assertMatch({ok, [#{selector := <<"n">>}]}, beamtalk_lang:find_all_sends_in_source(Part)).

%% ---- Who answers --------------------------------------------------------------------------------------------------

embedded_image_knows_no_sends(_Config) ->
    ok = beamtalk_image_host:set_module(beamtalk_embedded_host),
    own_answers().

absent_compiler_means_no_sends(_Config) ->
    ok = beamtalk_image_host:set_module(beamtalk_image_host_runtime),
    own_answers().

own_answers() ->
    ?assertEqual({ok, [#{selector => <<"n">>, line => 1, recv => self, target_module => <<>>}]},
        beamtalk_image_host:find_sends(<<"m => self n">>)),
    ?assertMatch({ok, #{start := _, 'end' := _}, <<"  class make => self new\n">>},
        beamtalk_image_host:method_span(file(), <<"Gauge">>, <<"make">>, class)),
    ?assertMatch({error, class_not_found, _},
        beamtalk_image_host:method_span(file(), <<"Other">>, <<"make">>, class)).

compiler_that_fails_means_no_answer(_Config) ->
    ok = beamtalk_image_host:set_module(beamtalk_image_host_runtime),
    [
        begin
            ok = compiler(Failure),
            own_answers()
        end
     || Failure <- [
            fun() -> exit({noproc, {gen_server, call, [beamtalk_compiler]}}) end,
            fun() -> exit({timeout, {gen_server, call, [beamtalk_compiler]}}) end,
            fun() -> error(undef) end,
            fun() -> throw(garbage) end,
            fun() -> {error, [<<"no port">>]} end,
            fun() -> {error, noproc, <<"no port">>} end,
            fun() -> {error, timeout, <<"slow">>} end,
            fun() -> {error, port_error, <<"gone">>} end
        ]
    ].

garbage_of_a_compiler_is_passed_on(_Config) ->
    ok = beamtalk_image_host:set_module(beamtalk_image_host_runtime),
    Hit = #{selector => <<"n">>, line => 1, recv => self, target_module => <<>>},
    [
        begin
            ok = compiler(fun() -> Garbage end),
            own_answers()
        end
     || Garbage <- [
            garbage,
            {ok, garbage},
            {ok, [Hit | garbage]},
            {ok, [Hit, garbage]},
            {ok, [Hit#{line => 0}]},
            {ok, [Hit#{selector => n}]},
            {ok, [maps:remove(recv, Hit)]},
            {ok, #{start => 0, 'end' => 5}, <<"other">>},
            {ok, #{start => 5, 'end' => 0}, <<>>},
            {ok, #{start => 0, 'end' => 1_000_000}, <<"x">>},
            {ok, #{start => -1, 'end' => 0}, <<>>},
            {error, <<"why">>, <<"text">>}
        ]
    ].

sensible_compiler_is_not_heard(_Config) ->
    ok = beamtalk_image_host:set_module(beamtalk_image_host_runtime),
    Hits = [#{selector => <<"other">>, line => 7, recv => super, target_module => <<>>, more => 1}],
    ok = compiler(fun() -> {ok, Hits} end),
    ?assertEqual({ok, Hits}, beamtalk_image_host:find_sends(<<"m => self n">>)),
    ok = compiler(fun() -> {ok, #{start => 0, 'end' => 6}, <<"Object">>} end),
    ?assertEqual({ok, #{start => 0, 'end' => 6}, <<"Object">>},
        beamtalk_image_host:method_span(file(), <<"Gauge">>, <<"make">>, class)),
    [
        begin
            ok = compiler(fun() -> {error, Reason, <<"says the compiler">>} end),
            ?assertEqual({error, Reason, <<"says the compiler">>},
                beamtalk_image_host:method_span(file(), <<"Gauge">>, <<"make">>, class))
        end
     || Reason <- [class_not_found, selector_not_found, ambiguous, bad_argument]
    ].

extension_of_an_image_without_compiler_sends_nothing(_Config) ->
    ok = beamtalk_image_host:set_module(beamtalk_image_host_runtime),
    ?assertMatch(#{sends := [#{selector := length, recv_kind := self_recv, line := 1}]},
        beamtalk_xref:build_method_entry(false, m, <<"m => self length">>, indexed, put_method)).

%% ---- A compiler that answers what it is told ------------------------------------------------------------------------

compiler(Answer) ->
    persistent_term:put(?MODULE, Answer),
    Forms = [
        {attribute, 1, module, beamtalk_compiler},
        {attribute, 1, export, [{find_all_sends_in_source, 1}, {resolve_method_span, 4}]},
        form("find_all_sends_in_source(_) -> (persistent_term:get(beamtalk_lang_SUITE))()."),
        form("resolve_method_span(_, _, _, _) -> (persistent_term:get(beamtalk_lang_SUITE))().")
    ],
    {ok, beamtalk_compiler, Binary} = compile:forms(Forms),
    {module, beamtalk_compiler} = code:load_binary(beamtalk_compiler, "beamtalk_compiler.erl", Binary),
    ok.

form(Text) ->
    {ok, Tokens, _} = erl_scan:string(Text),
    {ok, Form} = erl_parse:parse_form(Tokens),
    Form.

forget_compiler() ->
    _ = persistent_term:erase(?MODULE),
    _ = code:purge(beamtalk_compiler),
    _ = code:delete(beamtalk_compiler),
    _ = code:purge(beamtalk_compiler),
    ok.
