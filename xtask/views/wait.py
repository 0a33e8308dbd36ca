"""A callback on uvloop that reads a named pipe into which nobody writes."""
import asyncio
import sys

import uvloop


def read_settings(path):
    with open(path) as file:
        return file.read()


async def main():
    asyncio.get_running_loop().call_later(0.01, read_settings, sys.argv[1])
    print("ready", flush=True)
    await asyncio.Event().wait()


uvloop.run(main())
