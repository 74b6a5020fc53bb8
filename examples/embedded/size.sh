#!/usr/bin/env bash
# size.sh PROGRAM: bytes of flash and of static RAM.
set -euo pipefail
readelf -SW "$1" | sed 's/\[ *\([0-9]*\)\]/\1/' | awk -v name="$(basename "$1")" '
    function number(hex,   i, n) { n = 0; for (i = 1; i <= length(hex); i++) n = 16 * n + index("0123456789abcdef", substr(hex, i, 1)) - 1; return n }
    $2 ~ /^\.(vector_table|text|rodata|data|gnu.sgstubs|init|trap)/ { flash += number($6) }
    $2 ~ /^\.(data|bss|uninit)/ { ram += number($6) }
    END { printf "%s: %d bytes of flash, %d bytes of static RAM\n", name, flash, ram }'
