"""A server that is asked once; then says on which library it ran.

Started with `--poller poll`, ours has no epoll descriptor, and what uvloop carries always has.
"""

import asyncio
import os

import uvloop


async def serve(reader, writer):
    writer.write(await reader.readline())
    writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(b"served\n")
    print((await reader.read()).decode(), end="")
    writer.close()
    server.close()
    print("carried" if any("eventpoll" in file for file in open_files()) else "ours")


def open_files():
    for name in os.listdir("/proc/self/fd"):
        try:
            yield os.readlink(f"/proc/self/fd/{name}")
        except FileNotFoundError:
            pass


loop = uvloop.new_event_loop()
loop.run_until_complete(main())
