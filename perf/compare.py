#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs tentbench against yardsticks, interleaved: A B A B ..., so that a busy minute of the machine hits both. What
counts is the median of the ratios of neighbours. Called by perf/compare.sh inside perf/lab.sh.

To add a contender: one row in CONTENDERS (how to run a cell, how to read what it prints); to pit it against tent: one
row in MATCHES."""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
from collections import namedtuple

KIB, MIB = 1 << 10, 1 << 20
Cell = namedtuple("Cell", "op bytes depth pool")            # pool: bytes that both sides walk
Figures = namedtuple("Figures", "gbps p50_us cpu others")   # cpu: seconds per GB; others: CPUs used by somebody else
Contender = namedtuple("Contender", "program argv read")
Match = namedtuple("Match", "name ours theirs metric bar cells")


def read_tentbench(out):
    cell = json.loads(out)["cells"][0]
    if not cell["ok"]:
        raise RuntimeError(cell["error"])
    return Figures(cell["gb_per_s"], cell["latency_us"]["p50"], cell["cpu_s_per_gb"], cell["other_cpus"])


def common(c, a):
    return ["--op", c.op, "--size", str(c.bytes), "--pool", str(c.pool), "--time", f"{a.ms}ms", "--seed", str(a.seed),
            "--json", "-"]


def tentbench(ref, transport):
    return lambda c, a: ["tentbench", "run", ref, "--transport", transport, "--depth", str(c.depth), *common(c, a)]


FIRST, LAST = (str(f(os.sched_getaffinity(0))) for f in (min, max))
CONTENDERS = {
    "tent shm": Contender("tentbench", tentbench("own", "shm"), read_tentbench),
    "tent tcp": Contender("tentbench", tentbench("b/kv", "tcp"), read_tentbench),
    "memcpy_loop": Contender("memcpy_loop", lambda c, a: ["memcpy_loop", "--cpu", FIRST, *common(c, a)],
                             read_tentbench),
    "tcp_loop": Contender("tcp_loop", lambda c, a: ["tcp_loop", "--cpu", f"{FIRST},{LAST}", "--depth", str(c.depth),
                                                    *common(c, a)], read_tentbench),
}

COLD = 512 * MIB
OPS = ("write", "read")
MATCHES = [
    Match("shm", "tent shm", "memcpy_loop", "gbps", 0.95,
          [Cell(op, size, 8, pool) for size in (MIB, 4 * MIB) for pool in (COLD, 8 * size) for op in OPS]),
    Match("tcp", "tent tcp", "tcp_loop", "gbps", 1.0, [Cell(op, MIB, 8, COLD) for op in OPS]),
    Match("tcp-small", "tent tcp", "tcp_loop", "p50_us", None, [Cell(op, 4 * KIB, 1, COLD) for op in OPS]),
]


def run(name, cell, a):
    who = CONTENDERS[name]
    r = subprocess.run(who.argv(cell, a), capture_output=True, text=True, timeout=60 + a.ms / 100, check=False)
    try:
        return who.read(r.stdout)
    except (ValueError, KeyError, IndexError, RuntimeError) as e:
        raise SystemExit(f"perf/compare.sh: {name}: exit {r.returncode}: {e}\n{r.stderr}") from e


def ratio(match, ours, theirs, field):
    """Above 1 = ours is better, whatever the metric."""
    x, y = getattr(ours, field), getattr(theirs, field)
    if not x or not y:
        return float("nan")
    return x / y if field == "gbps" else y / x


def play(match, cell, a):
    rounds = [(run(match.ours, cell, a), run(match.theirs, cell, a)) for _ in range(a.rounds)]
    med = lambda side, field: statistics.median(getattr(r[side], field) for r in rounds)
    ratios = sorted(ratio(match, *r, match.metric) for r in rounds)
    row = {"match": match.name, "ours": match.ours, "theirs": match.theirs, **cell._asdict(), "metric": match.metric,
           "bar": match.bar, "ratio": statistics.median(ratios), "ratios": ratios,
           "cpu_ratio": statistics.median(ratio(match, *r, "cpu") for r in rounds),
           "ours_value": med(0, match.metric), "theirs_value": med(1, match.metric),
           "ours_cpu_s_per_gb": med(0, "cpu"), "theirs_cpu_s_per_gb": med(1, "cpu"),
           "others": max(max(x.others, y.others) for x, y in rounds)}
    verdict = "" if match.bar is None else ("meets" if row["ratio"] >= match.bar else "MISSES") + f" {match.bar}"
    noise = f"  (others used up to {row['others']:.1f} CPUs)" if row["others"] >= 0.1 else ""
    print(f"{match.ours:9} {match.theirs:12} {cell.op:5} {cell.bytes >> 10:6}K d{cell.depth} "
          f"{'cold' if cell.pool >= COLD else 'hot':4} {'GB/s' if match.metric == 'gbps' else 'us':4} "
          f"{row['ours_value']:8.2f} {row['theirs_value']:8.2f} "
          f"{row['ratio']:6.2f} [{ratios[0]:.2f}..{ratios[-1]:.2f}] "
          f"{row['ours_cpu_s_per_gb']:7.3f} {row['theirs_cpu_s_per_gb']:7.3f} {row['cpu_ratio']:6.2f} {verdict}{noise}",
          flush=True)
    return row


def main():
    p = argparse.ArgumentParser(prog="perf/compare.sh", description=__doc__.split("\n\n", maxsplit=1)[0])
    p.add_argument("matches", nargs="*", metavar="MATCH", help=f"{', '.join(m.name for m in MATCHES)} [all]")
    p.add_argument("--rounds", type=int, default=5, help="pairs of runs per cell [5]")
    p.add_argument("--ms", type=int, default=500, help="measured time of each run [500]")
    p.add_argument("--seed", type=int, default=1, help="order of blocks [1]")
    p.add_argument("--json", metavar="FILE", help="write all figures there")
    a = p.parse_args()
    unknown = set(a.matches) - {m.name for m in MATCHES}
    if unknown or a.rounds < 1 or a.ms < 1:
        p.error(f"no such match: {', '.join(unknown)}" if unknown else "--rounds and --ms must be positive")
    print(f"{'ours':9} {'theirs':12} {'op':5} {'size':>7} {'':2} {'pool':4} {'unit':4} "
          f"{'ours':>8} {'theirs':>8} {'ratio':>6} "
          f"{'':12} {'CPUs/GB':>7} {'theirs':>7} {'ratio':>6} bar  (ratios above 1: tent is better)")
    rows = []
    for m in MATCHES:
        if a.matches and m.name not in a.matches:
            continue
        absent = [CONTENDERS[n].program for n in (m.ours, m.theirs) if not shutil.which(CONTENDERS[n].program)]
        if absent:
            print(f"{m.name}: left out: {', '.join(absent)} is not here (deploy/packages.sh perf)")
            continue
        rows += [play(m, c, a) for c in m.cells]
    if a.json:
        with open(a.json, "w", encoding="utf-8") as f:
            json.dump({"schema_version": 1, "rounds": a.rounds, "ms": a.ms, "seed": a.seed, "rows": rows}, f, indent=1)
            f.write("\n")


if __name__ == "__main__":
    sys.exit(main())
