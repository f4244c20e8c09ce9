#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What recording metrics and events costs a request: perf/engine_loop.c is built twice, with TENT_METRICS on and off, and
everything else the same. callgrind counts the instructions of both (the same in every run); pairs of plain runs, interleaved, show
the time, which is not judged.
  perf/record_cost.sh [--build DIR] [--pairs N] [--requests N] [--functions]
  --pairs 0     instructions only
  --functions   also what each function costs more with recording, depth 1
Exit 1 when a depth misses the bar. Needs deploy/packages.sh perf and test."""
import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile

BAR = 60  # instructions per request, contract section 1
DEPTHS = (1, 8, 32)
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
VARIANTS = ("on", "off")


def build(folder):
    """{variant: program}"""
    programs = {}
    for v in VARIANTS:
        where = os.path.join(folder, v)
        for step in (["cmake", "--preset", "release", "-S", SOURCE, "-B", where, f"-DTENT_METRICS={v.upper()}"],
                     ["cmake", "--build", where, "--target", "engine_loop"]):
            r = subprocess.run(step, cwd=SOURCE, capture_output=True, text=True)
            if r.returncode != 0:
                sys.exit(f"{' '.join(step)}:\n{r.stdout[-3000:]}{r.stderr[-3000:]}")
        programs[v] = os.path.join(where, "perf/engine_loop")
    return programs


def callgrind(program, requests, depth):
    """(instructions per request, {function: instructions per request of itself})"""
    with tempfile.TemporaryDirectory() as d:
        out = os.path.join(d, "out")
        subprocess.run(["valgrind", "--tool=callgrind", "--toggle-collect=engine_loop_measured*", f"--callgrind-out-file={out}",
                        program, str(requests), str(depth)], capture_output=True, text=True, check=True, timeout=600)
        with open(out, encoding="utf-8") as f:
            whole = int(re.search(r"^(?:summary|totals): (\d+)", f.read(), re.M)[1])
        table = subprocess.run(["callgrind_annotate", "--threshold=100", out], capture_output=True, text=True, check=True,
                               timeout=600).stdout
    own = {}
    for line in table.splitlines():
        m = re.match(r"\s*([\d,]+) \([^)]*\)\s+\S+?:(\S+)", line)
        if m:
            own[m[2]] = own.get(m[2], 0) + int(m[1].replace(",", "")) / requests
    return whole / requests, own


def pairs(programs, cnt, depth):
    """Nanoseconds per request of interleaved runs: [(on, off)]"""
    def run(v):
        r = subprocess.run([programs[v], str(1_000_000), str(depth)], capture_output=True, text=True, check=True, timeout=120)
        return float(r.stdout)
    return [(run("on"), run("off")) if i % 2 == 0 else tuple(reversed((run("off"), run("on")))) for i in range(cnt)]


def median_interval(values):
    """Of the median, by order statistics: covers it with at least 95 % (of 15 values: the 4th and the 12th)."""
    s = sorted(values)
    n, left, p, k = len(s), 0.025, 0.5 ** len(s), 0
    while p <= left:
        left -= p
        k += 1
        p = p * (n - k + 1) / k
    k = max(k - 1, 0)
    return s[k], s[n - 1 - k]


def times(measured):
    if not measured:
        return ""
    ratios = [x / y for x, y in measured]
    low, high = median_interval(ratios)
    return (f"{statistics.median(x for x, _ in measured):7.1f} {statistics.median(y for _, y in measured):7.1f}  "
            f"{statistics.median(ratios):.3f} ({low:.3f} to {high:.3f})")


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--build", default=os.path.join(SOURCE, "build/record_cost"))
    a.add_argument("--pairs", type=int, default=15)
    a.add_argument("--requests", type=int, default=32_000)
    a.add_argument("--functions", action="store_true")
    a = a.parse_args()
    programs = build(a.build)
    missed = False
    print("depth  instructions per request          bar  ns per request, medians of pairs")
    print("              on      off  difference           on     off  on/off (95 % of the median)")
    for depth in DEPTHS:
        (on, own_on), (off, own_off) = (callgrind(programs[v], a.requests, depth) for v in VARIANTS)
        good = on - off <= BAR
        missed |= not good
        print(f"{depth:5} {on:10.1f} {off:8.1f} {on - off:11.1f}  {'met' if good else 'MISSED':>6}", end="  ", flush=True)
        print(times(pairs(programs, a.pairs, depth)), flush=True)
        if a.functions and depth == DEPTHS[0]:
            more = {f: own_on.get(f, 0) - own_off.get(f, 0) for f in {*own_on, *own_off}}
            for f, n in sorted(more.items(), key=lambda x: -abs(x[1]))[:25]:
                print(f"      {n:+9.1f}  {f}")
    return 1 if missed else 0


sys.exit(main())
