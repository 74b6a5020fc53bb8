#!/usr/bin/env bash
# fma.sh MBS: counts fused operations in libraries of the cart-pole, printed with `fma: never` and with `fma: target`, for x86-64-v3 with
# the standard library and for a Cortex-M7 without it. MBS is the command. Fails if `never` fuses, or `target` does not.
set -euo pipefail
mbs=$(realpath "$1")
cd "$(dirname "$0")"
# LIBRARY SETTING: fused instructions of it.
count() {
    local fused
    fused=$(llvm-objdump -d --no-show-raw-insn ${3:-} "$1" | grep -cE '[[:space:]](vfn?m(add|sub)[0-9]*[ps][sd]|vfn?m[as]\.f(32|64))[[:space:]]' || true)
    echo "$1: $fused fused operations"
    if [ "$2" = never ]; then [ "$fused" = 0 ]; else [ "$fused" -gt 50 ]; fi
}
for setting in never target; do
    library=target/fma/$setting
    "$mbs" generate ../../models/cart_pole.yaml --scalar f32 --fma "$setting" --c-header "$library" >/dev/null
    RUSTFLAGS="-C target-cpu=x86-64-v3" cargo build --quiet --release --manifest-path "$library/Cargo.toml" --target-dir "target/fma/x86/$setting"
    # The library of Rust itself is in the archive, too: only what is ours counts.
    (cd "target/fma/x86/$setting/release" && rm -rf objects && mkdir objects && cd objects && ar x ../libcart_pole.a \
        && ld -r -o ../ours.o $(ls | grep -E '^(cart_pole|mbs_runtime)'))
    count "target/fma/x86/$setting/release/ours.o" "$setting"
    if CARGO_TARGET_DIR=target/fma/arm/$setting ./cargo.sh thumbv7em-none-eabihf build --quiet --release --manifest-path "$library/Cargo.toml" \
        --no-default-features --features nightly; then
        count "target/fma/arm/$setting/thumbv7em-none-eabihf/release/libcart_pole.a" "$setting" --mcpu=cortex-m7
    fi
done
