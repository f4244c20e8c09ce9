#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an operator does to a pair, and what those who are affected are told."""
import json
import os
import signal

from load import Cut
from pair import World, run, wait_for


def withdrawn():
    """Another process withdraws a published segment: its publisher ends, and says why."""
    with World() as w:
        pub = w.spawn("publish", [*w.a.ctl(), "segment", "publish", "room", "--size", "1MiB"])
        wait_for("published", lambda: "published room" in pub.text())
        assert w.a.tentctl("segment", "withdraw", "room").returncode == 0
        assert pub.wait(10) == 1, pub.p.returncode
        assert "room was withdrawn by an operator" in pub.text(), pub.text()
        # the name is free, also for the next one
        pub = w.spawn("again", [*w.a.ctl(), "segment", "publish", "room", "--size", "1MiB"])
        wait_for("published again", lambda: "published room" in pub.text())
        assert pub.stop() == 0


def stopped():
    """A data plane that is stopped, not dead, is named wherever somebody asks."""
    with World(extra={"control/heartbeat_ms": 200}) as w:
        w.serve(w.a, "kv", 1 << 20)
        dp = w.a.procs["dataplane"]
        dp.signal(signal.SIGSTOP)
        wait_for("not ready", lambda: w.a.http("/ready")[0] == 503)
        ready = json.loads(w.a.http("/ready")[1])
        assert ready["reasons"] == ["control_plane_unavailable"], ready
        assert "the data plane of this host does not answer: silent for" in ready["detail"], ready
        r = w.a.tentctl("status")
        assert "the data plane of host a does not answer: silent for" in r.stdout, r.stdout + r.stderr
        # asked from the other host
        r = w.b.tentctl("get", "--stall", "2s", "a/kv", os.path.join(w.dir, "back"))
        assert r.returncode == 1 and "a/kv: the data plane of host a does not answer: silent for" in r.stderr, r.stderr
        assert "Start or restart tent-dataplane on host a; tentctl doctor there says more" in r.stderr, r.stderr
        r = w.b.tentctl("explain", "a/kv")
        assert "the data plane of host a does not answer: silent for" in r.stdout, r.stdout + r.stderr
        # and an application beside it
        r = w.a.tentctl("--timeout", "1s", "get", "kv", os.path.join(w.dir, "back"))
        assert r.returncode == 1 and "the data plane of host a does not answer: silent for" in r.stderr, r.stderr
        assert "Start or restart tent-dataplane on this host" in r.stderr, r.stderr
        dp.signal(signal.SIGCONT)
        w.a.wait_ready()
        assert w.a.tentctl("get", "b/nosuch", "x").returncode == 1
        assert "detail" not in json.loads(w.a.http("/ready")[1])


def who_is_away():
    """A get that comes to nothing says which daemon of which host is away, also when the segment was used before."""
    def get(stall="2s"):
        r = w.b.tentctl("--timeout", "2s", "get", "--stall", stall, "a/kv", os.path.join(w.dir, "back"))
        return r.returncode, r.stdout + r.stderr

    def told(text):
        code, said = get("4s")
        assert code == 1 and all(t in said for t in text), (text, said)

    def back(host, which):
        host.procs[which].signal(signal.SIGCONT)
        if not host.procs[which].alive():
            host.start(which)
        host.wait_ready()

    with World(extra={"control/heartbeat_ms": 200}) as w:
        w.serve(w.a, "kv", 1 << 20)
        assert get()[0] == 0
        w.a.procs["dataplane"].signal(signal.SIGSTOP)  # its segment is cached, its lanes are open
        wait_for("not ready", lambda: w.a.http("/ready")[0] == 503)
        told(["still trying: the data plane of host a does not answer: silent for",
              "nothing moved for 4", "Start or restart tent-dataplane on host a"])
        back(w.a, "dataplane")
        w.a.procs["dataplane"].kill()
        wait_for("not ready", lambda: w.a.http("/ready")[0] == 503)
        told(["the data plane of host a is dead, last heard of", "Start or restart tent-dataplane on host a"])
        back(w.a, "dataplane")
        wait_for("served again", lambda: get()[0] == 0)
        w.a.procs["controlplane"].kill()
        w.a.procs["dataplane"].kill()
        told(["the control plane of host a does not answer: no connection to tcp://", "Run tentctl doctor on host a"])
        w.b.procs["controlplane"].signal(signal.SIGSTOP)
        told(["the control plane of this host does not answer: is it stopped or overloaded?"])
        w.b.procs["controlplane"].signal(signal.SIGCONT)


def one_log_line_per_event():
    """A control plane that is killed and started again goes on in the events where it stopped."""
    with World(extra={"observability/trace_sample_rate_ppm": 1_000_000}) as w:
        w.serve(w.b, "kv", 1 << 20)
        w.finish_move(w.move(w.a, "b/kv", 1, "-b", "65536", "-d", "8"))

        def spans():
            lines = [json.loads(x[x.index("{"):]) for x in w.a.procs["controlplane"].text().splitlines()
                     if '"tent.logical_transfer"' in x]
            return [x["request_id"] for x in lines]
        wait_for("spans in the log", lambda: len(spans()) > 0)
        seen = -1
        while seen != len(spans()):  # the pump runs every 50 ms
            seen = len(spans())
            wait_for("a quiet log", lambda: w.a.http("/health")[0] == 200)
            os.sched_yield()
            signal.sigtimedwait([], 0.3)
        w.a.procs["controlplane"].kill()
        w.a.start("controlplane")
        w.a.wait_ready()
        w.finish_move(w.move(w.a, "b/kv", 1, "-b", "65536", "-d", "8"))
        wait_for("new spans", lambda: len(spans()) > seen)
        signal.sigtimedwait([], 0.5)
        twice = len(spans()) - len(set(spans()))
        assert twice == 0, f"{twice} of {len(spans())} spans are in the log twice"


