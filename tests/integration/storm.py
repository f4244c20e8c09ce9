# SPDX-License-Identifier: Apache-2.0
"""The kill storm: two hosts under a verified load of every kind, and somebody who keeps killing one of them. The load (load.py)
and what it may never see stand here; which kills, and when, in storm_test.py and soak.py."""
import json
import os
import random
import re
import resource
import signal
import sys
import time

from load import Cut, Load
from pair import BIN, BUILD, SANITIZE, SLOW, Process, World, wait_for

BIN["noter"] = os.path.join(BUILD, "tests/integration/noter")
SEGMENT = 4 << 20
GUARDS = 2 * 65536
NOTER_BYTES = 4096 + 16 * 3 * 32768
GONE = ("stale", "not_found")
HEAL_S = 2.0       # the median of a case; each one waits its turn for the processor of a machine that others use too
HEAL_EACH_S = 10.0
IMPATIENT_MS = 1500
HOOK_S = 30.0      # a fault point is passed within that, with help
RECORDS = os.path.join(BUILD, "storm")
HOOK_DEF = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../common/hook.def")


def seed_of_run():
    seed = int(os.environ.get("TENT_TEST_SEED") or int.from_bytes(os.urandom(4), "little"))
    print(f"seed {seed} (TENT_TEST_SEED={seed} plays the same moments again)", flush=True)
    return seed


def hook_names():
    """Every fault point of the table; the prefix of a name says whose it is."""
    with open(HOOK_DEF, encoding="utf-8") as f:
        return re.findall(r"^HOOK\((\w+),", f.read(), re.M)


def owner_of(hook):
    """Which process has it, or None: those are no moments of a process but failures that unit tests ask for."""
    return {"dp": "dataplane", "cp": "controlplane", "lt": "application"}.get(hook.split("_", 1)[0])


def record_path(case):
    return os.path.join(RECORDS, case + ".json")


