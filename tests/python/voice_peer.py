"""A speech service on this machine, for the scripts that drive the voice door with a vendor's own types."""

import asyncio
import contextlib
import json
import os

from websockets.asyncio.server import serve

KEY = "key-of-the-test"


def refuses(check, *wrong):
    """A check that takes what is wrong is none."""
    for message in wrong:
        try:
            check(message)
        except Exception:
            continue
        raise SystemExit(f"the check takes {message}")


class Line:
    """A socket of the door. Everything that it says is checked."""

    def __init__(self, socket, check):
        self.socket, self.check = socket, check
        self.path = socket.request.path
        self.headers = socket.request.headers
        self.said = []

    async def say(self, message):
        await self.socket.send(message if isinstance(message, (str, bytes)) else json.dumps(message))

    async def next(self):
        message = json.loads(await asyncio.wait_for(self.socket.recv(), 30))
        self.check(message)
        self.said.append(message["type"])
        return message

    async def until(self, found):
        while True:
            message = await self.next()
            if found(message):
                return message


class Service:
    """Takes the door's sockets one after the other."""

    def __init__(self, check):
        self.check = check
        self.lines = asyncio.Queue()

    async def _serve(self, socket):
        await self.lines.put(Line(socket, self.check))
        await socket.wait_closed()

    @contextlib.asynccontextmanager
    async def listening(self):
        async with serve(self._serve, "127.0.0.1", 0, max_size=None) as server:
            port = server.sockets[0].getsockname()[1]
            yield f"ws://127.0.0.1:{port}"

    async def line(self):
        return await asyncio.wait_for(self.lines.get(), 30)


@contextlib.asynccontextmanager
async def door(program, bus, variable, *arguments):
    """A door, which has to end by itself."""
    environment = {**os.environ, variable: KEY}
    running = await asyncio.create_subprocess_exec(program, "--bus", bus, *arguments, env=environment)
    try:
        yield running
        code = await asyncio.wait_for(running.wait(), 30)
        assert code == 0, f"the door ended with {code}"
    finally:
        if running.returncode is None:
            running.kill()
            await running.wait()
