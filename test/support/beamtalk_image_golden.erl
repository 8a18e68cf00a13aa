%% Replays a recorded trace: calls with the answers that the original modules gave, among terms that change
%% the host.
%%
%% What is compared is what the recording promises: order where it is specified, events that count, class
%% starts with their info maps. Nothing is forgiven beyond that except the intended differences that the
%% caller declares.
-module(beamtalk_image_golden).

-export([replay/3]).
-export_type([intended/0, difference/0, outcome/0]).

-type intended() :: {Row :: string(), {module(), atom()}, fun((term()) -> {term(), term()})}.
%% A row of docs/weaknesses.md, the function that it concerns, and what is taken out of an answer before
%% comparing.
-type difference() :: {Step :: pos_integer(), What :: atom(), Call :: {module(), atom(), [term()]},
    Expected :: term(), Got :: term()}.
-type outcome() :: #{
    steps := non_neg_integer(),
    differences := [difference()],
    set_aside := [{pos_integer(), string(), term()}]
}.

-type call() :: fun((module(), atom(), [term()]) -> term()).
%% How a call of the trace is made; it answers what it raises as `{raises, Class, Reason}'.

-define(REGISTRIES, [
    beamtalk_extensions, beamtalk_xref, beamtalk_protocol_registry, beamtalk_workspace_changelog
]).

%% Replays the terms against `Module'; the fake host must be the host. `Image' gives the entries of a class.
-spec replay(module(), [term()], #{
    image => #{atom() => {atom(), [map()]}}, intended => [intended()], call => call()
}) -> outcome().
replay(Module, Terms, Options) ->
    [tell_host(Function, Args, Answer) || {host, Function, Args, Answer} <- Terms],
    Trace = #{
        module => Module,
        image => maps:get(image, Options, #{}),
        intended => maps:get(intended, Options, []),
        call => maps:get(call, Options, fun call/3),
        internal => maps:from_list([{Step, true} || {note, Step, internal} <- Terms]),
        events => grouped([{Step, {Level, Meta}} || {log, Step, Level, Meta} <- Terms]),
        starts => grouped(starts(Terms, none))
    },
    ok = beamtalk_image_log_events:start(?REGISTRIES),
    try
        lists:foldl(
            fun(Term, Outcome) -> term(Term, Trace, Outcome) end,
            #{steps => 0, differences => [], set_aside => []},
            Terms
        )
    of
        #{differences := Differences, set_aside := SetAside} = Outcome ->
            Outcome#{differences := lists:reverse(Differences), set_aside := lists:reverse(SetAside)}
    after
        beamtalk_image_log_events:stop()
    end.

tell_host(find_all_sends_in_source, [Source], Answer) -> beamtalk_image_fake_host:sends(Source, Answer);
tell_host(resolve_method_span, Args, Answer) -> beamtalk_image_fake_host:span(Args, Answer).

starts([], _Step) -> [];
starts([{class_started, Name, Info} | Rest], Step) -> [{Step, {Name, Info}} | starts(Rest, Step)];
starts([{Step, _Function, _Args, _Answer} | Rest], _) when is_integer(Step) -> starts(Rest, Step);
starts([_ | Rest], Step) -> starts(Rest, Step).

