#!/bin/sh
# Builds the NIF and puts it into priv/. Run by rebar3 before each compilation; a build with nothing to do costs little.
#
# BEAMTALK_IMAGE_PROFILE=debug builds without optimisation; the benchmarks refuse such a library.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
profile=${BEAMTALK_IMAGE_PROFILE:-release}
target=${CARGO_TARGET_DIR:-$root/target}

if ! command -v cargo >/dev/null 2>&1; then
    echo "beamtalk_image: cargo is missing; install the Rust toolchain with rustup, then run this again" >&2
    exit 1
fi
case $profile in
    release) set -- --release ;;
    debug) set -- ;;
    *) echo "beamtalk_image: BEAMTALK_IMAGE_PROFILE must be release or debug, not '$profile'" >&2; exit 1 ;;
esac
cd "$root"
cargo build --quiet --locked -p beamtalk-image-nif "$@"

built=$target/$profile/libbeamtalk_image_nif.so
[ -f "$built" ] || built=$target/$profile/libbeamtalk_image_nif.dylib
installed=$root/priv/beamtalk_image_nif.so
mkdir -p "$root/priv"
if ! cmp -s "$built" "$installed"; then
    # A running VM maps the file: a rename gives it a new one, a write would change the code under its feet.
    cp "$built" "$installed.$$"
    mv -f "$installed.$$" "$installed"
fi
