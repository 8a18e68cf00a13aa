%% @doc What the image asks of its host, as one behaviour, and the one place it is asked from.
%%
%% The host is the module named by the application's environment key `host'; the default, {@link
%% beamtalk_image_host_runtime}, speaks to a real `beamtalk_runtime'. A host that lacks a callback gets that
%% callback's default, which each function below states. Callbacks may exit or raise: who asks decides what a
%% failure means, so the functions here hand failures on unless they say otherwise.
%%
%% Nothing in the image asks the host while it holds a lock or a server process that others need.
-module(beamtalk_image_host).

-export([module/0, set_module/1]).
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
    local_source/3,
    class_origin/1,
    file_scope/1,
    class_source/1,
    extension_file/3,
    remove_method/3,
    author/0,
    run_in_class/2,
    evaluate/1,
    raise_error/1
]).
-export_type([class_name/0, selector/0, side/0, start_result/0, hit/0, class_origin/0]).

-type class_name() :: atom().
-type selector() :: atom().
-type side() :: instance | class.
-type class_origin() :: {file, binary()} | stdlib | dynamic.
%% Where a class's text lives: a file, the standard library, or nowhere.
-type start_result() :: {ok, pid()} | {error, {already_started, pid()}} | {error, term()}.
-type hit() :: #{
    selector := binary(), line := pos_integer(), recv := atom(), target_module := binary(), _ => _
}.
%% One send that the compiler found: selector, line within the text, receiver (`self', `super', `erlang_ffi'
%% or `other') and the foreign module, empty if there is none.

-callback whereis_class(class_name()) -> pid() | undefined.
-callback loaded_classes() -> [{class_name(), pid()}].
-callback live_classes() -> [{class_name(), module(), pid()}].
-callback descendants(class_name()) -> [class_name()].
-callback superclass_row(class_name()) -> {ok, class_name() | none} | not_found.
-callback instance_selectors(pid()) -> [selector()].
-callback class_selectors(pid()) -> [selector()].
-callback class_superclass(pid()) -> class_name() | none.
-callback understands(class_name(), selector()) -> boolean().
-callback start_class(class_name(), map()) -> start_result().
-callback find_sends(binary()) -> {ok, [hit()]} | {error, term()} | term().
-callback method_span(binary(), binary(), binary(), instance | class) ->
    {ok, map(), binary()} | {error, atom(), term()}.
-callback diff(binary(), binary()) -> binary() | undefined.
-callback make_set([term()]) -> map().
-callback home_dir() -> string() | false.
-callback set_log_domain(atom()) -> ok.
-callback class_name(pid()) -> class_name().
-callback defines_locally(class_name(), selector(), side()) -> boolean().
-callback local_source(class_name(), selector(), side()) -> binary() | undefined.
-callback class_origin(class_name()) -> class_origin().
-callback file_scope(binary()) -> project | dependency.
-callback class_source(class_name()) -> binary() | undefined.
-callback extension_file(Owner :: atom(), ClassKey :: atom(), selector()) -> {ok, binary()} | unknown.
-callback remove_method(class_name(), selector(), side()) -> removed | absent | {error, term()}.
-callback author() -> {human | agent, binary()}.
-callback run_in_class(pid(), fun(() -> term())) -> term().
-callback evaluate(iodata()) -> {ok, term()} | {error, tuple()}.
-callback raise_error(tuple()) -> no_return().

-optional_callbacks([
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
    local_source/3,
    class_origin/1,
    file_scope/1,
    class_source/1,
    extension_file/3,
    remove_method/3,
    author/0,
    run_in_class/2,
    evaluate/1,
    raise_error/1
]).

-define(KEY, {?MODULE, module}).

%% @doc The module that answers for the host.
-spec module() -> module().
module() ->
    case persistent_term:get(?KEY, undefined) of
        undefined -> application:get_env(beamtalk_image, host, beamtalk_image_host_runtime);
        Module -> Module
    end.

%% @doc Makes `Module' the host; `undefined' goes back to the application's environment. For boot and tests:
%% every process is scanned once when a host is replaced.
-spec set_module(module() | undefined) -> ok.
set_module(undefined) ->
    _ = persistent_term:erase(?KEY),
    ok;
