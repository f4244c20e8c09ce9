# SPDX-License-Identifier: Apache-2.0
"""Two pairs of daemons on loopback for the integration tests: start, stop, kill, restart, ask. Everything lives in a
temporary directory; only processes that were started here are ever signalled; every wait has a deadline."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

BUILD = os.environ["TENT_TEST_BUILD"]
BIN = {
    "dataplane": os.path.join(BUILD, "dataplane/tent-dataplane"),
    "controlplane": os.path.join(BUILD, "controlplane/tent-controlplane"),
    "tentctl": os.path.join(BUILD, "controlplane/tentctl/tentctl"),
    "mover": os.path.join(BUILD, "tests/integration/mover"),
}
REPORT = ".sanitizer"
METRICS = os.environ.get("TENT_TEST_METRICS", "1") == "1"  # the build records numbers
PORTS = iter(range(20000, 30000))
LOAD_S = 150  # a load that nobody ends
SLOW = float(os.environ.get("TENT_TEST_SLOW", "1"))  # sanitizer builds multiply their deadlines
SANITIZE = os.environ.get("TENT_TEST_SANITIZE", "")
# A sanitizer touches every page of what a daemon reserves and never uses.
SMALL_TABLES = {f"limits/max_{what}": 512 for what in ("requests_per_worker", "memories_per_client", "segments_per_client",
                                                        "opens_per_client")} | {"transports/tcp/max_connections": 512}


def wait_for(what, condition, seconds=10.0):
    end = time.monotonic() + seconds * SLOW
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"not within {seconds} s: {what}")


def free_port():
    """Below the range from which the kernel gives ports to whoever connects: nobody else takes one before its daemon does."""
    for port in PORTS:
        with socket.socket(socket.AF_INET) as s:
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise AssertionError("no port is free")


def sanitizer_env(log):
    """A report that a process survives, or that dies with it, must fail the test all the same: into a file beside its log."""
    where = f"log_path={log}{REPORT}"
    return {v: ":".join(filter(None, [os.environ.get(v), where])) for v in ("ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS")}


def sanitizer_reports(folder):
    """{file: text} of those that say something; a line of a sanitizer about its own start is no report."""
    found = {}
    for path, _, names in os.walk(folder):
        for name in names:
            if REPORT not in name:
                continue
            with open(os.path.join(path, name), encoding="utf-8", errors="replace") as f:
                text = f.read()
            if "Sanitizer" in text or "runtime error" in text:
                found[name] = text
    return found


class Process:
    """A child with its output in a file. kill() is SIGKILL."""

    def __init__(self, args, log, env=None, pass_fds=()):
        self.args, self.log, self.until_told = args, log, False
        with open(log, "ab") as out:
            self.p = subprocess.Popen(args, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                      pass_fds=pass_fds, env={**os.environ, **sanitizer_env(log), **(env or {})})

    @property
    def pid(self):
        return self.p.pid

    def alive(self):
        return self.p.poll() is None

    def signal(self, sig):
        if self.alive():
            self.p.send_signal(sig)

    def kill(self):
        self.signal(signal.SIGKILL)
        self.p.wait(10 * SLOW)

    def stop(self, seconds=15):
        self.signal(signal.SIGTERM)
        try:
            return self.p.wait(seconds * SLOW)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"did not stop: {self.args[0]}\n{self.text()[-2000:]}")

    def wait(self, seconds):
        return self.p.wait(seconds * SLOW)

    def text(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read()

    def threads(self):
        """What each of its threads does at this moment, as far as the kernel tells."""
        lines = []
        try:
            tids = sorted(os.listdir(f"/proc/{self.pid}/task"), key=int)
        except OSError:
            return "  gone\n"
        for tid in tids:
            def ask(what, where=f"/proc/{self.pid}/task/{tid}"):
                try:
                    with open(f"{where}/{what}", encoding="ascii", errors="replace") as f:
                        return f.read().strip()
                except OSError as e:
                    return e.strerror
            name, _, rest = ask("stat").partition("(")[2].rpartition(")")
            fields = rest.split()
            state = fields[0] if fields else "?"
            ran = f"cpu {fields[36]}, ran {fields[11]}+{fields[12]} ticks" if len(fields) > 36 else ""
            stack = " < ".join(line.partition("] ")[2] for line in ask("stack").splitlines()[:6])
            lines.append(f"  {tid} {name} {state} {ran}, wants {ask('schedstat')}, system call {ask('syscall')}: {stack}\n")
        return "".join(lines)


class Host:
    """One pair of daemons."""

    def __init__(self, world, name):
        self.world, self.name = world, name
        self.dir = os.path.join(world.dir, name)
        self.run = os.path.join(self.dir, "run")
        os.makedirs(self.dir, mode=0o700)
        self.config = os.path.join(self.dir, "tent.json")
        self.key_file = os.path.join(self.dir, "curve.key")
        self.public_key = self.take_key()
        self.control_port = free_port()
        self.data_port = free_port()
        self.procs = {}

    def take_key(self):
        """The key of a host of this name, made once for all tests of this build; its public half."""
        kept = os.path.join(BUILD, "tests", "keys", self.name)
        if not os.path.exists(kept):
            os.makedirs(os.path.dirname(kept), exist_ok=True)
            mine = f"{kept}.{os.getpid()}"
            r = self.tentctl_raw("keygen", mine)
            assert r.returncode == 0, r.stderr
            os.replace(mine, kept)
        shutil.copy(kept, self.key_file)
        with open(self.key_file, encoding="ascii") as f:
            return re.search(r"^public (\S+)$", f.read(), re.M)[1]

    def write_config(self, peers, extra):
        config = {
            "host": {"name": self.name},
            "runtime_dir": self.run,
            "state_dir": self.dir,
            "control": {"bind": f"tcp://127.0.0.1:{self.control_port}", "key_file": self.key_file},
            "transports": {"tcp": {"port": self.data_port}},
            "metrics": {"http_port": 0},
            "log": {"format": "text", "level": "debug"},
            "peers": [{"name": p.name, "address": f"tcp://127.0.0.1:{p.control_port}", "public_key": p.public_key}
                      for p in peers],
        }
        for path, value in {**(SMALL_TABLES if SLOW > 1 else {}), **extra}.items():
            at = config
            *folders, leaf = path.split("/")
            for f in folders:
                at = at.setdefault(f, {})
            at[leaf] = value
        with open(self.config, "w", encoding="utf-8") as f:
            json.dump(config, f, indent=1)

    def start(self, which, env=None, files=None, args=()):
        """files: the limit of open files, soft and hard, that the daemon gets."""
        limit = [] if files is None else ["prlimit", f"--nofile={files}:{files}", "--"]
        self.procs[which] = Process([*limit, BIN[which], "-c", self.config, *args], os.path.join(self.dir, which + ".log"), env)
        return self.procs[which]

    def start_both(self):
        self.start("controlplane")
        self.start("dataplane")

    def tentctl_raw(self, *args, timeout=60):
        return subprocess.run([BIN["tentctl"], *args], capture_output=True, text=True, timeout=timeout * SLOW)

    def ctl(self):
        """Start of a tentctl command line, for spawn()."""
        return [BIN["tentctl"], "-c", self.config]

    def tentctl(self, *args, timeout=60):
        return self.tentctl_raw("-c", self.config, *args, timeout=timeout)

    def tentctl_json(self, *args, timeout=60):
        r = self.tentctl("-j", *args, timeout=timeout)
        assert r.returncode == 0, f"tentctl {args}: exit {r.returncode}\n{r.stdout}\n{r.stderr}"
        return json.loads(r.stdout)

    def http(self, path):
        """(status, text) of the control plane's HTTP server; (0, reason) when it does not answer."""
        try:
            with open(os.path.join(self.run, "http.port"), encoding="ascii") as f:
                where = f.read().strip()
            with urllib.request.urlopen(f"http://{where}{path}", timeout=5 * SLOW) as r:
                return r.status, r.read().decode()
        except urllib.error.HTTPError as e:
            return e.code, e.read().decode()
        except OSError as e:
            return 0, str(e)

    def metric(self, name, **labels):
        """Sum of the series of a family that carry these labels; None when there is none."""
        _, text = self.http("/metrics")
        found = [float(line.rsplit(" ", 1)[1]) for line in text.splitlines()
                 if line.split("{")[0].split(" ")[0] == name
                 and all(f'{k}="{v}"' in line for k, v in labels.items())]
        return sum(found) if found else None

    def verify(self):
        """The counters add up; a build that records none says so."""
        r = self.tentctl("verify")
        if METRICS:
            assert r.returncode == 0, r.stdout + r.stderr
        else:
            assert r.returncode == 1 and "records none" in r.stderr, r.stdout + r.stderr

    def idle(self):
        """No request is in flight, by the counters or, in a build without them, by the workers' own state."""
        if METRICS:
            return self.metric("tent_logical_requests_inflight") == 0
        return all(w["inflight"] == 0 for w in self.tentctl_json("status")["data_plane"]["workers"])

    def wait_ready(self, seconds=15):
        def ready():
            for which, p in self.procs.items():
                assert p.alive(), f"{self.name}: {which} died: exit {p.p.returncode}\n{p.text()[-3000:]}"
            return self.http("/ready")[0] == 200
        wait_for(f"{self.name} ready: {self.http('/ready')}", ready, seconds)

    def stop(self):
        for which in ("dataplane", "controlplane"):
            if which in self.procs and self.procs[which].alive():
                rc = self.procs[which].stop()
                assert rc == 0, f"{self.name}: {which}: exit {rc}\n{self.procs[which].text()[-3000:]}"


