"""A server on uvloop that computes for 300 ms before it answers."""
import asyncio
import time

import uvloop


def crunch(seconds):
    end = time.perf_counter() + seconds
    total = 0
    while time.perf_counter() < end:
        total += sum(range(1000))
    return total


class Server(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        body = b"%d\n" % crunch(0.3)
        self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body) + body)
        self.transport.close()


async def main():
    server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0)
    print("ready", server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


uvloop.run(main())
