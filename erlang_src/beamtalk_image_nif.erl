%% @private
%% @doc The stubs of the NIF, and nothing else. Policy lives in the modules that call them.
%%
%% Loading keeps its reason and never fails the module: an image without its library must still send messages, so a
%% stub raises and the caller decides. Loading again while the old code serves is refused, and the old code stays.
-module(beamtalk_image_nif).

-on_load(load/0).
-nifs([
    log_to_me/0,
    log_level/1,
    log_dropped/0,
    allocated/0,
    extension_register/5,
    extension_unregister/2,
    extension_purge_class/1,
    extension_clear/0,
    extension_lookup/2,
    extension_lookup_chain/2,
    extension_has/2,
    extension_version/2,
    extension_source/2,
    extension_source_dirty/2,
    extension_indexed/3,
    extension_pending/0,
    extension_unindexed/0,
    extension_keys/0,
    extension_list/1,
    extension_list_dirty/1,
    extension_by_owner/1,
    extension_by_owner_dirty/1,
    extension_sourced/0,
    extension_conflicts/0,
    extension_counts/0,
    build_profile/0,
    extension_register_dirty/5,
    extension_unregister_dirty/2,
    xref_open/0,
    xref_close/0,
    xref_clear/0,
    xref_register_class/2,
    xref_purge_class/1,
    xref_forget_class/1,
    xref_put_method/4,
    xref_put_method_dirty/4,
    xref_purge_method/3,
    xref_purge_method_dirty/3,
    xref_purge_extension/2,
    xref_purge_extension_dirty/2,
    xref_set_provenance/2,
    xref_restrict_provenance/2,
    xref_senders/2,
    xref_senders_dirty/2,
    xref_receiver_names/1,
    xref_senders_reaching/3,
    xref_references/1,
    xref_references_dirty/1,
    xref_implementors/1,
    xref_implementors_dirty/1,
    xref_selectors/2,
    xref_selectors_dirty/2,
    xref_method/3,
    xref_native_callers/2,
    xref_native_callers_dirty/2,
    xref_unindexed/1,
    xref_of_loaded/2,
    xref_counts/0,
    protocol_register/2,
    protocol_unregister_module/1,
    protocol_register_uses/3,
    protocol_invalidate/0,
    protocol_invalidate_dirty/0,
    protocol_clear/0,
    protocol_definition/1,
    protocol_exists/1,
    protocol_names/0,
    protocol_required/1,
    protocol_provided/1,
    protocol_uses/1,
    protocol_users/1,
    protocol_conformance/2,
    protocol_missing/4,
    protocol_missing_dirty/4,
    protocol_remember/4,
    protocol_remember_dirty/4,
    protocol_counts/0,
    changelog_open/5,
    changelog_end/0,
    changelog_append/1,
    changelog_mark_flushed/1,
    changelog_clear/0,
    changelog_entries/1,
    changelog_size/0,
    changelog_epoch/0,
    changelog_listing/0,
    changelog_remember/1,
    changelog_delta/2,
    changelog_dirty/0,
    changelog_body/1,
    changelog_revert_target/3,
    changelog_revert_after/2,
    changelog_from_json/1,
    changelog_to_json/1,
    lang_diagnostics/2,
    lang_sends/1,
    lang_references/1,
    lang_slot_accesses/1,
    lang_method_entries/1,
    lang_method_span/4,
    lang_read_file/1,
    reading_items/3,
    reading_input/1,
    reading_indented/2
]).
-export([load_error/0]).
-export([
    log_to_me/0,
    log_level/1,
    log_dropped/0,
    allocated/0,
    extension_register/5,
    extension_unregister/2,
    extension_purge_class/1,
    extension_clear/0,
    extension_lookup/2,
    extension_lookup_chain/2,
    extension_has/2,
    extension_version/2,
    extension_source/2,
    extension_source_dirty/2,
    extension_indexed/3,
    extension_pending/0,
    extension_unindexed/0,
    extension_keys/0,
    extension_list/1,
    extension_list_dirty/1,
    extension_by_owner/1,
    extension_by_owner_dirty/1,
    extension_sourced/0,
    extension_conflicts/0,
    extension_counts/0,
    build_profile/0,
    extension_register_dirty/5,
    extension_unregister_dirty/2,
    xref_open/0,
    xref_close/0,
    xref_clear/0,
    xref_register_class/2,
    xref_purge_class/1,
    xref_forget_class/1,
    xref_put_method/4,
    xref_put_method_dirty/4,
    xref_purge_method/3,
    xref_purge_method_dirty/3,
    xref_purge_extension/2,
    xref_purge_extension_dirty/2,
    xref_set_provenance/2,
    xref_restrict_provenance/2,
    xref_senders/2,
    xref_senders_dirty/2,
    xref_receiver_names/1,
    xref_senders_reaching/3,
    xref_references/1,
    xref_references_dirty/1,
    xref_implementors/1,
    xref_implementors_dirty/1,
    xref_selectors/2,
    xref_selectors_dirty/2,
    xref_method/3,
    xref_native_callers/2,
    xref_native_callers_dirty/2,
    xref_unindexed/1,
    xref_of_loaded/2,
    xref_counts/0,
    protocol_register/2,
    protocol_unregister_module/1,
    protocol_register_uses/3,
    protocol_invalidate/0,
    protocol_invalidate_dirty/0,
    protocol_clear/0,
    protocol_definition/1,
    protocol_exists/1,
    protocol_names/0,
    protocol_required/1,
    protocol_provided/1,
    protocol_uses/1,
    protocol_users/1,
    protocol_conformance/2,
    protocol_missing/4,
    protocol_missing_dirty/4,
    protocol_remember/4,
    protocol_remember_dirty/4,
    protocol_counts/0,
    changelog_open/5,
    changelog_end/0,
    changelog_append/1,
    changelog_mark_flushed/1,
    changelog_clear/0,
    changelog_entries/1,
    changelog_size/0,
    changelog_epoch/0,
    changelog_listing/0,
    changelog_remember/1,
    changelog_delta/2,
    changelog_dirty/0,
    changelog_body/1,
    changelog_revert_target/3,
    changelog_revert_after/2,
    changelog_from_json/1,
    changelog_to_json/1,
    lang_diagnostics/2,
    lang_sends/1,
    lang_references/1,
    lang_slot_accesses/1,
    lang_method_entries/1,
    lang_method_span/4,
    lang_read_file/1,
    reading_items/3,
    reading_input/1,
    reading_indented/2
]).

