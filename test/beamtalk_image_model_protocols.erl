%% A naive model of the protocol registry over a host of a few classes: every answer is found out anew.
-module(beamtalk_image_model_protocols).

-export([new/0, run/2, reads/1]).
-export([module_of/1]).

%% The module of a class; that of B has protocols too, which fall with it.
module_of('A') -> 'bt@a';
module_of('B') -> 'bt@q';
module_of('C') -> 'bt@c'.

new() -> #{protocols => #{}, uses => #{}, classes => #{}, extended => []}.

run({register_protocol, #{name := Name} = Definition}, #{protocols := Protocols} = Model) ->
    {ok, Model#{protocols := Protocols#{Name => Definition}}};
run({unregister_protocol, Module}, #{protocols := Protocols, uses := Uses} = Model) ->
    {ok, Model#{
        protocols := maps:filter(fun(_, Definition) ->
            maps:get(module, Definition, none) =/= Module end, Protocols),
        uses := maps:filter(fun(_, {Of, _}) -> Of =/= Module end, Uses)
    }};
run({register_uses, Class, Names}, Model) ->
    {ok, uses(Class, none, Names, Model)};
run({register_uses, Class, Module, Names}, Model) ->
    {ok, uses(Class, Module, Names, Model)};
run({unregister_uses, Class}, Model) ->
    {ok, uses(Class, none, [], Model)};
run({invalidate}, Model) ->
    {ok, Model};
run({class, Class, Facts}, #{classes := Classes} = Model) ->
    {ok, Model#{classes := Classes#{Class => Facts}}};
run({class_removed, Class}, #{classes := Classes, extended := Extended} = Model) ->
    Kept = [Key || {Of, _} = Key <- Extended, Of =/= Class, Of =/= beamtalk_image_gen:tag(Class)],
    Removed = Model#{classes := maps:remove(Class, Classes), extended := Kept},
    run({unregister_protocol, module_of(Class)}, uses(Class, none, [], Removed));
run({extend, Key, Selector}, #{extended := Extended} = Model) ->
    {ok, Model#{extended := lists:usort([{Key, Selector} | Extended])}};
run({unextend, Key, Selector}, #{extended := Extended} = Model) ->
    {ok, Model#{extended := Extended -- [{Key, Selector}]}}.

uses(Class, _Module, [], #{uses := Uses} = Model) -> Model#{uses := maps:remove(Class, Uses)};
uses(Class, Module, Names, #{uses := Uses} = Model) -> Model#{uses := Uses#{Class => {Module, [hashed(N)
    || N <- Names]}}}.

hashed({Name, Hash}) -> {Name, Hash};
hashed(Name) -> {Name, undefined}.

reads(#{protocols := Protocols, uses := Uses, classes := Classes, extended := Extended} = Model) ->
    Names = beamtalk_image_gen:protocols(),
    Bases = beamtalk_image_gen:base_names(),
    Live = lists:sort(maps:keys(Classes)),
    maps:from_list(
        [{{info, Name}, maps:get(Name, Protocols, undefined)} || Name <- Names] ++
        [{{is_protocol, Name}, maps:is_key(Name, Protocols)} || Name <- Names] ++
        [{all, lists:sort(maps:keys(Protocols))}] ++
        [{{required, Name}, members(required_methods, Name, Protocols) ++
            [list_to_atom("class " ++ atom_to_list(S))
                || S <- members(required_class_methods, Name, Protocols)]}
            || Name <- Names] ++
        [{{provided, Name}, members(provided_methods, Name, Protocols)} || Name <- Names] ++
        [{{conforms, Class, Name}, conforms(Class, Name, Model)} || Class <- Bases, Name <- Names] ++
        [{{protocols, Class}, [Name || Name <- lists:sort(Names), conforms(Class, Name, Model)]}
            || Class <- Bases] ++
        [{{conforming, Name}, [Class || Class <- Live, conforms(Class, Name, Model)]} || Name <- Names] ++
        [{{conforming_objects, Name}, [beamtalk_image_gen:tag(Class)
            || Class <- Live, conforms(Class, Name, Model)]}
            || Name <- Names] ++
        [{{extended, Key}, [S || {Of, S} <- Extended, Of =:= Key]}
            || Key <- beamtalk_image_gen:class_keys()] ++
        [{{used, Class}, [Name || {Name, _} <- used(Class, Uses)]} || Class <- Bases] ++
        [{{hashes, Class}, used(Class, Uses)} || Class <- Bases] ++
        [{{users, Name}, users(Name, Uses)} || Name <- Names] ++
        [{{user_objects, Name}, [beamtalk_image_gen:tag(Class)
            || Class <- users(Name, Uses), lists:member(Class, Live)]}
            || Name <- Names]
    ).

used(Class, Uses) ->
    {_, Names} = maps:get(Class, Uses, {none, []}),
    Names.

users(Name, Uses) ->
    [Class || {Class, {_, Names}} <- lists:sort(maps:to_list(Uses)), lists:keymember(Name, 1, Names)].

%% Own selectors as they are declared, then those of the parents that nobody before them declares.
members(Key, Name, Protocols) ->
    lists:foldl(
        fun(Protocol, Members) ->
            Own = [Selector || #{selector := Selector} <- maps:get(Key, maps:get(Protocol, Protocols), [])],
            Members ++ [Selector || Selector <- Own, not lists:member(Selector, Members)]
        end,
        [],
        lineage(Name, Protocols, [])
    ).

lineage(Name, Protocols, Seen) ->
    case lists:member(Name, Seen) orelse maps:get(Name, Protocols, unknown) of
        true -> Seen;
        unknown -> Seen;
        Definition -> lineage(maps:get(extending, Definition, undefined), Protocols, Seen ++ [Name])
    end.

%% What is required and what is provided is understood, and the class side is there: on the class, on an
%% ancestor, or by an extension of the class itself.
conforms(Class, Name, #{protocols := Protocols, classes := Classes, extended := Extended}) ->
    Instance = members(required_methods, Name, Protocols) ++ members(provided_methods, Name, Protocols),
    ClassSide = members(required_class_methods, Name, Protocols),
    maps:is_key(Name, Protocols) andalso
        lists:all(fun(S) -> lists:member(S, along(instance, Class, Classes)) end, Instance) andalso
        lists:all(
            fun(S) ->
                lists:member(S, along(class, Class, Classes)) orelse
                    lists:member({beamtalk_image_gen:tag(Class), S}, Extended)
            end,
            ClassSide
        ).

along(Side, Class, Classes) ->
    case Classes of
        #{Class := #{super := Super} = Facts} -> maps:get(Side, Facts, []) ++ along(Side, Super, Classes);
        _ -> []
    end.
