#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Chaos for a long time: kill -9, SIGSTOP, absences and cut lanes under a verified load; ends with flat memory and descriptors
# and no wrong byte, or says what grew or was wrong. Not part of CI: it wants its time and a quiet machine.
#   tests/soak.sh [SECONDS]              default 3600; in the build of preset dev, which is made first
#   tests/soak.sh --preset asan|tsan [SECONDS]
# TENT_TEST_SEED=N draws the same events again.
set -euo pipefail
cd "$(dirname "$0")/.."

preset=dev
if [ "${1:-}" = --preset ]; then
	preset=${2:?--preset needs a name}
	shift 2
fi
seconds=${1:-3600}
case "$seconds" in
'' | *[!0-9]*) sed -n '3,8s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac

cmake --preset "$preset" >/dev/null
cmake --build "build/$preset" --parallel "$(nproc)" --target tent-dataplane tent-controlplane tentctl mover noter | tail -n 1
slow=1
[ "$preset" = dev ] || slow=5
export LSAN_OPTIONS=suppressions=$PWD/tests/lsan.supp:print_suppressions=0${LSAN_OPTIONS:+:$LSAN_OPTIONS}
export TSAN_OPTIONS=suppressions=$PWD/tests/tsan.supp${TSAN_OPTIONS:+:$TSAN_OPTIONS}
TENT_TEST_BUILD=$PWD/build/$preset TENT_TEST_SLOW=$slow TENT_TEST_METRICS=1 \
	exec tests/integration/in_netns.sh python3 -B tests/integration/soak.py "$seconds"