def request_shown():
    """tentctl request show: a request that hangs, one that waits for its only way, and one that ended."""
    extra = {"observability/stuck_request_threshold_us": 100_000, "observability/slow_request_threshold_us": 100_000,
             "transports/tcp/connect_timeout_ms": 200, "rails/max_errors": 2, "rails/cool_min_ms": 5000, "retry/max_attempts": 64}

    def show(request, *more):
        r = w.a.tentctl(*more, "request", "show", str(request))
        assert r.returncode == 0, r
        return r.stdout

    def live(request):
        return json.loads(show(request, "-j"))

    def hanging(want):
        """One that hangs and is as wanted."""
        def look():
            lines = w.a.tentctl("-j", "events", "--event", "request.stuck").stdout.splitlines()
            docs = (live(r) for r in reversed([json.loads(x)["request_id"] for x in lines if "request_id" in x][-32:]))
            return next((d for d in docs if d["live"] and want(d)), None)
        return wait_for("a request hangs", look, 30)

    def transports(doc):
        return {t["transport"]: (t["verdict"], t["why"]) for t in doc["transports"]}

    with World(extra=extra) as w:
        w.serve(w.b, "kv", 1 << 20)
        load = w.load(w.a, "b/kv", "-b", "65536", "-d", "16", "-m", "60000")
        with Cut(w.b.data_port, "drop"):
            doc = hanging(lambda d: d["state"] == "running" and "attempt_id" in d)
            assert doc["phase"] == "poll" and doc["peer"] == "b" and doc["attempts"] >= 1, doc
            assert transports(doc) == {"rdma": ("no", "not_built"), "hp_tcp": ("no", "not_built"), "tcp": ("use", "active"),
                                       "shm": ("no", "wrong_target")}, doc
            assert doc["age_us"] >= 100_000 and 0 < doc["deadline_us"] < 60_000_000, doc
            text = show(doc["request_id"])
            assert " at host b\n" in text and "attempt    " in text and " over tcp for " in text, text
        with Cut(w.b.data_port, "reject with tcp reset"):
            doc = hanging(lambda d: d.get("waits_for") == "rail")
            request = doc["request_id"]
            assert doc["state"] == "queued" and doc["phase"] == "retry" and transports(doc)["tcp"] == ("wait", "cooling"), doc
            assert doc["last_failure"]["status"] in ("path_down", "path_timeout", "peer_down"), doc
            assert "waits for  a way to its target: all fail too often and cool down" in show(request)
            explained = w.a.tentctl_json("explain", "b")["data_plane"]
            assert {t["transport"]: t["why"] for t in explained["transports"]}["tcp"] == "cooling", explained
        w.finish_move(load)
        doc = wait_for("its end is remembered", lambda: (d := live(request)) and not d["live"] and d)
        assert doc["end"]["status"] == "ok" and doc["end"]["request_id"] == request, doc
        assert f"request {request} has ended: ok" in show(request)
        r = w.a.tentctl("request", "show", "4096000")
        assert r.returncode == 1 and "no such live request" in r.stderr, r


def events_followed():
    """tentctl events --follow shows each failure once, over a restart of the control plane, and says what it could not see."""
    with World(extra={"observability/trace_sample_rate_ppm": 1_000_000}) as w:
        w.serve(w.a, "own", 1 << 20)
        w.serve(w.b, "kv", 1 << 20)
        failures = w.spawn("failures", [*w.a.ctl(), "-j", "events", "-f", "--event", "request.failed"])
        spans = w.spawn("spans", [*w.a.ctl(), "-j", "events", "--follow", "--spans", "--count", "1"])

        def shown(p=failures, key="request_id"):
            return [json.loads(line)[key] for line in p.text().rpartition("\n")[0].splitlines() if f'"{key}"' in line]

        def fail():
            before = len(shown())
            load = w.load(w.a, "b/kv", "-b", "65536", "-d", "8", "-q", "50", "-m", "300")
            with Cut(w.b.data_port, "drop"):
                wait_for("a failure is shown", lambda: len(shown()) > before, 20)
            w.finish_move(load)
        fail()
        w.a.procs["controlplane"].kill()
        w.a.start("controlplane")
        w.a.wait_ready()
        wait_for("it is noticed", lambda: "started anew" in failures.text())
        fail()
        assert len(shown()) == len(set(shown())), sorted(shown())
        # more than is kept, while this one does not look: told, not passed over
        wait_for("spans are shown", lambda: '"request_id"' in spans.text())
        spans.signal(signal.SIGSTOP)
        load = w.load(w.a, "own", "-b", "4096", "-d", "64")
        looked = len(spans.text())
        wait_for("many spans", lambda: (w.a.metric("tent_transport_attempts_total", transport="shm") or 0) > 40_000, 60)
        spans.signal(signal.SIGCONT)
        wait_for("it is told what was missed", lambda: sum(shown(spans, "missed")) > 10_000, 30)
        wait_for("and goes on", lambda: '"request_id"' in spans.text()[looked:])
        w.finish_move(load)
        assert failures.stop() == 0 and spans.stop() == 0


run({"events_followed": events_followed, "request_shown": request_shown, "withdrawn": withdrawn, "stopped": stopped, "who_is_away": who_is_away,
     "one_log_line_per_event": one_log_line_per_event})
