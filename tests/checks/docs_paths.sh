#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every file or folder of ours that a document names must exist.
set -euo pipefail
cd "$1"
bad=0
while IFS=: read -r doc path; do
	[ -e "$path" ] || { echo "$doc names $path, which does not exist"; bad=1; }
done < <(grep -rohE --with-filename '(common|shm-ring|dataplane|controlplane|tests|perf|deploy|docs)/[A-Za-z0-9_./-]*[A-Za-z0-9_]\.(c|h|def|sh|py|md|table|json|txt|c)\b' \
	README.md docs/ARCHITECTURE.md docs/adr/*.md docs/security.md docs/performance.md docs/runbook.md 2>/dev/null | sort -u)
exit $bad
