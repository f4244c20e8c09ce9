#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The operator verbs against real daemons, and against what is left of them after kill -9."""
import hashlib
import json
import os
import signal
import socket
import subprocess
import tarfile

from pair import BIN, SLOW, World, run, wait_for


def moving(w, ref="b/kv"):
    p = w.load(w.a, ref, "-b", "262144", "-d", "16")
    wait_for("bytes move", lambda: "ok " in p.text())
    return p


def postmortem():
    """A data plane killed in the middle tells what it did, without any daemon; its successor is told apart from it."""
    with World() as w:
        w.serve(w.b, "kv", 16 << 20)
        p = moving(w)
        doc = w.a.tentctl_json("postmortem")
        assert doc["verdict"] == "running" and doc["equations"]["wrong"] == 0, doc
        pid = w.a.procs["dataplane"].pid
        w.a.procs["dataplane"].kill()
        w.a.procs["controlplane"].kill()
        doc = w.a.tentctl_json("postmortem")
        assert doc["verdict"] == "died" and doc["pid"] == pid and doc["generation"] == 1, doc
        assert doc["state"] == "running" and doc["last_sign_us_ago"] < 60e6, doc
        moved = sum(r["bytes"] for r in doc["requests"])
        attempts = {(a["transport"], a["operation"]) for a in doc["attempts"]}
        assert moved > 1 << 20 and ("tcp", "write") in attempts, doc["requests"]
        assert any(e["event"] == "tent.state" for e in doc["events"]["last"]), doc["events"]
        text = w.a.tentctl("postmortem")
        assert text.returncode == 0 and "died: it ran and ended without a word" in text.stdout, text.stdout
        w.a.start_both()
        w.a.wait_ready()
        again = w.a.tentctl_json("postmortem")
        assert again["generation"] == 1 and again["others"] == [{"generation": 2, "verdict": "running"}], again["others"]
        w.finish_move(p)
        w.a.stop()
        stopped = w.a.tentctl_json("postmortem", "2")
        assert stopped["verdict"] == "stopped" and stopped["equations"]["wrong"] == 0, stopped
        assert sum(r["inflight"] for r in stopped["requests"]) == 0, stopped["requests"]


def finding(doc, check, grade):
    return [f for f in doc["findings"] if f["check"] == check and f["grade"] == grade]


def doctor():
    """Healthy daemons give no failure; dead, stopped and colliding ones are named with what to type."""
    with World() as w:
        doc = json.loads(w.a.tentctl("-j", "doctor").stdout)
        assert doc["ok"], [f for f in doc["findings"] if f["grade"] == "fail"]
        pid = w.a.procs["dataplane"].pid
        served = [f["what"] for f in finding(doc, "ports", "ok")]
        assert any(f"127.0.0.1:{w.a.data_port} is served by pid {pid}" in s for s in served), served
        assert len(finding(doc, "alive", "ok")) == 2, doc["findings"]
        # stopped: lives, but says nothing
        w.a.procs["controlplane"].signal(signal.SIGSTOP)
        r = w.a.tentctl("-j", "doctor")
        w.a.procs["controlplane"].signal(signal.SIGCONT)
        assert r.returncode == 1, r.stdout
        stuck = finding(json.loads(r.stdout), "alive", "fail")
        assert stuck and f"kill -CONT {w.a.procs['controlplane'].pid}" in stuck[0]["fix"], stuck
        # dead: what it left behind, and who is on its port now
        w.a.procs["dataplane"].kill()
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind(("127.0.0.1", w.a.data_port))
            s.listen()
            r = w.a.tentctl("-j", "doctor")
        doc = json.loads(r.stdout)
        assert r.returncode == 1 and not doc["ok"], r.stdout
        taken = finding(doc, "ports", "fail")
        assert taken and f"(pid {os.getpid()})" in taken[0]["what"], taken
        assert "applications cannot attach" in finding(doc, "alive", "fail")[0]["what"], doc["findings"]
        assert "tentctl postmortem 1" in finding(doc, "telemetry", "warn")[0]["fix"], doc["findings"]
        assert "attach.sock" in finding(doc, "leftovers", "warn")[0]["what"], doc["findings"]
        wait_for("/ready says so", lambda: w.a.http("/ready")[0] == 503)
        w.a.start("dataplane")
        w.a.wait_ready()
        w.a.stop()
        w.b.stop()
        assert w.b.tentctl("doctor").returncode == 0  # nothing runs: no failure


