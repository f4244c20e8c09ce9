#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two pairs of daemons for measurements: starts them pinned as ARCHITECTURE.md says (worker of host a on the first CPU,
of host b on the last, everything else not pinned), serves a pool on each host, runs one command, takes all down.
Called by perf/lab.sh, which makes the network namespace."""
import argparse
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


# --rt: nobody of the lab waits behind the rest of the machine. Workers stand above everything else of the lab: of two
# equals on one CPU the one that is woken waits for the other's whole time slice (100 ms), or until it sleeps. Workers that
# never sleep stay equal: above the others they would let nobody run.
RT_COMMAND, RT_WORKER = 1, 2


def raise_workers(daemon):
    """The pinned threads of a data plane; the others stay where the command is."""
    for task in os.listdir(f"/proc/{daemon.pid}/task"):
        with open(f"/proc/{daemon.pid}/task/{task}/comm", encoding="ascii") as f:
            if f.read().startswith("tent-w"):
                os.sched_setscheduler(int(task), os.SCHED_RR, os.sched_param(RT_WORKER))


def arguments():
    p = argparse.ArgumentParser(
        prog="perf/lab.sh", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Run COMMAND between two pairs of daemons on loopback, in a network namespace of its own.",
        epilog="The command finds: segments b/kv (other host: tcp) and own (this host: shm); TENT_RUNTIME_DIR of host\n"
               "a; TENT_LAB_A, TENT_LAB_B = the runtime directories; TENTBENCH_PIDS = daemons and the two serving\n"
               "applications (tentbench charges their CPU time); tentbench, memcpy_loop, tcp_loop, tentctl in PATH.\n\n"
               "  perf/lab.sh tentbench run b/kv --size 4K..64M --depth 8 --json tcp.json\n"
               "  perf/lab.sh --set poll/mode=busy tentbench run own --size 4K --depth 1 --busy --cpu 1")
    p.add_argument("--build", default=os.environ.get("TENT_BUILD", os.path.join(ROOT, "build/release")),
                   help="build folder [build/release]")
    p.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="configuration of both hosts")
    p.add_argument("--set-a", action="append", default=[], metavar="KEY=VALUE", help="of host a only")
    p.add_argument("--set-b", action="append", default=[], metavar="KEY=VALUE", help="of host b only")
    p.add_argument("--serve", default="512MiB", metavar="BYTES", help="size of each served pool [512MiB]")
    p.add_argument("--hugetlb", action="store_true", help="served pools on huge pages")
    p.add_argument("--unpinned", action="store_true", help="leave the workers unpinned")
    p.add_argument("--rt", action="store_true", help="run all of it with SCHED_RR: for machines that are shared (root)")
    p.add_argument("--logs", action="store_true", help="print the daemons' logs at the end")
    p.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND ...")
    a = p.parse_args()
    if not a.command:
        p.error("no command given")
    return a


def settings(items):
    """KEY=VALUE; the value is JSON when it can be read as such, else a text."""
    out = {}
    for item in items:
        key, sep, value = item.partition("=")
        if not sep:
            sys.exit(f"perf/lab.sh: --set {item}: KEY=VALUE is needed")
        try:
            out[key] = json.loads(value)
        except ValueError:
            out[key] = value
    return out


def main():
    a = arguments()
    missing = [b for b in ("dataplane/tent-dataplane", "controlplane/tent-controlplane", "controlplane/tentctl/tentctl",
                           "perf/tentbench") if not os.access(os.path.join(a.build, b), os.X_OK)]
    if missing:
        sys.exit(f"perf/lab.sh: {a.build} has no {', '.join(missing)}: cmake --preset release && "
                 "cmake --build build/release")
    os.environ["TENT_TEST_BUILD"] = a.build
    sys.path.insert(0, os.path.join(ROOT, "tests/integration"))
    from pair import World, wait_for

    if a.rt:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(RT_COMMAND))
    cpus = sorted(os.sched_getaffinity(0))
    both, own = settings(a.set), (settings(a.set_a), settings(a.set_b))
    with World(start=False) as w:
        busy = {h: {**both, **only}.get("poll/mode") == "busy" for h, only in zip(w.hosts, own)}
        if a.rt and all(busy.values()):
            sys.exit("perf/lab.sh: --rt with spinning workers on both hosts: nothing else would run. Leave --rt out, or make "
                     "one host busy only (--set-a)")
        for host, cpu, only in zip(w.hosts, (cpus[0], cpus[-1]), own):
            config = {"log/level": "info", "workers/count": 1, **({} if a.unpinned else {"workers/cpus": [cpu]})}
            host.write_config([p for p in w.hosts if p is not host], {**config, **both, **only})
            host.start_both()
        for host in w.hosts:
            host.wait_ready()
            if a.rt and not busy[host]:
                raise_workers(host.procs["dataplane"])
        served = []
        for host, name in ((w.b, "kv"), (w.a, "own")):
            args = [os.path.join(a.build, "perf/tentbench"), "serve", name, a.serve, "-r", host.run]
            p = w.spawn(f"serve-{name}", args + (["--hugetlb"] if a.hugetlb else []))
            wait_for(f"{name} served", lambda p=p: "READY" in p.text() or not p.alive(), 60)
            if not p.alive():
                sys.exit(f"perf/lab.sh: {p.text()}")
            served.append(p)
        watched = [*served, *(p for h in w.hosts for p in h.procs.values())]
        env = {**os.environ, "TENT_RUNTIME_DIR": w.a.run, "TENT_LAB_A": w.a.run, "TENT_LAB_B": w.b.run,
               "TENTBENCH_PIDS": ",".join(str(p.pid) for p in watched),
               "PATH": os.pathsep.join([os.path.join(a.build, "perf"), os.path.join(a.build, "controlplane/tentctl"),
                                        os.environ["PATH"]])}
        rc = subprocess.run(a.command, env=env, check=False).returncode
        dead = [p.args[0] for p in watched if not p.alive()]
        if dead:
            print(f"perf/lab.sh: ended meanwhile: {', '.join(dead)}", file=sys.stderr)
        if a.logs or dead:
            for h in w.hosts:
                for which, p in h.procs.items():
                    print(f"---- {h.name} {which}\n{p.text()}", file=sys.stderr)
        for p in served:
            p.stop()
        for h in w.hosts:
            h.stop()
    return rc if rc != 0 or not dead else 1


if __name__ == "__main__":
    sys.exit(main())
