#!/usr/bin/env bash
# build.sh TARGET BIN [PROFILE [OPTION...]]: builds a program of this package for a microcontroller and prints where it is.
set -euo pipefail
cd "$(dirname "$0")"
target=$1 bin=$2 profile=${3:-release}
shift $(($# < 3 ? $# : 3))
./cargo.sh "$target" build --quiet --profile "$profile" --bin "$bin" "$@" >&2
realpath "../../target/embedded/firmware/$target/$profile/$bin"
