"""A TCP relay that can be cut, for tests and benchmarks of links that break."""

import socket
import struct
import threading
import time


def shut_down(*sockets):
    """Also when they are down already."""
    for s in sockets:
        try:
            s.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


class Forwarder:
    """Accepts connections on a port of its own, makes one to the loopback port `port` for each, and gives both to
    `_forward` of the class that inherits it."""

    def __init__(self, port):
        self.target, self.holds = port, False
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _dial(self, _client):
        return socket.create_connection(("127.0.0.1", self.target))

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                if self.holds:
                    raise ConnectionRefusedError
                server = self._dial(client)
                # Else each small message behind another waits for a delayed acknowledgement, 40 ms.
                for end in (client, server):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except OSError:
                client.close()
                continue
            self._forward(client, server)


class Relay(Forwarder):
    """Stands between a client and a server, and cuts all connections through it when told. `rate`: so many bytes a
    second, of all together."""

    def __init__(self, port, rate=None):
        self.pairs, self.cuts, self.carried = [], 0, 0
        self.rate, self.turn = rate, threading.Lock()
        self.left, self.counting = None, threading.Lock()  # bytes until it cuts by itself
        super().__init__(port)

    def _forward(self, client, server):
        self.pairs.append((client, server))
        threading.Thread(target=self._carry, args=(client, server), daemon=True).start()

    def _carry(self, client, server):
        ways = [threading.Thread(target=self._pass_on, args=way, daemon=True)
                for way in ((client, server), (server, client))]
        for way in ways:
            way.start()
        for way in ways:
            way.join()
        # Not before: bytes that one of them still sends could go to a later connection with the same number.
        client.close()
        server.close()

    def _pass_on(self, a, b):
        try:
            while data := a.recv(65536):
                if self.rate:
                    with self.turn:
                        time.sleep(len(data) / self.rate)
                data, ends = self._up_to_cut(data)
                b.sendall(data)
                self.carried += len(data)
                if ends:
                    self.cut()
                    # Another thread may be cutting this connection, and not be that far: nothing goes behind the
                    # gap.
                    break
        except OSError:
            pass
        shut_down(a, b)

    def _up_to_cut(self, data):
        with self.counting:
            if self.left is None or self.left > len(data):
                self.left = None if self.left is None else self.left - len(data)
                return data, False
            data, self.left = data[:self.left], None
            return data, True

    def cut(self):
        """With a reset on one side: what is on its way is lost."""
        pairs, self.pairs = self.pairs, []
        self.cuts += bool(pairs)
        for pair in pairs:
            for s in pair:
                try:
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    s.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def hold(self, holds):
        """Cut, and let nobody in until told otherwise."""
        self.holds = holds
        if holds:
            self.cut()

    def close(self):
        self.listener.close()
        self.cut()
