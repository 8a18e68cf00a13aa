%% @doc The extension registry: methods that packages add to classes from outside (open classes).
%%
%% One name space; one entry per class key and selector; the last registration wins. A class key is the class name, or
%% its tag (name, blank, `class') for the class side. Reads take no lock, run in the caller and see every write that
%% has returned. Entries live in the NIF; this module checks arguments, keeps the cross-reference index in step and
%% logs what the registry reports.
%%
%% Look-ups stand on the path of every message send: they answer no, and never raise anything but
%% `function_clause', when the library is not loaded.
-module(beamtalk_extensions).

-include_lib("kernel/include/logger.hrl").
-include("beamtalk_image_read.hrl").

-export([
    init/0,
    register/4,
    register/5,
    unregister/2,
    unregister/3,
    purge_class/1,
    lookup/2,
    has/2,
    list/1,
    extenders_of/1,
    extensions_by/1,
    getSource/2,
    listAllWithSource/0,
    conflicts/0,
    safe_xref/1
]).
-export([lookup_chain/2, take/3, clear/0, index_sends/3, pending_sends/0, index_all/0]).

-define(DOMAIN, #{domain => [beamtalk, runtime]}).

%% @doc Opens the registry for the calling application. Calling again changes nothing; the first call of a new
%% application run finds it empty.
-spec init() -> ok.
init() ->
    beamtalk_image_guard:opened(extensions).

%% @doc As {@link register/5} without a source.
-spec register(Class :: atom(), Selector :: atom(), Fun :: function(), Owner :: atom()) -> ok.
register(Class, Selector, Fun, Owner) ->
    register(Class, Selector, Fun, Owner, undefined).

%% @doc Registers `Fun' as the method of `Selector' on a class key, replacing whatever stood there, source included.
%% Another owner's entry is replaced with a warning, and both owners are remembered for {@link conflicts/0}. The
%% definition is in the cross-reference index when this returns; sends found in `Source' follow from a background
%% process. Cost: some microseconds, whatever the registry holds.
-spec register(
    Class :: atom(),
    Selector :: atom(),
    Fun :: function(),
    Owner :: atom(),
    Source :: binary() | undefined
) -> ok.
register(Class, Selector, Fun, Owner, Source) when
    is_atom(Class), is_atom(Selector), is_function(Fun), is_atom(Owner), is_binary(Source);
    is_atom(Class), is_atom(Selector), is_function(Fun), is_atom(Owner), Source =:= undefined
->
    {Version, Replaced} = store(Class, Selector, Fun, Owner, Source),
    Replaced =:= none orelse warn_conflict(Class, Selector, Replaced, Owner),
    invalidate_conformance(),
    index_definition(Class, Selector),
    Source =:= undefined orelse beamtalk_image_indexer:index(Class, Selector, Version),
    ok.

%% @doc As `unregister(ClassKey, Selector, false)': the class key is taken as it is.
-spec unregister(ClassKey :: atom(), Selector :: atom()) -> ok.
unregister(ClassKey, Selector) ->
    unregister(ClassKey, Selector, false).

%% @doc Removes one entry with its source, conflict history and cross-reference rows. With `ClassSide' true the entry
%% on the class side of `ClassName'. Nothing there: no effect.
-spec unregister(ClassName :: atom(), Selector :: atom(), ClassSide :: boolean()) -> ok.
unregister(ClassName, Selector, ClassSide) ->
    _ = take(ClassName, Selector, ClassSide),
    ok.

%% @doc As {@link unregister/3}, and answers what it removed: of several callers at once, one gets it.
-spec take(ClassName :: atom(), Selector :: atom(), ClassSide :: boolean()) ->
    {ok, function(), atom(), Source :: binary() | undefined} | not_found.
take(ClassName, Selector, ClassSide) when
    is_atom(ClassName), is_atom(Selector), is_boolean(ClassSide)
->
    case class_key(ClassName, ClassSide) of
        {ok, ClassKey} -> take(ClassKey, Selector);
        none -> not_found
    end.

take(ClassKey, Selector) ->
    case remove(ClassKey, Selector) of
        none ->
            not_found;
        {Fun, Owner, Source} ->
            forget(ClassKey, [Selector]),
            {ok, Fun, Owner, Source}
    end.

%% @doc Removes everything under exactly this class key, in one step. Nothing there: no effect.
-spec purge_class(ClassKey :: atom()) -> ok.
purge_class(ClassKey) when is_atom(ClassKey) ->
    forget(ClassKey, ?READ(beamtalk_image_nif:extension_purge_class(ClassKey), [])).

%% @doc The function and owner at exactly this key: no inheritance, no other side. Some tens of nanoseconds.
-spec lookup(ClassKey :: atom(), Selector :: atom()) -> {ok, function(), atom()} | not_found.
lookup(ClassKey, Selector) when is_atom(ClassKey), is_atom(Selector) ->
    try
        beamtalk_image_nif:extension_lookup(ClassKey, Selector)
    catch
        error:_ -> not_found
    end.

%% @doc The first of the class keys that has the selector, with its function and owner: one call for a whole chain.
-spec lookup_chain(ClassKeys :: [atom()], Selector :: atom()) ->
    {ok, atom(), function(), atom()} | not_found.
lookup_chain(ClassKeys, Selector) when is_list(ClassKeys), is_atom(Selector) ->
    ?READ(beamtalk_image_nif:extension_lookup_chain(ClassKeys, Selector), not_found).

%% @doc Whether the key has an entry.
-spec has(ClassKey :: atom(), Selector :: atom()) -> boolean().
has(ClassKey, Selector) when is_atom(ClassKey), is_atom(Selector) ->
    try
        beamtalk_image_nif:extension_has(ClassKey, Selector)
    catch
        error:_ -> false
    end.

%% @doc Selector and owner of every entry under the class key, in no order. Cost: the answer's length.
-spec list(ClassKey :: atom()) -> [{atom(), atom()}].
list(ClassKey) when is_atom(ClassKey) ->
    case ?READ(beamtalk_image_nif:extension_list(ClassKey), []) of
        more -> beamtalk_image_nif:extension_list_dirty(ClassKey);
        Pairs -> Pairs
    end.

%% @doc The distinct owners of entries under the class key, sorted.
-spec extenders_of(ClassKey :: atom()) -> [atom()].
extenders_of(ClassKey) ->
    lists:usort([Owner || {_Selector, Owner} <- list(ClassKey)]).

%% @doc Class key and selector of every entry of the owner, in no order. Cost: the answer's length.
-spec extensions_by(Owner :: atom()) -> [{atom(), atom()}].
extensions_by(Owner) when is_atom(Owner) ->
    case ?READ(beamtalk_image_nif:extension_by_owner(Owner), []) of
        more -> beamtalk_image_nif:extension_by_owner_dirty(Owner);
        Keys -> Keys
    end.

%% @doc The source text at the key; `not_found' for an entry without one too.
-spec getSource(ClassKey :: atom(), Selector :: atom()) -> {ok, binary()} | not_found.
getSource(ClassKey, Selector) when is_atom(ClassKey), is_atom(Selector) ->
    case ?READ(beamtalk_image_nif:extension_source(ClassKey, Selector), not_found) of
        more -> beamtalk_image_nif:extension_source_dirty(ClassKey, Selector);
        Found -> Found
    end.

%% @doc Every entry that has a source text, in no order. Cost: the answer's length.
-spec listAllWithSource() -> [{atom(), atom(), binary()}].
listAllWithSource() ->
    ?READ(beamtalk_image_nif:extension_sourced(), []).

%% @doc The keys that more than one owner registered since they were last empty, with those owners sorted.
-spec conflicts() -> [{atom(), atom(), [atom()]}].
conflicts() ->
    [{ClassKey, Selector, lists:usort(Owners)}
        || {ClassKey, Selector, Owners} <- ?READ(beamtalk_image_nif:extension_conflicts(), [])].

%% @doc Runs a write to the cross-reference index, which may be away: the exits that say so are swallowed, anything
%% else propagates. `Fun' must answer `ok'.
-spec safe_xref(Fun :: fun(() -> ok)) -> ok.
safe_xref(Fun) ->
    try
        ok = Fun()
    catch
        exit:noproc -> ok;
        exit:{noproc, _} -> ok;
        exit:{normal, _} -> ok;
        exit:{{nodedown, _}, _} -> ok
    end.

%% @private
%% Asks the compiler for the sends of one version of an extension and indexes them; a later version, or none, stands:
%% then the answer is dropped.
-spec index_sends(atom(), atom(), pos_integer()) -> ok.
index_sends(ClassKey, Selector, Version) ->
    case beamtalk_image_nif:extension_version(ClassKey, Selector) of
        {Version, sourced} ->
            {ok, Source} = source_of_version(ClassKey, Selector),
            Entry = method_entry(Selector, Source, indexed, Version),
            case beamtalk_image_nif:extension_version(ClassKey, Selector) of
                {Version, sourced} ->
                    put_row(ClassKey, Selector, Entry#{completes => true}),
                    _ = beamtalk_image_nif:extension_indexed(ClassKey, Selector, Version),
                    verify_row(ClassKey, Selector, {Version, sourced});
                _ ->
                    ok
            end;
        _ ->
            ok
    end.

%% @private
%% The versions whose sends are still to be indexed: what the background process goes on with after a crash.
-spec pending_sends() -> [{atom(), atom(), pos_integer()}].
pending_sends() ->
    ?READ(beamtalk_image_nif:extension_pending(), []).

%% @private
%% Removes every extension with its rows in the index.
-spec clear() -> ok.
clear() ->
    Keys = ?READ(beamtalk_image_nif:extension_keys(), []),
    ok = ?READ(beamtalk_image_nif:extension_clear(), ok),
    invalidate_conformance(),
    lists:foreach(fun({ClassKey, Selector}) -> index_definition(ClassKey, Selector) end, Keys).

%% @private
%% Puts the definition of every extension into an index that was opened empty, and has their sends read again.
-spec index_all() -> ok.
index_all() ->
    Keys = ?READ(beamtalk_image_nif:extension_keys(), []),
    Keys =:= [] orelse beamtalk_image_nif:extension_unindexed(),
    lists:foreach(fun({ClassKey, Selector}) -> index_definition(ClassKey, Selector) end, Keys),
    beamtalk_image_indexer:resume().

%% A writer that would have to wait for another one waits on a dirty scheduler.
store(ClassKey, Selector, Fun, Owner, Source) ->
    case beamtalk_image_nif:extension_register(ClassKey, Selector, Fun, Owner, Source) of
        busy -> beamtalk_image_nif:extension_register_dirty(ClassKey, Selector, Fun, Owner, Source);
        Stored -> Stored
    end.

remove(ClassKey, Selector) ->
    case ?READ(beamtalk_image_nif:extension_unregister(ClassKey, Selector), none) of
        busy -> beamtalk_image_nif:extension_unregister_dirty(ClassKey, Selector);
        Removed -> Removed
    end.

source_of_version(ClassKey, Selector) ->
    case getSource(ClassKey, Selector) of
        {ok, Source} -> {ok, Source};
        not_found -> {ok, <<>>}
    end.

%% Makes the index say what the registry says, also when other writers of the same key are under way: whoever writes
%% last has looked at the registry after its write.
index_definition(ClassKey, Selector) ->
    Now = beamtalk_image_nif:extension_version(ClassKey, Selector),
    case Now of
        none -> purge_row(ClassKey, Selector);
        {Version, sourced} -> put_row(ClassKey, Selector, method_entry(Selector, <<>>, indexed, Version));
        {Version, sourceless} ->
            put_row(ClassKey, Selector, method_entry(Selector, undefined, unindexed_runtime_fun, Version))
    end,
    verify_row(ClassKey, Selector, Now).

verify_row(ClassKey, Selector, Written) ->
    case beamtalk_image_nif:extension_version(ClassKey, Selector) of
        Written -> ok;
        _ -> index_definition(ClassKey, Selector)
    end.

forget(ClassKey, Selectors) ->
    invalidate_conformance(),
    lists:foreach(fun(Selector) -> index_definition(ClassKey, Selector) end, Selectors).

%% The class side is told apart by the class key alone, so the index is always asked for the instance side.
method_entry(Selector, Source, Status, Version) ->
    Entry = advisory(fun() ->
        beamtalk_xref:build_method_entry(false, Selector, Source, Status, extension)
    end),
    case Entry of
        #{} -> Entry#{extension_version => Version};
        _ -> #{selector => Selector, line => 1, source_status => Status, provenance => extension,
            extension_version => Version}
    end.

put_row(ClassKey, Selector, Entry) ->
    _ = advisory(fun() -> beamtalk_xref:put_method(ClassKey, false, Selector, Entry) end),
    ok.

purge_row(ClassKey, Selector) ->
    _ = advisory(fun() ->
        case erlang:function_exported(beamtalk_xref, purge_extension, 2) of
            true -> beamtalk_xref:purge_extension(ClassKey, Selector);
            false -> beamtalk_xref:purge_method(ClassKey, false, Selector)
        end
    end),
    ok.

invalidate_conformance() ->
    _ = advisory(fun() -> beamtalk_protocol_registry:invalidate_conforms_cache() end),
    ok.

%% The index and the conformance answers follow the registry; that one of them is away or fails is theirs to mend and
%% must not undo a registration that already dispatches.
advisory(Fun) ->
    try
        Fun()
    catch
        Class:Reason ->
            ?LOG_DEBUG("extension registry: a dependent update failed: ~tp:~tp", [Class, Reason], ?DOMAIN),
            failed
    end.

class_key(ClassName, false) -> {ok, ClassName};
class_key(ClassName, true) -> beamtalk_image_names:tag_of(ClassName).

warn_conflict(ClassKey, Selector, OldOwner, NewOwner) ->
    ?LOG_WARNING(
        "extension ~tp on ~tp: owner ~tp is replaced by ~tp; the last registration wins",
        [Selector, ClassKey, OldOwner, NewOwner],
        ?DOMAIN
    ).