class Storm:
    """with Storm(case) as s: the world with its load. s.kill(victim) ... s.finish()."""

    def __init__(self, case, extra=None, rate=400, impatient=False):
        """case: the name under which its kills are counted for the whole run; None: they are not. impatient: movers give up
        before who is stopped goes on, and write the same block again."""
        self.case, self.rate, self.impatient = case, rate, impatient
        if case is not None and os.path.exists(record_path(case)):
            os.unlink(record_path(case))
        self.rnd = random.Random(seed_of_run())
        self.extra = extra or {}
        self.healed_s, self.kills, self.loads, self.servers, self.memfds = [], {}, [], [], []
        self.receiver_kills = {"a": 0, "b": 0}
        self.hooks = []  # (name, side) of the fault points at which somebody died

    def __enter__(self):
        self.w = World(extra={"log/level": "info", **self.extra}, keep_logs=6000)
        self.w.__enter__()
        try:
            self._start_load()
        except BaseException:
            self.w.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, *what):
        if what[0] is not None:
            print(f"kills so far {self.kills}", file=sys.stderr)
        r = self.w.__exit__(*what)
        for fd in self.memfds:
            os.close(fd)
        return r

    # ---- load

    def _memfd(self, size):
        fd = os.memfd_create("storm", os.MFD_ALLOW_SEALING)
        os.ftruncate(fd, size)
        self.memfds.append(fd)
        return fd

    def _serve(self, host, name, program="mover"):
        fd = self._memfd(SEGMENT + GUARDS if program == "mover" else NOTER_BYTES)
        verb = ["serve", name, SEGMENT] if program == "mover" else ["recv", name]
        load = Load(self.w, host, f"{program}-{name}-{host.name}", [BIN[program], *verb, "-r", host.run, "-f", fd], fd)
        self.servers.append(load)
        load.start()
        wait_for(f"{load.name} published", lambda: load.count("READY") > 0)

    def _move(self, host, name, refs, *args):
        """A restarted mover takes the next segment: what its predecessor sent may still be on its way to the one before."""
        self.loads.append(Load(self.w, host, name, [BIN["mover"], "move", lambda n: refs[n % len(refs)], "-r", host.run, "-t", 100000,
                                                    "-q", self.rate, "-s", lambda n: 7 * n + len(self.loads), *args,
                                                    *(["-m", IMPATIENT_MS] if self.impatient else [])]))

    def _start_load(self):
        a, b = self.w.a, self.w.b
        for name in ("kv-0", "kv-1"):
            self._serve(b, name)
        for name in ("back-0", "back-1"):
            self._serve(a, name)
        for host in (a, b):
            for name in ("own-0", "own-1", "raw-0", "raw-1"):
                self._serve(host, name)
        for host in (a, b):
            self._serve(host, "notes", "noter")
        self._move(a, "tcp-a", ["b/kv-0", "b/kv-1"], "-b", 65536, "-d", 8)
        self._move(b, "tcp-b", ["a/back-0", "a/back-1"], "-b", 196608, "-d", 8, "-o")
        for host in (a, b):
            self._move(host, f"shm-{host.name}", ["own-0", "own-1"], "-b", 131072, "-d", 8)
        for host, other in ((a, b), (b, a)):  # of imported memory
            self._move(host, f"plain-{host.name}", [f"{other.name}/raw-0", f"{other.name}/raw-1"], "-b", 131080, "-d", 8, "-i")
        for host, other in ((a, b), (b, a)):
            self.loads.append(Load(self.w, host, f"noter-{host.name}", [BIN["noter"], "send", f"{other.name}/notes", "-r", host.run,
                                                                        "-q", 50, "-s", lambda n: n]))
        for host, ref in ((a, "b/kv-0"), (b, "a/back-0")):
            self.loads.append(Load(self.w, host, f"churn-{host.name}", [BIN["mover"], "churn", ref, "-r", host.run, "-s", host.name == "b"]))
        for load in self.loads:
            load.start()
        self.wait_ok(time.monotonic_ns(), "the load runs", 30)

    def everyone(self):
        return [*self.loads, *self.servers]

    def check_alive(self):
        for load in self.everyone():
            load.poll()
            assert load.bad == [], (load.name, load.bad)
            assert load.killed or load.p.alive(), f"{load.name} ended: {load.p.p.returncode}\n{load.p.text()[-3000:]}"
        for h in self.w.hosts:
            for which, p in h.procs.items():
                assert p.alive(), f"{h.name}: {which} died: {p.p.returncode}\n{p.text()[-4000:]}"

    def wait_ok(self, t_ns, what, seconds=10.0):
        """Every load completed something after t_ns: {load: seconds it took}. Time during which this process itself did not
        run is not held against them: the machine stood still."""
        end, looked, stood = time.monotonic() + seconds * SLOW, time.monotonic(), 0.0
        while True:
            self.check_alive()
            slow = [load.name for load in self.loads if load.ok_after(t_ns) is None]
            if not slow:
                return {load.name: (load.ok_after(t_ns) - t_ns) / 1e9 - stood for load in self.loads}
            assert time.monotonic() < end + stood, f"{what}: nothing completed after it by {slow}"
            time.sleep(0.02)
            now = time.monotonic()
            stood += max(0.0, now - looked - 0.15)
            looked = now

    # ---- kills

    def kill(self, victim, down_s=0.0, env=None):
        """Kill it now, start it again, wait until everybody goes on. victim: (host name, "dataplane" ...) or a load's name."""
        p = self.find(victim)
        p.kill()
        time.sleep(down_s)
        self.restart(victim, env)
        self.heal(victim)

    def find(self, victim):
        if isinstance(victim, tuple):
            return getattr(self.w, victim[0]).procs[victim[1]]
        return next(load for load in self.everyone() if load.name == victim)

    def restart(self, victim, env=None):
        """Start a dead one again; this is where kills are counted."""
        self.kills[victim] = self.kills.get(victim, 0) + 1
        for side in "ab":
            self.receiver_kills[side] += victim in ((side, "dataplane"), f"noter-notes-{side}")
        self.restart_ns = time.monotonic_ns()
        if isinstance(victim, tuple):
            getattr(self.w, victim[0]).start(victim[1], env)
        else:
            self.find(victim).start(env)

    def kill_at(self, victim, hook, stimulus=None):
        """Start it with an order to kill itself at a fault point; make it come there; start it again without. `stimulus` is what
        makes it pass there: done when the load goes on, and again when that was not enough."""
        order = f"{hook}=kill@1"
        self.find(victim).kill()
        self.restart(victim, {"TENT_HOOK": order})
        armed = self.find(victim)
        if not isinstance(armed, Process):
            armed.killed = True  # it may be dead any moment
            armed = armed.p
        end, patience = time.monotonic() + HOOK_S * SLOW, 0.5
        while stimulus is None or not self._settled(armed, end):
            if stimulus is not None:
                stimulus()
            if self._died(armed, end if stimulus is None else time.monotonic() + patience * SLOW):
                break
            patience = min(2 * patience, 4)
            assert time.monotonic() < end, f"{victim} never came to {order}"
        assert armed.p.returncode == -signal.SIGKILL, f"{victim}: exit {armed.p.returncode} instead of {order}\n{armed.text()[-3000:]}"
        self.hooks.append((hook, victim[0] if isinstance(victim, tuple) else victim[-1]))
        self.restart(victim)
        self.heal(f"{victim} at {order}")

    @staticmethod
    def _died(p, end):
        while p.alive() and time.monotonic() < end:
            time.sleep(0.01)
        return not p.alive()

    def _settled(self, armed, end):
        """Wait until everybody goes on after the last restart; True when the armed one died meanwhile."""
        end = min(end, time.monotonic() + HEAL_EACH_S * SLOW)
        while armed.alive() and time.monotonic() < end:
            if all(load.killed or load.ok_after(self.restart_ns) is not None for load in self.loads):
                break
            time.sleep(0.01)
        return not armed.alive()

    def bump(self, victim):
        """Kill and start again, without waiting for anything."""
        p = self.find(victim)
        p.kill()
        self.restart(victim)

    def cut(self, host, how="drop"):
        """with s.cut(host): no byte comes to or from its lanes; how: "drop" (silence) or "reject with tcp reset"."""
        return Cut(host.data_port, how)

    def replace_behind_a_cut(self, victim, down_s=0.05):
        """Its end of the lanes falls silent without a word and the successor is there before the other side could notice."""
        p = self.find(victim)
        with self.cut(self.w.a), self.cut(self.w.b):
            p.kill()
            time.sleep(down_s)
        self.restart(victim)

    def away(self, side, seconds, whichs):
        """Daemons of one side die together and stay away."""
        for which in whichs:
            self.find((side, which)).kill()
        time.sleep(seconds)
        for which in whichs:
            self.restart((side, which))
        self.heal(f"{side}: {' and '.join(whichs)} away for {seconds} s")

    def stop_and_go_on(self, seconds, *victims):
        """SIGSTOP is not death: nobody may take their place, and after SIGCONT they are what they were."""
        stopped, begun = [self.find(v) for v in victims], time.monotonic()
        for p in stopped:
            p.signal(signal.SIGSTOP)
        begun_ns = time.monotonic_ns()
        for v, p in zip(victims, stopped):
            second = self.w.spawn(f"second-{'-'.join(v)}", p.args)
            assert second.wait(10) == 1 and f"pid {p.pid}" in second.text(), second.text()
        time.sleep(max(0.0, begun + seconds - time.monotonic()))
        if all(which == "controlplane" for _, which in victims):
            still = [load.name for load in self.loads if load.name.startswith(("tcp", "shm", "noter"))
                     and load.ok_after(begun_ns + int(1e9 * seconds / 2)) is None]
            assert not still, f"{victims} stopped, and so did {still}"
        self.restart_ns = time.monotonic_ns()
        for p in stopped:
            p.signal(signal.SIGCONT)
        self.heal(f"{victims} stopped for {seconds} s")

    def heal(self, victim):
        took = self.wait_ok(self.restart_ns, f"healed after {victim}")
        worst = max(took, key=took.get)
        self.healed_s.append((took[worst], victim, worst))
        if took[worst] > HEAL_S:
            print(f"  slow: {victim}: {({name: round(s, 2) for name, s in took.items() if s > HEAL_S})} after {self.restart_ns}; "
                  f"load {os.getloadavg()[0]:.1f}", flush=True)
            told = [line for line in self.find(worst).p.text().splitlines() if line.startswith("mover:")][-5:]
            print("".join(f"    {line}\n" for line in told), end="", flush=True)
        assert took[worst] < HEAL_EACH_S * SLOW, f"{victim}: {worst} went on only {took[worst]:.2f} s after the restart: {took}"

    # ---- the end

    def usage(self):
        """What the daemons hold now: {(host, which): (pid, fds, threads, anonymous KiB)}."""
        found = {}
        for h in self.w.hosts:
            for which, p in h.procs.items():
                with open(f"/proc/{p.pid}/status", encoding="ascii") as f:
                    status = dict(line.split(":", 1) for line in f)
                found[(h.name, which)] = (p.pid, len(os.listdir(f"/proc/{p.pid}/fd")), int(status["Threads"]),
                                          int(status["RssAnon"].split()[0]))
        return found

    def rest(self):
        """Stop the load, wait until nothing of it is left, and say what the daemons hold then."""
        self.check_alive()
        for load in self.loads:
            asked = time.monotonic()
            rc = load.p.stop(120)
            if time.monotonic() - asked > 10:
                print(f"  {load.name}: {time.monotonic() - asked:.0f} s until all of its work was over", flush=True)
            load.poll()
            assert rc == 0, f"{load.name}: exit {rc}\n{load.p.text()[-3000:]}"
        for load in self.servers:
            assert load.p.stop(30) == 0, f"{load.name}\n{load.p.text()[-3000:]}"
            load.poll()
        for h in self.w.hosts:
            wait_for(f"{h.name}: everything was given back", lambda h=h: self._is_base(h))
        return self.usage()

    def go_on(self):
        for load in self.servers:
            load.start()
            wait_for(f"{load.name} published", lambda load=load: load.count("READY") == load.starts)
        for load in self.loads:
            load.start()
        self.wait_ok(time.monotonic_ns(), "the load runs again", 30)

    def finish(self):
        """Stop the load and look at what is left of it. What the daemons hold at rest is returned."""
        usage = self.rest()
        self.judge()
        return usage

    def judge(self):
        """At rest: what the load saw from beginning to end."""
        self._judge_movers()
        self._judge_notes()
        for h in self.w.hosts:
            h.verify()
            self._judge_files(h)
        self._judge_healing()

    def _judge_healing(self):
        names = {v if isinstance(v, str) else "/".join(v): n for v, n in self.kills.items()}
        took = sorted(s for s, _, _ in self.healed_s)
        print(f"  {sum(names.values())} kills, {len(self.hooks)} of them at fault points: "
              + ", ".join(f"{v} {n}" for v, n in names.items()))
        if self.case is not None:
            os.makedirs(RECORDS, exist_ok=True)
            with open(record_path(self.case), "w", encoding="utf-8") as f:
                json.dump({"kills": names, "hooks": self.hooks, "healed_s": took}, f)
        if not took:
            return
        median = took[len(took) // 2]
        print(f"  healed: median {median:.2f} s, slowest {max(self.healed_s)}, {sum(s > HEAL_S for s in took)} of {len(took)} over "
              f"{HEAL_S} s; load {os.getloadavg()[0]:.1f}", flush=True)
        assert median < HEAL_S * SLOW, f"half of the deaths healed in more than {median:.2f} s"

    def _is_base(self, host):
        d = host.tentctl_json("status")["data_plane"]
        if "clients" not in d:
            return False  # it is about to attach again
        left = {k: d[k] for k in ("clients", "qps", "memories", "segments", "remotes") if d[k] != 0}
        return left == {} and host.idle()

    def _publishers_died(self):
        return any(isinstance(v, str) and v.startswith("mover-") for v in self.kills)

    def _judge_movers(self):
        for load in self.loads:
            load.poll()
            assert load.bad == [], (load.name, load.bad)
            last = load.summaries[-1]
            print(f"  {load.name}: {last}")
            zero = ("wrong", "stray", "lost") if "writes" in last else ("stray", "missing") if "sent" in last else ()
            if "writes" in last and "-o" not in load.args and not self.impatient:
                zero += ("failed",)  # every death heals within its deadline, and nothing forbids to send again
            if self._publishers_died():  # a segment that is gone may be told as gone
                last = {**last, "failed": last.get("failed", 0) - sum(last.get("status", {}).get(s, 0) for s in GONE)}
            if "-i" in load.args:
                # A staged request is not begun anew as a whole: one whose pieces would meet two incarnations of the peer, or
                # several deaths before its deadline, is told so.
                told = sum(last.get("status", {}).get(s, 0) for s in ("stale", "path_down"))
                last = {**last, "failed": last["failed"] - told}
            assert all(last[field] == 0 for field in zero), (load.name, last)

    def _judge_notes(self):
        for sender, receiver in ("ab", "ba"):
            send, recv = self.find(f"noter-{sender}"), self.find(f"noter-notes-{receiver}")
            got = recv.lines.get("got", [])
            seen = set(got)
            assert len(seen) == len(got), f"doubled notices: {sorted(n for n in seen if got.count(n) > 1)[:5]}"
            ghosts = seen & set(send.lines.get("lost", []))
            assert not ghosts, f"canceled notices that arrived: {sorted(ghosts)[:5]}"
            missing = set(send.lines.get("sent", [])) - seen
            print(f"  notices of {sender}: {len(got)} arrived, {len(missing)} completed and not seen, {send.count('maybe')} maybe, "
                  f"{send.count('lost')} canceled")
            assert self.receiver_kills[receiver] > 0 or not missing, f"completed and never arrived: {sorted(missing)[:5]}"

    def _judge_files(self, host):
        names = sorted(os.listdir(host.run))
        telemetry = [n for n in names if n.endswith(".tele")]
        known = {"attach.sock", "link.ipc", "bus.ipc", "http.port", "dataplane.lock", "controlplane.lock",
                 "controlplane.events"}
        assert 1 <= len(telemetry) <= 2, names
        assert set(names) - set(telemetry) <= known, names


def same_after(before, after, fds=8, kib=2048):
    """Who survived all of it holds, at rest, no more than before: fds may differ by the lanes that are kept open."""
    for who, (pid, fd_cnt, threads, rss) in before.items():
        pid2, fd2, threads2, rss2 = after[who]
        if pid != pid2:
            continue
        print(f"  {who}: fds {fd_cnt} -> {fd2}, threads {threads} -> {threads2}, anonymous memory {rss} -> {rss2} KiB")
        assert fd2 <= fd_cnt + fds and threads2 == threads, (who, before[who], after[who])
        # the thread sanitizer keeps what it knows of a page for as long as the process lives
        assert rss2 <= rss + kib * SLOW or "thread" in SANITIZE, (who, before[who], after[who])


def limit_cores():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
