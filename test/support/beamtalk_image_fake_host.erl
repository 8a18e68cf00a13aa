%% A host for tests: classes are processes that count what they are asked, the compiler is a table of answers,
%% and every callback can be replaced by a function of the test's.
%%
%% The tables belong to a process of their own, so a case that dies leaves nothing that the next `start' would
%% trip over.
-module(beamtalk_image_fake_host).
-behaviour(beamtalk_image_host).

-export([
    start/0,
    stop/0,
    superclass/2,
    class/2,
    class/4,
    remove_class/1,
    kill_class/1,
    slow_class/2,
    run_in_class_process/2,
    patch/4,
    redefine/2,
    sends/2,
    span/2,
    script/2,
    unscript/1,
    option/2,
    started/0,
    messages/0,
    messages/1,
    calls/1,
    forget_counts/0
]).
-export([
    whereis_class/1,
    loaded_classes/0,
    live_classes/0,
    descendants/1,
    superclass_row/1,
    instance_selectors/1,
    class_selectors/1,
    class_superclass/1,
    understands/2,
    start_class/2,
    find_sends/1,
    method_span/4,
    diff/2,
    home_dir/0
]).

-define(CALLS, beamtalk_image_fake_host_calls).

%% ---- What a test says -------------------------------------------------------------------------------------

%% Makes this the host, with no class, no superclass row and no compiler.
-spec start() -> ok.
start() ->
    Self = self(),
    Pid = spawn(fun() ->
        register(?MODULE, self()),
        ?MODULE = ets:new(?MODULE, [named_table, public]),
        ?CALLS = ets:new(?CALLS, [named_table, public, ordered_set]),
        Self ! {self(), ready},
        receive
            stop -> ok
        end
    end),
    receive
        {Pid, ready} -> beamtalk_image_host:set_module(?MODULE)
    after 5_000 -> error({host_does_not_start, whereis(?MODULE)})
    end.

%% Ends every class and the host; the image asks its configured host again.
-spec stop() -> ok.
stop() ->
    ok = beamtalk_image_host:set_module(undefined),
    case whereis(?MODULE) of
        undefined ->
            ok;
        Pid ->
            lists:foreach(fun end_process/1, [Class || {_, Class} <- rows(class)]),
            Ref = monitor(process, Pid),
            Pid ! stop,
            receive
                {'DOWN', Ref, process, Pid, _} -> ok
            end
    end.

%% A superclass row without a class process.
-spec superclass(atom(), atom()) -> ok.
superclass(Name, Super) ->
    put_row({super, Name}, Super).

%% A running class from an info map as the runtime has it: `superclass', `instance_methods', `class_methods'
%% (lists or maps of selectors), `method_xref', `uses', `module'.
-spec class(atom(), map()) -> pid().
class(Name, Info) ->
    {ok, Pid} = beamtalk_image_fake_class:start(Name, Info, ?MODULE),
    Pid.

-spec class(atom(), atom(), [atom()], [atom()]) -> pid().
class(Name, Super, Instance, ClassSide) ->
    class(Name, #{superclass => Super, instance_methods => Instance, class_methods => ClassSide}).

%% The orderly end of a class, its superclass row included.
-spec remove_class(atom()) -> ok.
remove_class(Name) ->
    gen_server:stop(pid_of(Name)).

%% The class dies, and for now the host goes on naming its process.
-spec kill_class(atom()) -> ok.
kill_class(Name) ->
    end_process(pid_of(Name)).

%% A slow class takes questions and does not answer them.
-spec slow_class(atom(), boolean()) -> ok.
slow_class(Name, Slow) ->
    beamtalk_image_fake_class:ask(pid_of(Name), {slow, Slow}, infinity).

%% Runs a fun inside the class process, where questions to that class end in `calling_self'.
-spec run_in_class_process(atom(), fun(() -> Result)) -> Result.
run_in_class_process(Name, Fun) ->
    beamtalk_image_fake_class:ask(pid_of(Name), {run, Fun}, infinity).

%% A live patch from source text, as the runtime makes it.
-spec patch(atom(), boolean(), atom(), binary()) -> ok.
patch(Name, ClassSide, Selector, Source) ->
    beamtalk_image_fake_class:ask(pid_of(Name), {put_method, ClassSide, Selector, Source}, infinity).

%% A redefinition: purge, rows, invalidation, inside the class process.
-spec redefine(atom(), map()) -> ok.
redefine(Name, Info) ->
    beamtalk_image_fake_class:ask(pid_of(Name), {redefine, Info}, infinity).

%% What the compiler says about the sends in a text; texts not told are errors.
-spec sends(binary(), {ok, [beamtalk_image_host:hit()]} | {error, term()}) -> ok.
sends(Source, Answer) ->
    put_row({answer, find_sends, [Source]}, Answer).

%% What the compiler says about the place of a method; arguments as of {@link method_span/4}.
-spec span([term()], {ok, map(), binary()} | {error, atom(), term()}) -> ok.
span(Args, Answer) ->
    put_row({answer, method_span, Args}, Answer).

%% Replaces a callback by a function of its argument list.
-spec script(atom(), fun(([term()]) -> term())) -> ok.
script(Callback, Fun) ->
    put_row({script, Callback}, Fun).

-spec unscript(atom()) -> ok.
unscript(Callback) ->
    true = ets:delete(?MODULE, {script, Callback}),
    ok.

