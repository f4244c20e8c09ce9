#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every fault point of common/hook.def stands in some source file outside tests, and is named once.
# usage: hooks_used.sh SOURCE_DIR
set -euo pipefail
cd "$1"
names=$(sed -n 's/^HOOK(\([a-z0-9_]*\),.*/\1/p' common/hook.def)
[ -n "$names" ] || { echo "no names found in common/hook.def"; exit 1; }
bad=0
for name in $names; do
	if ! grep -rqE --include='*.[ch]' "TN_HOOK(_FAIL)?\($name\)" common shm-ring dataplane controlplane; then
		echo "common/hook.def: $name is used by no source file"
		bad=1
	fi
done
twice=$(sort <<<"$names" | uniq -d)
[ -z "$twice" ] || { echo "named twice: $twice"; bad=1; }
exit $bad
