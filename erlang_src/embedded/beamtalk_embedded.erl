%% @doc A small image for whoever has no `beamtalk_runtime': it drives the registries as the runtime does, so
%% that what they do can be seen, tested and demonstrated with nothing else installed.
%%
%% Classes are loaded from Beamtalk text ({@link beamtalk_embedded_loader}) or defined from Erlang maps
%% ({@link beamtalk_embedded_class:definition()}). Class objects and actors are records as in the runtime,
%% values are tagged maps, blocks are funs. The library lies in `priv/bt'.
-module(beamtalk_embedded).
-behaviour(supervisor).

-export([start/1, stop/0]).
-export([define_class/2, extend/5, class/1, metaclass/1, send/2, send/3]).
-export([file_scope/1, extension_file/1]).
-export([init/1]).
-export_type([config/0]).

-type config() :: #{
    project => file:filename_all(),
    workspace_id => binary()
}.
%% The directory whose files count as the project's, and the workspace whose ChangeLog is kept; without one
%% the ChangeLog is in memory.

-define(CONFIG, {?MODULE, config}).

%% @doc Starts the image with its library. One image a node.
-spec start(config()) -> {ok, pid()} | {error, term()}.
start(Config) ->
    {ok, _} = application:ensure_all_started(beamtalk_image),
    persistent_term:put(?CONFIG, Config#{project => absolute(maps:get(project, Config, "."))}),
    ok = beamtalk_image_host:set_module(beamtalk_embedded_host),
    ok = beamtalk_extensions:init(),
    ok = beamtalk_protocol_registry:init(),
    case supervisor:start_link({local, ?MODULE}, ?MODULE, Config) of
        {ok, Pid} ->
            true = unlink(Pid),
            ok = beamtalk_embedded_loader:library(filename:join(code:priv_dir(beamtalk_image), "bt")),
            {ok, Pid};
        Error ->
            Error
    end.

%% @doc Stops the image: its classes go, the registries come to their orderly end.
-spec stop() -> ok.
stop() ->
    lists:foreach(fun({_Name, #{pid := Pid}}) -> beamtalk_embedded_class:stop(Pid) end,
        beamtalk_embedded_table:classes()),
    ok = gen_server:stop(?MODULE),
    ok = beamtalk_image:clear(extensions),
    ok = beamtalk_image:clear(protocols),
    _ = persistent_term:erase(?CONFIG),
    beamtalk_image_host:set_module(undefined).

%% @private
-spec init(config()) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init(Config) ->
    Children = [
        child(beamtalk_embedded_table, []),
        child(beamtalk_xref, []),
        child(beamtalk_workspace_changelog, [maps:with([workspace_id], Config)]),
        child(beamtalk_embedded_loader, [])
    ],
    {ok, {#{strategy => one_for_one, intensity => 10, period => 10}, Children}}.

child(Module, Args) ->
    #{id => Module, start => {Module, start_link, Args}, shutdown => 5_000}.

%% @doc Defines a class, or redefines a running one. Its rows are in the index when this returns.
-spec define_class(atom(), beamtalk_embedded_class:definition()) -> {ok, pid()} | {error, term()}.
define_class(Name, Definition) ->
    case beamtalk_embedded_table:class(Name) of
        undefined ->
            beamtalk_embedded_class:start(Name, Definition);
        #{pid := Pid} ->
            {ok, _Fields} = beamtalk_embedded_class:update(Name, Definition),
            {ok, Pid}
    end.

%% @doc Adds a method to a class from outside, as loading a package that extends it does.
-spec extend(atom(), atom(), fun(), Owner :: atom(), Source :: binary() | undefined) -> ok.
extend(ClassKey, Selector, Fun, Owner, Source) ->
    beamtalk_extensions:register(ClassKey, Selector, Fun, Owner, Source).

%% @doc The class object of a running class.
-spec class(atom()) -> {beamtalk_object, atom(), module(), pid()} | undefined.
class(Name) ->
    object(Name, beamtalk_image_names:class_tag(Name)).

%% @doc The metaclass of a running class: the receiver that stands for its class side.
-spec metaclass(atom()) -> {beamtalk_object, 'Metaclass', module(), pid()} | undefined.
metaclass(Name) ->
    object(Name, 'Metaclass').

object(Name, Receiver) ->
    case beamtalk_embedded_table:class(Name) of
        #{module := Module, pid := Pid} -> {beamtalk_object, Receiver, Module, Pid};
        undefined -> undefined
    end.

%% @doc Sends a message without arguments.
-spec send(term(), atom()) -> term().
send(Receiver, Selector) ->
    send(Receiver, Selector, []).

%% @doc Sends a message and answers its value; errors are raised as exception maps around a structured error.
-spec send(term(), atom(), [term()]) -> term().
send(Receiver, Selector, Args) ->
    beamtalk_embedded_dispatch:send(Receiver, Selector, Args).

%% @private
-spec file_scope(binary()) -> project | dependency.
file_scope(File) ->
    #{project := Project} = persistent_term:get(?CONFIG, #{project => absolute(".")}),
    Inside = filename:split(Project),
    case lists:prefix(Inside, filename:split(absolute(File))) of
        true -> project;
        false -> dependency
    end.

%% @private
%% The file that an owner's extensions were loaded from; else the owner is taken for the base name of a
%% project's file.
-spec extension_file(atom()) -> {ok, binary()} | unknown.
extension_file(Owner) ->
    #{project := Project} = persistent_term:get(?CONFIG, #{project => absolute(".")}),
    File =
        case beamtalk_embedded_table:owner(Owner) of
            {ok, {file, Loaded}} -> Loaded;
            _ -> filename:join(Project, <<(atom_to_binary(Owner))/binary, ".bt">>)
        end,
    case filelib:is_regular(File) of
        true -> {ok, File};
        false -> unknown
    end.

%% Without the dots that a file's path has not.
absolute(Path) ->
    Parts = [Part || Part <- filename:split(unicode:characters_to_binary(filename:absname(Path))), Part =/= <<".">>],
    filename:join(Parts).
