#!/usr/bin/env bash
# Makes a compiler for microcontrollers from Debian's packages, in `target/embedded/toolchain` of the workspace, where rustup cannot be had. Debian 12 or later;
# a download of 140 MB, 480 MB on disk. Run `apt-get update` first. With rustup: `rustup target add thumbv7em-none-eabihf riscv64gc-unknown-none-elf`, and nothing of this is needed.
#
# Debian's compiler brings its own sources of the standard library, of which `cargo.sh` compiles `core` for the target. Sources
# and compiler must be of the same version: the stock compiler does not take these sources.
set -euo pipefail
cache=$(dirname "$0")/../../target/embedded
mkdir -p "$cache"
cd "$cache"
[ -x toolchain/usr/bin/rustc ] && exit 0
packages="rustc-web libstd-rust-web-dev rust-web-src"
for package in $packages; do
    apt-cache show "$package" >/dev/null 2>&1 || { echo "there is no package $package here" >&2; exit 3; }
done
# The library of the compiler and that of LLVM carry their versions in their names.
needs() { apt-cache depends "$1" | sed -n "s/^ *Depends: \($2\)$/\1/p"; }
library=$(needs libstd-rust-web-dev 'libstd-rust-web-[0-9.]*')
llvm=$(needs "$library" 'libllvm[0-9]*')
mkdir -p toolchain/packages
(cd toolchain/packages && apt-get download -qq $packages "$library" "$llvm")
for package in toolchain/packages/*.deb; do
    dpkg -x "$package" toolchain
done
rm -r toolchain/packages
# Of the sources the library alone is needed.
rm -rf toolchain/usr/src/rustc-*/compiler toolchain/usr/src/rustc-*/src
toolchain_libraries=toolchain/usr/lib/x86_64-linux-gnu:toolchain/usr/lib
LD_LIBRARY_PATH=$toolchain_libraries toolchain/usr/bin/rustc --version
