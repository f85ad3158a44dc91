"""Messages on the broker: "look, perhaps run N". They carry nothing that is not in the database.

A hint that is lost, doubled or late is harmless, so a broker that does not answer is noted and passed over.
"""

from __future__ import annotations

import structlog
from celery import Celery
from kombu.exceptions import OperationalError

from bisectbot.jobs.queues import BUILD_QUEUE, LOOK_BUILD, LOOK_RUN, host_queue

log = structlog.get_logger()


class Hints:
    """Sends hints to the workers' queues through the broker at ``url``."""

    def __init__(self, url: str) -> None:
        self._app = Celery(broker=url)
        self._app.conf.update(
            task_ignore_result=True,
            broker_connection_timeout=2.0,
            broker_connection_max_retries=0,
            broker_transport_options={"socket_timeout": 5.0, "socket_connect_timeout": 2.0},
        )

    def run(self, host: str, run: int) -> bool:
        """Tell ``host``'s worker to look; False if the broker does not answer."""
        return self._send(LOOK_RUN, [host, run], host_queue(host))

    def build(self, build: int) -> bool:
        """Tell a builder to look; False if the broker does not answer."""
        return self._send(LOOK_BUILD, [build], BUILD_QUEUE)

    def _send(self, task: str, arguments: list[object], queue: str) -> bool:
        try:
            self._app.send_task(task, args=arguments, queue=queue, retry=False)
        except (OperationalError, OSError) as error:
            log.warning("broker does not answer; the hint will be sent again", queue=queue, error=str(error))
            return False
        return True

    def close(self) -> None:
        """Close the connections."""
        self._app.close()
