#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whoever breaks a rule is refused or dropped, is counted, and nobody else notices."""
import json
import os
import random
import socket
import struct
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from pair import BIN, BUILD, METRICS, SLOW, World, free_port, run, wait_for

PUNCHER = os.path.join(BUILD, "tests/integration/puncher")
FORGER = os.path.join(BUILD, "tests/integration/forger")
SCRIBBLER = os.path.join(BUILD, "tests/integration/scribbler")


def loads(w):
    """A verified load in both transports that must not notice what happens beside it."""
    return [w.load(w.a, "b/kv", "-q", "1000", "-s", "3"), w.load(w.a, "own", "-q", "1000", "-s", "4")]


def with_load(w):
    w.serve(w.b, "kv", 16 << 20)
    w.serve(w.a, "own", 16 << 20)
    return loads(w)


def nobody_noticed(w, movers):
    for p in movers:
        s = w.finish_move(p)
        assert s["failed"] == 0, s
    for h in w.hosts:
        assert h.http("/ready")[0] == 200
        h.verify()


def scribble(w, mode, seed=1):
    r = subprocess.run([SCRIBBLER, w.a.run, mode, str(seed)], capture_output=True, text=True, timeout=60)
    assert r.returncode == 0, (mode, r.stdout, r.stderr)
    return r.stdout


def scribbling_client():
    def one(seed):
        scribble(w, "region", seed)
        scribble(w, "sqe", seed)
        assert "completed 0\n" in scribble(w, "steal", seed)
        assert "dropped" in scribble(w, "hello", seed)

    with World() as w:
        movers = with_load(w)
        assert "dropped" in scribble(w, "tail")
        assert "dropped" in scribble(w, "head")
        with ThreadPoolExecutor() as several:
            list(several.map(one, range(3)))
        scribble(w, "fds")
        assert not METRICS or w.a.metric("tent_submit_rejections_total") > 0
        nobody_noticed(w, movers)
        wait_for("its attachments are gone", lambda: w.a.tentctl_json("status")["data_plane"]["clients"] <= 2)


def punch(host, *args):
    r = subprocess.run([PUNCHER, args[0], host.run, *args[1:]], capture_output=True, text=True, timeout=120 * SLOW)
    assert r.returncode == 0, (args, r.stdout, r.stderr)
    return r.stdout


def forge(w, *args):
    r = subprocess.run([FORGER, w.a.run, *args], capture_output=True, text=True, timeout=120 * SLOW)
    assert r.returncode == 0, (args, r.stdout, r.stderr)
    return r.stdout


def forged_requests():
    """Every field of a request and every word of a ring, one wrong value at a time; each has its own answer."""
    with World() as w:
        movers = with_load(w)
        served = w.serve(w.a, "target", 16 << 20)
        rejected = w.a.metric("tent_submit_rejections_total") or 0
        print(forge(w, "requests", "target"))
        assert not METRICS or w.a.metric("tent_submit_rejections_total") - rejected >= 70
        print(forge(w, "requests", "b/kv"))
        print(forge(w, "indices"))
        nobody_noticed(w, movers)
        assert served.stop() == 0 and '"intact"' in served.text(), served.text()


def refused_memory():
    """Memory that must not be taken is refused with a text; what its owner may still do to it harms nobody."""
    with World() as w:
        movers = with_load(w)
        failed = w.a.metric("tent_memory_operations_total", operation="register", outcome="failure") or 0
        print(punch(w.a, "refusals", "own", "b/kv"))
        print(punch(w.a, "refusals", "own", "own"))
        print(forge(w, "memories"))
        counted = (w.a.metric("tent_memory_operations_total", operation="register", outcome="failure") or 0) - failed
        assert not METRICS or counted >= 10, counted
        nobody_noticed(w, movers)


def huge_page_taken_away():
    """No fault point: the kernel itself has no page for memory that the data plane has mapped."""
    with World() as w:
        w.serve(w.a, "own", 16 << 20)
        w.serve(w.b, "kv", 16 << 20)
        pid = w.a.procs["dataplane"].pid
        for ref in ("own", "b/kv"):
            r = subprocess.run([PUNCHER, "taken", w.a.run, ref], capture_output=True, text=True, timeout=60 * SLOW)
            if r.returncode == 77:
                break
            assert r.returncode == 0, (ref, r.stdout, r.stderr)
        assert w.a.procs["dataplane"].alive() and w.a.procs["dataplane"].pid == pid
        assert w.finish_move(w.move(w.a, "b/kv", 1))["failed"] == 0
    if r.returncode == 77:
        print(r.stdout)
        sys.exit(77)


