#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The crash rules of docs/ARCHITECTURE.md, one test each: kill -9 under a verified load, then what must hold."""
import json
import os
import signal
import subprocess
import time

from pair import BIN, METRICS, SLOW, Process, World, first_ok_after, run, wait_for

HEAL_S = 2.0


def nft(rule):
    subprocess.run(["nft", *rule.split()], check=True, timeout=10)


def moving(w):
    w.serve(w.b, "kv", 16 << 20)
    p = w.load(w.a, "b/kv", "-b", "262144", "-d", "16")
    wait_for("bytes move", lambda: "ok " in p.text())
    return p


def healed(p, restart_ns):
    t = wait_for("completions after the restart", lambda: first_ok_after(p, restart_ns), 10)
    seconds = (t - restart_ns) / 1e9
    print(f"  healed {seconds:.2f} s after the restart")
    assert seconds < HEAL_S * SLOW, seconds


def controlplane_dies(which):
    with World() as w:
        host = getattr(w, which)
        p = moving(w)
        before = host.metric("tent_write_bytes_total")
        host.procs["controlplane"].kill()
        t = time.monotonic_ns()
        wait_for("bytes to move on with the control plane away", lambda: first_ok_after(p, t + 500_000_000), 10)
        host.start("controlplane")
        host.wait_ready()
        if which == "a" and METRICS:
            after = host.metric("tent_write_bytes_total")
            assert after >= before, (before, after)  # the data plane's counters are the data plane's
        s = w.finish_move(p)
        assert s["failed"] == 0, s
        host.verify()


def lanes_come_back_without_controlplanes():
    """Both control planes away, every lane reset by the network: tickets carry the reconnect."""
    with World() as w:
        p = moving(w)
        for h in w.hosts:
            h.procs["controlplane"].kill()
        nft("add table inet tent_test")
        nft("add chain inet tent_test in { type filter hook input priority 0 ; }")
        nft(f"add rule inet tent_test in tcp dport {w.b.data_port} reject with tcp reset")
        time.sleep(0.5)
        cut = time.monotonic_ns()
        nft("delete table inet tent_test")
        healed(p, cut)
        w.finish_move(p)


def dataplane_dies(which):
    with World() as w:
        host = getattr(w, which)
        p = moving(w)
        host.procs["dataplane"].kill()
        t = time.monotonic()
        wait_for("/ready says so", lambda: "engine_unavailable" in host.http("/ready")[1], 3)
        assert time.monotonic() - t < 1.0 * SLOW + 0.2
        status, text = host.http("/metrics")
        assert status == 200 and "tent_dataplane_up 0" in text
        if which == "a" and METRICS:
            assert host.metric("tent_write_bytes_total") > 0, "the last counters of the dead must stay readable"
        restart = time.monotonic_ns()
        host.start("dataplane")
        healed(p, restart)
        s = w.finish_move(p)
        assert s["wrong"] == 0 and s["lost"] == 0 and s["stray"] == 0
        host.wait_ready()
        host.verify()


def dataplane_in_its_own_pid_namespace():
    """The pid that it knows of itself is somebody else's here, and the same in every life."""
    with World(start=False) as w:
        def start():
            inside = ["unshare", "--pid", "--fork", "--kill-child", BIN["dataplane"], "-c", w.b.config]
            w.b.procs["dataplane"] = Process(inside, os.path.join(w.b.dir, "dataplane.log"))

        def child():
            pid = w.b.procs["dataplane"].pid
            with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
                return [int(c) for c in f.read().split()]

        w.b.start("controlplane")
        for life in range(2):
            start()
            w.b.wait_ready()
            assert w.b.tentctl_json("status")["data_plane"]["pid"] == 1
            time.sleep(1)  # whoever is taken for dead is detached in this time
            text = w.b.procs["dataplane"].text()
            assert text.count("attached to the control plane") == life + 1, text[-2000:]
            os.kill(child()[0], signal.SIGKILL)
            t = time.monotonic()
            wait_for("/ready says so", lambda: "engine_unavailable" in w.b.http("/ready")[1], 3)
            assert time.monotonic() - t < 1.0 * SLOW + 0.2
            w.b.procs["dataplane"].wait(5)


