#!/usr/bin/env bash
# fma.sh MBS: counts fused operations in libraries of the cart-pole in single precision, printed with `fma: never` and with `fma: target`,
# for x86-64-v3 with the standard library and for a Cortex-M7 without it. MBS is the command. Fails if `never` fuses, or `target` does not.
set -euo pipefail
mbs=$(realpath "$1")
cd "$(dirname "$0")"
# LIBRARY SETTING [OPTION]: fused instructions of the module and the runtime; what else is in the archive does not count.
count() {
    local fused objects
    objects=$(mktemp -d)
    (cd "$objects" && ar x "$1")
    fused=$(llvm-objdump -d --no-show-raw-insn ${3:-} "$objects"/cart_pole* "$objects"/mbs_runtime* \
        | grep -cE '[[:space:]](vfn?m(add|sub)[0-9]*[ps][sd]|vfn?m[as]\.f(32|64))[[:space:]]' || true)
    rm -r "$objects"
    echo "$2, $(basename "$(dirname "$(dirname "$1")")"): $fused fused operations"
    if [ "$2" = never ]; then [ "$fused" = 0 ]; else [ "$fused" -gt 50 ]; fi
}
for setting in never target; do
    library=../../target/embedded/fma/$setting
    "$mbs" generate ../../models/cart_pole.yaml --scalar f32 --fma "$setting" --c-header "$library" >/dev/null
    RUSTFLAGS="-C target-cpu=x86-64-v3" cargo build --quiet --release --manifest-path "$library/Cargo.toml" --target-dir ../../target/embedded/fma/x86-64-v3
    count "$(realpath ../../target)/embedded/fma/x86-64-v3/release/libcart_pole.a" "$setting"
    if CARGO_TARGET_DIR=$(realpath ../../target)/embedded/fma/arm ./cargo.sh thumbv7em-none-eabihf build --quiet --release \
        --manifest-path "$library/Cargo.toml" --no-default-features --features nightly; then
        count "$(realpath ../../target)/embedded/fma/arm/thumbv7em-none-eabihf/release/libcart_pole.a" "$setting" --mcpu=cortex-m7
    fi
done
