#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pairs on networks as they are: IPv6, link-local addresses with zones, hosts with several addresses, NAT. Each host has a
network namespace of its own; a veth pair joins them. Every transfer is checked byte for byte by the mover."""
import functools
import json
import os
import re
import subprocess
import sys

from pair import BIN, METRICS, SLOW, Host, Process, World, run, wait_for

FETCH = """
import http.client, sys
host, port = sys.argv[1].rsplit(":", 1)
c = http.client.HTTPConnection(host.strip("[]"), int(port), timeout=5)
c.request("GET", sys.argv[2])
r = c.getresponse()
sys.stdout.write(f"{r.status}\\n{r.read().decode()}")
"""


class Net:
    """Two namespaces, joined by interfaces ta (of a) and tb (of b). They live as long as their sleeping processes."""

    def __init__(self):
        self.holders = {}

    def __enter__(self):
        try:
            ours = os.readlink("/proc/self/ns/net")
            for name in "ab":
                p = subprocess.Popen(["unshare", "--net", "sleep", "600"])
                self.holders[name] = p
                wait_for("a namespace", lambda p=p: os.readlink(f"/proc/{p.pid}/ns/net") != ours)
            a, b = (str(self.holders[n].pid) for n in "ab")
            self.do("a", "ip", "link", "add", "ta", "type", "veth", "peer", "name", "tb", "netns", b)
            for name in "ab":
                self.do(name, "ip", "link", "set", "lo", "up")
                self.do(name, "ip", "link", "set", "t" + name, "addrgenmode", "none")
                self.do(name, "ip", "link", "set", "t" + name, "up")
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def within(self, name):
        return ["nsenter", f"--net=/proc/{self.holders[name].pid}/ns/net"]

    def do(self, name, *command):
        r = subprocess.run([*self.within(name), *command], capture_output=True, text=True, timeout=30 * SLOW)
        assert r.returncode == 0, f"{name}: {' '.join(command)}: {r.stderr}"
        return r.stdout

    def address(self, name, text):
        v6 = ["nodad"] if ":" in text else []
        self.do(name, "ip", "addr", "add", text, "dev", "t" + name, *v6)

    def __exit__(self, *unused):
        for p in self.holders.values():
            p.kill()
            p.wait()


def with_port(address, port):
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


class NetHost(Host):
    """A host of the network `net` (None: this namespace) whose addresses are addresses[name]."""

    def __init__(self, net, addresses, own, world, name):
        super().__init__(world, name)
        self.prefix = net.within(name) if net is not None else []
        self.address, self.own = addresses[name], own.get(name, {})

    def zoned(self, address, host):
        return f"{address}%t{host.name}" if address.startswith("fe80:") else address

    def write_config(self, peers, extra):
        peer = peers[0]
        mine = self.zoned(self.address, self)
        super().write_config(peers, {
            "control/bind": f"tcp://{with_port(mine, self.control_port)}",
            "transports/tcp/bind_address": mine,
            "metrics/http_host": mine,
            "peers": [{"name": peer.name, "public_key": peer.public_key,
                       "address": f"tcp://{with_port(self.zoned(peer.address, self), peer.control_port)}",
                       **self.own.get("peer", {})}],
            **extra, **self.own.get("config", {})})

    def start(self, which, env=None):
        self.procs[which] = Process([*self.prefix, BIN[which], "-c", self.config],
                                    os.path.join(self.dir, which + ".log"), env)
        return self.procs[which]

    def tentctl_raw(self, *args, timeout=60):
        return subprocess.run([*getattr(self, "prefix", []), BIN["tentctl"], *args], capture_output=True, text=True,
                              timeout=timeout * SLOW)

    def http(self, path):
        try:
            with open(os.path.join(self.run, "http.port"), encoding="ascii") as f:
                where = f.read().strip()
        except OSError as e:
            return 0, str(e)
        r = subprocess.run([*self.prefix, sys.executable, "-c", FETCH, where, path], capture_output=True, text=True,
                           timeout=30 * SLOW)
        if r.returncode != 0:
            return 0, r.stderr
        status, text = r.stdout.split("\n", 1)
        return int(status), text


def world(net, addresses, own=None):
    return World(make=functools.partial(NetHost, net, addresses, own or {}))


def moves(w, host, ref):
    """A second of verified READs and WRITEs over lanes."""
    done = w.finish_move(w.move(host, ref, 1, "-b", "65536", "-d", "8"))
    if METRICS:
        assert host.metric("tent_write_bytes_total", transport="tcp") > 0, done


def used(doc):
    return next(t for t in doc["data_plane"]["transports"] if t["verdict"] == "use")


def both_ways(w):
    w.serve(w.b, "kv", 4 << 20)
    w.serve(w.a, "own", 4 << 20)
    moves(w, w.a, "b/kv")
    moves(w, w.b, "a/own")
    for h, peer in ((w.a, "b"), (w.b, "a")):
        h.tentctl_json("peer", "probe", peer)
        doc = h.tentctl_json("explain", peer)
        assert used(doc)["why"] == "ready", doc
        h.verify()


def ends(w):
    w.a.stop()
    w.b.stop()


def sources(net, w):
    """Addresses from which lanes reach b, as the kernel has them."""
    out = net.do("b", "ss", "-Htn", "state", "established", f"sport = :{w.b.data_port}")
    return {line.split()[-1].rsplit(":", 1)[0] for line in out.splitlines()}


def bounded(do, w):
    """Which of the lanes that b took have a receive buffer of 1 MiB (the kernel doubles it) that it does not tune."""
    out = do("ss", "-Htnm", "state", "established", f"sport = :{w.b.data_port}")
    return [rb == "2097152" for rb in re.findall(r"\brb(\d+)", out)]


def ipv6_loopback():
    """Everything on ::1. What piles up between two ends on one host is bounded, where the machine lets a socket be."""
    with open("/proc/sys/net/core/rmem_max", encoding="ascii") as f:
        may = int(f.read()) >= 1 << 20
    with world(None, {"a": "::1", "b": "::1"}) as w:
        both_ways(w)
        lanes = bounded(lambda *command: subprocess.check_output(command, text=True, timeout=30 * SLOW), w)
        assert lanes and all(lanes) == may, lanes
        ends(w)


def ipv6_pair():
    """Unique local addresses on a veth pair."""
    with Net() as net:
        net.address("a", "fd00:7e57::1/64")
        net.address("b", "fd00:7e57::2/64")
        with world(net, {"a": "fd00:7e57::1", "b": "fd00:7e57::2"}) as w:
            both_ways(w)
            lanes = bounded(functools.partial(net.do, "b"), w)
            assert lanes and not any(lanes), lanes  # a network's buffers are for the kernel to tune
            ends(w)


def link_local():
    """Only link-local addresses; each host names the link by an interface that the other does not have."""
    with Net() as net:
        net.address("a", "fe80::a1/64")
        net.address("b", "fe80::b2/64")
        with world(net, {"a": "fe80::a1", "b": "fe80::b2"}) as w:
            both_ways(w)
            addresses = w.a.tentctl_json("explain", "b")["data_plane"]["peer"]["endpoints"]
            assert addresses == [f"[fe80::b2%ta]:{w.b.data_port}"], addresses
            ends(w)


def multihomed():
    """Two addresses on one interface: the control plane on the first, lanes from the second, and only that is let in."""
    with Net() as net:
        net.address("a", "10.99.0.1/24")
        net.address("a", "10.99.0.11/24")
        net.address("b", "10.99.0.2/24")
        own = {"a": {"config": {"transports/tcp/bind_address": "10.99.0.11"}},
               "b": {"peer": {"data_addresses": ["10.99.0.11"]}}}
        with world(net, {"a": "10.99.0.1", "b": "10.99.0.2"}, own) as w:
            both_ways(w)
            assert sources(net, w) == {"10.99.0.11"}, sources(net, w)
            ends(w)


def nat_lanes(net, w, rule):
    net.do("a", "nft", "add table ip lanes")
    net.do("a", "nft", "add chain ip lanes out { type nat hook postrouting priority 100; }")
    net.do("a", "nft", f"add rule ip lanes out ip daddr 10.99.0.2 {rule} snat to 10.99.0.77")


def nat():
    """Lanes leave through a translation that the control connection does not have: refused with a text that says so on both
    sides, without a word of keys; served when the receiver lists the address."""
    with Net() as net:
        net.address("a", "10.99.0.1/24")
        net.address("a", "10.99.0.77/24")  # answers for the translated address
        net.address("b", "10.99.0.2/24")
        with world(net, {"a": "10.99.0.1", "b": "10.99.0.2"}) as w:
            nat_lanes(net, w, f"tcp dport {w.b.data_port}")
            w.serve(w.b, "kv", 4 << 20)
            source = os.path.join(w.dir, "file")
            with open(source, "wb") as f:
                f.write(os.urandom(300000))
            r = w.a.tentctl("get", "b/kv", os.path.join(w.dir, "out"), timeout=120)
            assert r.returncode == 1 and "the peer takes our lanes" in r.stderr and "key" not in r.stderr, r.stderr
            doc = w.a.tentctl_json("explain", "b")
            first = used(doc)
            assert first["why"] == "address_refused" and "10.99.0.77" in first["detail"], first
            text = w.a.tentctl("explain", "b").stdout
            assert "data_addresses" in text and "bind_address" in text, text
            probe = w.a.tentctl("peer", "probe", "b")
            assert probe.returncode == 1 and "10.99.0.77" in probe.stdout + probe.stderr, probe
            seen = w.b.tentctl_json("explain", "a")["data_plane"]["peer"]["refused_in"]
            assert seen["address"] == "10.99.0.77" and seen["count"] >= 1, seen
            assert "peers/a/data_addresses" in w.b.tentctl("explain", "a").stdout
            log = [line for line in w.b.procs["dataplane"].text().splitlines() if "10.99.0.77" in line]
            assert log and "peer a" in log[0] and "10.99.0.1" in log[0] and "peers/a/data_addresses" in log[0], log
            if METRICS:
                assert w.b.metric("tent_hp_tcp_protocol_errors_total", side="server", error="address") >= 1
                assert not w.b.metric("tent_hp_tcp_protocol_errors_total", side="server", error="ticket")
            # the operator of b reads that, and lets the translated addresses in
            config = json.load(open(w.b.config, encoding="utf-8"))
            config["peers"][0]["data_addresses"] = ["10.99.0.64/26"]
            with open(w.b.config, "w", encoding="utf-8") as f:
                json.dump(config, f)
            assert w.b.procs["controlplane"].stop() == 0
            w.b.start("controlplane")
            w.b.wait_ready()
            moves(w, w.a, "b/kv")
            assert sources(net, w) == {"10.99.0.77"}, sources(net, w)
            assert w.a.tentctl("peer", "probe", "b").returncode == 0
            ends(w)


def masquerade():
    """Everything that leaves a is translated to one address: the control connection vouches for it, nothing to set."""
    with Net() as net:
        net.address("a", "10.99.0.1/24")
        net.address("a", "10.99.0.77/24")
        net.address("b", "10.99.0.2/24")
        nat_lanes(net, None, "meta l4proto tcp ct state new")
        with world(net, {"a": "10.99.0.1", "b": "10.99.0.2"}) as w:
            w.serve(w.b, "kv", 4 << 20)
            moves(w, w.a, "b/kv")
            assert sources(net, w) == {"10.99.0.77"}, sources(net, w)
            ends(w)


def bad_addresses():
    """Every place that takes an address refuses what cannot be one, with a text that says what would be right."""
    places = [  # key, form, whether ports belong there
        ("control/bind", "tcp://{}:9816"), ("control/advertise", "tcp://{}:9816"),
        ("transports/tcp/bind_address", "{}"), ("metrics/http_host", "{}"),
        ("transports/tcp/advertise_addresses", "{}"), ("peers/address", "tcp://{}:9816"), ("peers/data_addresses", "{}")]
    good = ["192.0.2.7", "[::1]", "[2001:db8::7]", "[fe80::7%lo]"]
    bad = {"[::1": "closing ]", "[2001:db8::7%lo]": "only a link-local", "[fe80::7%nosuchif0]": "no network interface",
           "192.0.2.7%lo": "only an IPv6 link-local", "host.example": "numeric", "[fe80::7]": "needs its zone"}
    with World(start=False) as w:
        key = w.b.public_key

        def check(place, text):
            where, form = place
            value = form.format(text)
            if where.startswith("peers/"):
                field = where.split("/")[1]
                peer = {"name": "b", "public_key": key, "address": "tcp://127.0.0.1:1",
                        field: [value] if field == "data_addresses" else value}
                sets = ["peers=" + json.dumps([peer])]
            elif where == "transports/tcp/advertise_addresses":
                sets = [where + "=" + json.dumps([value])]
            else:
                sets = [f"{where}={value}"]
            return w.a.tentctl("config", "check", *[s for x in sets for s in ("--set", x)])

        for place in places:
            for text in good:
                r = check(place, text)
                assert r.returncode == 0, (place, text, r.stdout, r.stderr)
            for text, why in bad.items():
                if place[0] == "peers/data_addresses" and text == "[fe80::7]":
                    continue  # there it stands for every link
                r = check(place, text)
                out = r.stdout + r.stderr
                assert r.returncode != 0 and why in out and place[0].split("/")[-1] in out, (place, text, out)


if __name__ == "__main__":
    run({t.__name__: t for t in (ipv6_loopback, ipv6_pair, link_local, multihomed, nat, masquerade, bad_addresses)})
