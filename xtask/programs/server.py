"""A server on uvloop, with asyncio's protocols and no framework, on port 8000 of loopback.

It answers every request with the same bytes, and says "ready" when it can be asked.
"""
import asyncio

import uvloop

BODY = b"Hello, world!\n"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n" % len(BODY)
KEPT = ANSWER + b"\r\n" + BODY
CLOSED = ANSWER + b"Connection: close\r\n\r\n" + BODY


class Server(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport
        self.received = b""

    def data_received(self, data):
        self.received += data
        while (end := self.received.find(b"\r\n\r\n")) >= 0:
            request, self.received = self.received[:end], self.received[end + 4 :]
            if b"Connection: close" in request:
                self.transport.write(CLOSED)
                self.transport.close()
                return
            self.transport.write(KEPT)


async def main():
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Server, "127.0.0.1", 8000, backlog=512)
    print("ready", flush=True)
    await server.serve_forever()


uvloop.run(main())
