#!/usr/bin/env bash
# stack.sh PROGRAM [FUNCTION]: a bound of the stack of a linked program for Cortex-M, from its instructions: the deepest chain of calls
# below FUNCTION (the main function, if none is given), each with what it takes off the stack pointer. Recursion and calls through pointers have
# no such bound and are named. A frame of an interrupt is 112 bytes with floating-point registers; its handler comes on top.
set -euo pipefail
command -v llvm-objdump >/dev/null || { echo "no bound of the stack: there is no llvm-objdump"; exit 0; }
llvm-objdump -d --no-show-raw-insn --mcpu=cortex-m7 "$1" | awk -v root="${2:-cortex_m_rt_main}" '
    function registers(list,   parts, n, i, ends, count) {
        gsub(/[{}]/, "", list); n = split(list, parts, /, */); count = 0
        for (i = 1; i <= n; i++)
            if (split(parts[i], ends, "-") == 2) { gsub(/[^0-9]/, "", ends[1]); gsub(/[^0-9]/, "", ends[2]); count += ends[2] - ends[1] + 1 }
            else count++
        return count
    }
    function number(text) { match(text, /#-?(0x[0-9a-f]+|[0-9]+)/); return value(substr(text, RSTART + 1, RLENGTH - 1)) }
    function value(text,   i, n) {
        sub(/^-/, "", text)
        if (text !~ /^0x/) return text + 0
        n = 0; for (i = 3; i <= length(text); i++) n = 16 * n + index("0123456789abcdef", substr(text, i, 1)) - 1
        return n
    }
    /^[0-9a-f]+ <\$[td]/ { next }
    /^[0-9a-f]+ <.*>:$/ { name = $2; gsub(/[<>:]/, "", name); known[name] = 1; next }
    {
        sub(/^[ \t]*[0-9a-f]+:[ \t]*/, ""); instruction = $1; rest = $0; sub(/^[^ \t]+[ \t]*/, "", rest)
    }
    instruction ~ /^push/ { frame[name] += 4 * registers(rest) }
    instruction ~ /^stmdb/ && rest ~ /^sp!/ { list = rest; sub(/^sp!, /, "", list); frame[name] += 4 * registers(list) }
    instruction ~ /^vpush/ { frame[name] += (rest ~ /d[0-9]/ ? 8 : 4) * registers(rest) }
    instruction ~ /^sub/ && rest ~ /^sp, (sp, )?#/ { frame[name] += number(rest) }
    instruction ~ /^sub/ && rest ~ /^sp, (sp, )?r/ { variable[name] = 1 }
    instruction ~ /^(str|strd)/ && rest ~ /\[sp, #-[0-9a-fx]+\]!/ { frame[name] += number(substr(rest, index(rest, "#"))) }
    instruction ~ /^blx/ && rest ~ /^r[0-9]+|^lr/ { indirect[name]++ }
    instruction ~ /^bx/ && rest !~ /^lr/ { indirect[name]++ }
    instruction ~ /^(bl|b|b\.w)$/ && match(rest, /<[^>+]+>/) {
        callee = substr(rest, RSTART + 1, RLENGTH - 2)
        if (callee != name && !((name, callee) in seen)) { seen[name, callee] = 1; calls[name] = calls[name] " " callee }
    }
    function depth(f,   list, n, i, d, most) {
        if (f in found) return found[f]
        if (f in active) { recursive[f] = 1; return 0 }
        active[f] = 1; most = 0; n = split(calls[f], list, " ")
        for (i = 1; i <= n; i++) { d = depth(list[i]); if (d > most) { most = d; next_of[f] = list[i] } }
        delete active[f]
        return found[f] = frame[f] + most
    }
    END {
        if (!(root in known)) { for (f in known) if (index(f, root)) { root = f; break } }
        if (!(root in known)) { print "there is no function " root; exit 1 }
        printf "stack below %s: at most %d bytes\n", root, depth(root)
        for (f = root; f != ""; f = next_of[f]) printf "%8d  %s\n", frame[f], substr(f, 1, 140)
        for (f in found) {
            if (f in recursive) print "no bound: recursion of " f
            if (f in indirect) print "no bound: a call through a pointer in " f
            if (f in variable) print "no bound: a frame of variable size in " f
        }
    }'
