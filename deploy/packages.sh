#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The only list of Debian packages that tent needs, and the only script that installs any.
# usage: deploy/packages.sh build | test | perf     (test and perf include build; --print only prints the names)
#        deploy/packages.sh --tools                 prints the folder of the programs that are unpacked, not installed
set -euo pipefail

build=(gcc libc6-dev make ninja-build cmake pkg-config git ca-certificates
	libzmq3-dev libjansson-dev libmicrohttpd-dev libsodium-dev libssl-dev openssl libarchive-dev)
tests=(g++ libcunit1-dev clang libclang-rt-14-dev spin mandoc curl iproute2 procps tmux util-linux nftables python3 bash-completion)
perf=(python3 iproute2 util-linux librsvg2-bin ucx-utils iperf3 libfabric-bin valgrind)

# The package prometheus adds a user, enables a unit and starts a server on port 9090, under systemd or any other init, unless a
# policy of the machine forbids it. The tests want its two programs only: they are taken out of the package, which is fetched
# and verified by apt as ever, and no install script runs. One copy per user; those of an installed package are used as well.
tools=(prometheus promtool)
tools_dir=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/tent/tools

usage() { echo "usage: deploy/packages.sh [--print] build|test|perf, or --tools" >&2; exit 2; }
[ "${1:-}" = --tools ] && { echo "$tools_dir"; exit 0; }
print=0
[ "${1:-}" = --print ] && { print=1; shift; }
case "${1:-}" in
build) want=("${build[@]}") ;;
test) want=("${build[@]}" "${tests[@]}") ;;
perf) want=("${build[@]}" "${perf[@]}") ;;
*) usage ;;
esac
[ "$print" = 1 ] && { printf '%s\n' "${want[@]}"; exit 0; }

missing=()
for p in "${want[@]}"; do
	[ "$(dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null || true)" = installed ] || missing+=("$p")
done
unpack=0
if [ "$1" = test ]; then
	for p in "${tools[@]}"; do
		PATH=$PATH:$tools_dir command -v "$p" >/dev/null || unpack=1
	done
fi
[ ${#missing[@]} = 0 ] && [ $unpack = 0 ] && exit 0

as_root=()
if [ "$(id -u)" != 0 ]; then
	if command -v sudo >/dev/null; then
		as_root=(sudo)
	elif [ ${#missing[@]} != 0 ]; then
		echo "deploy/packages.sh: missing packages need root or sudo: apt-get install ${missing[*]}" >&2
		exit 1
	fi
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
log=$work/log
apt() { DEBIAN_FRONTEND=noninteractive "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 "$@"; }
give_up() {
	tail -n 30 "$log" >&2
	echo "deploy/packages.sh: apt-get failed; the last lines are above" >&2
	exit 1
}
if [ ${#missing[@]} != 0 ]; then
	echo "installing Debian packages: ${missing[*]}" >&2
	{ apt update && apt install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1 || give_up
fi
if [ $unpack = 1 ]; then
	echo "unpacking ${tools[*]} of the Debian package ${tools[0]} into $tools_dir" >&2
	cd "$work"
	{ apt-get -qq download "${tools[0]}" || { apt update && apt-get -qq download "${tools[0]}"; }; } >"$log" 2>&1 || give_up
	dpkg-deb --fsys-tarfile "${tools[0]}"_*.deb | tar -x "${tools[@]/#/./usr/bin/}"
	mkdir -p "$tools_dir"
	mv -f "${tools[@]/#/usr/bin/}" "$tools_dir/"
fi