%% `traits': classes say what they use; `timeout': how long a class may take; `home': the home directory.
-spec option(traits | timeout | home, term()) -> ok.
option(Option, Value) ->
    put_row({option, Option}, Value).

%% ---- What a test asks -------------------------------------------------------------------------------------

%% Name and info map of every class that the image started, oldest first.
-spec started() -> [{atom(), map()}].
started() ->
    [{Name, Info} || [Name, Info] <- calls(start_class)].

%% Questions that classes were asked: all together, or one class.
-spec messages() -> non_neg_integer().
messages() ->
    lists:sum([Count || {_Name, Count} <- rows(messages)]).

-spec messages(atom()) -> non_neg_integer().
messages(Name) ->
    case ets:lookup(?MODULE, {messages, Name}) of
        [{_, Count}] -> Count;
        [] -> 0
    end.

%% The argument lists that a callback was called with, oldest first.
-spec calls(atom()) -> [[term()]].
calls(Callback) ->
    [Args || [_Order, Args] <- lists:sort(ets:match(?CALLS, {'$1', Callback, '$2'}))].

-spec forget_counts() -> ok.
forget_counts() ->
    true = ets:match_delete(?MODULE, {{messages, '_'}, '_'}),
    true = ets:delete_all_objects(?CALLS),
    ok.

%% ---- Callbacks --------------------------------------------------------------------------------------------

whereis_class(Name) ->
    called(whereis_class, [Name], fun() ->
        case ets:lookup(?MODULE, {class, Name}) of
            [{_, Pid}] -> Pid;
            [] -> undefined
        end
    end).

loaded_classes() ->
    called(loaded_classes, [], fun() ->
        [{Name, Pid} || {Name, Pid} <- rows(class), is_process_alive(Pid)]
    end).

live_classes() ->
    called(live_classes, [], fun() ->
        [{Name, Module, Pid} || {Name, Pid} <- rows(class), {ok, Module} <- [try_ask(Pid, live)]]
    end).

descendants(Name) ->
    called(descendants, [Name], fun() ->
        lists:usort(below([Name], rows(super), [])) -- [Name]
    end).

below([], _Rows, Seen) ->
    Seen;
below([Name | Rest], Rows, Seen) ->
    New = [Class || {Class, Super} <- Rows, Super =:= Name, not lists:member(Class, Seen)],
    below(New ++ Rest, Rows, New ++ Seen).

superclass_row(Name) ->
    called(superclass_row, [Name], fun() ->
        case ets:lookup(?MODULE, {super, Name}) of
            [{_, Super}] -> {ok, Super};
            [] -> not_found
        end
    end).

instance_selectors(Pid) ->
    called(instance_selectors, [Pid], fun() -> ask(Pid, instance_selectors) end).

class_selectors(Pid) ->
    called(class_selectors, [Pid], fun() -> ask(Pid, class_selectors) end).

class_superclass(Pid) ->
    called(class_superclass, [Pid], fun() -> ask(Pid, superclass) end).

understands(Class, Selector) ->
    called(understands, [Class, Selector], fun() -> found_along_chain(Class, Selector) end).

found_along_chain(Class, Selector) ->
    case ets:lookup(?MODULE, {class, Class}) of
        [{_, Pid}] -> ask(Pid, {defines, Selector}) orelse found_along_chain(ask(Pid, superclass), Selector);
        [] -> false
    end.

start_class(Name, Info) ->
    called(start_class, [Name, Info], fun() ->
        beamtalk_image_fake_class:start(Name, Info, ?MODULE)
    end).

find_sends(Source) ->
    called(find_sends, [Source], fun() -> answer(find_sends, [Source], {error, []}) end).

method_span(Source, Class, Selector, Side) ->
    Args = [Source, Class, Selector, Side],
    called(method_span, Args, fun() -> answer(method_span, Args, {error, noproc, <<"no compiler">>}) end).

diff(Old, New) ->
    called(diff, [Old, New], fun() -> beamtalk_image_text_diff:unified(Old, New) end).

home_dir() ->
    called(home_dir, [], fun() -> option_or(home, false) end).

%% ---- Tables -----------------------------------------------------------------------------------------------

called(Callback, Args, Default) ->
    ets:insert(?CALLS, {erlang:unique_integer([monotonic]), Callback, Args}),
    case ets:lookup(?MODULE, {script, Callback}) of
        [{_, Fun}] -> Fun(Args);
        [] -> Default()
    end.

answer(Function, Args, Default) ->
    case ets:lookup(?MODULE, {answer, Function, Args}) of
        [{_, Answer}] -> Answer;
        [] -> Default
    end.

ask(Pid, Question) ->
    beamtalk_image_fake_class:ask(Pid, Question, option_or(timeout, 5_000)).

try_ask(Pid, Question) ->
    try
        {ok, ask(Pid, Question)}
    catch
        exit:_ -> failed
    end.

option_or(Option, Default) ->
    case ets:lookup(?MODULE, {option, Option}) of
        [{_, Value}] -> Value;
        [] -> Default
    end.

rows(Kind) ->
    [{Name, Value} || [Name, Value] <- ets:match(?MODULE, {{Kind, '$1'}, '$2'})].

put_row(Key, Value) ->
    true = ets:insert(?MODULE, {Key, Value}),
    ok.

pid_of(Name) ->
    ets:lookup_element(?MODULE, {class, Name}, 2).

end_process(Pid) ->
    Ref = monitor(process, Pid),
    exit(Pid, kill),
    receive
        {'DOWN', Ref, process, Pid, _} -> ok
    end.
