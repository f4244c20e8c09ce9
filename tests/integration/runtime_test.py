#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an operator changes while transfers run: pause and resume, drain, policies."""
import json
import os
import signal
import time

from load import Cut
from pair import METRICS, SLOW, World, first_ok_after, run, wait_for

BLOCK = ("-b", "65536", "-q", "500")


def moves(p, seconds=10):
    now = time.monotonic_ns()
    wait_for("it moves", lambda: first_ok_after(p, now) or not p.alive(), seconds)
    assert p.alive(), p.text()[-2000:]


def state_of(host):
    return host.tentctl_json("status")["data_plane"]["state"]


def workers(host, what):
    return sum(w[what] for w in host.tentctl_json("status")["data_plane"]["workers"])


def ready(host):
    code, text = host.http("/ready")
    return code, json.loads(text)


def pause():
    """Requests queue and their deadlines run, nothing moves; what the other host asks for is served."""
    with World() as w:
        w.serve(w.b, "kv", 8 << 20)
        w.serve(w.b, "more", 8 << 20)
        w.serve(w.a, "own", 8 << 20)
        p = w.load(w.a, "b/kv", *BLOCK, "-m", "60000")
        hasty = w.load(w.a, "b/more", *BLOCK, "-m", "300")
        back = w.load(w.b, "a/own", *BLOCK)
        r = w.a.tentctl("pause")
        assert r.returncode == 0 and r.stdout.startswith("paused"), r
        assert "already" in w.a.tentctl("pause").stdout
        assert state_of(w.a) == "paused" and "paused" in w.a.tentctl("status").stdout
        assert w.a.tentctl("explain", "b").stdout.startswith("paused: requests wait")
        code, body = ready(w.a)
        assert code == 503 and body["reasons"] == ["engine_unavailable"] and body["detail"].startswith("paused"), body
        wait_for("requests queue", lambda: workers(w.a, "queued") >= 8)
        since = time.monotonic_ns()
        wait_for("deadlines run", lambda: "timeout" in hasty.text())
        time.sleep(1)
        assert first_ok_after(p, since) is None and first_ok_after(hasty, since) is None, "something moved"
        moves(back)
        assert ready(w.b)[0] == 200
        r = w.a.tentctl("resume")
        assert r.returncode == 0 and r.stdout == "resumed\n", r
        assert "not paused" in w.a.tentctl("resume").stdout
        w.a.wait_ready()
        moves(p)
        moves(hasty)
        # a pause does not outlive the data plane
        assert w.a.tentctl("pause").returncode == 0
        w.a.procs["dataplane"].kill()
        w.a.start("dataplane")
        w.a.wait_ready()
        assert state_of(w.a) == "running"
        for q in (p, hasty, back):
            s = w.finish_move(q)
            assert s["wrong"] == 0 and s["lost"] == 0 and s["stray"] == 0, s
        w.a.verify()


def transports():
    """A transport is switched off and on under load: nothing fails, what nothing else can serve waits, and that is told."""
    with World(extra={"transports/disable_grace_ms": 200, "observability/stuck_request_threshold_us": 200_000}) as w:
        w.serve(w.b, "kv", 8 << 20)
        w.serve(w.a, "own", 8 << 20)
        w.serve(w.a, "here", 8 << 20)
        p = w.load(w.a, "b/kv", *BLOCK, "-m", "60000")
        local = w.load(w.a, "here", *BLOCK, "-m", "60000")
        back = w.load(w.b, "a/own", *BLOCK)
        r = w.a.tentctl("transport", "disable", "tcp")
        assert r.returncode == 0 and r.stdout.startswith("tcp is off"), r
        assert "already" in w.a.tentctl("transport", "disable", "tcp").stdout
        assert "tcp is switched off" in w.a.tentctl("status").stdout
        if METRICS:
            stuck = wait_for("requests wait", lambda: w.a.tentctl("-j", "events", "--event", "request.stuck").stdout)
            doc = w.a.tentctl_json("request", "show", str(json.loads(stuck.splitlines()[-1])["request_id"]))
            assert doc["live"] and doc["waits_for"] == "rail" and why(doc)["tcp"] == ("wait", "off"), doc
        time.sleep(0.5)
        since = time.monotonic_ns()
        time.sleep(0.5)
        assert first_ok_after(p, since) is None, "something moved"
        moves(local)
        moves(back)  # lanes of the other host are served
        assert why(w.a.tentctl_json("explain", "b")["data_plane"])["tcp"] == ("wait", "off")
        assert ready(w.a)[0] == 200
        assert w.a.tentctl("transport", "enable", "tcp").returncode == 0
        moves(p)
        for _ in range(5):  # and back and forth, while all of it runs
            for verb in ("disable", "enable"):
                for kind in ("tcp", "shm"):
                    assert w.a.tentctl("transport", verb, kind).returncode == 0
        assert "switched off" not in w.a.tentctl("status").stdout
        r = w.a.tentctl("transport", "disable", "unspec")
        assert r.returncode == 1 and "must be one of: rdma hp_tcp tcp shm" in r.stderr, r
        r = w.a.tentctl("explain", "--priority", "urgent", "b")
        assert r.returncode == 1 and "must be one of: high medium low" in r.stderr, r
        r = w.a.tentctl("transport", "disable", "rdma")
        assert r.returncode == 1 and "not in this build" in r.stderr, r
        for q in (p, local, back):
            moves(q)
            s = w.finish_move(q)
            assert s["wrong"] == 0 and s["lost"] == 0 and s["stray"] == 0 and s["failed"] == 0, s
        w.a.verify()


