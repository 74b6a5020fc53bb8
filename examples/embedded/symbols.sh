#!/usr/bin/env bash
# symbols.sh PROGRAM: fails if it contains a panic, unwinding or an allocator.
set -euo pipefail
functions=$(readelf -sW "$1" | awk '$4 == "FUNC" { print $8 }')
[ -n "$functions" ] || { echo "$1 has no functions: is it stripped?" >&2; exit 1; }
found=$(grep -iE 'panick|panic_fmt|panic_bounds|rust_begin_unwind|unwind_resume|__rust_alloc|__rdl_alloc|malloc|__rg_' <<<"$functions" || true)
if [ -n "$found" ] || grep -q 'the panic handler is reachable' "$1"; then
    printf '%s contains a panic or an allocator:\n%s\n' "$1" "$found" >&2
    exit 1
fi
