#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keys, tickets and datagram keys are in the daemons' memory and on the data network, and nowhere else: not in a log, an
answer of tentctl, a page of the HTTP server, an argument list, an environment, nor in what a crash leaves behind."""
import base64
import os
import re
import resource
import signal
import socket
import struct
import sys
import threading
import time

from pair import World, run, wait_for

HELLO = bytes.fromhex("544e5448")  # docs/protocol.md 1.1
HELLO_BYTES, TICKET_AT = 160, 80
ETH_P_ALL = 3
PT_NOTE = 4
PIECE = 1 << 16
PAGE = resource.getpagesize()
ZEROS = bytes(PIECE)


class Sniffer:
    """Tickets as they pass over loopback: the only place where they may be seen."""

    def __init__(self):
        self.tickets, self.stop = set(), threading.Event()
        self.s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self.s.bind(("lo", 0))
        self.s.settimeout(0.2)
        self.thread = threading.Thread(target=self.listen, daemon=True)
        self.thread.start()

    def listen(self):
        while not self.stop.is_set():
            try:
                packet = self.s.recv(1 << 17)
            except TimeoutError:
                continue
            at = packet.find(HELLO)
            if at >= 0 and len(packet) - at >= HELLO_BYTES:
                self.tickets.add(packet[at + TICKET_AT:at + TICKET_AT + 16])

    def close(self):
        self.stop.set()
        self.thread.join(5)
        self.s.close()


def regions(pid):
    """(start, end, is part of a core dump, is shared) of the process's writable memory."""
    found, head = [], None
    with open(f"/proc/{pid}/smaps", encoding="ascii", errors="replace") as f:
        for line in f:
            m = re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S+) ", line)
            if m:
                head = (int(m[1], 16), int(m[2], 16), m[3])
            elif line.startswith("VmFlags:") and head[2].startswith("rw"):
                found.append((head[0], head[1], " dd" not in line, head[2].endswith("s")))
    return found