def why(doc):
    return {t["transport"]: (t["verdict"], t["why"]) for t in doc["transports"]}


def inside_the_host():
    """Two ways to a segment of this host. shm goes off and comes back under load, and lanes to ourselves break: no request
    fails, and explain, request show, events and numbers say what moved."""
    def explained():
        return why(w.a.tentctl_json("explain", "here")["data_plane"])

    def switch(verb, kind):
        assert w.a.tentctl("transport", verb, kind).returncode == 0

    def count(name, **labels):
        return w.a.metric(name, **labels) or 0

    def moved(from_, to):
        return count("tent_transport_failover_total", **{"from": from_, "to": to})

    def attempts(kind):
        return sum(count("tent_transport_attempts_total", transport=kind, operation=op) for op in ("read", "write"))

    def counted(what, condition):
        if METRICS:
            wait_for(what, condition)

    def waiting():
        stuck = w.a.tentctl("-j", "events", "--event", "request.stuck").stdout.splitlines()
        r = w.a.tentctl("-j", "request", "show", str(json.loads(stuck[-1])["request_id"])) if stuck else None
        doc = json.loads(r.stdout) if r and r.returncode == 0 else {}
        return doc if doc.get("live") and doc.get("waits_for") == "rail" else None

    extra = {"transports/disable_grace_ms": 0, "observability/stuck_request_threshold_us": 200_000,
             "policies": [policy("lanes", "tcp", "shm"), policy("all", "shm", "tcp"), policy("copies", "shm")]}
    with World(extra=extra) as w:
        for name in ("here", "lanes", "copies"):
            w.serve(w.a, name, 64 << 20)
        p = w.load(w.a, "here", "-b", str(4 << 20), "-d", "8", "-m", "60000", "-p", "all")
        copies = w.load(w.a, "copies", *BLOCK, "-m", "60000", "-p", "copies")
        moves(p)
        assert why(w.a.tentctl_json("explain", "here")["data_plane"])["rdma"][0] == "no"
        if METRICS:
            assert count("tent_stream_connections", transport="tcp") == 0, "a lane that nobody needs"
        for _ in range(3):
            switch("disable", "shm")
            moves(p)
            assert explained()["shm"] == ("wait", "off") and explained()["tcp"] == ("use", "ready"), explained()
            switch("disable", "tcp")  # now nothing is left, and what ran on a lane waits
            switch("enable", "shm")
            moves(p)
            switch("enable", "tcp")
        counted("what ran was moved to a lane", lambda: moved("shm", "tcp") > 0)
        counted("and back", lambda: moved("tcp", "shm") > 0)
        counted("attempts", lambda: attempts("tcp") > 0 and attempts("shm") > attempts("tcp") / 1000)

        # a policy that does not name tcp keeps requests away from it: they wait
        switch("disable", "shm")
        moves(p)
        if METRICS:
            doc = wait_for("a request waits for shm", waiting)
            assert why(doc)["tcp"] == ("no", "policy") and why(doc)["shm"] == ("wait", "off"), doc
            before = attempts("shm")
            moves(p)
            assert attempts("shm") == before, "shm is off"
        switch("enable", "shm")
        moves(copies)

        # the way over lanes first: it breaks, and what it had goes on by copies
        q = w.load(w.a, "lanes", *BLOCK, "-m", "60000", "-p", "lanes")
        moves(q)
        before = moved("tcp", "shm")
        with Cut(w.a.data_port, "reject with tcp reset"):
            moves(q)
            counted("it failed over", lambda: moved("tcp", "shm") > before)
        counted("and goes back when it can", lambda: (n := attempts("tcp")) and not time.sleep(0.1) and attempts("tcp") > n)
        if METRICS:
            events = w.a.tentctl("-j", "events", "--event", "transport.failover").stdout.splitlines()
            assert any(json.loads(x)["from"] == "tcp" and json.loads(x)["to"] == "shm" for x in events), events[-3:]
        for load in (p, copies, q):
            s = w.finish_move(load)
            assert s["wrong"] == 0 and s["lost"] == 0 and s["stray"] == 0 and s["failed"] == 0, s
        w.a.verify()


