#!/usr/bin/env bash
# Imports every robot of example-robot-data and compares it with Pinocchio: a table of worst errors. Arguments go to
# robots.py; --help says which.
set -euo pipefail
cd "$(dirname "$0")/../.."

benches/peers/install.sh robots >&2
cargo build --release --quiet -p mbs-cli
cargo build --release --quiet -p mbs-engine --example evaluate
built=${CARGO_TARGET_DIR:-target}/release
exec "${MBS_PEERS:-target/peers}/bin/python" benches/peers/robots.py \
    --mbs "$built/mbs" --evaluate "$built/examples/evaluate" "$@"
