#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""At least 200 kill -9 per full run: at random moments and at every named fault point, of every process on both sides; and
daemons that stop and go on. `total` adds the cases up (tests/integration/CMakeLists.txt runs it after them)."""
import json
import os
import signal
import time

from pair import run
from storm import HOOK_DEF, Storm, hook_names, limit_cores, owner_of, record_path, same_after

DAEMONS = [("a", "dataplane"), ("b", "dataplane"), ("a", "controlplane"), ("b", "controlplane")]
APPS = ["tcp-a", "tcp-b", "shm-a", "shm-b", "noter-a", "noter-b", "churn-a", "churn-b", "mover-kv-0-b", "mover-back-0-a", "mover-own-0-a", "mover-own-0-b",
        "noter-notes-a", "noter-notes-b"]
RANDOM_KILLS = 20
KILLS_MIN = 200

# What makes a daemon pass a fault point that neither its start nor the load makes it pass: (action, whom). "self", "other": the
# data plane of that side; "published": the application that publishes what the other side uses.
STIMULI = {
    "dp_drain": ("term", "self"),
    "dp_withdraw_begun": ("bump", "self published"),
    "dp_fence_begun": ("bump", "other"),
    "dp_fence_done": ("bump", "other"),
    "dp_fence_closing": ("replace", "other"),
    "dp_remote_set": ("bump", "other"),
    "cp_segment_put": ("bump", "self published"),
    "cp_segment_updated": ("bump", "other published"),
    "cp_hello_heard": ("bump", "other"),
    "cp_ticket_drawn": ("bump", "other"),
    "cp_ticket_installed": ("bump", "other"),
}


def random_kills(case, victims):
    """Whom and when is drawn; a few first, so that what grows once has grown before the first look."""
    with Storm(case) as s:
        for i in range(RANDOM_KILLS):
            if i == 5:
                before = s.rest()
                s.go_on()
            time.sleep(s.rnd.uniform(0, 0.2))
            s.kill(s.rnd.choice(victims), s.rnd.uniform(0, 0.15))
        same_after(before, s.finish())


def stimulus_of(s, hook, victim):
    """A function, or None."""
    if hook not in STIMULI:
        return None
    action, whom = STIMULI[hook]
    side = victim[0] if whom.startswith("self") else "ab"[victim[0] == "a"]
    target = f"mover-{'back' if side == 'a' else 'kv'}-0-{side}" if whom.endswith("published") else (side, "dataplane")
    if action == "term":
        return lambda: s.find(victim).signal(signal.SIGTERM)
    return lambda: {"bump": s.bump, "replace": s.replace_behind_a_cut}[action](target)


def at_fault_points(case, which, side):
    """Each fault point of one daemon of one side, at its first pass."""
    with Storm(case) as s:
        victim = (side, which)
        for hook in [h for h in hook_names() if owner_of(h) == which]:
            s.kill_at(victim, hook, stimulus_of(s, hook, victim))
        s.finish()


def applications_at_fault_points(case, side):
    """Of applications; the data plane beside them dies so that they come to those of the recovery."""
    with Storm(case) as s:
        for hook in [h for h in hook_names() if owner_of(h) == "application"]:
            whom = {"lt_note": "noter-notes", "lt_copy": "plain"}.get(hook[:7], s.rnd.choice(["tcp", "shm", "noter"]))
            victim = f"{whom}-{side}"
            recovery = hook.startswith(("lt_recover", "lt_adopt"))
            s.kill_at(victim, hook, (lambda: s.bump((side, "dataplane"))) if recovery else None)
        s.finish()


def host_away(case):
    """Long enough for every back-off to be at its longest; then it comes back, with and without its control plane."""
    with Storm(case) as s:
        for i, side in enumerate("abab"):
            s.away(side, 2.0 + i % 3, ["controlplane", "dataplane"] if i < 2 else ["dataplane"])
        s.finish()


def stopped(case, which):
    """SIGSTOP of both sides' daemon under load, longer than every heartbeat, progress time-out and deadline that waits for it;
    SIGCONT: it goes on as what it was, and nothing that it had begun lands after what was written meanwhile."""
    with Storm(case, extra={"control/heartbeat_ms": 500, "transports/tcp/progress_timeout_ms": 1000}, impatient=True) as s:
        for side in "abab":
            s.stop_and_go_on(3.5, (side, which))
        # ZeroMQ's own heartbeats between control planes give up after 15 s; who attaches waits 10 s for a data plane
        s.stop_and_go_on(17.0 if which == "controlplane" else 8.0, ("a", which), ("b", which))
        s.finish()
        if which == "dataplane":
            for name in ("tcp-a", "tcp-b"):  # some did give up, and wrote again what may have been under way
                assert s.find(name).summaries[-1]["failed"] > 0, f"{name} never gave up: nothing was proven"


def total():
    """At least KILLS_MIN kills, and every fault point of every process on both sides."""
    kills, passed = {}, {}
    for case in CASES:
        with open(record_path(case), encoding="utf-8") as f:
            record = json.load(f)
        print(f"  {case}: {sum(record['kills'].values())} kills, {len(record['hooks'])} at fault points, healed in at most "
              f"{max(record['healed_s'], default=0):.2f} s")
        for victim, n in record["kills"].items():
            kills[victim] = kills.get(victim, 0) + n
        for hook, side in record["hooks"]:
            passed.setdefault(hook, set()).add(side)
    print("  fault point            killed there on side")
    for hook in [h for h in hook_names() if owner_of(h)]:
        print(f"  {hook:22} {' '.join(sorted(passed.get(hook, set()))) or 'NONE'}")
    print(f"{sum(kills.values())} kills: " + ", ".join(f"{v} {n}" for v, n in sorted(kills.items())))
    missed = [h for h in hook_names() if owner_of(h) and passed.get(h, set()) != {"a", "b"}]
    assert not missed, f"fault points of {os.path.basename(HOOK_DEF)} at which nobody died on both sides: {missed}"
    unknown = [h for h in STIMULI if h not in hook_names()]
    assert not unknown, f"stimuli for fault points that are not: {unknown}"
    assert sum(kills.values()) >= KILLS_MIN, f"only {sum(kills.values())} kills"


CASES = {
    "random_dataplanes": lambda case: random_kills(case, DAEMONS[:2]),
    "random_controlplanes": lambda case: random_kills(case, DAEMONS[2:]),
    "random_applications": lambda case: random_kills(case, APPS),
    "random_all": lambda case: random_kills(case, DAEMONS + APPS),
    "dataplane_a": lambda case: at_fault_points(case, "dataplane", "a"),
    "dataplane_b": lambda case: at_fault_points(case, "dataplane", "b"),
    "controlplane_a": lambda case: at_fault_points(case, "controlplane", "a"),
    "controlplane_b": lambda case: at_fault_points(case, "controlplane", "b"),
    "applications_a": lambda case: applications_at_fault_points(case, "a"),
    "applications_b": lambda case: applications_at_fault_points(case, "b"),
    "away": host_away,
    "stopped_dataplanes": lambda case: stopped(case, "dataplane"),
    "stopped_controlplanes": lambda case: stopped(case, "controlplane"),
}

limit_cores()
run({**{case: (lambda case=case: CASES[case](case)) for case in CASES}, "total": total})