set_module(Module) when is_atom(Module) ->
    persistent_term:put(?KEY, Module).

%% @doc The process of a class, by one look-up and no message. Default: `undefined'.
-spec whereis_class(class_name()) -> pid() | undefined.
whereis_class(Name) -> ask(whereis_class, [Name], undefined).

%% @doc Names and processes of the loaded classes, in no order, without messages. Default: none.
-spec loaded_classes() -> [{class_name(), pid()}].
loaded_classes() -> ask(loaded_classes, [], []).

%% @doc Names, modules and processes of the classes that answer; one message a class. Default: none.
-spec live_classes() -> [{class_name(), module(), pid()}].
live_classes() -> ask(live_classes, [], []).

%% @doc Every transitive subclass of a class. Default: none.
-spec descendants(class_name()) -> [class_name()].
descendants(Name) -> ask(descendants, [Name], []).

%% @doc The superclass on record, without a message; `none' for a root. Default: `not_found'.
-spec superclass_row(class_name()) -> {ok, class_name() | none} | not_found.
superclass_row(Name) -> ask(superclass_row, [Name], not_found).

%% @doc Selectors that a class defines on its instance side, by a message to it. Default: none.
-spec instance_selectors(pid()) -> [selector()].
instance_selectors(Pid) -> ask(instance_selectors, [Pid], []).

%% @doc Selectors that a class defines on its class side, by a message to it. Default: none.
-spec class_selectors(pid()) -> [selector()].
class_selectors(Pid) -> ask(class_selectors, [Pid], []).

%% @doc The superclass, by a message to the class. Default: `none'.
-spec class_superclass(pid()) -> class_name() | none.
class_superclass(Pid) -> ask(class_superclass, [Pid], none).

%% @doc Whether instances of the class understand the selector; several messages along its chain. There is no
%% default: a host that cannot say makes this raise `error:undef', since a guess must not be remembered.
-spec understands(class_name(), selector()) -> boolean().
understands(Class, Selector) -> (module()):understands(Class, Selector).

%% @doc Starts a class process; its start-up, which calls into the registries, is over when this returns.
%% Default: `{error, no_host}'.
-spec start_class(class_name(), map()) -> start_result().
start_class(Name, Info) -> ask(start_class, [Name, Info], {error, no_host}).

%% @doc Every send in the text of one method, as the host's compiler sees it: `{ok, [hit()]}' or an error. A
%% compiler is a process of its own that may answer anything, so whoever asks checks. Default: `{error,
%% no_compiler}'.
-spec find_sends(binary()) -> term().
find_sends(Source) -> ask(find_sends, [Source], {error, no_compiler}).

%% @doc Where a method stands in the text of a file, as a map of byte offsets `start' and `end' and the bytes
%% inside. Default: `{error, noproc, _}'.
-spec method_span(binary(), binary(), binary(), instance | class) ->
    {ok, map(), binary()} | {error, atom(), term()}.
method_span(Source, Class, Selector, Side) ->
    ask(method_span, [Source, Class, Selector, Side], {error, noproc, <<"no compiler">>}).

%% @doc The difference between two texts, line by line. Default: `undefined'.
-spec diff(binary(), binary()) -> binary() | undefined.
diff(Old, New) -> ask(diff, [Old, New], undefined).

