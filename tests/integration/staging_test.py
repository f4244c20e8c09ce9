#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Requests from and to memory that only the application can reach: every byte, and whatever may happen to an application in
the middle of a copy. Nobody else may notice, and nothing may be left behind."""
import json
import os
import signal
import time

from pair import BUILD, METRICS, World, first_ok_after, run, wait_for

PLAIN = os.path.join(BUILD, "tests/integration/plain")
GAUGES = ("tent_staging_inflight_tasks", "tent_staging_inflight_bytes", "tent_staging_deferred_cleanups", "tent_quarantined_batches",
          "tent_admission_outstanding_bytes", "tent_admission_queued_owners")


def plain(w, what, host, *args):
    p = w.spawn(f"plain-{what}-{len(w.others)}", [PLAIN, what, host.run, *args])
    assert p.wait(90) == 0 and "DONE" in p.text(), p.text()[-3000:]
    print(p.text())
    return p.text()


def nothing_left(w):
    for h in w.hosts:
        wait_for("no request in flight", h.idle)
        if METRICS:
            wait_for(f"gauges at rest: { {g: h.metric(g) for g in GAUGES} }", lambda h=h: all(h.metric(g) == 0 for g in GAUGES))
        h.verify()


def bytes_arrive():
    with World() as w:
        w.serve(w.b, "kv", 72 << 20)
        w.serve(w.a, "own", 72 << 20)
        assert "over tcp" in plain(w, "sizes", w.a, "b/kv")
        assert "over shm" in plain(w, "sizes", w.a, "own")
        plain(w, "many", w.a, "b/kv")
        plain(w, "many", w.a, "own")
        for ref in ("b/kv", "own"):
            for block, depth in ((8, 64), (4096, 64), (65544, 16), ((1 << 20) + 8, 16), (5 << 20, 8)):
                s = w.finish_move(w.move(w.a, ref, 0.5, "-i", "-b", str(block), "-d", str(depth), "-s", str(block)))
                assert s["failed"] == 0, s
                print(f"{ref} {block} x {depth}: {s['gb_per_s']} GB/s")
        assert not METRICS or w.a.metric("tent_admission_events_total", owner_kind="staging_internal", event="dispatch") > 100
        nothing_left(w)


def faults():
    with World() as w:
        w.serve(w.b, "kv", 8 << 20)
        w.serve(w.a, "own", 8 << 20)
        for ref in ("b/kv", "own"):
            assert "fault" in plain(w, "gone", w.a, ref)
        plain(w, "rules", w.a)
        nothing_left(w)


def stopped():
    """Its own requests wait, pass their deadlines, and are set aside; others go on; it goes on where it was."""
    with World(extra={"staging/cleanup_ms": 300}) as w:
        w.serve(w.b, "kv", 8 << 20)
        w.serve(w.b, "kv2", 8 << 20)
        w.serve(w.b, "kv3", 8 << 20)
        victim = w.load(w.a, "b/kv", "-i", "-b", str(1 << 20), "-m", "1000", "-s", "3")
        other = w.load(w.a, "b/kv2", "-i", "-b", str(1 << 20), "-s", "4")
        usual = w.load(w.a, "b/kv3", "-d", "8", "-s", "5")
        for p in (victim, other, usual):
            wait_for("bytes move", lambda p=p: "ok " in p.text())
        victim.signal(signal.SIGSTOP)
        if METRICS:
            wait_for("quarantine", lambda: (w.a.metric("tent_quarantined_batches") or 0) > 0)
            assert w.a.metric("tent_staging_cleanup_timeouts_total") > 0
        time.sleep(2)
        now = time.monotonic_ns()
        for p in (other, usual):
            wait_for("others go on", lambda p=p: first_ok_after(p, now))
        victim.signal(signal.SIGCONT)
        now = time.monotonic_ns()
        wait_for("it goes on", lambda: first_ok_after(victim, now), 20)
        s = w.finish_move(victim)
        assert s["wrong"] == 0 and set(s["status"]) <= {"ok", "timeout"}, s
        for p in (other, usual):
            s = w.finish_move(p)
            assert s["failed"] == 0, s
        nothing_left(w)


def killed():
    """In the middle of a copy, at its beginning and at its end."""
    with World() as w:
        w.serve(w.b, "kv", 8 << 20)
        w.serve(w.b, "kv2", 8 << 20)
        w.serve(w.a, "own", 8 << 20)
        other = w.load(w.a, "b/kv2", "-i", "-s", "4")
        for n, (hook, ref) in enumerate((hook, ref) for hook in ("lt_copy_begun=kill@30", "lt_copy_done=kill@30", "")
                                        for ref in ("b/kv", "own")):
            p = w.spawn(f"victim-{n}", [os.path.join(BUILD, "tests/integration/mover"), "move", ref, "-r", w.a.run, "-i", "-t", "60",
                                        "-b", str(1 << 20), "-d", "16"], {"TENT_HOOK": hook})
            wait_for("it runs", lambda p=p: "ok " in p.text() or not p.alive())
            if not hook:
                p.kill()
            assert p.wait(20) == -signal.SIGKILL, p.text()[-2000:]
            wait_for("its memory is gone", lambda: w.a.tentctl_json("status")["data_plane"]["clients"] == 2)
        s = w.finish_move(other)
        assert s["failed"] == 0, s
        nothing_left(w)
        # one in the middle of a drain of the whole
        p = w.load(w.a, "b/kv", "-i", "-b", str(1 << 20), "-s", "7")
        p.signal(signal.SIGSTOP)
        w.a.stop()


def restarted():
    """The data plane of either side dies under staged load, also at the worst moments: everything comes back by itself."""
    with World() as w:
        w.serve(w.b, "kv", 8 << 20)
        w.serve(w.a, "own", 8 << 20)
        far = w.load(w.a, "b/kv", "-i", "-b", str((1 << 20) + 8), "-s", "3", "-m", "60000")
        near = w.load(w.a, "own", "-i", "-b", str(3 << 20), "-d", "8", "-s", "4", "-m", "60000")
        for host, hook in ((w.a, ""), (w.b, ""), (w.a, "dp_stage_filled=kill@40"), (w.a, "dp_stage_moved=kill@40"), (w.a, "")):
            now = time.monotonic_ns()
            for p in (far, near):
                wait_for("bytes move", lambda p=p: first_ok_after(p, now) or not p.alive(), 30)
            dp = host.procs["dataplane"]
            if hook:  # this one comes with a fault, the one after it without
                dp.kill()
                dp = host.start("dataplane", {"TENT_HOOK": hook})
                assert dp.wait(60) == -signal.SIGKILL, dp.text()[-2000:]
            else:
                dp.kill()
            host.start("dataplane")
            host.wait_ready()
        for p in (far, near):
            s = w.finish_move(p)
            assert s["wrong"] == 0 and s["lost"] == 0 and s["stray"] == 0, s
            print(json.dumps(s))
        nothing_left(w)


run({"bytes": bytes_arrive, "faults": faults, "stopped": stopped, "killed": killed, "restarted": restarted})
