%% @doc Turns what a text declares into modules: one for each class, one for each protocol, one for the
%% extensions of a file. Nothing is loaded and nothing registered here.
%%
%% A class `Counter' becomes the module `bt@Counter', of the library `bt@stdlib@Counter'. For each method it
%% exports a function of three arguments (arguments, receiver, state) that hands the method's tree, a literal
%% of the module, to {@link beamtalk_embedded_eval}; a class-side method's function is named `class sel'. The
%% call is no tail call, so that code in use can be told from code that is not.
-module(beamtalk_embedded_compiler).

-export([class/4, class/5, protocol/3, extensions/3, module_name/2, without_target/1]).
-export_type([unit/0, flattened/0]).

%% What is generated stands on no line of its own.
-define(AT, erl_anno:new(1)).

-type origin() :: {file, binary()} | stdlib | dynamic.
-type unit() :: #{
    name := atom(),
    module := module(),
    beam := binary(),
    definition => beamtalk_embedded_class:definition(),
    protocol => map(),
    extensions => [{ClassKey :: atom(), Selector :: atom(), fun(), Source :: binary()}]
}.

-type flattened() :: #{text := binary(), provided := #{Selector :: atom() => {Protocol :: atom(), Source :: binary()}}}.
%% A class's text with what its protocols provide written into it (ADR 0127 §3), and where each of that comes
%% from.

