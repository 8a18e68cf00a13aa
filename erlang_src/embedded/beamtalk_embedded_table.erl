%% @doc What the embedded image knows of its classes, for readers that must not send a message: one row a
%% class and one row a method. Class processes write their own rows; everybody reads.
-module(beamtalk_embedded_table).
-behaviour(gen_server).

-export([start_link/0]).
-export([put_class/2, delete_class/1, class/1, classes/0, subclasses/1, all_subclasses/1]).
-export([put_protocol/2, protocol/1, put_owner/2, owner/1]).
-export([put_methods/2, delete_methods/1, method/2, selectors/1]).
-export([init/1, handle_call/3, handle_cast/2]).
-export_type([class_row/0, method/0]).

-type class_row() :: #{
    pid := pid(),
    module := module(),
    superclass := atom(),
    kind := value | actor | object,
    fields := #{atom() => term()},
    %% Of a class from text: its own slots with the trees of their defaults, in order.
    slots => [{atom(), beamtalk_reading:statement() | none}],
    beam => binary(),
    origin := {file, binary()} | stdlib | dynamic,
    source := binary() | undefined
}.
-type method() :: #{
    'fun' := fun(),
    %% Whether a class-side method may run in the sender.
    in_sender := boolean(),
    source := binary() | undefined,
    line := pos_integer(),
    sends := [map()],
    references := [map()],
    provenance := beamtalk_xref:provenance()
}.

-define(CLASSES, beamtalk_embedded_classes).
-define(METHODS, beamtalk_embedded_methods).
%% Where protocols and the extensions of an owner come from.
-define(ORIGINS, beamtalk_embedded_origins).

%% @private
-spec start_link() -> gen_server:start_ret().
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% @private
-spec init([]) -> {ok, []}.
init([]) ->
    ?CLASSES = ets:new(?CLASSES, [named_table, public, {read_concurrency, true}]),
    ?METHODS = ets:new(?METHODS, [named_table, public, ordered_set, {read_concurrency, true}]),
    ?ORIGINS = ets:new(?ORIGINS, [named_table, public, {read_concurrency, true}]),
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

%% @doc Notes where the text of a protocol lives.
-spec put_protocol(atom(), beamtalk_image_host:class_origin()) -> ok.
put_protocol(Name, Origin) ->
    put_origin({protocol, Name}, Origin).

%% @doc Where the text of a protocol lives.
-spec protocol(atom()) -> {ok, beamtalk_image_host:class_origin()} | undefined.
protocol(Name) ->
    origin({protocol, Name}).

%% @doc Notes where the extensions of an owner come from.
-spec put_owner(atom(), beamtalk_image_host:class_origin()) -> ok.
put_owner(Owner, Origin) ->
    put_origin({owner, Owner}, Origin).

%% @doc Where the extensions of an owner come from.
-spec owner(atom()) -> {ok, beamtalk_image_host:class_origin()} | undefined.
owner(Owner) ->
    origin({owner, Owner}).

put_origin(Key, Origin) ->
    true = ets:insert(?ORIGINS, {Key, Origin}),
    ok.

origin(Key) ->
    try ets:lookup(?ORIGINS, Key) of
        [{_, Origin}] -> {ok, Origin};
        [] -> undefined
    catch
        error:badarg -> undefined
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

%% @doc Replaces the methods under a class key. A reader may see some old and some new methods meanwhile,
%% never none of a selector that stays.
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
