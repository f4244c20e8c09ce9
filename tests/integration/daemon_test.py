#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The life of one data plane alone: start, refusals with their exit codes, work without a control plane, drain, death
and successor."""
import glob
import os
import signal
import subprocess
import time

from pair import BIN, World, run, wait_for


def start(host):
    """The data plane only, up to its attach socket."""
    p = host.start("dataplane")
    wait_for("attach socket", lambda: os.path.exists(os.path.join(host.run, "attach.sock")) or not p.alive())
    assert p.alive(), p.text()
    return p


def refused(host, *args, code=1, says=""):
    r = subprocess.run([BIN["dataplane"], *args], capture_output=True, text=True, timeout=30, check=False)
    assert r.returncode == code, f"exit {r.returncode}, not {code}: {r.stderr}"
    assert says in r.stderr, f"{says!r} is not in: {r.stderr}"


def refusals():
    with World(start=False) as w:
        first = start(w.a)
        refused(w.a, "-c", w.a.config, says=f"pid {first.pid}")
        assert first.alive() and os.path.exists(os.path.join(w.a.run, "attach.sock"))
        refused(w.b, "-c", w.b.config, "--set", f"transports/tcp/port={w.a.data_port}", says=f"port {w.a.data_port}")
        refused(w.b, "-c", w.b.config, "--set", "workers/cpus=[1023]", says="workers/cpus")
        refused(w.b, "-c", w.b.config, "--set", "transports/tcp/congestion_control=nonesuch", says="congestion_control")
        refused(w.b, "-c", w.b.config, "--set", "transports/tcp/enable=false", "--set", "transports/shm/enable=false",
                says="every transport is disabled")
        refused(w.b, "--nonsense", code=2)
        refused(w.b, "--version", code=0)
        os.chmod(w.b.run, 0o777)
        refused(w.b, "-c", w.b.config, says="others may write")
        os.chmod(w.b.run, 0o700)
        assert not os.path.exists(os.path.join(w.b.run, "attach.sock"))
        start(w.b)


def half_a_crew():
    """The thread of the last of three workers cannot be made: the other two stop, and nothing waits for one that never ran."""
    with World(start=False) as w:
        p = w.a.start("dataplane", {"TENT_HOOK": "dp_worker_start=fail@3"}, args=("--set", "workers/count=3"))
        assert p.wait(30) == 1, p.text()
        assert "worker 2 cannot start" in p.text() and "did not stop" not in p.text(), p.text()
        assert sorted(os.listdir(w.a.run)) == ["dataplane-1.tele", "dataplane.lock"], os.listdir(w.a.run)
        start(w.a)


def alone():
    """Without any control plane: segments of this host work."""
    with World(start=False) as w:
        start(w.a)
        w.serve(w.a, "own", 8 << 20)
        s = w.finish_move(w.move(w.a, "own", 1))
        assert set(s["transport"]) == {"shm"} and s["failed"] == 0, s


def drain():
    """SIGTERM with applications attached: exit 0, soon, and no name left behind."""
    with World(start=False) as w:
        p = start(w.a)
        w.serve(w.a, "own", 8 << 20)
        mover = w.load(w.a, "own")
        t = time.monotonic()
        assert p.stop() == 0, p.text()
        assert time.monotonic() - t < 10, "a drain has a bound"
        left = sorted(os.path.basename(f) for f in glob.glob(os.path.join(w.a.run, "*")))
        assert left == ["dataplane-1.tele", "dataplane.lock"], left
        assert "stopped" in p.text()
        mover.kill()


def successors():
    """kill -9 and start again: the next generation, the last two files kept, the old socket's place taken over."""
    with World(start=False) as w:
        for generation in range(1, 5):
            p = start(w.a)
            wait_for("ready", lambda p=p: "ready" in p.text())
            assert f"generation {generation}" in p.text().splitlines()[-1], p.text()
            files = sorted(os.path.basename(f) for f in glob.glob(os.path.join(w.a.run, "*.tele")))
            assert files == [f"dataplane-{g}.tele" for g in range(max(1, generation - 1), generation + 1)], files
            w.serve(w.a, "own", 1 << 20).kill()
            p.kill()
            os.rename(p.log, f"{p.log}.{generation}")


