"""The door's settings, looked at before anything is started: `up` would start a door that refuses them for ever."""

from ingress.endpoint_settings import FILE, read_endpoints
from ingress.endpoints import DEFAULT
from tallyhook.errors import SettingsError
from tallyhook.settings import IngressSettings


def check_door(settings: IngressSettings) -> None:
    """Raises SettingsError for keys and endpoints that the door would refuse.

    Where the variables give no key, `up` makes a local one, and with it the endpoint `default`.
    """
    keys_given = settings.public_keys is not None or settings.public_keys_file is not None
    if not keys_given and settings.endpoints_file is None:
        return
    names = {endpoint.name for endpoint in read_endpoints(settings)}
    if not keys_given and DEFAULT in names:
        raise SettingsError(
            f"{FILE}={settings.endpoints_file}: the endpoint {DEFAULT} is given twice, here and by `tallyhook up`,"
            " which serves it with the local key of its state directory: give the one in the file another name (it is"
            " then at /webhooks/NAME), or run `tallyhook ingress` on its own"
        )
