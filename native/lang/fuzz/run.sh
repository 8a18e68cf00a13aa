#!/usr/bin/env sh
# Builds the fuzz target with coverage counters (stable flags only) and runs it: run.sh SECONDS.
# Findings land in the current directory as crash-*, slow-unit-* and the like. The corpus grows in $FUZZ_WORK.
set -eu
cd "$(dirname "$0")"
seconds=${1:-60}
work=${FUZZ_WORK:-target/corpus}
target=${CARGO_TARGET_DIR:-target}
export RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 --cfg fuzzing"
# The triple keeps the flags away from build scripts, which are no fuzz targets.
triple=$(rustc -vV | sed -n 's/^host: //p')
cargo build --release --locked --target "$triple"
mkdir -p "$work"
exec "$target/$triple/release/read" -max_total_time="$seconds" -max_len=4096 -timeout=10 -rss_limit_mb=1024 \
    -dict=tokens.dict -print_final_stats=1 "$work" corpus
