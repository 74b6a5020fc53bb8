#!/usr/bin/env bash
# run.sh [quick]: builds the firmware for every target, runs it in QEMU, compares its numbers with `expected.txt` to the last bit, and
# looks into it for panics and allocators. Prints what steps and gradients cost, and what fits into 64 KB of flash and 8 KB of RAM. With
# `quick` the Cortex-M7 alone, with the runtime for little flash, which compiles quickest: what continuous integration runs. Without a compiler for the target or without QEMU it says so
# and succeeds.
set -euo pipefail
cd "$(dirname "$0")"
quick=${1:-}
results=../../target/embedded/results
mkdir -p "$results"

# TARGET SHIFT EMULATOR...: an instruction takes 2^SHIFT nanoseconds of the emulated clock.
check() {
    local target=$1 shift=$2 program status=0
    shift 2
    command -v "$1" >/dev/null || { echo "$target: skipped, there is no $1"; return; }
    program=$(./build.sh "$target" firmware ${quick:+small --features small}) || status=$?
    [ $status != 3 ] || { echo "$target: skipped, there is no compiler for it"; return; }
    [ $status = 0 ] || exit $status
    ./symbols.sh "$program"
    echo "$target: no panic and no allocator"
    timeout 300 "$@" -nographic -monitor none -serial none -semihosting-config enable=on,target=native \
        -icount "shift=$shift,sleep=off" -kernel "$program" >"$results/$target.txt" </dev/null
    if ! diff <(grep -v '^#' "$results/$target.txt") expected.txt >"$results/$target.diff"; then
        echo "$target: the numbers are not the expected ones, see $results/$target.diff" >&2
        exit 1
    fi
    echo "$target: $(wc -l <expected.txt) lines of states, events and gradients have the expected bits"
    grep -q '^# control late 0$' "$results/$target.txt" || { echo "$target: the control loop missed deadlines" >&2; exit 1; }
    stack "$program" "$(sed -n 's/^# stack //p' "$results/$target.txt")"
    [ -n "$quick" ] || ./table.sh "$results/$target.txt"
}

# PROGRAM PAINTED: the stack that was used must be within the bound from the instructions. An interrupt (a frame of 112 bytes and its handler's)
# and the start-up code come on top of that: 256 bytes are plenty.
stack() {
    local bound
    [ -n "$2" ] || return 0
    bound=$(./stack.sh "$1" | tee >(grep '^no bound' >&2 || true) | sed -n 's/^stack .* at most \([0-9]*\) bytes$/\1/p')
    [ -n "$bound" ] || return 0
    echo "stack of the whole program: $2 bytes painted over, at most $bound by its instructions, interrupts beside"
    [ "$2" -le $((bound + 256)) ] || { echo "the stack is deeper than its bound" >&2; exit 1; }
}

# The timer of the Cortex-M7 ticks every 40 ns: five instructions.
check thumbv7em-none-eabihf 3 qemu-system-arm -M mps2-an500
[ -z "$quick" ] || exit 0
# QEMU before version 8 counts nanoseconds, not instructions, in minstret.
check riscv64gc-unknown-none-elf 0 qemu-system-riscv64 -M virt -bios none

# What it takes of flash and RAM at least, in single and in double precision.
for options in "" "--features without_gradient" "--features double" "--features double,without_gradient"; do
    if program=$(./build.sh thumbv7em-none-eabihf smallest small --features smallest $options 2>/dev/null); then
        ./symbols.sh "$program"
        echo "${options:-single precision}:"
        ./size.sh "$program" 65536 8192
    fi
done
