#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every function and constant of <tent/tent.h> stands in a page of section 3, every function in exactly
# one synopsis, and the pages are clean mdoc. usage: man.sh SOURCE_DIR
set -euo pipefail
header=$1/dataplane/libtent/include/tent/tent.h
pages=("$1"/docs/man/tent.3 "$1"/docs/man/tent_*.3)
bad=0
complain() { echo "$*" >&2; bad=1; }

while read -r name; do
	in_synopsis=$(sed -n '/^\.Sh SYNOPSIS/,/^\.Sh DESCRIPTION/p' "${pages[@]}" | grep -cE "^\.F[no] $name( |\$)" || true)
	[ "$in_synopsis" = 1 ] || complain "$name stands in $in_synopsis synopses"
done < "$1/tests/abi/libtent.symbols"

for constant in $(grep -oE '\bTENT_[A-Z_]*[A-Z]\b' "$header" | sort -u |
	grep -vE '^TENT_(H|API|API_VERSION|INTENT_.*|TRANSPORT_(RDMA|HP_TCP|TCP|SHM)|RUNTIME_DIR)$'); do
	grep -qw "$constant" "${pages[@]}" || complain "no page names $constant"
done

command -v mandoc > /dev/null || { echo "no mandoc here"; exit 77; }
# What the host's own pages lack is none of ours.
lint=$(cd "$1/docs/man" && mandoc -T lint tent.3 tent_*.3 2>&1 |
	grep -vE 'outdated mandoc.db|referenced manual not found' || true)
[ -z "$lint" ] || complain "$lint"
exit $bad
