%% @doc What the image asks of Beamtalk source text, answered by its own reader (ADR 0127).
%%
%% The reader takes any bytes and always answers. Names found in a text are binaries; no text becomes an atom. Each call
%% reads its text once on a dirty scheduler: the cost is linear in it. Text longer than 16 MiB is refused, and of what
%% nests deeper than 64 levels the inside is skipped.
-module(beamtalk_lang).

-export([
    parse/1,
    parse_method/1,
    find_all_sends_in_source/1,
    find_references_in_source/1,
    find_slot_accesses_in_source/1,
    method_entries/1,
    resolve_method_span/4,
    read_file/1
]).
-export_type([diagnostic/0, send/0, class_reference/0, slot_access/0, method_entry/0, span/0]).

-type diagnostic() :: #{
    severity := error | warning | hint,
    code := binary(),
    start := non_neg_integer(),
    'end' := non_neg_integer(),
    line := pos_integer(),
    column := pos_integer(),
    message := binary(),
    hint => binary()
}.
%% One finding: where it is (byte offsets, half open; line and byte column from 1), what is wrong, what would help.

-type send() :: #{
    selector := binary(),
    line := pos_integer(),
    recv := self | super | erlang_ffi | other,
    target_module := binary()
}.
%% One message: the line counts from 1 within the method's text; the module is empty unless the send is a foreign call.

-type class_reference() :: #{class := binary(), line := pos_integer()}.
%% One class named, as written and without its package.

-type slot_access() :: #{slot := binary(), line := pos_integer(), access := read | write}.
%% One `self.slot'.

-type span() :: #{start := non_neg_integer(), 'end' := non_neg_integer()}.
%% Byte offsets, half open.

-type method_entry() :: #{
    class := binary(),
    side := instance | class,
    selector := binary(),
    origin := class_body | extension | protocol | slot_accessor,
    span := span(),
    line := pos_integer(),
    file_line := pos_integer(),
    sends := [send()],
    references := [class_reference()],
    slot_accesses := [slot_access()]
}.
%% A method of a file. Lines count within its own source, which is its span; `file_line' is its header's in the file.

-type refusal() :: {error, [diagnostic()]}.
%% The text is too long, or the library is not loaded.

%% @doc Everything that is wrong with the text of a file, in its order; none for a file that reads well. Rules that need
%% other files are not checked.
-spec parse(Source :: binary()) -> {ok, [diagnostic()]} | refusal().
parse(Source) when is_binary(Source) ->
    rows(fun() -> beamtalk_image_nif:lang_diagnostics(Source, false) end, fun diagnostic/1).

%% @doc Everything that is wrong with the text of one method, without its class.
-spec parse_method(Source :: binary()) -> {ok, [diagnostic()]} | refusal().
parse_method(Source) when is_binary(Source) ->
    rows(fun() -> beamtalk_image_nif:lang_diagnostics(Source, true) end, fun diagnostic/1).

%% @doc Every message that the text of one method sends, in the order of its expressions, outer sends first. Text that
%% cannot be read answers what its readable parts send.
-spec find_all_sends_in_source(Source :: binary()) -> {ok, [send()]} | refusal().
find_all_sends_in_source(Source) when is_binary(Source) ->
    rows(fun() -> beamtalk_image_nif:lang_sends(Source) end, fun send/1).

%% @doc Every class that the text of one method names: parameter types, return type, body.
-spec find_references_in_source(Source :: binary()) -> {ok, [class_reference()]} | refusal().
find_references_in_source(Source) when is_binary(Source) ->
    rows(fun() -> beamtalk_image_nif:lang_references(Source) end, fun reference/1).

