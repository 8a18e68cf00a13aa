%% Generators of the property suites: names that meet often, on both sides of a class, and the histories made
%% of them.
-module(beamtalk_image_gen).

-export([
    base_names/0,
    class_keys/0,
    tag/1,
    selectors/0,
    owners/0,
    native_modules/0,
    protocols/0,
    modules/0
]).
-export([extension_history/0, xref_history/0, protocol_history/0]).

%% ---- Names ------------------------------------------------------------------------------------------------

base_names() -> ['A', 'B', 'C'].

class_keys() -> base_names() ++ [tag(Name) || Name <- base_names()].

tag('A') -> 'A class';
tag('B') -> 'B class';
tag('C') -> 'C class'.

selectors() -> [m, n, 'at:put:', 'size'].

owners() -> [pkg_a, pkg_b, pkg_c].

native_modules() -> [lists, maps].

protocols() -> ['P', 'Q', 'R', 'S'].

modules() -> ['bt@p', 'bt@q'].

%% One name comes up as often as all the others together, or layers and owners would seldom meet on one key.
base_name() -> often(base_names()).
class_key() -> often(class_keys()).
selector() -> often(selectors()).
owner() -> proper_types:elements(owners()).
protocol() -> proper_types:elements(protocols()).
module() -> proper_types:elements(modules()).

often([First | _] = Names) -> proper_types:weighted_union([{1, First}, {1, proper_types:elements(Names)}]).

%% ---- Shapes -----------------------------------------------------------------------------------------------

history(Command) -> proper_types:non_empty(proper_types:list(Command)).

some(Type) -> proper_types:resize(4, proper_types:list(Type)).

maybe_undefined(Type) -> proper_types:weighted_union([{2, undefined}, {3, Type}]).

tuple(Types) -> proper_types:tuple(Types).

bind(Type, Fun) -> proper_types:bind(Type, Fun, false).

%% A map of the mandatory keys and any of the others.
map_of(Mandatory, Optional) ->
    Maybe = [proper_types:weighted_union([{1, absent}, {1, tuple([Key, Type])}]) || {Key, Type} <- Optional],
    Sure = [tuple([Key, Type]) || {Key, Type} <- Mandatory],
    bind(tuple(Sure ++ Maybe), fun(Pairs) ->
        maps:from_list([Pair || {_, _} = Pair <- tuple_to_list(Pairs)])
    end).

%% ---- Extensions -------------------------------------------------------------------------------------------

%% Registrations of several owners on both sides, removals by all three shapes, and what the host does to the
%% classes beneath.
extension_history() ->
    history(proper_types:frequency([
        {8, tuple([register, class_key(), selector(), proper_types:range(1, 9), owner(),
            maybe_undefined(source())])},
        {2, tuple([unregister, class_key(), selector()])},
        {3, tuple([unregister, base_name(), selector(), proper_types:boolean()])},
        {1, tuple([purge_class, class_key()])},
        {1, {init}},
        {2, tuple([define, base_name(), some(selector())])},
        {2, tuple([redefine, base_name(), some(selector())])},
        {1, tuple([undefine, base_name()])}
    ])).

%% A text is the selectors that it sends, one on each line.
source() ->
    bind(some(selector()), fun(Selectors) -> iolist_to_binary(lists:join("\n", [atom_to_list(S)
        || S <- Selectors])) end).

%% ---- Cross-reference index --------------------------------------------------------------------------------

xref_history() ->
    history(proper_types:frequency([
        {6, tuple([register_class, class_key(), some(own_entry())])},
        {2, tuple([purge_class, class_key()])},
        {2, tuple([redefine, class_key(), some(own_entry())])},
        {1, tuple([forget_class, class_key()])},
        {6, tuple([put_method, class_key(), proper_types:boolean(), selector(), own_entry()])},
        {6, tuple([put_method, class_key(), false, selector(), extension_entry()])},
        {3, tuple([purge_method, class_key(), proper_types:boolean(), selector()])},
        {2, tuple([purge_extension, class_key(), selector()])},
        {2, bind(tuple([class_key(), some(tuple([selector(), protocol()]))]), fun({Class, Origins}) ->
            {set_provenance, Class, maps:from_list(Origins)}
        end)},
        {1, tuple([restrict_provenance, class_key(), some(protocol())])}
    ])).

