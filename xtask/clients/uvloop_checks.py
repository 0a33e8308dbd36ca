"""Drives Python with uvloop on the libuv under test: `uvloop_checks.py CHECK`."""
import asyncio
import hashlib
import os
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

import uvloop


async def check_timers():
    loop = asyncio.get_running_loop()
    order = []
    for delay in (0.03, 0.01, 0.02):
        loop.call_later(delay, order.append, delay)
    loop.call_soon(order.append, "soon")
    loop.call_later(0.01, order.append, "never").cancel()
    begin = time.monotonic()
    await asyncio.sleep(0.06)
    assert time.monotonic() - begin >= 0.059
    assert order == ["soon", 0.01, 0.02, 0.03], order
    try:
        await asyncio.wait_for(asyncio.sleep(10), 0.02)
        raise AssertionError("no time-out")
    except asyncio.TimeoutError:
        pass


async def echo_through(connect, serve):
    async def echo(reader, writer):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.close()

    server = await serve(echo)
    body = os.urandom(1 << 20)

    async def client():
        reader, writer = await connect(server)

        async def send():
            writer.write(body)
            await writer.drain()
            writer.write_eof()

        sending = asyncio.ensure_future(send())
        assert await reader.read(-1) == body
        await sending
        writer.close()
        await writer.wait_closed()

    await asyncio.gather(*(client() for _ in range(10)))
    server.close()
    await server.wait_closed()


async def check_tcp_echo():
    for host in ("127.0.0.1", "::1"):
        await echo_through(
            lambda server: asyncio.open_connection(*server.sockets[0].getsockname()[:2]),
            lambda echo: asyncio.start_server(echo, host, 0),
        )
    probe = socket.socket()
    probe.bind(("127.0.0.1", 0))
    try:
        await asyncio.open_connection("127.0.0.1", probe.getsockname()[1])
        raise AssertionError("nobody listens there")
    except ConnectionRefusedError:
        pass


async def check_unix_sockets():
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "socket")
        await echo_through(
            lambda server: asyncio.open_unix_connection(path),
            lambda echo: asyncio.start_unix_server(echo, path),
        )


async def check_tls():
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run(
            "openssl req -x509 -newkey rsa:2048 -nodes -keyout key -out cert -days 2 -subj /CN=localhost"
            " -addext subjectAltName=DNS:localhost",
            shell=True, check=True, cwd=directory, stderr=subprocess.DEVNULL,
        )
        key, cert = (os.path.join(directory, name) for name in ("key", "cert"))
        inside = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        inside.load_cert_chain(cert, key)
        outside = ssl.create_default_context(cafile=cert)

        async def echo(reader, writer):
            writer.write(await reader.readexactly(1 << 20))
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(echo, "127.0.0.1", 0, ssl=inside)
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=outside, server_hostname="localhost")
        body = os.urandom(1 << 20)
        writer.write(body)
        assert await reader.readexactly(1 << 20) == body
        writer.close()
        server.close()


