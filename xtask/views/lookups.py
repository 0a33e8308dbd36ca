"""Ten lookups of names on uvloop, of which the name server answers none."""
import asyncio

import uvloop


async def main():
    loop = asyncio.get_running_loop()
    lookups = [asyncio.ensure_future(loop.getaddrinfo(f"host{n}.example", 80)) for n in range(10)]
    await asyncio.sleep(0)
    print("ready", flush=True)
    await asyncio.wait(lookups)


uvloop.run(main())
