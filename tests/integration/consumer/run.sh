#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs libtent into an empty directory, builds docs/examples/hello.c against it the three ways that the package
# offers (CMake shared, CMake static, pkg-config), and moves bytes with each through a real data plane.
# usage: run.sh BUILD_DIR SOURCE_DIR CC C_FLAGS TENT_DATAPLANE
set -euo pipefail
build=$1 src=$2 cc=$3 flags=$4 dataplane=$5
tmp=$(mktemp -d "${TMPDIR:-/tmp}/tent-consumer-XXXXXX")
pids=()
clean() {
	for pid in "${pids[@]}"; do kill "$pid" 2> /dev/null || true; done
	wait
	rm -rf "$tmp"
}
trap clean EXIT
fail() { echo "consumer: $*" >&2; exit 1; }
quietly() { "$@" > "$tmp/step.log" 2>&1 || { cat "$tmp/step.log"; fail "$*"; }; }

for component in libtent libtent-dev; do
	quietly cmake --install "$build" --prefix "$tmp/prefix" --component $component
done
lib=$(dirname "$(find "$tmp/prefix" -name libtent.so.0)")
[ -n "$lib" ] || fail "libtent.so.0 was not installed"

quietly cmake -S "$src/tests/integration/consumer" -B "$tmp/build" -DCMAKE_PREFIX_PATH="$tmp/prefix" \
	-DCMAKE_C_COMPILER="$cc" -DCMAKE_C_FLAGS="$flags" -DEXAMPLE="$src/docs/examples/hello.c"
quietly cmake --build "$tmp/build"
export PKG_CONFIG_PATH=$lib/pkgconfig
# shellcheck disable=SC2046,SC2086 # words are meant to be split
"$cc" $flags -Wall -Wextra -Werror "$src/docs/examples/hello.c" $(pkg-config --cflags --libs tent) -Wl,-rpath,"$lib" \
	-o "$tmp/hello_pkgconfig"
if grep -rq "$src" "$tmp/prefix/include" "$lib/cmake" "$lib/pkgconfig"; then
	fail "the installed package names the source tree"
fi

mkdir -p "$tmp/run" "$tmp/state"
export TENT_RUNTIME_DIR=$tmp/run
echo '{}' > "$tmp/tent.json"
"$dataplane" --config "$tmp/tent.json" --runtime-dir "$tmp/run" --set "state_dir=$tmp/state" \
	> "$tmp/dataplane.log" 2>&1 &
pids+=($!)
wait_for() { # wait_for FILE PATTERN
	for _ in $(seq 100); do
		grep -q "$2" "$1" 2> /dev/null && return
		sleep 0.1
	done
	cat "$tmp"/*.log "$tmp"/*.out
	fail "waited 10 s for \"$2\""
}
wait_for "$tmp/dataplane.log" '"ready'

for hello in "$tmp/build/hello" "$tmp/build/hello_static" "$tmp/hello_pkgconfig"; do
	name=$(basename "$hello")
	timeout 30 "$hello" publish > "$tmp/$name.publish.out" 2>&1 &
	publisher=$!
	moved=no
	for _ in $(seq 50); do # until the segment is there
		if timeout 30 "$hello" move hello > "$tmp/$name.move.out" 2>&1; then
			moved=yes
			break
		fi
		grep -q not_found "$tmp/$name.move.out" || break
		sleep 0.1
	done
	cat "$tmp/$name.move.out"
	[ $moved = yes ] || fail "$name move failed"
	wait $publisher || fail "$name publish failed: $(cat "$tmp/$name.publish.out")"
	grep -q '^mover wrote: hello from another process$' "$tmp/$name.publish.out" || fail "$name published something else"
	grep -q '^WRITE completed over shm: 1048576 bytes$' "$tmp/$name.move.out" || fail "$name moved something else"
done
