#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# deploy/quickstart.sh as a newcomer calls it, with the daemons of a build that is there: cmake, ninja and dpkg-query are
# stand-ins, and mktemp notes what it made.
# usage: quickstart.sh BUILD_DIR SOURCE_DIR
set -euo pipefail
build=$1 quickstart=$2/deploy/quickstart.sh
tmp=$(mktemp -d "${TMPDIR:-/tmp}/tent-newcomer-XXXXXX")
trap 'rm -rf "$tmp"' EXIT
fail() {
	cat "$tmp/out" "$tmp/err" 2>/dev/null || true
	echo "quickstart: $*" >&2
	exit 1
}

mkdir -p "$tmp/bin" "$tmp/home/rel/controlplane"
stand_in() { printf '#!/bin/bash\n%s\n' "$2" >"$tmp/bin/$1" && chmod +x "$tmp/bin/$1"; } # NAME BODY
stand_in cmake 'exit 0'
stand_in dpkg-query 'echo installed'
stand_in mktemp "set -o pipefail; $(command -v mktemp) \"\$@\" | tee -a '$tmp/made'"
export PATH=$tmp/bin:$PATH
ln -s "$build/dataplane" "$tmp/home/rel/dataplane"
ln -s "$build/controlplane/tent-controlplane" "$build/controlplane/tentctl" "$tmp/home/rel/controlplane/"
cd "$tmp/home"

run() { # WANTED-EXIT ARGUMENT...
	local wanted=$1 rc=0
	shift
	: >"$tmp/made"
	timeout 120 "$quickstart" "$@" >"$tmp/out" 2>"$tmp/err" || rc=$?
	[ "$rc" = "$wanted" ] || fail "exit $rc, not $wanted: $*"
	while read -r made; do [ ! -e "$made" ] || fail "$made is left"; done <"$tmp/made"
}
says() { grep -qE -e "$2" "$tmp/$1" || fail "no \"$2\" in its $1"; } # out|err PATTERN

# From another folder, with names relative to it.
stand_in ninja 'echo "ninja: no work to do."'
head -c 300000 /dev/urandom >file
run 0 file --build rel
says out '^WRITE host-a -> host-b: .* verified'
says out '^READ  host-b -> host-a: .* verified'
says out '^host-b is ready, metrics at http://.*/metrics$'
says out "$(sha256sum <file | cut -d' ' -f1)"
says out 'log is .*/home/rel/build.log$'
tail -n 1 "$tmp/out" | grep -q 'stopped' || fail "does not say at its end that nothing runs any more"

# What the compiler says reaches the one who waits, terminal or not.
stand_in ninja 'echo "FAILED: a.c.o"; echo "a.c:1:1: error: planted"; echo "ninja: build stopped."; exit 1'
run 1 file --build rel
says err 'error: planted'
says err 'whole log: .*/home/rel/build.log'

# More than memory holds is kept in TMPDIR: when that is no folder, nothing else is left.
stand_in ninja 'exit 0'
truncate -s 64T large 2>/dev/null || truncate -s 8T large
TMPDIR=$tmp/nowhere run 1 large --build rel
[ "$(wc -l <"$tmp/made")" -ge 1 ] || fail "made no folder, so this case shows nothing"
