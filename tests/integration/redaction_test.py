#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whatever leaves a host for dashboards, logs and bug reports names nobody: hosts, segments, applications, policies, addresses,
keys, offsets, pointers, user data and payload are marked, everything that can go wrong goes wrong, and no mark may be in
metrics, diagnostics, readiness, event lines, events, traces and bundles."""
import base64
import io
import json
import os
import re
import signal
import tarfile

from load import Cut
from pair import BIN, BUILD, Host, World, run, wait_for

BIN["planter"] = os.path.join(BUILD, "tests/integration/planter")
PAGES = ("/metrics", "/metrics/openmetrics", "/diagnostics", "/ready", "/live", "/health")
IPS = {"a": "127.77.66.54", "b": "127.77.66.55"}
# planter.c has the same ones
NUMBERS = {"user data": 5786123499123456789, "offset": 1236995, "local offset": 777779}
BYTES = {"payload": b"PLANTPAYLOAD", "notice": b"PLANTNOTICE"}
EXTRA = {
    "metrics/openmetrics_enabled": True, "observability/trace_sample_rate_ppm": 300_000, "log/format": "json",
    "observability/slow_request_threshold_us": 200, "observability/stuck_request_threshold_us": 100_000,
    "transports/tcp/progress_timeout_ms": 1000,
    "policies": [{"name": "plantrule", "transports": ["rdma"], "intent": "checkpoint"},
                 {"name": "plantpolicy", "transports": ["shm", "tcp"]}],
}
KINDS = {"request.failed", "request.slow", "request.stuck", "transport.attempt_failed", "transport.selection_failed",
         "logical_transfer", "transport_attempt", "client.dropped", "state"}


class Marked(Host):
    """A host with names and addresses that nothing else has."""

    def __init__(self, world, name):
        super().__init__(world, f"planthost{name}")
        self.ip = IPS[name]

    def write_config(self, peers, extra):
        super().write_config(peers, {**extra, "control/bind": f"tcp://{self.ip}:{self.control_port}",
                                     "transports/tcp/bind_address": self.ip})
        with open(self.config, encoding="utf-8") as f:
            config = json.load(f)
        for entry, p in zip(config["peers"], peers):
            entry["address"] = f"tcp://{p.ip}:{p.control_port}"
        with open(self.config, "w", encoding="utf-8") as f:
            json.dump(config, f)


class Marks:
    """{what: pattern}; as words, so that a mark in the middle of some random number is none."""

    def __init__(self):
        self.patterns = {}

    def name(self, *names):
        self.patterns.update({n: re.compile(re.escape(n)) for n in names})

    def number(self, what, n):
        self.patterns[f"{what} {n}"] = re.compile(rf"(?<![0-9.]){n}(?![0-9])")
        self.patterns[f"{what} {n:x}"] = re.compile(rf"(?<![0-9a-f]){n:x}(?![0-9a-f])", re.I)

    def address(self, ip):
        self.name(ip)
        for order in ("big", "little"):
            self.number(ip, int.from_bytes(bytes(map(int, ip.split("."))), order))

    def raw(self, what, data):
        self.patterns[what] = re.compile(re.escape(data.decode()))
        self.patterns[f"{what} hex"] = re.compile(data.hex(), re.I)
        for shift in range(3):  # as a part of something longer
            text = base64.b64encode(b"\0" * shift + data * 2).decode().rstrip("=")
            self.patterns[f"{what} base64 {shift}"] = re.compile(re.escape(text[4:-4]))

    def found(self, text):
        return sorted(what for what, p in self.patterns.items() if p.search(text))

    def absent(self, where, text):
        for what in self.found(text):
            at = self.patterns[what].search(text).start()
            raise AssertionError(f"{where} shows {what}: ...{text[max(at - 100, 0):at + 100]}...")


def the_search_finds_what_is_there(marks):
    for n in NUMBERS.values():
        for text in (f'{{"x":{n}}}', f"at 0x{n:x}", f"at {n:X}."):
            assert marks.found(text), text
        assert not marks.found(f"1{n}") and not marks.found(f"{n}0") and not marks.found(f"abcd{n:x}0")
    for data in BYTES.values():
        for text in (f"<{data.decode()}>", data.hex(), *(base64.b64encode(b"x" * i + data * 4).decode() for i in range(5))):
            assert marks.found(text), text


def marks_of(w):
    m = Marks()
    m.name("planthosta", "planthostb", "plantsega", "plantsegb", "plantnosuch", "plantapp", "plantproc", "plantpolicy", "plantrule", w.dir)
    for ip in IPS.values():
        m.address(ip)
    for what, n in NUMBERS.items():
        m.number(what, n)
    for what, data in BYTES.items():
        m.raw(what, data)
    for h in w.hosts:
        m.name(h.public_key)
        with open(h.key_file, encoding="ascii") as f:
            m.name(re.search(r"^secret (\S{40})$", f.read(), re.M)[1])
    return m


def plant(w, host, name, *refs):
    program = os.path.join(w.dir, "plantproc")  # the name that ps shows
    if not os.path.exists(program):
        os.symlink(BIN["planter"], program)
    return w.spawn(f"planter-{name}", [program, host.run, name, *refs])


def all_goes_wrong(w, marks):
    """Requests that fail in every way that a pair has; an application that dies; daemons that do."""
    apps = [plant(w, w.a, "plantsega", "planthostb/plantsegb", "plantsega"), plant(w, w.b, "plantsegb", "planthosta/plantsega")]
    for p in apps:
        wait_for("planted", lambda p=p: "READY" in p.text() or not p.alive(), 30)
        assert p.alive(), p.text()
        for address in re.findall(r"^ADDRESS (\d+)$", p.text(), re.M):
            marks.number("pointer", int(address))
    for how in ("drop", "reject with tcp reset"):
        before = w.a.metric("tent_terminal_failures_total") or 0
        with Cut(w.b.data_port, how):
            wait_for("requests fail", lambda before=before: (w.a.metric("tent_terminal_failures_total") or 0) > before + 10, 30)
    victim = plant(w, w.a, "plantsegc", "plantsega")
    wait_for("another one", lambda: "READY" in victim.text(), 30)
    victim.kill()
    w.b.procs["dataplane"].kill()
    w.b.start("dataplane")
    w.b.wait_ready()
    for kind in sorted(KINDS):
        wait_for(f"an event {kind}", lambda kind=kind: any(e["event"] == f"tent.{kind}" for e in events(w.a)), 20)
    return apps


def events(host):
    r = host.tentctl("-j", "events", "--spans", "--count", "16384")
    assert r.returncode == 0, r.stderr
    return [e for e in map(json.loads, r.stdout.splitlines()) if "event" in e]


def event_lines(host):
    return [line for line in host.procs["controlplane"].text().splitlines() if '"event":"tent.' in line]


def bundle(w, host, *args):
    path = os.path.join(w.dir, f"bundle{len(args)}-{host.name}.tar.gz")
    r = host.tentctl("bundle", "--output", path, *args)
    assert r.returncode == 0, r.stdout + r.stderr
    with tarfile.open(path) as tar:
        return {m.name: io.TextIOWrapper(tar.extractfile(m), encoding="utf-8", errors="replace").read() for m in tar.getmembers()}


def nothing_is_told(w, host, marks):
    for page in PAGES:
        status, text = host.http(page)
        assert status in (200, 503) and text, (page, status)
        marks.absent(page, text)
    lines = event_lines(host)
    assert lines, host.procs["controlplane"].text()[-2000:]
    marks.absent("the log's event lines", "\n".join(lines))
    known = events(host)
    marks.absent("tentctl -j events", json.dumps(known))
    marks.absent("tentctl events", host.tentctl("events", "--spans", "--count", "16384").stdout)
    traced = {}
    for e in known:
        if "trace_id" in e:
            traced[e["event"]] = e  # one of each kind is enough
    for e in traced.values():
        for flags, key in (([], str(e["request_id"])), (["-j"], e["trace_id"])):
            r = host.tentctl(*flags, "trace", key)
            assert r.returncode == 0, (key, r.stderr)
            marks.absent(f"tentctl trace {key}", r.stdout)
    traces = {e["trace_id"] for e in known if "trace_id" in e}
    for args in ([], ["--strict"]):
        members = bundle(w, host, *args)
        for name, text in members.items():
            marks.absent(f"bundle {args} {name}", name + text)
            if args:
                shown = [t for t in traces if t in text]
                assert not shown, f"bundle --strict: {name} shows traces {shown[:3]}"
        assert len(members) > 10, sorted(members)


def planted():
    with World(start=False, extra=EXTRA, make=Marked) as w:
        for h in w.hosts:
            h.start_both()
        for h in w.hosts:
            h.wait_ready()
        marks = marks_of(w)
        the_search_finds_what_is_there(marks)
        apps = all_goes_wrong(w, marks)
        for h in w.hosts:
            nothing_is_told(w, h, marks)
        # where an operator asks for names, they are told
        told = "".join(w.a.tentctl(*verb).stdout for verb in (["status"], ["peer", "list"], ["segment", "list"], ["config", "dump"]))
        told += "".join(p.text() for p in apps) + w.a.procs["dataplane"].text()
        for what in ("planthosta", "planthostb", "plantsega", "plantpolicy", IPS["a"], IPS["b"], w.b.public_key):
            assert what in marks.found(told), (what, marks.found(told))
        assert any("pointer" in what for what in marks.found(told)), marks.found(told)
        for p in apps:
            p.signal(signal.SIGTERM)
            assert p.wait(20) == 0, p.text()


run({"planted": planted})
