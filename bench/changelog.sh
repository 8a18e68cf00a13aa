#!/bin/sh
# Compiles the ChangeLog's benchmark and runs it: bench/changelog.sh full | quick | render | check
set -eu
mode=${1:-full}
cd "$(dirname "$0")/.."
base=${REBAR_BASE_DIR:-_build}
rebar3 compile >&2
app=$base/default/lib/beamtalk_image/ebin
out=$base/bench
mkdir -p "$out"
erlc -Werror +debug_info -pa "$app" -o "$out" bench/bench_original_log.erl bench/beamtalk_changelog_bench.erl
exec erl -noinput -pa "$app" "$out" -s beamtalk_changelog_bench main "$mode"
