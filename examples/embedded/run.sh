#!/usr/bin/env bash
# Builds the firmware for every target, runs it in QEMU, compares its numbers with the host's to the last bit, and looks into it for
# panics and allocators. Prints what steps and gradients cost. Without a compiler for the target or without QEMU it says so and
# succeeds.
set -euo pipefail
cd "$(dirname "$0")"
results=target/results
mkdir -p "$results"

cargo build --quiet --release --bin host
target/release/host >"$results/host.txt"

# TARGET EMULATOR...
check() {
    local target=$1 program
    shift
    command -v "$1" >/dev/null || { echo "$target: skipped, there is no $1"; return; }
    program=$(./build.sh "$target" firmware) || { echo "$target: skipped, there is no compiler for it"; return; }
    ./symbols.sh "$program"
    timeout 300 "$@" -nographic -monitor none -serial none -semihosting-config enable=on,target=native \
        -icount shift=0 -kernel "$program" >"$results/$target.txt" </dev/null
    if ! diff <(grep -v '^#' "$results/$target.txt") "$results/host.txt" >"$results/$target.diff"; then
        echo "$target: the numbers differ from the host's, see $results/$target.diff" >&2
        exit 1
    fi
    echo "$target: $(wc -l <"$results/host.txt") lines of states and gradients have the bits of the host"
    ./table.sh "$results/$target.txt"
}

check thumbv7em-none-eabihf qemu-system-arm -M mps2-an500
check riscv64gc-unknown-none-elf qemu-system-riscv64 -M virt -bios none

# What it takes of flash and RAM at least.
if program=$(./build.sh thumbv7em-none-eabihf smallest --profile small 2>/dev/null); then
    ./symbols.sh "$program"
    ./size.sh "$program"
fi
