"""Requests to an ASGI application without a server; its background tasks go on while one is made."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
from fastapi import FastAPI


class Client:
    """Calls ``app`` from the address ``source``; close it at the end."""

    def __init__(self, app: FastAPI, source: str = "192.0.2.1") -> None:
        self._runner = asyncio.Runner()
        self._transport = httpx.ASGITransport(app, client=(source, 1))

    def post(self, path: str, **how: Any) -> httpx.Response:
        return self._runner.run(self._post(path, how))

    async def _post(self, path: str, how: dict[str, Any]) -> httpx.Response:
        async with httpx.AsyncClient(transport=self._transport, base_url="http://here") as client:
            return await client.post(path, **how)

    def breathe(self, seconds: float = 0.02) -> None:
        """Let background tasks run."""
        self._runner.run(asyncio.sleep(seconds))

    def close(self) -> None:
        self._runner.close()
