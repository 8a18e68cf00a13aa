%% A second reader of the ChangeLog's folder, by the contract's rules alone (§5.5): it shares no code with the
%% store and knows none of the added files. What it reads is what a tool or the original module would.
-module(beamtalk_image_log_reader).

-export([decode/1, lines/1, read/1, archives/1]).
-export_type([json/0]).

-type json() :: null | boolean() | integer() | float() | binary() | [json()] | #{binary() => json()}.

%% ---- A folder ---------------------------------------------------------------------------------------------

%% The live log: entries with their fields and bodies, by the order of lines, and the lines that are none.
-spec read(file:filename()) -> {Entries :: [map()], NoEntries :: [binary()]}.
read(Dir) ->
    lists:foldr(
        fun(Line, {Entries, Others}) ->
            case entry(Line) of
                {ok, Entry} -> {[Entry#{bodies => bodies(Dir, Entry)} | Entries], Others};
                error -> {Entries, [Line | Others]}
            end
        end,
        {[], []},
        lines(filename:join(Dir, "changes.jsonl"))
    ).

-spec lines(file:filename()) -> [binary()].
lines(Path) ->
    case file:read_file(Path) of
        {ok, Bytes} -> split(Bytes);
        {error, enoent} -> []
    end.

split(Bytes) ->
    [Line || Line <- binary:split(Bytes, <<"\n">>, [global]), Line =/= <<>>].

%% Rotated segments in the order of their names: the lines of each, and the bodies of all by name.
-spec archives(file:filename()) -> {[[map()]], #{binary() => binary()}}.
archives(Dir) ->
    Archive = filename:join(Dir, "archive"),
    Segments = lists:sort(filelib:wildcard("changes-*.jsonl.gz", Archive)),
    Tars = filelib:wildcard("sources-*.tar.gz", Archive),
    {
        [segment(filename:join(Archive, Name)) || Name <- Segments],
        lists:foldl(fun(Name, Bodies) -> tar(filename:join(Archive, Name), Bodies) end, #{}, Tars)
    }.

segment(Path) ->
    {ok, Packed} = file:read_file(Path),
    [Entry || Line <- split(zlib:gunzip(Packed)), {ok, Entry} <- [entry(Line)]].

tar(Path, Bodies) ->
    {ok, Files} = erl_tar:extract(Path, [memory, compressed]),
    lists:foldl(
        fun({Name, Bytes}, So) ->
            Key = unicode:characters_to_binary(Name),
            false = is_map_key(Key, So),
            So#{Key => Bytes}
        end,
        Bodies,
        Files
    ).

entry(Line) ->
    Mandatory = [<<"ts">>, <<"seq">>, <<"epoch">>, <<"class">>, <<"author">>, <<"kind">>, <<"intent">>,
        <<"author_kind">>, <<"flushable">>],
    case decode(Line) of
        {ok, #{} = Object} ->
            case [Key || Key <- Mandatory, not is_map_key(Key, Object)] of
                [] -> {ok, fields(Object)};
                _ -> error
            end;
        _ ->
            error
    end.

fields(Object) ->
    Optional = fun(Key) ->
        case Object of
            #{Key := Value} when Value =/= null -> Value;
            _ -> undefined
        end
    end,
    Kind = word(maps:get(<<"kind">>, Object),
        ['new-class', 'remove-method', 'remove-class', instance, class], unknown),
    #{
        seq => maps:get(<<"seq">>, Object),
        epoch => maps:get(<<"epoch">>, Object),
        class => maps:get(<<"class">>, Object),
        selector => Optional(<<"selector">>),
        kind => Kind,
        side => side(word(Optional(<<"side">>), [instance, class], undefined), Kind),
        flushable => maps:get(<<"flushable">>, Object),
        flushed => maps:get(<<"flushed">>, Object, false),
        intent => word(maps:get(<<"intent">>, Object), [durable, ephemeral], unknown),
        author_kind => word(maps:get(<<"author_kind">>, Object), [human, agent], unknown),
        not_flushable_reason => Optional(<<"not_flushable_reason">>),
        source_file => Optional(<<"sourceFile">>),
        span => span(Optional(<<"span">>)),
        source_ref => Optional(<<"source_ref">>),
        prev_source_ref => Optional(<<"prev_source_ref">>)
    }.

word(Text, Words, Else) ->
    case [Word || Word <- Words, atom_to_binary(Word) =:= Text] of
        [Word] -> Word;
        [] -> Else
    end.

side(undefined, Kind) when Kind =:= instance; Kind =:= class -> Kind;
side(Side, _Kind) -> Side.

span(#{<<"start">> := Start, <<"end">> := End}) -> #{start => Start, 'end' => End};
span(undefined) -> undefined.

bodies(Dir, #{source_ref := New, prev_source_ref := Old}) ->
    {body(Dir, New, no_source), body(Dir, Old, no_prev_source)}.

body(_Dir, undefined, None) -> {error, None};
body(Dir, Ref, _None) -> file:read_file(filename:join([Dir, "sources", Ref])).

%% ---- JSON -------------------------------------------------------------------------------------------------

-spec decode(binary()) -> {ok, json()} | error.
decode(Text) ->
    try value(blank(Text)) of
        {Value, Rest} ->
            case blank(Rest) of
                <<>> -> {ok, Value};
                _ -> error
            end
    catch
        throw:no_json -> error
    end.

blank(<<Space, Rest/binary>>) when Space =:= $\s; Space =:= $\t; Space =:= $\r; Space =:= $\n -> blank(Rest);
blank(Text) -> Text.

value(<<"null", Rest/binary>>) -> {null, Rest};
value(<<"true", Rest/binary>>) -> {true, Rest};
value(<<"false", Rest/binary>>) -> {false, Rest};
value(<<$", Rest/binary>>) -> string(Rest, <<>>);
value(<<$[, Rest/binary>>) -> list(blank(Rest), []);
value(<<${, Rest/binary>>) -> object(blank(Rest), #{});
value(Text) -> number(Text).

number(Text) ->
    Number = "^-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][-+]?[0-9]+)?",
    case re:run(Text, Number, [{capture, [0, 2, 3], binary}]) of
        {match, [Digits, <<>>, <<>>]} -> {binary_to_integer(Digits), after_number(Text, Digits)};
        {match, [Digits, _, _]} -> {float_of(Digits), after_number(Text, Digits)};
        nomatch -> throw(no_json)
    end.

after_number(Text, Digits) ->
    binary:part(Text, byte_size(Digits), byte_size(Text) - byte_size(Digits)).

float_of(Digits) ->
    try
        binary_to_float(Digits)
    catch
        error:badarg -> throw(no_json)
    end.

string(<<$", Rest/binary>>, Text) -> {Text, Rest};
string(<<"\\u", Hex:4/binary, Rest/binary>>, Text) -> unicode_escape(hex(Hex), Rest, Text);
string(<<$\\, Escaped, Rest/binary>>, Text) -> string(Rest, <<Text/binary, (escaped(Escaped))>>);
string(<<Char/utf8, Rest/binary>>, Text) when Char >= 16#20 -> string(Rest, <<Text/binary, Char/utf8>>);
string(_, _) -> throw(no_json).

unicode_escape(High, <<"\\u", Hex:4/binary, Rest/binary>>, Text) when High >= 16#D800, High =< 16#DBFF ->
    case hex(Hex) of
        Low when Low >= 16#DC00, Low =< 16#DFFF ->
            Char = 16#10000 + ((High - 16#D800) bsl 10) + (Low - 16#DC00),
            string(Rest, <<Text/binary, Char/utf8>>);
        _ ->
            throw(no_json)
    end;
unicode_escape(Char, _Rest, _Text) when Char >= 16#D800, Char =< 16#DFFF -> throw(no_json);
unicode_escape(Char, Rest, Text) -> string(Rest, <<Text/binary, Char/utf8>>).

hex(Digits) ->
    try
        binary_to_integer(Digits, 16)
    catch
        error:badarg -> throw(no_json)
    end.

escaped($") -> $";
escaped($\\) -> $\\;
escaped($/) -> $/;
escaped($b) -> $\b;
escaped($f) -> $\f;
escaped($n) -> $\n;
escaped($r) -> $\r;
escaped($t) -> $\t;
escaped(_) -> throw(no_json).

list(<<$], Rest/binary>>, []) -> {[], Rest};
list(Text, Items) ->
    {Item, Rest} = value(Text),
    case blank(Rest) of
        <<$,, More/binary>> -> list(blank(More), [Item | Items]);
        <<$], After/binary>> -> {lists:reverse([Item | Items]), After};
        _ -> throw(no_json)
    end.

object(<<$}, Rest/binary>>, Object) when map_size(Object) =:= 0 -> {Object, Rest};
object(<<$", Text/binary>>, Object) ->
    {Key, Rest} = string(Text, <<>>),
    case blank(Rest) of
        <<$:, More/binary>> -> object_value(Key, blank(More), Object);
        _ -> throw(no_json)
    end;
object(_, _) -> throw(no_json).

object_value(Key, Text, Object) ->
    {Value, Rest} = value(Text),
    case blank(Rest) of
        <<$,, More/binary>> -> object_next(blank(More), Object#{Key => Value});
        <<$}, After/binary>> -> {Object#{Key => Value}, After};
        _ -> throw(no_json)
    end.

object_next(<<$", _/binary>> = Text, Object) -> object(Text, Object);
object_next(_, _) -> throw(no_json).
