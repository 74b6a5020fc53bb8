#!/usr/bin/env bash
# size.sh PROGRAM [FLASH RAM]: bytes of flash, and of RAM: static memory and the bound of the stack. Says whether they fit, if told into what.
set -euo pipefail
stack=$("$(dirname "$0")/stack.sh" "$1" | tee >(grep '^no bound' >&2 || true) | sed -n 's/^stack .* at most \([0-9]*\) bytes$/\1/p')
readelf -SW "$1" | sed 's/\[ *\([0-9]*\)\]/\1/' | awk -v name="$(basename "$1")" -v stack="${stack:-0}" -v flash_of="${2:-0}" -v ram_of="${3:-0}" '
    function number(hex,   i, n) { n = 0; for (i = 1; i <= length(hex); i++) n = 16 * n + index("0123456789abcdef", substr(hex, i, 1)) - 1; return n }
    function judged(bytes, room) { return room == 0 ? "" : bytes <= room ? " (fits " room ")" : " (does not fit " room ")" }
    $2 ~ /^\.(vector_table|text|rodata|data|gnu.sgstubs|init|trap)/ { flash += number($6) }
    $2 ~ /^\.(data|bss|uninit)/ { ram += number($6) }
    END {
        printf "%s: %d bytes of flash%s, %d bytes of RAM%s: %d static, %d stack at most\n", \
            name, flash, judged(flash, flash_of), ram + stack, judged(ram + stack, ram_of), ram, stack
    }'