own_entry() -> entry(proper_types:elements([class_body, class_builder, put_method, protocol])).

extension_entry() ->
    bind(entry(extension), fun(Entry) -> Entry#{provenance => extension} end).

entry(Provenance) ->
    map_of([{selector, selector()}, {line, line()}], [
        {class_side, proper_types:boolean()},
        {sends, some(send())},
        {references, some(map_of([{class, class_key()}], [{line, line()}]))},
        {unresolved_sends, some(unresolved())},
        {source_status, proper_types:elements([indexed, unindexed_runtime_fun, synthetic])},
        {provenance, Provenance},
        {synthetic_origin, line()},
        {category, <<"accessing">>}
    ]).

line() -> proper_types:range(1, 4).

send() ->
    map_of([{selector, selector()}], [
        {line, line()},
        {recv_kind, recv_kind()},
        {target_module, maybe_undefined(proper_types:elements(native_modules()))},
        {recv_type, recv_type()},
        {arity, 0}
    ]).

recv_kind() -> proper_types:elements([self_recv, super_recv, erlang_ffi, erlang_ffi, other]).

recv_type() ->
    Name = proper_types:elements([dynamic, 'NoSuchClass', 'Everybody', 'Nobody' | class_keys()]),
    Compound = tuple([proper_types:elements([union, intersection]), some(Name)]),
    proper_types:weighted_union([{3, Name}, {1, Compound}]).

unresolved() ->
    Text = fun(Atoms) -> proper_types:elements([atom_to_binary(Atom) || Atom <- Atoms]) end,
    map_of([{selector, Text(selectors())}], [
        {line, line()},
        {recv_kind, recv_kind()},
        {target_module, proper_types:oneof([undefined, Text(native_modules()) | native_modules()])}
    ]).

%% ---- Protocols --------------------------------------------------------------------------------------------

protocol_history() ->
    history(proper_types:frequency([
        {6, tuple([register_protocol, definition()])},
        {2, tuple([unregister_protocol, module()])},
        {3, tuple([register_uses, base_name(), some(protocol())])},
        {3, tuple([register_uses, base_name(), module(), some(proper_types:oneof([protocol(), hashed()]))])},
        {1, tuple([unregister_uses, base_name()])},
        {1, {invalidate}},
        {6, bind(base_name(), fun(Name) -> tuple([class, Name, class_facts(Name)]) end)},
        {2, tuple([class_removed, base_name()])},
        {4, tuple([extend, side(), selector()])},
        {2, tuple([unextend, side(), selector()])}
    ])).

%% Extensions count for conformance on the class side.
side() -> proper_types:weighted_union([{1, base_name()}, {3, bind(base_name(), fun tag/1)}]).

hashed() -> tuple([protocol(), proper_types:elements([<<"1">>, <<"2">>])]).

%% A parent may be unknown, the protocol itself, or close a ring of several.
definition() ->
    map_of([{name, protocol()}], [
        {required_methods, members()},
        {required_class_methods, members()},
        {provided_methods, members()},
        {extending, maybe_undefined(protocol())},
        {module, module()},
        {doc, none},
        {type_params, []}
    ]).

members() ->
    proper_types:resize(2, proper_types:list(map_of([{selector, selector()}, {arity, 0}], [{param_types,
        []}]))).

%% A superclass comes later in the alphabet, so there is no ring of classes; it need not run. A class without
%% rows is one that the index does not know.
class_facts(Name) ->
    Supers = [none | [Later || Later <- base_names(), Later > Name]],
    map_of([{super, proper_types:elements(Supers)}], [
        {instance, some(selector())}, {class, some(selector())}, {rows, true}
    ]).
