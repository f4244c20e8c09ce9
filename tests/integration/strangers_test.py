#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who has no right here, in any number and however it behaves: refused, counted, and nobody else notices. The daemons
run with a small limit of descriptors, so that what is not bounded shows at once."""
import os
import subprocess
import sys

from pair import BIN, METRICS, World, run, wait_for

STRANGER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "stranger.py")
FILES = 1024


def world():
    w = World(start=False)
    for h in w.hosts:
        for which in ("controlplane", "dataplane"):
            h.start(which, files=FILES)
    return w


def come(w, mode, where, count):
    """A crowd of strangers that has arrived."""
    p = w.spawn(f"stranger-{mode}-{len(w.others)}", [sys.executable, "-B", STRANGER, mode, str(where), str(count)])
    wait_for("the strangers come", lambda: "held" in p.text() or not p.alive())
    assert p.alive(), p.text()
    return p


def go(p):
    assert p.alive(), p.text()
    p.kill()


def files_open(h, process):
    return h.metric("process_open_fds", process=process)


def refused(h, **labels):
    return h.metric("tent_connections_refused_total", **labels) or 0


def everything_works(w):
    """Both hosts answer their people; a peer's control plane that comes anew gets in beside the strangers."""
    for h in w.hosts:
        for p in h.procs.values():
            assert p.alive(), p.text()[-2000:]
        wait_for("tentctl is answered", lambda: h.tentctl("status").returncode == 0)
        wait_for("/metrics is answered", lambda: h.http("/metrics")[0] == 200)
    if METRICS:
        # asked again when this question meets the crowd at the HTTP port
        few = wait_for("/metrics is answered", lambda: files_open(w.b, "controlplane"))
        assert few < FILES // 2, few


def moves(w, seed):
    s = w.finish_move(w.move(w.a, "b/other", 1, "-s", str(seed)))
    assert s["failed"] == 0, s


def control_port():
    with world() as w:
        w.serve(w.b, "kv", 16 << 20)
        w.serve(w.b, "other", 1 << 20)
        load = w.load(w.a, "b/kv", "-q", "1000", "-s", "3")
        for i, mode in enumerate(("silent", "churn", "half", "drip", "noise", "huge", "null")):
            before = refused(w.b, door="control")
            p = come(w, mode, w.b.control_port, 1500)
            everything_works(w)
            if mode in ("silent", "null"):
                w.a.procs["controlplane"].kill()
                w.a.start("controlplane", files=FILES)
                w.a.wait_ready()
            moves(w, 10 + i)  # asks b for the segment, over a connection that may have come after the strangers
            assert not METRICS or refused(w.b, door="control") > before + 100, (mode, before, refused(w.b, door="control"))
            go(p)
        s = w.finish_move(load)
        assert s["failed"] == 0, s
        log = w.b.procs["controlplane"].text()
        lines = log.count("control/bind: closed unheard")
        assert 0 < lines < 30, lines
        for h in w.hosts:
            h.verify()


def data_port():
    with world() as w:
        w.serve(w.b, "kv", 16 << 20)
        w.serve(w.b, "other", 1 << 20)
        load = w.load(w.a, "b/kv", "-q", "1000", "-s", "3")
        for i, (mode, why) in enumerate((("silent", "crowded"), ("hello", "stranger"), ("drip", "crowded"), ("churn", None))):
            before = lane_refusals(w, why)
            p = come(w, mode, w.b.data_port, 1500)
            everything_works(w)
            moves(w, 20 + i)
            if METRICS and why:
                wait_for(f"{mode} is counted as {why}", lambda: lane_refusals(w, why) > before + 100)
            assert not METRICS or files_open(w.b, "dataplane") < FILES // 2, files_open(w.b, "dataplane")
            go(p)
        assert w.finish_move(load)["failed"] == 0
        assert "transports/tcp/port: closed unheard" in w.b.procs["dataplane"].text()


def lane_refusals(w, why):
    return w.b.metric("tent_dataplane_connections_refused_total", door="lane", reason=why) or 0


def local_doors():
    """A crowd of this host's own user at each socket of the runtime directory, and at the HTTP port."""
    with world() as w:
        w.serve(w.b, "kv", 16 << 20)
        load = w.load(w.a, "b/kv", "-q", "1000", "-s", "3")
        with open(os.path.join(w.b.run, "http.port"), encoding="ascii") as f:
            http_port = f.read().strip().rsplit(":", 1)[1]
        doors = ((os.path.join(w.b.run, "bus.ipc"), "bus"), (os.path.join(w.b.run, "link.ipc"), "link"), (http_port, "http"))
        for where, door in doors:
            p = come(w, "silent", where, 700)
            everything_works(w)
            if METRICS:
                wait_for(f"the crowd at {door} is counted", lambda: refused(w.b, door=door, reason="crowded") > 20)
            go(p)
        p = come(w, "silent", os.path.join(w.b.run, "attach.sock"), 700)
        everything_works(w)
        w.serve(w.b, "own", 1 << 20)  # two more applications come in beside the crowd
        assert w.finish_move(w.move(w.b, "own", 1, "-s", "4"))["failed"] == 0
        if METRICS:
            wait_for("the crowd at attach.sock is counted", lambda: (w.b.metric(
                "tent_dataplane_connections_refused_total", door="attach", reason="crowded") or 0) > 100)
        go(p)
        assert w.finish_move(load)["failed"] == 0


def other_user():
    """Another user of this host gets nowhere, and is told that it is about permission."""
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]
    with world() as w:
        if subprocess.run([*nobody, "true"], capture_output=True, timeout=20).returncode != 0:
            print("cannot become another user here")
            sys.exit(77)
        os.chmod(w.dir, 0o755)
        os.chmod(w.b.dir, 0o755)  # what keeps them out is the runtime directory, and what the kernel says of the caller
        for args in ([BIN["mover"], "serve", "x", "4096", "-r", w.b.run], [BIN["tentctl"], "-r", w.b.run, "status"]):
            r = subprocess.run([*nobody, *args], capture_output=True, text=True, timeout=30)
            assert r.returncode != 0 and ("ermission" in r.stderr or "another user" in r.stderr), (args, r.returncode, r.stdout, r.stderr)
        everything_works(w)


run({
    "data_port": data_port,
    "local_doors": local_doors,
    "other_user": other_user,
    "control_port": control_port,
})
