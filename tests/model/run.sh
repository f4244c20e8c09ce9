#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks one spin model completely: run.sh MODEL.pml holds|fails [-DVARIANT ...]
# holds: no error in the whole state space. fails: spin must find an assertion violation or a hang (a variant with one
# ordering left out; if it passes, the model does not see what it is there for). Exit 0, 1, or 77 without spin.
set -euo pipefail
model=$(realpath "$1"); expect=$2; shift 2
command -v spin >/dev/null || { echo "skipped: spin is not installed"; exit 77; }
command -v "${CC:-cc}" >/dev/null || { echo "skipped: no C compiler"; exit 77; }
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
cd "$dir"
spin "$@" -a "$model"
"${CC:-cc}" -O0 -w -DSAFETY -DMEMLIM=512 -o pan pan.c
timeout 60 ./pan -m200000 >out 2>&1 || { cat out; echo "pan did not finish"; exit 1; }
grep -E "errors:|states, stored|pan:[0-9]+:" out || true
# Anything that makes the search incomplete is a failure of the test, whatever was found.
if grep -qE "max search depth too small|out of memory|Search not completed" out && [ "$expect" = holds ]; then
	cat out; exit 1
fi
if [ "$expect" = holds ]; then
	grep -q "errors: 0" out || { cat out; exit 1; }
	# Dead model code would prove nothing.
	if grep -A20 "^unreached in" out | grep -qE "state [0-9]+, \".*assert"; then
		cat out; echo "an assertion is never reached"; exit 1
	fi
else
	grep -qE "assertion violated|invalid end state" out || { cat out; echo "the variant should have failed"; exit 1; }
fi