class World:
    """with World() as w: two hosts, a and b, that know each other; dumps logs when the test fails."""

    def __init__(self, extra=None, start=True, keep_logs=3000, make=Host):
        self.dir = tempfile.mkdtemp(prefix="tent-it-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
        self.others, self.keep_logs = [], keep_logs
        self.a, self.b = make(self, "a"), make(self, "b")
        self.hosts = [self.a, self.b]
        for h in self.hosts:
            h.write_config([p for p in self.hosts if p is not h], extra or {})
        if start:
            for h in self.hosts:
                h.start_both()

    def __enter__(self):
        try:
            for h in self.hosts:
                if h.procs:
                    h.wait_ready()
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def processes(self):
        return [*self.others, *(q for h in self.hosts for q in h.procs.values())]

    def spawn(self, name, args, env=None):
        p = Process(args, os.path.join(self.dir, name + ".log"), env)
        self.others.append(p)
        return p

    def serve(self, host, name, size):
        p = self.spawn(f"serve-{name}-{len(self.others)}", [BIN["mover"], "serve", name, str(size), "-r", host.run])
        wait_for(f"{name} published", lambda: "READY" in p.text() or not p.alive())
        assert p.alive(), p.text()
        return p

    def move(self, host, ref, seconds, *args):
        p = self.spawn(f"move-{len(self.others)}", [BIN["mover"], "move", ref, "-r", host.run, "-t", str(seconds), *args])
        wait_for(f"moving {ref}", lambda: "RUNNING" in p.text() or not p.alive(), 30)
        assert p.alive() or p.p.returncode == 0, p.text()
        return p

    def load(self, host, ref, *args):
        """A mover that goes on until finish_move()."""
        p = self.move(host, ref, LOAD_S * SLOW, *args)
        p.until_told = True
        return p

    def finish_move(self, p, seconds=200):
        """The summary of a mover, which must have found nothing wrong."""
        if p.until_told:
            assert p.alive(), f"the load ended by itself: exit {p.p.returncode}\n{p.text()[-3000:]}"
            now = time.monotonic_ns()
            wait_for("the load moves", lambda: first_ok_after(p, now) or not p.alive())
            p.signal(signal.SIGTERM)
        rc = p.wait(seconds)
        text = p.text()
        assert rc == 0, f"mover: exit {rc}\n{text[-3000:]}"
        return json.loads(text.strip().splitlines()[-1])

    def __exit__(self, kind, value, trace):
        if kind is not None:
            for _ in range(2):  # twice: what goes on, and what does not
                for p in self.processes():
                    if p.alive():
                        print(f"---- {time.monotonic():.3f} {' '.join(p.args)}\n{p.threads()}", file=sys.stderr)
                time.sleep(0.5)
            for p in self.processes():
                print(f"---- {' '.join(p.args)} ({'alive' if p.alive() else p.p.returncode})\n{p.text()[-self.keep_logs:]}",
                      file=sys.stderr)
        for p in self.processes():
            if p.alive():
                p.signal(signal.SIGCONT)
                p.kill()
        reports = sanitizer_reports(self.dir)
        shutil.rmtree(self.dir, ignore_errors=True)
        for name, text in reports.items():
            print(f"---- {name}\n{text[:8000]}", file=sys.stderr)
        assert not reports, f"sanitizer reports: {list(reports)}"
        return False


def first_ok_after(p, t_ns):
    """CLOCK_MONOTONIC ns of the first completion that mover p reported after t_ns, or None."""
    for line in p.text().splitlines():
        if line.startswith("ok ") and int(line[3:]) > t_ns:
            return int(line[3:])
    return None


def run(tests):
    """Run the named tests (or those named on the command line); exit status for ctest."""
    wanted = sys.argv[1:] or list(tests)
    for name in wanted:
        t = time.monotonic()
        tests[name]()
        print(f"ok {name} ({time.monotonic() - t:.1f} s)", flush=True)
