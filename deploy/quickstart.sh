#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a fresh Debian 12 to verified bytes between two pairs of daemons, "host-a" and "host-b", on this machine.
#   deploy/quickstart.sh [FILE]          move FILE (default: 1 GiB generated from a printed seed)
#     --size BYTES   size of the generated file (e.g. 64MiB)
#     --seed TEXT    seed of the generated file
#     --build DIR    build here (default build/release)
#     --keep         leave the two pairs running and say how to stop them
# Needs root or sudo only to install missing Debian packages; everything else runs as you, on loopback.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

file='' size=1073741824 seed='' keep=0 build=$root/build/release
usage() { sed -n '4,9s/^# \{0,1\}//p' "$0"; }
fail() { echo "quickstart: $*" >&2; exit 1; }
bytes_of() { # 64MiB -> 67108864
	local n unit
	[[ $1 =~ ^([0-9]+)([KMG]?)(iB|B)?$ ]] || fail "--size $1: not a number of bytes such as 67108864 or 64MiB"
	n=${BASH_REMATCH[1]} unit=${BASH_REMATCH[2]}
	case $unit in K) n=$((n << 10)) ;; M) n=$((n << 20)) ;; G) n=$((n << 30)) ;; esac
	echo "$n"
}
value_of() { # OPTION VALUE...: there is one
	[ $# -ge 2 ] && [ -n "$2" ] && return
	echo "quickstart: $1 needs a value" >&2
	usage >&2
	exit 2
}
while [ $# -gt 0 ]; do
	case $1 in
	--keep) keep=1 ;;
	--size) value_of "$@"; size=$(bytes_of "$2"); shift ;;
	--seed) value_of "$@"; seed=$2; shift ;;
	--build) value_of "$@"; build=$(realpath -m -- "$2"); shift ;;
	-h | --help) usage; exit 0 ;;
	-*) echo "quickstart: unknown option $1" >&2; usage >&2; exit 2 ;;
	*) [ -z "$file" ] || { echo "quickstart: one file at a time" >&2; exit 2; }; file=$(realpath -m -- "$1") ;;
	esac
	shift
done
[ -z "$file" ] || [ -e "$file" ] || fail "$file: no such file"
[ ! -d "$file" ] || fail "$file is a folder; one file can be moved (pack it first: tar cf - ...)"
[ -z "$file" ] || [ -f "$file" ] || fail "$file is no regular file"
[ -z "$file" ] || [ -r "$file" ] || fail "$file: not readable"
step() { printf '\n[%s/6] %s\n' "$1" "$2"; }

# ---------------------------------------------------------------- packages and build
step 1 "Debian packages"
"$root/deploy/packages.sh" build
echo "all there"

step 2 "build (release) in ${build#"$root"/}"
mkdir -p "$build"
cmake -S "$root" --preset release -B "$build" -DTENT_TESTS=OFF >"$build/configure.log" 2>&1 ||
	{ tail -n 20 "$build/configure.log" >&2; fail "configuring failed (whole log: $build/configure.log)"; }
if [ -t 1 ]; then
	ninja -C "$build" || fail "building failed"
else
	echo "the first time this takes a minute or two; its log is $build/build.log"
	ninja -C "$build" >"$build/build.log" 2>&1 ||
		{ tail -n 40 "$build/build.log" >&2; fail "building failed (whole log: $build/build.log)"; }
	tail -n 1 "$build/build.log"
fi
bin_dp=$build/dataplane/tent-dataplane
bin_cp=$build/controlplane/tent-controlplane
tentctl=$build/controlplane/tentctl/tentctl

