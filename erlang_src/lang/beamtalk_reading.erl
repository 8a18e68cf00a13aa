%% @doc Beamtalk text as Erlang terms, for whoever runs it.
%%
%% Every text read here becomes atoms: its selectors, variables, classes and symbols. So only text that a
%% developer loads into an image comes this way; questions about text go through {@link beamtalk_lang}, which
%% makes no atom. One text may make at most 10,000 atoms that did not exist, be at most 1 MiB long, and name
%% nothing longer than an atom. Types are not read.
-module(beamtalk_reading).

-export([items/1, items/2, fragment/1, input/1, indented/2]).
-export_type([item/0, class/0, protocol/0, method/0, statement/0, side/0, span/0]).

-define(NEW_NAMES, 10_000).

-type side() :: instance | class.
-type span() :: {Start :: non_neg_integer(), End :: non_neg_integer()}.
-type statement() :: tuple() | atom().
%% An expression: `{lit, Value}', `self', `super', `{var, Name}', `{class, Name}', `{slot, Base, Name}',
%% `{set_slot, Base, Name, Value}', `{assign, Name, Value}', `{destructure, Pattern, Value}', `{send,
%% Receiver, Selector, Args}', `{cascade, Receiver, [{message, Selector, Args}]}', `{match, Subject,
%% [{Pattern, Guard, Body}]}', `{block, Params, Statements}', `{list, Elements, Tail}', `{array, Elements}',
%% `{map, [{Key, Value}]}', `{interpolation, Pieces}', `{return, Value}', `{cast, Send}', `{primitive, Name}'.
-type method() :: {method, Selector :: atom(), side(), Params :: [atom()], [statement()],
    {Start :: non_neg_integer(), End :: non_neg_integer(), HeaderLine :: non_neg_integer()}}.
-type class() :: {class, Name :: atom(), Super :: atom(), Modifiers :: [atom()],
    Slots :: [{field | state | class_state, atom(), statement() | none}], [method()], Uses :: [atom()], span()}.
-type signature() :: {Selector :: atom(), side(), Arity :: non_neg_integer(), Types :: [binary() | none],
    Result :: binary() | none}.
-type protocol() :: {protocol, Name :: atom(), Extending :: atom(), Required :: [signature()],
    Provided :: [{method(), Arity :: non_neg_integer(), [binary() | none], binary() | none, Doc :: binary() | none}],
    span()}.
-type item() :: class() | protocol() | {extension, Class :: atom(), method()} | method() | {statement, statement()}.
-type refusal() :: {error, [beamtalk_lang:diagnostic(), ...]}.

%% @doc What the text of a file declares and states, in its order. A text with a mistake is refused with all
%% of them.
-spec items(binary()) -> {ok, [item()]} | refusal().
items(Source) ->
    items(Source, user).

%% @doc The same, for the library, too, which may define what others may not: only the rules of the grammar
%% hold for it.
-spec items(binary(), Author :: user | library) -> {ok, [item()]} | refusal().
items(Source, library) when is_binary(Source) ->
    read(Source, false, fun beamtalk_lang:parse/1);
items(Source, user) when is_binary(Source) ->
    case beamtalk_lang:parse(Source) of
        {ok, Found} ->
            case [Diagnostic || #{severity := error} = Diagnostic <- Found] of
                [] -> read(Source, false, fun beamtalk_lang:parse/1);
                Mistakes -> {error, Mistakes}
            end;
        Refusal ->
            Refusal
    end.

%% @doc One method without its class.
-spec fragment(binary()) -> {ok, method()} | refusal().
fragment(Source) when is_binary(Source) ->
    case read(Source, true, fun beamtalk_lang:parse_method/1) of
        {ok, [{method, _, _, _, _, _} = Method]} -> {ok, Method};
        {ok, _} -> refused(<<"no_method">>, <<"this is not one method">>, {0, 0});
        Refusal -> Refusal
    end.

%% @doc Whether a prompt should read on: `open' while a bracket, a string or an operand is missing,
%% `declaration' until an empty line ends it.
-spec input(binary()) -> complete | open | declaration.
input(Source) when is_binary(Source) ->
    beamtalk_image_nif:reading_input(Source).

%% @doc A method's text with its code beginning at the column; strings over several lines stay as they are.
-spec indented(binary(), non_neg_integer()) -> binary().
indented(Method, Column) when is_binary(Method), is_integer(Column), Column >= 0 ->
    case beamtalk_image_nif:reading_indented(Method, Column) of
        Text when is_binary(Text) -> Text;
        {too_large, _Limit} -> Method
    end.

read(Source, Fragment, Diagnose) ->
    case beamtalk_image_nif:reading_items(Source, Fragment, ?NEW_NAMES) of
        {ok, Items} ->
            {ok, Items};
        wrong ->
            {ok, Found} = Diagnose(Source),
            {error, [Diagnostic || #{severity := error} = Diagnostic <- Found]};
        too_many_names ->
            refused(<<"too_many_names">>, io_lib:format("the text has more than ~b new names", [?NEW_NAMES]), {0, 0});
        name_too_long ->
            refused(<<"name_too_long">>, <<"a name is longer than 255 characters">>, {0, 0});
        {too_large, Limit} ->
            refused(<<"source_too_large">>, io_lib:format("the text is longer than ~b bytes", [Limit]), {0, 0});
        {unsupported, What, Start, End} ->
            refused(<<"unsupported">>, [What, " cannot run in this image"], {Start, End, Source})
    end.

refused(Code, Message, Where) ->
    {Start, End, Line, Column} =
        case Where of
            {S, E} -> {S, E, 1, 1};
            {S, E, Source} -> place(S, E, Source)
        end,
    {error, [#{severity => error, code => Code, start => Start, 'end' => End, line => Line, column => Column,
        message => unicode:characters_to_binary(Message)}]}.

place(Start, End, Source) ->
    Before = binary:split(binary:part(Source, 0, Start), <<"\n">>, [global]),
    {Start, End, length(Before), byte_size(lists:last(Before)) + 1}.
