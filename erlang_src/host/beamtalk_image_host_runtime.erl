%% @doc The host adapter for a real `beamtalk_runtime'. It depends on nothing at compile time: a host function that
%% does not exist, or whose server is away, degrades as each clause says.
-module(beamtalk_image_host_runtime).
-behaviour(beamtalk_image_host).

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
    make_set/1,
    home_dir/0,
    set_log_domain/1,
    class_name/1,
    defines_locally/3,
    class_source/1,
    remove_method/3,
    raise_error/1
]).

-spec whereis_class(atom()) -> pid() | undefined.
whereis_class(Name) ->
    or_default(beamtalk_class_registry, whereis_class, [Name], undefined).

-spec loaded_classes() -> [{atom(), pid()}].
loaded_classes() ->
    or_default(beamtalk_class_registry, loaded_class_entries, [], []).

-spec live_classes() -> [{atom(), module(), pid()}].
live_classes() ->
    or_default(beamtalk_class_registry, live_class_entries, [], []).

-spec descendants(atom()) -> [atom()].
descendants(Name) ->
    or_default(beamtalk_class_registry, all_subclasses, [Name], []).

-spec superclass_row(atom()) -> {ok, atom()} | not_found.
superclass_row(Name) ->
    or_default(beamtalk_class_metadata, lookup_superclass, [Name], not_found).

-spec instance_selectors(pid()) -> [atom()].
instance_selectors(Pid) ->
    if_defined(beamtalk_object_class, methods, [Pid], []).

-spec class_selectors(pid()) -> [atom()].
class_selectors(Pid) ->
    if_defined(beamtalk_object_class, local_class_methods, [Pid], []).

-spec class_superclass(pid()) -> atom().
class_superclass(Pid) ->
    if_defined(beamtalk_object_class, superclass, [Pid], none).

%% A host that cannot say raises `undef'.
-spec understands(atom(), atom()) -> boolean().
understands(Class, Selector) ->
    apply(beamtalk_behaviour_intrinsics, classCanUnderstandFromName, [Class, Selector]).

-spec start_class(atom(), map()) -> beamtalk_image_host:start_result().
start_class(Name, Info) ->
    if_defined(beamtalk_object_class, start, [Name, Info], {error, no_class_processes}).

%% The compiler's word counts where it says something sensible. Where it is absent, dead or slow, where it finds fault with
%% the text, or answers what no compiler may, the image's own reader answers, which takes any text.
-spec find_sends(binary()) -> {ok, [beamtalk_image_host:hit()]} | {error, term()}.
find_sends(Source) ->
    case or_default(beamtalk_compiler, find_all_sends_in_source, [Source], no_answer) of
        {ok, Hits} = Answer ->
            case are_hits(Hits) of
                true -> Answer;
                false -> beamtalk_lang:find_all_sends_in_source(Source)
            end;
        _ ->
            beamtalk_lang:find_all_sends_in_source(Source)
    end.

are_hits([#{selector := Selector, line := Line, recv := Recv, target_module := Module} | Rest]) when
    is_binary(Selector), is_integer(Line), Line > 0, is_atom(Recv), is_binary(Module)
->
    are_hits(Rest);
are_hits(Rest) ->
    Rest =:= [].

-spec method_span(binary(), binary(), binary(), instance | class) ->
    {ok, map(), binary()} | {error, atom(), term()}.
method_span(Source, Class, Selector, Side) ->
    Answer = or_default(beamtalk_compiler, resolve_method_span, [Source, Class, Selector, Side], no_answer),
    case is_span(Answer, Source) of
        true -> Answer;
        false -> beamtalk_lang:resolve_method_span(Source, Class, Selector, Side)
    end.

%% Bytes that do not stand at the span would be spliced over others.
is_span({ok, #{start := Start, 'end' := End}, Body}, Source) when
    is_integer(Start), is_integer(End), is_binary(Body), 0 =< Start, Start =< End, End =< byte_size(Source)
->
    binary:part(Source, Start, End - Start) =:= Body;
is_span({error, Reason, _Message}, _Source) ->
    lists:member(Reason, [class_not_found, selector_not_found, ambiguous, bad_argument]);
is_span(_, _Source) ->
    false.

-spec diff(binary(), binary()) -> binary() | undefined.
diff(Old, New) ->
    or_default(beamtalk_workspace_diff, unified, [Old, New], undefined).

-spec make_set([term()]) -> map().
make_set(Elements) ->
    or_default(beamtalk_set, from_list, [Elements],
        #{'$beamtalk_class' => 'Set', elements => lists:usort(Elements)}).

-spec home_dir() -> string() | false.
home_dir() ->
    or_default(beamtalk_platform, home_dir, [], false).

-spec set_log_domain(atom()) -> ok.
set_log_domain(Domain) ->
    case or_default(beamtalk_logging_config, set_domain, [Domain], undefined) of
        ok -> ok;
        _ -> logger:update_process_metadata(#{domain => [beamtalk, Domain]})
    end.

-spec class_name(pid()) -> atom().
class_name(Pid) ->
    apply(beamtalk_object_class, class_name, [Pid]).

-spec defines_locally(atom(), atom(), instance | class) -> boolean().
defines_locally(Class, Selector, Side) ->
    case whereis_class(Class) of
        undefined -> false;
        Pid when Side =:= instance -> lists:member(Selector, instance_selectors(Pid));
        Pid -> lists:member(Selector, class_selectors(Pid))
    end.

-spec class_source(atom()) -> binary() | undefined.
class_source(Class) ->
    case or_default(beamtalk_workspace_meta, get_class_source, [atom_to_binary(Class)], undefined) of
        {ok, Source} when is_binary(Source) -> Source;
        Source when is_binary(Source) -> Source;
        _ -> undefined
    end.

%% The library's own refusal to touch its classes is for reverts; a removal is merely not flushable.
-spec remove_method(atom(), atom(), instance | class) -> removed | absent | {error, term()}.
remove_method(Class, Selector, Side) ->
    Arguments = [atom_to_binary(Class), Selector, Side, allow_stdlib],
    case if_defined(beamtalk_repl_eval, remove_method, Arguments, {error, no_workspace}) of
        {error, {method_not_found, _}} -> absent;
        {error, Reason} -> {error, Reason};
        _Removed -> removed
    end.

-spec raise_error(tuple()) -> no_return().
raise_error(Error) ->
    case if_defined(beamtalk_error, raise, [Error], not_raised) of
        not_raised -> error(#{'$beamtalk_class' => 'Error', error => Error})
    end.

%% The default when the function does not exist or fails: for questions whose failure means the same as no answer.
or_default(Module, Function, Args, Default) ->
    try
        apply(Module, Function, Args)
    catch
        _:_ -> Default
    end.

%% The default only when the function does not exist; a failure goes to who asked.
if_defined(Module, Function, Args, Default) ->
    try
        apply(Module, Function, Args)
    catch
        error:undef:Stack ->
            case Stack of
                [{Module, Function, Args, _} | _] -> Default;
                _ -> erlang:raise(error, undef, Stack)
            end
    end.