def without_descriptors():
    """Started with the standard descriptors closed: the daemons serve, and tentctl says by its exit code that nobody heard it."""
    shut = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"]
    with World(start=False) as w:
        w.b.start_both()
        w.b.wait_ready()
        mine = [w.spawn(which, [*shut, BIN[which], "-c", w.a.config]) for which in ("controlplane", "dataplane")]
        wait_for("ready", lambda: w.a.http("/ready")[0] == 200 or not all(p.alive() for p in mine))
        w.serve(w.b, "kv", 1 << 20)
        back = os.path.join(w.dir, "back")
        for args in (("get", "b/kv", back), ("status",), ("version",)):
            r = subprocess.run([*shut, *w.a.ctl(), *args], timeout=60, check=False)
            assert r.returncode == 1, f"{args}: exit {r.returncode}"
        r = subprocess.run(["sh", "-c", 'exec "$@" <&- 2>&-', "sh", *w.a.ctl(), "get", "b/kv", back], capture_output=True,
                           timeout=60, check=False)
        assert r.returncode == 0 and os.path.getsize(back) == 1 << 20, r
        assert [p.stop() for p in mine] == [0, 0]


def reloads():
    """Any number of SIGHUPs under load changes nothing that moves, answers or is known of peers."""
    with World() as w:
        w.serve(w.b, "kv", 8 << 20)
        p = w.load(w.a, "b/kv", "-b", "65536")
        for n in range(4):
            for h in w.hosts:
                for which in ("controlplane", "dataplane"):
                    seen = h.procs[which].text().count("metrics/recording")
                    h.write_config([o for o in w.hosts if o is not h], {"metrics/recording": n % 2 == 1})
                    h.procs[which].signal(signal.SIGHUP)
                    if which == "controlplane":
                        wait_for("reloaded", lambda s=seen, q=h.procs[which]: q.text().count("metrics/recording") > s or not q.alive())
            for h in w.hosts:
                assert [q["name"] for q in h.tentctl_json("peer", "list")["peers"]] == ["b" if h is w.a else "a"]
                assert h.tentctl("peer", "probe", "b" if h is w.a else "a").returncode == 0
        # asked for: both daemons say what they did, and what they did not
        w.a.write_config([w.b], {"metrics/recording": True, "log/level": "info", "workers/count": 2})
        r = w.a.tentctl("config", "reload")
        assert r.returncode == 0 and r.stdout.count('log/level: "debug" -> "info"') == 2, r.stdout + r.stderr
        assert r.stdout.count("workers/count: waits for a restart") == 2, r.stdout
        both = w.a.tentctl_json("config", "reload")
        assert all(both[d]["changed"] == [] and both[d]["restart"] == ["workers/count"] for d in ("control_plane", "data_plane")), both
        w.a.write_config([w.b], {"log/level": "loud"})
        r = w.a.tentctl_raw("-r", w.a.run, "config", "reload")
        assert r.returncode == 1 and r.stdout.count("refused; what ran before stays") == 2 and "log/level" in r.stdout, r.stdout
        w.a.write_config([w.b], {"log/level": "debug"})
        assert w.a.tentctl("config", "reload").returncode == 0
        for content, line in (("{", f"{w.a.config}:1: not valid JSON"), (None, f"{w.a.config}: there is no such file")):
            os.unlink(w.a.config)
            if content is not None:
                with open(w.a.config, "w", encoding="ascii") as f:
                    f.write(content)
            for which in ("controlplane", "dataplane"):
                w.a.procs[which].signal(signal.SIGHUP)
                wait_for(line, lambda q=w.a.procs[which]: f"reload refused: {line}" in q.text() or not q.alive())
        s = w.finish_move(p)
        assert s["failed"] == 0, s
        assert w.a.procs["controlplane"].stop() == 0  # no name is left, and the data plane finds the next one's
        assert not glob.glob(os.path.join(w.a.run, "*.ipc")), os.listdir(w.a.run)
        w.a.write_config([w.b], {})
        w.a.start("controlplane")
        w.a.wait_ready()
        for h in w.hosts:
            h.stop()
            left = [f for f in os.listdir(h.run) if f.endswith((".ipc", ".sock", ".port"))]
            assert not left, left


run({"without_descriptors": without_descriptors, "reloads": reloads, "refusals": refusals, "half_a_crew": half_a_crew, "alone": alone, "drain": drain, "successors": successors})
