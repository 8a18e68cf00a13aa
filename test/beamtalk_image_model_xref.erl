%% A naive model of the cross-reference index: each class is two maps of methods, and every read walks them
%% all.
-module(beamtalk_image_model_xref).

-export([new/0, run/2, reads/1]).
-export([loaded/0, with_methods/0, superclasses/0, changed/0]).

%% The classes that the host has loaded, those of them that define methods, and who inherits from whom.
loaded() -> ['A', 'B'].
with_methods() -> ['B'].
superclasses() -> [{'A', 'B'}, {'B', none}, {'C', none}].

%% What may have changed, for the reads that ask who can reach it.
changed() -> ['A', 'C', 'B class'].

new() -> #{}.

-define(BLANK, #{known => false, own => #{}, extensions => #{}, away => #{}, origins => #{}}).

run({register_class, Class, Entries}, Model) ->
    #{away := Away, extensions := Extensions, origins := Origins} = Rows = class(Class, Model),
    %% Of two entries for one method the first counts, so it is put in last.
    Own = maps:from_list([{key(Entry), attributed(key(Entry), row(Entry), Origins)}
        || Entry <- lists:reverse(Entries)]),
    Next = Rows#{known := true, own := Own, extensions := maps:merge(Away, Extensions), away := #{}},
    {ok, Model#{Class => Next}};
run({purge_class, Class}, Model) ->
    #{away := Away, extensions := Extensions, origins := Origins} = class(Class, Model),
    {ok, Model#{Class => ?BLANK#{away := maps:merge(Away, Extensions), origins := Origins}}};
run({redefine, Class, Entries}, Model) ->
    {ok, Purged} = run({purge_class, Class}, Model),
    run({register_class, Class, Entries}, Purged);
run({forget_class, Class}, Model) ->
    {ok, maps:remove(Class, Model)};
run({put_method, Class, ClassSide, Selector, Entry}, Model) ->
    Key = {ClassSide, Selector},
    #{own := Own, extensions := Extensions, away := Away, origins := Origins} = Rows = class(Class, Model),
    Next =
        case row(Entry) of
            #{provenance := extension} = Row ->
                Rows#{extensions := Extensions#{Key => Row}, away := maps:remove(Key, Away)};
            Row ->
                Rows#{known := true, own := Own#{Key => attributed(Key, Row, Origins)}}
        end,
    {ok, Model#{Class => Next}};
run({purge_method, Class, ClassSide, Selector}, Model) ->
    {ok, without([extensions, own, away], Class, {ClassSide, Selector}, Model)};
run({purge_extension, Class, Selector}, Model) ->
    {ok, without([extensions, away], Class, {false, Selector}, Model)};
run({set_provenance, Class, Origins}, Model) ->
    #{own := Own} = Rows = class(Class, Model),
    Restate = fun(Key, Row) -> attributed(Key, unattributed(Key, Row), Origins) end,
    {ok, Model#{Class => Rows#{own := maps:map(Restate, Own), origins := Origins}}};
run({restrict_provenance, Class, Protocols}, Model) ->
    #{origins := Origins} = class(Class, Model),
    case maps:filter(fun(_, Origin) -> lists:member(Origin, Protocols) end, Origins) of
        Origins -> {ok, Model};
        Kept -> run({set_provenance, Class, Kept}, Model)
    end.

class(Class, Model) -> maps:get(Class, Model, ?BLANK).

%% Takes the method out of the first layer that has it.
without([], _Class, _Key, Model) ->
    Model;
without([Layer | Layers], Class, Key, Model) ->
    case class(Class, Model) of
        #{Layer := #{Key := _} = Methods} = Rows ->
            Model#{Class => Rows#{Layer := maps:remove(Key, Methods)}};
        _ -> without(Layers, Class, Key, Model)
    end.

attributed({false, Selector}, #{provenance := Provenance} = Row, Origins) when
    Provenance =:= class_body; Provenance =:= protocol
->
    case Origins of
        #{Selector := Origin} -> Row#{provenance := protocol, origin := Origin};
        _ -> Row
    end;
attributed(_Key, Row, _Origins) ->
    Row.

unattributed({false, _}, #{provenance := protocol} = Row) -> Row#{provenance := class_body, origin := none};
unattributed(_Key, Row) -> Row.

key(#{selector := Selector} = Entry) -> {maps:get(class_side, Entry, false), Selector}.

%% An entry with its defaults.
row(#{line := Line} = Entry) ->
    #{
        line => Line,
        status => maps:get(source_status, Entry, indexed),
        provenance => maps:get(provenance, Entry, class_body),
        origin => none,
        sends => [{Selector, maps:get(line, Send, Line), maps:get(recv_kind, Send, other),
            maps:get(target_module, Send, undefined), maps:get(recv_type, Send, dynamic)}
            || #{selector := Selector} = Send <- maps:get(sends, Entry, [])],
        references => [{Class, maps:get(line, Reference, Line)}
            || #{class := Class} = Reference <- maps:get(references, Entry, [])],
        unresolved => [{binary_to_existing_atom(Text), maps:get(line, Send, Line), maps:get(recv_kind,
            Send, other),
            maps:get(target_module, Send, undefined)}
            || #{selector := Text} = Send <- maps:get(unresolved_sends, Entry, [])]
    }.

%% ---- Reads ------------------------------------------------------------------------------------------------

reads(Model) ->
    Methods = methods(Model),
    Classes = beamtalk_image_gen:class_keys(),
    Selectors = beamtalk_image_gen:selectors(),
    Sites = sites(Methods),
    Loaded = [Method || {{Class, _, _}, _} = Method <- Methods, lists:member(Class, loaded())],
    %% The library reads the texts of extensions itself.
    Scanned = [Method || {_, #{provenance := P, status := S}} = Method <- Loaded, {P, S} =/= {extension,
        indexed}],
    Fallback = [Class || Class <- with_methods(), not maps:get(known, class(Class, Model))],
    Answer = fun(Rows) -> {lists:usort(Rows), Fallback} end,
    maps:from_list(
        [{{senders, S}, of_selector(S, Sites)} || S <- Selectors] ++
        [{{senders, S, Changed}, [Row
            || {_, _, _, _, _, _, Type} = Row <- of_selector(S, Sites), keep(Type, Changed)]}
            || S <- Selectors, Changed <- changed()] ++
        [{{references, Class}, references(Class, Methods)} || Class <- Classes] ++
        [{{implementors, S}, [{Class, Side} || {{Class, Side, Of}, _} <- Methods, Of =:= S]}
            || S <- Selectors] ++
        [{{selectors, Class, Side}, [S || {{C, OnSide, S}, _} <- Methods, C =:= Class, OnSide =:= Side]}
            || Class <- Classes, Side <- [false, true]] ++
        [{{info, Class, Side, S}, info(Class, Side, S, Methods)}
            || Class <- Classes, Side <- [false, true], S <- Selectors] ++
        [{{callers, Module}, callers(Module, Methods)} || Module <- beamtalk_image_gen:native_modules()] ++
        [{{senders_bt, S}, Answer([{C, Side, M, Line}
            || {C, Side, M, Line, _, _, _} <- of_selector(S, sites(Scanned))])} || S <- Selectors] ++
        [{{references_bt, Class}, Answer(references(Class, Scanned))} || Class <- Classes] ++
        [{{implementors_bt, S}, Answer([{C, Side} || {{C, Side, Of}, _} <- Loaded, Of =:= S])}
            || S <- Selectors] ++
        [
            {selectors_bt, Answer([Key || {Key, _} <- Loaded])},
            {sends_bt, Answer([{Sent, C, Side, M, Line, Kind}
                || {Sent, {C, Side, M, Line, Kind, _, _}} <- sites(Scanned)])},
            {sent_bt, Answer([Sent
                || {Sent, {_, _, _, _, Kind, _, _}} <- sites(Scanned), Kind =/= erlang_ffi])}
        ]
    ).

%% The reported row of every method, in the order of their keys.
methods(Model) ->
    lists:sort([{{Class, Side, Selector}, Row}
        || {Class, #{own := Own, extensions := Extensions}} <- maps:to_list(Model),
           {{Side, Selector}, Row} <- maps:to_list(maps:merge(Own, Extensions))]).

%% Every send with what a sender site says of it; a send that waited for its name says nothing of its
%% receiver's type, nor of a module that was no name.
sites(Methods) ->
    lists:append([
        [{Sent, {C, Side, M, Line, Kind, Target, Type}} || {Sent, Line, Kind, Target, Type} <- Sends] ++
        [{Sent, {C, Side, M, Line, Kind, known(Target), dynamic}} || {Sent, Line, Kind, Target} <- Unresolved]
        || {{C, Side, M}, #{sends := Sends, unresolved := Unresolved}} <- Methods
    ]).

known(Target) when is_atom(Target) -> Target;
known(_Text) -> undefined.

of_selector(Selector, Sites) ->
    lists:usort([Site || {Sent, Site} <- Sites, Sent =:= Selector]).

references(Class, Methods) ->
    lists:usort([{C, Side, M, Line}
        || {{C, Side, M}, #{references := References}} <- Methods, {Mentioned, Line} <- References,
            Mentioned =:= Class]).

info(Class, Side, Selector, Methods) ->
    case lists:keyfind({Class, Side, Selector}, 1, Methods) of
        {_, #{line := Line, status := Status, provenance := Provenance, origin := Origin}} ->
            {Class, Line, Status, Provenance, Origin};
        false ->
            undefined
    end.

%% One row for each method, at its smallest line, by owner and method.
callers(Module, Methods) ->
    Text = atom_to_binary(Module),
    Calls = [{{C, M, Side}, Line}
        || {{C, Side, M}, #{sends := Sends, unresolved := Unresolved}} <- Methods,
           {Line, Target} <- [{L, T} || {_, L, erlang_ffi, T, _} <- Sends] ++ [{L, T}
               || {_, L, erlang_ffi, T} <- Unresolved],
           Target =:= Module orelse Target =:= Text],
    [{C, Side, M, lists:min([Line || {At, Line} <- Calls, At =:= Key])}
        || {C, M, Side} = Key <- lists:usort([Key || {Key, _} <- Calls])].

%% ---- The receiver-type filter -----------------------------------------------------------------------------

keep(dynamic, _Changed) -> true;
keep({union, Types}, Changed) -> lists:any(fun(Type) -> keep(Type, Changed) end, Types);
keep({intersection, Types}, Changed) -> lists:all(fun(Type) -> keep(Type, Changed) end, Types);
keep(Name, Changed) ->
    {Side, Base} = split(Name),
    {ChangedSide, ChangedBase} = split(Changed),
    Side =:= ChangedSide andalso reaches(Base, ChangedBase).

split(Name) ->
    case lists:member(Name, beamtalk_image_gen:base_names()) of
        true -> {instance, Name};
        false ->
            case [Base || Base <- beamtalk_image_gen:base_names(), beamtalk_image_gen:tag(Base) =:= Name] of
                [Base] -> {class, Base};
                [] -> {instance, Name}
            end
    end.

%% A protocol that asks for nothing, one that nobody satisfies, a name that nobody knows, and classes.
reaches('Everybody', _Changed) -> true;
reaches('Nobody', _Changed) -> false;
reaches('NoSuchClass', _Changed) -> true;
reaches(Class, Changed) -> lists:member(Class, above(Changed)) orelse lists:member(Changed, above(Class)).

above(none) -> [];
above(Class) -> [Class | above(proplists:get_value(Class, superclasses()))].
