"""The keys of all endpoints while the process runs: read again, and shown when those that vouch have changed."""

import asyncio
import math
from collections.abc import Sequence

from ingress.endpoints import Endpoint
from ingress.public_keys import KeyringError
from tallyhook import logs
from tallyhook.clock import Clock
from tallyhook.metrics import Metrics

_log = logs.logger(__name__)


class KeyWatch:
    """Reads the keyrings again every so often.

    Args:
        reload_seconds: time between two looks.
    """

    def __init__(self, endpoints: Sequence[Endpoint], *, reload_seconds: float, metrics: Metrics, clock: Clock) -> None:
        self._endpoints, self._reload_seconds = endpoints, reload_seconds
        self._metrics, self._clock = metrics, clock
        self._shown: dict[str, list[str]] = {}

    async def run(self) -> None:
        """Never returns."""
        while True:
            self.show()
            await asyncio.sleep(self._reload_seconds)
            for endpoint in self._endpoints:
                await self._reload(endpoint)

    def show(self) -> None:
        """Sets the gauges, and logs an endpoint whose keys are others than before: by a file, or by time alone."""
        now = self._clock.now()
        for endpoint in self._endpoints:
            valid = endpoint.keyring.valid_at(now)
            self._metrics.gauge("tallyhook_ingress_keys", endpoint=endpoint.name).set(len(valid))
            ends_at = endpoint.keyring.vouches_until(now)
            left_seconds = math.inf if ends_at is None else (ends_at - now).total_seconds()
            self._metrics.gauge("tallyhook_ingress_keys_end_seconds", endpoint=endpoint.name).set(left_seconds)
            ids = [key.id for key in valid]
            if self._shown.get(endpoint.name) == ids:
                continue
            self._shown[endpoint.name] = ids
            idle = [f"{key.id} ({key.window})" for key in endpoint.keyring.keys if not key.valid_at(now)]
            _log.info("keys", endpoint=endpoint.name, ids=ids, outside_of_their_window=idle)
            if not ids:
                _log.error("no key vouches now: every webhook is refused with 401", endpoint=endpoint.name)

    async def _reload(self, endpoint: Endpoint) -> None:
        try:
            changed = await asyncio.to_thread(endpoint.keyring.reload)
        except KeyringError as failure:
            _log.warning("the keys stay as they were", endpoint=endpoint.name, reason=str(failure))
            self._metrics.counter("tallyhook_ingress_key_reloads_total", outcome="failed").inc()
            return
        if changed:
            self._metrics.counter("tallyhook_ingress_key_reloads_total", outcome="changed").inc()
