#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tentbench against yardsticks, interleaved. perf/compare.sh --help. Options of perf/lab.sh may stand before a "--":
#   perf/compare.sh --rt -- --rounds 9 shm
here=$(dirname "$0")
for arg; do
	[ "$arg" = -- ] && both=1
done
lab=
if [ -n "${both:-}" ]; then
	while [ "$1" != -- ]; do
		lab="$lab $1"
		shift
	done
	shift
fi
case " $* " in
*" --help "* | *" -h "*) exec python3 -B "$here/compare.py" --help ;;
esac
# shellcheck disable=SC2086 # the options of the lab are words
exec "$here/lab.sh" $lab python3 -B "$here/compare.py" "$@"
