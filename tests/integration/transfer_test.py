#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two hosts move verified bytes, and everything that should be seen of it is seen."""
import hashlib
import os
import subprocess

from pair import BIN, BUILD, METRICS, SLOW, World, run, wait_for

WEIGHTS = os.path.join(BUILD, "tests/integration/weights")
FORGER = os.path.join(BUILD, "tests/integration/forger")


def tentctl(host):
    return [BIN["tentctl"], "-c", host.config]


def file_round_trip():
    with World() as w:
        source, back = os.path.join(w.dir, "source"), os.path.join(w.dir, "back")
        data = os.urandom(5_000_003)  # no multiple of anything
        with open(source, "wb") as f:
            f.write(data)
        pub = w.spawn("publish", [*tentctl(w.b), "segment", "publish", "model", "--size", "8MiB"])
        wait_for("published", lambda: w.b.tentctl_json("segment", "list")["total"] == 1)
        put = w.a.tentctl_json("put", source, "b/model")
        assert put["sha256"] == hashlib.sha256(data).hexdigest(), put
        assert put["transport"] == "tcp", put
        get = w.a.tentctl_json("get", "b/model", back)
        assert get["sha256"] == put["sha256"]
        with open(back, "rb") as f:
            assert f.read() == data
        # the same segment from its own host goes through shared memory
        local = w.b.tentctl_json("get", "model", back)
        assert local["transport"] == "shm" and local["sha256"] == put["sha256"], local
        assert not METRICS or w.a.metric("tent_write_bytes_total", transport="tcp") >= len(data)
        assert w.a.idle()
        for h in w.hosts:
            h.verify()
        pub.stop()
        wait_for("withdrawn", lambda: w.b.tentctl_json("segment", "list")["total"] == 0)
        r = w.a.tentctl("get", "b/model", back)
        assert r.returncode == 1 and "model" in r.stderr, r.stderr


def sweep():
    """Every odd size and depth, one after the other, over both transports."""
    with World() as w:
        w.serve(w.b, "kv", 32 << 20)
        w.serve(w.a, "own", 32 << 20)
        for ref, kind in (("b/kv", "tcp"), ("own", "shm")):
            for block, depth in ((8, 8), (4096, 64), (65544, 16), (1 << 20, 8), ((1 << 20) + 8, 8), (3 << 20, 8)):
                s = w.finish_move(w.move(w.a, ref, 0.3, "-b", str(block), "-d", str(depth), "-s", str(block)))
                assert set(s["transport"]) == {kind} and s["failed"] == 0, s


def sealed_weights():
    """What was written once and sealed is loaded over both transports, pushed from, and written by nobody."""
    with World() as w:
        w.serve(w.a, "own", 16 << 20)
        w.serve(w.b, "kv", 16 << 20)
        for kind in ("write", "future", "reader"):
            p = w.spawn(f"weights-{kind}", [WEIGHTS, "serve", w.a.run, kind, kind, "own", "b/kv"])
            wait_for("published", lambda p=p: "READY" in p.text() or not p.alive(), 60)
            assert p.alive() and "over shm" in p.text() and "over tcp" in p.text(), p.text()
            for host, ref, transport in ((w.a, kind, "shm"), (w.b, f"a/{kind}", "tcp")):
                r = subprocess.run([WEIGHTS, "load", host.run, ref], capture_output=True, text=True, timeout=60 * SLOW)
                assert r.returncode == 0 and f"over {transport}" in r.stdout, r.stdout + r.stderr
                r = subprocess.run([FORGER, host.run, "write", ref], capture_output=True, text=True, timeout=60 * SLOW)
                assert r.returncode == 0, r.stdout + r.stderr
            assert p.stop() == 0, p.text()
            print(p.text())
        for h in w.hosts:
            h.verify()


run({"file_round_trip": file_round_trip, "sweep": sweep, "sealed_weights": sealed_weights})