%% @doc A class that nothing is provided for. `Known' are classes that are compiled with it and not running
%% yet.
-spec class(beamtalk_reading:class(), Text :: binary(), origin(), Known :: #{atom() => unit()}) ->
    {ok, unit()} | {error, beamtalk_image_errors:structured()}.
class(Class, Text, Origin, Known) ->
    class(Class, Text, Origin, Known, #{text => Text, provided => #{}}).

%% @doc A class as it was read from its flattened text. `Text' is what its author wrote.
-spec class(beamtalk_reading:class(), Text :: binary(), origin(), Known :: #{atom() => unit()}, flattened()) ->
    {ok, unit()} | {error, beamtalk_image_errors:structured()}.
class({class, Name, Super, _Modifiers, Slots, Methods, _Uses, _Span} = Class, Text, Origin, Known, Flat) ->
    case parent(Super, Known) of
        {ok, Kind, Inherited} ->
            Misplaced = [Slot || {SlotKind, Slot, _} <- Slots, not fits(SlotKind, kind(Name, Kind))],
            case {Misplaced, twice([{Name, Side, Selector} || {method, Selector, Side, _, _, _} <- Methods])} of
                {[], []} -> {ok, unit(Class, Text, Origin, kind(Name, Kind), Inherited, Flat)};
                {[], [{_, _, Selector} | _]} -> {error, defined_twice(Name, Selector)};
                {_, _} -> {error, misplaced(Name, kind(Name, Kind), Misplaced)}
            end;
        unknown ->
            {error, beamtalk_image_errors:structured(class_not_found, Name, undefined,
                io_lib:format("~ts cannot be defined: there is no class ~ts (line ~b)",
                    [Name, Super, line(Class, maps:get(text, Flat))]),
                <<"load the superclass first">>, #{})}
    end.

twice(Methods) ->
    lists:usort(Methods -- lists:usort(Methods)).

defined_twice(Name, Selector) ->
    beamtalk_image_errors:structured(compile_error, Name, Selector,
        io_lib:format("~ts defines #~ts twice on one side", [Name, Selector]), <<"remove one of them">>, #{}).

fits(class_state, _Kind) -> true;
fits(state, actor) -> true;
fits(field, value) -> true;
fits(_SlotKind, _Kind) -> false.

misplaced(Name, Kind, Slots) ->
    Hint =
        case Kind of
            actor -> <<"actors have `state:`">>;
            value -> <<"values have `field:`">>;
            object -> <<"only values and actors have slots; others may have `classState:`">>
        end,
    beamtalk_image_errors:structured(compile_error, Name, undefined,
        io_lib:format("~ts cannot have the slots ~ts as they are declared",
            [Name, lists:join(", ", [atom_to_list(Slot) || Slot <- Slots])]), Hint, #{}).

unit({class, Name, Super, _, Slots, Methods, Uses, _Span}, Text, Origin, Kind, Inherited, Flattened) ->
    #{text := Flat, provided := Provided} = Flattened,
    Module = module_name(Name, Origin),
    Own = [{Slot, Default} || {SlotKind, Slot, Default} <- Slots, SlotKind =/= class_state],
    Written = [written(Name, Method) || Method <- Methods],
    Taken = [{Side, Selector} || {Side, Selector, _Code, _Where} <- Written],
    Generated = [G || G <- generated(Kind, Inherited ++ [S || {S, _} <- Own], Own),
        not lists:member({element(1, G), element(2, G)}, Taken)],
    All = Written ++ Generated,
    Facts = facts(Name, Flat),
    Definition = #{
        superclass => Super,
        kind => Kind,
        module => Module,
        slots => Own,
        variables => [{Slot, Default} || {class_state, Slot, Default} <- Slots],
        uses => Uses,
        origins => maps:map(fun(_Selector, {Protocol, _Source}) -> Protocol end, Provided),
        origin => Origin,
        source => Text,
        methods => provided(Provided, methods(instance, Module, All, Facts, Flat)),
        class_methods => methods(class, Module, All, Facts, Flat)
    },
    Meta = #{class => Name, superclass => Super, kind => Kind, uses => Uses},
    Functions = [{function_name(Side, Selector), Code, class_key(Name, Side), Selector}
        || {Side, Selector, Code, _Where} <- All],
    Beam = compiled(Module, Meta, Functions),
    #{name => Name, module => Module, beam => Beam, definition => Definition#{beam => Beam}}.

%% A provided method shows the text of its protocol, not the one that it was given here.
provided(Provided, Methods) ->
    maps:map(
        fun(Selector, Method) ->
            case Provided of
                #{Selector := {_Protocol, Source}} -> Method#{source := Source};
                _ -> Method
            end
        end,
        Methods
    ).

line({class, _, _, _, _, _, _, {Start, _}}, Text) ->
    length(binary:split(binary:part(Text, 0, Start), <<"\n">>, [global])).

parent(none, _Known) ->
    {ok, object, []};
parent(Super, Known) ->
    case Known of
        #{Super := #{definition := #{kind := Kind, slots := Slots, superclass := Above}}} ->
            {ok, _, Inherited} = parent(Above, Known),
            {ok, Kind, Inherited ++ [Slot || {Slot, _} <- Slots]};
        _ ->
            case beamtalk_embedded_table:class(Super) of
                undefined ->
                    unknown;
                #{kind := Kind, superclass := Above} = Row ->
                    {ok, _, Inherited} = parent(Above, Known),
                    {ok, Kind, Inherited ++ [Slot || {Slot, _} <- maps:get(slots, Row, [])]}
            end
    end.

kind('Value', _) -> value;
kind('Actor', _) -> actor;
kind(_Name, Kind) -> Kind.

%% @doc The module of a class.
-spec module_name(atom(), origin()) -> module().
module_name(Name, stdlib) -> binary_to_atom(<<"bt@stdlib@", (atom_to_binary(Name))/binary>>);
module_name(Name, _) -> binary_to_atom(<<"bt@", (atom_to_binary(Name))/binary>>).

class_key(Name, instance) -> Name;
class_key(Name, class) -> beamtalk_image_names:class_tag(Name).

function_name(instance, Selector) -> Selector;
function_name(class, Selector) -> binary_to_atom(<<"class ", (atom_to_binary(Selector))/binary>>).

%% {Side, Selector, Code, Where}.
written(_Name, {method, Selector, Side, Params, Statements, Where}) ->
    {Side, Selector, beamtalk_embedded_scopes:method(Params, Statements), Where}.

%% What a value gets for its slots: an accessor and a setter each, and a constructor over all of them.
generated(value, [_ | _] = All, Own) ->
    Getters = [{instance, Slot, code([], {slot, self, Slot}), generated} || {Slot, _} <- Own],
    Setters = [{instance, binary_to_atom(beamtalk_embedded_primitives:setter(Slot)),
        code([Slot], {with_slot, Slot, {var, Slot}}), generated} || {Slot, _} <- Own],
    Selector = binary_to_atom(iolist_to_binary([[atom_to_binary(Slot), ":"] || Slot <- All])),
    Constructor = code(All, {construct, [{slot, Slot, {var, Slot}} || Slot <- All]}),
    Getters ++ Setters ++ [{class, Selector, Constructor, generated}];
generated(_Kind, _All, _Own) ->
    [].

code(Params, Tree) ->
    beamtalk_embedded_scopes:method(Params, [Tree]).

methods(Side, Module, All, Facts, Text) ->
    maps:from_list([{Selector, method(Module, Method, Facts, Text)}
        || {OfSide, Selector, _, _} = Method <- All, OfSide =:= Side]).

method(Module, {Side, Selector, Code, Where}, Facts, Text) ->
    Fact = maps:get({Side, Selector}, Facts, #{line => 1, sends => [], references => []}),
    Fact#{
        'fun' => erlang:make_fun(Module, function_name(Side, Selector), 3),
        source => source(Where, Text),
        in_sender => Side =:= class andalso needs_no_process(Code)
    }.

source(generated, _Text) -> undefined;
source({Start, End, _Line}, Text) -> binary:part(Text, Start, End - Start).

%% A primitive, or what is generated: neither touches the variables of the class.
needs_no_process({_, _, _, _, [{primitive, _}]}) -> true;
needs_no_process({_, _, _, _, [{construct, _}]}) -> true;
needs_no_process(_Code) -> false.

%% What the index keeps of each method, by side and selector.
facts(Name, Text) ->
    {ok, Entries} = beamtalk_lang:method_entries(Text),
    Class = atom_to_binary(Name),
    maps:from_list([{{Side, named(Selector)}, fact(Entry)}
        || #{class := Of, side := Side, selector := Selector, origin := Origin} = Entry <- Entries, Of =:= Class,
            Origin =/= extension]).

fact(#{line := Line, sends := Sends, references := References}) ->
    #{
        line => Line,
        sends => [send(Send) || Send <- Sends],
        references => [#{class => named(Class), line => At} || #{class := Class, line := At} <- References]
    }.

send(#{selector := Selector, line := Line, recv := Recv, target_module := Module}) ->
    #{selector => named(Selector), line => Line, recv_kind => recv_kind(Recv), target_module => target(Module)}.

recv_kind(self) -> self_recv;
recv_kind(super) -> super_recv;
recv_kind(erlang_ffi) -> erlang_ffi;
recv_kind(other) -> other.

target(<<>>) -> undefined;
target(Module) -> named(Module).

%% The text is loaded anyway, and its types are the only names in it that are no atoms yet.
named(Text) -> binary_to_atom(Text).

%% @doc The extensions of one file, for the owner that the file is named after.
-spec extensions([{extension, atom(), beamtalk_reading:method()}], Owner :: atom(), Text :: binary()) ->
    {ok, unit()} | {error, beamtalk_image_errors:structured()}.
extensions(Items, Owner, Text) ->
    case twice([{Class, Side, Selector} || {extension, Class, {method, Selector, Side, _, _, _}} <- Items]) of
        [] -> {ok, extension_unit(Items, Owner, Text)};
        [{Class, _Side, Selector} | _] -> {error, defined_twice(Class, Selector)}
    end.

extension_unit(Items, Owner, Text) ->
    Module = binary_to_atom(<<"bt@extensions@", (atom_to_binary(Owner))/binary>>),
    Written = [{class_key(Class, Side), Selector, beamtalk_embedded_scopes:method(Params, Statements), Where}
        || {extension, Class, {method, Selector, Side, Params, Statements, Where}} <- Items],
    Functions = [{extension_name(Key, Selector), Code, Key, Selector} || {Key, Selector, Code, _} <- Written],
    #{
        name => Owner,
        module => Module,
        beam => compiled(Module, #{owner => Owner}, Functions),
        extensions => [{Key, Selector, erlang:make_fun(Module, extension_name(Key, Selector), 3),
            without_target(source(Where, Text))} || {Key, Selector, _, Where} <- Written]
    }.

%% @doc The text of the method in an extension's text: `Name >> sel => ...' without its target, docs included.
-spec without_target(binary()) -> binary().
without_target(Text) ->
    {Docs, Code} = lists:splitwith(
        fun(Line) ->
            case string:trim(Line, leading) of
                <<"///", _/binary>> -> true;
                _ -> false
            end
        end,
        binary:split(Text, <<"\n">>, [global])
    ),
    [_Target, Method] = binary:split(iolist_to_binary(lists:join("\n", Code)), <<">>">>),
    iolist_to_binary([[[Doc, "\n"] || Doc <- Docs], string:trim(Method, leading)]).

extension_name(Key, Selector) ->
    binary_to_atom(<<(atom_to_binary(Key))/binary, ">>", (atom_to_binary(Selector))/binary>>).

%% @doc A protocol: its module carries its text, and nothing that runs.
-spec protocol(beamtalk_reading:protocol(), Text :: binary(), origin()) -> unit().
protocol({protocol, Name, Extending, Required, Provided, _Span}, Text, Origin) ->
    Module = module_name(Name, Origin),
    Signature = fun(Selector, Arity, Types, Result) ->
        #{selector => Selector, arity => Arity, param_types => Types, return_type => Result}
    end,
    Members = fun(Wanted) -> [Signature(S, A, T, R) || {S, Side, A, T, R} <- Required, Side =:= Wanted] end,
    Definition = #{
        name => Name,
        module => Module,
        required_methods => Members(instance),
        required_class_methods => Members(class),
        provided_methods => [(Signature(Selector, Arity, Types, Result))#{source => source(Where, Text), doc => Doc}
            || {{method, Selector, _, _, _, Where}, Arity, Types, Result, Doc} <- Provided],
        extending => case Extending of none -> undefined; _ -> Extending end
    },
    Source = [{function, ?AT, '__beamtalk_protocol_source', 0, [{clause, ?AT, [], [], [erl_parse:abstract(Text)]}]}
        || Provided =/= []],
    #{name => Name, module => Module, protocol => Definition,
        beam => forms_compiled(Module, #{protocol => Name}, Source)}.

%% ---- Modules -------------------------------------------------------------------------------------------------

compiled(Module, Meta, Functions) ->
    forms_compiled(Module, Meta, [function(Function) || Function <- Functions]).

function({Name, Code, Definer, Selector}) ->
    Variables = ['Args', 'Self', 'State', 'Answer', 'Next'],
    [Args, Self, State, Answer, Next] = [{var, ?AT, Variable} || Variable <- Variables],
    Call = {call, ?AT, {remote, ?AT, {atom, ?AT, beamtalk_embedded_eval}, {atom, ?AT, run}},
        [erl_parse:abstract(Code), {atom, ?AT, Definer}, {atom, ?AT, Selector}, Args, Self, State]},
    Pair = {tuple, ?AT, [Answer, Next]},
    Case = {'case', ?AT, Call, [{clause, ?AT, [Pair], [], [Pair]}]},
    {function, ?AT, Name, 3, [{clause, ?AT, [Args, Self, State], [], [Case]}]}.

forms_compiled(Module, Meta, Functions) ->
    MetaFunction = {function, ?AT, '__beamtalk_meta', 0, [{clause, ?AT, [], [], [erl_parse:abstract(Meta)]}]},
    All = [MetaFunction | Functions],
    Exports = [{Name, Arity} || {function, _, Name, Arity, _} <- All],
    Forms = [{attribute, ?AT, module, Module}, {attribute, ?AT, export, Exports} | All],
    {ok, Module, Beam} = compile:forms(Forms, [binary, deterministic, return_errors]),
    Beam.
