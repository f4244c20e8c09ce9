#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Run a command between two pairs of daemons on loopback, in a network namespace of its own. perf/lab.sh --help
here=$(dirname "$0")
case " $* " in
*" --help "* | *" -h "*) [ "$#" = 1 ] && exec python3 -B "$here/lab.py" --help ;;
esac
exec "$here/../tests/integration/in_netns.sh" python3 -B "$here/lab.py" "$@"
