%% @doc The host of the benchmark: a class hierarchy in a table, class processes for those classes whose
%% conformance is asked for, and a compiler that takes each word of a text for a send.
%%
%% All stores ask this one, so they differ only in what they remember and how they look it up.
-module(bench_host).
-behaviour(beamtalk_image_host).
-behaviour(gen_server).

-export([set_up/1, tear_down/0]).
-export([method_entry/2, requirements/3, requirement_names/2, class_side_has/3, class_tag/1]).
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
    find_sends/1
]).
-export([init/1, handle_call/3, handle_cast/2]).

-define(CLASSES, bench_host_classes).

%% @doc Makes the image's hierarchy the host's and starts the processes of its `started' classes.
-spec set_up(bench_image:image()) -> ok.
set_up(#{classes := Classes, started := Started}) ->
    Owner = self(),
    Keeper = spawn(fun() ->
        ?CLASSES = ets:new(?CLASSES, [named_table, set, public, {read_concurrency, true}]),
        Owner ! {self(), ready},
        receive stop -> ok end
    end),
    receive {Keeper, ready} -> ok end,
    true = register(?MODULE, Keeper),
    true = ets:insert(?CLASSES, [{Name, Super} || {Name, Super, _} <- Classes]),
    lists:foreach(
        fun({Name, Super, Entries}) ->
            case lists:member(Name, Started) of
                true ->
                    Process = {local, process_name(Name)},
                    {ok, _} = gen_server:start(Process, ?MODULE, {Super, Entries}, []);
                false ->
                    ok
            end
        end,
        Classes
    ).

%% @doc Ends what {@link set_up/1} started.
-spec tear_down() -> ok.
tear_down() ->
    lists:foreach(fun({_Name, Pid}) -> ok = gen_server:stop(Pid) end, loaded_classes()),
    Keeper = whereis(?MODULE),
    Ref = monitor(process, Keeper),
    Keeper ! stop,
    receive {'DOWN', Ref, process, Keeper, _} -> ok end.

%% What the baselines share

%% @doc The entry of an extension method, as the index takes it.
-spec method_entry(atom(), binary() | undefined) -> map().
method_entry(Selector, undefined) ->
    #{
        selector => Selector, line => 1, class_side => false, sends => [], references => [],
        source_status => unindexed_runtime_fun, provenance => extension
    };
method_entry(Selector, Source) ->
    {ok, Hits} = find_sends(Source),
    Sends = [
        #{
            selector => Sent, line => Line, recv_kind => other, target_module => undefined,
            recv_type => dynamic
        }
        || #{selector := Text, line := Line} <- Hits, Sent <- existing(Text)
    ],
    (method_entry(Selector, undefined))#{sends => Sends, source_status => indexed}.

existing(Text) ->
    try
        [binary_to_existing_atom(Text)]
    catch
        error:badarg -> []
    end.

%% @doc The selectors that a protocol requires on one side, own ones first, then inherited ones not
%% overridden.
-spec requirements(
    atom(), required_methods | required_class_methods, fun((atom()) -> map() | undefined)
) -> [atom()].
requirements(Name, Key, Definition) -> requirements(Name, Key, Definition, [], []).

requirements(undefined, _Key, _Definition, _Seen, Selectors) ->
    lists:reverse(Selectors);
requirements(Name, Key, Definition, Seen, Selectors) ->
    case lists:member(Name, Seen) orelse Definition(Name) of
        #{} = Map ->
            Own = [S || #{selector := S} <- maps:get(Key, Map, []), not lists:member(S, Selectors)],
            requirements(maps:get(extending, Map, undefined), Key, Definition, [Name | Seen],
                lists:reverse(Own, Selectors));
        _ ->
            lists:reverse(Selectors)
    end.

%% @doc Requirements as a registry names them: those of the class side carry a prefix.
-spec requirement_names([atom()], [atom()]) -> [atom()].
requirement_names(Instance, Class) ->
    Instance ++ [binary_to_atom(<<"class ", (atom_to_binary(S))/binary>>) || S <- Class].

%% @doc Whether a class or an ancestor has a class-side method, or the class itself an extension of that name.
-spec class_side_has(atom(), atom(), fun((atom(), atom()) -> boolean())) -> boolean().
class_side_has(Class, Selector, IsExtension) ->
    IsExtension(class_tag(Class), Selector) orelse class_side_inherits(whereis_class(Class), Selector).

class_side_inherits(undefined, _Selector) ->
    false;
class_side_inherits(Pid, Selector) ->
    lists:member(Selector, class_selectors(Pid)) orelse
        class_side_inherits(whereis_class(class_superclass(Pid)), Selector).

%% @doc The class key of a class side.
-spec class_tag(atom()) -> atom().
class_tag(Class) -> binary_to_atom(<<(atom_to_binary(Class))/binary, " class">>).

%% Host callbacks

%% @private
-spec whereis_class(atom()) -> pid() | undefined.
whereis_class(Name) -> whereis(process_name(Name)).

%% @private
-spec loaded_classes() -> [{atom(), pid()}].
loaded_classes() ->
    [{Name, Pid} || {Name, _Super} <- ets:tab2list(?CLASSES), Pid <- [whereis_class(Name)], is_pid(Pid)].

%% @private
-spec live_classes() -> [{atom(), module(), pid()}].
live_classes() -> [{Name, ?MODULE, Pid} || {Name, Pid} <- loaded_classes()].

%% @private
-spec descendants(atom()) -> [atom()].
descendants(Name) ->
    Children = [Child || [Child] <- ets:match(?CLASSES, {'$1', Name})],
    lists:usort(Children ++ lists:flatmap(fun descendants/1, Children)).

%% @private
-spec superclass_row(atom()) -> {ok, atom()} | not_found.
superclass_row(Name) ->
    case ets:lookup(?CLASSES, Name) of
        [{_, Super}] -> {ok, Super};
        [] -> not_found
    end.

%% @private
-spec instance_selectors(pid()) -> [atom()].
instance_selectors(Pid) -> gen_server:call(Pid, instance_selectors).

%% @private
-spec class_selectors(pid()) -> [atom()].
class_selectors(Pid) -> gen_server:call(Pid, class_selectors).

%% @private
-spec class_superclass(pid()) -> atom().
class_superclass(Pid) -> gen_server:call(Pid, superclass).

%% @private
%% Two messages a level: does the class have it, and if not, what is above.
-spec understands(atom(), atom()) -> boolean().
understands(Class, Selector) ->
    case whereis_class(Class) of
        undefined ->
            false;
        Pid ->
            gen_server:call(Pid, {has_method, Selector}) orelse
                case class_superclass(Pid) of
                    none -> false;
                    Super -> understands(Super, Selector)
                end
    end.

%% @private
-spec find_sends(binary()) -> {ok, [beamtalk_image_host:hit()]}.
find_sends(Source) ->
    {ok, [
        #{selector => Word, line => 1, recv => other, target_module => <<>>}
        || Word <- binary:split(Source, <<" ">>, [global, trim_all])
    ]}.

%% Class processes

%% @private
-spec init({atom(), [map()]}) -> {ok, map()}.
init({Super, Entries}) ->
    Side = fun(Wanted) ->
        OfSide = [S || #{selector := S} = E <- Entries, maps:get(class_side, E, false) =:= Wanted],
        maps:from_keys(OfSide, true)
    end,
    {ok, #{superclass => Super, instance => Side(false), class => Side(true)}}.

%% @private
-spec handle_call(term(), gen_server:from(), map()) -> {reply, term(), map()}.
handle_call({has_method, Selector}, _From, #{instance := Instance} = State) ->
    {reply, is_map_key(Selector, Instance), State};
handle_call(superclass, _From, #{superclass := Super} = State) ->
    {reply, Super, State};
handle_call(instance_selectors, _From, #{instance := Instance} = State) ->
    {reply, maps:keys(Instance), State};
handle_call(class_selectors, _From, #{class := Class} = State) ->
    {reply, maps:keys(Class), State}.

%% @private
-spec handle_cast(term(), map()) -> {noreply, map()}.
handle_cast(_Request, State) ->
    {noreply, State}.

process_name(Name) -> binary_to_atom(<<"bench class ", (atom_to_binary(Name))/binary>>).
