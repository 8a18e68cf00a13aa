%% Catches what modules log. The events are taken out of the stream before any handler, so that thousands of
%% expected warnings do not fill the reports.
-module(beamtalk_image_log_events).

-export([start/1, stop/0, take/0, take_texts/0]).
-export([filter/2]).

-type event() :: {module(), logger:level(), map()}.
%% The module that logged, the level, and what counts of it: a report whole, of other events `domain', `field'
%% and `value' of the metadata. Where a report names another domain than the metadata, both show.

%% From now on everything that the modules log is caught.
-spec start([module()]) -> ok.
start(Modules) ->
    ?MODULE = ets:new(?MODULE, [named_table, public, ordered_set]),
    persistent_term:put(?MODULE, Modules),
    ok = logger:set_module_level(Modules, all),
    ok = logger:add_primary_filter(?MODULE, {fun ?MODULE:filter/2, Modules}).

-spec stop() -> ok.
stop() ->
    _ = logger:remove_primary_filter(?MODULE),
    ok = logger:unset_module_level(persistent_term:get(?MODULE, [])),
    _ = persistent_term:erase(?MODULE),
    case ets:info(?MODULE, id) of
        undefined ->
            ok;
        _ ->
            true = ets:delete(?MODULE),
            ok
    end.

%% What was caught since the last question, oldest first.
-spec take() -> [event()].
take() ->
    [Event || {_Order, Event, _Text} <- take_rows()].

%% The same as levels and words.
-spec take_texts() -> [{logger:level(), binary()}].
take_texts() ->
    [{Level, Text} || {_Order, {_Module, Level, _}, Text} <- take_rows()].

take_rows() ->
    Rows = ets:tab2list(?MODULE),
    lists:foreach(fun(Row) -> ets:delete(?MODULE, element(1, Row)) end, Rows),
    Rows.

%% @private
filter(#{level := Level, msg := Message, meta := #{mfa := {Module, _, _}} = Meta}, Modules) ->
    case lists:member(Module, Modules) of
        true ->
            Event = {Module, Level, what_counts(Message, Meta)},
            ets:insert(?MODULE, {erlang:unique_integer([monotonic]), Event, words(Message)}),
            stop;
        false ->
            ignore
    end;
filter(_Event, _Modules) ->
    ignore.

what_counts({report, #{domain := Domain} = Report}, #{domain := Domain}) ->
    Report;
what_counts({report, Report}, Meta) when is_map(Report) ->
    Report#{domain => {maps:get(domain, Report, missing), maps:get(domain, Meta, missing)}};
what_counts(_Text, Meta) ->
    maps:with([domain, field, value], Meta).

words({report, Report}) -> unicode:characters_to_binary(io_lib:format("~tp", [Report]));
words({string, Text}) -> unicode:characters_to_binary(Text);
words({Format, Args}) -> unicode:characters_to_binary(io_lib:format(Format, Args)).
