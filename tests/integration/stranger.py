#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A stranger for strangers_test.py: holds COUNT connections to PORT (or to a unix socket) and behaves in one way.

  silent  says nothing                        half   the first half of a ZMTP greeting, then nothing
  churn   closes as soon as it is connected   drip   a byte of a greeting each second
  noise   random bytes                        huge   a whole greeting, then a frame that claims 2^62 bytes
  null    a whole greeting without CURVE         hello  a lane's HELLO with a ticket that nobody issued

A connection that the other side closes is replaced. Prints READY when the first round is on its way, and a line of
counts each second; ends on SIGTERM."""
import errno
import os
import random
import select
import signal
import socket
import struct
import sys
import time

SIGNATURE = b"\xff" + b"\0" * 7 + b"\x01\x7f"


def greeting(mechanism):
    return SIGNATURE + b"\x03\x00" + mechanism.ljust(20, b"\0") + b"\0" * 32


def hello(rnd):
    return struct.pack(">IHHQ16s16s32s16sIHHI52s", 0x544E5448, 1, 1, 0, rnd.randbytes(16), b"\0" * 16, rnd.randbytes(32),
                       rnd.randbytes(16), 1, 0, 0, 1 << 20, b"\0" * 52)


SAY = {
    "hello": hello,
    "silent": lambda rnd: b"",
    "churn": lambda rnd: b"",
    "half": lambda rnd: greeting(b"CURVE")[:32],
    "drip": lambda rnd: b"",
    "noise": lambda rnd: rnd.randbytes(rnd.randrange(1, 4000)),
    "huge": lambda rnd: greeting(b"CURVE") + struct.pack(">BQ", 6, 1 << 62) + b"x" * 1000,
    "null": lambda rnd: greeting(b"NULL") + b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x06DEALER",
}


class Stranger:
    def __init__(self, mode, where, count):
        self.mode, self.where, self.count = mode, where, count
        self.rnd = random.Random(11)
        self.poll = select.epoll()
        self.socks, self.said, self.dripped = {}, set(), {}
        self.opened = self.closed = self.refused = 0

    def open(self):
        unix = isinstance(self.where, str)
        kind = socket.SOCK_SEQPACKET if unix and self.where.endswith("attach.sock") else socket.SOCK_STREAM
        s = socket.socket(socket.AF_UNIX if unix else socket.AF_INET, kind)
        s.setblocking(False)
        rc = s.connect_ex(self.where if unix else ("127.0.0.1", self.where))
        if rc not in (0, errno.EINPROGRESS):
            s.close()
            self.refused += 1
            return False
        self.opened += 1
        self.socks[s.fileno()] = s
        self.poll.register(s, select.EPOLLIN | select.EPOLLOUT | select.EPOLLRDHUP)
        return True

    def close(self, fd):
        self.poll.unregister(fd)
        self.said.discard(fd)
        self.dripped.pop(fd, None)
        self.socks.pop(fd).close()
        self.closed += 1

    def on(self, fd, events):
        s = self.socks[fd]
        try:
            if events & select.EPOLLOUT and fd not in self.said:
                self.said.add(fd)
                self.poll.modify(fd, select.EPOLLIN | select.EPOLLRDHUP)
                if self.mode == "churn":
                    self.close(fd)
                    return
                words = SAY[self.mode](self.rnd)
                if words:
                    s.send(words)
            if events & (select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLHUP | select.EPOLLERR) and not s.recv(65536):
                self.close(fd)
        except BlockingIOError:
            pass
        except OSError:
            self.close(fd)

    def drip(self):
        words = greeting(b"CURVE")
        for fd in list(self.said):
            n = self.dripped.get(fd, 0)
            try:
                self.socks[fd].send(words[n % 64:n % 64 + 1])
                self.dripped[fd] = n + 1
            except OSError:
                self.close(fd)

    def run(self):
        told = dripped = 0.0
        ready = False
        while True:
            for _ in range(self.count - len(self.socks)):
                if not self.open():
                    break
            for fd, events in self.poll.poll(0.02, 4096):
                if fd in self.socks:
                    self.on(fd, events)
            now = time.monotonic()
            if self.mode == "drip" and now - dripped > 1:
                dripped = now
                self.drip()
            if not ready:
                print("READY", flush=True)
                ready = True
            if now - told > 1:
                told = now
                print(f"held {len(self.socks)} opened {self.opened} closed {self.closed} refused {self.refused}", flush=True)


signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
target = sys.argv[2]
Stranger(sys.argv[1], target if target.startswith("/") else int(target), int(sys.argv[3])).run()
