.PHONY: demo test bench repl shell docs clean setup

EBIN = _build/default/lib/beamtalk_image/ebin

# What is piped into the prompt is for the prompt.
QUIETLY_COMPILE = @mkdir -p _build; rebar3 compile </dev/null >_build/compile.log || { cat _build/compile.log; exit 1; }

demo: setup
	@mkdir -p _build/bench
	$(QUIETLY_COMPILE)
	@erlc -o _build/bench bench/bench_store.erl
	@erlc -pa $(EBIN) -pa _build/bench -o _build/bench bench/*.erl
	@erl -noshell -pa $(EBIN) _build/bench -s beamtalk_image_demo main

test: setup
	@.ci/gates

bench: setup
	@rebar3 compile
	@bench/run.sh
	@bench/changelog.sh

# A terminal gets line editing and history; a pipe is read line by line. Before release 26 the runtime must keep its hands
# off a terminal that gets a shell of its own.
repl: setup
	$(QUIETLY_COMPILE)
	@release=$$(erl -noshell -eval 'io:put_chars(erlang:system_info(otp_release)), halt().' </dev/null); \
	input=-noshell; terminal=; \
	if [ -t 0 ]; then terminal="-terminal yes"; [ "$$release" -ge 26 ] || input=-noinput; fi; \
	exec erl $$input $$terminal -pa $(EBIN) -kernel shell_history enabled -s beamtalk_embedded_repl main

shell: setup
	@rebar3 compile
	@erl -pa $(EBIN) -eval 'application:ensure_all_started(beamtalk_image).'

docs: setup
	@rebar3 edoc
	@cargo doc --no-deps --workspace

clean:
	@cargo clean
	@rm -rf _build priv/*.so doc

setup:
	@.ci/setup </dev/null
