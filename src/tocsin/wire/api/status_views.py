"""The state of a broker and its topics, as types: `/status` and `/topics`."""

from __future__ import annotations

import msgspec


class LogInfo(msgspec.Struct, frozen=True):
    """The log: its oldest and newest sequence number, and events a second in the last minute."""

    directory: str
    first: int
    last: int
    events: int
    events_per_s: float


class BehindInfo(msgspec.Struct, frozen=True):
    """How far subscriptions and boxes are behind the log; `slowest` is the id of the last one."""

    most: int
    total: int
    slowest: str | None


class DiskInfo(msgspec.Struct, frozen=True):
    """Room on the disk of the data directory, in bytes."""

    free: int
    size: int


class MonitorInfo(msgspec.Struct, frozen=True):
    """The monitor of runs; `problem` says why it is off."""

    on: bool
    behind: int = 0
    problem: str | None = None


class ArchiveInfo(msgspec.Struct, frozen=True):
    """The archive; `through` is the newest event in it, `waiting` those that are not yet."""

    on: bool
    through: int = 0
    waiting: int = 0
    problem: str | None = None


class OverlayInfo(msgspec.Struct, frozen=True):
    """Links to other brokers: neighbours, `up` those that are linked now; other brokers that are
    `reached`; the settings --peer that are not linked."""

    neighbours: int
    up: int
    reached: int
    peers_not_linked: int


class AuthInfo(msgspec.Struct, frozen=True):
    """Whether clients must sign in, whether listeners speak TLS, and whether there is an audit
    log; `problem` says why it is not written."""

    mode: str
    tls: bool
    audit: bool
    problem: str | None = None


class StatusInfo(msgspec.Struct, frozen=True):
    """What an operator asks first."""

    version: str
    ready: bool
    reasons: list[str]
    started: str
    uptime_s: float
    listeners: dict[str, str]
    log: LogInfo
    subscriptions: dict[str, int]
    boxes: int
    streams: int
    connections: int
    dead_letters: int
    behind: BehindInfo
    topics: int
    monitor: MonitorInfo
    archive: ArchiveInfo
    overlay: OverlayInfo | None
    auth: AuthInfo
    disk: DiskInfo | None


class TopicInfo(msgspec.Struct, frozen=True):
    """A topic; '' is that of events which have none. The rate is of the last minute. Only the name
    is told to who may not read every event on it."""

    topic: str
    events: int | None
    events_per_s: float | None
    last_seq: int | None
    last_time: str | None


class TopicsPage(msgspec.Struct, frozen=True):
    """Topics. Events are counted from sequence number `counted_from` on.

    `more` is true if `limit` left some out. At most `topics_max` topics are known; `forgotten`
    counts those that had to go because they were silent for longest.
    """

    topics: list[TopicInfo]
    more: bool
    counted_from: int
    topics_max: int
    forgotten: int
