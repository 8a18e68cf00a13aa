%% @doc The host adapter of the embedded image: what the registries ask is answered from its tables and
%% processes.
-module(beamtalk_embedded_host).
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
    class_name/1,
    defines_locally/3,
    local_source/3,
    class_origin/1,
    class_source/1,
    file_scope/1,
    extension_file/3,
    remove_method/3,
    run_in_class/2,
    evaluate/1,
    raise_error/1,
    home_dir/0
]).

-spec whereis_class(atom()) -> pid() | undefined.
whereis_class(Name) ->
    case beamtalk_embedded_table:class(Name) of
        #{pid := Pid} -> Pid;
        undefined -> undefined
    end.

-spec loaded_classes() -> [{atom(), pid()}].
loaded_classes() ->
    [{Name, Pid} || {Name, #{pid := Pid}} <- beamtalk_embedded_table:classes(), is_process_alive(Pid)].

-spec live_classes() -> [{atom(), module(), pid()}].
live_classes() ->
    [{Name, Module, Pid}
        || {Name, #{module := Module, pid := Pid}} <- beamtalk_embedded_table:classes(), is_process_alive(Pid)].

-spec descendants(atom()) -> [atom()].
descendants(Name) -> beamtalk_embedded_table:all_subclasses(Name).

-spec superclass_row(atom()) -> {ok, atom()} | not_found.
superclass_row(Name) ->
    case beamtalk_embedded_table:class(Name) of
        #{superclass := Super} -> {ok, Super};
        undefined -> not_found
    end.

-spec instance_selectors(pid()) -> [atom()].
instance_selectors(Pid) -> beamtalk_embedded_class:methods(Pid).

-spec class_selectors(pid()) -> [atom()].
class_selectors(Pid) -> beamtalk_embedded_class:class_methods(Pid).

-spec class_superclass(pid()) -> atom().
class_superclass(Pid) -> beamtalk_embedded_class:superclass(Pid).

-spec understands(atom(), atom()) -> boolean().
understands(Class, Selector) ->
    whereis_class(Class) =/= undefined andalso beamtalk_embedded_dispatch:understands(Class, Selector).

-spec start_class(atom(), map()) -> beamtalk_image_host:start_result().
start_class(Name, Info) -> beamtalk_embedded_class:start(Name, maps:without([class_methods], Info)).

-spec find_sends(binary()) -> {ok, [beamtalk_lang:send()]} | {error, [beamtalk_lang:diagnostic()]}.
find_sends(Source) -> beamtalk_lang:find_all_sends_in_source(Source).

-spec method_span(binary(), binary(), binary(), instance | class) ->
    {ok, beamtalk_lang:span(), binary()} | {error, atom(), binary()}.
method_span(Source, Class, Selector, Side) -> beamtalk_lang:resolve_method_span(Source, Class, Selector, Side).

-spec class_name(pid()) -> atom().
class_name(Pid) -> beamtalk_embedded_class:class_name(Pid).

-spec defines_locally(atom(), atom(), instance | class) -> boolean().
defines_locally(Class, Selector, Side) ->
    beamtalk_embedded_dispatch:local_definition(Class, Selector, Side) =/= undefined.

-spec local_source(atom(), atom(), instance | class) -> binary() | undefined.
local_source(Class, Selector, Side) ->
    case beamtalk_embedded_dispatch:local_definition(Class, Selector, Side) of
        {ok, #{source := Source}} -> Source;
        undefined -> undefined
    end.

-spec class_origin(atom()) -> beamtalk_image_host:class_origin().
class_origin(Class) ->
    case beamtalk_embedded_table:class(Class) of
        #{origin := Origin} -> Origin;
        undefined -> dynamic
    end.

-spec class_source(atom()) -> binary() | undefined.
class_source(Class) ->
    case beamtalk_embedded_table:class(Class) of
        #{source := Source} -> Source;
        undefined -> undefined
    end.

%% The project is the directory that the image was started in.
-spec file_scope(binary()) -> project | dependency.
file_scope(File) -> beamtalk_embedded:file_scope(File).

-spec extension_file(atom(), atom(), atom()) -> {ok, binary()} | unknown.
extension_file(Owner, _ClassKey, _Selector) -> beamtalk_embedded:extension_file(Owner).

-spec remove_method(atom(), atom(), instance | class) -> removed | absent | {error, term()}.
remove_method(Class, Selector, Side) ->
    case whereis_class(Class) of
        undefined ->
            {error, {class_not_found, Class}};
        Pid when Pid =:= self() ->
            {error, beamtalk_image_errors:structured(dispatch_error, Class, Selector,
                io_lib:format("~ts cannot be changed from within its own process", [Class]),
                <<"change it from another process">>, #{})};
        _Pid ->
            beamtalk_embedded_loader:remove(Class, Selector, Side)
    end.

-spec run_in_class(pid(), fun(() -> term())) -> term().
run_in_class(Pid, Fun) -> beamtalk_embedded_class:run(Pid, Fun).

-spec evaluate(iodata()) -> {ok, term()} | {error, beamtalk_image_errors:structured()}.
evaluate(Text) -> beamtalk_embedded_session:program(Text).

-spec raise_error(tuple()) -> no_return().
raise_error(Error) ->
    error(#{'$beamtalk_class' => 'Error', error => Error}).

-spec home_dir() -> string() | false.
home_dir() -> os:getenv("HOME").