def vanishing_memory():
    """A page that the data plane cannot have, in memory of its own client, of another one, and over the network."""
    with World(start=False) as w:
        for h in w.hosts:
            h.start("controlplane")
            h.start("dataplane", {"TENT_HOOK": "dp_memory_hole=fail@2"})  # the second memory registered there
        for h in w.hosts:
            h.wait_ready()
        pids = [h.procs["dataplane"].pid for h in w.hosts]
        w.serve(w.a, "own", 16 << 20)
        w.serve(w.b, "kv", 16 << 20)
        bad = []
        for h, refs in ((w.b, ["kv", "a/own"]), (w.a, ["own", "b/kv"])):
            p = w.spawn(f"bad-{h.name}", [PUNCHER, "broken", h.run, "bad", *refs])
            wait_for(f"{h.name}'s bad memory was moved and published", lambda: "READY" in p.text() or not p.alive(), 60)
            assert p.alive() and "good" in p.text(), p.text()
            bad.append(p)
        w.serve(w.a, "third", 16 << 20)
        movers = [*loads(w), w.load(w.b, "a/third", "-q", "1000", "-s", "5")]
        for host, ref in ((w.a, "bad"), (w.a, "b/bad"), (w.b, "bad"), (w.b, "a/bad")):
            text = punch(host, "meet", ref)
            assert "(fault: " in text, text
        nobody_noticed(w, movers)
        for h, pid in zip(w.hosts, pids):
            assert h.procs["dataplane"].alive() and h.procs["dataplane"].pid == pid
            assert not METRICS or h.metric("tent_memory_faults_total", transport="shm") > 0
            assert not METRICS or h.metric("tent_memory_faults_total", transport="tcp") > 0
        for p in bad:
            assert p.stop() == 0 and "guards intact" in p.text(), p.text()


def unwatched_queue_pair():
    """A worker that cannot watch a queue pair says so to whoever wanted it, and to nobody else."""
    with World(start=False) as w:
        for h in w.hosts:
            h.start("controlplane")
            h.start("dataplane", {"TENT_HOOK": "dp_qp_watch=fail@3"} if h is w.a else None)
        for h in w.hosts:
            h.wait_ready()
        movers = with_load(w)  # the first two queue pairs of a
        w.serve(w.a, "third", 16 << 20)
        move = [BIN["mover"], "move", "third", "-r", w.a.run, "-t", "1", "-s", "5"]
        p = w.spawn("unwatched", move)
        assert p.wait(60) == 1 and "queue pair" in p.text() and "(limit)" in p.text(), p.text()
        assert "refused a queue pair" in w.a.procs["dataplane"].text()
        assert sum(x["queue_pairs"] for x in w.a.tentctl_json("status")["data_plane"]["workers"]) == 2
        assert w.finish_move(w.spawn("watched", move))["failed"] == 0
        nobody_noticed(w, movers)


def say(address, data, wait=0.3, family=socket.AF_INET):
    """Say it, and return what comes back before the other side closes or `wait` is over."""
    with socket.socket(family, socket.SOCK_STREAM) as s:
        s.settimeout(wait)
        got = b""
        try:
            s.connect(address)
            s.sendall(data)
            while chunk := s.recv(4096):
                got += chunk
        except OSError:
            pass
        return got


def stranger_on_every_port():
    with World() as w:
        movers = with_load(w)
        rnd = random.Random(5)
        hello = struct.pack(">IHHQ16s16s32s16sIHHI52s", 0x544E5448, 1, 1, 0, b"s" * 16, b"r" * 16, b"p" * 32, b"t" * 16, 1, 0, 0,
                            1 << 20, b"\0" * 52)
        with open(os.path.join(w.b.run, "http.port"), encoding="ascii") as f:
            http_port = int(f.read().rsplit(":", 1)[1])
        ports = [w.b.data_port, w.b.control_port, http_port]
        words = [b"", b"\0" * 4096, b"GET / HTTP/1.0\r\n\r\n", hello, hello[:80], b"\xff" * 65536, b"A" * 10000,
                 b"GET /" + b"x" * 20000 + b" HTTP/1.1\r\n\r\n", b"DELETE /metrics HTTP/1.1\r\nHost: x\r\n\r\n"]
        words += [rnd.randbytes(rnd.randrange(1, 3000)) for _ in range(10)]
        for port in ports:
            for word in words:
                got = say(("127.0.0.1", port), word)
                if port == w.b.data_port:  # a stranger learns nothing about sessions
                    assert len(got) in (0, 64) and (len(got) == 0 or got[16:32] == b"\0" * 16), got
        # many at once that say nothing: bounded, and the door stays open for the rest
        crowd = []
        for _ in range(300):
            for port in (w.b.data_port, w.b.control_port, http_port):
                s = socket.socket()
                s.settimeout(1)
                try:
                    s.connect(("127.0.0.1", port))
                    crowd.append(s)
                except OSError:
                    s.close()
        assert w.b.procs["dataplane"].alive() and w.b.procs["controlplane"].alive()
        for s in crowd:
            s.close()
        wait_for("the HTTP door is open again", lambda: w.b.http("/health")[0] == 200)
        nobody_noticed(w, movers)


