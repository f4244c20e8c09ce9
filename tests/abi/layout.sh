#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Struct sizes, offsets and constants of <tent/tent.h> are those of libtent.layout (64-bit).
# usage: layout.sh PROGRAM GOLDEN
set -euo pipefail
[ "$(getconf LONG_BIT)" = 64 ] || { echo "libtent.layout describes 64-bit hosts"; exit 77; }
diff -u "$2" <("$1") || {
	echo "abi: the public layout changed; that breaks programs that are built already" >&2
	exit 1
}