%% @doc Every access to a slot of `self' in the text of one method. The target of an assignment is a write alone.
-spec find_slot_accesses_in_source(Source :: binary()) -> {ok, [slot_access()]} | refusal().
find_slot_accesses_in_source(Source) when is_binary(Source) ->
    rows(fun() -> beamtalk_image_nif:lang_slot_accesses(Source) end, fun slot_access/1).

%% @doc Every method in the text of a file with its facts, in its order: those of classes, provided ones of protocols,
%% extensions, and the accessors generated for the slots of values.
-spec method_entries(Source :: binary()) -> {ok, [method_entry()]} | refusal().
method_entries(Source) when is_binary(Source) ->
    rows(fun() -> beamtalk_image_nif:lang_method_entries(Source) end, fun entry/1).

%% @doc Where a method stands in the text of a file: whole lines with the docs above it, and the bytes of them. The class
%% is named without its package; a provided method of a protocol is found on the instance side. Faults elsewhere in the
%% file do not matter. Reasons: `class_not_found', `selector_not_found', `ambiguous' (more than one method answers),
%% `bad_argument' (a name that is none, or a text that is too long), `noproc' (the library is not loaded).
-spec resolve_method_span(Source :: binary(), Class :: binary(), Selector :: binary(), Side :: instance | class) ->
    {ok, span(), Body :: binary()} | {error, Reason, Message :: binary()}
when
    Reason :: class_not_found | selector_not_found | ambiguous | bad_argument | noproc.
resolve_method_span(Source, Class, Selector, Side) when
    is_binary(Source), is_binary(Class), is_binary(Selector), Side =:= instance;
    is_binary(Source), is_binary(Class), is_binary(Selector), Side =:= class
->
    case asked(fun() -> beamtalk_image_nif:lang_method_span(Source, Class, Selector, Side) end) of
        {ok, Start, End} -> {ok, #{start => Start, 'end' => End}, binary:part(Source, Start, End - Start)};
        {error, Reason, Message} -> {error, Reason, Message};
        {too_large, Limit} -> {error, bad_argument, too_large(Limit)};
        not_loaded -> {error, noproc, not_loaded()}
    end.

%% @doc The text of a source file. Only regular files of at most 16 MiB are read, links to them included: a pipe, a device or
%% a folder under the name of a class is refused with a message that says so, without waiting for it.
-spec read_file(Path :: binary()) -> {ok, Text :: binary()} | {error, Message :: binary()}.
read_file(Path) when is_binary(Path) ->
    case asked(fun() -> beamtalk_image_nif:lang_read_file(Path) end) of
        not_loaded -> {error, not_loaded()};
        Answer -> Answer
    end.

rows(Ask, Make) ->
    case asked(Ask) of
        Rows when is_list(Rows) -> {ok, [Make(Row) || Row <- Rows]};
        {too_large, Limit} -> {error, [refused(<<"source_too_large">>, too_large(Limit))]};
        not_loaded -> {error, [refused(<<"nif_not_loaded">>, not_loaded())]}
    end.

asked(Ask) ->
    try
        Ask()
    catch
        error:{nif_not_loaded, _} -> not_loaded
    end.

refused(Code, Message) ->
    #{severity => error, code => Code, start => 0, 'end' => 0, line => 1, column => 1, message => Message}.

too_large(Limit) ->
    unicode:characters_to_binary(io_lib:format("the text is longer than ~b bytes", [Limit])).

not_loaded() ->
    <<"the library of the image is not loaded">>.

diagnostic({Severity, Code, Start, End, Line, Column, Message, none}) ->
    #{severity => Severity, code => Code, start => Start, 'end' => End, line => Line, column => Column,
        message => Message};
diagnostic({Severity, Code, Start, End, Line, Column, Message, Hint}) ->
    (diagnostic({Severity, Code, Start, End, Line, Column, Message, none}))#{hint => Hint}.

send({Selector, Line, Recv, Module}) ->
    #{selector => Selector, line => Line, recv => Recv, target_module => Module}.

reference({Class, Line}) ->
    #{class => Class, line => Line}.

slot_access({Slot, Line, true}) -> #{slot => Slot, line => Line, access => write};
slot_access({Slot, Line, false}) -> #{slot => Slot, line => Line, access => read}.

entry({Class, Side, Selector, Origin, Start, End, Line, FileLine, Sends, References, Slots}) ->
    #{
        class => Class,
        side => Side,
        selector => Selector,
        origin => Origin,
        span => #{start => Start, 'end' => End},
        line => Line,
        file_line => FileLine,
        sends => [send(Row) || Row <- Sends],
        references => [reference(Row) || Row <- References],
        slot_accesses => [slot_access(Row) || Row <- Slots]
    }.
