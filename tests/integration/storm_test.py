#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""At least 200 kill -9 per full run: at random moments and at every named fault point, of every process on both sides."""
import signal
import time

from pair import run
from storm import Storm, hook_names, limit_cores, same_after, seed_of_run

DAEMONS = [("a", "dataplane"), ("b", "dataplane"), ("a", "controlplane"), ("b", "controlplane")]
APPS = ["tcp-a", "tcp-b", "shm-a", "shm-b", "noter-a", "noter-b", "churn-a", "churn-b", "mover-kv-0-b", "mover-back-0-a", "mover-own-0-a", "mover-own-0-b",
        "noter-notes-a", "noter-notes-b"]


def random_kills(victims, count):
    """Whom and when is drawn; a few first, so that what grows once has grown before the first look."""
    with Storm(seed_of_run()) as s:
        for i in range(count):
            if i == 5:
                before = s.rest()
                s.go_on()
            time.sleep(s.rnd.uniform(0, 0.2))
            s.kill(s.rnd.choice(victims), s.rnd.uniform(0, 0.15))
        same_after(before, s.finish())


def at_fault_points(prefix, side):
    """Each fault point of one process, once at its first pass, on one side; and half of them again at a drawn later pass."""
    which, other = {"dp": "dataplane", "cp": "controlplane"}[prefix], "ab"[side == "a"]
    with Storm(seed_of_run()) as s:
        victim, served = (side, which), f"mover-{'back' if side == 'a' else 'kv'}-0-{side}"
        stimuli = [lambda: s.bump((other, "dataplane")),
                   lambda: s.replace_behind_a_cut((other, "dataplane")),
                   lambda: s.bump((side, "dataplane")) if prefix == "cp" else s.bump((other, "controlplane")),
                   lambda: s.bump(served),
                   lambda: s.bump(f"mover-{'back' if other == 'a' else 'kv'}-0-{other}"),
                   lambda: s.replace_behind_a_cut((other, "dataplane")), lambda: s.replace_behind_a_cut((other, "dataplane")),
                   lambda: s.w.hosts[side == "b"].procs[which].signal(signal.SIGTERM)]
        for hook in [h for h in hook_names() if h.startswith(prefix + "_")]:
            s.kill_at(victim, hook, 1, stimuli)
        s.finish()


def applications_at_fault_points():
    """Of applications; the data plane beside them dies so that they come to those of the recovery."""
    with Storm(seed_of_run()) as s:
        for hook in [h for h in hook_names() if h.startswith("lt_")]:
            victim = "noter-notes-b" if hook.startswith("lt_note") else s.rnd.choice(["tcp-a", "tcp-b", "shm-a", "shm-b", "noter-a", "noter-b"])
            s.kill_at(victim, hook, 1, [lambda v=victim: s.bump((v[-1], "dataplane"))])
        s.finish()


limit_cores()
run({
    "random_dataplanes": lambda: random_kills(DAEMONS[:2], 35),
    "random_controlplanes": lambda: random_kills(DAEMONS[2:], 35),
    "random_applications": lambda: random_kills(APPS, 35),
    "random_all": lambda: random_kills(DAEMONS + APPS, 35),
    "dataplane_a": lambda: at_fault_points("dp", "a"),
    "dataplane_b": lambda: at_fault_points("dp", "b"),
    "controlplane_a": lambda: at_fault_points("cp", "a"),
    "controlplane_b": lambda: at_fault_points("cp", "b"),
    "applications": applications_at_fault_points,
})
