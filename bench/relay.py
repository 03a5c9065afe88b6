"""A TCP relay that can be cut, for tests and benchmarks of links that break."""

import socket
import struct
import threading


class Relay:
    """Stands between a client and a server, and cuts all connections through it when told."""

    def __init__(self, port):
        self.target, self.pairs, self.cuts, self.carried = port, [], 0, 0
        self.holds = False
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                if self.holds:
                    raise ConnectionRefusedError
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                client.close()
                continue
            self.pairs.append((client, server))
            for a, b in ((client, server), (server, client)):
                threading.Thread(target=self._pass_on, args=(a, b), daemon=True).start()

    def _pass_on(self, a, b):
        try:
            while data := a.recv(65536):
                b.sendall(data)
                self.carried += len(data)
        except OSError:
            pass
        for s in (a, b):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self):
        """With a reset on one side: what is on its way is lost."""
        pairs, self.pairs = self.pairs, []
        self.cuts += bool(pairs)
        for pair in pairs:
            for s in pair:
                try:
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    s.shutdown(socket.SHUT_RDWR)
                    s.close()
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
