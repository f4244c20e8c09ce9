#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many applications, many peers, many segments: all of it works, costs what the docs bound, and is given back when they
leave. Times are only compared with each other: the last of many is not much slower than the first."""
import json
import os
import select
import subprocess
import time

from pair import BUILD, METRICS, SLOW, World, run, wait_for

MIB = 1 << 20


class Talker:
    """A child that answers each line with one line of JSON."""

    def __init__(self, world, *args):
        self.args = args
        self.log = os.path.join(world.dir, f"talker-{len(world.others)}-{id(self)}.log")
        with open(self.log, "ab") as err:
            self.p = subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=err)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.p.kill()
        self.p.communicate()

    def answer(self, seconds=120):
        end, got = time.monotonic() + seconds * SLOW, b""
        while not got.endswith(b"\n"):
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.p.stdout], [], [], left)[0]:
                raise AssertionError(f"no answer within {seconds} s: {self.args}\n{self.errors()}")
            chunk = os.read(self.p.stdout.fileno(), 65536)
            assert chunk, f"ended: {self.args}: {self.p.wait()}\n{self.errors()}"
            got += chunk
        return json.loads(got)

    def ask(self, line, ok=None, seconds=120):
        self.p.stdin.write(line.encode() + b"\n")
        self.p.stdin.flush()
        a = self.answer(seconds)
        assert a["failed"] == 0 and (ok is None or a["ok"] == ok), f"{line}: {a}\n{self.errors()}"
        return a

    def errors(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read()[-2000:]


def crowd(w, host):
    return Talker(w, os.path.join(BUILD, "tests/integration/crowd"), host.run)


def resources(*procs):
    """What each process holds: {"fds": n, "mib": resident}."""
    out = []
    for p in procs:
        with open(f"/proc/{p.pid}/status", encoding="ascii") as f:
            rss = next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))
        out.append({"fds": len(os.listdir(f"/proc/{p.pid}/fd")), "mib": rss / 1024})
    return out


def daemons(host):
    return host.procs["dataplane"], host.procs["controlplane"]


def back_to(base, *procs, mib, fds=4):
    """Descriptors come back, memory stays within `mib` of what it was: pools and tables that were once used stay."""
    def given_back():
        return all(n["fds"] <= b["fds"] + fds for b, n in zip(base, resources(*procs)))
    try:
        wait_for("descriptors", given_back, 30)
    except AssertionError as e:
        raise AssertionError(f"descriptors are kept: {base} -> {resources(*procs)}") from e
    now = resources(*procs)
    assert all(n["mib"] <= b["mib"] + mib * SLOW for b, n in zip(base, now)), f"memory grows: {base} -> {now}"


def flat(first, last, what):
    """p50 of the last of many against the first: generous, for what grows with the number."""
    assert last["p50_us"] <= 8 * first["p50_us"] + 2000 * SLOW, f"{what}: {first} -> {last}"


def clients():
    """64 applications with 4 queue pairs each; they leave, and come once more: nothing was kept of the first time."""
    with World() as w, crowd(w, w.a) as owner, crowd(w, w.a) as app:
        owner.ask("attach 1 1", 1)
        owner.ask("publish s 0 64", 64)
        base = None
        for _ in range(3):
            first = app.ask("attach 8 4", 8)
            app.ask("attach 48 4", 48)
            flat(first, app.ask("attach 8 4", 8), "attach")
            app.ask("keep s 64", 64)
            app.ask("read 3", 64 * 4 * 3)
            full = resources(*daemons(w.a))[0]
            assert full["fds"] < 64 * 24, full
            app.ask("leave 64", 64)
            if base is None:
                wait_for("idle", w.a.idle)
                time.sleep(0.5)
                base = resources(*daemons(w.a))
        back_to(base, *daemons(w.a), mib=8)
        if METRICS:
            w.a.verify()


def comers_and_goers():
    """1 000 times attach, publish, open, READ, leave; 50 that die in the middle of it."""
    with World() as w, crowd(w, w.b) as owner, crowd(w, w.a) as app:
        owner.ask("attach 1 1", 1)
        owner.ask("publish kv 0 1", 1)
        first = app.ask("cycle 100 b/kv0", 100)
        app.ask("die 10 b/kv0", 10)
        wait_for("idle", w.a.idle)
        time.sleep(0.5)
        hosts = [*daemons(w.a), *daemons(w.b)]
        base = resources(*hosts)
        app.ask("cycle 800 b/kv0", 800, seconds=170)
        app.ask("die 40 b/kv0", 40)
        flat(first, app.ask("cycle 100 b/kv0", 100), "a visit")
        back_to(base, *hosts, mib=8)
        for h in w.hosts:
            h.verify()


def segments():
    """10 000 segments of another host: published, found and read, and none is slower to find for the others."""
    with World() as w, crowd(w, w.b) as owner, crowd(w, w.a) as app:
        hosts = [*daemons(w.a), *daemons(w.b)]
        base = None
        for _ in range(2):
            owner.ask("attach 8 1", 8)
            app.ask("attach 8 1", 8)
            owner.ask("publish n 0 200", 200)
            few_found = app.ask("find b/n 200 200", 200)
            few = owner.ask("publish n 200 200", 200)
            owner.ask("publish n 400 9400", 9400, seconds=170)
            flat(few, owner.ask("publish n 9800 200", 200), "publish")
            flat(few_found, app.ask("find b/n 200 10000", 200), "open")
            app.ask("keep b/n 64", 64)
            app.ask("read 1", 64)
            full = resources(*hosts)
            assert all(n["mib"] < 256 * SLOW for n in full), full
            app.ask("leave 8", 8)
            owner.ask("withdraw 10000", 10000, seconds=170)
            owner.ask("leave 8", 8)
            wait_for("idle", w.b.idle)
            if base is None:
                time.sleep(0.5)
                base = resources(*hosts)
        back_to(base, *hosts, mib=16)


def peers():
    """200 peers: each is asked and read from, then all of them open lanes into us, and drop them."""
    count = 200
    with World(start=False) as w, Talker(w, os.path.join(BUILD, "tests/integration/standin"), str(count)) as others:
        listed = others.answer()
        w.a.write_config([], {"peers": listed, "log/level": "info"})
        w.a.start_both()
        w.a.wait_ready(60)
        with crowd(w, w.a) as app:
            app.ask("attach 4 1", 4)
            app.ask("publish own 0 1", 1)
            app.ask(f"hold {count}", count, seconds=170)
            app.ask("read 2", 2 * count)
            served = others.ask("counts")
            assert count <= served["served_lanes"] <= 4 * count, served
            base = resources(*daemons(w.a))
            for _ in range(2):
                others.ask(f"lanes tcp://127.0.0.1:{w.a.control_port} {w.a.public_key} {count} 2", seconds=170)
                others.ask("read own0", seconds=170)
                full = resources(*daemons(w.a))
                assert full[0]["fds"] <= base[0]["fds"] + 2 * count + 16, (base, full)
                others.ask("drop")
            back_to(base, *daemons(w.a), mib=24, fds=16)
            app.ask("read 1", count)
        w.a.verify()


run({"clients": clients, "comers_and_goers": comers_and_goers, "segments": segments, "peers": peers})
