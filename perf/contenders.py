# SPDX-License-Identifier: Apache-2.0
"""Who can be measured: how to run one cell, and how to read what it prints. A contender is a program and a function of
(cell, arguments) that returns Figures. Two processes of a pair stand on the first and on the last CPU, as tent's workers
do; congestion control is cubic for all (perf/compare.py sets it on the routes of the namespace)."""
import json
import os
import subprocess
import time
from collections import namedtuple

KIB, MIB = 1 << 10, 1 << 20
Cell = namedtuple("Cell", "op bytes depth pool")  # pool: bytes that both sides walk
# cpu: CPU seconds per GB of both ends; others: CPUs used by somebody else; None = not known
Figures = namedtuple("Figures", "gbps p50_us ops cpu others", defaults=(None,) * 5)
Contender = namedtuple("Contender", "program run")

FIRST, LAST = (f(os.sched_getaffinity(0)) for f in (min, max))
PORT = 23450


class Failed(RuntimeError):
    """A contender that did not do what it was asked."""


def output(argv, seconds, **kw):
    r = subprocess.run(argv, capture_output=True, text=True, timeout=seconds, check=False, **kw)
    if r.returncode != 0:
        raise Failed(f"{' '.join(argv)}: exit {r.returncode}\n{r.stdout[-500:]}{r.stderr[-1500:]}")
    return r.stdout


# ---- tentbench and the loops share options and output ----

def common(c, a):
    return ["--op", c.op, "--size", str(c.bytes), "--pool", str(c.pool), "--time", f"{a.ms}ms", "--seed", str(a.seed),
            "--json", "-"]


def read_cell(out, latency="latency_us"):
    cell = json.loads(out)["cells"][0]
    if not cell["ok"]:
        raise Failed(cell["error"])
    return Figures(cell["gb_per_s"], cell[latency]["p50"], cell["ops_per_s"], cell["cpu_s_per_gb"], cell["other_cpus"])


def ours(program, *options, latency="latency_us", depth=True):
    def run(c, a):
        extra = ["--depth", str(c.depth)] if depth else []
        return read_cell(output([program, *options, *extra, *common(c, a)], 60 + a.ms / 100), latency)
    return Contender(program, run)


# ---- programs that are a server and a client ----

def listening(port):
    with open("/proc/net/tcp", encoding="ascii") as v4, open("/proc/net/tcp6", encoding="ascii") as v6:
        return any(f":{port:04X} " in line and " 0A " in line for f in (v4, v6) for line in f)


def cpu_seconds(pid):
    return time.clock_gettime((~pid << 3) | 2)  # what clock_getcpuclockid(3) would return


def pair(server, client, port, **kw):
    """(what the client printed, CPUs that the server used while the client ran)."""
    with subprocess.Popen(["taskset", "-c", str(LAST), *server], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          **kw) as p:
        try:
            until = time.monotonic() + 10
            while not listening(port):
                if p.poll() is not None or time.monotonic() > until:
                    raise Failed(f"{' '.join(server)}: does not listen on port {port}")
                time.sleep(0.02)
            start, cpu = time.monotonic(), cpu_seconds(p.pid)
            with subprocess.Popen(["taskset", "-c", str(FIRST), *client], stdout=subprocess.PIPE, text=True,
                                  stderr=subprocess.STDOUT, **kw) as c:
                out, _ = c.communicate(timeout=60)
                used = (cpu_seconds(p.pid) - cpu) / (time.monotonic() - start)
            if c.returncode != 0:
                raise Failed(f"{' '.join(client)}: exit {c.returncode}\n{out[-1500:]}")
            return out, used
        finally:
            p.kill()


def ucx_test(test, c, n):
    """Numbers of the final line: median us, average us, overall us, average MiB/s, overall MiB/s, ..."""
    env = {**os.environ, "UCX_TLS": "tcp", "UCX_NET_DEVICES": "lo", "UCX_WARN_UNUSED_ENV_VARS": "n"}
    base = ["ucx_perftest", "-p", str(PORT)]
    out, used = pair(base, [*base, "127.0.0.1", "-t", test, "-s", str(c.bytes), "-n", str(n), "-w", str(n // 5 + 1),
                            *(["-O", str(c.depth)] if c.depth > 1 else []), "-f", "-v"], PORT, env=env)
    return [float(x) for x in out.strip().splitlines()[-1].split(",")[1:]], used


def ucx_best(c, a):
    """The best throughput and the lowest CPU cost of put, get and tag. Both ends spin, so the client's CPU time is taken
    to be the server's: the client's own contains its start."""
    best, cheapest = 0.0, float("inf")
    for test in ("ucp_put_bw", "ucp_get", "tag_bw"):
        v, used = ucx_test(test, c, max(200, int(a.ms * 2e6 / c.bytes)))
        gbps = v[4] * MIB / 1e9
        best, cheapest = max(best, gbps), min(cheapest, 2 * used / gbps)
    return Figures(gbps=best, cpu=cheapest)


def ucx_round_trip(c, a):
    v, _ = ucx_test("ucp_put_lat", c, max(2000, a.ms * 20))
    return Figures(p50_us=2 * v[0])  # it prints half of a round trip


def iperf3(c, a):
    out, _ = pair(["iperf3", "-s", "-1", "-p", str(PORT)],
                  ["iperf3", "-c", "127.0.0.1", "-p", str(PORT), "-C", "cubic", "-l", str(c.bytes), "-t",
                   str(max(1, round(a.ms / 1000))), "-J"], PORT)
    end = json.loads(out)["end"]
    gbps = end["sum_received"]["bits_per_second"] / 8e9
    busy = end["cpu_utilization_percent"]
    return Figures(gbps=gbps, cpu=(busy["host_total"] + busy["remote_total"]) / 100 / gbps)


def fi_pingpong(c, a):
    base = ["fi_pingpong", "-p", "tcp", "-e", "msg", "-S", str(c.bytes), "-I", str(max(200, int(a.ms * 1e6 / c.bytes)))]
    out, _ = pair([*base, "-B", str(PORT)], [*base, "-P", str(PORT), "127.0.0.1"], PORT)
    one_way_us = float(out.strip().splitlines()[-1].split()[6])
    return Figures(gbps=c.bytes / one_way_us / 1e3, p50_us=2 * one_way_us)


CONTENDERS = {
    "tent shm": ours("tentbench", "run", "own", "--transport", "shm"),
    "tent shm busy": ours("tentbench", "run", "own", "--transport", "shm", "--busy", "--cpu", str(LAST)),
    "tent tcp": ours("tentbench", "run", "b/kv", "--transport", "tcp"),
    # from taking the request off its queue to its terminal state: without the application's two wake-ups
    "tent tcp inside": ours("tentbench", "run", "b/kv", "--transport", "tcp", latency="daemon_latency_us"),
    "memcpy_loop": ours("memcpy_loop", "--cpu", str(FIRST), depth=False),
    "tcp_loop": ours("tcp_loop", "--cpu", f"{FIRST},{LAST}"),
    "ucx best": Contender("ucx_perftest", ucx_best),
    "ucx put_lat": Contender("ucx_perftest", ucx_round_trip),
    "iperf3": Contender("iperf3", iperf3),
    "fi_pingpong": Contender("fi_pingpong", fi_pingpong),
}
