%% @doc The cross-reference index: who defines, sends and references what.
%%
%% Rows live in the NIF. They are open for writing from {@link start_link/0} to the orderly end of the server process;
%% a crash leaves them open, and nothing is lost. The process holds no data: its registered name is what the host looks
%% for. Reads and writes run in the caller; writes are serialised, and every reader sees an effect once its call has
%% returned. A class is replaced whole: a read sees its earlier rows or its new ones.
%%
%% Rows of a class lie in two layers, the class's own and those of extensions. The upper one is reported, and removing
%% it shows the one beneath.
-module(beamtalk_xref).
-behaviour(gen_server).

-include_lib("kernel/include/logger.hrl").
-include("beamtalk_image_read.hrl").

-export([
    start_link/0,
    register_class/2,
    purge_class/1,
    put_method/4,
    purge_method/3,
    build_method_entry/5,
    senders_of/1,
    senders_of/2,
    references_to/1,
    implementors_of/1,
    defined_selectors/2,
    method_info/3,
    callers_of_native_module/1,
    hierarchy_related_classes/1,
    senders_of_bt/1,
    references_to_bt/1,
    implementors_of_bt/1,
    defined_selectors_bt/0,
    all_sends_bt/0,
    all_sent_selectors_bt/0
]).
-export([set_provenance/2, restrict_provenance/2, purge_extension/2, forget_class/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).
-export_type([
    site/0,
    method_info/0,
    native_caller_row/0,
    source_status/0,
    provenance/0,
    method_xref_entry/0,
    bt_row/0,
    impl_row/0,
    selector_row/0,
    send_row/0,
    bt_recv_kind/0,
    recv_kind/0,
    recv_type/0
]).

-type recv_kind() :: self_recv | super_recv | erlang_ffi | other.
-type bt_recv_kind() :: self | super | erlang_ffi | other.
-type recv_type() :: dynamic | atom() | {union, [recv_type()]} | {intersection, [recv_type()]}.
-type source_status() :: indexed | unindexed_runtime_fun | synthetic.
-type provenance() :: class_body | extension | class_builder | put_method | protocol.
-type method_xref_entry() :: #{
    selector := atom(),
    line := pos_integer(),
    class_side => boolean(),
    sends => [map()],
    references => [map()],
    unresolved_sends => [map()],
    source_status => source_status(),
    provenance => provenance(),
    origin => atom(),
    _ => _
}.
-type site() :: #{
    owner := atom(),
    class_side := boolean(),
    method := atom(),
    line := pos_integer(),
    recv_kind => recv_kind(),
    target_module => atom(),
    recv_type => recv_type(),
    gen := non_neg_integer()
}.
-type method_info() :: #{
    owner := atom(),
    line := pos_integer(),
    source_status := source_status(),
    provenance := provenance(),
    origin => atom(),
    gen := non_neg_integer()
}.
-type bt_row() :: #{owner := atom(), class_side := boolean(), method := atom(), line := pos_integer()}.
-type native_caller_row() :: bt_row().
-type impl_row() :: #{owner := atom(), class_side := boolean()}.
-type selector_row() :: #{owner := atom(), class_side := boolean(), selector := atom()}.
-type send_row() :: #{
    sent := atom(),
    owner := atom(),
    class_side := boolean(),
    method := atom(),
    line := pos_integer(),
    recv := bt_recv_kind()
}.
-type of_loaded(Row) :: #{indexed := [Row], fallback_classes := [atom()]}.