def probe_answered(host, peer):
    """The datagram of one probe made its way over the data planes and back."""
    def answered():
        return host.tentctl_json("peer", "list")["peers"][0].get("probes_answered", 0)
    before = answered()
    host.tentctl_json("peer", "probe", peer.name)
    end = time.monotonic() + 2 * SLOW
    while time.monotonic() < end:
        if answered() > before:
            return True
        time.sleep(0.02)
    return False


def datagrams_survive_controlplanes():
    """Datagrams that the data planes relay work again after any control plane was killed, with the first probe, or with the
    second when the first one came before the two had greeted each other. Nobody opens anything here."""
    with World() as w:
        assert probe_answered(w.a, w.b) and probe_answered(w.b, w.a), "before any restart"
        for dead in ([w.a], [w.b], [w.a, w.b], [w.b]):
            for h in dead:
                h.procs["controlplane"].kill()
            for h in dead:
                h.start("controlplane")
            for h in dead:
                h.wait_ready()
            for asks, peer in ((w.a, w.b), (w.b, w.a)):
                tries = next((i for i in (1, 2) if probe_answered(asks, peer)), None)
                assert tries, f"{asks.name} after {[h.name for h in dead]} restarted"
                print(f"  {asks.name} after {[h.name for h in dead]}: probe {tries}")
                assert probe_answered(asks, peer)


def mover_dies():
    """Its work is canceled, its memory released; the next one finds everything in order."""
    with World() as w:
        p = moving(w)
        p.kill()
        wait_for("its work is gone", w.a.idle)
        wait_for("its memory is gone", lambda: w.a.tentctl_json("status")["data_plane"]["memories"] == 0)
        w.finish_move(w.move(w.a, "b/kv", 2, "-s", "5"))
        w.a.verify()


def publisher_dies():
    """Its segment is withdrawn everywhere, readers are told with a reason, other clients notice nothing."""
    with World() as w:
        w.serve(w.b, "stays", 8 << 20)
        stays = w.load(w.a, "b/stays", "-s", "9")
        served = w.serve(w.b, "kv", 8 << 20)
        p = w.move(w.a, "b/kv", 3, "-m", "1500")
        wait_for("bytes move", lambda: "ok " in p.text())
        served.kill()
        wait_for("withdrawn", lambda: w.b.tentctl_json("segment", "list")["total"] == 1)
        p.wait(30)
        last = json.loads(p.text().strip().splitlines()[-1])
        assert last["wrong"] == 0 and last["lost"] == 0 and last["stray"] == 0 and last["failed"] > 0, last
        s = w.finish_move(stays)
        assert s["failed"] == 0 and s["max_gap_ms"] < 1000 * SLOW, s


def stopped_dataplane_is_no_second_writer():
    """SIGSTOP is not death: nobody may take its place; it goes on where it was."""
    with World(extra={"control/heartbeat_ms": 500}) as w:
        p = moving(w)
        dp = w.b.procs["dataplane"]
        dp.signal(signal.SIGSTOP)
        time.sleep(2.5)
        second = w.spawn("second", [dp.args[0], "-c", w.b.config])
        assert second.wait(10) == 1 and str(dp.pid) in second.text(), second.text()
        dp.signal(signal.SIGCONT)
        t = time.monotonic_ns()
        wait_for("it goes on", lambda: first_ok_after(p, t), 10)
        s = w.finish_move(p)
        assert s["wrong"] == 0, s


run({
    "controlplane_a": lambda: controlplane_dies("a"),
    "datagrams": datagrams_survive_controlplanes,
    "controlplane_b": lambda: controlplane_dies("b"),
    "lanes_without_controlplanes": lanes_come_back_without_controlplanes,
    "dataplane_a": lambda: dataplane_dies("a"),
    "dataplane_b": lambda: dataplane_dies("b"),
    "pid_namespace": dataplane_in_its_own_pid_namespace,
    "mover": mover_dies,
    "publisher": publisher_dies,
    "stopped": stopped_dataplane_is_no_second_writer,
})
