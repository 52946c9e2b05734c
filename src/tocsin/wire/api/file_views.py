"""What the API answers about files, across runs, as types."""

from __future__ import annotations

from tocsin.wire.api.run_views import View


class FileFound(View, frozen=True, kw_only=True):
    """A file as an activity wrote it (`role` is `output`) or read it (`input`).

    `path` is `name` in the directory that its run worked in. `size` is null where the activity
    reported several such files, as sizes are reported as one sum.
    """

    name: str
    path: str
    role: str
    run: str
    workflow: str
    engine: str
    activity: str
    type: str
    state: str
    time: str | None
    size: int | None
    host: str | None
    command: str | None


class LineageStepInfo(View, frozen=True, kw_only=True):
    """A file, and who wrote it (in `up`) or read it (in `down`). Without a run, it is unknown who
    wrote it."""

    file: str
    depth: int
    run: str | None
    activity: str | None
    type: str | None
    state: str | None
    time: str | None


class LineageInfo(View, frozen=True, kw_only=True):
    """What a file was made from, and what was made from it, the nearest first. `more` is true if
    that is not all."""

    up: list[LineageStepInfo]
    down: list[LineageStepInfo]
    more: bool


class FilesFound(View, frozen=True, kw_only=True):
    """Some files, of the latest run first. Pass `next` as `after` to go on; null is the end.

    `lineage` is that of the first of them; null unless it was asked for with `depth`.
    """

    files: list[FileFound]
    next: str | None
    lineage: LineageInfo | None
