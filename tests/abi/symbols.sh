#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The symbols of libtent.so.0 and libtent.a, of the version script and of the header are those of libtent.symbols, and
# the shared library needs nothing but the C library.
# usage: symbols.sh LIBTENT.SO LIBTENT.A SOURCE_DIR SANITIZED(0|1)
set -euo pipefail
so=$1 archive=$2 src=$3 sanitized=$4
list=$src/tests/abi/libtent.symbols
failed=0

compare() { # compare WHAT, symbols on stdin
	if ! diff -u "$list" <(LC_ALL=C sort -u) >&2; then
		echo "abi: the symbols of $1 are not those of tests/abi/libtent.symbols" >&2
		failed=1
	fi
}

nm -D --defined-only "$so" | awk '$2 == "T" { sub(/@.*/, "", $3); print $3 }' | compare "$(basename "$so")"
nm -g --defined-only "$archive" | awk '$2 == "T" { print $3 }' | compare "$(basename "$archive")"
sed -n 's/^[[:space:]]*\(tent_[a-z0-9_]*\);$/\1/p' "$src/dataplane/libtent/libtent.map" | compare libtent.map
tr '\n' ' ' < "$src/dataplane/libtent/include/tent/tent.h" | grep -o 'TENT_API [a-z][^;(]*(' |
	grep -o 'tent_[a-z0-9_]*($' | tr -d '(' | compare tent.h

# The dynamic linker is of the C library too: thread-local storage is found through it.
needed=$(objdump -p "$so" | awk '$1 == "NEEDED" && $2 !~ /^(libc|ld-linux[^ ]*)\.so/ { print $2 }')
if [ "$sanitized" = 0 ] && [ -n "$needed" ]; then
	echo "abi: $(basename "$so") needs more than the C library:" $needed >&2
	failed=1
fi
if ! objdump -p "$so" | grep -q 'SONAME *libtent\.so\.0$'; then
	echo "abi: the soname is not libtent.so.0" >&2
	failed=1
fi
exit $failed
