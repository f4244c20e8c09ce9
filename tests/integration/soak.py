#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Chaos for as long as asked: soak.py SECONDS. Kills, absences, SIGSTOP and cut lanes under the storm's verified load, drawn from
the seed. The daemons of host a are never killed (all else happens to them): what they hold at rest is looked at all the time
and must not grow. Ends with 0 only when no byte was wrong, no completion lost or doubled, and nothing grew."""
import sys
import time

from pair import SLOW
from storm import Storm, limit_cores

LOOKS = 12
WARM = 2          # looks before which whatever grows once has grown
FDS, KIB = 8, 2048
SURVIVORS = [("a", "dataplane"), ("a", "controlplane")]
MORTALS = [("b", "dataplane"), ("b", "controlplane")]
APPS = ["tcp-a", "tcp-b", "shm-a", "shm-b", "noter-a", "noter-b", "churn-a", "churn-b", "mover-kv-0-b", "mover-kv-1-b", "mover-back-0-a",
        "mover-own-0-a", "mover-own-0-b", "noter-notes-a", "noter-notes-b"]


def kill_one(s):
    s.kill(s.rnd.choice(MORTALS + APPS), s.rnd.uniform(0, 1))


def kill_two(s):
    both = [s.rnd.choice(APPS), s.rnd.choice(MORTALS)]
    for victim in both:
        s.find(victim).kill()
    time.sleep(s.rnd.uniform(0, 0.5))
    for victim in reversed(both):
        s.restart(victim)
    s.heal(both)


def host_away(s):
    s.away("b", s.rnd.uniform(0.5, 4), ["controlplane", "dataplane"])


def stop_one(s):
    s.stop_and_go_on(s.rnd.uniform(0.5, 4), s.rnd.choice(SURVIVORS + MORTALS))


def cut_lanes(s):
    with s.cut(s.rnd.choice(s.w.hosts), s.rnd.choice(["drop", "reject with tcp reset"])):
        time.sleep(s.rnd.uniform(0.1, 2))
    s.wait_ok(time.monotonic_ns(), "lanes go on after a cut", 30)


def replaced_in_silence(s):
    s.replace_behind_a_cut(MORTALS[0])
    s.wait_ok(s.restart_ns, "a host was replaced behind a silent network", 30)


def undisturbed(s):
    time.sleep(s.rnd.uniform(0.5, 3))
    s.check_alive()


CHAOS = [kill_one] * 6 + [kill_two, host_away, stop_one, stop_one, cut_lanes, cut_lanes, replaced_in_silence, undisturbed, undisturbed]


def look(s, begun, done, usage):
    held = ", ".join(f"{which} {usage[(side, which)][3]} KiB {usage[(side, which)][1]} fds {usage[(side, which)][2]} threads"
                     for side, which in SURVIVORS)
    print(f"{time.monotonic() - begun:7.0f} s  {sum(s.kills.values()):5} kills  {sum(done.values()):5} events  at rest: {held}", flush=True)
    return usage


def judge(looks, seconds):
    for who in SURVIVORS:
        pids = {u[who][0] for u in looks}
        assert len(pids) == 1, f"{who} did not live through it: {pids}"
        rss, fds, threads = ([u[who][i] for u in looks[WARM:]] for i in (3, 1, 2))
        per_hour = (rss[-1] - rss[0]) * 3600 / (seconds * (len(rss) - 1) / LOOKS)
        print(f"{'/'.join(who)}: {rss[0]} -> {rss[-1]} KiB ({per_hour:+.0f} KiB/h), fds {fds[0]} -> {fds[-1]}, threads {threads[0]} -> "
              f"{threads[-1]}")
        assert min(rss[-3:]) <= rss[0] + KIB * SLOW, f"{who}: memory grows: {rss}"
        assert min(fds[-3:]) <= fds[0] + FDS, f"{who}: descriptors grow: {fds}"
        assert threads[-1] == threads[0], f"{who}: threads: {threads}"


def main():
    seconds = float(sys.argv[1])
    begun, done, looks, moved = time.monotonic(), {}, [], 0
    limit_cores()
    with Storm(None) as s:
        for i in range(1, LOOKS + 1):
            while time.monotonic() < begun + seconds * i / LOOKS:
                event = s.rnd.choice(CHAOS)
                event(s)
                done[event.__name__] = done.get(event.__name__, 0) + 1
            looks.append(look(s, begun, done, s.rest()))
            moved += sum(load.summaries[-1].get(op, 0) for load in s.loads for op in ("writes", "reads", "sent"))
            if i < LOOKS:
                s.go_on()
        s.judge()
        print(f"{done}, {moved} operations verified")
        judge(looks, seconds)
    print(f"soak: {seconds:.0f} s, {sum(s.kills.values())} kills, no wrong byte, nothing grew")


main()
