#!/usr/bin/env python3
"""delay.py MS PORT...: a TCP proxy for each of these loopback ports that holds all bytes for half of MS
in each direction, as a long wire does. Prints its own ports in one line, then serves until it is ended."""

import asyncio
import collections
import socket
import sys


class Wire:
    """One direction: what is read goes out after the delay, in order; nothing is limited but that."""

    def __init__(self, delay_s, reader, writer):
        self.delay_s, self.reader, self.writer = delay_s, reader, writer
        self.under_way = collections.deque()
        self.more = asyncio.Event()

    async def receive(self):
        now = asyncio.get_running_loop().time
        data = b"-"
        while data:
            try:
                data = await self.reader.read(1 << 20)
            except OSError:
                data = b""
            self.under_way.append((now() + self.delay_s, data))
            self.more.set()

    async def deliver(self):
        now = asyncio.get_running_loop().time
        while True:
            while not self.under_way:
                self.more.clear()
                await self.more.wait()
            due, data = self.under_way.popleft()
            if due > now():
                await asyncio.sleep(due - now())
            if not data:
                break
            try:
                self.writer.write(data)
                await self.writer.drain()
            except OSError:
                return
        if self.writer.can_write_eof():
            self.writer.write_eof()


async def connect(port, delay_s, reader, writer):
    try:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        writer.close()
        return
    for w in (writer, far_writer):
        w.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    wires = [Wire(delay_s, reader, far_writer), Wire(delay_s, far_reader, writer)]
    await asyncio.gather(*(w.receive() for w in wires), *(w.deliver() for w in wires),
                         return_exceptions=True)
    writer.close()
    far_writer.close()


async def serve(delay_s, ports):
    own = []
    for port in ports:
        server = await asyncio.start_server(
            lambda r, w, p=port: connect(p, delay_s, r, w), "127.0.0.1", 0)
        own.append(server.sockets[0].getsockname()[1])
    print(*own, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    try:
        asyncio.run(serve(float(sys.argv[1]) / 2000, [int(p) for p in sys.argv[2:]]))
    except KeyboardInterrupt:
        pass
