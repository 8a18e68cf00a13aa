%% @doc Loads Beamtalk text into the image and changes it there: files, new texts of single methods, removals.
%%
%% Everything is read and compiled before anything is loaded; the code of one text is loaded in one step, and
%% refused if old code that would have to go is still in use. Edits run one at a time, in a process of their
%% own that runs nothing else. A text that is refused changes nothing.
-module(beamtalk_embedded_loader).
-behaviour(gen_server).

-export([start_link/0, library/1, file/1, text/2, extension/3, patch/3, remove/3, unload/1]).
-export([refused/2]).
-export([init/1, handle_call/3, handle_cast/2]).
-export_type([loaded/0]).

-type origin() :: {file, binary()} | stdlib | dynamic.
-type loaded() :: {class | protocol | extensions, atom()}.

-define(LONGEST_FILE, 1024 * 1024).

%% @private
-spec start_link() -> gen_server:start_ret().
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% @doc Loads the library from a directory, superclasses first.
-spec library(file:name_all()) -> ok.
library(Directory) ->
    edit(fun() -> load_library(Directory) end).

%% @doc Loads a file. Answers what it declared, in its order; its statements have run. Raises a structured
%% error.
-spec file(file:name_all()) -> [loaded()].
file(Path) ->
    File = unicode:characters_to_binary(filename:absname(Path)),
    case readable(File) of
        {ok, Text} ->
            text(Text, {file, File});
        {error, Reason} ->
            beamtalk_live_errors:raise(file_error, 'Workspace', 'load:',
                io_lib:format("~ts cannot be read: ~ts", [Path, Reason]), undefined)
    end.

%% A file that is a pipe, a device or enormous is no class.
readable(File) ->
    case filelib:is_regular(File) andalso filelib:file_size(File) =< ?LONGEST_FILE of
        true ->
            case file:read_file(File) of
                {ok, Text} -> {ok, Text};
                {error, Reason} -> {error, file:format_error(Reason)}
            end;
        false ->
            {error, <<"it is no file of at most 1 MiB">>}
    end.

