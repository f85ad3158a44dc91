"""The web process: one application, its rooms mounted."""

from __future__ import annotations

import structlog
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from bisectbot import __version__
from bisectbot.errors import InfraError, UserError
from bisectbot.service.claims import HostHeldError
from bisectbot.service.context import Context
from bisectbot.web import api, git, unsubscribe, workers
from bisectbot.web.metrics import StoreCollector

log = structlog.get_logger()


def create_app(context: Context) -> FastAPI:
    """The application for ``context``: JSON API, metrics, the workers' endpoint and their git."""
    app = FastAPI(title="bisectbot", version=__version__, openapi_url="/api/openapi.json", docs_url="/api/docs")
    app.state.context = context
    app.include_router(api.router)
    app.include_router(workers.router)
    app.include_router(git.router)
    app.include_router(unsubscribe.router)
    registry = CollectorRegistry()
    registry.register(StoreCollector(context))

    @app.get("/health", include_in_schema=False)
    def health() -> Response:
        if not context.database.current():
            return PlainTextResponse("the database schema is not this version's: run `bisectbot db upgrade`\n", 503)
        return PlainTextResponse("ok\n")

    @app.get("/metrics", include_in_schema=False)
    def metrics() -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    @app.exception_handler(UserError)
    async def user_error(request: Request, error: UserError) -> Response:  # noqa: ARG001 - starlette's signature
        return JSONResponse({"detail": str(error)}, status_code=400)

    @app.exception_handler(HostHeldError)
    async def held(request: Request, error: HostHeldError) -> Response:  # noqa: ARG001
        return JSONResponse({"detail": str(error)}, status_code=409)

    @app.exception_handler(InfraError)
    async def infra_error(request: Request, error: InfraError) -> Response:
        log.error("request failed", path=request.url.path, error=str(error))
        return JSONResponse({"detail": str(error)}, status_code=503, headers={"Retry-After": "5"})

    return app
