#!/usr/bin/env bash
# cargo.sh TARGET COMMAND [OPTION...]: cargo for a microcontroller, into `target/embedded/firmware` of the workspace. TARGET is thumbv7em-none-eabihf (Cortex-M7) or
# riscv64gc-unknown-none-elf. With the installed compiler if rustup has added the target, otherwise with the one that `toolchain.sh` has
# made; exit code 3 if there is neither.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=$here/../../target/embedded
target=$1 command=$2
shift 2
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$cache/firmware}
sysroot=$(rustc --print sysroot)
if [ -d "$sysroot/lib/rustlib/$target/lib" ]; then
    exec cargo "$command" --target "$target" "$@"
fi
root=$(realpath -m "$cache/toolchain/usr")
[ -x "$root/bin/rustc" ] || { echo "no compiler for $target: see README.md" >&2; exit 3; }
linker=$(find "$sysroot/lib/rustlib" -name rust-lld -print -quit)
upper=$(echo "$target" | tr 'a-z-' 'A-Z_')
export "CARGO_TARGET_${upper}_LINKER=$linker"
export LD_LIBRARY_PATH=$root/lib/x86_64-linux-gnu:$root/lib RUSTC=$root/bin/rustc RUSTC_BOOTSTRAP=1
# Cargo itself is the installed one.
exec cargo "$command" --target "$target" -Zbuild-std=core -Zbuild-std-features=compiler-builtins-mem "$@"
