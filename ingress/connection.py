"""One connection: its requests are answered one after the other, each phase has its time."""

import asyncio
from typing import Literal, Protocol

from ingress.handler import Handler
from ingress.held_bytes import HeldBytes
from ingress.limits import Limits
from ingress.messages import Request, Response
from ingress.refusals import Refused
from ingress.request_reader import RequestReader
from ingress.wire import CONTINUE, encode
from tallyhook import logs
from tallyhook.failpoints import reach

_log = logs.logger(__name__)


Welcome = Literal["taken", "turned away", "cut off"]
"""What becomes of a new connection: served, answered 503 and ended, or ended without a word."""


class Owner(Protocol):
    """Who keeps the connections."""

    limits: Limits
    held: HeldBytes

    @property
    def ending(self) -> bool:
        """Whether answers shall tell their senders to go elsewhere."""
        ...

    @property
    def closing(self) -> bool:
        """Whether connections without a request shall end."""
        ...

    def opened(self, connection: "Connection") -> Welcome:
        """Whether there is room for one more."""
        ...

    def turned(self, connection: "Connection", phase: str) -> None:
        """A phase of the connection begins."""
        ...

    def closed(self, connection: "Connection") -> None:
        """The connection is gone."""
        ...


class Connection(asyncio.Protocol):
    """Carries requests to the handler and answers back, in order.

    Args:
        owner: knows the limits and whether the process is ending.
        handler: answers.
        loop: the loop it runs on.
    """

    def __init__(self, owner: Owner, handler: Handler, loop: asyncio.AbstractEventLoop) -> None:
        self._owner, self._handler, self._loop, self._limits = owner, handler, loop, owner.limits
        self._reader = RequestReader(owner.limits, handler, self._ask_for_body, owner.held)
        self.feeding = False
        self._transport: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timed: tuple[str, int] | None = None
        self._writable, self._lingering, self._discarded_bytes = True, False, 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Starts the wait for the first request."""
        if not isinstance(transport, asyncio.Transport):
            raise TypeError("a stream transport is needed")
        self._transport = transport
        welcome = self._owner.opened(self)
        if welcome == "cut off":
            self._handler.refused(Refused("connections", "far too many connections"))
            self._abort()
            return
        if welcome == "turned away":
            self._reader.give_up(Refused("connections", "too many connections"))
            self._step()
            return
        self._arm()

    def data_received(self, data: bytes) -> None:
        """Reads on, within the limits."""
        if self._reader.phase == "ended":
            self._discarded_bytes += len(data)
            if self._discarded_bytes > self._limits.linger_bytes:
                self._abort()
            return
        self.feeding = True
        self._reader.feed(data)
        self.feeding = False
        self._step()

    def eof_received(self) -> bool:
        """A sender that has sent everything still gets its answers; one that has not gets none."""
        self._reader.drop()
        if self._lingering or (self._task is None and not self._reader.arrivals):
            return False
        self._step()
        return True

    def connection_lost(self, _: Exception | None) -> None:
        """Gives up what was not begun; a record that is being published is published."""
        self._disarm()
        self._reader.drop()
        for arrival in self._reader.arrivals:
            if arrival.request is not None:
                self._let_go(arrival.request)
        self._reader.arrivals.clear()
        self._transport = None
        self._owner.closed(self)

    def pause_writing(self) -> None:
        """The sender does not read its answers, so no further request of it is begun."""
        self._writable = False

    def resume_writing(self) -> None:
        """Goes on with what waits."""
        self._writable = True
        self._step()

    def end_if_idle(self) -> None:
        """Ends the connection unless a request is under way."""
        if self._reader.phase == "idle" and self._task is None and not self._reader.arrivals:
            self._close()

    @property
    def waiting(self) -> bool:
        """Whether it is the sender's turn: no whole request of it is under way."""
        return self._task is None and not self._reader.arrivals

    def make_room(self) -> None:
        """Ends a waiting connection at once, so that another one can be served."""
        if self._reader.phase in ("head", "body"):
            self._handler.refused(Refused("connections", "not whole yet when its place was needed"))
        self._reader.drop()
        self._abort()

    def give_up(self, refusal: Refused) -> None:
        """Refuses what has not arrived whole; what is being published keeps its own deadline."""
        if self._reader.phase in ("head", "body"):
            self._reader.give_up(refusal)
            self._step()
        else:
            self.end_if_idle()

    def _step(self) -> None:
        """Begins what can be begun; safe to call at any time."""
        while self._may_begin():
            if not self._reader.arrivals:
                if self._reader.phase == "ended" or (self._owner.closing and self._reader.phase == "idle"):
                    self._close()
                break
            arrival = self._reader.arrivals.popleft()
            if arrival.request is not None:
                self._task = self._loop.create_task(self._answer(arrival.request, arrival.keep_alive))
            elif arrival.response is not None:
                self._write(arrival.response, arrival.keep_alive, unread=arrival.unread)
        self._pace()
        self._arm()

    def _may_begin(self) -> bool:
        open_ = self._transport is not None and not self._transport.is_closing() and not self._lingering
        return open_ and self._task is None and self._writable

    async def _answer(self, request: Request, keep_alive: bool) -> None:
        try:
            response = await self._handler.answer(request)
        except Exception as failure:  # noqa: BLE001  one poison request must end neither its connection nor the process
            _log.exception("a request met an error of ours")
            response = self._handler.refused(Refused("internal", type(failure).__name__))
        finally:
            self._let_go(request)
            self._task = None
        self._write(response, keep_alive, unread=False)
        reach("ingress.answered")
        self._step()

    def _let_go(self, request: Request) -> None:
        self._handler.left()
        self._owner.held.give_back(len(request.body))

    def _write(self, response: Response, keep_alive: bool, *, unread: bool) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        keep_alive = keep_alive and not response.close and not self._owner.ending
        self._transport.write(encode(response, keep_alive=keep_alive))
        if not keep_alive:
            self._reader.drop()
            if unread:
                self._linger()
            else:
                self._close()

    def _ask_for_body(self) -> None:
        # While an earlier request waits for its answer, leave to send would look like a part of that answer.
        if self._transport is not None and self._task is None and not self._reader.arrivals:
            self._transport.write(CONTINUE)

    def _linger(self) -> None:
        """Says that nothing more comes and reads on for a while: closing at once would reset the sender's upload."""
        if self._transport is not None:
            self._lingering = True
            self._transport.resume_reading()
            self._transport.write_eof()
            self._arm()

    def _pace(self) -> None:
        """Reads no further while requests wait for their turn."""
        if self._transport is not None and not self._transport.is_closing():
            if self._reader.arrivals and self._transport.is_reading():
                self._transport.pause_reading()
            elif not self._reader.arrivals and not self._transport.is_reading():
                self._transport.resume_reading()

    def _arm(self) -> None:
        """Each phase has its time, counted from its start and not from its last byte."""
        phase = self._phase()
        if phase == self._timed:
            return
        self._disarm()
        self._timed = phase
        self._owner.turned(self, phase[0])
        seconds = {
            "new": self._limits.head_timeout_seconds,
            "idle": self._limits.idle_timeout_seconds,
            "head": self._limits.head_timeout_seconds,
            "body": self._limits.body_timeout_seconds,
            "linger": self._limits.linger_seconds,
            "unread answers": self._limits.idle_timeout_seconds,
        }.get(phase[0])
        if seconds is not None and self._transport is not None:
            self._timer = self._loop.call_later(seconds, self._expire, phase[0])

    def _phase(self) -> tuple[str, int]:
        reader = self._reader
        if self._lingering:
            return "linger", 0
        if not self._writable:
            return "unread answers", 0
        if reader.phase == "idle" and self._task is None:
            return ("idle" if reader.begun else "new"), reader.begun
        return reader.phase if reader.phase in ("head", "body") else "answering", reader.begun

    def _expire(self, phase: str) -> None:
        if phase in ("head", "body"):
            self.give_up(Refused("body_too_slow", f"the {phase} was not whole in time"))
        elif phase in ("linger", "unread answers"):
            self._abort()
        else:
            self._close()

    def _disarm(self) -> None:
        self._timed = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def _abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()
