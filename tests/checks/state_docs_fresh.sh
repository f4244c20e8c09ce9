#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fails when docs/state-machines.md differs from what state_gen prints. Usage: state_docs_fresh.sh STATE_GEN SOURCE_DIR
set -eu
fresh=$(mktemp)
trap 'rm -f "$fresh"' EXIT
"$1" > "$fresh"
if ! diff -u "$2/docs/state-machines.md" "$fresh"; then
	echo "docs/state-machines.md is stale: build the target state_docs and commit the result" >&2
	exit 1
fi
