#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Ordered accesses, their tags and docs/memory-model.md agree: every acquire, release and fence in the source has a
# tagged comment directly above; every tag has both ends, a row, and a test that names it (or the reason why there is
# none); no row is without code; only common/atomic.h includes <stdatomic.h>; the full fence is the doorbell's alone.
# usage: memory_model.sh SOURCE_DIR
set -euo pipefail
cd "$1"
doc=docs/memory-model.md
mapfile -t files < <(find common shm-ring dataplane controlplane -name '*.[ch]' ! -path common/atomic.h | sort)
bad=0
complain() { echo "$1"; bad=1; }

# An access counts as tagged when the comment that ends on the line above it (or stands on it) begins with [TAG].
untagged=$(awk '
	FNR == 1 { tagged = 0; open = 0 }
	/\/\*/ { tagged = 0; open = 1 }
	open && /\[[A-Z][0-9]\]/ { tagged = 1 }
	open && /\*\// { open = 0; fresh = FNR }
	/tn_(load_acquire|store_release)(32|64)\(|tn_fence_(acquire|release|full)\(/ {
		if (!(tagged && fresh >= FNR - 1)) print FILENAME ":" FNR ": ordered access without a tag above: " $0
	}' "${files[@]}")
[ -z "$untagged" ] || complain "$untagged"

# Ends as the comments declare them: "[R1] acquire: ...", "[D1] [D2] full: ...", "[E1] release fence: ...".
ends=$(grep -hoE '(\[[A-Z][0-9]\] )+(acquire|release|full)( fence)?:' "${files[@]}" || true)
tags=$(grep -oE '\[[A-Z][0-9]\]' <<<"$ends" | tr -d '[]' | sort -u)
[ -n "$tags" ] || complain "no tags found in the source"
for tag in $tags; do
	mine=$(grep -F "[$tag]" <<<"$ends")
	release=$(grep -c 'release' <<<"$mine" || true); acquire=$(grep -c 'acquire' <<<"$mine" || true)
	full=$(grep -c 'full' <<<"$mine" || true)
	{ [ "$release" -ge 1 ] && [ "$acquire" -ge 1 ]; } || [ "$full" -ge 2 ] ||
		complain "[$tag] has one end only: $release release, $acquire acquire, $full full"
	row=$(grep -E "^\| $tag \|" "$doc" || true)
	[ "$(grep -c . <<<"$row")" = 1 ] || complain "$doc: wants exactly one row for [$tag]"
	grep -qE '\| none \(.+\) \|$' <<<"$row" && continue
	test=$(sed -n 's/.*| `\(tests\/[^`]*\)` |$/\1/p' <<<"$row")
	[ -n "$test" ] && grep -qF "[$tag]" "$test" 2>/dev/null || complain "$doc: the row of [$tag] names no test that mentions it"
done
for tag in $(sed -n 's/^| \([A-Z][0-9]\) |.*/\1/p' "$doc"); do
	grep -qx "$tag" <<<"$tags" || complain "$doc: the row of [$tag] has no code"
done

others=$(grep -lE 'stdatomic\.h' "${files[@]}" || true)
[ -z "$others" ] || complain "includes <stdatomic.h> besides common/atomic.h: $others"
others=$(grep -lE 'tn_fence_full\(' "${files[@]}" | grep -vx shm-ring/doorbell.h || true)
[ -z "$others" ] || complain "a full fence outside the doorbell: $others"
exit $bad
