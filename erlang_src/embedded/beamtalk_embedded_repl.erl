%% @doc The prompt of the embedded image: what `make repl' runs.
%%
%% Expressions, definitions and `Name >> selector => ...' go to {@link beamtalk_embedded_session}; lines that
%% begin with a colon are commands. Every command but `:help' and `:browse' only builds an expression and has
%% it evaluated. A terminal gives line editing and a history that is kept between sessions; without one, lines
%% are read as they come.
-module(beamtalk_embedded_repl).

-export([main/0, shell/0, run/2, start/0, input/2]).
-export_type([state/0]).

-opaque state() :: #{session := beamtalk_embedded_session:session(), file := binary() | none, text := binary(),
    declaring := boolean()}.
%% `text' is input that is still incomplete, `declaring' whether it begins a declaration, `file' what
%% `:reload' reads again.

-type step() :: {more | text | quit, iodata(), state()}.

%% @doc Starts an image over the current directory and reads from the terminal, if the node was started with
%% `-terminal', else from standard input.
-spec main() -> ok.
main() ->
    ok = logger:set_primary_config(level, warning),
    {ok, _} = beamtalk_embedded:start(#{project => "."}),
    case init:get_argument(terminal) of
        {ok, _} -> interactive(code:ensure_loaded(shell), erlang:function_exported(shell, start_interactive, 1));
        error -> shell_until_end()
    end.

%% Newer releases start a shell of one's own on a terminal; older ones have the driver of the terminal do so.
interactive(_, true) ->
    ok = apply(shell, start_interactive, [{?MODULE, shell, []}]);
interactive(_, false) ->
    _ = apply(user_drv, start, [['tty_sl -c -e', {?MODULE, shell, []}]]),
    ok.

%% @private
%% @doc Called by the terminal's driver: answers the process that reads.
-spec shell() -> pid().
shell() ->
    spawn(fun shell_until_end/0).

-spec shell_until_end() -> no_return().
shell_until_end() ->
    _ = io:setopts([{encoding, unicode}]),
    io:put_chars(["Beamtalk ", beamtalk_image:version(), ", an embedded image. :help lists the commands.\n"]),
    ok = run(fun(Prompt) -> io:get_line(Prompt) end, fun io:put_chars/1),
    ok = beamtalk_embedded:stop(),
    halt(0).

%% @doc Reads and answers until the input ends: `Read' is given a prompt and answers a line or `eof'.
-spec run(fun((string()) -> string() | binary() | eof | {error, term()}), fun((iodata()) -> ok)) -> ok.
run(Read, Write) ->
    loop("bt> ", start(), Read, Write).

loop(Prompt, State, Read, Write) ->
    case Read(Prompt) of
        Line when is_list(Line); is_binary(Line) ->
            case input(unicode:characters_to_binary(Line), State) of
                {more, _, Next} ->
                    loop("  > ", Next, Read, Write);
                {text, Text, Next} ->
                    ok = Write(Text),
                    loop("bt> ", Next, Read, Write);
                {quit, Text, _} ->
                    Write(Text)
            end;
        _ ->
            Write("\n")
    end.

%% @doc The state of a new prompt.
-spec start() -> state().
start() ->
    #{session => beamtalk_embedded_session:new(), file => none, text => <<>>, declaring => false}.

%% @doc Takes one line. Answers whether more is needed, or what is to be shown.
-spec input(binary(), state()) -> step().
input(Line, #{text := <<>>} = State) ->
    case string:trim(Line) of
        <<>> -> {text, [], State};
        <<":", Command/binary>> -> command(string:lexemes(Command, " \t"), State);
        _ -> continued(Line, Line, State)
    end;
input(Line, #{text := Before} = State) ->
    continued(Line, <<Before/binary, Line/binary>>, State).

%% An empty line ends a declaration, and anything that was begun by mistake.
continued(Line, Text, #{declaring := Declaring} = State) ->
    case {beamtalk_reading:input(Text), string:trim(Line)} of
        {_, <<>>} -> evaluated(Text, State);
        {complete, _} when not Declaring -> evaluated(Text, State);
        {Input, _} -> {more, [], State#{text := Text, declaring := Declaring orelse Input =:= declaration}}
    end.

evaluated(Text, #{session := Session} = State) ->
    {Outcome, Next} = beamtalk_embedded_session:eval(Text, Session),
    {text, shown(Outcome), State#{session := Next, text := <<>>, declaring := false}}.

shown({ok, Value}) ->
    [beamtalk_embedded_session:printed(Value), "\n"];
shown({error, #{error := {beamtalk_error, Kind, _Class, _Selector, Message, Hint, _Details}}}) ->
    [atom_to_binary(Kind), ": ", Message, "\n", [["  hint: ", Hint, "\n"] || Hint =/= undefined]].

%% ---- Commands ------------------------------------------------------------------------------------------------

command([<<"help">>], State) ->
    {text, help(), State};
command([Quit], State) when Quit =:= <<"quit">>; Quit =:= <<"q">> ->
    {quit, [], State};
command([<<"load">>, Path], State) ->
    evaluated(["Workspace load: ", beamtalk_embedded_primitives:printed(escaped(Path))], State#{file := Path});
command([<<"reload">>], #{file := none} = State) ->
    {text, "nothing has been loaded yet: :load <file>\n", State};
command([<<"reload">>], #{file := File} = State) ->
    command([<<"load">>, File], State);
command([<<"reload">>, Class], State) ->
    evaluated([Class, " reload"], State);
command([<<"changes">>], State) ->
    changes(State);
command([<<"remove-method">>, Class, <<"class">>, Selector], State) ->
    evaluated([Class, " class removeSelector: #'", Selector, "'"], State);
command([<<"remove-method">>, Class, Selector], State) ->
    evaluated([Class, " removeSelector: #'", Selector, "'"], State);
command([<<"browse">>, Name], State) ->
    {text, browsed(Name), State};
command(_, State) ->
    {text, "no such command; :help lists them\n", State}.

changes(#{session := Session} = State) ->
    case beamtalk_embedded_session:eval("Workspace changes pending", Session) of
        {{ok, Entries}, Next} -> {text, listed(Entries), State#{session := Next}};
        {Failed, Next} -> {text, shown(Failed), State#{session := Next}}
    end.

listed([]) ->
    "nothing differs from the files\n";
listed(Entries) ->
    [[integer_to_binary(Seq), "  ", beamtalk_embedded_session:printed(Entry), flush(Entry), "\n"]
        || #{seq := Seq} = Entry <- Entries].

flush(#{flushable := true, sourceFile := File}) when is_binary(File) -> ["  (", filename:basename(File), ")"];
flush(_Entry) -> "  (memory only)".

%% Braces would open a hole.
escaped(Path) ->
    binary:replace(binary:replace(Path, <<"{">>, <<"\\{">>, [global]), <<"}">>, <<"\\}">>, [global]).

help() ->
    [
        "expression                        its value's printString; variables stay\n",
        "Super subclass: Name ...          a class; an empty line ends it\n",
        "Name >> selector => ...           one method of a class\n",
        ":load <file>                      Workspace load: \"file\"\n",
        ":reload [Class]                   the last file, or the class's file, again\n",
        ":changes                          what differs from the files\n",
        ":remove-method <Class> [class] <selector>\n",
        "                                  Class removeSelector: #selector\n",
        ":browse <Class>                   slots and methods\n",
        ":help, :quit\n"
    ].

browsed(Text) ->
    try beamtalk_embedded_table:class(binary_to_existing_atom(Text)) of
        undefined -> ["there is no class ", Text, "\n"];
        Row -> shown(binary_to_existing_atom(Text), Row)
    catch
        error:badarg -> ["there is no class ", Text, "\n"]
    end.

shown(Name, Row) ->
    case beamtalk_protocol_registry:is_protocol(Name) of
        true -> protocol_shown(Name);
        false -> class_shown(Name, Row)
    end.

protocol_shown(Name) ->
    [
        ["Protocol define: ", atom_to_binary(Name), "\n"],
        [["  requires ", atom_to_binary(Selector), "\n"]
            || Selector <- beamtalk_protocol_registry:required_methods(Name)],
        [["  provides ", atom_to_binary(Selector), "\n"]
            || Selector <- beamtalk_protocol_registry:provided_methods(Name)]
    ].

class_shown(Name, #{superclass := Super} = Row) ->
    Uses = beamtalk_protocol_registry:used_protocols(Name),
    [
        [atom_to_binary(Super), " subclass: ", atom_to_binary(Name), "\n"],
        [["  uses: ", atom_to_binary(Protocol), "\n"] || Protocol <- Uses],
        [["  slot ", atom_to_binary(Slot), "\n"] || {Slot, _} <- maps:get(slots, Row, [])],
        [method_shown(Name, "  class ", class, Selector) || Selector <- methods(beamtalk_embedded:metaclass(Name))],
        [method_shown(Name, "  ", instance, Selector) || Selector <- methods(beamtalk_embedded:class(Name))]
    ].

methods(Class) ->
    beamtalk_embedded_dispatch:send(Class, methods, []).

method_shown(Name, Indent, Side, Selector) ->
    Origin =
        case beamtalk_xref:method_info(Name, Side =:= class, Selector) of
            #{origin := Protocol} when Protocol =/= undefined -> ["  from ", atom_to_binary(Protocol)];
            #{provenance := extension} -> "  extension";
            _ -> []
        end,
    [Indent, atom_to_binary(Selector), Origin, "\n"].
