%% @doc What the embedded image knows of its classes, for readers that must not send a message: one row a class and one
%% row a method. Class processes write their own rows; everybody reads.
-module(beamtalk_embedded_table).
-behaviour(gen_server).

-export([start_link/0]).
-export([put_class/2, delete_class/1, class/1, classes/0, subclasses/1, all_subclasses/1]).
-export([put_methods/2, delete_methods/1, method/2, selectors/1]).
-export([init/1, handle_call/3, handle_cast/2]).
-export_type([class_row/0, method/0]).

-type class_row() :: #{
    pid := pid(),
    module := module(),
    superclass := atom(),
    kind := value | actor | object,
    fields := #{atom() => term()},
    origin := {file, binary()} | stdlib | dynamic,
    source := binary() | undefined
}.
-type method() :: #{
    'fun' := fun(),
    source := binary() | undefined,
    line := pos_integer(),
    sends := [map()],
    references := [map()],
    provenance := beamtalk_xref:provenance()
}.

-define(CLASSES, beamtalk_embedded_classes).
-define(METHODS, beamtalk_embedded_methods).

%% @private
-spec start_link() -> gen_server:start_ret().
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% @private
-spec init([]) -> {ok, []}.
init([]) ->
    ?CLASSES = ets:new(?CLASSES, [named_table, public, {read_concurrency, true}]),
    ?METHODS = ets:new(?METHODS, [named_table, public, ordered_set, {read_concurrency, true}]),
    {ok, []}.

%% @private
-spec handle_call(term(), gen_server:from(), []) -> {reply, {error, unknown_request}, []}.
handle_call(_Request, _From, []) ->
    {reply, {error, unknown_request}, []}.

%% @private
-spec handle_cast(term(), []) -> {noreply, []}.
handle_cast(_Message, []) ->
    {noreply, []}.

%% @doc Writes the row of a class.
-spec put_class(atom(), class_row()) -> ok.
put_class(Name, Row) ->
    true = ets:insert(?CLASSES, {Name, Row}),
    ok.

%% @doc Removes the row of a class.
-spec delete_class(atom()) -> ok.
delete_class(Name) ->
    true = ets:delete(?CLASSES, Name),
    ok.

%% @doc The row of a class; `undefined' if there is none, or no image.
-spec class(atom()) -> class_row() | undefined.
class(Name) ->
    try ets:lookup(?CLASSES, Name) of
        [{_, Row}] -> Row;
        [] -> undefined
    catch
        error:badarg -> undefined
    end.

%% @doc All classes with their rows, in no order.
-spec classes() -> [{atom(), class_row()}].
classes() ->
    try
        ets:tab2list(?CLASSES)
    catch
        error:badarg -> []
    end.

%% @doc The direct subclasses of a class, sorted.
-spec subclasses(atom()) -> [atom()].
subclasses(Name) ->
    lists:sort([Class || {Class, #{superclass := Super}} <- classes(), Super =:= Name]).

%% @doc The transitive subclasses of a class, sorted.
-spec all_subclasses(atom()) -> [atom()].
all_subclasses(Name) ->
    lists:usort(descend(subclasses(Name), [])).

descend([], Seen) ->
    Seen;
descend([Class | Rest], Seen) ->
    case lists:member(Class, Seen) of
        true -> descend(Rest, Seen);
        false -> descend(subclasses(Class) ++ Rest, [Class | Seen])
    end.

%% @doc Replaces the methods under a class key. A reader may see some old and some new methods meanwhile, never none
%% of a selector that stays.
-spec put_methods(atom(), #{atom() => method()}) -> ok.
put_methods(Key, Methods) ->
    true = ets:insert(?METHODS, [{{Key, Selector}, Method} || {Selector, Method} <- maps:to_list(Methods)]),
    Gone = selectors(Key) -- maps:keys(Methods),
    lists:foreach(fun(Selector) -> ets:delete(?METHODS, {Key, Selector}) end, Gone).

%% @doc Removes the methods under a class key.
-spec delete_methods(atom()) -> ok.
delete_methods(Key) ->
    put_methods(Key, #{}).

%% @doc The method of a selector under exactly this class key.
-spec method(atom(), atom()) -> {ok, method()} | undefined.
method(Key, Selector) ->
    try ets:lookup(?METHODS, {Key, Selector}) of
        [{_, Method}] -> {ok, Method};
        [] -> undefined
    catch
        error:badarg -> undefined
    end.

%% @doc The selectors under a class key, sorted.
-spec selectors(atom()) -> [atom()].
selectors(Key) ->
    try
        lists:append(ets:match(?METHODS, {{Key, '$1'}, '_'}))
    catch
        error:badarg -> []
    end.