def bundle():
    """One archive with every answer, for its owner alone, in which nothing of this host can be found; of half a pair too."""
    def members(path):
        with tarfile.open(path) as tar:
            return {os.path.basename(m.name): tar.extractfile(m).read() for m in tar.getmembers()}

    with World() as w:
        w.serve(w.b, "kv", 4 << 20)
        w.serve(w.a, "planted-segment", 4 << 20)
        p = moving(w)
        planted = [b"planted-segment", w.dir.encode(), b"127.0.0.1", w.a.public_key.encode(), w.b.public_key.encode()]
        for name, args in (("plain.tar.gz", []), ("strict.tar.gz", ["--strict"])):
            path = os.path.join(w.dir, name)
            r = w.a.tentctl("bundle", "--output", path, *args)
            assert r.returncode == 0 and "missing" not in r.stdout, r.stdout + r.stderr
            assert os.stat(path).st_mode & 0o777 == 0o600
            files = members(path)
            manifest = json.loads(files["manifest.json"])
            assert {m["name"] for m in manifest["members"]} == set(files) - {"manifest.json"}, manifest
            for m in manifest["members"]:
                assert m["code"] in (0, 200), m
                assert hashlib.sha256(files[m["name"]]).hexdigest() == m["sha256"], m
            assert {"status.json", "metrics.prom", "diagnostics.json", "explain-1.json", "doctor.json"} <= set(files), sorted(files)
            for member, content in files.items():
                found = [s for s in planted if s in content]
                assert not found, (member, found)
            assert json.loads(files["status.json"])["data_plane_attached"] and b"tent_logical_requests" in files["metrics.prom"]
        r = w.a.tentctl("bundle", "--output", path)
        assert r.returncode == 1 and "File exists" in r.stderr, r.stderr
        w.finish_move(p)
        w.a.stop()
        path = os.path.join(w.dir, "down.tar.gz")
        r = w.a.tentctl("bundle", "--output", path)
        assert r.returncode == 0 and "missing: metrics.prom (no_answer)" in r.stdout, r.stdout + r.stderr
        assert json.loads(members(path)["postmortem.json"])["verdict"] == "stopped"
        r = w.a.tentctl("bundle", "--output", os.path.join(w.dir, "no", "folder"))
        assert r.returncode == 1 and "No such file or directory" in r.stderr, r.stderr


def explain():
    """The used transport and the reasons against the others, while all is well and while it is not."""
    def verdicts(doc):
        return {t["transport"]: (t["verdict"], t["why"]) for t in doc["data_plane"]["transports"]}

    with World(extra={"control/rpc_timeout_ms": 500}) as w:
        w.serve(w.b, "kv", 16 << 20)
        w.serve(w.a, "own", 8 << 20)
        first = w.a.tentctl_json("explain", "b")
        assert verdicts(first)["tcp"] == ("use", "first_open") and first["peer"]["answers"], first
        p = moving(w)
        doc = w.a.tentctl_json("explain", "b/kv")
        assert verdicts(doc) == {"rdma": ("no", "not_built"), "hp_tcp": ("no", "not_built"), "tcp": ("use", "ready"),
                                 "shm": ("no", "wrong_target")}, doc
        assert doc["peer"]["ticket"] == "held" and doc["segment_state"]["cache"] == "held", doc
        path = doc["data_plane"]["paths"][0]
        assert path["lanes"] > 0 and path["addresses"][0]["status"] == "ok", path
        assert path["addresses"][0]["address"] == f"127.0.0.1:{w.b.data_port}", path
        assert verdicts(w.a.tentctl_json("explain", "own"))["shm"] == ("use", "ready")
        text = w.a.tentctl("explain", "b/kv").stdout
        assert text.startswith("tcp carries it: "), text
        r = w.a.tentctl("explain", "nobody")
        assert r.returncode == 1 and "nobody" in r.stderr, r
        w.b.procs["controlplane"].kill()
        w.b.procs["dataplane"].kill()

        def refused():
            d = w.a.tentctl_json("explain", "b/kv")
            tried = d["data_plane"]["paths"][0]["addresses"]
            return d if tried and tried[0].get("meaning") == "Connection refused" else None
        doc = wait_for("the address is tried in vain", refused)
        assert verdicts(doc)["tcp"] == ("use", "lanes_down") and not doc["peer"]["answers"], doc
        text = w.a.tentctl("explain", "b/kv").stdout
        assert "but the control plane of host b does not answer" in text and "Connection refused" in text, text
        w.b.start_both()
        w.b.wait_ready()
        wait_for("it carries again", lambda: verdicts(w.a.tentctl_json("explain", "b"))["tcp"] == ("use", "ready"))
        w.finish_move(p)
        w.a.procs["dataplane"].kill()
        doc = wait_for("noticed", lambda: (d := w.a.tentctl_json("explain", "b"))["data_plane"] is None and d)
        assert "data_plane_error" in doc, doc


