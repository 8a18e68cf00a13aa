%% @doc The two names of a class: its own, and the tag that stands for its class side.
-module(beamtalk_image_names).

-export([class_tag/1, tag_of/1, prefixed/2, is_class_tag/1, base_name/1]).

-define(SUFFIX, <<" class">>).

%% @doc The tag of a class: its name, a blank and the word `class'. Raises `system_limit' for a name of more than 249
%% characters.
-spec class_tag(atom()) -> atom().
class_tag(ClassName) when is_atom(ClassName) ->
    binary_to_atom(<<(atom_to_binary(ClassName))/binary, ?SUFFIX/binary>>).

%% @doc The tag of a class, unless the class's name is so long that no atom can be its tag: then it has no class side
%% that anything could be registered for.
-spec tag_of(atom()) -> {ok, atom()} | none.
tag_of(ClassName) when is_atom(ClassName) ->
    try
        {ok, class_tag(ClassName)}
    catch
        error:system_limit -> none
    end.

%% @doc A name with a prefix, unless that is longer than an atom can be.
-spec prefixed(binary(), atom()) -> {ok, atom()} | none.
prefixed(Prefix, Name) ->
    try
        {ok, binary_to_atom(<<Prefix/binary, (atom_to_binary(Name))/binary>>)}
    catch
        error:system_limit -> none
    end.

%% @doc Whether a name is a tag; `false' for any term that is no name.
-spec is_class_tag(term()) -> boolean().
is_class_tag(Name) ->
    base(Name) =/= none.

%% @doc The class name in a name or tag, as an atom; a tag whose class name no atom spells stays as it is.
-spec base_name(atom()) -> atom().
base_name(Name) when is_atom(Name) ->
    case base(Name) of
        none ->
            Name;
        Base ->
            try
                binary_to_existing_atom(Base)
            catch
                error:badarg -> Name
            end
    end.

base(Name) when is_atom(Name) ->
    base(atom_to_binary(Name));
base(Name) when is_binary(Name) ->
    Size = byte_size(Name) - byte_size(?SUFFIX),
    case Name of
        <<Base:Size/binary, " class">> when Size >= 0 -> Base;
        _ -> none
    end;
base(_Other) ->
    none.
