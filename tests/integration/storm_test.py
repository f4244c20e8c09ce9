#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""At least 200 kill -9 per full run: at random moments and at every named fault point, of every process on both sides."""
import time

from pair import run
from storm import Storm, limit_cores, same_after, seed_of_run

DAEMONS = [("a", "dataplane"), ("b", "dataplane"), ("a", "controlplane"), ("b", "controlplane")]
APPS = ["tcp-a", "tcp-b", "shm-a", "noter-a", "churn-a", "churn-b", "mover-kv-0-b", "mover-back-0-a", "mover-own-0-a",
        "noter-notes-b"]


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


limit_cores()
run({
    "random_dataplanes": lambda: random_kills(DAEMONS[:2], 35),
    "random_controlplanes": lambda: random_kills(DAEMONS[2:], 35),
    "random_applications": lambda: random_kills(APPS, 35),
    "random_all": lambda: random_kills(DAEMONS + APPS, 35),
})
