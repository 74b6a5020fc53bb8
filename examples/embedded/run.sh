#!/usr/bin/env bash
# run.sh [quick]: builds the firmware for every target, runs it in QEMU, compares its numbers with `expected.txt` to the last bit, and
# looks into it for panics and allocators. Prints what steps and gradients cost, and what fits into 64 KB of flash and 8 KB of RAM. With
# `quick` the Cortex-M7 and the bits alone, compiled as quickly as possible. Without a compiler for the target or without QEMU it says so
# and succeeds.
set -euo pipefail
cd "$(dirname "$0")"
quick=${1:-}
results=target/results
mkdir -p "$results"

# TARGET EMULATOR...
check() {
    local target=$1 program status=0
    shift
    command -v "$1" >/dev/null || { echo "$target: skipped, there is no $1"; return; }
    program=$(./build.sh "$target" firmware ${quick:+quick}) || status=$?
    [ $status != 3 ] || { echo "$target: skipped, there is no compiler for it"; return; }
    [ $status = 0 ] || exit $status
    # Not all that cannot be reached is removed without optimisation.
    [ -n "$quick" ] || ./symbols.sh "$program"
    timeout 300 "$@" -nographic -monitor none -serial none -semihosting-config enable=on,target=native \
        -icount shift=0 -kernel "$program" >"$results/$target.txt" </dev/null
    if ! diff <(grep -v '^#' "$results/$target.txt") expected.txt >"$results/$target.diff"; then
        echo "$target: the numbers are not the expected ones, see $results/$target.diff" >&2
        exit 1
    fi
    echo "$target: $(wc -l <expected.txt) lines of states, events and gradients have the expected bits"
    grep -q '^# control late 0$' "$results/$target.txt" || { echo "$target: the control loop missed deadlines" >&2; exit 1; }
    [ -n "$quick" ] || ./table.sh "$results/$target.txt"
}

check thumbv7em-none-eabihf qemu-system-arm -M mps2-an500
[ -z "$quick" ] || exit 0
check riscv64gc-unknown-none-elf qemu-system-riscv64 -M virt -bios none

# What it takes of flash and RAM at least, in single and in double precision.
for options in "" "--features without_gradient" "--features double" "--features double,without_gradient"; do
    if program=$(./build.sh thumbv7em-none-eabihf smallest small --features smallest $options 2>/dev/null); then
        ./symbols.sh "$program"
        echo "${options:-single precision}:"
        ./size.sh "$program" 65536 8192
    fi
done
