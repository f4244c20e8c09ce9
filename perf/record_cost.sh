#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What recording costs a request, in instructions and in time. perf/record_cost.sh --help
exec python3 -B "$(dirname "$0")/record_cost.py" "$@"
