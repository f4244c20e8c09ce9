#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/runbook.md as an operator uses it: its commands are taken from the page and run as they stand there, against a host whose
lanes to the other one were cut, or whose peer died. What one prints is what the next one needs, and each prints what the page says."""
import os
import re
import subprocess

from load import Cut
from pair import BIN, SLOW, World, run, wait_for

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/runbook.md")
HTTP_PORT = 9815  # the default, as the page has it; this network namespace is the test's own


def page():
    with open(PAGE, encoding="utf-8") as f:
        return f.read()


def commands():
    """{heading: (command, what the page says that it prints)}"""
    found = {}
    for section in re.split(r"^### ", page(), flags=re.M)[1:]:
        block = re.search(r"^```sh\n(.*?)\n```\n\n(Prints .*?)(?:\n\n|\Z)", section, re.M | re.S)
        found[section.partition("\n")[0]] = (block[1], block[2].replace("\n", " "))
    assert len(found) == page().count("```sh") == 6 and [h[:2] for h in found][:5] == ["1.", "2.", "3.", "4.", "5."], found
    return found


class Operator:
    """Has curl, tentctl and the log of a host, and a pencil."""

    def __init__(self, w, host):
        self.host, self.notes = host, {"PEER/SEGMENT": "b/kv"}
        self.path = os.path.join(w.dir, "bin")
        os.mkdir(self.path)
        self.tool("tentctl", f'exec {BIN["tentctl"]} -c {host.config} "$@"')
        self.tool("journalctl", f"exec cat {host.procs['controlplane'].log}")

    def tool(self, name, line):
        file = os.path.join(self.path, name)
        with open(file, "w", encoding="ascii") as f:
            f.write(f"#!/bin/sh\n{line}\n")
        os.chmod(file, 0o755)

    def do(self, number):
        """Runs a command of the page; what it printed, and the words in backticks that the page promises."""
        (command, text), = [c for heading, c in commands().items() if heading.startswith(number)]
        for word, value in self.notes.items():
            command = command.replace(word, value)
        assert not re.search(r"\b[A-Z]{5,}\b", command), f"nobody has said what this is: {command}"
        r = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True, timeout=60 * SLOW,
                           env={**os.environ, "PATH": f"{self.path}:{os.environ['PATH']}"})
        assert r.returncode == 0, f"{command}: exit {r.returncode}\n{r.stdout}\n{r.stderr}"
        print(f"$ {command}\n{r.stdout.rstrip()}\n")
        return r.stdout, re.findall(r"`([^`]+)`", text.split(". ")[0])

    def note(self, **values):
        self.notes.update(values)


def promised(out, words, but=()):
    missing = [w for w in words if w not in out and w not in but]
    assert not missing, f"the page promises {missing}:\n{out}"


class Dead:
    """The data plane of a host, for a while."""

    def __init__(self, host):
        self.host = host

    def __enter__(self):
        self.host.procs["dataplane"].kill()

    def __exit__(self, *what):
        self.host.start("dataplane")


def walk(fault, reasons, way):
    """From "requests are failing" to the cause. reasons: what the application's requests may have failed with; way: what
    explain must say of the way there."""
    with World(start=False, extra={"observability/stuck_request_threshold_us": 100_000}) as w:
        w.a.write_config([w.b], {"metrics/http_port": HTTP_PORT, "observability/stuck_request_threshold_us": 100_000,
                                 "transports/tcp/progress_timeout_ms": 1000})
        for h in w.hosts:
            h.start_both()
        for h in w.hosts:
            h.wait_ready()
        w.serve(w.b, "kv", 8 << 20)
        load = w.load(w.a, "b/kv", "-b", "65536", "-d", "8", "-q", "50", "-m", "1500")
        with fault(w.b):
            wait_for("requests fail", lambda: (w.a.metric("tent_terminal_failures_total", transport="tcp") or 0) >= 4, 30)
            follow_the_page(Operator(w, w.a), reasons, way)
        w.finish_move(load)


def follow_the_page(op, reasons, way):
    out, words = op.do("1.")
    promised(out, words)
    out, words = op.do("2.")
    promised(out, words)
    where = [dict(re.findall(r'(\w+)="(\w+)"', line)) for line in out.splitlines()]
    assert where and all(set(x) == {"transport", "phase", "reason"} for x in where), out
    assert {x["transport"] for x in where} <= {"tcp", "unspec"} and {x["reason"] for x in where} <= reasons, out
    op.note(**{key.upper(): value for key, value in next(x for x in reversed(where) if x["transport"] == "tcp").items()})
    out, words = op.do("3.")
    promised(out, words, but=["phase/reason"])
    found = re.search(r"request\.failed tcp (?:read|write) (\w+)/(\w+) .*request (\d+) (?:attempt (\d+) )?trace ([0-9a-f]{32})$", out, re.M)
    assert found, out
    phase, reason, request, attempt, trace = found.groups()
    assert {"transport": "tcp", "phase": phase, "reason": reason} in where, (out, where)
    op.note(REQUEST=request, TRACE=trace)
    out, words = op.do("4.")
    promised(out, words, but=["transport.failover", "request.stuck", "transport.attempt_failed"])
    assert trace in out and f"{phase}/{reason}" in out and (attempt is None or f"attempt {attempt} over tcp" in out), out
    out, words = op.do("5.")
    promised(out, words, but=["use"])
    assert any(x in out for x in way), out
    out, words = op.do("Older")
    promised(out, ["tent.request.failed", f'"request_id":{request},', f'"phase":"{phase}"', f'"reason":"{reason}"',
                   *([f'"attempt_id":{attempt},'] if attempt else []), *(f'"{w}"' for w in ("status", "duration_us", "config_generation"))])


def dropped():
    walk(lambda host: Cut(host.data_port, "drop"), {"timeout", "unavailable"}, ["lane being opened", "cooling", "imed out"])


def dead():
    walk(Dead, {"peer_closed", "unavailable", "timeout"}, ["the data plane of host b is dead"])


def tables():
    """The closed sets of phases, reasons and readiness reasons: all of them are explained, and nothing else."""
    with open(os.path.join(os.path.dirname(PAGE), "../common/domain.h"), encoding="utf-8") as f:
        domain = f.read()
    with open(os.path.join(os.path.dirname(PAGE), "../controlplane/observe/ready.h"), encoding="utf-8") as f:
        ready = f.read()
    for title, names in (("phase", re.search(r"TN_PHASE_LIST\(X\)((?:.*\\\n)*.*)", domain)[1]),
                         ("reason", re.search(r"TN_REASON_LIST\(X\)((?:.*\\\n)*.*)", domain)[1]),
                         ("This host", re.search(r"CP_READY_REASON_LIST\(X\)((?:.*\\\n)*.*)", ready)[1])):
        wanted = set(re.findall(r"X\(\w+, (\w+)\)", names))
        section = re.search(rf"^## {title}.*?(?=^## |\Z)", page(), re.M | re.S)[0]
        rows = {n for row in re.findall(r"^\| ([a-z_, ]+) \|", section, re.M) for n in row.split(", ")} - {"phase", "reason", "meaning"}
        assert rows == wanted, f"{title}: {rows ^ wanted}"


run({"dropped": dropped, "dead": dead, "tables": tables})
