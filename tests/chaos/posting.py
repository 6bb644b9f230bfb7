"""A load that is posted while a test disturbs the pipeline, and what must hold once it is through."""

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from tallyhook.gateway.signing import SigningKey
from tests.chaos.ending import audit, check_effects, check_load
from tests.chaos.gateway import Gateway
from tests.chaos.load import Correlator, Load
from tests.chaos.tally import TALLY
from tests.running import RunningPipeline

END_SECONDS = 150.0
LOG_LINES, LINE_CHARACTERS = 8, 400


@contextmanager
def posted(
    pipeline: RunningPipeline, load: Load, rate_a_second: float, *, end_seconds: float = END_SECONDS
) -> Iterator[Gateway]:
    """Posts the load meanwhile; at the end every delivery is answered and the tables hold the world's expected end."""
    ready = pipeline.ready
    gateway = Gateway(urlsplit(ready["ingress_url"]).netloc, SigningKey.from_text(ready["signing_key"]), rate_a_second)
    correlator = Correlator(pipeline, load, lambda: gateway.sent / len(load.deliveries))
    gateway.start(load.deliveries)
    correlator.start()
    try:
        yield gateway
        gateway.hurry()
        gateway.join(end_seconds)
        correlator.join(end_seconds)
        assert not correlator.is_alive()
        check_load(pipeline, load, END_SECONDS)
    except BaseException as failure:
        failure.add_note(_last_words(pipeline))
        raise
    finally:
        TALLY.deliveries += gateway.sent
        print("answers:", dict(gateway.answers))


def _last_words(pipeline: RunningPipeline) -> str:
    """Why which stage is not ready, and the ends of the logs, which are gone when somebody looks at the failure."""
    ends = [f"not ready: {pipeline.not_ready()}"]
    for log in sorted((pipeline.state_dir / "logs").glob("*.log")):
        ends += [f"{log.name}:", *log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_LINES:]]
    return "\n".join(line[:LINE_CHARACTERS] for line in ends)


def check_all(pipeline: RunningPipeline) -> None:
    """Each outbox row is in its topic once, and the audit is clean."""
    check_effects(pipeline, END_SECONDS)
    assert audit(pipeline) == []
