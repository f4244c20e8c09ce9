#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: config_docs_fresh.sh CONFIG_GEN SOURCE_DIR
# The checked-in documents of the configuration are what the schema generates today; the manual page is clean mdoc.
set -euo pipefail
gen=$1 src=$2
fresh=$(mktemp) stale=0
trap 'rm -f "$fresh"' EXIT
compare() {
	"$gen" "$1" > "$fresh"
	diff -u --label "$2" --label "generated" "$src/$2" "$fresh" || stale=1
}
compare markdown docs/config.md
compare man docs/man/tent.json.5
compare example deploy/config/tent.json
if [ "$stale" = 1 ]; then
	echo "stale: build the target config_docs and commit what it writes"
	exit 1
fi
if command -v mandoc > /dev/null; then
	mandoc -T lint -W warning "$src/docs/man/tent.json.5"
fi