# ---------------------------------------------------------------- a place for two hosts
step 3 "two hosts: keys and configuration"
umask 077
run='' work='' pids=() names=() generator=''
metrics_url() { echo "http://$(cat "$run/$1/http.port")/metrics"; } # HOST
stop_all() {
	local i
	[ -z "$generator" ] || kill "$generator" 2>/dev/null || true
	for ((i = ${#pids[@]} - 1; i >= 0; i--)); do kill "${pids[i]}" 2>/dev/null || true; done
	for ((i = ${#pids[@]} - 1; i >= 0; i--)); do
		for _ in $(seq 100); do kill -0 "${pids[i]}" 2>/dev/null || break; sleep 0.1; done
		kill -9 "${pids[i]}" 2>/dev/null || true
	done
	wait 2>/dev/null || true
}
finish() {
	local rc=$?
	trap - EXIT INT TERM
	if [ "$rc" != 0 ]; then
		for n in "${names[@]}"; do
			echo "---- last lines of $n" >&2
			tail -n 15 "$work/$n.log" >&2 2>/dev/null || true
		done
	fi
	if [ "$keep" = 1 ] && [ "$rc" = 0 ]; then
		printf '\nStill running. Try:\n'
		for v in top "peer probe host-b" "explain host-b/model" doctor; do printf '  %s -c %s %s\n' "$tentctl" "$work/host-a/tent.json" "$v"; done
		for h in host-a host-b; do echo "  curl $(metrics_url $h)"; done
		printf 'Stop with:\n  kill %s; rm -rf %s %s\n' "${pids[*]}" "$run" "$work"
	else
		stop_all
		rm -rf ${run:+"$run"} ${work:+"$work"}
		[ "$rc" != 0 ] || printf 'Both pairs are stopped and their files removed; --keep leaves them running.\n'
	fi
	exit "$rc"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

shm=/dev/shm
[ -w "$shm" ] || shm=/tmp
run=$(mktemp -d "$shm/tent-quick.XXXXXX") # short: unix socket names have 107 bytes
# The files go to memory when there is plenty of it, so that the figures are not the disk's.
data=${TMPDIR:-/tmp}
want=$size
[ -z "$file" ] || want=$(stat -c %s "$file")
avail=$(awk '$1 == "MemAvailable:" { printf "%.0f\n", $2 * 1024 }' /proc/meminfo)
if [ "$shm" = /dev/shm ] && [ "$avail" -gt $((6 * want)) ]; then data=$shm; fi
work=$(mktemp -d "$data/tent-quick.XXXXXX")

if [ -z "$file" ]; then
	seed=${seed:-$(od -An -N8 -tx8 /dev/urandom | tr -d ' ')}
	file=$work/generated
	echo "generating $size bytes from seed $seed meanwhile"
	openssl enc -aes-128-ctr -nosalt -pbkdf2 -iter 1 -pass "pass:$seed" </dev/zero 2>/dev/null | head -c "$size" >"$file" &
	generator=$!
fi

port_free() { ! (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
free_port() {
	local p
	for _ in $(seq 50); do
		p=$((20000 + RANDOM % 12000))
		port_free "$p" && { echo "$p"; return; }
	done
	fail "no free port on loopback"
}
field() { # KEY < JSON: the value of a string or number member
	sed -n 's/^ *"'"$1"'": *"\{0,1\}\([^",]*\)"\{0,1\},\{0,1\}$/\1/p' | head -n 1
}
declare -A port key
for h in host-a host-b; do
	mkdir "$work/$h" "$run/$h" "$work/$h/conf.d"
	port[$h]=$(free_port)
	key[$h]=$("$tentctl" -j keygen "$work/$h/curve.key" | field public_key)
	[ -n "${key[$h]}" ] || fail "tentctl keygen gave no key"
done
for h in host-a host-b; do
	o=host-b
	[ $h = host-b ] && o=host-a
	cp "$root/deploy/config/tent.json" "$work/$h/tent.json" # the shipped default; what makes two hosts of one is a drop-in
	cat >"$work/$h/conf.d/10-$h.json" <<JSON
{
  "host": { "name": "$h" },
  "runtime_dir": "$run/$h",
  "state_dir": "$work/$h",
  "control": { "bind": "tcp://127.0.0.1:${port[$h]}", "key_file": "$work/$h/curve.key" },
  "metrics": { "http_port": 0 },
  "peers": [ { "name": "$o", "address": "tcp://127.0.0.1:${port[$o]}", "public_key": "${key[$o]}" } ]
}
JSON
	"$tentctl" -c "$work/$h/tent.json" config check >/dev/null
	echo "$h: control plane at 127.0.0.1:${port[$h]}, key ${key[$h]}"
done

# ---------------------------------------------------------------- start
step 4 "start two pairs"
start() { # NAME COMMAND...
	local name=$1
	shift
	"$@" >"$work/$name.log" 2>&1 &
	pids+=($!)
	names+=("$name")
}
ready() { # HOST: its /ready says 200
	local where line
	where=$(cat "$run/$1/http.port" 2>/dev/null) || return 1
	exec 3<>"/dev/tcp/${where%:*}/${where##*:}" || return 1
	printf 'GET /ready HTTP/1.0\r\n\r\n' >&3
	read -r -t 2 line <&3 || line=
	exec 3>&-
	[[ $line == *" 200 "* ]]
}
for h in host-a host-b; do
	start "$h-controlplane" "$bin_cp" -c "$work/$h/tent.json"
	start "$h-dataplane" "$bin_dp" -c "$work/$h/tent.json"
done
daemons=("${pids[@]}")
for h in host-a host-b; do
	for i in $(seq 100); do
		(ready $h) 2>/dev/null && break
		for p in "${daemons[@]}"; do kill -0 "$p" 2>/dev/null || fail "a daemon of $h did not start"; done
		[ "$i" != 100 ] || fail "$h was not ready after 10 s"
		sleep 0.1
	done
	echo "$h is ready, metrics at $(metrics_url $h)"
done

# ---------------------------------------------------------------- move
step 5 "move"
bytes=$want
tick=$(getconf CLK_TCK)
cpu_ticks() { # of the daemons and the publisher
	local sum=0 rest f
	for p in "${pids[@]}"; do
		rest=$(sed 's/.*) //' "/proc/$p/stat")
		read -ra f <<<"$rest"
		sum=$((sum + f[11] + f[12]))
	done
	echo $sum
}
a=(-c "$work/host-a/tent.json")
b=(-c "$work/host-b/tent.json")
start publisher "$tentctl" "${b[@]}" segment publish model --size "$bytes"
for i in $(seq 200); do
	"$tentctl" "${b[@]}" segment show model >/dev/null 2>&1 && break
	kill -0 "${pids[-1]}" 2>/dev/null || fail "the publisher stopped: $(tail -n 1 "$work/publisher.log")"
	[ "$i" != 200 ] || fail "segment model did not appear"
	sleep 0.1
done
echo "host-b publishes segment \"model\" ($bytes bytes)"
[ -z "$generator" ] || wait "$generator" || true
generator=''
[ "$(stat -c %s "$file")" = "$bytes" ] || fail "$file has $(stat -c %s "$file") bytes, not $bytes"

report() { # WHAT JSON-FILE TICKS-BEFORE TICKS-AFTER
	local own total
	own=$(field cpu_seconds <"$2")
	[ "$bytes" -gt 0 ] || { echo "$1: nothing to move, verified"; return; }
	total=$(awk -v t=$(($4 - $3)) -v hz="$tick" -v own="$own" -v b="$bytes" \
		'BEGIN { printf "%.2f CPU seconds per GB (both pairs and both applications)", (t / hz + own) / (b / 1e9) }')
	printf '%s: %.2f GB/s over %s with file and SHA-256, verified, %s\n' "$1" "$(field gb_per_s <"$2")" \
		"$(field transport <"$2")" "$total"
}
human=$(numfmt --to=iec-i --suffix=B "$bytes")
echo "writing $human from host-a to host-b ..."
t0=$(cpu_ticks)
"$tentctl" "${a[@]}" -j put "$file" host-b/model >"$work/put.json"
t1=$(cpu_ticks)
report "WRITE host-a -> host-b" "$work/put.json" "$t0" "$t1"
echo "reading $human from host-b to host-a ..."
t0=$(cpu_ticks)
"$tentctl" "${a[@]}" -j get host-b/model "$work/back" >"$work/get.json"
t1=$(cpu_ticks)
report "READ  host-b -> host-a" "$work/get.json" "$t0" "$t1"

sum=$(field sha256 <"$work/put.json")
[[ -n $sum && $sum == "$(field sha256 <"$work/get.json")" ]] || fail "the SHA-256 of put and get differ"
cmp "$file" "$work/back" || fail "what came back is not what was sent"
echo "SHA-256 $sum: the same in the file, in host-b's memory and in what came back"

# ---------------------------------------------------------------- look
step 6 "what an operator sees on host-a"
look() { # VERB...
	printf '$ tentctl %s\n' "$*"
	"$tentctl" "${a[@]}" "$@"
	echo
}
look status
look peer list
printf '$ tentctl explain host-b/model   (why this way)\n'
"$tentctl" "${a[@]}" explain host-b/model | sed '/^policy/,$d'
