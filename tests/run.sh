#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what the tests need, builds with assertions and fault points, runs everything, and ends with the line
# "N passed, N failed, N skipped". Exit 0 only when nothing failed and every skip is allowed (tests/skips.txt).
#   tests/run.sh            the whole set (preset dev)
#   tests/run.sh --fast     the subset for every edit
#   tests/run.sh --preset asan|tsan|minimal [-L LABEL]   another build; -L, -R, -E and -LE go to ctest
#   --retry                 one more try for a test that failed, said loudly: for machines that others use too
set -euo pipefail
cd "$(dirname "$0")/.."

preset=dev
fast=0
args=()
while [ $# -gt 0 ]; do
	case "$1" in
	--fast) fast=1 ;;
	--preset) preset=${2:?--preset needs a name}; shift ;;
	--retry) args+=(--repeat until-pass:2) ;;
	-L | -R | -E | -LE) args+=("$1" "${2:?$1 needs a value}"); shift ;;
	-h | --help) sed -n '3,9s/^# \{0,1\}//p' "$0"; exit 0 ;;
	*) echo "tests/run.sh: unknown argument: $1 (see --help)" >&2; exit 2 ;;
	esac
	shift
done

deploy/packages.sh test
# What that installed, not what else answers to the same names: a shim in front of python costs more than most tests.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH
build=build/$preset
cmake --preset "$preset" >"${TMPDIR:-/tmp}/tent-configure.$$" 2>&1 || {
	cat "${TMPDIR:-/tmp}/tent-configure.$$" >&2
	exit 1
}
rm -f "${TMPDIR:-/tmp}/tent-configure.$$"
cmake --build "$build" --parallel "$(nproc)" | tail -n 1

export LSAN_OPTIONS=suppressions=$PWD/tests/lsan.supp:print_suppressions=0${LSAN_OPTIONS:+:$LSAN_OPTIONS}
export TSAN_OPTIONS=suppressions=$PWD/tests/tsan.supp${TSAN_OPTIONS:+:$TSAN_OPTIONS}
[ "$fast" = 1 ] && args+=(-LE slow)
junit=$PWD/$build/tests.xml
rm -f "$junit"
# Slots: what waits leaves room for others; under a sanitizer, where everything computes, others only cost switches.
slots=3
case "$preset" in asan | tsan) slots=2 ;; esac
set +e
ctest --test-dir "$build" --output-on-failure --no-tests=error --output-junit "$junit" --parallel $((slots * $(nproc))) "${args[@]}" |
	tee "$build/tests.log"
rc=${PIPESTATUS[0]}
grep -E '^ *[0-9]+/[0-9]+ Test .*(Failed|Timeout|Exception)' "$build/tests.log" | sed 's/^/FAILED AT LEAST ONCE: /'
set -e
[ -f "$junit" ] || { echo "tests/run.sh: ctest wrote no result" >&2; exit 1; }
python3 tests/summary.py "$junit" tests/skips.txt || rc=1
exit "$rc"
