"""Logs: one line a record, JSON by default, control characters escaped, no bodies, no secrets."""

import logging
import sys
from typing import Literal

import structlog

LogFormat = Literal["json", "console"]


def configure(component: str, level: str = "info", style: LogFormat = "json") -> None:
    """Sends structlog and the standard library's records of this process to standard error.

    Args:
        component: the process's name (ingress, stream, sink, relay, ...), bound to each record.
        level: debug, info, warning or error.
        style: json for machines, console for people at a terminal.
    """
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        _Component(component),  # a processor and no context variable: those stay behind when a thread starts
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer(ensure_ascii=True, sort_keys=False)
        if style == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
            foreign_pre_chain=shared,
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )


class _Component:
    """Writes the process's name into each record, whichever thread it comes from."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, _logger: object, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
        event["component"] = self._name
        return event


def logger(name: str) -> structlog.stdlib.BoundLogger:
    """The logger of one module; events are short sentences, facts are keyword arguments."""
    bound: structlog.stdlib.BoundLogger = structlog.get_logger(name)
    return bound
