"""A real proxy on loopback that loses the answer to a commit: the work was done, and nobody is told."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Self

_COMMIT = bytes.fromhex("0002b0120000")  # a Bolt message: COMMIT, alone in its chunk


class LossyProxy:
    """Passes Bolt on, and breaks the connection instead of passing on the answers to the first `losses` commits."""

    def __init__(self, port: int, losses: int) -> None:
        self._port = port
        self.losses = losses
        self.lost = 0
        self._serving: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"bolt://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await asyncio.gather(*self._serving)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._serving.add(task)
        there, onward = await asyncio.open_connection("127.0.0.1", self._port)
        committing = asyncio.Event()

        async def forth() -> None:
            while data := await reader.read(65_536):
                if data.endswith(_COMMIT) and self.lost < self.losses:
                    committing.set()
                onward.write(data)
                await onward.drain()

        async def back() -> None:
            while data := await there.read(65_536):
                if committing.is_set():
                    self.lost += 1
                    return
                writer.write(data)
                await writer.drain()

        tasks = [asyncio.create_task(forth()), asyncio.create_task(back())]
        with contextlib.suppress(ConnectionError):
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for end in (writer, onward):
            end.close()
            with contextlib.suppress(ConnectionError):
                await end.wait_closed()
