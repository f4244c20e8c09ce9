# SPDX-License-Identifier: Apache-2.0
"""What the kill storm is made of: an application that can be started again and whose output is read as it grows, and lanes that
are cut for a while."""
import bisect
import json
import os
import subprocess

from pair import Process


class Load:
    """One application: how to start it (again), and what its output says. Output is read once, as it grows."""

    def __init__(self, world, host, name, args, memfd=-1):
        self.world, self.host, self.name, self.memfd = world, host, name, memfd
        self.args, self.p, self.starts, self.killed = args, None, 0, False
        self.ok, self.lines, self.summaries, self.bad = [], {}, [], []
        self.at, self.rest = 0, b""

    def start(self, env=None):
        self.poll()
        log = os.path.join(self.world.dir, f"{self.name}.log")
        args = [str(a(self.starts)) if callable(a) else str(a) for a in self.args]
        self.starts += 1
        self.killed = False
        self.p = Process(args, log, env, pass_fds=[self.memfd] if self.memfd >= 0 else [])
        self.world.others.append(self.p)

    def kill(self):
        self.killed = True
        self.p.kill()

    def poll(self):
        if self.p is None:
            return
        with open(self.p.log, "rb") as f:
            f.seek(self.at)
            text = self.rest + f.read()
            self.at = f.tell()
        whole, _, self.rest = text.rpartition(b"\n")
        for line in whole.decode(errors="replace").splitlines():
            word = line.split(" ", 1)[0]
            if word == "ok":
                self.ok.append(int(line[3:]))
            elif word in ("got", "sent", "lost", "maybe"):
                self.lines.setdefault(word, []).append(line[len(word) + 1:])
            elif line.startswith("{"):
                self.summaries.append(json.loads(line))
            elif "WRONG" in line or "WITHOUT ITS DATA" in line or "OVERWRITTEN" in line or "Sanitizer" in line:
                self.bad.append(line)
            elif word in ("RUNNING", "READY"):
                self.lines.setdefault(word, []).append(line)

    def ok_after(self, t_ns):
        self.poll()
        i = bisect.bisect_right(self.ok, t_ns)
        return self.ok[i] if i < len(self.ok) else None

    def count(self, word):
        self.poll()
        return len(self.lines.get(word, []))


class Cut:
    """Packets of the lanes to one port, while it stands. The firewall is that of the test's own network namespace."""

    def __init__(self, port, how):
        self.port, self.how, self.table = port, how, f"tent_{port}"

    def nft(self, text):
        subprocess.run(["nft", *text.split()], check=True, timeout=10)

    def __enter__(self):
        self.nft(f"add table inet {self.table}")
        self.nft(f"add chain inet {self.table} in {{ type filter hook input priority 0 ; }}")
        for side in ("dport", "sport"):
            self.nft(f"add rule inet {self.table} in tcp {side} {self.port} {self.how}")
        return self

    def __exit__(self, *what):
        self.nft(f"delete table inet {self.table}")
        return False
