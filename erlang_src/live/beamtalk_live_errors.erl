%% @doc Raises structured errors of the live image as the host does.
-module(beamtalk_live_errors).

-export([raise/5]).

%% @doc Raises an error with a message that says what was wrong and a hint that says what to do instead.
-spec raise(Kind :: atom(), Class :: atom(), Selector :: atom(), iodata(), iodata() | undefined) -> no_return().
raise(Kind, Class, Selector, Message, Hint) ->
    beamtalk_image_host:raise_error(
        beamtalk_image_errors:structured(Kind, Class, Selector, Message, Hint, #{})
    ).
