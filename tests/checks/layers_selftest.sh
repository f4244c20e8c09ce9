#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A check that cannot fail proves nothing: plant one violation of each kind and see layers.py find it.
set -euo pipefail
root=$1
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree"/{tests/checks,common,dataplane,controlplane,dataplane/odd}
cp "$root/tests/checks/rooms.table" "$tree/tests/checks/"
echo '/* fine */' >"$tree/common/a.h"
echo '/* fine */' >"$tree/controlplane/b.h"
expect() { # text: layers.py must fail and say it
	if out=$(python3 "$root/tests/checks/layers.py" "$tree"); then
		echo "not found: $1"
		exit 1
	fi
	grep -q "$1" <<<"$out" || { echo "wrong words for: $1"; echo "$out"; exit 1; }
}
echo '#include "common/a.h"' >"$tree/dataplane/ok.c"
python3 "$root/tests/checks/layers.py" "$tree" >/dev/null
echo '#include "controlplane/b.h"' >"$tree/dataplane/x.c"
expect 'may not include "controlplane/b.h"'
echo '#include <zmq.h>' >"$tree/dataplane/x.c"
expect '<zmq.h> may only be included by'
echo '#include "a.h"' >"$tree/dataplane/x.c"
expect 'does not start at the repository root'
rm "$tree/dataplane/x.c"
mkdir "$tree/misc" && touch "$tree/misc/m.c"
expect 'misc: the layout knows no such top-level entry'
expect 'no room in tests/checks/rooms.table names this folder'
