#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: tentctl_docs.sh TENTCTL SOURCE_DIR
# The manual page names every verb and option of tentctl's table, the completion offers them, the pages are clean mdoc.
set -euo pipefail
tentctl=$1 src=$2 bad=0
page=$src/docs/man/tentctl.1
complain() { echo "$*"; bad=1; }

. "$src/deploy/bash-completion/tentctl"
offers() { # WANTED WORD...: does the completion of these words offer WANTED?
	local wanted=$1
	shift
	COMP_WORDS=("$tentctl" "$@")
	COMP_CWORD=$#
	_tentctl
	printf '%s\n' "${COMPREPLY[@]}" | grep -xF -e "$wanted" >/dev/null # not -q: printf must not write into a closed pipe
}

verbs=$("$tentctl" list-verbs)
[ "$(wc -l <<<"$verbs")" -ge 14 ] || complain "list-verbs shows too few verbs"
while IFS=$'\t' read -r verb args; do
	grep -qE "^\.It Ic $verb( |\$)" "$page" || complain "$page: no entry for \"$verb\""
	read -ra words <<<"$verb"
	offers "${words[0]}" "${words[0]:0:2}" || complain "completion does not offer \"${words[0]}\""
	[ ${#words[@]} = 1 ] || offers "${words[1]}" "${words[0]}" "" || complain "completion does not offer \"$verb\""
	for option in $(grep -o -e '--[a-z-]*' <<<"$args" || true); do
		entry=$(sed -n "/^\.It Ic $verb\( \|\$\)/p" "$page")
		grep -qF -e "Fl \\${option#-}" <<<"$entry" || complain "$page: \"$verb\" does not name $option"
		offers "$option" "${words[@]}" "--" || complain "completion does not offer $option of \"$verb\""
	done
done <<<"$verbs"
for option in json config runtime-dir set timeout version help; do
	grep -qF -e "Fl \\-$option" "$page" || complain "$page: --$option is missing"
	offers "--$option" "--" || complain "completion does not offer --$option"
done
offers tcp put --transport "" || complain "completion does not offer values of --transport"
offers show -c file --set a=b segment s || complain "completion stumbles over global options"
offers show --set a = tcp : //b segment s || complain "completion stumbles over the words that bash makes of a=tcp://b"

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cat >"$tmp/tentctl" <<EOF
#!/bin/sh
case "\$*" in
list-verbs) exec "$tentctl" list-verbs ;;
"-c other.json --runtime-dir dir -s a=b "*" peer list") echo ' "name": "host-of-other",' ;;
esac
EOF
chmod +x "$tmp/tentctl"
tentctl=$tmp/tentctl offers host-of-other -c other.json --runtime-dir dir -s a = b peer probe "" ||
	complain "completion asks another pair for names than the line does"
compopt() { as=$*; }
mkdir "$tmp/put"
for words in "put pu" "-c pu" "-r pu" "pu"; do
	as=''
	wanted=-ofilenames
	[ "$words" != pu ] || wanted=''
	# shellcheck disable=SC2086 # they are words
	(cd "$tmp" && offers put $words && [ "${as/ /}" = "$wanted" ]) || complain "completion of \"$words\" beside a folder put"
done
[[ $(complete -p tentctl) != *filenames* ]] || complain "completion takes every word for a file"

if command -v mandoc >/dev/null; then
	mandoc -T lint -W warning "$src"/docs/man/*.[0-9] || bad=1
fi
exit $bad
