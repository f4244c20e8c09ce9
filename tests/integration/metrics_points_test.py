#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every family of metrics.def that can exist today is counted: `named` finds the place in the source for each family and each
event, `driven` makes every family that a live pair can show different from zero once. What has no place yet stands in a table
here, with the reason; a new family without a place fails, and so does a row of the table that is no longer true."""
import os
import re
import signal
import subprocess
import sys

from load import Cut
from pair import BIN, BUILD, World, run, wait_for

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "../..")
STRANGER = os.path.join(HERE, "stranger.py")
BIN["noter"], BIN["puncher"], BIN["forger"] = (os.path.join(BUILD, "tests/integration", app) for app in ("noter", "puncher", "forger"))

# Families that nothing counts yet: {pattern of names: what they wait for}.
LATER = {
    r"tent_rdma_.*": "the rdma transport",
    r"tent_credit_.*": "receiver credit",
}
# Values of event labels that nothing counts, in families that are counted: {family: {value: why not}}.
NO_EVENT = {
    "tent_shm_mapping_events_total": {
        "cache_hit": "docs/adr/0008-counting-points.md", "cache_miss": "docs/adr/0008-counting-points.md",
    },
}
# Families that a live pair cannot show on demand, and the unit test that drives each.
UNIT = {
    "tent_metrics_http_start_failures_total": ("controlplane/observe/observe_test.c", "failures of the pipeline are counted"),
    "tent_metrics_serialization_failures_total": ("controlplane/observe/observe_test.c", "failures of the pipeline are counted"),
    "tent_events_dropped_total": ("controlplane/observe/observe_test.c", "events become lines and exemplars"),
    "tent_deadline_infeasible_total": ("dataplane/replay_test.c", "a deadline that cannot be met"),
    "tent_transport_failover_total": ("dataplane/replay_test.c", "failover, fallback, hint"),
}


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as f:
        return f.read()


def families():
    """{name: (ID, its domains)} of metrics.def."""
    found = {}
    for name_id, name, labels in re.findall(r"^M\(\d, (\w+), (\w+), .*?(TN_L\d(?:\(.*?\))?), \"", read("common/metrics.def"), re.M):
        found[name] = (name_id, re.findall(r"\w+", labels.partition("(")[2])[1::2])
    assert len(found) > 90 and len(found) == read("common/metrics.def").count("\nM("), len(found)
    return found


def is_later(name):
    return any(re.fullmatch(pattern, name) for pattern in LATER)


def sources():
    text = []
    for room in ("dataplane", "controlplane"):
        for folder, _, names in os.walk(os.path.join(ROOT, room)):
            text += [read(folder, n) for n in names if n.endswith((".c", ".h"))]
    return "\n".join(text)


def events_of(domain):
    """{VALUE: text} of an event domain, those labels that say what happened."""
    head = re.search(rf"#define TN_{domain}_LIST\(X\)((?:.*\\\n)*.*)", read("common/metrics_domains.h"))
    return dict(re.findall(r"X\((\w+), (\w+)\)", head[1]))


EVENTS = {"STREAM_EVENT", "SHM_MAPPING", "SEGMENT_EVENT", "SELECTION", "ADMISSION", "NOTE_EVENT", "RING"}


def named():
    text, missing = sources(), []
    for name, (name_id, domains) in families().items():
        if is_later(name):
            continue
        if not re.search(rf"\bTN_[CGH]\d\({name_id}\b", text):
            missing.append(name)
        for d in EVENTS.intersection(domains):
            without = NO_EVENT.get(name, {})
            for value, label in events_of(d).items():
                counted = re.search(rf"\bTN_{d}_{value}\b", text) is not None
                if counted == (label in without):
                    missing.append(f"{name}{{{label}}}" + (" is counted: take it off the list" if counted else ""))
    assert not missing, f"no counting point: {missing}"
    for pattern in LATER:
        assert any(re.fullmatch(pattern, n) for n in families()), f"{pattern} means no family"
    for name, (file, case) in UNIT.items():
        assert name in families() and f'{{ "{case}", ' in read("tests/unit", file), (name, file, case)


class Seen:
    """Families that were different from zero at a look."""

    def __init__(self, world):
        self.world, self.names = world, set()

    def look(self):
        for h in self.world.hosts:
            for name, value in re.findall(r"^(\w+)(?:\{.*\})? (\S+)", h.http("/metrics")[1], re.M):
                if float(value) != 0:
                    self.names.add(re.sub(r"_(count|sum|bucket)$", "", name) if name not in families() else name)
        return self.names

    def until(self, *names, seconds=30):
        for name in names:
            wait_for(f"{name} is counted", lambda name=name: name in self.look(), seconds)


def ask(args, code=0):
    r = subprocess.run(args, capture_output=True, text=True, timeout=120)
    assert r.returncode == code, (args, r.returncode, r.stdout, r.stderr)


def bad_memory_and_requests(w, seen):
    """The second memory registered at host a has a page that cannot be had."""
    p = w.spawn("bad", [BIN["puncher"], "broken", w.a.run, "bad", "own"])
    wait_for("bad memory was moved", lambda: "READY" in p.text() or not p.alive(), 60)
    seen.until("tent_memory_faults_total", "tent_read_failures_total", "tent_write_failures_total", "tent_terminal_failures_total",
               "tent_transport_attempt_failures_total")
    p.stop()
    ask([BIN["forger"], w.a.run, "requests", "own"])
    seen.until("tent_submit_rejections_total")


def segments_sent_again():
    """By any socket of this network namespace."""
    with open("/proc/net/snmp", encoding="ascii") as f:
        names, values = [line.split() for line in f if line.startswith("Tcp:")]
    return int(values[names.index("RetransSegs")])


def bad_network(w, seen):
    """Lanes fall silent under a load whose requests have short deadlines, are found stuck before, and end late."""
    load = w.load(w.a, "b/kv", "-b", "65536", "-d", "16", "-q", "800", "-m", "400")
    before = segments_sent_again()
    with Cut(w.b.data_port, "drop"):
        seen.until("tent_stuck_requests_total", "tent_late_completions_total")
        wait_for("the kernel sends again", lambda: segments_sent_again() > before + 2)
    seen.until("tent_tcp_retransmissions_total", "tent_tcp_srtt_us", "tent_tcp_cwnd_segments")  # while operations complete
    unharmed(w, load)


def no_way(w, seen):
    """The first lane to a peer does not come about: operations wait for it, and owners for those."""
    with Cut(w.a.data_port, "drop"):
        load = w.load(w.b, "a/own", "-b", "65536", "-d", "16", "-q", "800", "-m", "1000")
        seen.until("tent_stream_queue_depth", "tent_admission_queued_owners")
    unharmed(w, load)


def unharmed(w, load):
    s = w.finish_move(load)
    assert s["wrong"] == 0 and s["lost"] == 0, s


def notices(w, seen):
    recv = w.spawn("recv", [BIN["noter"], "recv", "notes", "-r", w.b.run])
    wait_for("notes published", lambda: "READY" in recv.text() or not recv.alive())
    send = w.spawn("send", [BIN["noter"], "send", "b/notes", "-r", w.a.run, "-q", "100"])
    seen.until("tent_notes_total", "tent_notify_outcomes_total")
    send.stop()
    recv.stop()


def strangers(w, seen):
    for where, name in ((os.path.join(w.b.run, "bus.ipc"), "tent_connections_refused_total"),
                        (os.path.join(w.b.run, "attach.sock"), "tent_dataplane_connections_refused_total")):
        p = w.spawn(f"stranger-{name}", [sys.executable, "-B", STRANGER, "silent", where, "700"])
        seen.until(name)
        p.kill()
    p = w.spawn("stranger-lane", [sys.executable, "-B", STRANGER, "noise", str(w.b.data_port), "20"])
    seen.until("tent_hp_tcp_protocol_errors_total")
    p.kill()


def silent_peer(w, seen):
    """A call that is not answered is really sent again."""
    w.b.procs["controlplane"].signal(signal.SIGSTOP)
    p = w.spawn("get", [*w.a.ctl(), "get", "--stall", "20s", "b/other", os.path.join(w.dir, "back")])
    seen.world.hosts = [w.a]
    seen.until("tent_rpc_retries_total")
    w.b.procs["controlplane"].signal(signal.SIGCONT)
    seen.world.hosts = [w.a, w.b]
    p.wait(30)


def staged(w, seen):
    """One whose memory is imported stops in the middle: what it was asked to copy does not come back in time."""
    p = w.load(w.a, "own", "-i", "-b", str(1 << 20), "-m", "300")
    seen.until("tent_staging_inflight_tasks", "tent_staging_inflight_bytes")
    p.signal(signal.SIGSTOP)
    seen.until("tent_staging_deferred_cleanups", "tent_staging_cleanup_timeouts_total", "tent_quarantined_batches")
    p.signal(signal.SIGCONT)
    w.finish_move(p)
    for gauge in ("tent_staging_inflight_bytes", "tent_staging_deferred_cleanups", "tent_quarantined_batches"):
        wait_for(f"{gauge} is back", lambda gauge=gauge: w.a.metric(gauge) == 0)


def driven():
    with World(start=False, extra={"observability/stuck_request_threshold_us": 100_000,
                                   "admission/peer_window_owners": 4, "staging/cleanup_ms": 1000}) as w:
        for h in w.hosts:
            h.start("controlplane")
            h.start("dataplane", {"TENT_HOOK": "dp_memory_hole=fail@2"} if h is w.a else None)
        for h in w.hosts:
            h.wait_ready()
        seen = Seen(w)
        w.serve(w.a, "own", 16 << 20)
        w.serve(w.b, "kv", 16 << 20)
        bad_memory_and_requests(w, seen)
        for ref in ("own", "b/kv"):
            p = w.load(w.a, ref)
            seen.look()  # what is only there while something moves
            w.finish_move(p)
        staged(w, seen)
        bad_network(w, seen)
        no_way(w, seen)
        notices(w, seen)
        strangers(w, seen)
        silent_peer(w, seen)
        w.a.write_config([w.b], {"admission/window_owners": 700})
        r = w.a.tentctl("config", "reload")
        assert r.returncode == 0, r.stdout + r.stderr
        seen.until("tent_dispatch_window_changes_total")
        wanted = {n for n in families() if not is_later(n) and n not in UNIT}
        assert not wanted - seen.names, f"never counted: {sorted(wanted - seen.names)}"
        early = {n for n in seen.names if is_later(n)}
        assert not early, f"counted, though the table says that nothing counts them: {sorted(early)}"
        print(f"  {len(wanted)} of {len(families())} families driven, {len(UNIT)} in unit tests, "
              f"{sum(map(is_later, families()))} wait for what they count")


run({"named": named, "driven": driven})