-type written() :: ok | closed | beamtalk_image_errors:bad_entry().

-define(LOAD_ERROR, {?MODULE, load_error}).
-define(STUB, erlang:nif_error({nif_not_loaded, load_error()})).

%% @doc Why the library is not there; `none' if it is.
-spec load_error() -> none | term().
load_error() -> persistent_term:get(?LOAD_ERROR, none).

-spec load() -> ok | {error, term()}.
load() ->
    case erlang:load_nif(filename:join(priv_dir(), "beamtalk_image_nif"), 0) of
        ok ->
            _ = persistent_term:erase(?LOAD_ERROR),
            ok;
        {error, {Kind, _}} = Refused when Kind =:= upgrade; Kind =:= reload ->
            Refused;
        {error, Reason} ->
            persistent_term:put(?LOAD_ERROR, Reason)
    end.

priv_dir() ->
    case code:priv_dir(beamtalk_image) of
        {error, bad_name} ->
            filename:join(filename:dirname(filename:dirname(code:which(?MODULE))), "priv");
        Dir ->
            Dir
    end.

-spec log_to_me() -> ok.
log_to_me() -> ?STUB.

-spec log_level(off | error | warning | info | debug | trace) -> ok.
log_level(_Level) -> ?STUB.

-spec log_dropped() -> non_neg_integer().
log_dropped() -> ?STUB.

-spec allocated() -> non_neg_integer().
allocated() -> ?STUB.

-spec extension_register(atom(), atom(), fun(), atom(), binary() | undefined) ->
    {pos_integer(), atom()} | busy.
extension_register(_ClassKey, _Selector, _Fun, _Owner, _Source) -> ?STUB.

-spec extension_unregister(atom(), atom()) -> {fun(), atom(), binary() | undefined} | none | busy.
extension_unregister(_ClassKey, _Selector) -> ?STUB.

-spec extension_purge_class(atom()) -> [atom()].
extension_purge_class(_ClassKey) -> ?STUB.

-spec extension_clear() -> ok.
extension_clear() -> ?STUB.

-spec extension_lookup(atom(), atom()) -> {ok, fun(), atom()} | not_found.
extension_lookup(_ClassKey, _Selector) -> ?STUB.

-spec extension_lookup_chain([atom()], atom()) -> {ok, atom(), fun(), atom()} | not_found.
extension_lookup_chain(_ClassKeys, _Selector) -> ?STUB.

-spec extension_has(atom(), atom()) -> boolean().
extension_has(_ClassKey, _Selector) -> ?STUB.

-spec extension_version(atom(), atom()) -> {pos_integer(), sourced | sourceless} | none.
extension_version(_ClassKey, _Selector) -> ?STUB.

-spec extension_source(atom(), atom()) -> {ok, binary()} | not_found | more.
extension_source(_ClassKey, _Selector) -> ?STUB.

-spec extension_source_dirty(atom(), atom()) -> {ok, binary()} | not_found.
extension_source_dirty(_ClassKey, _Selector) -> ?STUB.

-spec extension_indexed(atom(), atom(), pos_integer()) -> boolean().
extension_indexed(_ClassKey, _Selector, _Version) -> ?STUB.

-spec extension_pending() -> [{atom(), atom(), pos_integer()}].
extension_pending() -> ?STUB.

-spec extension_unindexed() -> ok.
extension_unindexed() -> ?STUB.

-spec extension_keys() -> [{atom(), atom()}].
extension_keys() -> ?STUB.

-spec extension_list(atom()) -> [{atom(), atom()}] | more.
extension_list(_ClassKey) -> ?STUB.

-spec extension_list_dirty(atom()) -> [{atom(), atom()}].
extension_list_dirty(_ClassKey) -> ?STUB.

-spec extension_by_owner(atom()) -> [{atom(), atom()}] | more.
extension_by_owner(_Owner) -> ?STUB.

-spec extension_by_owner_dirty(atom()) -> [{atom(), atom()}].
extension_by_owner_dirty(_Owner) -> ?STUB.

-spec extension_sourced() -> [{atom(), atom(), binary()}].
extension_sourced() -> ?STUB.

-spec extension_conflicts() -> [{atom(), atom(), [atom()]}].
extension_conflicts() -> ?STUB.

-spec extension_counts() -> [{atom(), non_neg_integer()}].
extension_counts() -> ?STUB.

-spec build_profile() -> release | debug.
build_profile() -> ?STUB.

-spec extension_register_dirty(atom(), atom(), fun(), atom(), binary() | undefined) ->
    {pos_integer(), atom()}.
extension_register_dirty(_A, _B, _C, _D, _E) -> ?STUB.

-spec extension_unregister_dirty(atom(), atom()) -> {fun(), atom(), binary() | undefined} | none.
extension_unregister_dirty(_A, _B) -> ?STUB.

-spec xref_open() -> boolean().
xref_open() -> ?STUB.

-spec xref_close() -> ok.
xref_close() -> ?STUB.

-spec xref_clear() -> ok.
xref_clear() -> ?STUB.

-spec xref_register_class(atom(), list()) -> written().
xref_register_class(_A, _B) -> ?STUB.

-spec xref_purge_class(atom()) -> written().
xref_purge_class(_A) -> ?STUB.

-spec xref_forget_class(atom()) -> written().
xref_forget_class(_A) -> ?STUB.

-spec xref_put_method(atom(), boolean(), atom(), map()) -> written() | busy.
xref_put_method(_A, _B, _C, _D) -> ?STUB.

-spec xref_put_method_dirty(atom(), boolean(), atom(), map()) -> written().
xref_put_method_dirty(_A, _B, _C, _D) -> ?STUB.

-spec xref_purge_method(atom(), boolean(), atom()) -> written() | busy.
xref_purge_method(_A, _B, _C) -> ?STUB.

-spec xref_purge_method_dirty(atom(), boolean(), atom()) -> written().
xref_purge_method_dirty(_A, _B, _C) -> ?STUB.

-spec xref_purge_extension(atom(), atom()) -> written() | busy.
xref_purge_extension(_A, _B) -> ?STUB.

-spec xref_purge_extension_dirty(atom(), atom()) -> written().
xref_purge_extension_dirty(_A, _B) -> ?STUB.

-spec xref_set_provenance(atom(), [{atom(), atom()}]) -> written().
xref_set_provenance(_A, _B) -> ?STUB.

-spec xref_restrict_provenance(atom(), [atom()]) -> written().
xref_restrict_provenance(_A, _B) -> ?STUB.

-spec xref_senders(atom(), none | binary()) -> [tuple()] | text | more.
xref_senders(_A, _B) -> ?STUB.

-spec xref_senders_dirty(atom(), none | binary()) -> [tuple()] | text.
xref_senders_dirty(_A, _B) -> ?STUB.

-spec xref_receiver_names(atom()) -> [atom()].
xref_receiver_names(_A) -> ?STUB.

-spec xref_senders_reaching(atom(), none | binary(), [atom()]) -> [tuple()] | text.
xref_senders_reaching(_A, _B, _C) -> ?STUB.

-spec xref_references(atom()) -> [tuple()] | more.
xref_references(_A) -> ?STUB.

-spec xref_references_dirty(atom()) -> [tuple()].
xref_references_dirty(_A) -> ?STUB.

-spec xref_implementors(atom()) -> [{atom(), boolean()}] | more.
xref_implementors(_A) -> ?STUB.

-spec xref_implementors_dirty(atom()) -> [{atom(), boolean()}].
xref_implementors_dirty(_A) -> ?STUB.

-spec xref_selectors(atom(), boolean()) -> [atom()] | more.
xref_selectors(_A, _B) -> ?STUB.

-spec xref_selectors_dirty(atom(), boolean()) -> [atom()].
xref_selectors_dirty(_A, _B) -> ?STUB.

-spec xref_method(atom(), boolean(), atom()) -> tuple() | undefined.
xref_method(_A, _B, _C) -> ?STUB.

-spec xref_native_callers_dirty(atom(), none | binary()) -> [tuple()] | text.
xref_native_callers_dirty(_A, _B) -> ?STUB.

-spec xref_native_callers(atom(), none | binary()) -> [tuple()] | text | more.
xref_native_callers(_A, _B) -> ?STUB.

-spec xref_unindexed([atom()]) -> [atom()].
xref_unindexed(_A) -> ?STUB.

-spec xref_of_loaded(tuple() | atom(), [atom()]) -> {list(), [atom()]} | text.
xref_of_loaded(_A, _B) -> ?STUB.

-spec xref_counts() -> [{atom(), non_neg_integer()}].
xref_counts() -> ?STUB.

-spec protocol_register(atom(), map()) -> ok | beamtalk_image_errors:bad_entry().
protocol_register(_A, _B) -> ?STUB.

-spec protocol_unregister_module(atom()) -> [atom()].
protocol_unregister_module(_A) -> ?STUB.

-spec protocol_register_uses(atom(), atom(), list()) -> ok | beamtalk_image_errors:bad_entry().
protocol_register_uses(_A, _B, _C) -> ?STUB.

-spec protocol_invalidate_dirty() -> ok.
protocol_invalidate_dirty() -> ?STUB.

-spec protocol_invalidate() -> ok | busy.
protocol_invalidate() -> ?STUB.

-spec protocol_clear() -> ok.
protocol_clear() -> ?STUB.

-spec protocol_definition(atom()) -> map() | undefined.
protocol_definition(_A) -> ?STUB.

-spec protocol_exists(atom()) -> boolean().
protocol_exists(_A) -> ?STUB.

-spec protocol_names() -> [atom()].
protocol_names() -> ?STUB.

-spec protocol_required(atom()) -> {[atom()], [atom()]}.
protocol_required(_A) -> ?STUB.

-spec protocol_provided(atom()) -> [atom()].
protocol_provided(_A) -> ?STUB.

-spec protocol_uses(atom()) -> [{atom(), binary() | undefined}].
protocol_uses(_A) -> ?STUB.

-spec protocol_users(atom()) -> [atom()].
protocol_users(_A) -> ?STUB.

-spec protocol_conformance(atom(), atom()) -> boolean() | {open, non_neg_integer()}.
protocol_conformance(_A, _B) -> ?STUB.

-spec protocol_missing(atom(), atom(), non_neg_integer(), [atom()]) ->
    boolean() | {[atom()], [atom()]} | more.
protocol_missing(_A, _B, _C, _D) -> ?STUB.

-spec protocol_missing_dirty(atom(), atom(), non_neg_integer(), [atom()]) ->
    boolean() | {[atom()], [atom()]}.
protocol_missing_dirty(_A, _B, _C, _D) -> ?STUB.

-spec protocol_remember_dirty(atom(), atom(), non_neg_integer(), boolean()) -> boolean().
protocol_remember_dirty(_A, _B, _C, _D) -> ?STUB.

-spec protocol_remember(atom(), atom(), non_neg_integer(), boolean()) -> boolean() | busy.
protocol_remember(_A, _B, _C, _D) -> ?STUB.

-spec protocol_counts() -> [{atom(), non_neg_integer()}].
protocol_counts() -> ?STUB.

-spec changelog_open(none | binary(), pos_integer(), non_neg_integer(), boolean(), none | binary()) ->
    {ok, non_neg_integer(), [tuple()]} | {error, term()}.
changelog_open(_A, _B, _C, _D, _E) -> ?STUB.

-spec changelog_end() -> ok.
changelog_end() -> ?STUB.

-spec changelog_append(map()) ->
    {ok, {non_neg_integer(), [tuple()]}} | {error, term()} | beamtalk_image_errors:bad_entry() | closed.
changelog_append(_A) -> ?STUB.

-spec changelog_mark_flushed([term()]) -> {ok, [tuple()]} | {error, term()} | closed.
changelog_mark_flushed(_A) -> ?STUB.

-spec changelog_clear() -> {ok, [tuple()]} | {error, term()} | closed.
changelog_clear() -> ?STUB.

-spec changelog_entries(all | active | pending) -> [tuple()].
changelog_entries(_A) -> ?STUB.

-spec changelog_size() -> non_neg_integer().
changelog_size() -> ?STUB.

-spec changelog_epoch() -> non_neg_integer() | closed.
changelog_epoch() -> ?STUB.

-spec changelog_listing() -> [{tuple(), boolean(), boolean(), none | tuple()}].
changelog_listing() -> ?STUB.

-spec changelog_remember([{non_neg_integer(), non_neg_integer(), boolean(), binary() | undefined}]) -> ok.
changelog_remember(_A) -> ?STUB.

-spec changelog_delta(binary(), binary()) -> clean | {differs, binary(), binary()}.
changelog_delta(_A, _B) -> ?STUB.

-spec changelog_dirty() -> [{binary(), [binary()]}].
changelog_dirty() -> ?STUB.

-spec changelog_body(binary()) -> {ok, binary()} | {error, term()}.
changelog_body(_A) -> ?STUB.

-spec changelog_revert_target(binary(), binary(), atom()) -> tuple().
changelog_revert_target(_A, _B, _C) -> ?STUB.

-spec changelog_revert_after(non_neg_integer(), term()) -> tuple().
changelog_revert_after(_A, _B) -> ?STUB.

-spec changelog_from_json(binary()) -> {ok, tuple(), [tuple()]} | {error, binary()}.
changelog_from_json(_A) -> ?STUB.

-spec changelog_to_json(tuple()) -> binary().
changelog_to_json(_A) -> ?STUB.

-spec lang_diagnostics(binary(), boolean()) -> [tuple()] | {too_large, pos_integer()}.
lang_diagnostics(_A, _B) -> ?STUB.

-spec lang_sends(binary()) -> [tuple()] | {too_large, pos_integer()}.
lang_sends(_A) -> ?STUB.

-spec lang_read_file(binary()) -> {ok, binary()} | {error, binary()}.
lang_read_file(_A) -> ?STUB.

-spec lang_references(binary()) -> [tuple()] | {too_large, pos_integer()}.
lang_references(_A) -> ?STUB.

-spec lang_slot_accesses(binary()) -> [tuple()] | {too_large, pos_integer()}.
lang_slot_accesses(_A) -> ?STUB.

-spec lang_method_entries(binary()) -> [tuple()] | {too_large, pos_integer()}.
lang_method_entries(_A) -> ?STUB.

-spec lang_method_span(binary(), binary(), binary(), instance | class) ->
    {ok, non_neg_integer(), non_neg_integer()} | {error, atom(), binary()} | {too_large, pos_integer()}.
lang_method_span(_A, _B, _C, _D) -> ?STUB.

-spec reading_items(binary(), boolean(), non_neg_integer()) ->
    {ok, [tuple()]} | wrong | too_many_names | name_too_long
    | {unsupported, binary(), non_neg_integer(), non_neg_integer()} | {too_large, pos_integer()}.
reading_items(_A, _B, _C) -> ?STUB.

-spec reading_input(binary()) -> complete | open | declaration.
reading_input(_A) -> ?STUB.

-spec reading_indented(binary(), non_neg_integer()) -> binary() | {too_large, pos_integer()}.
reading_indented(_A, _B) -> ?STUB.