def drain():
    """What was accepted ends, what comes is refused, then the process; and no longer than the operator said."""
    with World(extra={"transports/tcp/progress_timeout_ms": 600_000}) as w:
        w.serve(w.b, "kv", 8 << 20)
        p = w.load(w.a, "b/kv", *BLOCK, "-m", "60000")
        dp = w.a.procs["dataplane"]
        t = time.monotonic()
        r = w.a.tentctl("drain", "--grace", "20s")
        assert r.returncode == 0 and r.stdout.startswith("drained"), r
        assert time.monotonic() - t < 15 * SLOW, "nothing was left to wait for"
        assert dp.wait(10) == 0 and "everything ended" in dp.text() and "stopped" in dp.text(), dp.text()[-1500:]
        wait_for("not ready", lambda: w.a.http("/ready")[0] == 503)
        r = w.a.tentctl("pause")
        assert r.returncode == 1 and "data plane" in r.stderr, r
        os.rename(dp.log, dp.log + ".1")
        dp = w.a.start("dataplane")
        w.a.wait_ready()
        moves(p, 30)
        # paused, and a peer that answers nothing: the grace is the bound
        with Cut(w.b.data_port, "drop"):
            time.sleep(0.5)
            assert w.a.tentctl("pause").returncode == 0
            t = time.monotonic()
            r = w.a.tentctl("drain", "-g", "1s")
            took = time.monotonic() - t
            assert r.returncode == 0 and took >= 1, r
            assert took < 14 * SLOW, f"a drain has a bound: {took:.1f} s"
            assert dp.wait(10) == 0 and "the rest is canceled" in dp.text(), dp.text()[-1500:]
        w.a.start("dataplane")
        w.a.wait_ready()
        s = w.finish_move(p)
        assert s["wrong"] == 0 and s["lost"] == 0 and s["stray"] == 0, s


def policy(name, *transports):
    return {"name": name, "transports": list(transports)}


def misses(host):
    return host.metric("tent_selection_events_total", event="policy_miss") or 0


def policies():
    """A policy changes under a load that names it, goes away, comes back, and is found again by the next data plane."""
    with World() as w:
        def use(*list_, by="tentctl"):
            w.a.write_config([w.b], {"policies": list(list_)})
            if by == "tentctl":
                r = w.a.tentctl("config", "reload")
                assert r.returncode == 0 and r.stdout.count("policies:") == 2 and "restart" not in r.stdout, r.stdout + r.stderr
            else:
                seen = w.a.procs["dataplane"].text().count("policies:")
                for which in ("controlplane", "dataplane"):
                    w.a.procs[which].signal(signal.SIGHUP)
                wait_for("reloaded", lambda: w.a.procs["dataplane"].text().count("policies:") > seen)

        use(policy("other", "tcp"), policy("mine", "tcp"))
        w.serve(w.b, "kv", 8 << 20)
        w.serve(w.b, "more", 8 << 20)
        p = w.load(w.a, "b/kv", *BLOCK, "-p", "mine")
        free = w.load(w.a, "b/more", *BLOCK)
        before = misses(w.a)
        moves(p)
        use(policy("mine", "rdma"), policy("all", "tcp"))  # at another place, and without a way
        wait_for("it fails", lambda: "unsupported" in p.text())
        if METRICS:
            events = wait_for("it is told why", lambda: w.a.tentctl("-j", "events", "--event", "transport.selection_failed").stdout)
            event = json.loads(events.splitlines()[-1])
            assert event["rejected"] == "rdma not_built, hp_tcp not_built, tcp policy, shm wrong_target", event
            r = w.a.tentctl("trace", str(event["request_id"]))
            assert f"({event['rejected']})" in r.stdout, r.stdout
        since = time.monotonic_ns()
        assert w.a.tentctl_json("explain", "b")["data_plane"]["policy"]["name"] == "mine"
        time.sleep(0.3)
        assert first_ok_after(p, since) is None, "it went where its policy forbids"
        use(policy("all", "tcp"), by="signal")
        moves(p)  # as if none matched
        moves(free)
        if METRICS:
            assert misses(w.a) > before
        use(policy("all", "rdma"), policy("mine", "tcp"))
        moves(p)
        w.a.procs["dataplane"].kill()
        w.a.start("dataplane")
        w.a.wait_ready()
        moves(p, 30)
        use(policy("all", "tcp"), policy("mine", "rdma"))
        since = time.monotonic_ns()
        moves(free)
        time.sleep(0.3)
        assert first_ok_after(p, since + 200_000_000) is None, "it has another policy's number"
        use(policy("all", "tcp"), policy("mine", "tcp"))
        for q in (p, free):
            s = w.finish_move(q)
            assert s["wrong"] == 0 and s["lost"] == 0 and s["stray"] == 0, s
        w.a.verify()


run({"transports": transports, "inside_the_host": inside_the_host, "pause": pause, "drain": drain, "policies": policies})
