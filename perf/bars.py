#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures every speed bar and says which are met. Starts each lab that the matches of compare.py are meant for, then the
idle daemons, then the sweeps for the plots. Takes about a quarter of an hour; meant for a quiet machine.

  perf/bars.sh [--out DIR] [--rounds N] [--ms N] [--rt]      figures, sweeps, bars.txt, sweep.svg and .png land in DIR"""
import argparse
import contextlib
import json
import os
import re
import shutil
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from compare import BOTH_BUSY, MATCHES, UNITS, number  # noqa: E402 (its folder is known only now)

IDLE_PCT = 1.0
LAB_SECONDS = 1200  # the longest that one lab may take
# What an urgent small request meets: the load, and over each transport the piece that is not interrupted.
BACKGROUND = "low:64M:4"
BESIDE = (("own", "shm", 256 << 10), ("b/kv", "tcp", 1 << 20))
SWEEP = "-s 4K..64M -d 8 -o write,read -T 300ms -S 1"


def lab(a, options, *command):
    """(exit status, output), which is shown as it comes."""
    rt = ["--rt"] if a.rt and options != BOTH_BUSY else []  # the lab refuses: nothing else would run
    out = []
    with subprocess.Popen(["timeout", str(LAB_SECONDS), os.path.join(HERE, "lab.sh"), *rt, *options.split(), *command],
                          cwd=a.out, stdout=subprocess.PIPE, text=True) as p:
        for line in p.stdout:
            out.append(line)
            print(line, end="", flush=True)
    return p.returncode, "".join(out)


def matches(a):
    """All bars of compare.py: [(text, met)]."""
    bars = []
    for n, options in enumerate(dict.fromkeys(m.lab for m in MATCHES)):
        names = [m.name for m in MATCHES if m.lab == options]
        print(f"---- {options or 'adaptive workers'}: {', '.join(names)}", flush=True)
        file = os.path.join(a.out, f"compare{n}.json")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(file)
        status, _ = lab(a, options, sys.executable, "-B", os.path.join(HERE, "compare.py"), "--rounds", str(a.rounds), "--ms",
                str(a.ms), "--json", file, *names)
        if not os.path.exists(file):
            bars.append((f"{', '.join(names)}: did not run to the end (exit {status})", False))
            continue
        with open(file, encoding="utf-8") as f:
            doc = json.load(f)
        bars += [(f"{name}: left out: its yardstick is not installed (deploy/packages.sh perf)", False)
                 for name in doc["left_out"] if any(m.name == name and m.bar is not None for m in MATCHES)]
        bars += [(f"{cell}: did not run to the end", False) for cell in doc["failed"]]
        for row in doc["rows"]:
            bars += judge(row)
    return bars


def judge(row):
    what = (f"{row['match']:13} {row['op']:5} {row['bytes'] >> 10:5} KiB depth {row['depth']:<2} "
            f"pool {row['pool'] >> 20:3} MiB")
    out = []
    if row["met"] is not None and row["theirs"]:
        out.append((f"{what}  {UNITS[row['metric']]} ratio {row['ratio']:.2f}, bar {row['bar']:.2f} "
                    f"[{row['ratios'][0]:.2f}..{row['ratios'][-1]:.2f}] against {row['theirs']}", row["met"]))
    elif row["met"] is not None:
        out.append((f"{what}  {number(row['ours_value'], 0, 2)} {UNITS[row['metric']]}, bar {row['bar']:g}", row["met"]))
    if row["cpu_met"] is not None:
        out.append((f"{what}  CPU per GB ratio {row['cpu_ratio']:.2f}, bar {row['cpu_bar']:.2f} against {row['theirs']}",
                    row["cpu_met"]))
    return out


def idle(a):
    print("---- idle daemons", flush=True)
    _, out = lab(a, "", sys.executable, "-B", os.path.join(HERE, "idle.py"), "5")
    found = re.findall(r"^(tent-\S+)\s+\d+\s+([0-9.]+) %", out, re.M)
    if len(found) < 4:
        return [("idle daemons: not measured", False)]
    return [(f"idle {name}: {pct} % of a core, bar {IDLE_PCT:g}", float(pct) < IDLE_PCT) for name, pct in found]


def run_beside(a, ref, transport, background):
    """(p99 in us, GB/s of the background) of urgent 4 KiB WRITEs; None: it did not run to the end."""
    file = os.path.join(a.out, "beside.json")
    # Under --rt its application stands above the workers, which bulk keeps busy: else the time would be that of waiting for a CPU.
    first = "chrt -r 3 " if a.rt else ""
    command = f"{first}tentbench run {ref} -t {transport} -s 4K -d 1 -o write -p hot -y high -T {a.ms}ms -S 1 --json {file}"
    status, _ = lab(a, "", *command.split(), *(["--background", background] if background else []))
    if status != 0:
        return None
    with open(file, encoding="utf-8") as f:
        cell = json.load(f)["cells"][0]
    return cell["latency_us"]["p99"], cell.get("background_gb_per_s", 0)


def beside(a):
    """An urgent small request waits for one slice of what else runs, not for all of it."""
    bars = []
    for ref, transport, slice_bytes in BESIDE:
        print(f"---- 4 KiB beside {BACKGROUND} over {transport}", flush=True)
        rounds = [(run_beside(a, ref, transport, None), run_beside(a, ref, transport, BACKGROUND)) for _ in range(a.rounds)]
        if any(x is None for r in rounds for x in r):
            bars.append((f"4 KiB beside {BACKGROUND} over {transport}: did not run to the end", False))
            continue
        alone, loaded = (statistics.median(r[i][0] for r in rounds) for i in (0, 1))
        gbps = statistics.median(r[1][1] for r in rounds)
        piece = slice_bytes / gbps / 1000
        bars.append((f"4 KiB, high, over {transport} beside {BACKGROUND} ({gbps:.1f} GB/s): p99 {loaded:.0f} us; alone {alone:.0f} us, "
                     f"one slice {piece:.0f} us, bar twice the first and the slice: {2 * alone + piece:.0f} us",
                     loaded <= 2 * alone + piece))
    return bars


def sweeps(a):
    print("---- sweeps for the plots", flush=True)
    runs = (("shm", f"tentbench run own -t shm {SWEEP}"), ("tcp", f"tentbench run b/kv -t tcp {SWEEP}"),
            ("memcpy", f"memcpy_loop {SWEEP.replace('-d 8 ', '')}"), ("loop", f"tcp_loop {SWEEP}"))
    status, _ = lab(a, "", "sh", "-ec", "; ".join(f"{command} --json {name}.json" for name, command in runs))
    files = [f"{name}.json" for name, _ in runs if os.path.exists(os.path.join(a.out, f"{name}.json"))]
    plot = subprocess.run([sys.executable, "-B", os.path.join(HERE, "plot.py"), "sweep.svg", *files], cwd=a.out, check=False)
    if shutil.which("rsvg-convert") and plot.returncode == 0:
        subprocess.run(["rsvg-convert", "-o", "sweep.png", "sweep.svg"], cwd=a.out, check=False)
    return status == 0 and plot.returncode == 0


def main():
    p = argparse.ArgumentParser(prog="perf/bars.sh", description=__doc__.split("\n\n", maxsplit=1)[0])
    p.add_argument("--out", default="bars", metavar="DIR", help="where figures and plots go [bars]")
    p.add_argument("--rounds", type=int, default=5, help="pairs of runs per cell [5]")
    p.add_argument("--ms", type=int, default=500, help="measured time of each run [500]")
    p.add_argument("--rt", action="store_true", help="with SCHED_RR: for machines that are shared (root)")
    p.add_argument("--no-sweeps", action="store_true", help="bars only")
    p.add_argument("--only-beside", action="store_true", help="only what small requests meet beside large ones")
    a = p.parse_args()
    a.out = os.path.abspath(a.out)
    os.makedirs(a.out, exist_ok=True)
    bars = ([] if a.only_beside else matches(a) + idle(a)) + beside(a)
    drawn = a.no_sweeps or a.only_beside or sweeps(a)
    lines = [f"{'pass' if met else 'FAIL'}  {text}" for text, met in bars]
    missed = sum(not met for _, met in bars)
    lines.append(f"{len(bars) - missed} of {len(bars)} bars met" + ("" if drawn else "; the sweeps failed"))
    with open(os.path.join(a.out, "bars.txt"), "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")
    print("\n".join(["----", *lines, f"in {a.out}"]))
    return 0 if missed == 0 and drawn else 1


if __name__ == "__main__":
    sys.exit(main())