def stretches(pagemap, start, end, shared):
    """The parts of a region that hold anything: of private memory those pages that were ever written."""
    if shared:
        return [(start, end)]
    pagemap.seek(start // PAGE * 8)
    pages = struct.unpack(f"{(end - start) // PAGE}Q", pagemap.read((end - start) // PAGE * 8))
    found = []
    for i, entry in enumerate(pages):
        if entry >> 62 == 0:  # neither present nor swapped out
            continue
        at = start + i * PAGE
        if found and found[-1][1] == at:
            found[-1] = (found[-1][0], at + PAGE)
        else:
            found.append((at, at + PAGE))
    return found


def not_empty(blob):
    """Without its stretches of zeros, which most of it are."""
    pieces = (blob[at:at + PIECE] for at in range(0, len(blob), PIECE))
    return b"".join(p for p in pieces if p != ZEROS[:len(p)])


def memory(pid, dumped_only):
    blob = []
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as mem, open(f"/proc/{pid}/pagemap", "rb", buffering=0) as pagemap:
        for start, end, dumped, shared in regions(pid):
            if dumped_only and not dumped:
                continue
            for first, last in stretches(pagemap, start, end, shared):
                for at in range(first, last, 1 << 22):
                    try:
                        mem.seek(at)
                        blob.append(not_empty(mem.read(min(1 << 22, last - at))))
                    except (OSError, ValueError):
                        pass
    return b"".join(blob)


def forms(name, raw):
    """Every way in which somebody might have written it."""
    return {f"{name} raw": raw, f"{name} hex": raw.hex().encode(), f"{name} HEX": raw.hex().upper().encode(),
            f"{name} base64": base64.b64encode(raw).rstrip(b"="),
            f"{name} bytes": " ".join(f"{b:02x}" for b in raw).encode()}


def z85_decode(text):
    digits = ("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#")
    out = b""
    for i in range(0, len(text), 5):
        v = 0
        for c in text[i:i + 5]:
            v = v * 85 + digits.index(c)
        out += v.to_bytes(4, "big")
    return out


def private_key(host):
    with open(host.key_file, encoding="ascii") as f:
        return re.search(r"^secret (\S{40})$", f.read(), re.M)[1]


class Secrets:
    def __init__(self):
        self.patterns = {}

    def add(self, name, raw):
        self.patterns.update(forms(name, raw))

    def found(self, blob):
        return sorted({name for name, p in self.patterns.items() if p in blob})

    def absent(self, where, blob):
        blob = blob.encode("utf-8", "surrogateescape") if isinstance(blob, str) else blob
        names = self.found(blob)
        assert not names, f"{where} shows {names}"


def ask_everything(w, secrets):
    """Every verb of tentctl, good and wrong, as text and as JSON: what it prints, and what it was started with."""
    host = w.a
    source = os.path.join(w.dir, "source")
    with open(source, "wb") as f:
        f.write(b"payload" * 10000)
    words = {
        "status": [], "segment list": [], "segment show": ["kv"], "segment withdraw": ["nosuch"],
        "segment publish": ["x", "--file", "/nosuch"], "put": [source, "b/kv"], "get": ["b/kv", os.path.join(w.dir, "back")],
        "peer list": [], "peer probe": ["b"], "config check": [], "config reload": [], "config dump": ["--effective", "--origin"],
        "bundle": ["--output", os.path.join(w.dir, f"bundle-{time.monotonic_ns()}.tar.gz")], "keygen": [], "verify": [], "top": ["--once", "--interval", "100ms"], "explain": ["b/kv"], "doctor": [],
        "events": ["--spans"], "trace": ["64"], "request show": ["64"],
        "transport disable": ["tcp"], "transport enable": ["tcp"], "pause": [], "resume": [], "drain": ["--grace", "soon"],  # that one would end the data plane: asked wrongly
        "postmortem": [], "version": [],
    }
    known = [line.split("\t")[0] for line in host.tentctl_raw("list-verbs").stdout.splitlines()]
    assert sorted(known) == sorted(words), set(known) ^ set(words)
    for verb, args in words.items():
        for json_flag in ([], ["-j"]):
            r = host.tentctl(*json_flag, *verb.split(), *args)
            secrets.absent(f"tentctl {verb}", r.stdout + r.stderr)
    r = host.tentctl("keygen", "--show")
    assert r.returncode == 0, r.stderr
    secrets.absent("tentctl keygen --show", r.stdout + r.stderr)
    for wrong in (["get", "b/nosuch", "x"], ["put", source, "nobody/kv"], ["explain", "nosuch"], ["peer", "probe", "c"]):
        r = host.tentctl(*wrong)
        assert r.returncode != 0, wrong
        secrets.absent(f"tentctl {wrong}", r.stdout + r.stderr)


def look_around(w, secrets):
    """Logs, pages, argument lists, environments, files of the runtime directories."""
    for h in w.hosts:
        for path in ("/metrics", "/metrics/openmetrics", "/health", "/live", "/ready", "/diagnostics"):
            secrets.absent(f"{h.name} {path}", h.http(path)[1])
        for which, p in h.procs.items():
            secrets.absent(f"{h.name} {which} log", p.text())
            for file in ("cmdline", "environ"):
                with open(f"/proc/{p.pid}/{file}", "rb") as f:
                    secrets.absent(f"{h.name} {which} {file}", f.read())
        for name in os.listdir(h.run):
            path = os.path.join(h.run, name)
            if os.path.isfile(path):
                with open(path, "rb") as f:
                    secrets.absent(path, f.read())
    for p in w.others:
        secrets.absent(p.args[0], p.text())


def datagram_keys(w, tickets):
    """A control plane keeps the key of a ticket right behind it (struct cp_peer)."""
    keys = set()
    for h in w.hosts:
        blob = memory(h.procs["controlplane"].pid, False)
        for t in tickets:
            for m in re.finditer(re.escape(t), blob):
                key = blob[m.end():m.end() + 32]
                if len(set(key)) > 16:  # random, not padding
                    keys.add(key)
    assert keys, "no datagram key found: has struct cp_peer changed?"
    return keys


def core_of(pid):
    """[(offset, bytes)] of what a core file holds, which is mostly holes; None: there is none."""
    for name in (f"core.{pid}", "core"):
        if os.path.exists(name):
            with open(name, "rb", buffering=0) as f:
                found = list(data_of(f))
            os.unlink(name)
            return found
    return None


def data_of(f):
    end, at = os.fstat(f.fileno()).st_size, 0
    while at < end:
        try:
            at = os.lseek(f.fileno(), at, os.SEEK_DATA)
        except OSError:  # only a hole follows
            return
        hole = os.lseek(f.fileno(), at, os.SEEK_HOLE)
        yield at, os.pread(f.fileno(), hole - at, at)
        at = hole


def memory_of_core(core):
    """The memory in a 64-bit core file, without its notes: those hold the registers, see docs/security.md."""
    head = core[0][1]
    phoff, entry, cnt = struct.unpack_from("<Q", head, 32)[0], *struct.unpack_from("<HH", head, 54)
    notes = [(at, at + size) for kind, _, at, _, _, size in
             (struct.unpack_from("<IIQQQQ", head, phoff + i * entry) for i in range(cnt)) if kind == PT_NOTE]
    found = []
    for at, data in core:
        for first, last in notes:
            a, b = max(first - at, 0), min(last - at, len(data))
            if a < b:
                data = data[:a] + bytes(b - a) + data[b:]
        found.append(not_empty(data))
    assert notes and sum(map(len, found)) > 1 << 20, "hardly any memory in the core file"
    return b"".join(found)


def crash(w, secrets, host, which, cores):
    p = host.procs[which]
    if which == "dataplane":  # what a dump would hold, also where the kernel hands dumps to another program
        secrets.absent(f"dumpable memory of {host.name} {which}", memory(p.pid, True))
    p.signal(signal.SIGABRT)
    rc = p.wait(20)
    assert rc == -signal.SIGABRT, rc
    core = core_of(p.pid)
    if not cores:
        return
    if which == "controlplane":
        assert core is None, "the control plane left a core dump"
        return
    assert core is not None and core[0][1][:4] == b"\x7fELF", f"no core of {host.name} {which} in {os.getcwd()}"
    held = memory_of_core(core)
    assert host.run.encode() in held, "the core holds not even what is known to be in it"
    secrets.absent(f"memory in the core of {host.name} {which}", held)
    secrets.absent(f"log of {host.name} {which}", p.text())


def planted():
    if os.geteuid() != 0 and not os.access("/proc/self/mem", os.R_OK):
        print("cannot read the memory of other processes here")
        sys.exit(77)
    with open("/proc/sys/kernel/core_pattern", encoding="ascii") as f:
        cores = f.read().strip() in ("core", "core.%p")
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    except (ValueError, OSError):
        cores = False
    sniffer, secrets, here = Sniffer(), Secrets(), os.getcwd()
    with World(start=False) as w:
        os.chdir(w.dir)
        for h in w.hosts:
            secrets.add(f"private key of {h.name}", z85_decode(private_key(h)))
            secrets.patterns[f"private key of {h.name} Z85"] = private_key(h).encode()
            h.start_both()
        for h in w.hosts:
            h.wait_ready()
        w.serve(w.b, "kv", 8 << 20)
        w.serve(w.a, "kv", 8 << 20)
        w.finish_move(w.move(w.a, "b/kv", 1, "-b", "65536", "-d", "8"))
        w.finish_move(w.move(w.b, "a/kv", 1, "-b", "65536", "-d", "8"))
        w.b.tentctl("segment", "withdraw", "nosuch")
        wait_for("tickets seen", lambda: len(sniffer.tickets) >= 2)
        for i, t in enumerate(sorted(sniffer.tickets)):
            secrets.add(f"ticket {i}", t)
        for i, key in enumerate(sorted(datagram_keys(w, sniffer.tickets))):
            secrets.add(f"datagram key {i}", key)
        # the search finds what is there
        inside = secrets.found(memory(w.a.procs["controlplane"].pid, False))
        assert any("ticket" in n for n in inside) and any("private key of a" in n for n in inside), inside
        inside = secrets.found(memory(w.a.procs["dataplane"].pid, False))
        assert any("ticket" in n for n in inside), inside
        ask_everything(w, secrets)
        look_around(w, secrets)
        # an unlucky restart in between: everything is handed out and told again
        w.b.procs["controlplane"].kill()
        w.b.start("controlplane")
        w.b.wait_ready()
        assert w.a.tentctl("get", "b/kv", os.path.join(w.dir, "back")).returncode == 0
        for i, t in enumerate(sorted(sniffer.tickets)):
            secrets.add(f"ticket {i} then", t)
        look_around(w, secrets)
        for h in w.hosts:
            crash(w, secrets, h, "dataplane", cores)
        for h in w.hosts:
            secrets.absent("tentctl postmortem", h.tentctl("postmortem").stdout)
            crash(w, secrets, h, "controlplane", cores)
        os.chdir(here)
    sniffer.close()
    if not cores:
        print("no core files here: the memory that a dump would hold was searched instead")


run({"planted": planted})