%% @doc Loads a text.
-spec text(binary(), origin()) -> [loaded()].
text(Text, Origin) ->
    Items = items(Text, Origin),
    Loaded = edit(fun() -> install(Items, Text, Origin) end),
    Statements = [Statement || {statement, Statement} <- Items],
    _ = beamtalk_embedded_eval:statements(Statements, nil, #{}),
    Loaded.

%% @doc Adds the extensions of a text for an owner, beside those that it has.
-spec extension(binary(), Owner :: atom(), origin()) -> ok.
extension(Text, Owner, Origin) ->
    Found = [Item || {extension, _, _} = Item <- items(Text, Origin)],
    %% A module of its own: the owner's other extensions stay in theirs.
    Part = binary_to_atom(<<(atom_to_binary(Owner))/binary, "@", (binary:encode_hex(erlang:md5(Text)))/binary>>),
    Unit = compiled(beamtalk_embedded_compiler:extensions(Found, Part, Text)),
    #{module := Module, beam := Beam, extensions := Extensions} = Unit,
    edit(fun() ->
        load_code([{Module, Beam}]),
        ok = beamtalk_embedded_table:put_owner(Owner, Origin),
        lists:foreach(fun({Key, Selector, Fun, Source}) ->
            ok = beamtalk_extensions:register(Key, Selector, Fun, Owner, Source)
        end, Extensions)
    end).

%% @doc Puts one method into a class: the text replaces the method of that selector, or is added. Answers the
%% selector.
-spec patch(Class :: atom(), Side :: instance | class, Method :: binary()) -> atom().
patch(Class, Side, Method) ->
    Selector =
        case beamtalk_reading:fragment(Method) of
            {ok, {method, Name, _, _, _, _}} -> Name;
            {error, Diagnostics} -> raise(refused(Class, Diagnostics))
        end,
    _ = edit(fun() -> recompile(Class, with_method(Class, Side, Selector, Method)) end),
    Selector.

%% @doc Recompiles a class without one of its methods.
-spec remove(atom(), atom(), instance | class) -> removed | absent | {error, term()}.
remove(Class, Selector, Side) ->
    try
        edit(fun() -> without_method(Class, Side, Selector) end)
    catch
        error:#{error := Error} -> {error, Error}
    end.

%% @doc Takes the code of a removed class away. Processes that still run it keep it.
-spec unload(module()) -> ok.
unload(Module) ->
    _ = code:soft_purge(Module) andalso code:delete(Module) andalso code:soft_purge(Module),
    ok.

%% ---- One edit at a time --------------------------------------------------------------------------------------

edit(Run) ->
    case gen_server:call(?MODULE, {edit, Run}, infinity) of
        {ok, Answer} -> Answer;
        {raised, Class, Reason, Stack} -> erlang:raise(Class, Reason, Stack)
    end.

%% @private
-spec init([]) -> {ok, []}.
init([]) ->
    {ok, []}.

%% @private
-spec handle_call(term(), gen_server:from(), []) -> {reply, term(), []}.
handle_call({edit, Run}, _From, []) ->
    Outcome =
        try
            {ok, Run()}
        catch
            Class:Reason:Stack -> {raised, Class, Reason, Stack}
        end,
    {reply, Outcome, []};
handle_call(_Request, _From, []) ->
    {reply, {error, unknown_request}, []}.

%% @private
-spec handle_cast(term(), []) -> {noreply, []}.
handle_cast(_Message, []) ->
    {noreply, []}.

%% ---- Compiling -----------------------------------------------------------------------------------------------

items(Text, Origin) ->
    case beamtalk_reading:items(Text, author(Origin)) of
        {ok, Items} -> Items;
        {error, Diagnostics} -> raise(refused(named(Origin), Diagnostics))
    end.

author(stdlib) -> library;
author(_) -> user.

named({file, File}) -> filename:basename(File);
named(_) -> <<"the text">>.

%% @doc The error for a text that does not read.
-spec refused(Where :: atom() | binary(), [beamtalk_lang:diagnostic(), ...]) -> beamtalk_image_errors:structured().
refused(Where, [#{line := Line, column := Column, message := Message} = First | Rest]) ->
    More =
        case Rest of
            [] -> [];
            _ -> io_lib:format(" (and ~b more)", [length(Rest)])
        end,
    beamtalk_image_errors:structured(compile_error, 'Workspace', undefined,
        [place(Where), io_lib:format(":~b:~b: ~ts~ts", [Line, Column, Message, More])],
        maps:get(hint, First, undefined), #{}).

place(Where) when is_atom(Where) -> atom_to_binary(Where);
place(Where) -> Where.

raise(Error) ->
    beamtalk_image_host:raise_error(Error).

%% Units in the order of the text, classes and protocols first, then what extends them.
install(Items, Text, Origin) ->
    Declared = declared(Items, Text, Origin),
    Extensions =
        case [Item || {extension, _, _} = Item <- Items] of
            [] -> [];
            Found -> [compiled(beamtalk_embedded_compiler:extensions(Found, owner(Origin), Text))]
        end,
    install_units(Declared ++ Extensions, Origin).

declared(Items, Text, Origin) ->
    {Units, _Known} = lists:mapfoldl(
        fun
            ({class, Name, _, _, _, _, _, _} = Class, Known) ->
                refuse_library(Name, Origin),
                refuse_other(class, Name),
                Unit = class(Class, Text, Origin, Known),
                {Unit, Known#{Name => Unit}};
            ({protocol, Name, _, _, _, _} = Protocol, Known) ->
                refuse_library(Name, Origin),
                refuse_other(protocol, Name),
                {beamtalk_embedded_compiler:protocol(Protocol, Text, Origin), Known}
        end,
        #{},
        [Item || Item <- Items, element(1, Item) =:= class orelse element(1, Item) =:= protocol]
    ),
    Units.

%% A class as its text has it. What the protocols that it uses provide is not written into it yet.
class(Class, Text, Origin, Known) ->
    compiled(beamtalk_embedded_compiler:class(Class, Text, Origin, Known)).

compiled({ok, Unit}) -> Unit;
compiled({error, Error}) -> raise(Error).

%% What belongs to the library is the library's.
refuse_library(_Name, stdlib) ->
    ok;
refuse_library(Name, _Origin) ->
    case {beamtalk_image_host:class_origin(Name), beamtalk_embedded_table:protocol(Name)} of
        {Class, Protocol} when Class =:= stdlib; Protocol =:= {ok, stdlib} ->
            raise(beamtalk_image_errors:structured(runtime_error, Name, undefined,
                io_lib:format("~ts belongs to the standard library and cannot be defined again", [Name]),
                <<"give the class another name, or extend it">>, #{}));
        _ ->
            ok
    end.

%% Classes and protocols share one name space.
refuse_other(Kind, Name) ->
    IsProtocol = beamtalk_protocol_registry:is_protocol(Name),
    IsClass = not IsProtocol andalso beamtalk_embedded_table:class(Name) =/= undefined,
    case Kind of
        class when IsProtocol -> taken(Name, "a protocol");
        protocol when IsClass -> taken(Name, "a class");
        _ -> ok
    end.

taken(Name, What) ->
    raise(beamtalk_image_errors:structured(runtime_error, Name, undefined,
        io_lib:format("~ts is ~ts already", [Name, What]), <<"choose another name">>, #{})).

owner({file, File}) -> binary_to_atom(filename:rootname(filename:basename(File)));
owner(_) -> workspace.

install_units(Compiled, Origin) ->
    Units = [with_variables(Unit) || Unit <- Compiled],
    load_code([{Module, Beam} || #{module := Module, beam := Beam} <- Units]),
    [enter(Unit, Origin) || Unit <- Units].

%% The class variables' defaults run before anything is loaded: they may fail.
with_variables(#{definition := #{variables := Variables} = Definition} = Unit) ->
    Values = [{Name, beamtalk_embedded_eval:default(Tree)} || {Name, Tree} <- Variables],
    Unit#{definition := Definition#{variables := Values}};
with_variables(Unit) ->
    Unit.

%% All or nothing; refuses while a process runs code that would have to go.
load_code([]) ->
    ok;
load_code(Modules) ->
    case [Module || {Module, _} <- Modules, not code:soft_purge(Module)] of
        [] ->
            case code:atomic_load([{Module, atom_to_list(Module), Beam} || {Module, Beam} <- Modules]) of
                ok -> ok;
                {error, Reasons} -> not_loaded(io_lib:format("the code server refuses: ~tp", [Reasons]))
            end;
        Used ->
            not_loaded(["a process still runs an earlier version of ",
                lists:join(", ", [atom_to_list(Module) || Module <- Used])])
    end.

not_loaded(Why) ->
    raise(beamtalk_image_errors:structured(code_in_use, 'Workspace', undefined, Why,
        <<"wait until it is done, then try again">>, #{})).

enter(#{name := Name, definition := Definition}, _Origin) ->
    case beamtalk_embedded:define_class(Name, Definition) of
        {ok, _Pid} -> {class, Name};
        {error, Reason} -> error({class_not_defined, Name, Reason})
    end;
enter(#{name := Name, protocol := Definition}, Origin) ->
    ok = beamtalk_embedded_table:put_protocol(Name, Origin),
    ok = beamtalk_protocol_registry:register_protocol(Definition),
    {protocol, Name};
enter(#{name := Owner, extensions := Extensions}, Origin) ->
    ok = beamtalk_embedded_table:put_owner(Owner, Origin),
    Now = [{Key, Selector} || {Key, Selector, _, _} <- Extensions],
    Gone = beamtalk_extensions:extensions_by(Owner) -- Now,
    lists:foreach(fun({Key, Selector}) -> beamtalk_extensions:unregister(Key, Selector) end, gone(Gone, Origin)),
    lists:foreach(fun({Key, Selector, Fun, Source}) ->
        ok = beamtalk_extensions:register(Key, Selector, Fun, Owner, Source)
    end, Extensions),
    {extensions, Owner}.

%% A file states all of its owner's extensions; what is typed at a prompt adds to those before.
gone(Gone, {file, _}) -> Gone;
gone(_Gone, _Origin) -> [].

%% ---- The library ---------------------------------------------------------------------------------------------

%% Compiled once for each text of it in a node, since images of tests start often.
load_library(Directory) ->
    Texts = [Text || File <- lists:sort(filelib:wildcard(filename:join(Directory, "*.bt"))),
        {ok, Text} <- [file:read_file(File)]],
    Key = {?MODULE, library},
    Hash = erlang:md5(Texts),
    Units =
        case persistent_term:get(Key, none) of
            {Hash, Compiled} ->
                Compiled;
            _ ->
                Compiled = compile_library(Texts),
                persistent_term:put(Key, {Hash, Compiled}),
                Compiled
        end,
    _ = install_units(Units, stdlib),
    ok.

compile_library(Texts) ->
    Read = [{Item, Text} || Text <- Texts, Item <- items(Text, stdlib)],
    Classes = [Pair || {{class, _, _, _, _, _, _, _}, _} = Pair <- Read],
    Protocols = [Pair || {{protocol, _, _, _, _, _}, _} = Pair <- Read],
    {Units, _Known} = lists:mapfoldl(
        fun({{class, Name, _, _, _, _, _, _} = Class, Text}, Known) ->
            {ok, Unit} = beamtalk_embedded_compiler:class(Class, Text, stdlib, Known),
            {Unit, Known#{Name => Unit}}
        end,
        #{},
        superclasses_first(Classes, [])
    ),
    Units ++ [beamtalk_embedded_compiler:protocol(Protocol, Text, stdlib) || {Protocol, Text} <- Protocols].

superclasses_first([], Sorted) ->
    lists:reverse(Sorted);
superclasses_first(Classes, Sorted) ->
    Done = [none | [Name || {{class, Name, _, _, _, _, _, _}, _} <- Sorted]],
    {[_ | _] = Ready, Rest} = lists:partition(
        fun({{class, _, Super, _, _, _, _, _}, _}) -> lists:member(Super, Done) end, Classes),
    superclasses_first(Rest, lists:reverse(Ready) ++ Sorted).

%% ---- Single methods ------------------------------------------------------------------------------------------

source(Class) ->
    case beamtalk_embedded_table:class(Class) of
        #{source := Source} when is_binary(Source) -> Source;
        _ -> none
    end.

with_method(Class, Side, Selector, Method) ->
    refuse_patch(Class, Selector),
    case source(Class) of
        none ->
            raise(no_source(Class));
        Text ->
            Placed = placed(Side, Method),
            case beamtalk_lang:resolve_method_span(Text, atom_to_binary(Class), atom_to_binary(Selector), Side) of
                {ok, #{start := Start, 'end' := End}, _Body} -> spliced(Text, Start, End, Placed);
                {error, selector_not_found, _} -> added(Class, Text, Placed);
                {error, _Reason, Message} -> raise(not_placed(Class, Selector, Message))
            end
    end.

refuse_patch(Class, Selector) ->
    case beamtalk_image_host:class_origin(Class) of
        stdlib ->
            raise(beamtalk_image_errors:structured(runtime_error, Class, Selector,
                io_lib:format("Cannot recompile '~ts' on stdlib class '~ts': built-in classes are read-only in the "
                    "workspace", [Selector, Class]),
                <<"extend the class from a file">>, #{}));
        _ ->
            ok
    end.

no_source(Class) ->
    beamtalk_image_errors:structured(runtime_error, Class, undefined,
        io_lib:format("~ts has no text that could be compiled again", [Class]), <<"define it from a file">>, #{}).

not_placed(Class, Selector, Message) ->
    beamtalk_image_errors:structured(runtime_error, Class, Selector, Message, undefined, #{}).

placed(instance, Method) ->
    beamtalk_reading:indented(Method, 2);
placed(class, Method) ->
    case beamtalk_reading:fragment(Method) of
        {ok, {method, _, class, _, _, _}} -> beamtalk_reading:indented(Method, 2);
        {ok, {method, _, instance, _, _, _}} -> beamtalk_reading:indented(class_side(Method), 2)
    end.

%% The modifier goes before the header, behind the docs.
class_side(Method) ->
    {Docs, Header} = lists:splitwith(
        fun(Line) ->
            case string:trim(Line, leading) of
                <<"//", _/binary>> -> true;
                <<>> -> true;
                _ -> false
            end
        end,
        binary:split(Method, <<"\n">>, [global])
    ),
    [First | Rest] = Header,
    Blank = byte_size(First) - byte_size(string:trim(First, leading)),
    <<Indent:Blank/binary, Code/binary>> = First,
    iolist_to_binary(lists:join("\n", Docs ++ [[Indent, "class ", Code] | Rest])).

spliced(Text, Start, End, Middle) ->
    <<Before:Start/binary, _:(End - Start)/binary, After/binary>> = Text,
    <<Before/binary, Middle/binary, After/binary>>.

%% Behind the last line of the class, below an empty line.
added(Class, Text, Placed) ->
    Items = items(Text, beamtalk_image_host:class_origin(Class)),
    [End | _] = [End || {class, Name, _, _, _, _, _, {_, End}} <- Items, Name =:= Class],
    At =
        case binary:match(Text, <<"\n">>, [{scope, {End, byte_size(Text) - End}}]) of
            {Newline, 1} -> Newline + 1;
            nomatch -> byte_size(Text)
        end,
    Gap = case binary:at(Text, At - 1) of $\n -> <<"\n">>; _ -> <<"\n\n">> end,
    spliced(Text, At, At, <<Gap/binary, Placed/binary>>).

without_method(Class, Side, Selector) ->
    case source(Class) of
        none ->
            case beamtalk_embedded_class:remove_method(pid(Class), Side, Selector) of
                {removed, _Method} -> removed;
                absent -> absent
            end;
        Text ->
            case beamtalk_lang:resolve_method_span(Text, atom_to_binary(Class), atom_to_binary(Selector), Side) of
                {ok, #{start := Start, 'end' := End}, _Body} ->
                    _ = recompile(Class, spliced(Text, Start, End, <<>>)),
                    removed;
                {error, selector_not_found, _} ->
                    generated_or_absent(Class, Side, Selector);
                {error, _Reason, Message} ->
                    raise(not_placed(Class, Selector, Message))
            end
    end.

generated_or_absent(Class, Side, Selector) ->
    case beamtalk_embedded_dispatch:local_definition(Class, Selector, Side) of
        undefined ->
            absent;
        {ok, _Generated} ->
            raise(beamtalk_image_errors:structured(runtime_error, Class, Selector,
                io_lib:format("#~ts is generated for a slot of ~ts", [Selector, Class]),
                <<"remove the slot, or define a method of that name">>, #{}))
    end.

pid(Class) ->
    #{pid := Pid} = beamtalk_embedded_table:class(Class),
    Pid.

%% The class of a text of its own that has changed; what else the text holds stays as it runs.
recompile(Class, Text) ->
    Origin = beamtalk_image_host:class_origin(Class),
    [Item | _] = [Item || {class, Name, _, _, _, _, _, _} = Item <- items(Text, Origin), Name =:= Class],
    install_units([class(Item, Text, Origin, #{})], Origin).