def top():
    """Rates per transport and peer while bytes move; without the control plane; over a corpse."""
    with World() as w:
        w.serve(w.b, "kv", 16 << 20)
        w.serve(w.a, "own", 16 << 20)
        p, q = moving(w), moving(w, "own")
        v = w.a.tentctl_json("top", "--interval", "500ms" if SLOW == 1 else "4s")
        by = {t["transport"]: t for t in v["transports"]}
        assert by["tcp"]["write_bytes_per_s"] > 1e6 and by["shm"]["read_bytes_per_s"] > 1e6, by
        assert by["tcp"]["p50_ns"] > 0 and by["tcp"]["p99_ns"] >= by["tcp"]["p50_ns"], by
        peers = {x["peer"]: x for x in v["peers"]}
        assert peers["b"]["write_bytes_per_s"] > 1e6 and peers["b"]["lanes"] > 0 and peers["b"]["p99_ns"] > 0, peers
        assert peers[""]["local"] and peers[""]["read_bytes_per_s"] > 1e6, peers
        assert v["workers"][0]["busy"] > 0 and v["clients"] >= 2 and v["host"] == "a", v
        text = w.a.tentctl("top", "--once", "-i", "200ms").stdout
        assert "data plane up" in text and "(this host)" in text and "B/s" in text, text
        w.a.procs["controlplane"].kill()
        v = w.a.tentctl_json("top", "-i", "300ms")
        assert v["totals"]["write_bytes_per_s"] > 1e6 and v["peers"] is None, v
        assert not v["control_plane"]["answers"], v["control_plane"]
        w.a.procs["dataplane"].kill()
        v = w.a.tentctl_json("top", "-i", "100ms")
        assert v["data_plane"]["verdict"] == "died" and v["totals"]["write_bytes_per_s"] == 0, v
        w.a.start_both()
        w.a.wait_ready()
        w.finish_move(p)
        w.finish_move(q)


def top_on_a_terminal():
    """The live screen in a real terminal: draws, follows its size, goes back on q."""
    with World() as w:
        w.serve(w.b, "kv", 16 << 20)
        p = moving(w)
        tmux = ["tmux", "-L", f"tent-{os.getpid()}"]

        def screen():
            return subprocess.run([*tmux, "capture-pane", "-p", "-t", "top"], capture_output=True, text=True,
                                  timeout=10).stdout
        command = f"LANG=C.UTF-8 {BIN['tentctl']} -c {w.a.config} top -i 300ms; sleep 60"
        subprocess.run([*tmux, "new-session", "-d", "-s", "top", "-x", "132", "-y", "30", command], check=True, timeout=10)
        try:
            wait_for("drawn", lambda: "WORKER" in screen() and "GB/s" in screen() or "MB/s" in screen())
            assert "RETX/s" in screen() and "q quit" in screen(), screen()
            subprocess.run([*tmux, "resize-window", "-t", "top", "-x", "80", "-y", "20"], check=True, timeout=10)
            wait_for("redrawn for 80 columns", lambda: "RETX/s" not in screen() and "q quit" in screen())
            assert max(len(line) for line in screen().splitlines()) <= 80, screen()
            subprocess.run([*tmux, "send-keys", "-t", "top", "q"], check=True, timeout=10)
            wait_for("gone", lambda: "WORKER" not in screen())
        finally:
            subprocess.run([*tmux, "kill-server"], timeout=10)
        w.finish_move(p)


run({"bundle": bundle, "doctor": doctor, "explain": explain, "top": top, "terminal": top_on_a_terminal, "postmortem": postmortem})
