"""Every repair of Faust's app, each with the upstream issue; written against the pinned versions below.

The consumer stands in `faust_consumer`, the agent's batches in `faust_batches`, the stores in `faust_stores`,
aiokafka's headers in `faust_headers`.

Faust and aiokafka carry no types that can be relied on: this is the module that meets their inside. What each repair
cures is proved by the integration tests; a unit test fails when another version is installed.
"""

from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any, NoReturn

import faust
from faust.tables.manager import TableManager
from faust.tables.recovery import Recovery
from faust.transport.drivers import aiokafka as driver

from streams import faust_headers
from streams.faust_consumer import GaplessConsumer

PINNED_VERSIONS: Mapping[str, str] = {"faust-streaming": "0.15.3", "aiokafka": "0.14.0", "mode-streaming": "0.7.1"}


def unexpected_versions() -> list[str]:
    """Installed versions that these repairs were not written against; empty when all is as it should be."""
    found = ((name, version(name), wanted) for name, wanted in PINNED_VERSIONS.items())
    return [f"{name} {installed} (written for {wanted})" for name, installed, wanted in found if installed != wanted]


class SafeRecovery(Recovery):  # type: ignore[misc]  # Faust has no types
    """Stops the flow before recovery ends (faust-streaming/faust#596).

    Stock recovery resumes the partitions, waits for a seek, and then `flow_control.resume()` clears the agents' queues:
    events that got in between are gone. Nothing may enter the queues before they are cleared.
    """

    async def on_recovery_completed(self, generation_id: int = 0) -> None:
        """Holds back every record until the stock method resumes the flow."""
        self.app.flow_control.suspend()
        self.app.consumer.stop_flow()
        await super().on_recovery_completed(generation_id)


class SafeTableManager(TableManager):  # type: ignore[misc]  # Faust has no types
    """The stock table manager with `SafeRecovery`."""

    @property
    def recovery(self) -> Any:
        """As in the stock class."""
        if self._recovery is None:  # type: ignore[has-type]
            self._recovery = SafeRecovery(self.app, self, beacon=self.beacon, loop=self.loop)
        return self._recovery


class RepairedTransport(driver.Transport):  # type: ignore[misc]  # Faust has no types
    """The stock transport with `GaplessConsumer`."""

    Consumer = GaplessConsumer


class RepairedApp(faust.App):  # type: ignore[misc]  # Faust has no types
    """A Faust app with every repair.

    Args:
        commit_notes: what is written beside each committed offset, by topic.
        fetch_min_bytes: how much a broker gathers before it answers a fetch, for at most half a second.
        on_position_lost: ends the process when records were deleted before they were read.
    """

    def __init__(
        self,
        app_id: str,
        *,
        commit_notes: Mapping[str, str],
        fetch_min_bytes: int,
        on_position_lost: Callable[[str], NoReturn],
        **options: Any,
    ) -> None:
        faust_headers.read_any_name()
        self.commit_notes, self.fetch_min_bytes, self.on_position_lost = commit_notes, fetch_min_bytes, on_position_lost
        super().__init__(app_id, TableManager=SafeTableManager, **options)

    def _new_transport(self) -> Any:
        return RepairedTransport(self.conf.broker_consumer, self)


def coordination_ended(app: Any) -> bool:
    """Whether aiokafka's group coordination is over though the app is not stopping.

    It never joins again and nobody else notices. Seen when a bootstrap met a fenced broker, which names no brokers.
    """
    try:
        task = app.consumer._thread._consumer._coordinator._coordination_task
    except AttributeError:  # not started yet
        return False
    return bool(task is not None and task.done() and not app.should_stop)
