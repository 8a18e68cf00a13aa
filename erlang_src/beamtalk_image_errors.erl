%% @doc Words for refused input: `badarg' with extended error information, and the text that a shell prints for it.
-module(beamtalk_image_errors).

-export([raise_bad_entry/5, format_error/2, structured/6]).
-export_type([bad_entry/0, structured/0]).

-type bad_entry() :: {bad_entry, Index :: pos_integer(), Key :: atom(), Value :: term()}.

-type structured() ::
    {beamtalk_error, Kind :: atom(), Class :: atom(), Selector :: atom(), Message :: binary(),
        Hint :: binary() | undefined, Details :: map()}.
%% An error as the language sees it: what was wrong, and what to do instead.

%% @doc A structured error.
-spec structured(atom(), atom(), atom(), iodata(), iodata() | undefined, map()) -> structured().
structured(Kind, Class, Selector, Message, Hint, Details) ->
    {beamtalk_error, Kind, Class, Selector, text(Message), text(Hint), Details}.

text(undefined) -> undefined;
text(Text) -> unicode:characters_to_binary(Text).

%% @doc Raises `badarg' for the call of `Function' with `Args', naming what was wrong with its `Argument'-th argument.
-spec raise_bad_entry(bad_entry(), module(), atom(), [term()], pos_integer()) -> no_return().
raise_bad_entry({bad_entry, Index, Key, Value}, Module, Function, Args, Argument) ->
    Cause = #{index => Index, key => Key, value => Value, argument => Argument},
    Info = [{error_info, #{module => ?MODULE, cause => Cause}}],
    erlang:raise(error, badarg, [{Module, Function, Args, Info}]).

%% @doc What a shell prints beside `badarg'.
-spec format_error(term(), [tuple()]) -> #{pos_integer() | general => iolist()}.
format_error(_Reason, [{_Module, _Function, _Args, Info} | _]) ->
    case proplists:get_value(error_info, Info, #{}) of
        #{cause := #{index := Index, key := Key, value := Value, argument := Argument}} ->
            Text = io_lib:format("entry ~p: ~ts", [Index, wrong(Key, Value)]),
            #{Argument => Text};
        _ ->
            #{}
    end.

wrong(Key, missing) ->
    io_lib:format("the mandatory key ~tp is missing", [Key]);
wrong(Key, Value) ->
    io_lib:format("~tp is not a valid value of ~tp", [Value, Key]).
