"""Static continuous requests (paper 001, 4.3.1): kept at the client's broker, which knows all."""

from __future__ import annotations

from tocsin.overlay.discovery.advertisements import Advertisements, Entry, ResourceKey
from tocsin.overlay.discovery.context import Context
from tocsin.overlay.discovery.conversion import static_resource
from tocsin.overlay.discovery.effects import Change, Notice
from tocsin.overlay.discovery.requests import Request
from tocsin.overlay.region import Regions


class StaticWatches:
    """The static continuous requests of this broker's clients, and what each was told of."""

    def __init__(
        self, context: Context, advertisements: Advertisements, requests: Regions[str]
    ) -> None:
        self._context = context
        self._advertisements = advertisements
        self._requests = requests
        self._held: dict[str, set[ResourceKey]] = {}  # by request
        self._holders: dict[ResourceKey, set[str]] = {}

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, request_id: str) -> bool:
        return request_id in self._held

    def add(self, request: Request) -> int:
        """Begins to watch; returns how many resources there are now."""
        self._held[request.request_id] = set()
        self._requests.add(request.request_id, request.region)
        entries = self._advertisements.static_entries(request.region)
        for entry in entries:
            self._hold(request.request_id, entry)
            if request.snapshot:
                self._notify(request.request_id, Change.ADDED, entry)
        return len(entries)

    def remove(self, request_id: str) -> bool:
        held = self._held.pop(request_id, None)
        if held is None:
            return False
        self._requests.remove(request_id)
        for key in held:
            self._holders[key].discard(request_id)
            if not self._holders[key]:
                del self._holders[key]
        return True

    def changed(self, old: Entry | None, new: Entry | None) -> None:
        """An advertisement came, changed or went."""
        entry = new or old
        assert entry is not None
        before = self._holders.pop(entry.key, set())
        now: dict[str, None] = {}
        if new is not None and not new.is_dynamic:
            for row in new.rows:
                now |= dict.fromkeys(self._requests.requests_overlapping(row))
        for request_id in now:
            assert new is not None
            self._hold(request_id, new)
            if request_id not in before:
                self._notify(request_id, Change.ADDED, new)
            elif old is not None and old.message.adv_id != new.message.adv_id:
                self._notify(request_id, Change.CHANGED, new)
        for request_id in sorted(before - now.keys()):
            self._held[request_id].discard(entry.key)
            if old is not None:
                self._notify(request_id, Change.REMOVED, old)

    def _hold(self, request_id: str, entry: Entry) -> None:
        self._held[request_id].add(entry.key)
        self._holders.setdefault(entry.key, set()).add(request_id)

    def _notify(self, request_id: str, change: Change, entry: Entry) -> None:
        self._context.effects.append(Notice(request_id, change, static_resource(entry.message)))
