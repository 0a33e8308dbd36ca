"""An ASGI application for uvicorn, without a framework."""

HEADERS = [(b"content-type", b"text/plain"), (b"content-length", b"14")]


async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    await send({"type": "http.response.body", "body": b"Hello, world!\n"})
