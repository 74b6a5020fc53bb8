#!/usr/bin/env bash
# table.sh RESULTS: the costs that a firmware has printed, as a table. Instructions of a step are the mean and the most of 1000; of a
# gradient the mean of 100 steps, start included. Stack and memory are in bytes; a dash where nothing measures.
set -euo pipefail
awk '
    $1 == "#" && ($4 == "step" || $4 == "gradient") {
        model = $2 " | " $3
        if (!(model in seen)) { seen[model] = 1; order[++count] = model }
        value[model, $4, $5] = $6; second[model, $4, $5] = $7
    }
    function shown(key) { return key == "" ? "–" : key }
    END {
        print "| model | scalar | step: instructions | at most | iterations | stack | gradient: instructions per step | stack | memory |"
        print "|---|---|---|---|---|---|---|---|---|"
        for (i = 1; i <= count; i++) {
            m = order[i]
            printf "| %s | %s | %s | %s | %s | %s | %s | %s |\n", m, \
                shown(value[m, "step", "instructions"]), shown(second[m, "step", "instructions"]), \
                shown(value[m, "step", "iterations"]), shown(value[m, "step", "stack"]), \
                shown(value[m, "gradient", "instructions"]), shown(value[m, "gradient", "stack"]), \
                shown(second[m, "gradient", "stack"])
        }
    }' "$1"
