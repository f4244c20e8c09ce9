#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The operator verbs against real daemons, and against what is left of them after kill -9."""
from pair import World, run, wait_for


def moving(w, seconds=8, ref="b/kv"):
    p = w.move(w.a, ref, seconds, "-b", "262144", "-d", "16")
    wait_for("bytes move", lambda: "ok " in p.text())
    return p


def postmortem():
    """A data plane killed in the middle tells what it did, without any daemon; its successor is told apart from it."""
    with World() as w:
        w.serve(w.b, "kv", 16 << 20)
        p = moving(w, 6)
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


run({"postmortem": postmortem})
