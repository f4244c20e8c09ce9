#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus scrapes a pair of hosts, in both formats, while data planes are killed and lanes are cut. What it stored is
then asked for in its own language: what is left of every equation (equations.promql) is 0 when nothing moves any more, every
finding of promtool is a name that the contract fixes, and the exemplars that it took are traces that the logs tell of."""
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.parse
import urllib.request

from load import Cut
from pair import SLOW, World, free_port, run, wait_for

HERE = os.path.dirname(os.path.abspath(__file__))
TOOLS = subprocess.run([os.path.join(HERE, "../../deploy/packages.sh"), "--tools"], capture_output=True, text=True, check=True,
                       timeout=60).stdout.strip()
SCRAPE_S = 0.25
FORMATS = {"text": "/metrics", "openmetrics": "/metrics/openmetrics"}

# What promtool says of names that contract and RFC fix to the letter: {message: (families, why they stay)}.
FIXED_BY_CONTRACT = {
    "metric names should not contain abbreviated units":
        (lambda name: name.startswith("tent_") and name.endswith("_us"),
         "the contract names its latency families in microseconds, with the suffix _us"),
}


def tool(name):
    path = shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), TOOLS]))
    if path is None:
        print(f"{name} is not here (deploy/packages.sh test)")
        sys.exit(77)
    return path


class Prometheus:
    """The server, its data in the World's folder, on a port of this test's own namespace; ends with the World."""

    def __init__(self, world):
        self.port = free_port()
        folder = os.path.join(world.dir, "prometheus")
        os.makedirs(folder)
        config = os.path.join(folder, "prometheus.yml")
        targets = []
        for h in world.hosts:
            with open(os.path.join(h.run, "http.port"), encoding="ascii") as f:
                targets.append({"targets": [f.read().strip()], "labels": {"instance": h.name}})
        with open(config, "w", encoding="utf-8") as f:  # JSON is YAML
            json.dump({"global": {"scrape_interval": f"{round(SCRAPE_S * 1000)}ms", "scrape_timeout": f"{round(SCRAPE_S * 1000)}ms"},
                       "scrape_configs": [{"job_name": job, "metrics_path": path, "static_configs": targets}
                                          for job, path in FORMATS.items()]}, f)
        self.p = world.spawn("prometheus", [
            tool("prometheus"), f"--config.file={config}", f"--storage.tsdb.path={folder}/data", "--log.level=warn",
            f"--web.listen-address=127.0.0.1:{self.port}", "--enable-feature=exemplar-storage"])
        wait_for("Prometheus takes questions", lambda: self.get("/-/ready") is not None, 30)

    def get(self, path):
        assert self.p.alive(), self.p.text()[-3000:]
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10 * SLOW) as r:
                return r.read().decode()
        except urllib.error.HTTPError as e:
            if e.code == 503:
                return None  # it starts
            raise AssertionError(f"{path}: {e.code} {e.read().decode()}") from e
        except OSError:
            return None

    def api(self, what, **args):
        answer = json.loads(self.get(f"/api/v1/{what}?{urllib.parse.urlencode(args)}"))
        assert answer["status"] == "success", answer
        return answer["data"]

    def query(self, text):
        """[(labels, value)] of now."""
        return [(s["metric"], float(s["value"][1])) for s in self.api("query", query=text)["result"]]

    def one(self, text):
        """The value of a query of one sample; None when there is none."""
        found = self.query(text)
        assert len(found) <= 1, found
        return found[0][1] if found else None

    def scraped_since(self, t):
        """Every target was scraped to its end after time t."""
        found = self.query("timestamp(scrape_samples_scraped)")
        return len(found) == 2 * len(FORMATS) and all(at > t for _, at in found)


def equations():
    """[(title, query)] of equations.promql."""
    with open(os.path.join(HERE, "equations.promql"), encoding="utf-8") as f:
        paragraphs = f.read().strip().split("\n\n")[1:]
    return [tuple(p.removeprefix("# ").split("\n", 1)) for p in paragraphs]


def dies(w, prom, host):
    """kill -9 of a data plane, until Prometheus saw it gone; then its successor."""
    up = f'min_over_time(tent_dataplane_up{{job="text",instance="{host.name}"}}[1h])'
    assert prom.one(up) == 1, f"{host.name} has not been up all the time"
    host.procs["dataplane"].kill()
    wait_for("Prometheus sees it dead", lambda: prom.one(up) == 0)
    host.start("dataplane")
    host.wait_ready()


def faults(w, prom):
    """Under a paced load on both transports: both data planes die, then lanes are reset and fall silent."""
    w.serve(w.b, "kv", 8 << 20)
    w.serve(w.a, "own", 8 << 20)
    loads = [w.load(w.a, "b/kv", "-b", "65536", "-d", "16", "-q", "800", "-m", "300"),
             w.load(w.a, "own", "-b", "65536", "-d", "16", "-q", "800")]
    for host in (w.a, w.b):
        dies(w, prom, host)

    def count(family, **labels):
        return w.a.metric(family, **labels) or 0

    for how, outcome in (("reject with tcp reset", "failed"), ("drop", "timeout")):
        wait_for("bytes move", lambda before=count("tent_write_requests_total", transport="tcp"):
                 count("tent_write_requests_total", transport="tcp") > before + 10, 20)
        before = count("tent_transport_attempt_outcomes_total", transport="tcp", outcome=outcome)
        with Cut(w.b.data_port, how):
            wait_for(f"attempts end {outcome}", lambda before=before, outcome=outcome:
                     count("tent_transport_attempt_outcomes_total", transport="tcp", outcome=outcome) > before, 20)
    for p in loads:
        s = w.finish_move(p)
        assert s["wrong"] == 0 and s["lost"] == 0, s


def quiet(w, prom):
    """Nothing moves, and Prometheus has looked since."""
    for h in w.hosts:
        wait_for(f"{h.name} is idle", h.idle, 20)
    now = time.time()
    wait_for("a look at the quiet pair", lambda: prom.scraped_since(now + SCRAPE_S))


def all_equations_hold(prom):
    names = {h + " " + f for h in "ab" for f in FORMATS}
    for title, query in equations():
        found = prom.query(query)
        seen = {f"{m['instance']} {m['job']}" for m, _ in found}
        assert seen == names or title.startswith("8 "), f"{title}: only {seen} of {names}"
        left = [(m, v) for m, v in found if v != 0]
        assert not left, f"equation {title}: {left}\n{query}"
        print(f"  {title}: {len(found)} times 0")
    for what in ("tent_logical_requests_started_total", "tent_transport_attempt_failures_total",
                 'tent_transport_attempt_outcomes_total{outcome="timeout"}', 'tent_admission_events_total{event="admit"}',
                 "tent_rpc_calls_total", "tent_selection_calls_total"):
        assert prom.query(f'sum({what}) by (job, instance) > 0 and on(instance) tent_dataplane_up{{instance="a"}}'), \
            f"nothing to hold: no {what}"


def promtool_finds_fixed_names_only(host):
    status, text = host.http("/metrics")
    assert status == 200, text
    r = subprocess.run([tool("promtool"), "check", "metrics"], input=text, capture_output=True, text=True, timeout=60 * SLOW)
    findings = [line.split(" ", 1) for line in (r.stdout + r.stderr).splitlines()]
    assert r.returncode in (0, 3), f"exit {r.returncode}: {r.stdout}{r.stderr}"  # 3: findings, 1: it cannot read the page
    for name, message in findings:
        fixed, _ = FIXED_BY_CONTRACT.get(message, (lambda name: False, ""))
        assert fixed(name), f"promtool: {name}: {message}"
    print(f"  promtool: {len(findings)} findings, all of them names fixed by the contract")


def exemplars_are_our_traces(w, prom, since):
    def traces(text):
        return {json.loads(line[line.index("{"):])["trace_id"] for line in text.splitlines() if '"tent.transport_attempt"' in line}

    taken = [e["labels"]["trace_id"]
             for series in prom.api("query_exemplars", query="tent_transport_attempt_latency_us_bucket", start=since, end=time.time())
             for e in series["exemplars"]]
    assert taken, "Prometheus has no exemplar"
    logged = traces(w.a.procs["controlplane"].text())
    known = [t for t in taken if t in logged]
    assert known, f"none of {len(taken)} exemplars is one of {len(logged)} logged traces: {taken[:5]}"
    r = w.a.tentctl("trace", known[-1])
    assert r.returncode == 0 and f"trace {known[-1]}" in r.stdout and "|- attempt " in r.stdout, r.stdout + r.stderr
    print(f"  exemplars: {len(taken)} taken, {len(known)} of them among {len(logged)} logged traces")


def scraped():
    tool("promtool")
    since = time.time()
    with World(extra={"metrics/openmetrics_enabled": True, "observability/trace_sample_rate_ppm": 20_000}) as w:
        prom = Prometheus(w)
        wait_for("first scrapes", lambda: prom.scraped_since(0))
        faults(w, prom)
        quiet(w, prom)
        all_equations_hold(prom)
        assert prom.one("min(min_over_time(up[1h]))") == 1, prom.api("targets")
        promtool_finds_fixed_names_only(w.a)
        exemplars_are_our_traces(w, prom, since)
        for h in w.hosts:
            h.verify()


def recovered():
    """Equation 8 as the contract tells it, with failovers that happened: each request that was recovered costs one failed attempt
    on the first transport, one failover, and one completed attempt on the second; all of that in PromQL."""
    left = {
        "each failed attempt is a failover": 'sum by (job, instance) (tent_transport_attempt_outcomes_total{transport="tcp",outcome!="completed"})'
                                             ' - sum by (job, instance) (tent_transport_failover_total{from="tcp",to="shm"})',
        "each failover is an attempt more": "sum by (job, instance) (tent_transport_attempts_total)"
                                            " - sum by (job, instance) (tent_logical_requests_started_total)"
                                            " - sum by (job, instance) (tent_transport_failover_total)",
        "each request completes on one of them": 'sum by (job, instance) (tent_transport_attempt_outcomes_total{outcome="completed"})'
                                                 ' - sum by (job, instance) (tent_logical_request_outcomes_total{outcome="completed"})',
        "none fails": "sum by (job, instance) (tent_logical_requests_started_total)"
                      ' - sum by (job, instance) (tent_logical_request_outcomes_total{outcome="completed"})',
    }
    extra = {"metrics/openmetrics_enabled": True, "admission/merge": False,
             "policies": [{"name": "lanes", "transports": ["tcp", "shm"]}]}
    with World(extra=extra) as w:
        prom = Prometheus(w)
        w.serve(w.a, "own", 8 << 20)
        load = w.load(w.a, "own", "-b", "65536", "-d", "16", "-q", "800", "-m", "60000")
        failovers = 'sum(tent_transport_failover_total{job="text",instance="a",from="tcp",to="shm"})'
        for _ in range(2):
            before = prom.one(failovers) or 0
            wait_for("it goes over lanes", lambda n=w.a.metric("tent_write_requests_total", transport="tcp") or 0:
                     (w.a.metric("tent_write_requests_total", transport="tcp") or 0) > n + 10, 20)
            with Cut(w.a.data_port, "reject with tcp reset"):
                wait_for("requests are recovered", lambda: (prom.one(failovers) or 0) > before, 20)
        s = w.finish_move(load)
        assert s["wrong"] == 0 and s["lost"] == 0 and s["failed"] == 0, s
        quiet(w, prom)
        for title, query in left.items():
            found = [(m, v) for m, v in prom.query(query) if m["instance"] == "a"]
            assert len(found) == len(FORMATS) and all(v == 0 for _, v in found), f"{title}: {found}\n{query}"
        print(f"  equation 8: {prom.one(failovers):.0f} failovers, nothing left")
        w.a.verify()


run({"scraped": scraped, "recovered": recovered})
