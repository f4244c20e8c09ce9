#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every speed bar, with pass or fail, and the plots. perf/bars.sh --help
exec python3 -B "$(dirname "$0")/bars.py" "$@"