async def check_subprocesses():
    child = await asyncio.create_subprocess_exec(
        "sh", "-c", "cat; echo err >&2; exit 7",
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    body = os.urandom(1 << 20)
    out, err = await child.communicate(body)
    assert out == body and err == b"err\n" and child.returncode == 7
    sleeper = await asyncio.create_subprocess_exec("sleep", "1000")
    sleeper.terminate()
    assert await sleeper.wait() == -signal.SIGTERM
    try:
        await asyncio.create_subprocess_exec("/nonexistent/program")
        raise AssertionError("there is no such program")
    except FileNotFoundError:
        pass
    shell = await asyncio.create_subprocess_shell(
        "pwd; echo $COLOUR", stdout=subprocess.PIPE, cwd="/", env={"COLOUR": "ultraviolet"},
        start_new_session=True)
    assert (await shell.communicate())[0] == b"/\nultraviolet\n"
    children = [await asyncio.create_subprocess_shell(f"exit {n}") for n in range(30)]
    assert [await child.wait() for child in children] == list(range(30))
    with tempfile.TemporaryFile() as file:
        child = await asyncio.create_subprocess_exec(
            "sh", "-c", "echo both; echo again >&2", stdout=file, stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL)
        assert await child.wait() == 0
        file.seek(0)
        assert file.read() == b"both\nagain\n"


async def check_signals():
    loop = asyncio.get_running_loop()
    seen = asyncio.Queue()
    for name in (signal.SIGUSR1, signal.SIGHUP, signal.SIGTERM):
        loop.add_signal_handler(name, seen.put_nowait, name)
    for name in (signal.SIGHUP, signal.SIGUSR1, signal.SIGTERM):
        os.kill(os.getpid(), name)
        assert await asyncio.wait_for(seen.get(), 10) == name
    assert loop.remove_signal_handler(signal.SIGHUP)
    assert not loop.remove_signal_handler(signal.SIGHUP)


def check_keyboard_interrupt():
    async def main():
        asyncio.get_running_loop().call_later(0.05, os.kill, os.getpid(), signal.SIGINT)
        await asyncio.sleep(30)

    begin = time.monotonic()
    try:
        asyncio.run(main())
        raise AssertionError("Ctrl-C went unheard")
    except KeyboardInterrupt:
        assert time.monotonic() - begin < 10


async def check_executor():
    loop = asyncio.get_running_loop()
    hashes = await asyncio.gather(*(
        loop.run_in_executor(None, lambda: hashlib.sha256(b"x" * 1_000_000).hexdigest())
        for _ in range(20)))
    assert len(set(hashes)) == 1
    done = asyncio.Event()
    count = 0

    def beat():
        nonlocal count
        count += 1
        if count == 10_000:
            done.set()

    def send():
        for _ in range(5_000):
            loop.call_soon_threadsafe(beat)

    threads = [threading.Thread(target=send) for _ in range(2)]
    for thread in threads:
        thread.start()
    await asyncio.wait_for(done.wait(), 30)
    for thread in threads:
        thread.join()


async def check_getaddrinfo():
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo("localhost", 80, type=socket.SOCK_STREAM)
    assert {address[4][0] for address in found} & {"127.0.0.1", "::1"}, found
    assert await loop.getnameinfo(("127.0.0.1", 22), socket.NI_NUMERICHOST) == ("127.0.0.1", "ssh")
    try:
        await loop.getaddrinfo("no-such-host.invalid", 80)
        raise AssertionError("there is no such host")
    except socket.gaierror:
        pass


async def check_udp():
    loop = asyncio.get_running_loop()

    class Echo(asyncio.DatagramProtocol):
        def connection_made(self, transport):
            self.transport = transport

        def datagram_received(self, data, peer):
            self.transport.sendto(data, peer)

    class Client(asyncio.DatagramProtocol):
        def __init__(self):
            self.queue = asyncio.Queue()

        def datagram_received(self, data, peer):
            self.queue.put_nowait(data)

    server, _ = await loop.create_datagram_endpoint(Echo, local_addr=("127.0.0.1", 0))
    address = server.get_extra_info("sockname")
    for options in ({"remote_addr": address}, {"local_addr": ("127.0.0.1", 0)}):
        transport, client = await loop.create_datagram_endpoint(Client, **options)
        for n in range(50):
            message = bytes([n]) * 900
            transport.sendto(message, None if "remote_addr" in options else address)
            assert await asyncio.wait_for(client.queue.get(), 10) == message
        transport.close()
    server.close()


async def check_pipes_and_sockets():
    """The calls that watch a bare descriptor, and a pipe that uvloop marks readable itself."""
    loop = asyncio.get_running_loop()
    left, right = socket.socketpair()
    left.setblocking(False)
    right.setblocking(False)
    await loop.sock_sendall(left, b"bare")
    assert await loop.sock_recv(right, 100) == b"bare"
    woken = asyncio.Event()
    loop.add_reader(right, woken.set)
    left.send(b"x")
    await asyncio.wait_for(woken.wait(), 10)
    loop.remove_reader(right)
    loop.add_writer(left, woken.set)
    woken.clear()
    await asyncio.wait_for(woken.wait(), 10)
    loop.remove_writer(left)
    read, write = os.pipe()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(read, "rb", 0))
    transport, _ = await loop.connect_write_pipe(asyncio.Protocol, os.fdopen(write, "wb", 0))
    transport.write(b"through the pipe" * 10_000)
    transport.close()
    assert await reader.read(-1) == b"through the pipe" * 10_000


async def check_write_pipe_notices_the_reader_leave():
    """uvloop reads from the pipe it writes to, to learn that the other side is closed."""
    loop = asyncio.get_running_loop()
    lost = asyncio.Event()

    class Protocol(asyncio.Protocol):
        def connection_lost(self, error):
            lost.set()

    read, write = os.pipe()
    await loop.connect_write_pipe(Protocol, os.fdopen(write, "wb", 0))
    os.close(read)
    await asyncio.wait_for(lost.wait(), 10)


async def check_slow_reader():
    """A server whose client stops reading: the buffer must fill and drain again."""
    loop = asyncio.get_running_loop()
    paused, resumed = asyncio.Event(), asyncio.Event()

    class Flood(asyncio.Protocol):
        def connection_made(self, transport):
            transport.write(b"f" * (16 << 20))
            transport.close()

        def pause_writing(self):
            paused.set()

        def resume_writing(self):
            resumed.set()

    server = await loop.create_server(Flood, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    await asyncio.wait_for(paused.wait(), 10)
    assert len(await reader.read(-1)) == 16 << 20
    await asyncio.wait_for(resumed.wait(), 10)
    writer.close()
    server.close()


def run(check):
    if asyncio.iscoroutinefunction(check):
        asyncio.run(asyncio.wait_for(check(), 50))
    else:
        check()


def main():
    uvloop.install()
    run(globals()["check_" + sys.argv[1]])
    # A second loop in the same process starts from nothing.
    if sys.argv[1] != "keyboard_interrupt":
        asyncio.run(asyncio.sleep(0))


main()