%% @doc A Set value object over the elements. Default: built here.
-spec make_set([term()]) -> map().
make_set(Elements) ->
    ask(make_set, [Elements], #{'$beamtalk_class' => 'Set', elements => lists:usort(Elements)}).

%% @doc The user's home directory. Default: `false'.
-spec home_dir() -> string() | false.
home_dir() -> ask(home_dir, [], false).

%% @doc Gives the calling process the log domain `[beamtalk, Domain]'. Default: done here.
-spec set_log_domain(atom()) -> ok.
set_log_domain(Domain) ->
    case ask(set_log_domain, [Domain], undefined) of
        ok -> ok;
        _ -> logger:update_process_metadata(#{domain => [beamtalk, Domain]})
    end.

%% @doc The name of a class, by a message to it. No default: a class object that names no class is an error.
-spec class_name(pid()) -> class_name().
class_name(Pid) -> (module()):class_name(Pid).

%% @doc Whether the class itself, extensions aside, defines the selector on that side. Default: `false'.
-spec defines_locally(class_name(), selector(), side()) -> boolean().
defines_locally(Class, Selector, Side) -> ask(defines_locally, [Class, Selector, Side], false).

%% @doc The text of a method as the running class has it. Default: `undefined'.
-spec local_source(class_name(), selector(), side()) -> binary() | undefined.
local_source(Class, Selector, Side) -> ask(local_source, [Class, Selector, Side], undefined).

%% @doc Where the text of a class lives. Default: `dynamic', nowhere.
-spec class_origin(class_name()) -> class_origin().
class_origin(Class) -> ask(class_origin, [Class], dynamic).

%% @doc Whether a file belongs to the project that is being worked on. Default: `dependency', which is never
%% written.
-spec file_scope(binary()) -> project | dependency.
file_scope(File) -> ask(file_scope, [File], dependency).

%% @doc The tracked text of a class. Default: `undefined'.
-spec class_source(class_name()) -> binary() | undefined.
class_source(Class) -> ask(class_source, [Class], undefined).

%% @doc The file in which an owner extends a class with a selector. Default: `unknown'.
-spec extension_file(atom(), atom(), selector()) -> {ok, binary()} | unknown.
extension_file(Owner, ClassKey, Selector) -> ask(extension_file, [Owner, ClassKey, Selector], unknown).

%% @doc Recompiles a class without one of its methods, the library's classes included. Default: an error.
-spec remove_method(class_name(), selector(), side()) -> removed | absent | {error, term()}.
remove_method(Class, Selector, Side) -> ask(remove_method, [Class, Selector, Side], {error, no_workspace}).

%% @doc Who makes the current change. Default: by the process dictionary of the caller, as the runtime does.
-spec author() -> {human | agent, binary()}.
author() ->
    case ask(author, [], undefined) of
        undefined -> author(get('$beamtalk_author_kind'), get('$beamtalk_author'));
        Author -> Author
    end.

author(agent, Name) when is_binary(Name) -> {agent, Name};
author(agent, _) -> {agent, <<"agent">>};
author(_, Name) when is_binary(Name) -> {human, Name};
author(_, _) -> {human, <<"repl">>}.

%% @doc Runs a fun where blocks handed to a class run, and answers or raises what it does. Default: in the
%% caller.
-spec run_in_class(pid(), fun(() -> term())) -> term().
run_in_class(Class, Fun) ->
    Module = module(),
    case has(Module, run_in_class, 2) of
        true -> Module:run_in_class(Class, Fun);
        false -> Fun()
    end.

%% @doc Runs a text of the language and answers the value of its last statement. Default: `no_workspace'.
-spec evaluate(iodata()) -> {ok, term()} | {error, tuple()}.
evaluate(Text) ->
    ask(evaluate, [Text], {error, {beamtalk_error, no_workspace, undefined, undefined,
        <<"nothing runs here that could evaluate Beamtalk">>, <<"start an image first">>, #{}}}).

%% @doc Raises a structured error as the language sees it. Default: an exception map around it.
-spec raise_error(tuple()) -> no_return().
raise_error(Error) ->
    Module = module(),
    case has(Module, raise_error, 1) of
        true -> Module:raise_error(Error);
        false -> error(#{'$beamtalk_class' => 'Error', error => Error})
    end.

has(Module, Function, Arity) ->
    _ = code:ensure_loaded(Module),
    erlang:function_exported(Module, Function, Arity).

%% A callback that the host does not have is an `undef' of exactly that function; one deeper down is the
%% host's own.
ask(Function, Args, Default) ->
    Module = module(),
    try
        apply(Module, Function, Args)
    catch
        error:undef:Stack ->
            case Stack of
                [{Module, Function, Args, _} | _] -> Default;
                _ -> erlang:raise(error, undef, Stack)
            end
    end.
