%% @doc The protocol registry: structural protocols, the methods they provide, the classes that use them (ADR 0127),
%% and the question whether a class satisfies one.
%%
%% Definitions and answers live in the NIF. A positive answer may come from the cross-reference index; what the index
%% does not show is asked of the host, never under a lock. An answer is remembered until the next change of a protocol,
%% a class or an extension; one that was computed meanwhile, or obtained through a failure, is not.
-module(beamtalk_protocol_registry).

-include_lib("kernel/include/logger.hrl").
-include("beamtalk_image_read.hrl").

-export([
    init/0,
    register_protocol/1,
    unregister_protocol/1,
    invalidate_conforms_cache/0,
    protocol_info/1,
    is_protocol/1,
    all_protocol_names/0,
    required_methods/1,
    conforms_to/2,
    protocols_for_class/1,
    conforming_classes/1
]).
-export([
    provided_methods/1,
    register_uses/2,
    register_uses/3,
    unregister_uses/1,
    used_protocols/1,
    used_protocol_hashes/1,
    users_of/1,
    user_class_objects/1,
    conforming_class_objects/1
]).
-export_type([definition/0, class_object/0]).

-type definition() :: #{name := atom(), _ => _}.
%% As registered: `required_methods', `required_class_methods', `provided_methods' (lists of maps with `selector' and
%% `arity'), `extending', `module', `type_params', `doc'.
-type class_object() :: {beamtalk_object, atom(), module(), pid()}.

-define(DOMAIN, #{domain => [beamtalk, runtime]}).

%% @doc Opens the registry for the calling application. Calling again changes nothing; the first call of a new
%% application run finds it empty.
-spec init() -> ok.
init() ->
    beamtalk_image_guard:opened(protocols).

%% ---- Writing ------------------------------------------------------------------------------------------------

%% @doc Registers a definition, replacing one of that name, forgets every conformance answer, and makes sure that a
%% class object of the protocol's name runs once there is a class `Protocol'. A term without a name is reported and
%% ignored; a malformed member list raises `badarg' and changes nothing.
-spec register_protocol(Definition :: definition() | term()) -> ok.
register_protocol(#{name := Name} = Definition) when is_atom(Name) ->
    case beamtalk_image_nif:protocol_register(Name, Definition) of
        ok ->
            ?LOG_DEBUG("protocol ~tp is registered", [Name], ?DOMAIN),
            ensure_class_object(Name, Definition);
        {bad_entry, _, _, _} = Bad ->
            beamtalk_image_errors:raise_bad_entry(Bad, ?MODULE, register_protocol, [Definition], 1)
    end;
register_protocol(#{name := Name} = Definition) ->
    beamtalk_image_errors:raise_bad_entry(
        {bad_entry, 1, name, Name}, ?MODULE, register_protocol, [Definition], 1
    );
register_protocol(Other) ->
    ?LOG_WARNING("a protocol definition without a name is ignored: ~tP", [Other, 20], ?DOMAIN),
    ok.

%% @doc Removes every protocol that the module registered, and the uses of the classes that it defines. Conformance
%% answers are forgotten in any case; the protocols' class objects stay.
-spec unregister_protocol(Module :: module()) -> ok.
unregister_protocol(Module) when is_atom(Module) ->
    _Names = ?READ(beamtalk_image_nif:protocol_unregister_module(Module), []),
    ok.

%% @doc Forgets every conformance answer, those under way included. Never raises.
-spec invalidate_conforms_cache() -> ok.
invalidate_conforms_cache() ->
    try
        case beamtalk_image_nif:protocol_invalidate() of
            busy -> beamtalk_image_nif:protocol_invalidate_dirty();
            ok -> ok
        end
    catch
        error:_ -> ok
    end.

%% @doc As {@link register_uses/3} for a class whose module is not known.
-spec register_uses(Class :: atom(), Names :: [atom()]) -> ok.
register_uses(Class, Names) when is_atom(Class), is_list(Names) ->
    register_uses(Class, undefined, Names, [Class, Names]).

%% @doc Replaces the list of protocols that a class uses, in declaration order, each with the hash of the text it was
%% compiled with if the host keeps one. The uses fall with the class's module.
-spec register_uses(Class :: atom(), Module :: module(), Uses :: [atom() | {atom(), binary() | undefined}]) -> ok.
register_uses(Class, Module, Uses) when is_atom(Class), is_atom(Module), is_list(Uses) ->
    register_uses(Class, Module, Uses, [Class, Module, Uses]).

register_uses(Class, Module, Uses, Args) ->
    case beamtalk_image_nif:protocol_register_uses(Class, Module, Uses) of
        ok ->
            restrict_origins(Class, used_protocols(Class));
        {bad_entry, _, _, _} = Bad ->
            beamtalk_image_errors:raise_bad_entry(Bad, ?MODULE, register_uses, Args, length(Args))
    end.

%% A class that no longer uses a protocol has no methods of it: the index must not go on saying so.
restrict_origins(Class, Protocols) ->
    case erlang:function_exported(beamtalk_xref, restrict_provenance, 2) of
        true -> beamtalk_extensions:safe_xref(fun() -> beamtalk_xref:restrict_provenance(Class, Protocols) end);
        false -> ok
    end.

%% @doc Forgets which protocols a class uses. Nothing known: no effect.
-spec unregister_uses(Class :: atom()) -> ok.
unregister_uses(Class) ->
    register_uses(Class, undefined, []).

%% ---- Reading ------------------------------------------------------------------------------------------------

%% @doc The definition exactly as it was registered.
-spec protocol_info(Name :: atom()) -> map() | undefined.
protocol_info(Name) when is_atom(Name) ->
    ?READ(beamtalk_image_nif:protocol_definition(Name), undefined).

%% @doc Whether a protocol of that name is registered.
-spec is_protocol(Name :: atom()) -> boolean().
is_protocol(Name) when is_atom(Name) ->
    ?READ(beamtalk_image_nif:protocol_exists(Name), false).

%% @doc The names of all protocols, in no order.
-spec all_protocol_names() -> [atom()].
all_protocol_names() ->
    ?READ(beamtalk_image_nif:protocol_names(), []).

%% @doc Required selectors: own in declaration order, then inherited ones; after them the class side's, each with the
%% prefix `class' and a blank.
-spec required_methods(Name :: atom()) -> [atom()].
required_methods(Name) when is_atom(Name) ->
    {Instance, ClassSide} = ?READ(beamtalk_image_nif:protocol_required(Name), {[], []}),
    Prefixed = [beamtalk_image_names:prefixed(<<"class ">>, Selector) || Selector <- ClassSide],
    Instance ++ [Selector || {ok, Selector} <- Prefixed].

%% @doc Provided selectors: own in declaration order, then inherited ones that are not provided anew.
-spec provided_methods(Name :: atom()) -> [atom()].
provided_methods(Name) when is_atom(Name) ->
    ?READ(beamtalk_image_nif:protocol_provided(Name), []).

%% @doc The protocols that a class uses, in declaration order.
-spec used_protocols(Class :: atom()) -> [atom()].
used_protocols(Class) ->
    [Protocol || {Protocol, _Hash} <- used_protocol_hashes(Class)].

%% @doc The same with the hash that each was compiled with; `undefined' where the host keeps none.
-spec used_protocol_hashes(Class :: atom()) -> [{atom(), binary() | undefined}].
used_protocol_hashes(Class) when is_atom(Class) ->
    ?READ(beamtalk_image_nif:protocol_uses(Class), []).

%% @doc The classes that name the protocol in a use, sorted.
-spec users_of(Name :: atom()) -> [atom()].
users_of(Name) when is_atom(Name) ->
    lists:usort(?READ(beamtalk_image_nif:protocol_users(Name), [])).

%% @doc The class objects of {@link users_of/1}; a class that is not running is left out.
-spec user_class_objects(Name :: atom()) -> [class_object()].
user_class_objects(Name) ->
    class_objects(users_of(Name)).

%% @doc The class objects of {@link conforming_classes/1}.
-spec conforming_class_objects(Name :: atom()) -> [class_object()].
conforming_class_objects(Name) ->
    class_objects(conforming_classes(Name)).

class_objects([]) ->
    [];
class_objects(Names) ->
    Live = maps:from_list([{Name, {Module, Pid}} || {Name, Module, Pid} <- live_classes()]),
    [{beamtalk_object, Tag, Module, Pid}
        || Name <- Names,
           {Module, Pid} <- [maps:get(Name, Live, none)],
           {ok, Tag} <- [beamtalk_image_names:tag_of(Name)]].

live_classes() ->
    try
        beamtalk_image_host:live_classes()
    catch
        _:_ -> []
    end.

%% ---- Conformance --------------------------------------------------------------------------------------------

%% @doc Whether a class has everything that a protocol requires or provides: instance selectors that it understands,
%% class selectors that it or an ancestor defines, or that an extension adds to its own class side. A protocol that
%% asks for nothing is satisfied by any name, one that is not registered by none. A question that fails is answered
%% `false' and asked anew next time.
-spec conforms_to(Class :: atom(), Name :: atom()) -> boolean().
conforms_to(Class, Name) when is_atom(Class), is_atom(Name) ->
    case ?READ(beamtalk_image_nif:protocol_conformance(Class, Name), false) of
        {open, Stamp} -> find_out(Class, Name, Stamp);
        Answer -> Answer
    end.

%% Everything that the host says below is read under the stamp: a change meanwhile makes the answer one of an earlier
%% stamp, which is not remembered.
find_out(Class, Name, Stamp) ->
    try
        case missing(Class, Name, Stamp, beamtalk_image_chain:running(Class)) of
            {Instance, ClassSide} ->
                Answer = understands_all(Class, Instance) andalso has_class_side(Class, ClassSide),
                _Wanted = remember(Class, Name, Stamp, Answer),
                Answer;
            Known ->
                Known
        end
    catch
        Kind:Reason ->
            ?LOG_DEBUG("whether ~tp conforms to ~tp could not be found out: ~tp:~tp",
                [Class, Name, Kind, Reason], ?DOMAIN),
            false
    end.

remember(Class, Name, Stamp, Answer) ->
    case beamtalk_image_nif:protocol_remember(Class, Name, Stamp, Answer) of
        busy -> beamtalk_image_nif:protocol_remember_dirty(Class, Name, Stamp, Answer);
        Wanted -> Wanted
    end.

missing(Class, Name, Stamp, Chain) ->
    case beamtalk_image_nif:protocol_missing(Class, Name, Stamp, Chain) of
        more -> beamtalk_image_nif:protocol_missing_dirty(Class, Name, Stamp, Chain);
        Missing -> Missing
    end.

understands_all(Class, Selectors) ->
    lists:all(fun(Selector) -> beamtalk_image_host:understands(Class, Selector) end, Selectors).

has_class_side(_Class, []) ->
    true;
has_class_side(Class, Selectors) ->
    case [Selector || Selector <- Selectors, not extends_class_side(Class, Selector)] of
        [] -> true;
        Left -> defines_along_chain(Class, Left, [])
    end.

extends_class_side(Class, Selector) ->
    case beamtalk_image_names:tag_of(Class) of
        {ok, Tag} -> beamtalk_extensions:has(Tag, Selector);
        none -> false
    end.

defines_along_chain(_Class, [], _Visited) ->
    true;
defines_along_chain(Class, Selectors, Visited) ->
    case lists:member(Class, Visited) orelse beamtalk_image_host:whereis_class(Class) of
        Pid when is_pid(Pid) ->
            Left = Selectors -- beamtalk_image_host:class_selectors(Pid),
            Left =:= [] orelse
                defines_along_chain(beamtalk_image_host:class_superclass(Pid), Left, [Class | Visited]);
        _ ->
            false
    end.

%% @doc The protocols that a class conforms to, sorted.
-spec protocols_for_class(Class :: atom()) -> [atom()].
protocols_for_class(Class) when is_atom(Class) ->
    lists:sort([Name || Name <- all_protocol_names(), conforms_to(Class, Name)]).

%% @doc The live classes that conform to a protocol, sorted.
-spec conforming_classes(Name :: atom()) -> [atom()].
conforming_classes(Name) when is_atom(Name) ->
    case is_protocol(Name) of
        true -> lists:usort([Class || {Class, _, _} <- live_classes(), conforms_to(Class, Name)]);
        false -> []
    end.

%% ---- Class objects of protocols -----------------------------------------------------------------------------

%% Starting a class runs its start-up, which calls back into the registries: nothing is held here.
ensure_class_object(Name, Definition) ->
    try
        case is_running('Protocol') andalso not is_running(Name) of
            true -> started(Name, beamtalk_image_host:start_class(Name, class_info(Definition)));
            false -> ok
        end
    catch
        Kind:Reason -> not_started(Name, {Kind, Reason})
    end.

is_running(Name) ->
    beamtalk_image_host:whereis_class(Name) =/= undefined.

started(_Name, {ok, _Pid}) -> ok;
started(_Name, {error, {already_started, _Pid}}) -> ok;
started(Name, {error, Reason}) -> not_started(Name, Reason).

not_started(Name, Reason) ->
    ?LOG_WARNING("the class object of protocol ~tp did not start: ~tp", [Name, Reason], ?DOMAIN).

class_info(Definition) ->
    Flags = #{is_sealed => true, is_abstract => true},
    Method = #{arity => 0, is_sealed => true},
    Flags#{
        module => beamtalk_protocol_object,
        superclass => 'Protocol',
        meta => Flags,
        class_methods => #{requiredMethods => Method, conformingClasses => Method},
        class_method_signatures => #{
            requiredMethods => <<"requiredMethods -> List">>,
            conformingClasses => <<"conformingClasses -> List">>
        },
        class_method_docs => #{
            requiredMethods => <<"Return the required method selectors for this protocol.">>,
            conformingClasses => <<"Return the classes conforming to this protocol.">>
        },
        instance_methods => #{},
        fields => [],
        doc => maps:get(doc, Definition, none),
        method_xref => [dispatched_row(requiredMethods), dispatched_row(conformingClasses)]
    }.

%% Both selectors are answered by a shared module that has no Beamtalk text.
dispatched_row(Selector) ->
    #{selector => Selector, class_side => true, line => 1, sends => [], references => [],
        source_status => unindexed_runtime_fun, provenance => class_body}.
