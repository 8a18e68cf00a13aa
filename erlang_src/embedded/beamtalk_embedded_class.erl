%% @doc A class of the embedded image: one process a class, as in the real runtime.
%%
%% The process owns its methods on both sides, publishes them for dispatch, runs the class-side methods, and
%% drives the registries as the runtime does: on start it registers its rows and forgets conformance answers;
%% on redefinition it purges, registers and forgets; on a live patch it indexes the one method.
-module(beamtalk_embedded_class).
-behaviour(gen_server).

-export([start/2, stop/1]).
-export([update/2, put_method/5, remove_method/3, methods/1, class_methods/1, superclass/1, class_name/1]).
-export([run/2, class_send/4, variables/0, put_variables/1]).
-export([init/1, handle_call/3, handle_cast/2, terminate/2]).
-export_type([definition/0]).

-type method_definition() :: fun() | #{'fun' := fun(), _ => _}.
-type definition() :: #{
    superclass := atom(),
    kind => value | actor | object,
    module => module(),
    fields => #{atom() => term()},
    slots => [{atom(), beamtalk_reading:statement() | none}],
    variables => [{atom(), Value :: term()}],
    methods => #{atom() => method_definition()},
    class_methods => #{atom() => method_definition()},
    origin => {file, binary()} | stdlib | dynamic,
    source => binary(),
    uses => [atom()],
    %% Which protocol provides a method of the instance side; absent: what is on record stays.
    origins => #{atom() => atom()},
    method_xref => [map()],
    _ => _
}.
%% A class from Erlang, or one that {@link beamtalk_embedded_compiler} made from text. Methods are funs,
%% called as `F(Args, Self)' or `F(Args, Self, State)', or maps with such a fun and what the index needs
%% (`source', `line', `sends', `references'). `slots' are the instance's with the trees of their
%% defaults, `variables' the class's with their values.

-define(TIMEOUT, 5_000).

%% @doc Starts a class; its start-up, which calls the registries, is over when this returns.
-spec start(atom(), definition()) -> {ok, pid()} | {error, {already_started, pid()}} | {error, term()}.
start(Name, Definition) ->
    case beamtalk_embedded_table:class(Name) of
        #{pid := Pid} -> {error, {already_started, Pid}};
        undefined -> gen_server:start(?MODULE, {Name, Definition}, [])
    end.

%% @doc Stops a class and takes it out of the tables; its registrations stay, as those of a removed class do
%% until somebody removes them.
-spec stop(pid()) -> ok.
stop(Pid) ->
    gen_server:stop(Pid).

%% @doc Redefines a class. Answers the names of its fields.
-spec update(atom(), definition()) -> {ok, [atom()]} | {error, term()}.
update(Name, Definition) ->
    case beamtalk_embedded_table:class(Name) of
        #{pid := Pid} -> gen_server:call(Pid, {update, Definition}, ?TIMEOUT);
        undefined -> {error, {class_not_found, Name}}
    end.

%% @doc Installs one method in the running class.
-spec put_method(pid(), instance | class, atom(), fun(), binary() | undefined) -> ok.
put_method(Pid, Side, Selector, Fun, Source) ->
    gen_server:call(Pid, {put_method, Side, Selector, Fun, Source}, ?TIMEOUT).

%% @doc Removes one method that the class itself defines, as a recompilation without it would; answers what it
%% was.
-spec remove_method(pid(), instance | class, atom()) -> {removed, beamtalk_embedded_table:method()} | absent.
remove_method(Pid, Side, Selector) ->
    gen_server:call(Pid, {remove_method, Side, Selector}, ?TIMEOUT).

%% @doc Selectors that the class defines on its instance side.
-spec methods(pid()) -> [atom()].
methods(Pid) ->
    gen_server:call(Pid, {selectors, instance}, ?TIMEOUT).

%% @doc Selectors that the class defines on its class side.
-spec class_methods(pid()) -> [atom()].
class_methods(Pid) ->
    gen_server:call(Pid, {selectors, class}, ?TIMEOUT).

%% @doc The superclass, `none' for a root.
-spec superclass(pid()) -> atom().
superclass(Pid) ->
    gen_server:call(Pid, superclass, ?TIMEOUT).

%% @doc The name of the class; answered at once within its own process.
-spec class_name(pid()) -> atom().
class_name(Pid) when Pid =:= self() ->
    get({?MODULE, name});
class_name(Pid) ->
    gen_server:call(Pid, class_name, ?TIMEOUT).

%% @doc Runs a fun in the process of the class. What it raises is raised in the caller.
-spec run(pid(), fun(() -> Answer)) -> Answer.
run(Pid, Fun) ->
    outcome(gen_server:call(Pid, {run, Fun}, ?TIMEOUT)).

%% @doc Sends a message to the class side; its method runs in the process of the class.
-spec class_send(pid(), fun(), [term()], term()) -> term().
class_send(Pid, Fun, Args, Self) ->
    run(Pid, fun() -> in_class(Fun, Args, Self) end).

in_class(Fun, Args, Self) when is_function(Fun, 3) ->
    {Answer, _} = Fun(Args, Self, #{}),
    Answer;
in_class(Fun, Args, Self) ->
    Fun(Args, Self).

%% @doc The class variables of the class whose process this is.
-spec variables() -> map().
variables() ->
    case get({?MODULE, variables}) of
        undefined -> #{};
        Variables -> Variables
    end.

%% @doc Replaces the class variables of the class whose process this is.
-spec put_variables(map()) -> ok.
put_variables(Variables) ->
    _ = put({?MODULE, variables}, Variables),
    ok.

%% A class variable keeps its value when the class is defined again.
new_variables(Values) ->
    Fresh = maps:from_list(Values),
    put_variables(maps:merge(Fresh, maps:with(maps:keys(Fresh), variables()))).

outcome({ok, Answer}) -> Answer;
outcome({raised, Class, Reason, Stack}) -> erlang:raise(Class, Reason, Stack).

%% ---- The process ---------------------------------------------------------------------------------------------

%% @private
-spec init({atom(), definition()}) -> {ok, map()}.
init({Name, Definition}) ->
    process_flag(trap_exit, true),
    put({?MODULE, name}, Name),
    ok = new_variables(maps:get(variables, Definition, [])),
    State = publish(state(Name, Definition)),
    register_rows(State),
    register_uses(State),
    ok = beamtalk_protocol_registry:invalidate_conforms_cache(),
    {ok, State}.

%% @private
-spec handle_call(term(), gen_server:from(), map()) -> {reply, term(), map()}.
handle_call({update, Definition}, _From, #{name := Name}) ->
    ok = new_variables(maps:get(variables, Definition, [])),
    State = redefine(state(Name, Definition)),
    {reply, {ok, maps:keys(maps:get(fields, State))}, State};
handle_call({put_method, Side, Selector, Fun, Source}, _From, State) ->
    #{name := Name} = State,
    Entry = beamtalk_xref:build_method_entry(Side =:= class, Selector, Source, indexed, put_method),
    Method = method(#{'fun' => Fun, source => Source, provenance => put_method,
        sends => maps:get(sends, Entry), references => maps:get(references, Entry)}),
    Patched = publish(with_method(Side, Selector, Method, State)),
    ok = beamtalk_extensions:safe_xref(fun() ->
        beamtalk_xref:put_method(Name, Side =:= class, Selector, Entry)
    end),
    ok = beamtalk_protocol_registry:invalidate_conforms_cache(),
    {reply, ok, Patched};
handle_call({remove_method, Side, Selector}, _From, State) ->
    Methods = maps:get(Side, State),
    case maps:take(Selector, Methods) of
        {Method, Rest} -> {reply, {removed, Method}, redefine(State#{Side := Rest})};
        error -> {reply, absent, State}
    end;
handle_call({selectors, Side}, _From, State) ->
    {reply, maps:keys(maps:get(Side, State)), State};
handle_call(superclass, _From, #{row := #{superclass := Super}} = State) ->
    {reply, Super, State};
handle_call(class_name, _From, #{name := Name} = State) ->
    {reply, Name, State};
handle_call({run, Fun}, _From, State) ->
    Outcome =
        try
            {ok, Fun()}
        catch
            Class:Reason:Stack -> {raised, Class, Reason, Stack}
        end,
    {reply, Outcome, State};
handle_call(_Request, _From, State) ->
    {reply, {error, unknown_request}, State}.

%% @private
-spec handle_cast(term(), map()) -> {noreply, map()}.
handle_cast(_Message, State) ->
    {noreply, State}.

%% @private
-spec terminate(term(), map()) -> ok.
terminate(_Reason, #{name := Name}) ->
    ok = beamtalk_embedded_table:delete_class(Name),
    ok = beamtalk_embedded_table:delete_methods(Name),
    beamtalk_embedded_table:delete_methods(beamtalk_image_names:class_tag(Name)).

state(Name, Definition) ->
    Row = (maps:with([slots, beam], Definition))#{
        pid => self(),
        module => maps:get(module, Definition, beamtalk_embedded),
        superclass => maps:get(superclass, Definition),
        kind => maps:get(kind, Definition, object),
        fields => maps:get(fields, Definition, #{}),
        origin => maps:get(origin, Definition, dynamic),
        source => maps:get(source, Definition, undefined)
    },
    #{
        name => Name,
        row => Row,
        fields => maps:get(fields, Definition, #{}),
        uses => maps:get(uses, Definition, []),
        origins => maps:get(origins, Definition, none),
        %% Rows that whoever defines the class states itself; methods without a fun are dispatched elsewhere.
        stated_rows => maps:get(method_xref, Definition, none),
        instance => methods_from(maps:get(methods, Definition, #{})),
        class => methods_from(maps:get(class_methods, Definition, #{}))
    }.

methods_from(Definitions) ->
    maps:map(fun(_Selector, Definition) -> method(Definition) end,
        maps:filter(fun(_Selector, Definition) -> has_fun(Definition) end, Definitions)).

has_fun(Definition) ->
    is_function(Definition) orelse maps:is_key('fun', Definition).

method(Fun) when is_function(Fun) ->
    method(#{'fun' => Fun});
method(#{'fun' := Fun} = Definition) ->
    #{
        'fun' => Fun,
        in_sender => maps:get(in_sender, Definition, false),
        source => maps:get(source, Definition, undefined),
        line => maps:get(line, Definition, 1),
        sends => maps:get(sends, Definition, []),
        references => maps:get(references, Definition, []),
        provenance => maps:get(provenance, Definition, class_body)
    }.

with_method(Side, Selector, Method, State) ->
    Methods = maps:get(Side, State),
    State#{Side := Methods#{Selector => Method}}.

publish(#{name := Name, row := Row, instance := Instance, class := ClassSide} = State) ->
    ok = beamtalk_embedded_table:put_methods(Name, Instance),
    ok = beamtalk_embedded_table:put_methods(beamtalk_image_names:class_tag(Name), ClassSide),
    ok = beamtalk_embedded_table:put_class(Name, Row),
    State.

redefine(#{name := Name} = State) ->
    Published = publish(State),
    ok = beamtalk_extensions:safe_xref(fun() -> beamtalk_xref:purge_class(Name) end),
    register_rows(Published),
    register_uses(Published),
    ok = beamtalk_protocol_registry:invalidate_conforms_cache(),
    Published.

register_rows(#{name := Name, origins := Origins} = State) ->
    case {rows(State), whereis(beamtalk_xref)} of
        {[], _} ->
            ok;
        {_, undefined} ->
            ok;
        {Rows, _} ->
            _ = is_map(Origins) andalso beamtalk_xref:set_provenance(Name, Origins),
            beamtalk_xref:register_class(Name, Rows)
    end.

register_uses(#{name := Name, row := #{module := Module}, uses := Uses}) ->
    beamtalk_protocol_registry:register_uses(Name, Module, Uses).

rows(#{stated_rows := Rows}) when is_list(Rows) ->
    Rows;
rows(#{instance := Instance, class := ClassSide}) ->
    [row(Selector, Method, false) || {Selector, Method} <- maps:to_list(Instance)] ++
        [row(Selector, Method, true) || {Selector, Method} <- maps:to_list(ClassSide)].

row(Selector, #{line := Line, sends := Sends, references := References, provenance := Provenance}, ClassSide) ->
    #{selector => Selector, class_side => ClassSide, line => Line, sends => Sends, references => References,
        source_status => indexed, provenance => Provenance}.
