#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fails when docs/state-machines.md differs from what the generators print in this order.
# Usage: state_docs_fresh.sh SOURCE_DIR GENERATOR...
set -eu
src=$1
shift
fresh=$(mktemp)
trap 'rm -f "$fresh"' EXIT
for generator; do
	"$generator" >> "$fresh"
done
if ! diff -u "$src/docs/state-machines.md" "$fresh"; then
	echo "docs/state-machines.md is stale: build the target state_docs and commit the result" >&2
	exit 1
fi
