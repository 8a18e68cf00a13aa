%% A class process of the fake host. It answers the questions that the image may ask a class, counts each one,
%% and runs its start-up and redefinition inside itself, as the runtime does.
-module(beamtalk_image_fake_class).
-behaviour(gen_server).

-export([start/3, ask/3]).
-export([init/1, handle_call/3, handle_cast/2, terminate/2]).

%% Starts a class; its start-up is over when this returns.
-spec start(atom(), map(), ets:table()) -> {ok, pid()} | {error, term()}.
start(Name, Info, Table) ->
    case ets:lookup(Table, {class, Name}) of
        [{_, Pid}] ->
            case is_process_alive(Pid) of
                true ->
                    {error, {already_started, Pid}};
                false ->
                    ets:delete(Table, {class, Name}),
                    spawn_class(Name, Info, Table)
            end;
        [] ->
            spawn_class(Name, Info, Table)
    end.

%% The reason of a failed start-up travels as a shutdown, which nobody reports as a crash.
spawn_class(Name, Info, Table) ->
    case gen_server:start(?MODULE, {Name, Info, Table}, []) of
        {ok, Pid} -> {ok, Pid};
        {error, {shutdown, Reason}} -> {error, Reason}
    end.

%% One message to the class. Exits as any call to a process does: without process, without answer, or to
%% itself.
-spec ask(pid(), term(), timeout()) -> term().
ask(Pid, Question, Timeout) ->
    gen_server:call(Pid, Question, Timeout).

init({Name, Info, Table}) ->
    process_flag(trap_exit, true),
    State = #{name => Name, info => Info, table => Table, slow => false},
    %% Listed before its start-up, so that the registries can see a class that is still starting.
    case ets:insert_new(Table, {{class, Name}, self()}) of
        true ->
            ets:insert(Table, {{super, Name}, maps:get(superclass, Info, none)}),
            try
                ok = start_up(Name, Info, Table),
                {ok, State}
            catch
                Class:Reason:Stack ->
                    ets:delete(Table, {class, Name}),
                    ets:delete(Table, {super, Name}),
                    {stop, {shutdown, {start_up, Class, Reason, Stack}}}
            end;
        false ->
            {stop, {shutdown, {already_started, ets:lookup_element(Table, {class, Name}, 2)}}}
    end.

start_up(Name, Info, Table) ->
    case Info of
        #{method_xref := [_ | _] = Rows} -> register_rows(Name, Rows);
        _ -> ok
    end,
    register_uses(Name, Info, Table),
    ok = beamtalk_protocol_registry:invalidate_conforms_cache().

%% The runtime looks for the name and skips the indexing without a word if nobody has it.
register_rows(Name, Rows) ->
    case whereis(beamtalk_xref) of
        undefined -> ok;
        _ -> ok = beamtalk_xref:register_class(Name, Rows)
    end.

%% Only a host that knows traits says what a class uses; it always does.
register_uses(Name, Info, Table) ->
    case ets:lookup(Table, {option, traits}) of
        [{_, true}] -> ok = beamtalk_protocol_registry:register_uses(Name, maps:get(uses, Info, []));
        _ -> ok
    end.

handle_call(Question, From, State) ->
    #{name := Name, table := Table} = State,
    count(Table, Name, Question),
    case State of
        #{slow := true} when not is_tuple(Question); element(1, Question) =/= slow -> {noreply, State};
        _ -> answer(Question, From, State)
    end.

count(Table, Name, Question) when is_atom(Question) ->
    count(Table, Name, {Question});
count(Table, Name, Question) ->
    Asked = [instance_selectors, class_selectors, superclass, defines, live],
    case lists:member(element(1, Question), Asked) of
        true -> ets:update_counter(Table, {messages, Name}, 1, {{messages, Name}, 0});
        false -> ok
    end.

answer(live, _From, #{info := Info} = State) ->
    {reply, maps:get(module, Info, undefined), State};
answer(instance_selectors, _From, #{info := Info} = State) ->
    {reply, selectors(instance_methods, Info), State};
answer(class_selectors, _From, #{info := Info} = State) ->
    {reply, selectors(class_methods, Info), State};
answer(superclass, _From, #{info := Info} = State) ->
    {reply, maps:get(superclass, Info, none), State};
answer({defines, Selector}, _From, #{info := Info} = State) ->
    {reply, lists:member(Selector, selectors(instance_methods, Info)), State};
answer({slow, Slow}, _From, State) ->
    {reply, ok, State#{slow := Slow}};
answer({run, Fun}, _From, State) ->
    {reply, Fun(), State};
answer({put_method, ClassSide, Selector, Source}, _From, State) ->
    #{name := Name, info := Info} = State,
    Key =
        case ClassSide of
            true -> class_methods;
            false -> instance_methods
        end,
    Entry = beamtalk_xref:build_method_entry(ClassSide, Selector, Source, indexed, put_method),
    case whereis(beamtalk_xref) of
        undefined -> ok;
        _ -> ok = beamtalk_xref:put_method(Name, ClassSide, Selector, Entry)
    end,
    ok = beamtalk_protocol_registry:invalidate_conforms_cache(),
    Methods = lists:usort([Selector | selectors(Key, Info)]),
    {reply, ok, State#{info := Info#{Key => Methods}}};
answer({redefine, Info}, _From, #{name := Name, table := Table} = State) ->
    ets:insert(Table, {{super, Name}, maps:get(superclass, Info, none)}),
    case whereis(beamtalk_xref) of
        undefined -> ok;
        _ -> ok = beamtalk_xref:purge_class(Name)
    end,
    ok = start_up(Name, Info, Table),
    {reply, ok, State#{info := Info}}.

%% Methods come as a map from selectors, as the runtime has them, or as plain lists.
selectors(Key, Info) ->
    case maps:get(Key, Info, []) of
        Methods when is_map(Methods) -> lists:sort(maps:keys(Methods));
        Methods -> Methods
    end.

handle_cast(_Message, State) ->
    {noreply, State}.

terminate(_Reason, #{name := Name, table := Table}) ->
    %% An orderly end takes the class off the lists; a kill leaves it there, as a name registry does for a
    %% moment.
    _ = ets:info(Table, id) =/= undefined andalso ets:delete(Table, {class, Name}),
    _ = ets:info(Table, id) =/= undefined andalso ets:delete(Table, {super, Name}),
    ok.
