#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the JSON of tentbench, memcpy_loop and tcp_loop as one SVG: throughput, latency and CPU cost over the size of
an operation. Writes the SVG itself; needs nothing but Python.

  perf/plot.py OUT.svg FILE.json ...      a PNG of it: rsvg-convert -o OUT.png OUT.svg (deploy/packages.sh perf)"""
import json
import math
import sys
from html import escape

WIDTH, PANEL, GAP, LEFT, RIGHT, TOP = 980, 270, 62, 76, 250, 64
COLORS = ["#0b6e99", "#d1495b", "#3a7d44", "#8d5fb5", "#c77700", "#4a4e69", "#00897b", "#ad1457", "#6d7a00", "#5d4037"]
DASHES = {"tentbench": "", "memcpy_loop": "7 4", "tcp_loop": "2 4"}


def size_text(b):
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if b >= unit:
            return f"{b / unit:g} {name}"
    return f"{b} B"


def time_text(us):
    return f"{us / 1e6:g} s" if us >= 1e6 else f"{us / 1e3:g} ms" if us >= 1e3 else f"{us:g} µs"


def load(paths):
    """({label: (tool, [cell by size])}, [environment])."""
    series, environments = {}, []
    for path in paths:
        with open(path, encoding="utf-8") as f:
            doc = json.load(f)
        environments.append(doc["environment"])
        for c in doc["cells"]:
            if not c["ok"]:
                print(f"{path}: left out: {c['op']} {size_text(c['bytes'])}: {c['error']}", file=sys.stderr)
                continue
            who = "tent " + "+".join(c["transports"]) if c["tool"] == "tentbench" else c["tool"]
            label = f"{who} {c['op']} depth {c['depth']} {c['pool']}"
            label += " busy" if c.get("application") == "busy" else ""
            series.setdefault(label, (c["tool"], []))[1].append(c)
    for _, cells in series.values():
        cells.sort(key=lambda c: c["bytes"])
    return series, environments


def log_ticks(lo, hi):
    """1, 10, 100 ..., with 2 and 5 between them when that is not too many."""
    first, last = math.floor(math.log10(lo)), math.ceil(math.log10(hi))
    steps = (1, 2, 5) if last - first <= 2 else (1,)
    return [t for e in range(first, last + 1) for t in (s * 10 ** e for s in steps) if lo <= t <= hi * 1.0001]


def linear_ticks(hi):
    step = next(s * 10 ** e for e in range(-3, 6) for s in (1, 2, 5) if hi / (s * 10 ** e) <= 6)
    return [i * step for i in range(int(hi / step) + 1)]


class Panel:
    """One diagram. `pick` gives the value of a cell, or None."""

    def __init__(self, index, title, sizes, values, log, text):
        self.y0 = TOP + index * (PANEL + GAP)
        self.title, self.log, self.text = title, log, text
        self.xlo, self.xhi = math.log2(min(sizes)), math.log2(max(sizes))
        if self.xlo == self.xhi:
            self.xlo, self.xhi = self.xlo - 1, self.xhi + 1
        self.lo, self.hi = (min(values) / 1.15, max(values) * 1.15) if log else (0, max(values) * 1.08)
        self.sizes = sizes

    def x(self, size):
        return LEFT + (math.log2(size) - self.xlo) / (self.xhi - self.xlo) * (WIDTH - LEFT - RIGHT)

    def y(self, v):
        part = math.log(v / self.lo) / math.log(self.hi / self.lo) if self.log else v / self.hi
        return self.y0 + PANEL * (1 - part)

    def frame(self):
        right = WIDTH - RIGHT
        out = [f'<text x="{LEFT}" y="{self.y0 - 10}" class="title">{escape(self.title)}</text>',
               f'<rect x="{LEFT}" y="{self.y0}" width="{right - LEFT}" height="{PANEL}" class="frame"/>']
        for t in log_ticks(self.lo, self.hi) if self.log else linear_ticks(self.hi):
            y = self.y(t)
            out.append(f'<line x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>'
                       f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{escape(self.text(t))}</text>')
        for s in self.sizes:
            x = self.x(s)
            out.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{self.y0}" y2="{self.y0 + PANEL}" class="grid"/>'
                       f'<text x="{x:.1f}" y="{self.y0 + PANEL + 17}" text-anchor="middle">{size_text(s)}</text>')
        return out

    def line(self, cells, pick, color, dash, faint=False):
        points = [(self.x(c["bytes"]), self.y(pick(c))) for c in cells if pick(c)]
        style = f'stroke="{color}" stroke-dasharray="{dash}"' + (' stroke-opacity="0.4"' if faint else "")
        out = ['<polyline fill="none" stroke-width="2" %s points="%s"/>' % (
            style, " ".join(f"{x:.1f},{y:.1f}" for x, y in points))]
        if not faint:
            out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>' for x, y in points]
        return out


def draw(series, environments):
    cells = [c for _, cs in series.values() for c in cs]
    sizes = sorted({c["bytes"] for c in cells})
    gbps = lambda c: c["gb_per_s"]
    p50, p99 = lambda c: c["latency_us"]["p50"], lambda c: c["latency_us"]["p99"]
    cpu = lambda c: c["cpu_s_per_gb"]
    panels = [
        (Panel(0, "Throughput, GB/s (1e9 bytes)", sizes, [gbps(c) for c in cells], False, lambda t: f"{t:g}"), [gbps]),
        (Panel(1, "Latency: p50 (dots) and p99 (faint)", sizes, [f(c) for c in cells for f in (p50, p99)], True,
               time_text), [p50, p99]),
        (Panel(2, "CPU seconds per GB, all processes", sizes, [cpu(c) for c in cells if cpu(c)] or [1], True,
               lambda t: f"{t:g}"), [cpu]),
    ]
    height = TOP + len(panels) * (PANEL + GAP)
    e = environments[0]
    others = max(c["other_cpus"] for c in cells)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">',
           "<style>text{font:12px sans-serif;fill:#333}.title{font-size:14px;font-weight:bold}.grid{stroke:#e3e3e3}"
           ".frame{fill:none;stroke:#999}.env{font-size:11px;fill:#777}</style>",
           f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
           f'<text x="{LEFT}" y="24" class="env">{escape(e["cpu"])}, {e["cpus_online"]} CPUs, {escape(e["kernel"])}, '
           f'{escape(e["version"])} ({escape(e["commit"])}), {escape(e["started"])}; '
           f'others used up to {others:.1f} CPUs</text>']
    for panel, picks in panels:
        out += panel.frame()
        for i, (tool, cs) in enumerate(series.values()):
            for n, pick in enumerate(picks):
                out += panel.line(cs, pick, COLORS[i % len(COLORS)], DASHES.get(tool, ""), faint=n > 0)
    for i, (label, (tool, _)) in enumerate(series.items()):
        x, y = WIDTH - RIGHT + 16, TOP + 10 + i * 20
        out.append(f'<line x1="{x}" x2="{x + 24}" y1="{y}" y2="{y}" stroke="{COLORS[i % len(COLORS)]}" '
                   f'stroke-width="2" stroke-dasharray="{DASHES.get(tool, "")}"/><text x="{x + 30}" y="{y + 4}">{escape(label)}</text>')
    return "\n".join([*out, "</svg>", ""])


def main():
    if len(sys.argv) < 3 or not sys.argv[1].endswith(".svg"):
        sys.exit(f"usage: {__doc__}")
    series, environments = load(sys.argv[2:])
    if not series:
        sys.exit("perf/plot.py: no cell that could be drawn")
    with open(sys.argv[1], "w", encoding="utf-8") as f:
        f.write(draw(series, environments))


if __name__ == "__main__":
    main()
