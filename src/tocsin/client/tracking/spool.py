"""The spool: what could not be sent is on disk, and is sent later by whoever comes first."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from tocsin.client.blackboard.link import Link
from tocsin.client.blackboard.open_link import open_link
from tocsin.client.tracking import spool_file
from tocsin.client.tracking.profile import ProfileFilter, profile_filter
from tocsin.client.tracking.spool_file import SpoolFile
from tocsin.client.transport.address import BROKER_VARIABLE, address_learned
from tocsin.errors import BrokerRefused, SomeFailed, TocsinError, UnknownConcept
from tocsin.ontology import in_use
from tocsin.wire.blackboard.messages import Message, Profile

SPOOL_BYTES_MAX = 256 << 20  # of all files in the directory; some two million events
BATCH_MESSAGES_MAX = 1_000
SYNC_EVERY_S = 1.0  # what a power cut may cost; the crash of a program costs nothing written

# Answers that speak about one of the messages, not about the broker.
_ABOUT_A_MESSAGE = frozenset({400, 413, 415, 422})


def publish_each(
    link: Link, messages: Sequence[Message], refused: Callable[[TocsinError], None]
) -> int:
    """Publish to a link; how many were new. A refused message goes to `refused` and does not hold
    back the others; an error about all of them is raised."""
    if not messages:
        return 0
    try:
        return link.publish(messages)
    except (BrokerRefused, UnknownConcept) as error:
        if isinstance(error, BrokerRefused) and error.status not in _ABOUT_A_MESSAGE:
            raise
        if len(messages) == 1:
            refused(error)
            return 0
    middle = len(messages) // 2
    first = publish_each(link, messages[:middle], refused)
    return first + publish_each(link, messages[middle:], refused)


def default_directory() -> Path:
    """$XDG_STATE_HOME/tocsin/spool, or the same under ~/.local/state."""
    state = os.environ.get("XDG_STATE_HOME")
    if not state:
        with suppress(RuntimeError):
            return Path.home() / ".local" / "state" / "tocsin" / "spool"
        state = f"/var/tmp/{os.getuid()}"
    return Path(state) / "tocsin" / "spool"


class Spool:
    """One process's own file, made when there is something to write."""

    def __init__(
        self, directory: Path | None, broker: str, *, bytes_max: int = SPOOL_BYTES_MAX
    ) -> None:
        self.directory = directory or default_directory()
        self.broker = broker
        self._bytes_max = bytes_max
        self._own_bytes_max = 0
        self._file: SpoolFile | None = None
        self._synced_at = 0.0

    @property
    def has_more(self) -> bool:
        return self._file is not None and self._file.has_more

    def append(self, messages: Sequence[Message]) -> None:
        """Write them down, all or none; OSError says why not."""
        if self._file is None:
            others = spool_file.bytes_in(self.directory)
            self._own_bytes_max = self._bytes_max - others
            name = f"{os.getpid()}-{os.urandom(6).hex()}"
            self._file = spool_file.create(self.directory, self.broker, name)
        if self._file.size > self._own_bytes_max:
            raise OSError(f"{self._bytes_max >> 20} MiB of events wait in {self.directory}")
        self._file.append(messages)
        if time.monotonic() - self._synced_at > SYNC_EVERY_S:
            self._file.sync()
            self._synced_at = time.monotonic()

    def front(self) -> tuple[list[Message], int]:
        assert self._file is not None
        return self._file.front(BATCH_MESSAGES_MAX)

    def release(self, place: int) -> None:
        assert self._file is not None
        self._file.release(place)

    def close(self) -> None:
        """Leave what is left to whoever comes next."""
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):
                if file.has_more:
                    file.sync()
                file.close()

    def reopened(self) -> Spool:
        """For a forked child: the same directory, a file of its own."""
        if self._file is not None:
            with suppress(OSError):
                self._file.abandon()
        return Spool(self.directory, self.broker, bytes_max=self._bytes_max)

    def others(self) -> list[Path]:
        """Files that other processes left behind, or write still."""
        own = self._file.path if self._file is not None else None
        return [path for path in spool_file.files_in(self.directory) if path != own]


def _profile_path(directory: Path, broker: str) -> Path:
    name = "".join(c if c.isalnum() or c in ".-" else "_" for c in broker)[:150]
    return directory / f"profile-{name}.json"


