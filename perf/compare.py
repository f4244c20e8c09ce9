#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs tent against yardsticks, interleaved: A B A B ..., so that a busy minute of the machine hits both. What counts is
the median of the ratios of neighbours. Called by perf/compare.sh inside perf/lab.sh.

To add a contender: one row in contenders.py (how to run a cell, how to read what it prints); to pit it against tent: one
row in MATCHES."""
import argparse
import contextlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections import namedtuple

from contenders import CONTENDERS, KIB, MIB, Cell, Failed

# bar: of the ratio; without a yardstick, of the figure itself. cpu_bar: of the ratio of CPU per GB. None: for information.
# lab: options of perf/lab.sh that the match is meant for; perf/bars.sh gives them.
Match = namedtuple("Match", "name ours theirs metric bar cpu_bar cells lab", defaults=("",))

COLD, HOT = 512 * MIB, 8 * MIB
OPS = ("write", "read")
BULK = [Cell(op, MIB, 8, COLD) for op in OPS]
BULK_HOT = [Cell(op, MIB, 8, HOT) for op in OPS]  # ucx_perftest and iperf3 use one buffer again and again
SMALL = [Cell(op, 4 * KIB, 1, COLD) for op in OPS]
BUSY = "poll/mode=busy"
BOTH_BUSY, A_BUSY = f"--set {BUSY}", f"--set-a {BUSY}"
MATCHES = [
    Match("shm", "tent shm", "memcpy_loop", "gbps", 0.95, None,
          [Cell(op, size, 8, pool) for size in (MIB, 4 * MIB) for pool in (COLD, 8 * size) for op in OPS]),
    Match("tcp", "tent tcp", "tcp_loop", "gbps", 1.0, 1.0, BULK),
    Match("tcp-ucx", "tent tcp", "ucx best", "gbps", 1.0, 1.0, BULK_HOT),
    Match("tcp-iperf3", "tent tcp", "iperf3", "gbps", None, None, BULK_HOT[:1]),
    Match("tcp-libfabric", "tent tcp", "fi_pingpong", "gbps", None, None, [Cell("write", MIB, 1, MIB)]),
    Match("tcp-small", "tent tcp", "tcp_loop", "p50_us", None, None, SMALL),
    Match("tcp-inside", "tent tcp inside", "ucx put_lat", "p50_us", 1 / 1.5, None, SMALL, BOTH_BUSY),
    Match("shm-small", "tent shm busy", None, "p50_us", 3.0, None, SMALL, A_BUSY),
    Match("shm-rate", "tent shm busy", None, "ops", 500e3, None, [Cell(op, 4 * KIB, 32, COLD) for op in OPS], A_BUSY),
]
UNITS = {"gbps": "GB/s", "p50_us": "us", "ops": "op/s"}


def data_planes():
    for pid in filter(None, os.environ.get("TENTBENCH_PIDS", "").split(",")):
        with open(f"/proc/{pid}/comm", encoding="ascii") as f:
            if f.read().strip() == "tent-dataplane":
                yield int(pid)


@contextlib.contextmanager
def standing_still(match):
    """Workers that spin share the yardstick's CPUs, so they are stopped while it runs. Sleeping ones disturb nobody."""
    pids = list(data_planes()) if BUSY in match.lab else []
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        time.sleep(0.5 if pids else 0)


def run(name, cell, a):
    try:
        return CONTENDERS[name].run(cell, a)
    except (Failed, ValueError, KeyError, IndexError, subprocess.TimeoutExpired) as e:
        raise Failed(f"{name}: {e}") from e


def turn(match, cell, a):
    """One pair of runs."""
    ours, theirs = run(match.ours, cell, a), None
    if match.theirs:
        with standing_still(match):
            theirs = run(match.theirs, cell, a)
    return ours, theirs


def ratio(ours, theirs, field):
    """Above 1 = ours is better, whatever the metric."""
    x, y = (getattr(f, field) if f else None for f in (ours, theirs))
    if not x or not y:
        return float("nan")
    return y / x if field in ("p50_us", "cpu") else x / y


def meets(match, value):
    if match.bar is None:
        return None
    at_most = match.theirs is None and match.metric == "p50_us"
    return value <= match.bar if at_most else value >= match.bar


def middle(values):
    known = [v for v in values if v is not None]
    return statistics.median(known) if known else None


def play(match, cell, a):
    rounds = [turn(match, cell, a) for _ in range(a.rounds)]
    med = lambda side, field: middle(getattr(r[side], field) for r in rounds if r[side])
    ratios = sorted(ratio(*r, match.metric) for r in rounds)
    row = {"match": match.name, "ours": match.ours, "theirs": match.theirs, **cell._asdict(), "metric": match.metric,
           "bar": match.bar, "cpu_bar": match.cpu_bar, "ratio": statistics.median(ratios), "ratios": ratios,
           "cpu_ratio": statistics.median(ratio(*r, "cpu") for r in rounds),
           "ours_value": med(0, match.metric), "theirs_value": med(1, match.metric),
           "ours_cpu_s_per_gb": med(0, "cpu"), "theirs_cpu_s_per_gb": med(1, "cpu"),
           "others": max(f.others or 0 for r in rounds for f in r if f)}
    row["met"] = meets(match, row["ratio"] if match.theirs else row["ours_value"])
    row["cpu_met"] = None if match.cpu_bar is None else row["cpu_ratio"] >= match.cpu_bar
    print(text(row), flush=True)
    return row


