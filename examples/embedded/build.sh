#!/usr/bin/env bash
# build.sh TARGET BIN [OPTION...]: builds a program of this package for a microcontroller and prints where it is. TARGET is
# thumbv7em-none-eabihf (Cortex-M7) or riscv64gc-unknown-none-elf.
#
# With the target of the installed compiler if rustup has added it, otherwise with the one that `toolchain.sh` has made.
set -euo pipefail
cd "$(dirname "$0")"
target=$1 bin=$2
shift 2
profile=release
case "$*" in *"--profile small"*) profile=small ;; esac
directory=target
if [ -d "$(rustc --print sysroot)/lib/rustlib/$target/lib" ]; then
    cargo build --quiet --profile "$profile" --target "$target" --bin "$bin" >&2
else
    root=$PWD/toolchain/usr
    [ -x "$root/bin/rustc" ] || { echo "no compiler for $target: see README.md" >&2; exit 3; }
    sysroot=$(rustc --print sysroot)
    linker=$(find "$sysroot/lib/rustlib" -name rust-lld -print -quit)
    upper=$(echo "$target" | tr 'a-z-' 'A-Z_')
    export "CARGO_TARGET_${upper}_LINKER=$linker"
    export LD_LIBRARY_PATH=$root/lib/x86_64-linux-gnu:$root/lib RUSTC=$root/bin/rustc RUSTC_BOOTSTRAP=1
    # Cargo itself is the installed one.
    directory=target/debian-$target
    cargo build --quiet --profile "$profile" --target "$target" --bin "$bin" --target-dir "$directory" \
        -Zbuild-std=core -Zbuild-std-features=compiler-builtins-mem >&2
fi
echo "$PWD/$directory/$target/$profile/$bin"
