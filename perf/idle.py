#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What idle daemons cost: CPU time per process over some seconds in which nobody asks anything of them.

  perf/lab.sh python3 perf/idle.py [SECONDS]"""
import os
import sys
import time


def cpu_seconds(pid):
    """CLOCK of the process's CPU time, all threads: what clock_getcpuclockid(3) would return."""
    return time.clock_gettime((~pid << 3) | 2)


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
    pids = [int(p) for p in os.environ["TENTBENCH_PIDS"].split(",")]
    time.sleep(1.0)  # what starting left behind is over
    before, start = [cpu_seconds(p) for p in pids], time.monotonic()
    time.sleep(seconds)
    took = time.monotonic() - start
    for pid, b in zip(pids, before):
        with open(f"/proc/{pid}/comm", encoding="ascii") as f:
            print(f"{f.read().strip():16} {pid:8} {100 * (cpu_seconds(pid) - b) / took:7.3f} % of a core")


if __name__ == "__main__":
    main()