def stranger_with_a_key():
    """A correct CURVE client whose key is not in peers gets nowhere, and is told so."""
    with World() as w:
        movers = with_load(w)
        c = w.a.dir + "/../c"
        os.makedirs(c, mode=0o700)
        key = json.loads(w.a.tentctl_raw("-j", "keygen", f"{c}/curve.key").stdout)
        assert key["public_key"] not in (w.a.public_key, w.b.public_key)
        with open(f"{c}/tent.json", "w", encoding="utf-8") as f:
            json.dump({"host": {"name": "c"}, "runtime_dir": f"{c}/run", "state_dir": c,
                       "control": {"bind": f"tcp://127.0.0.1:{free_port()}", "key_file": f"{c}/curve.key"},
                       "metrics": {"http_port": 0}, "log": {"format": "text"},
                       "peers": [{"name": "b", "address": f"tcp://127.0.0.1:{w.b.control_port}",
                                  "public_key": w.b.public_key}]}, f)
        for d in ("controlplane", "dataplane"):
            w.spawn(f"c-{d}", [BIN[d], "-c", f"{c}/tent.json"])
        wait_for("c runs", lambda: os.path.exists(f"{c}/run/attach.sock") and os.path.exists(f"{c}/run/bus.ipc"))
        r = subprocess.run([BIN["tentctl"], "-c", f"{c}/tent.json", "get", "b/kv", f"{c}/out"], capture_output=True,
                           text=True, timeout=60)
        assert r.returncode == 1 and not os.path.exists(f"{c}/out"), r.stderr
        assert "peer_denied" in r.stderr or "key" in r.stderr, r.stderr
        assert "not in peers" in w.b.procs["controlplane"].text()
        nobody_noticed(w, movers)


def wrong_config():
    with World(start=False) as w:
        cases = [
            ('{"poll":{"spin_uss":5}}', "poll/spin_us"),
            ('{"poll":{"mode":"fast"}}', "adaptive"),
            ('{"transports":{"tcp":{"port":70000}}}', "65535"),
            ('{"metrics":{"http_port":"x"}}', "http_port"),
            ('{"peers":[{"name":"x"}]}', "address"),
            ('{"a":1', "not valid JSON"),
            ('[]', "object"),
            ('{"poll":{"spin_us":1,"spin_us":2}}', "spin_us"),
            ('{"control":{"insecure":true,"bind":"tcp://0.0.0.0:9816"}}', "insecure"),
        ]
        for text, hint in cases:
            path = os.path.join(w.dir, "bad.json")
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            for args in ([BIN["dataplane"], "-c", path], [BIN["controlplane"], "-c", path],
                         [BIN["tentctl"], "-c", path, "config", "check"]):
                r = subprocess.run(args, capture_output=True, text=True, timeout=20)
                assert r.returncode == 1, (text, args[0], r.returncode)
                assert "bad.json" in r.stderr + r.stdout and hint in r.stderr + r.stdout, (text, r.stderr, r.stdout)
        # a busy port, a foreign key file
        busy = socket.socket()
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        port = busy.getsockname()[1]
        for which, key in (("dataplane", "transports/tcp/port"), ("controlplane", "metrics/http_port")):
            r = subprocess.run([BIN[which], "-c", w.a.config, "--set", f"{key}={port}"], capture_output=True, text=True, timeout=20)
            assert r.returncode == 1 and str(port) in r.stderr, (which, r.stderr)
        os.chmod(w.a.key_file, 0o644)
        r = subprocess.run([BIN["controlplane"], "-c", w.a.config], capture_output=True, text=True, timeout=20)
        assert r.returncode == 1 and "chmod 600" in r.stderr, r.stderr
        os.chmod(w.a.key_file, 0o600)
        time.sleep(0.1)


run({
    "scribbling_client": scribbling_client,
    "forged_requests": forged_requests,
    "refused_memory": refused_memory,
    "huge_page_taken_away": huge_page_taken_away,
    "vanishing_memory": vanishing_memory,
    "unwatched_queue_pair": unwatched_queue_pair,
    "stranger_on_every_port": stranger_on_every_port,
    "stranger_with_a_key": stranger_with_a_key,
    "wrong_config": wrong_config,
})