def number(v, width, digits):
    return " " * (width - 1) + "-" if v is None or v != v else f"{v:{width}.{digits}f}"


def verdict(row):
    words = [f"{w} {number(b, 0, 2)}{what}" for w, b, what in (
        ({True: "meets", False: "MISSES"}.get(row["met"]), row["bar"], ""),
        ({True: "meets", False: "MISSES"}.get(row["cpu_met"]), row["cpu_bar"], " CPU")) if w]
    return ", ".join(words) or "for information"


def text(row):
    digits = 0 if row["metric"] == "ops" else 2
    spread = f"[{row['ratios'][0]:.2f}..{row['ratios'][-1]:.2f}]" if row["theirs"] else ""
    noise = f"  (others used up to {row['others']:.1f} CPUs)" if row["others"] >= 0.1 else ""
    return (f"{row['ours']:15} {row['theirs'] or '-':12} {row['op']:5} {row['bytes'] >> 10:6}K d{row['depth']:<2} "
            f"{'cold' if row['pool'] >= COLD else 'hot':4} {UNITS[row['metric']]:4} "
            f"{number(row['ours_value'], 9, digits)} {number(row['theirs_value'], 9, digits)} "
            f"{number(row['ratio'], 6, 2)} {spread:14} {number(row['ours_cpu_s_per_gb'], 8, 3)} "
            f"{number(row['theirs_cpu_s_per_gb'], 8, 3)} {number(row['cpu_ratio'], 6, 2)}  {verdict(row)}{noise}")


def cubic():
    """Programs that do not choose a congestion control get it from the route: cubic for all. The default of a namespace
    can only be set to what the machine allows to everybody."""
    for to in ("127.0.0.0/8", "127.0.0.1"):
        r = subprocess.run(["ip", "route", "replace", "local", to, "dev", "lo", "proto", "kernel", "scope", "host", "src",
                            "127.0.0.1", "table", "local", "congctl", "cubic"], capture_output=True, text=True, check=False)
        if r.returncode != 0:
            print(f"perf/compare.sh: the yardsticks keep the machine's congestion control: {r.stderr.strip()}",
                  file=sys.stderr)
            return


def arguments():
    p = argparse.ArgumentParser(prog="perf/compare.sh", description=__doc__.split("\n\n", maxsplit=1)[0],
                                formatter_class=argparse.RawDescriptionHelpFormatter,
                                epilog="\n".join(f"  {m.name:14} {m.lab}" for m in MATCHES))
    p.add_argument("matches", nargs="*", metavar="MATCH",
                   help="rows of the list below, which shows the options of the lab that each is meant for [those "
                        "without any]")
    p.add_argument("--rounds", type=int, default=5, help="pairs of runs per cell [5]")
    p.add_argument("--ms", type=int, default=500, help="measured time of each run [500]")
    p.add_argument("--seed", type=int, default=1, help="order of blocks [1]")
    p.add_argument("--json", metavar="FILE", help="write all figures there")
    a = p.parse_args()
    unknown = set(a.matches) - {m.name for m in MATCHES}
    if unknown or a.rounds < 1 or a.ms < 1:
        p.error(f"no such match: {', '.join(unknown)}" if unknown else "--rounds and --ms must be positive")
    return a


def main():
    a = arguments()
    cubic()
    print(f"{'ours':15} {'theirs':12} {'op':5} {'size':>7} {'':3} {'pool':4} {'unit':4} {'ours':>9} {'theirs':>9} "
          f"{'ratio':>6} {'':14} {'CPUs/GB':>8} {'theirs':>8} {'ratio':>6}  bar (ratios above 1: tent is better)")
    rows, absent, failed = [], [], []
    for m in MATCHES:
        if m.name not in a.matches if a.matches else m.lab:
            continue
        missing = sorted({CONTENDERS[n].program for n in (m.ours, m.theirs) if n and
                          not shutil.which(CONTENDERS[n].program)})
        if missing:
            print(f"{m.name}: left out: {', '.join(missing)} is not here (deploy/packages.sh perf)")
            absent.append(m.name)
            continue
        for c in m.cells:
            try:
                rows.append(play(m, c, a))
            except Failed as e:  # this cell only: the others still count
                print(f"perf/compare.sh: {m.name} {c.op}: {e}", file=sys.stderr)
                failed.append(f"{m.name} {c.op} {c.bytes >> 10} KiB depth {c.depth} pool {c.pool >> 20} MiB")
    if a.json:
        with open(a.json, "w", encoding="utf-8") as f:
            json.dump({"schema_version": 2, "rounds": a.rounds, "ms": a.ms, "seed": a.seed, "left_out": absent, "failed": failed,
                       "rows": rows}, f, indent=1)
            f.write("\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
