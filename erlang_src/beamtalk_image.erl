%% @doc The façade of the image: what it holds, emptying it, removing a class everywhere, log level.
-module(beamtalk_image).

-include_lib("kernel/include/logger.hrl").

-export([eval/1, info/0, clear/1, class_removed/2, set_log_level/1, sync/0, version/0]).
-export_type([info/0, log_level/0]).

-type info() :: #{
    version := binary(),
    nif := loaded | {not_loaded, term()},
    allocated_bytes := non_neg_integer(),
    log_lines_dropped := non_neg_integer(),
    extensions := #{atom() => non_neg_integer()},
    xref := #{atom() => non_neg_integer()},
    protocols := #{atom() => non_neg_integer()}
}.

-type log_level() :: off | error | warning | info | debug | trace.

%% @doc Runs a text of Beamtalk in the image that runs in this node and answers the value of its last part, as
%% {@link beamtalk_image_host:evaluate/1} does: definitions, changes of methods, expressions. Variables live
%% as long as the call. A text that cannot be read runs not at all; one that fails leaves the parts before the
%% failure done.
-spec eval(iodata()) -> {ok, Value :: term()} | {error, beamtalk_image_errors:structured()}.
eval(Text) ->
    beamtalk_image_host:evaluate(Text).

%% @doc What the image holds: counts, the version of the last change, and bytes, for each registry. Cost: one
%% walk over everything, on a dirty scheduler.
-spec info() -> info().
info() ->
    case beamtalk_image_nif:load_error() of
        none ->
            #{
                version => version(),
                nif => loaded,
                allocated_bytes => beamtalk_image_nif:allocated(),
                log_lines_dropped => beamtalk_image_nif:log_dropped(),
                extensions => maps:from_list(beamtalk_image_nif:extension_counts()),
                xref => maps:from_list(beamtalk_image_nif:xref_counts()),
                protocols => maps:from_list(beamtalk_image_nif:protocol_counts())
            };
        Reason ->
            #{version => version(), nif => {not_loaded, Reason}, allocated_bytes => 0,
                log_lines_dropped => 0, extensions => #{}, xref => #{}, protocols => #{}}
    end.

%% @doc Empties one registry, leaving it open. Conformance answers go with any of them. The rows of extensions
%% follow the extension registry: they go with it, and an emptied index gets those of the extensions that are
%% registered.
-spec clear(extensions | xref | protocols) -> ok.
clear(extensions) ->
    beamtalk_extensions:clear();
clear(xref) ->
    ok = beamtalk_image_nif:xref_clear(),
    ok = beamtalk_extensions:index_all(),
    beamtalk_protocol_registry:invalidate_conforms_cache();
clear(protocols) ->
    beamtalk_image_nif:protocol_clear().

%% @doc Takes a removed class out of every registry: its rows, the extensions on both of its sides, the
%% protocols of its module, its uses. The class leaves each registry in one step for each of its sides, all
%% are done on return, and rows of others, such as their references to the class, stay. A registry that is
%% away is left out.
-spec class_removed(Name :: atom(), Module :: module()) -> ok.
class_removed(Name, Module) when is_atom(Name), is_atom(Module) ->
    Keys =
        case beamtalk_image_names:tag_of(Name) of
            {ok, Tag} -> [Name, Tag];
            none -> [Name]
        end,
    Extensions = [fun() -> beamtalk_extensions:purge_class(Key) end || Key <- Keys],
    Rows = [
        fun() -> beamtalk_extensions:safe_xref(fun() -> forget_rows(Key) end) end
        || Key <- Keys
    ],
    Protocols = [
        fun() -> forget_uses(Name) end,
        fun() -> beamtalk_protocol_registry:unregister_protocol(Module) end
    ],
    lists:foreach(fun(Step) -> attempt(Name, Step) end, Extensions ++ Rows ++ Protocols).

%% The original registries, which a mixed installation may still have, know less.
forget_rows(Key) ->
    case erlang:function_exported(beamtalk_xref, forget_class, 1) of
        true -> beamtalk_xref:forget_class(Key);
        false -> beamtalk_xref:purge_class(Key)
    end.

forget_uses(Name) ->
    case erlang:function_exported(beamtalk_protocol_registry, unregister_uses, 1) of
        true -> beamtalk_protocol_registry:unregister_uses(Name);
        false -> ok
    end.

attempt(Name, Step) ->
    try
        ok = Step()
    catch
        Class:Reason ->
            ?LOG_WARNING("removing class ~tp from a registry failed: ~tp:~tp", [Name, Class, Reason],
                #{domain => [beamtalk, runtime]}),
            ok
    end.

%% @doc Has the library's own diagnosis, from this level up, sent to the logger; `off', the default, costs
%% nothing. An unknown level raises `function_clause'.
-spec set_log_level(log_level()) -> ok.
set_log_level(Level) when
    Level =:= off; Level =:= error; Level =:= warning; Level =:= info; Level =:= debug; Level =:= trace
->
    beamtalk_image_nif:log_level(Level).

%% @doc Waits until background indexing handed in before this call is done.
-spec sync() -> ok.
sync() ->
    beamtalk_image_indexer:sync().

%% @doc The version of the application.
-spec version() -> binary().
version() ->
    case application:get_key(beamtalk_image, vsn) of
        {ok, Version} -> list_to_binary(Version);
        undefined -> <<"unknown">>
    end.