def remember_profile(directory: Path, broker: str, profile: Profile) -> None:
    """Keep it for a time when the broker cannot be current."""
    with suppress(OSError):
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = _profile_path(directory, broker)
        fresh = path.with_name(f".{path.name}.{os.getpid()}")
        fresh.write_bytes(msgspec.json.encode(profile))
        fresh.rename(path)


def remembered_profile(directory: Path, broker: str) -> Profile | None:
    """The last profile that any process got from this broker."""
    try:
        data = _profile_path(directory, broker).read_bytes()
        return msgspec.json.decode(data, type=Profile)
    except (OSError, msgspec.DecodeError):
        return None


@dataclass(frozen=True, slots=True)
class SpoolCounts:
    """What became of the files and messages of a spool."""

    files: int = 0
    busy: int = 0
    left: int = 0
    """Files that wait still, because their broker would not take them."""
    sent: int = 0
    duplicates: int = 0
    filtered: int = 0
    refused: int = 0
    damaged: int = 0


Progress = Callable[[SpoolCounts], None]
Failures = dict[str, TocsinError]
"""By a broker's address, why it did not take what waited for it."""


def send_all(
    broker: str | None = None, directory: Path | None = None, progress: Progress | None = None
) -> SpoolCounts:
    """Send what waits: to `broker`, or to TOCSIN_BROKER, otherwise each file to the one it is for.

    Files that a running process writes are left to it, as `busy`. Raises what kept a broker from
    taking them, after all others were tried; what was taken is gone from the spool then, and the
    rest is still there.
    """
    counts, failures = send_each(broker, directory, progress)
    if (failure := failure_of(counts, failures)) is not None:
        raise failure
    return counts


def send_each(
    broker: str | None = None, directory: Path | None = None, progress: Progress | None = None
) -> tuple[SpoolCounts, Failures]:
    """The same, with the brokers that failed in place of an error."""
    where = directory or default_directory()
    named = broker or os.environ.get(BROKER_VARIABLE)
    counts = SpoolCounts()
    failures: Failures = {}
    links: dict[str, tuple[Link, ProfileFilter]] = {}
    try:
        for path in spool_file.files_in(where):
            file = spool_file.take(path)
            if file is None:
                counts = replace(counts, busy=counts.busy + 1)
                continue
            address = named or file.broker
            try:
                if address in failures:  # nobody waits for it again at each of its files
                    raise failures[address]
                if address not in links:
                    link = open_link(address if named else address_learned(address))
                    links[address] = (link, _filter_of(link, where))
                for now in _sending(file, *links[address], counts):
                    counts = now
                    if progress is not None:
                        progress(counts)
            except TocsinError as error:
                failures[address] = error
                counts = replace(counts, left=counts.left + 1)
            finally:
                file.close()
    finally:
        for link, _ in links.values():
            link.close()
    return counts, failures


def failure_of(counts: SpoolCounts, failures: Failures) -> TocsinError | None:
    """What to report of brokers that failed: the one thing that is wrong, or some of many."""
    if not failures:
        return None
    if len(failures) == 1 and not counts.files:
        return next(iter(failures.values()))
    return SomeFailed(
        f"{counts.left} files could not be sent: "
        + "; ".join(error.problem for error in failures.values()),
        remedy="Send again when they are there, or send all to one broker with --broker.",
    )


def _filter_of(link: Link, directory: Path) -> ProfileFilter:
    identity = in_use().below("Identity")
    now = profile_filter(link.profile(), identity)
    before = remembered_profile(directory, link.name)
    # A subscriber that has not found back to a broker just started must not lose what waited.
    return now if before is None else now | profile_filter(before, identity)


def _sending(
    file: SpoolFile, link: Link, current: ProfileFilter, counts: SpoolCounts
) -> Iterator[SpoolCounts]:
    """Send a file; the counts after each batch, and once more when it is through."""
    refused: list[TocsinError] = []
    while file.has_more:
        messages, place = file.front(BATCH_MESSAGES_MAX)
        worth = [part for message in messages if (part := current.apply(message)) is not None]
        before = len(refused)
        new = publish_each(link, worth, refused.append)
        bad = len(refused) - before
        file.release(place)
        counts = replace(
            counts,
            sent=counts.sent + new,
            duplicates=counts.duplicates + len(worth) - bad - new,
            filtered=counts.filtered + len(messages) - len(worth),
            refused=counts.refused + bad,
        )
        yield counts
    yield replace(counts, files=counts.files + 1, damaged=counts.damaged + file.damaged)