grouped(Pairs) ->
    lists:foldr(fun({Key, Value}, Map) -> Map#{Key => [Value | maps:get(Key, Map, [])]} end, #{}, Pairs).

%% ---- Terms of a trace -------------------------------------------------------------------------------------

term({superclass, Name, Super}, _Trace, Outcome) ->
    ok = beamtalk_image_fake_host:superclass(Name, Super),
    Outcome;
term({class, Name, Super, Instance, ClassSide}, _Trace, Outcome) ->
    _Pid = beamtalk_image_fake_host:class(Name, Super, Instance, ClassSide),
    Outcome;
term({class_gone, Name}, _Trace, Outcome) ->
    ok = beamtalk_image_fake_host:remove_class(Name),
    Outcome;
term({Step, Called, Args, Answer}, Trace, Outcome) when is_integer(Step) ->
    step(Step, function(Called, Trace), [argument(Arg, Trace) || Arg <- Args], Answer, Trace, Outcome);
term({Kind, _, _, _}, _Trace, Outcome) when Kind =:= log; Kind =:= host ->
    Outcome;
term({Kind, _, _}, _Trace, Outcome) when Kind =:= note; Kind =:= class_started ->
    Outcome.

function({Module, Function}, _Trace) -> {Module, Function};
function(Function, #{module := Module}) -> {Module, Function}.

argument({image, Name}, #{image := Image}) ->
    {_Super, Entries} = maps:get(Name, Image),
    Entries;
argument(Term, _Trace) ->
    with_funs(Term).

%% One function per number, told from all others; its arity is of no account to the registry.
with_funs({'fun', N}) when N rem 2 =:= 0 -> fun(_Args, _Self) -> N end;
with_funs({'fun', N}) -> fun(_Args, _Self, State) -> {N, State} end;
with_funs(Tuple) when is_tuple(Tuple) -> list_to_tuple(with_funs(tuple_to_list(Tuple)));
with_funs([Head | Tail]) -> [with_funs(Head) | with_funs(Tail)];
with_funs(Map) when is_map(Map) -> maps:map(fun(_, Value) -> with_funs(Value) end, Map);
with_funs(Term) -> Term.

step(Step, {Module, Function}, Args, Recorded, Trace, #{steps := Steps} = Outcome) ->
    _ = beamtalk_image_log_events:take(),
    ok = beamtalk_image_fake_host:forget_counts(),
    Answered = (maps:get(call, Trace))(Module, Function, Args),
    {Got, SetAside} = set_aside(Module, Function, Answered, Trace),
    Checks = lists:flatten([
        check_answer(Module, Function, normal(Module, Function, with_funs(Recorded)),
            normal(Module, Function, Got), is_map_key(Step, maps:get(internal, Trace))),
        check(events, lists:sort(maps:get(Step, maps:get(events, Trace), [])), events()),
        check(class_started, maps:get(Step, maps:get(starts, Trace), []), beamtalk_image_fake_host:started())
    ]),
    New = [{Step, What, {Module, Function, Args}, Expected, Actual} || {What, Expected, Actual} <- Checks],
    #{differences := Differences, set_aside := Aside} = Outcome,
    Outcome#{
        steps := Steps + 1,
        differences := New ++ Differences,
        set_aside := [{Step, Row, Value} || {Row, Value} <- SetAside] ++ Aside
    }.

call(Module, start_link, []) ->
    {ok, Pid} = Module:start_link(),
    true = is_pid(Pid),
    ok;
call(Module, stop, []) ->
    gen_server:stop(Module);
call(Module, Function, Args) ->
    try
        apply(Module, Function, Args)
    catch
        Class:Reason -> {raises, Class, Reason}
    end.

set_aside(Module, Function, Answer, #{intended := Intended}) ->
    lists:foldl(
        fun({Row, {_, _}, Split}, {Compared, Aside}) ->
            case Split(Compared) of
                {Same, nothing} -> {Same, Aside};
                {Rest, Value} -> {Rest, [{Row, Value} | Aside]}
            end
        end,
        {Answer, []},
        [Row || {_, {M, F}, _} = Row <- Intended, M =:= Module, F =:= Function]
    ).

%% Warnings and errors of all registries, and of debug events those of the protocol registry, which are
%% `protocol registered' and `conformance check failed'.
events() ->
    lists:sort([
        {Level, Meta}
        || {Module, Level, Meta} <- beamtalk_image_log_events:take(),
            logger:compare_levels(Level, warning) =/= lt orelse
                {Module, Level} =:= {beamtalk_protocol_registry, debug}
    ]).

%% ---- Comparing --------------------------------------------------------------------------------------------

check_answer(Module, Function, Expected, Got, Internal) ->
    case matches(Expected, Got) of
        true -> [];
        false when Internal -> check_internal(Module, Function, Expected, Got);
        false -> {answer, Expected, Got}
    end.

%% Before `init/0' a look-up may refuse or answer no, and nothing else; other internal answers are free.
check_internal(Module, Function, {raises, error, badarg}, Got) ->
    check(answer, negative(Module, Function), Got);
check_internal(_Module, _Function, _Expected, _Got) ->
    [].

negative(beamtalk_extensions, lookup) -> not_found;
negative(beamtalk_extensions, has) -> false;
negative(_Module, _Function) -> [].

check(What, Expected, Got) ->
    case matches(Expected, Got) of
        true -> [];
        false -> {What, Expected, Got}
    end.

matches('_', _Got) ->
    true;
matches(Expected, Got) when is_tuple(Expected), is_tuple(Got) ->
    matches(tuple_to_list(Expected), tuple_to_list(Got));
matches([Expected | MoreExpected], [Got | MoreGot]) ->
    matches(Expected, Got) andalso matches(MoreExpected, MoreGot);
matches(Expected, Got) when is_map(Expected), is_map(Got) ->
    lists:sort(maps:keys(Expected)) =:= lists:sort(maps:keys(Got)) andalso
        maps:fold(fun(Key, Value, So) -> So andalso matches(Value, maps:get(Key, Got)) end, true, Expected);
matches(Expected, Got) ->
    Expected =:= Got.

%% Order is taken out where it is unspecified, and the generation out of rows.
normal(beamtalk_xref, hierarchy_related_classes, Set) when is_map(Set) -> lists:sort(sets:to_list(Set));
normal(beamtalk_xref, Function, Answer) -> normal_rows(Function, without_generation(Answer));
normal(beamtalk_extensions, extenders_of, Answer) -> Answer;
normal(beamtalk_extensions, _Function, Answer) -> sorted(Answer);
normal(beamtalk_protocol_registry, all_protocol_names, Answer) -> sorted(Answer);
normal(_Module, _Function, Answer) -> Answer.

normal_rows(Function, Rows) when
    Function =:= senders_of; Function =:= references_to; Function =:= callers_of_native_module
->
    sorted(Rows);
normal_rows(_Function, #{indexed := Rows, fallback_classes := Classes} = Answer) ->
    Answer#{indexed := sorted(Rows), fallback_classes := sorted(Classes)};
normal_rows(_Function, Answer) ->
    Answer.

without_generation(Rows) when is_list(Rows) -> [without_generation(Row) || Row <- Rows];
without_generation(#{owner := _} = Row) -> maps:remove(gen, Row);
without_generation(Other) -> Other.

sorted(Answer) when is_list(Answer) -> lists:sort(Answer);
sorted(Answer) -> Answer.
