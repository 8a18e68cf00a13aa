%% Where the recorded data lies, and how it is read. The data is not copied beside the compiled suites, so it
%% is found from the application's folder, whose `priv' leads back into the source tree.
-module(beamtalk_image_fixtures).

-export([path/1, terms/1, image/0]).

%% The absolute path of a file named relative to the root of the source tree.
-spec path(file:filename()) -> file:filename().
path(Relative) ->
    Places = [linked_from(filename:join(code:lib_dir(beamtalk_image), "priv")), source_of(?MODULE)],
    case [Found || Place <- Places, Found <- upwards(Place, Relative)] of
        [Found | _] -> Found;
        [] -> error({no_fixture, Relative, Places})
    end.

linked_from(Link) ->
    case file:read_link_all(Link) of
        {ok, Target} -> filename:absname(Target, filename:dirname(Link));
        {error, _} -> Link
    end.

source_of(Module) ->
    proplists:get_value(source, Module:module_info(compile), "/").

upwards(Place, Relative) ->
    Candidate = filename:join(Place, Relative),
    case {filelib:is_file(Candidate), filename:dirname(Place)} of
        {true, _} -> [Candidate];
        {false, Place} -> [];
        {false, Parent} -> upwards(Parent, Relative)
    end.

%% Every term of a file, compressed or not.
-spec terms(file:filename()) -> [term()].
terms(Relative) ->
    {ok, Bytes} = file:read_file(path(Relative)),
    Text = unicode:characters_to_list(plain(Bytes)),
    parse(Text, 1, []).

plain(<<16#1f, 16#8b, _/binary>> = Bytes) -> zlib:gunzip(Bytes);
plain(Bytes) -> Bytes.

parse(Text, Line, Terms) ->
    case erl_scan:tokens([], Text, Line) of
        {done, {ok, Tokens, Next}, Rest} ->
            {ok, Term} = erl_parse:parse_term(Tokens),
            parse(Rest, Next, [Term | Terms]);
        {more, Cont} ->
            {done, {eof, _}, _} = erl_scan:tokens(Cont, eof, Line),
            lists:reverse(Terms)
    end.

%% The image of a real standard library: a map from class names to superclass and method entries, and its
%% protocols.
-spec image() -> {#{atom() => {atom(), [map()]}}, [map()]}.
image() ->
    Terms = terms("data/stdlib-image.terms"),
    {
        maps:from_list([{Name, {Super, Entries}} || {class, Name, Super, Entries} <- Terms]),
        [Definition || {protocol, _Name, Definition} <- Terms]
    }.