-define(DOMAIN, #{domain => [beamtalk, runtime]}).
%% An atom's text has at most so many characters; longer selectors are no names.
-define(LONGEST_NAME, 255).

%% ---- The process --------------------------------------------------------------------------------------------

%% @doc Starts the server and opens the index. After a crash the rows are still there; after an orderly end the index
%% is empty.
-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    case gen_server:start_link({local, ?MODULE}, ?MODULE, [], []) of
        ignore -> {error, ignore};
        Started -> Started
    end.

%% @private
-spec init([]) -> {ok, []}.
init([]) ->
    process_flag(trap_exit, true),
    ok = beamtalk_image_host:set_log_domain(runtime),
    case ?READ(beamtalk_image_nif:xref_open(), no_library) of
        true ->
            ?LOG_INFO("cross-reference index: server restarted, rows kept", ?DOMAIN),
            {ok, []};
        false ->
            ?LOG_INFO("cross-reference index: open", ?DOMAIN),
            index_extensions(),
            {ok, []};
        no_library ->
            ?LOG_ERROR("cross-reference index: the native library is not loaded, so nothing will be indexed: ~tp; "
                "build it with native/build.sh and restart", [beamtalk_image_nif:load_error()], ?DOMAIN),
            {ok, []}
    end.

%% Extensions that were registered while no index was open get their rows before anybody else can write.
index_extensions() ->
    case erlang:function_exported(beamtalk_extensions, index_all, 0) of
        true -> beamtalk_extensions:index_all();
        false -> ok
    end.

%% @private
-spec handle_call(term(), gen_server:from(), []) -> {reply, {error, unknown_request}, []}.
handle_call(_Request, _From, []) ->
    {reply, {error, unknown_request}, []}.

%% @private
-spec handle_cast(term(), []) -> {noreply, []}.
handle_cast(_Message, []) ->
    {noreply, []}.

%% @private
-spec handle_info(term(), []) -> {noreply, []}.
handle_info(_Message, []) ->
    {noreply, []}.

%% @private
-spec terminate(term(), []) -> ok.
terminate(Reason, []) ->
    case orderly(Reason) of
        true -> ?READ(beamtalk_image_nif:xref_close(), ok);
        false -> ok
    end.

orderly(normal) -> true;
orderly(shutdown) -> true;
orderly({shutdown, _}) -> true;
orderly(_) -> false.

%% ---- Writing ------------------------------------------------------------------------------------------------

%% @doc Replaces all rows that the class itself defines, at once for every reader. An empty list makes it count as
%% indexed. Of two entries for one method the first counts. A malformed entry raises `badarg', naming its place, key
%% and value, and changes nothing; an index that is not open exits with `{noproc, _}'. Cost: the rows of the class.
-spec register_class(Class :: atom(), Entries :: [method_xref_entry()]) -> ok.
register_class(Class, Entries) when is_atom(Class), is_list(Entries) ->
    written(?READ(beamtalk_image_nif:xref_register_class(Class, Entries), closed), register_class, [Class, Entries]).

%% @doc Removes every row that the class owns and forgets that it was ever indexed. Unknown class: no effect.
-spec purge_class(Class :: atom()) -> ok.
purge_class(Class) when is_atom(Class) ->
    written(?READ(beamtalk_image_nif:xref_purge_class(Class), closed), purge_class, [Class]).

%% @doc Replaces the rows of one method in the layer of its provenance; side and selector of the arguments count.
%% Errors as in {@link register_class/2}. Cost: the rows of the method.
-spec put_method(
    Class :: atom(), ClassSide :: boolean(), Selector :: atom(), Entry :: method_xref_entry()
) -> ok.
put_method(Class, ClassSide, Selector, Entry) when
    is_atom(Class), is_boolean(ClassSide), is_atom(Selector), is_map(Entry)
->
    Written =
        case ?READ(beamtalk_image_nif:xref_put_method(Class, ClassSide, Selector, Entry), closed) of
            busy -> beamtalk_image_nif:xref_put_method_dirty(Class, ClassSide, Selector, Entry);
            Answer -> Answer
        end,
    written(Written, put_method, [Class, ClassSide, Selector, Entry]).

%% @doc Removes the reported row of a method with its sends and references; a row beneath it shows again. Unknown
%% method: no effect.
-spec purge_method(Class :: atom(), ClassSide :: boolean(), Selector :: atom()) -> ok.
purge_method(Class, ClassSide, Selector) when is_atom(Class), is_boolean(ClassSide), is_atom(Selector) ->
    Written =
        case ?READ(beamtalk_image_nif:xref_purge_method(Class, ClassSide, Selector), closed) of
            busy -> beamtalk_image_nif:xref_purge_method_dirty(Class, ClassSide, Selector);
            Answer -> Answer
        end,
    written(Written, purge_method, [Class, ClassSide, Selector]).

%% @doc Removes an extension's row, and never the class's own row of that selector.
-spec purge_extension(ClassKey :: atom(), Selector :: atom()) -> ok.
purge_extension(ClassKey, Selector) when is_atom(ClassKey), is_atom(Selector) ->
    Written =
        case ?READ(beamtalk_image_nif:xref_purge_extension(ClassKey, Selector), closed) of
            busy -> beamtalk_image_nif:xref_purge_extension_dirty(ClassKey, Selector);
            Answer -> Answer
        end,
    written(Written, purge_extension, [ClassKey, Selector]).

%% @doc Removes a class for good: the rows of both layers, those that a redefinition would bring back, and the origins
%% stated for it.
-spec forget_class(Class :: atom()) -> ok.
forget_class(Class) when is_atom(Class) ->
    written(?READ(beamtalk_image_nif:xref_forget_class(Class), closed), forget_class, [Class]).

%% @doc States which instance methods of a class come from which protocol (ADR 0127 §12). Rows of the class's own text
%% turn into rows of provenance `protocol' with that origin, now and at every registration until other origins are
%% stated; an empty map states that none do.
-spec set_provenance(Class :: atom(), Origins :: #{Selector :: atom() => Protocol :: atom()}) -> ok.
set_provenance(Class, Origins) when is_atom(Class), is_map(Origins) ->
    written(
        ?READ(beamtalk_image_nif:xref_set_provenance(Class, maps:to_list(Origins)), closed), set_provenance, [Class, Origins]
    ).

%% @doc Takes back the origins of a class's methods that name none of these protocols.
-spec restrict_provenance(Class :: atom(), Protocols :: [atom()]) -> ok.
restrict_provenance(Class, Protocols) when is_atom(Class), is_list(Protocols) ->
    written(
        ?READ(beamtalk_image_nif:xref_restrict_provenance(Class, Protocols), closed), restrict_provenance, [Class, Protocols]
    ).

written(ok, _Function, _Args) ->
    ok;
written(closed, Function, Args) ->
    exit({noproc, {?MODULE, Function, Args}});
written({bad_entry, _, _, _} = Bad, Function, Args) ->
    beamtalk_image_errors:raise_bad_entry(Bad, ?MODULE, Function, Args, length(Args)).

%% @doc A method entry made from a source text. Sends come from the host's compiler, except for a function without
%% text. A selector that no atom spells is left out of `sends' and kept as text under `unresolved_sends'.
-spec build_method_entry(
    ClassSide :: boolean(),
    Selector :: atom(),
    Source :: term(),
    SourceStatus :: source_status(),
    Provenance :: provenance()
) -> method_xref_entry().
build_method_entry(ClassSide, Selector, Source, SourceStatus, Provenance) when
    is_boolean(ClassSide), is_atom(Selector), is_atom(SourceStatus), is_atom(Provenance)
->
    {Sends, Unresolved} = resolve(hits(Source, SourceStatus), [], []),
    Entry = #{
        selector => Selector,
        class_side => ClassSide,
        line => 1,
        sends => Sends,
        references => [],
        source_status => SourceStatus,
        provenance => Provenance
    },
    case Unresolved of
        [] -> Entry;
        _ -> Entry#{unresolved_sends => Unresolved}
    end.

