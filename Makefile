.PHONY: demo test bench shell docs clean setup

EBIN = _build/default/lib/beamtalk_image/ebin

demo: setup
	@rebar3 compile >/dev/null
	@erl -noshell -pa $(EBIN) -s beamtalk_image_demo main

test: setup
	@.ci/gates

bench: setup
	@rebar3 compile
	@bench/run.sh

shell: setup
	@rebar3 compile
	@erl -pa $(EBIN) -eval 'application:ensure_all_started(beamtalk_image).'

docs: setup
	@rebar3 edoc
	@cargo doc --no-deps --workspace

clean:
	@cargo clean
	@rm -rf _build priv doc

setup:
	@.ci/setup
