#!/usr/bin/env bash
# Times generated code of open trees against Pinocchio, in one run, and prints tables. Arguments go to trees.py; --help says
# which.
#
#   benches/peers/trees.sh > benches/peers/trees.md
#   benches/peers/trees.sh ur5 --bundles inverse_dynamics
set -euo pipefail
cd "$(dirname "$0")/../.."

benches/peers/install.sh robots pinocchio codegen >&2
cargo build --release --quiet -p mbs-cli
built=${CARGO_TARGET_DIR:-target}
# The runtime once more, for this processor.
RUSTFLAGS="-C target-cpu=native" cargo build --release --quiet -p mbs-runtime --features std --target-dir "$built/peers-native"
exec "${MBS_PEERS:-target/peers}/bin/python" benches/peers/trees.py \
    --mbs "$built/release/mbs" --runtime "$built/peers-native/release" "$@"
