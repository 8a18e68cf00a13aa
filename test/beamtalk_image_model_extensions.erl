%% A naive model of the extension registry and of the rows that it puts into the index: three maps.
-module(beamtalk_image_model_extensions).

-export([new/0, run/2, reads/1]).
-export([function/1]).

%% Entries by key; the methods of each class by name; keys whose rows a purge has hidden until the class is
%% back.
new() -> #{entries => #{}, classes => #{}, hidden => []}.

%% The function that stands for a number. Two of one number are the same function.
-spec function(pos_integer()) -> fun().
function(N) -> fun(_Args, _Self) -> N end.

run({register, Key, Selector, Fun, Owner, Source}, #{entries := Entries, hidden := Hidden} = Model) ->
    Owners =
        case Entries of
            #{{Key, Selector} := {_, _, _, Earlier}} -> lists:usort([Owner | Earlier]);
            _ -> [Owner]
        end,
    Entry = {function(Fun), Owner, Source, Owners},
    {ok, Model#{entries := Entries#{{Key, Selector} => Entry}, hidden := Hidden -- [{Key, Selector}]}};
run({unregister, Key, Selector}, Model) ->
    {ok, without([{Key, Selector}], Model)};
run({unregister, Name, Selector, false}, Model) ->
    {ok, without([{Name, Selector}], Model)};
run({unregister, Name, Selector, true}, Model) ->
    {ok, without([{beamtalk_image_gen:tag(Name), Selector}], Model)};
run({purge_class, Key}, #{entries := Entries} = Model) ->
    {ok, without([{K, S} || {K, S} <- maps:keys(Entries), K =:= Key], Model)};
run({init}, Model) ->
    {ok, Model};
run({define, Name, Selectors}, #{classes := Classes, hidden := Hidden} = Model) ->
    Shown = [{Key, Selector} || {Key, Selector} <- Hidden, Key =:= Name],
    {ok, Model#{classes := Classes#{Name => lists:usort(Selectors)}, hidden := Hidden -- Shown}};
run({redefine, Name, Selectors}, Model) ->
    run({define, Name, Selectors}, Model);
run({undefine, Name}, #{entries := Entries, classes := Classes, hidden := Hidden} = Model) ->
    Gone = [{Key, Selector} || {Key, Selector} <- maps:keys(Entries), Key =:= Name],
    {ok, Model#{classes := maps:remove(Name, Classes), hidden := lists:usort(Gone ++ Hidden)}}.

without(Keys, #{entries := Entries, hidden := Hidden} = Model) ->
    Model#{entries := maps:without(Keys, Entries), hidden := Hidden -- Keys}.

reads(#{entries := Entries} = Model) ->
    Keys = [{Key, S} || Key <- beamtalk_image_gen:class_keys(), S <- beamtalk_image_gen:selectors()],
    All = maps:to_list(Entries),
    maps:from_list(
        [{{lookup, Key}, lookup(Key, Entries)} || Key <- Keys] ++
        [{{has, Key}, maps:is_key(Key, Entries)} || Key <- Keys] ++
        [{{source, Key}, source(Key, Entries)} || Key <- Keys] ++
        [{{list, Key}, lists:sort([{S, Owner} || {{K, S}, {_, Owner, _, _}} <- All, K =:= Key])}
            || Key <- beamtalk_image_gen:class_keys()] ++
        [{{extenders, Key}, lists:usort([Owner || {{K, _}, {_, Owner, _, _}} <- All, K =:= Key])}
            || Key <- beamtalk_image_gen:class_keys()] ++
        [{{by, By}, lists:sort([Key || {Key, {_, Owner, _, _}} <- All, Owner =:= By])}
            || By <- beamtalk_image_gen:owners()] ++
        [{{chain, Chain, S}, chain(Chain, S, Entries)}
            || Chain <- chains(), S <- beamtalk_image_gen:selectors()] ++
        [{sourced, lists:sort([{K, S, Source} || {{K, S}, {_, _, Source, _}} <- All, is_binary(Source)])},
            {conflicts, lists:sort([{K, S, Owners} || {{K, S}, {_, _, _, [_, _ | _] = Owners}} <- All])}] ++
        [{{info, Key}, provenance(Key, Model)} || Key <- Keys] ++
        [{{senders, S}, senders(S, Keys, Model)} || S <- beamtalk_image_gen:selectors()] ++
        [{{implementors, S}, [{K, false} || {K, Of} <- lists:sort(Keys), Of =:= S,
            provenance({K, Of}, Model) =/= undefined]} || S <- beamtalk_image_gen:selectors()]
    ).

chains() -> [['A', 'B', 'C'], ['C class', 'A class', 'A'], []].

lookup(Key, Entries) ->
    case Entries of
        #{Key := {Fun, Owner, _, _}} -> {ok, Fun, Owner};
        _ -> not_found
    end.

source(Key, Entries) ->
    case Entries of
        #{Key := {_, _, Source, _}} when is_binary(Source) -> {ok, Source};
        _ -> not_found
    end.

chain([], _Selector, _Entries) ->
    not_found;
chain([Key | Keys], Selector, Entries) ->
    case lookup({Key, Selector}, Entries) of
        {ok, Fun, Owner} -> {ok, Key, Fun, Owner};
        not_found -> chain(Keys, Selector, Entries)
    end.

%% The extension hides the class's own method; where a purge has hidden both, there is nothing.
provenance({Key, Selector} = At, #{entries := Entries, classes := Classes, hidden := Hidden}) ->
    case Entries of
        #{At := {_, _, Source, _}} ->
            case lists:member(At, Hidden) of
                false when is_binary(Source) -> {extension, indexed};
                false -> {extension, unindexed_runtime_fun};
                true -> undefined
            end;
        _ ->
            case lists:member(Selector, maps:get(Key, Classes, [])) of
                true -> {class_body, indexed};
                false -> undefined
            end
    end.

%% A class's own method sends its own selector, at line 7; an extension what its text says, line by line.
senders(Selector, Keys, #{entries := Entries} = Model) ->
    lists:sort(lists:flatmap(
        fun({K, S} = Key) ->
            case provenance(Key, Model) of
                {class_body, _} -> [{K, S, 7} || S =:= Selector];
                {extension, indexed} -> [{K, S, Line}
                    || {Sent, Line} <- sends(element(3, maps:get(Key, Entries))),
                    Sent =:= Selector];
                _ -> []
            end
        end,
        Keys
    )).

sends(Source) ->
    Words = [binary_to_existing_atom(Word)
        || Word <- binary:split(Source, <<"\n">>, [global]), Word =/= <<>>],
    lists:zip(Words, lists:seq(1, length(Words))).
