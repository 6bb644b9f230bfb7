"""Which partitions belong to which shard."""

import pytest

from sinks.relay.sharding import partitions_of
from tallyhook.errors import SettingsError
from tallyhook.settings import Installation, RelaySettings, Settings, load


def _settings(partitions: int, shards: int, shard: int) -> Settings:
    made = load()
    return Settings(
        **{
            name: getattr(made, name) for name in ("kafka", "database", "process", "ingress", "stream", "sink", "local")
        },
        installation=Installation(partitions=partitions),
        relay=RelaySettings(shards=shards, shard=shard),
    )


@pytest.mark.parametrize(("partitions", "shards"), [(8, 1), (8, 3), (5, 5), (1, 1)])
def test_every_partition_has_one_shard(partitions: int, shards: int) -> None:
    """Together the shards have each partition once, and none is idle."""
    parts = [partitions_of(_settings(partitions, shards, shard)) for shard in range(shards)]
    assert all(parts)
    assert sorted(partition for part in parts for partition in part) == list(range(partitions))
    assert all(partition % shards == shard for shard, part in enumerate(parts) for partition in part)


@pytest.mark.parametrize(
    ("partitions", "shards", "shard", "told"),
    [(8, 2, 2, "TALLYHOOK_RELAY_SHARD=2: must be below"), (4, 5, 4, "TALLYHOOK_RELAY_SHARDS=5: must be at most")],
)
def test_impossible_shards_are_refused(partitions: int, shards: int, shard: int, told: str) -> None:
    """The message names the variable and the bound."""
    with pytest.raises(SettingsError, match=told):
        partitions_of(_settings(partitions, shards, shard))
