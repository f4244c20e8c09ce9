#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fails when docs/metrics.md differs from what metrics_gen prints. Usage: metrics_docs_fresh.sh METRICS_GEN SOURCE_DIR
set -eu
fresh=$(mktemp)
trap 'rm -f "$fresh"' EXIT
"$1" > "$fresh"
if ! diff -u "$2/docs/metrics.md" "$fresh"; then
	echo "docs/metrics.md is stale: build the target metrics_docs and commit the result" >&2
	exit 1
fi
