#!/usr/bin/env bash
# Instructions per step, counted by callgrind: the same for the same binary, whatever else the machine does.
#
#   benches/instructions.sh            all rows, beside the recorded ones; fails where one has grown by more than 3 %
#   benches/instructions.sh five_bar   rows whose name contains the word
#   MBS_UPDATE=1 benches/instructions.sh   record what is counted
#
# A row is the difference of two runs, of N and of 2 N steps, so that the start does not count.
set -euo pipefail
cd "$(dirname "$0")"
# Both forms of bundles can be measured: what is recorded is the usual one.
unset MBS_SIMD
command -v valgrind >/dev/null || { echo "valgrind is not installed: nothing is counted"; exit 0; }

# The generator need not be optimised: it runs once.
CARGO_INCREMENTAL=0 CARGO_PROFILE_BENCH_BUILD_OVERRIDE_OPT_LEVEL=0 cargo build --profile bench --quiet -p mbs-benches --bin instructions
program=$(cargo metadata --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')/release/instructions

count() { # model run steps
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$program" "$1" "$2" "$3" 2>&1 \
        | sed -n 's/.*Collected : *//p'
}

status=0
recorded=instructions.txt
touch $recorded
printf '%-24s %12s %12s %8s\n' run instructions recorded change
while read -r model run steps; do
    name="$model $run"
    [[ "$name" == *"${1:-}"* ]] || continue
    each=$((($(count "$model" "$run" $((2 * steps))) - $(count "$model" "$run" "$steps")) / steps))
    before=$(sed -n "s/^$name //p" $recorded)
    change=$(awk -v a="$each" -v b="${before:-$each}" 'BEGIN { printf "%+.1f", 100 * (a / b - 1) }')
    printf '%-24s %12d %12s %7s%%\n' "$name" "$each" "${before:--}" "$change"
    if [ -n "${MBS_UPDATE:-}" ]; then
        sed -i "/^$name /d" $recorded
        echo "$name $each" >>$recorded
    elif awk -v c="$change" 'BEGIN { exit !(c > 3) }'; then
        status=1
    fi
done <<'RUNS'
five_bar step 500
five_bar gradient 300
five_bar adjoint 300
five_bar adjoint_of_one 300
five_bar rk4 500
five_bar rk4_gradient 200
five_bar rk4_adjoint 200
five_bar rk4_projected 500
five_bar rk4_projected_gradient 200
five_bar rk4_projected_adjoint 200
five_bar dop853_gradient 100
slider_crank step 500
slider_crank gradient 300
four_bar_40 step 50
four_bar_40 gradient 30
buggy step 50
buggy gradient 30
buggy adjoint 30
buggy adjoint_of_two 30
bicycle_by_32 step 100
bicycle_by_32 gradient 60
bicycle_by_32 adjoint 100
bicycle_by_1000 step 100
bicycle_by_1000 adjoint 100
ur5 step 200
ur5 gradient 100
human43 step 50
human43 gradient 20
buggy carried 100
buggy carried_gradient 60
buggy carried_adjoint_of_two 60
RUNS
[ $status = 0 ] || echo "at least one run has grown by more than 3 %"
exit $status
