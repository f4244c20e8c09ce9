#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every test that docs/defects.md names must exist, and each of its 22 rows must have one or say what is open.
# Usage: defects.sh SOURCE_DIR
set -euo pipefail
cd "$1"
doc=docs/defects.md
bad=0
say() { echo "$doc: $*"; bad=1; }
for n in $(seq 22); do
	row=$(grep -E "^\| $n \|" $doc) || { say "no row $n"; continue; }
	[[ $row == *'`tests/'* || $row == *'open:'* ]] || say "row $n names no test and nothing that is open"
done
while read -r file name; do
	if [ ! -f "$file" ]; then
		say "$file does not exist"
	elif [[ $file == *.py ]]; then # a case of its own in ctest
		grep -qE "^tent_integration\($(basename "$file" _test.py) .*\b$name\b" tests/integration/CMakeLists.txt &&
			grep -q "\"$name\": $name" "$file" || say "$file has no case $name"
	else
		grep -qF "{ $name, " "$file" || say "$file has no case $name"
	fi
done < <(grep -oE '`tests/[^`]*`' $doc | tr -d '`')
exit $bad
