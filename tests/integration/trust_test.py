#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whom a host trusts is what its control plane's config says, also for the data plane that outlives it: a peer that was
removed or has another key loses tickets and lanes, one that was added can be reached, and there may be many."""
import json
import secrets
import time

from pair import BIN, World, first_ok_after, run, wait_for


def restart_controlplane(host, peers):
    host.procs["controlplane"].stop()
    host.write_config(peers, {})
    host.start("controlplane")
    host.wait_ready(30)


def strangers(count):
    return [{"name": f"far-{i}", "address": "tcp://127.0.0.1:9", "public_key": secrets.token_hex(32)} for i in range(count)]


def add_peers(host, more):
    with open(host.config, encoding="utf-8") as f:
        config = json.load(f)
    config["peers"] += more
    with open(host.config, "w", encoding="utf-8") as f:
        json.dump(config, f)


def move_later(w, ref, seconds):
    """A new application of a, which cannot open what is refused."""
    p = w.spawn(f"late-{len(w.others)}", [BIN["mover"], "move", ref, "-r", w.a.run, "-t", str(seconds)])
    p.wait(60)
    return p.text()


def removed():
    """b no longer knows a: reads and writes of a end, also of an application that had everything open, and lanes are not
    let in again; when a is trusted again, everything goes on."""
    with World() as w:
        w.serve(w.b, "kv", 32 << 20)
        m = w.load(w.a, "b/kv", "-b", "65536", "-d", "8")
        wait_for("first transfers", lambda: first_ok_after(m, 0))
        before = w.b.procs["dataplane"].pid
        restart_controlplane(w.b, [])
        assert w.b.procs["dataplane"].alive() and w.b.procs["dataplane"].pid == before
        wait_for("the warning", lambda: "no longer among the peers" in w.b.procs["dataplane"].text())
        wait_for("lanes closed", lambda: all(x["lanes"] == 0 for x in w.b.tentctl_json("status")["data_plane"]["workers"]))
        time.sleep(0.5)
        t = time.monotonic_ns()
        time.sleep(3)
        assert first_ok_after(m, t) is None, "still served"
        restart_controlplane(w.b, [w.a])
        wait_for("served again", lambda: first_ok_after(m, t), 30)
        w.finish_move(m)


def added():
    """Both daemons of a start without a peer; the control plane alone learns of b later."""
    with World(start=False) as w:
        w.a.write_config([], {})
        for h in (w.a, w.b):
            h.start_both()
        w.a.wait_ready()
        w.b.wait_ready()
        w.serve(w.b, "kv", 1 << 20)
        restart_controlplane(w.a, [w.b])
        s = w.finish_move(w.move(w.a, "b/kv", 1))
        assert s["failed"] == 0, s


def many():
    """700 peers: more than one message holds. The one that is used is the last one, and is listed as such."""
    with World(start=False) as w:
        far = strangers(699)
        w.a.write_config([], {})
        add_peers(w.a, [*far, {"name": "b", "address": f"tcp://127.0.0.1:{w.b.control_port}", "public_key": w.b.public_key}])
        for h in (w.a, w.b):
            h.start_both()
        w.a.wait_ready(60)
        w.b.wait_ready()
        w.serve(w.b, "kv", 1 << 20)
        s = w.finish_move(w.move(w.a, "b/kv", 1))
        assert s["failed"] == 0, s
        listed = w.a.tentctl_json("peer", "list")["peers"]
        assert [p["name"] for p in listed] == [*(p["name"] for p in far), "b"], len(listed)
        assert all(p["state"] == "idle" for p in listed[:-1])
        assert listed[-1]["state"] == "up" and listed[-1]["lanes"] > 0 and listed[-1]["transport"] == "tcp", listed[-1]
        text = w.a.tentctl("peer", "list").stdout
        rows = [line.split()[0] for line in text.splitlines() if ": " not in line]  # below them: what fails now
        assert rows == ["NAME", *(p["name"] for p in listed)], text[-2000:]
        assert "lanes to peers 1 up, 699 idle" in w.a.tentctl("status").stdout


run({"removed": removed, "added": added, "many": many})