hits(_Source, unindexed_runtime_fun) ->
    [];
hits(Source, _Status) when is_binary(Source), Source =/= <<>> ->
    try beamtalk_image_host:find_sends(Source) of
        {ok, Hits} when is_list(Hits) -> Hits;
        _ -> []
    catch
        _:_ -> []
    end;
hits(_Source, _Status) ->
    [].

resolve([], Sends, Unresolved) ->
    {lists:reverse(Sends), lists:reverse(Unresolved)};
resolve([#{selector := Text, line := Line, recv := Recv, target_module := Named} | Rest], Sends, Unresolved) when
    is_binary(Text), is_integer(Line), Line > 0, Line < 1 bsl 28
->
    Target = readable(Named),
    Module = existing_atom(Target),
    Send = #{selector => existing_atom(Text), line => Line, recv_kind => recv_kind(Recv),
        target_module => Module, recv_type => dynamic},
    %% A send whose module alone is unknown is known by its selector and waits for its module.
    Waiting = #{line => Line, recv_kind => recv_kind(Recv), target_module => waiting_module(Module, Target)},
    case Send of
        #{selector := undefined} when Text =/= <<"undefined">> ->
            resolve(Rest, Sends, keep_text(Text, Waiting, Unresolved));
        #{selector := Selector} when Module =:= undefined, Target =/= <<>>, Target =/= <<"undefined">> ->
            resolve(Rest, [Send | Sends], [Waiting#{selector => Selector} | Unresolved]);
        _ ->
            resolve(Rest, [Send | Sends], Unresolved)
    end;
resolve([_Malformed | Rest], Sends, Unresolved) ->
    resolve(Rest, Sends, Unresolved);
resolve(_Improper, Sends, Unresolved) ->
    resolve([], Sends, Unresolved).

%% Text that can never be an atom is dropped: nobody could ask for it.
keep_text(Text, Waiting, Unresolved) ->
    case readable(Text) of
        <<>> -> Unresolved;
        Readable -> [Waiting#{selector => Readable} | Unresolved]
    end.

%% The text, if an atom could spell it.
readable(Text) when is_binary(Text) ->
    case unicode:characters_to_list(Text) of
        Characters when is_list(Characters), length(Characters) =< ?LONGEST_NAME -> Text;
        _ -> <<>>
    end;
readable(_Other) ->
    <<>>.

waiting_module(undefined, <<>>) -> undefined;
waiting_module(undefined, Text) -> Text;
waiting_module(Module, _Text) -> Module.

recv_kind(self) -> self_recv;
recv_kind(super) -> super_recv;
recv_kind(erlang_ffi) -> erlang_ffi;
recv_kind(_) -> other.

existing_atom(Text) when is_binary(Text), Text =/= <<>>, byte_size(Text) =< ?LONGEST_NAME ->
    try
        binary_to_existing_atom(Text)
    catch
        error:_ -> undefined
    end;
existing_atom(_) ->
    undefined.

%% ---- Plain reads --------------------------------------------------------------------------------------------

%% @doc Every send of the selector, in no order; two sends of one method that agree in everything are one row.
%% Cost: the answer's length.
-spec senders_of(Selector :: atom()) -> [site()].
senders_of(Selector) when is_atom(Selector) ->
    sites(sender_rows(Selector)).

%% @doc Those senders that may reach a class that changed: a class name for its instance side, a tag for its class
%% side. A send is left out only if its receiver's type proves that it cannot.
-spec senders_of(Selector :: atom(), Changed :: atom()) -> [site()].
senders_of(Selector, Changed) when is_atom(Selector), is_atom(Changed) ->
    Names = ?READ(beamtalk_image_nif:xref_receiver_names(Selector), []),
    Excluded = unreachable(Names, Changed),
    Rows = with_text(Selector, fun(Text) ->
        beamtalk_image_nif:xref_senders_reaching(Selector, Text, Excluded)
    end),
    sites(Rows).

%% @doc Every mention of the class, in no order. Cost: the answer's length.
-spec references_to(Class :: atom()) -> [site()].
references_to(Class) when is_atom(Class) ->
    Rows =
        case ?READ(beamtalk_image_nif:xref_references(Class), []) of
            more -> beamtalk_image_nif:xref_references_dirty(Class);
            Some -> Some
        end,
    [#{owner => Owner, class_side => ClassSide, method => Method, line => Line, gen => Gen}
        || {Owner, ClassSide, Method, Line, Gen} <- Rows].

%% @doc Classes and sides that define the selector, sorted. A class-side extension shows under its tag.
-spec implementors_of(Selector :: atom()) -> [{Class :: atom(), ClassSide :: boolean()}].
implementors_of(Selector) when is_atom(Selector) ->
    case ?READ(beamtalk_image_nif:xref_implementors(Selector), []) of
        more -> beamtalk_image_nif:xref_implementors_dirty(Selector);
        Rows -> Rows
    end.

%% @doc The selectors that a class defines on one side, sorted.
-spec defined_selectors(Class :: atom(), ClassSide :: boolean()) -> [atom()].
defined_selectors(Class, ClassSide) when is_atom(Class), is_boolean(ClassSide) ->
    case ?READ(beamtalk_image_nif:xref_selectors(Class, ClassSide), []) of
        more -> beamtalk_image_nif:xref_selectors_dirty(Class, ClassSide);
        Selectors -> Selectors
    end.

%% @doc What is known of one method; `undefined' if it is not defined. A method that a protocol provides carries its
%% `origin'.
-spec method_info(Class :: atom(), ClassSide :: boolean(), Selector :: atom()) -> method_info() | undefined.
method_info(Class, ClassSide, Selector) when is_atom(Class), is_boolean(ClassSide), is_atom(Selector) ->
    case ?READ(beamtalk_image_nif:xref_method(Class, ClassSide, Selector), undefined) of
        undefined ->
            undefined;
        {Line, Status, Provenance, undefined, Gen} ->
            #{owner => Class, line => Line, source_status => Status, provenance => Provenance, gen => Gen};
        {Line, Status, Provenance, Origin, Gen} ->
            #{owner => Class, line => Line, source_status => Status, provenance => Provenance,
                origin => Origin, gen => Gen}
    end.

%% @doc The methods that call a function of the Erlang module, each at its smallest such line, sorted by owner and
%% method. An empty answer proves nothing: compiled code records no module for most calls.
-spec callers_of_native_module(Module :: atom()) -> [native_caller_row()].
callers_of_native_module(Module) when is_atom(Module) ->
    Rows = with_text(Module, fun(Text) ->
        case beamtalk_image_nif:xref_native_callers(Module, Text) of
            more -> beamtalk_image_nif:xref_native_callers_dirty(Module, Text);
            Some -> Some
        end
    end),
    [#{owner => Owner, class_side => ClassSide, method => Method, line => Line}
        || {Owner, Method, ClassSide, Line} <- lists:sort(Rows)].

%% @doc The class with its ancestors and descendants, as a version-2 set. Ancestors of a chain of any depth are found, and
%% a cycle among them ends; descendants are what the host answers.
-spec hierarchy_related_classes(Class :: atom()) -> sets:set(atom()).
hierarchy_related_classes(Class) when is_atom(Class) ->
    Descendants =
        try
            beamtalk_image_host:descendants(Class)
        catch
            _:_ -> []
        end,
    sets:from_list([Class | Descendants] ++ beamtalk_image_chain:ancestors(Class), [{version, 2}]).

sender_rows(Selector) ->
    with_text(Selector, fun(Text) ->
        case beamtalk_image_nif:xref_senders(Selector, Text) of
            more -> beamtalk_image_nif:xref_senders_dirty(Selector, Text);
            Rows -> Rows
        end
    end).

%% Sends indexed before their selector was an atom are found by its text, which only this side can give.
with_text(Name, Ask) ->
    case ?READ(Ask(none), []) of
        text -> Ask(atom_to_binary(Name));
        Rows -> Rows
    end.

sites(Rows) ->
    [#{owner => Owner, class_side => ClassSide, method => Method, line => Line, recv_kind => Kind,
        target_module => Target, recv_type => Type, gen => Gen}
        || {Owner, ClassSide, Method, Line, Kind, Target, Type, Gen} <- Rows].

%% ---- Receiver types -----------------------------------------------------------------------------------------

%% Names whose receivers cannot reach the changed class. Every base name is judged once.
unreachable([], _Changed) ->
    [];
unreachable(Names, Changed) ->
    ChangedSide = beamtalk_image_names:is_class_tag(Changed),
    Base = beamtalk_image_names:base_name(Changed),
    OnSide = [{Name, beamtalk_image_names:base_name(Name)}
        || Name <- Names, beamtalk_image_names:is_class_tag(Name) =:= ChangedSide],
    Related = hierarchy_related_classes(Base),
    Reaches = maps:from_list([{Candidate, may_reach(Candidate, Base, Related)}
        || Candidate <- lists:usort([Candidate || {_, Candidate} <- OnSide])]),
    Reaching = [Name || {Name, Candidate} <- OnSide, maps:get(Candidate, Reaches)],
    Names -- Reaching.

may_reach(Candidate, Base, Related) ->
    case beamtalk_protocol_registry:is_protocol(Candidate) of
        true -> beamtalk_protocol_registry:conforms_to(Base, Candidate);
        false -> sets:is_element(Candidate, Related) orelse is_unknown_class(Candidate)
    end.

is_unknown_class(Candidate) ->
    beamtalk_image_host:superclass_row(Candidate) =:= not_found.

%% ---- Reads for SystemNavigation -----------------------------------------------------------------------------

%% @doc Senders in loaded classes, and the loaded classes that the library must scan itself. Sends of sourced
%% extensions are left out, because the library scans those in any case.
-spec senders_of_bt(Selector :: atom()) -> of_loaded(bt_row()).
senders_of_bt(Selector) when is_atom(Selector) ->
    of_loaded(sendersOf, fun(Text) -> {senders, Selector, Text} end, Selector, fun bt_rows/1).

%% @doc References in loaded classes; as {@link senders_of_bt/1}.
-spec references_to_bt(Class :: atom()) -> of_loaded(bt_row()).
references_to_bt(Class) when is_atom(Class) ->
    of_loaded(referencesTo, fun(_) -> {references, Class} end, Class, fun bt_rows/1).

%% @doc Implementors in loaded classes.
-spec implementors_of_bt(Selector :: atom()) -> of_loaded(impl_row()).
implementors_of_bt(Selector) when is_atom(Selector) ->
    of_loaded(implementorsOf, fun(_) -> {implementors, Selector} end, Selector, fun(Rows) ->
        [#{owner => Owner, class_side => ClassSide} || {Owner, ClassSide} <- Rows]
    end).

%% @doc Every method of the loaded classes.
-spec defined_selectors_bt() -> of_loaded(selector_row()).
defined_selectors_bt() ->
    of_loaded(selectorsMatching, fun(_) -> selectors end, undefined, fun(Rows) ->
        [#{owner => Owner, class_side => ClassSide, selector => Selector}
            || {Owner, ClassSide, Selector} <- Rows]
    end).

%% @doc Every send in the loaded classes.
-spec all_sends_bt() -> of_loaded(send_row()).
all_sends_bt() ->
    of_loaded(unimplementedSelectors, fun(_) -> sends end, undefined, fun(Rows) ->
        [#{sent => Sent, owner => Owner, class_side => ClassSide, method => Method, line => Line,
            recv => bt_recv_kind(Kind)}
            || {Name, Owner, ClassSide, Method, Line, Kind} <- Rows, Sent <- as_atom(Name)]
    end).

%% @doc Every selector sent in the loaded classes, calls of Erlang functions aside; sorted.
-spec all_sent_selectors_bt() -> of_loaded(atom()).
all_sent_selectors_bt() ->
    of_loaded(unusedSelectors, fun(_) -> sent_selectors end, undefined, fun(Names) ->
        lists:usort(lists:flatmap(fun as_atom/1, Names))
    end).

bt_rows(Rows) ->
    [#{owner => Owner, class_side => ClassSide, method => Method, line => Line}
        || {Owner, ClassSide, Method, Line} <- Rows].

bt_recv_kind(self_recv) -> self;
bt_recv_kind(super_recv) -> super;
bt_recv_kind(Kind) -> Kind.

%% Text that is still no atom names nothing that a caller could ask about.
as_atom(Name) when is_atom(Name) -> [Name];
as_atom(Text) -> [Atom || Atom <- [existing_atom(Text)], Atom =/= undefined].

of_loaded(Query, Question, Name, Shape) ->
    Loaded = beamtalk_image_host:loaded_classes(),
    of_loaded(Query, Question, Name, Shape, Loaded, once).

%% A class that is starting is loaded before it has registered. Asking it waits for its start-up, so a miss that the
%% index meanwhile knows is no miss; the rows are then fetched once more.
of_loaded(Query, Question, Name, Shape, Loaded, Again) ->
    Names = [Class || {Class, _Pid} <- Loaded],
    {Rows, Unindexed} = with_text(Name, fun(Text) ->
        ?READ(beamtalk_image_nif:xref_of_loaded(Question(Text), Names), {[], Names})
    end),
    Fallback = defining(Unindexed, Loaded),
    case Again =:= once andalso Fallback =/= ?READ(beamtalk_image_nif:xref_unindexed(Fallback), Fallback) of
        true ->
            of_loaded(Query, Question, Name, Shape, Loaded, never);
        false ->
            lists:foreach(fun(Class) -> warn_miss(Class, Query) end, Fallback),
            #{indexed => Shape(Rows), fallback_classes => Fallback}
    end.

defining([], _Loaded) ->
    [];
defining(Unindexed, Loaded) ->
    Pids = maps:from_list(Loaded),
    [Class || Class <- Unindexed, defines_methods(maps:get(Class, Pids))].

defines_methods(Pid) ->
    try
        beamtalk_image_host:instance_selectors(Pid) =/= [] orelse
            beamtalk_image_host:class_selectors(Pid) =/= []
    catch
        _:_ -> false
    end.

warn_miss(Class, Query) ->
    ?LOG_WARNING(
        #{event => xref_miss, reason => xref_miss, class => Class, query => Query, domain => [beamtalk, runtime]},
        ?DOMAIN
    ).
