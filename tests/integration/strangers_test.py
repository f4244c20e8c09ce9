#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who has no right here, in any number and however it behaves: refused, counted, and nobody else notices. The daemons
run with a small limit of descriptors, so that what is not bounded shows at once."""
import os
import subprocess
import sys
import tempfile

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
        assert files_open(w.b, "controlplane") < FILES // 2, files_open(w.b, "controlplane")


def moves(w, seed):
    s = w.finish_move(w.move(w.a, "b/other", 1, "-s", str(seed)))
    assert s["failed"] == 0, s


def control_port():
    with world() as w:
        w.serve(w.b, "kv", 16 << 20)
        w.serve(w.b, "other", 1 << 20)
        load = w.move(w.a, "b/kv", 20, "-s", "3")
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


run({
    "control_port": control_port,
})
