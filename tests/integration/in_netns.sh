#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Run a test in a network namespace of its own: no port of the machine is touched, no rule of its firewall changed.
map=
[ "$(id -u)" = 0 ] || map=--map-root-user
unshare $map --net true 2>/dev/null || { echo "cannot make a network namespace here"; exit 77; }
exec unshare $map --net -- sh -c 'ip link set lo up && exec "$@"' sh "$@"
