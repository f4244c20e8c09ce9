#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fails when a generated file differs from what its generator prints. Usage: generated_fresh.sh GENERATOR FILE TARGET
set -eu
fresh=$(mktemp)
trap 'rm -f "$fresh"' EXIT
"$1" > "$fresh"
if ! diff -u "$2" "$fresh"; then
	echo "$2 is stale: build the target $3 and commit the result" >&2
	exit 1
fi
