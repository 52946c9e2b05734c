"""Plugins: sinks, stores, log readers and dialects, built in or of other packages.

Each is an entry point: a name, and where the object is. Ours stand here, so that a checkout needs
no installation; those of other packages are found in the metadata of what is installed. All are
loaded the same way, when they are needed.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from tocsin.errors import BadSetting

SINKS: Final = "tocsin.sinks"
STORES: Final = "tocsin.stores"
LOG_READERS: Final = "tocsin.log_readers"
DIALECTS: Final = "tocsin.dialects"

BUILT_IN: Final = {
    SINKS: {
        "http": "tocsin.drivers.push.sinks:HTTP",
        "https": "tocsin.drivers.push.sinks:HTTPS",
        "soap.tcp": "tocsin.drivers.push.sinks:ENVELOPES",
        "gma": "tocsin.drivers.push.sinks:GMA",
        "gmas": "tocsin.drivers.push.sinks:GMAS",
    },
    STORES: {
        "sqlite": "tocsin.drivers.storage.stores:open_sqlite",
        "memory": "tocsin.drivers.storage.stores:open_memory",
    },
    LOG_READERS: {
        "sqlite": "tocsin.drivers.storage.stores:read_sqlite",
    },
    DIALECTS: {
        "http": "tocsin.drivers.dialects:open_http",
        "frames": "tocsin.drivers.dialects:open_frames",
        "soap_tcp": "tocsin.drivers.dialects:open_soap_tcp",
        "pegasus": "tocsin.drivers.dialects:open_pegasus",
        "link": "tocsin.drivers.dialects:open_link",
    },
}


class Plugins:
    """The plugins of one group, by name."""

    def __init__(self, group: str, others: Iterable[EntryPoint] = ()) -> None:
        """`others` are those of other packages. Raises BadSetting if two have one name."""
        self.group = group
        ours = BUILT_IN[group].items()
        self._points = {name: EntryPoint(name, value, group) for name, value in ours}
        self.others: list[str] = []
        for point in others:
            known = self._points.get(point.name)
            if known is not None and known.value == point.value:
                continue  # one package may be found at two places
            if known is not None:
                raise BadSetting(
                    f"{known.value} and {point.value} both register {point.name!r} as {group}",
                    remedy="Uninstall one of the two packages.",
                )
            self._points[point.name] = point
            self.others.append(point.name)

    @property
    def names(self) -> list[str]:
        return sorted(self._points)

    def load(self, name: str) -> Any:
        """The object by that name; raises BadSetting."""
        point = self._points.get(name)
        if point is None:
            raise BadSetting(
                f"{self.group} has no {name!r}", remedy=f"Known: {', '.join(self.names)}."
            )
        try:
            return point.load()
        except Exception as error:
            raise BadSetting(
                f"{point.value}, registered as {name!r} of {self.group}, cannot be loaded: "
                f"{error!r}",
                remedy="Repair the package that registers it, or uninstall it.",
            ) from error


@cache
def plugins(group: str) -> Plugins:
    """The plugins of a group, with those of every installed package."""
    return Plugins(group, entry_points(group=group))
