"""Entries of the directory as the API shows them."""

from __future__ import annotations

from tocsin.event.event import Value
from tocsin.event.instant import iso_duration, rfc3339, rfc3339_or_none
from tocsin.event.value import Quantity
from tocsin.wire.api.directory_views import DirectoryPage, EntryInfo, OfferedInfo
from tocsin.wire.directory.entry import Entry
from tocsin.wire.directory.listing import EntryPage


def entry_info(entry: Entry) -> EntryInfo:
    about = entry.registration
    return EntryInfo(
        id=entry.id,
        kind=about.kind,
        name=about.name,
        host=about.host,
        address=about.address,
        events=[
            OfferedInfo(each.name.local, each.name.namespace, list(each.parameters))
            for each in about.events
        ],
        attributes={name: _attribute(value) for name, value in about.attributes.items()},
        lease=iso_duration(about.lease_ns) if about.lease_ns else None,
        registered=rfc3339(entry.registered_ns),
        expires=rfc3339_or_none(entry.expires_ns),
    )


def _attribute(value: Value) -> object:
    if not isinstance(value, Quantity):
        return value
    members = {"value": value.value, "unit": value.unit, "accuracy": value.accuracy}
    return {name: each for name, each in members.items() if each is not None}


def page_info(found: EntryPage) -> DirectoryPage:
    return DirectoryPage([entry_info(entry) for entry in found.entries], found.next)
