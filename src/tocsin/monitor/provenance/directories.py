"""Files in a directory that an activity made.

An engine reports the directory, not what is in it. Others then read files in it that nobody
seems to have made; whoever made the directory did.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from tocsin.monitor.provenance.view import RunView, moment, ran_attempts
from tocsin.wire.api.run_views import ActivityInfo

DEPTH_MAX: Final = 64  # how far up a directory is looked for; a hostile path has more levels

Inside = Mapping[str, tuple[str, ...]]
"""By directory, without a slash at its end, what was read of it."""


def key_of(path: str) -> str:
    """A directory however it was reported: `parts/` is `parts`."""
    return path.rstrip("/")


def outputs_of(attempt: ActivityInfo, inside: Inside) -> list[str]:
    """What it made, by name or in a directory, each once."""
    found = dict.fromkeys(attempt.outputs)
    if inside:
        for path in attempt.outputs:
            found.update(dict.fromkeys(inside.get(key_of(path), ())))
    return list(found)


def read_inside(view: RunView) -> Inside:
    """Which files were read in which directories that somebody made."""
    # From the readers first: their directories are few, while what was made may be a million files.
    above: set[str] = set()
    for attempt in _took_part(view):
        for path in attempt.inputs:
            above.update(_above(path))
    made: dict[str, _Directory] = {}
    for attempt in _makers(view):
        for path in attempt.outputs:
            if (key := key_of(path)) in above:
                made.setdefault(key, _Directory()).was_made(attempt)
    return _members(view, made) if made else {}


@dataclass(slots=True)
class _Directory:
    begun: str | None = None  # when the first of its makers began; None if unknown
    read_by_makers: set[str] = field(default_factory=set)

    def was_made(self, maker: ActivityInfo) -> None:
        begin = moment(maker.started)
        if begin is not None and (self.begun is None or begin < self.begun):
            self.begun = begin
        self.read_by_makers.update(maker.inputs)

    def has_made(self, path: str, reader: ActivityInfo) -> bool:
        """False for what was there before: its maker read it, or somebody did before it began."""
        begin = moment(reader.started)
        before = begin is not None and self.begun is not None and begin < self.begun
        return not before and path not in self.read_by_makers


def _members(view: RunView, made: Mapping[str, _Directory]) -> Inside:
    found: dict[str, str] = {}
    not_made: set[str] = set()  # there: it was there before, or somebody else made it by name
    for attempt in _took_part(view):
        for path in attempt.inputs:
            key = next((each for each in _above(path) if each in made), None)
            if key is None:
                continue
            found[path] = key
            if not made[key].has_made(path, attempt):
                not_made.add(path)
    for attempt in _makers(view):
        not_made.update(path for path in attempt.outputs if path in found)
    inside: dict[str, list[str]] = {}
    for path, key in found.items():
        if path not in not_made:
            inside.setdefault(key, []).append(path)
    return {key: tuple(paths) for key, paths in inside.items()}


def _above(path: str) -> Iterator[str]:
    """The directories that a path lies in, the nearest first."""
    end = path.rstrip("/").rfind("/")
    for _ in range(DEPTH_MAX):
        if end <= 0 or path[end : end + 4] in ("/..", "/../"):
            return  # the top, or something that leads out of what is before it
        if key := key_of(path[:end]):
            yield key
        end = path.rfind("/", 0, end)


def _took_part(view: RunView) -> Iterator[ActivityInfo]:
    """Every attempt that took place, and what was taken from a cache."""
    yield from (activity for activity in view.activities if activity.state == "cached")
    yield from (attempt for _, attempt in ran_attempts(view))


def _makers(view: RunView) -> Iterator[ActivityInfo]:
    """Only who succeeded made what it was to make."""
    return (each for each in _took_part(view) if each.state in ("succeeded", "cached"))
