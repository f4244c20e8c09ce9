#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Peers that fall silent without a word - their packets are dropped, no connection is reset - take nothing from the others. Phases
with and without the hole alternate within one run and are compared with each other."""
import contextlib
import statistics
import time

from load import Cut
from pair import SLOW, Host, World, first_ok_after, run, wait_for

WINDOW = 16 << 20         # of the worker; each peer has a quarter of it: more dead peers than four would fill it
BLOCK = 65536
ROUNDS, PHASE = 3, "3s"
GOOD = 0.95


def rates(host):
    """{peer: (bytes per second, bytes in flight)} over one phase."""
    v = host.tentctl_json("top", "--once", "--interval", PHASE)
    return {p["peer"]: (p["write_bytes_per_s"] + p["read_bytes_per_s"], p["inflight_bytes"]) for p in v["peers"] if not p["local"]}


def moving(loads):
    now = time.monotonic_ns()
    for p in loads:
        wait_for("it moves again", lambda p=p: first_ok_after(p, now) or not p.alive(), 60)
        assert p.alive(), p.text()[-2000:]


def compare(w, dead, alive, loads):
    """Goodput of the living with the hole over that without, round by round; and what the dead had in flight then."""
    ratios, stuck = [], []
    for _ in range(ROUNDS):
        moving(loads)
        whole = rates(w.a)
        with contextlib.ExitStack() as hole:
            for p in dead:
                hole.enter_context(Cut(p.data_port, "drop"))
            holed = rates(w.a)
        ratios.append(sum(holed[p.name][0] for p in alive) / sum(whole[p.name][0] for p in alive))
        stuck += [holed[p.name][1] for p in dead]
    return ratios, stuck


def star(cnt, dead_cnt):
    with World(start=False) as w:
        peers = [w.b, *(Host(w, f"p{i}") for i in range(2, cnt + 1))]
        w.hosts += peers[1:]
        w.a.write_config(peers, {"admission/window_bytes": WINDOW, "admission/peer_window_bytes": WINDOW // 4,
                                 "admission/merge_max_bytes": WINDOW // 4, "workers/count": 1})
        for p in peers:
            p.write_config([w.a], {"workers/count": 1})
        for h in w.hosts:
            h.start_both()
        for h in w.hosts:
            h.wait_ready(60)
        dead, alive = peers[:dead_cnt], peers[dead_cnt:]
        for p in peers:
            w.serve(p, "kv", 16 << 20)
        # The dead ones have twice their window asked for at any time; the living ones a steady stream.
        loads = [w.load(w.a, f"{p.name}/kv", "-b", str(BLOCK), "-d", "128", "-q", str(200 / SLOW), "-m", "120000") for p in dead]
        loads += [w.load(w.a, f"{p.name}/kv", "-b", str(BLOCK), "-d", "16", "-q", str(400 / SLOW), "-m", "120000") for p in alive]
        for again in (True, False):
            ratios, stuck = compare(w, dead, alive, loads)
            print(f"  goodput of {cnt - dead_cnt} beside {dead_cnt} in a hole: "
                  f"{', '.join(f'{100 * r:.1f} %' for r in ratios)}; in flight there: at least {min(stuck) >> 20} MiB", flush=True)
            assert min(stuck) >= WINDOW // 4, "the hole was not full"
            if statistics.median(ratios) >= GOOD or not again:
                break  # else once more: the machine is shared
        assert statistics.median(ratios) >= GOOD, ratios
        moving(loads)
        for p in loads:
            s = w.finish_move(p)
            assert s["wrong"] == 0 and s["lost"] == 0 and s["stray"] == 0, s


run({"one_of_three": lambda: star(3, 1), "five_of_six": lambda: star(6, 5)})
