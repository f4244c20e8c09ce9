#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Does the simulator bite? Each patch of tests/sim/mutants plants one bug into a copy of the sources; some seed must fail.
#   tests/sim/mutants.sh [--seeds N] [--jobs J] [NAME...]
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
seeds=1500 jobs=2
while [ $# -gt 0 ]; do
	case $1 in
	--seeds) seeds=$2; shift 2 ;;
	--jobs) jobs=$2; shift 2 ;;
	-*) echo "usage: tests/sim/mutants.sh [--seeds N] [--jobs J] [NAME...]" >&2; exit 2 ;;
	*) break ;;
	esac
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
mkdir "$work/src"
(cd "$root" && tar -cf - --exclude=./build --exclude=./.git --exclude=./docs/*.png .) | tar -xf - -C "$work/src"
cmake -S "$work/src" --preset dev -B "$work/build" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
# First without any: what fails then proves nothing.
cmake --build "$work/build" --target sim >"$work/log" 2>&1 || { tail -20 "$work/log" >&2; exit 1; }
"$work/build/tests/sim/sim" --seeds "$seeds" --jobs "$jobs" --until || { echo "seeds fail without a planted bug" >&2; exit 1; }
caught=0 all=0
for patch in "$root"/tests/sim/mutants/*.patch; do
	name=$(basename "$patch" .patch)
	[ $# -eq 0 ] || case " $* " in *" $name "*) ;; *) continue ;; esac
	all=$((all + 1))
	if ! (cd "$work/src" && git apply -p0 --check "$patch" 2>/dev/null); then
		echo "$name: does not apply: plant it anew where the code is now"
		continue
	fi
	(cd "$work/src" && git apply -p0 "$patch")
	if ! cmake --build "$work/build" --target sim >"$work/log" 2>&1; then
		tail -20 "$work/log" >&2
		echo "$name: does not build"
	elif "$work/build/tests/sim/sim" --seeds "$seeds" --jobs "$jobs" --until >"$work/log" 2>&1; then
		echo "$name: NOT caught by $seeds seeds"
	else
		caught=$((caught + 1))
		echo "$name: caught: $(grep -m1 -E 'check "|ended by' "$work/log" || tail -1 "$work/log")"
	fi
	(cd "$work/src" && git apply -R -p0 "$patch")
done
echo "$caught of $all planted bugs were caught"
[ "$caught" -eq "$all" ]
