#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The only list of Debian packages that tent needs, and the only script that installs any.
# usage: deploy/packages.sh build | test | perf     (test and perf include build; --print only prints the names)
set -euo pipefail

build=(gcc libc6-dev make ninja-build cmake pkg-config git ca-certificates
	libzmq3-dev libjansson-dev libmicrohttpd-dev libsodium-dev libssl-dev openssl)
tests=(g++ libcunit1-dev clang libclang-rt-14-dev spin mandoc curl iproute2 procps tmux util-linux nftables python3 bash-completion)
perf=(python3 iproute2 util-linux librsvg2-bin ucx-utils iperf3 libfabric-bin)

usage() { echo "usage: deploy/packages.sh [--print] build|test|perf" >&2; exit 2; }
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
[ ${#missing[@]} = 0 ] && exit 0

as_root=()
if [ "$(id -u)" != 0 ]; then
	command -v sudo >/dev/null || {
		echo "deploy/packages.sh: missing packages need root or sudo: apt-get install ${missing[*]}" >&2
		exit 1
	}
	as_root=(sudo)
fi
echo "installing Debian packages: ${missing[*]}" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() { DEBIAN_FRONTEND=noninteractive "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 "$@"; }
{ apt update && apt install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1 || {
	tail -n 30 "$log" >&2
	echo "deploy/packages.sh: apt-get failed; the last lines are above" >&2
	exit 1
}
