"""The Celery side of a worker: a message says "look", nothing more; the server says what there is to do."""

from __future__ import annotations

from collections.abc import Callable

import structlog
from celery import Celery
from kombu import Queue

from bisectbot.errors import BisectbotError
from bisectbot.jobs.queues import LOOK_BUILD, LOOK_RUN
from workers.building import take_build
from workers.hosts import Host
from workers.running import take_run
from workers.station import Station

log = structlog.get_logger(__name__)


def make_app(station: Station, broker: str, host: Host | None) -> Celery:
    """The Celery application of one worker, with the one task that its queue carries (``host`` is None for builds).

    Messages are hints, so they are taken off the queue before the work begins: a lost one is sent again by the
    server, and a doubled one finds nothing to claim. Nothing is kept about results.
    """
    app = Celery(f"bisectbot-{station.name}", broker=broker, set_as_current=False)
    app.conf.update(
        task_serializer="json",
        accept_content=["json"],
        task_ignore_result=True,
        task_acks_late=False,
        task_queues=[Queue(station.queue)],
        task_create_missing_queues=False,
        task_default_queue=station.queue,
        worker_concurrency=1,
        worker_prefetch_multiplier=1,
        worker_enable_remote_control=False,
        worker_send_task_events=False,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_transport_options={"visibility_timeout": 24 * 3600, "socket_keepalive": True},
    )
    if host is None:

        @app.task(name=LOOK_BUILD)
        def look_build(build: int) -> None:
            _look(lambda: take_build(station), build=build)

    else:

        @app.task(name=LOOK_RUN)
        def look_run(host_name: str, run: int) -> None:  # noqa: ARG001 - the queue is the host's
            _look(lambda: take_run(station, host), run=run)

    return app


def _look(work: Callable[[], str], **hint: int) -> None:
    try:
        log.info(work(), **hint)
    except BisectbotError as error:  # the server sends the message again
        log.warning(str(error), **hint)
