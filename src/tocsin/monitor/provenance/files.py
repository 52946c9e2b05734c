"""Which files a run read and wrote, each version of a file by itself.

In PROV an entity is made once. A file that is written again, or changed in place, is another
entity, and who reads it afterwards reads that one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from tocsin.monitor.provenance.directories import Inside, key_of, outputs_of, read_inside
from tocsin.monitor.provenance.names import Name, attempt_name, local
from tocsin.monitor.provenance.view import RunView, moment, ran_attempts
from tocsin.wire.api.run_views import ActivityInfo

_BEFORE_ALL: Final = ""


@dataclass(frozen=True, slots=True)
class Written:
    """A version of a file: when it was there, who made it (None if it was there before)."""

    at: str
    by: Name | None
    entity: Name


@dataclass(slots=True)
class RunFiles:
    """The files of a run. `sizes` has every path, in the order in which they first came."""

    sizes: dict[str, int | None] = field(default_factory=dict)
    made: set[str] = field(default_factory=set)
    consumed: set[str] = field(default_factory=set)
    """What an activity read that wrote something itself; the rest are results."""
    rewritten: dict[str, list[Written]] = field(default_factory=dict)
    kept: set[str] = field(default_factory=set)
    """What was taken from a cache: made, but not in this run."""
    inside: Inside = field(default_factory=dict)

    def outputs(self, attempt: ActivityInfo) -> list[str]:
        """What it made, by name or in a directory that it made."""
        return outputs_of(attempt, self.inside)

    def is_directory(self, path: str) -> bool:
        return key_of(path) in self.inside

    def contained(self, view: RunView) -> Iterator[tuple[Name, Name]]:
        """Each directory with each file that was read in it, version by version."""
        for activity in view.activities if self.inside else ():
            if activity.state == "cached":
                for directory, path in self._pairs(activity):
                    yield first_entity(directory), first_entity(path)
        for activity, attempt in ran_attempts(view) if self.inside else ():
            if attempt.state == "succeeded":
                name = attempt_name(activity.id, attempt.attempt)
                for directory, path in self._pairs(attempt):
                    yield self.entity_written(directory, name), self.entity_written(path, name)

    def _pairs(self, attempt: ActivityInfo) -> Iterator[tuple[str, str]]:
        for directory in dict.fromkeys(attempt.outputs):
            for path in self.inside.get(key_of(directory), ()):
                yield directory, path

    def entity_read(self, path: str, reader: ActivityInfo, name: Name) -> Name:
        """The version that this attempt read: the last one of others that was there by then."""
        versions = self.rewritten.get(path)
        if versions is None:
            return first_entity(path)
        others = [version for version in versions if version.by != name]
        begin = moment(reader.started)
        place = bisect_right(others, begin, key=lambda each: each.at) if begin else len(others)
        return others[max(place - 1, 0)].entity if others else first_entity(path)

    def entity_written(self, path: str, writer: Name) -> Name:
        for version in self.rewritten.get(path, ()):
            if version.by == writer:
                return version.entity
        return first_entity(path)

    def entities(self) -> Iterator[tuple[str, Name]]:
        """Every path with each of its versions."""
        for path in self.sizes:
            versions = self.rewritten.get(path)
            if versions is None:
                yield path, first_entity(path)
            else:
                yield from ((path, version.entity) for version in versions)

    @property
    def external(self) -> Iterator[str]:
        """What the run read and did not make."""
        return (path for path in self.sizes if path not in self.made and path not in self.kept)

    @property
    def results(self) -> list[str]:
        """What was made and not read again, or all that was made if everything was."""
        made = [path for path in self.sizes if path in self.made or path in self.kept]
        return [path for path in made if not self._is_consumed(path)] or made

    def _is_consumed(self, path: str) -> bool:
        """A directory is if a file in it is."""
        read = self.inside.get(key_of(path), ())
        return path in self.consumed or any(each in self.consumed for each in read)


def first_entity(path: str) -> Name:
    return Name("file", local(path))


def run_files(view: RunView) -> RunFiles:
    """Go through the activities once. Only who succeeded made what it was to make."""
    files = RunFiles(inside=read_inside(view))
    first: dict[str, Written] = {}
    for activity in view.activities:
        if activity.state == "cached":
            files.kept.update(files.outputs(activity))
            if activity.outputs:
                files.consumed.update(activity.inputs)
            _note(files, activity.inputs, activity.input_bytes)
            _note(files, activity.outputs, activity.output_bytes)
    for _, attempt in ran_attempts(view):
        _note(files, attempt.inputs, attempt.input_bytes)
        if attempt.outputs:
            files.consumed.update(attempt.inputs)
        if attempt.state == "succeeded":
            _note(files, attempt.outputs, attempt.output_bytes)
            _write(files, attempt, first)
    files.rewritten = {path: _named(path, versions) for path, versions in files.rewritten.items()}
    return files


def _note(files: RunFiles, paths: Sequence[str], total: int | None) -> None:
    # The sum over one file is that file's size.
    size = total if len(paths) == 1 else None
    for path in paths:
        files.sizes[path] = files.sizes.get(path) if size is None else size


def _write(files: RunFiles, attempt: ActivityInfo, first: dict[str, Written]) -> None:
    name = attempt_name(attempt.id, attempt.attempt)
    at = moment(attempt.ended) or moment(attempt.started) or _BEFORE_ALL
    read = set(attempt.inputs)
    for path in files.outputs(attempt):
        entity = first_entity(path)
        if path not in first:
            in_place = path in read or path in files.kept
            first[path] = (
                Written(_BEFORE_ALL, None, entity) if in_place else Written(at, name, entity)
            )
            if not in_place:
                files.made.add(path)
                continue
        files.made.add(path)
        files.rewritten.setdefault(path, [first[path]]).append(Written(at, name, entity))


def _named(path: str, versions: list[Written]) -> list[Written]:
    """The versions in the order in which they were made, each with a name of its own."""
    ordered = sorted(versions, key=lambda version: version.at)
    return [ordered[0]] + [
        Written(version.at, version.by, Name("rewritten", f"{local(path)}.{number}"))
        for number, version in enumerate(ordered[1:], start=2)
    ]
