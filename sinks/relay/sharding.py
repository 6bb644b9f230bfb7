"""Which partitions a relay works on. The number of shards is fixed when the first relay of an installation starts."""

from sinks import migrations
from sinks.relay.database import answering, open_connection
from tallyhook.errors import SettingsError
from tallyhook.postgres import Queries
from tallyhook.settings import Settings


def partitions_of(settings: Settings) -> list[int]:
    """The shard's partitions in ascending order; raises SettingsError when there is no such shard or it has none."""
    relay, partitions = settings.relay, settings.installation.partitions
    if relay.shard >= relay.shards:
        raise SettingsError(
            f"TALLYHOOK_RELAY_SHARD={relay.shard}: must be below TALLYHOOK_RELAY_SHARDS={relay.shards}; the first is 0"
        )
    if relay.shards > partitions:
        raise SettingsError(
            f"TALLYHOOK_RELAY_SHARDS={relay.shards}: must be at most TALLYHOOK_PARTITIONS={partitions},"
            " or some shards have nothing to do"
        )
    return list(range(relay.shard, partitions, relay.shards))


def fix(settings: Settings, queries: Queries) -> None:
    """Notes the number of shards, or holds it against the noted one.

    Two numbers at once would have two relays send the same partition under different transactional ids, and Kafka
    would not fence one of them. Raises SettingsError for another number, SchemaMismatch before `tallyhook migrate`,
    DatabaseUnavailable.
    """
    with open_connection(settings.database) as connection, answering("reading the number of shards"):
        migrations.check(connection, settings.installation)
        connection.execute(queries["install_shards"], {"shards": settings.relay.shards})
        row = connection.execute(queries["installed_shards"]).fetchone()
    installed, wanted = int(row[0]) if row else 0, settings.relay.shards
    if installed != wanted:
        raise SettingsError(
            f"TALLYHOOK_RELAY_SHARDS={wanted}: this installation has {installed}, and a partition must not be sent by"
            f" two relays. Set it to {installed}; to change it, stop every relay, wait"
            f" {settings.relay.transaction_timeout_seconds:g} s, then set the column shards of the table"
            f" {settings.installation.schema_name}.relay_installation to {wanted}"
        )
