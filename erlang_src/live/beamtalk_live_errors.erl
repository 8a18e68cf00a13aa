%% @doc Structured errors of the live image: kind, class, selector, a message that says what was wrong and a hint that
%% says what to do instead.
-module(beamtalk_live_errors).

-export([raise/5, new/5]).
-export_type([error/0]).

-type error() ::
    {beamtalk_error, Kind :: atom(), Class :: atom(), Selector :: atom(), Message :: binary(),
        Hint :: binary() | undefined, Details :: map()}.

%% @doc The error as a record.
-spec new(atom(), atom(), atom(), iodata(), iodata() | undefined) -> error().
new(Kind, Class, Selector, Message, Hint) ->
    {beamtalk_error, Kind, Class, Selector, text(Message), text(Hint), #{}}.

%% @doc Raises it the way the host does.
-spec raise(atom(), atom(), atom(), iodata(), iodata() | undefined) -> no_return().
raise(Kind, Class, Selector, Message, Hint) ->
    beamtalk_image_host:raise_error(new(Kind, Class, Selector, Message, Hint)).

text(undefined) -> undefined;
text(Text) -> unicode:characters_to_binary(Text).
