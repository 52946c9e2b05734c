"""RunWriter: a batch of messages is folded into the rows it touches, and no others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from tocsin.drivers.monitor.database.attempt_rows import (
    Attempt,
    count,
    decode_row,
    encode,
    settle,
    state_of,
    take_excess,
    use,
)
from tocsin.drivers.monitor.database.file_index import FileUse, new_files, put_files
from tocsin.drivers.monitor.database.retention import in_one, prune
from tocsin.drivers.monitor.database.run_numbers import RunNumbers
from tocsin.drivers.monitor.database.run_topics import put_topics
from tocsin.drivers.monitor.database.schema import connect_writer
from tocsin.drivers.monitor.options import MonitorOptions
from tocsin.monitor.anomalies import find_cycle
from tocsin.monitor.end_states import ENDED_RUN
from tocsin.monitor.fold import (
    ConceptRules,
    ParsedMessage,
    Row,
    RunMessage,
    latest,
    merge_into,
    parse_message,
    put,
)
from tocsin.monitor.rules import PEAKS, SUMMED
from tocsin.monitor.states import lost_at_ns, run_started_ns, run_state
from tocsin.monitor.views import read_object
from tocsin.ontology import Vocabulary

NAMES_AT_ONCE: Final = 256  # in one query
CONTEXT_EVENTS: Final = 50  # before a failure that are kept
PINS_MAX: Final = 500  # failures of one run whose context is kept for good
VALUE_CHARS_MAX: Final = 4_096  # of a pair, where events are shown
# A run is looked at for cycles when it has grown by a quarter, so that this costs little a message
# however long the run; and when it ends.
CYCLE_GROWTH: Final = 1.25
CYCLE_CHECKED_ALWAYS: Final = 32  # activities
CYCLE_CHECKED_MAX: Final = 100_000
CYCLES_KNOWN_MAX: Final = 1_000  # runs whose size at the last look is remembered
TRIM_SLACK: Final = 1.1  # events beyond the limit go some at a time

_IN = f"({','.join('?' * NAMES_AT_ONCE)})"
_SELECT_ATTEMPTS = (
    "SELECT no, activity, attempt, last, state, type, odd, row FROM attempts "
    f"WHERE run = ? AND activity IN {_IN}"
)
_INSERT_ATTEMPT = "INSERT INTO attempts VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_UPDATE_ATTEMPT = (
    "UPDATE attempts SET last=?, state=?, type=?, version=?, ended_ns=?, duration_s=?, fault=?, "
    "odd=?, row=? WHERE no=?"
)
_UPDATE_RUN = (
    "UPDATE runs SET workflow=?, version=?, engine=?, state=?, sort_ns=?, started_ns=?, "
    "ended_ns=?, lost_at_ns=?, heard_ns=?, events=?, pins=?, odd=?, cycle=?, row=? WHERE no=?"
)
_ADD_TALLY = (
    "INSERT INTO tally VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET count = count + excluded.count"
)
_ADD_USED = (
    "INSERT INTO used VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET amount = amount + excluded.amount"
)
_RAISE_USED = (
    "INSERT INTO used VALUES (?, ?, ?) "
    "ON CONFLICT DO UPDATE SET amount = max(amount, excluded.amount)"
)
_REMEMBER_ALERT = "INSERT OR IGNORE INTO alerts VALUES (?, ?, ?)"
# What a version was forked from comes in a message of its own, before it is saved.
_PUT_VERSION = (
    "INSERT INTO versions VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
    "seq=excluded.seq, at_ns=excluded.at_ns, previous=excluded.previous, message=excluded.message, "
    "fork_of = iif(excluded.fork_of = '', fork_of, excluded.fork_of) WHERE excluded.seq > seq"
)
_PIN = (
    "UPDATE events SET pinned = 1 WHERE run = ?1 AND seq IN "
    "(SELECT seq FROM events WHERE run = ?1 AND seq <= ?2 ORDER BY seq DESC LIMIT ?3)"
)
_TRIM = (
    "DELETE FROM events WHERE run = ?1 AND NOT pinned AND seq <= "
    "(SELECT seq FROM events WHERE run = ?1 ORDER BY seq DESC LIMIT 1 OFFSET ?2)"
)


@dataclass(slots=True)
class _Group:
    """What a batch says of one run."""

    row: Row = field(default_factory=dict)
    attempts: dict[tuple[str, int], Row] = field(default_factory=dict)
    events: list[tuple[RunMessage, int]] = field(default_factory=list)
    faults: list[int] = field(default_factory=list)
    alerts: list[tuple[str, int]] = field(default_factory=list)
    topics: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Run:
    no: int
    row: Row
    events: int = 0
    pins: int = 0
    odd: int = 0
    cycle: str = ""
    state: str = ""


class RunWriter:
    """What was folded, on disk. One thread writes; each reader has a connection of its own."""

    def __init__(self, directory: Path, options: MonitorOptions, vocabulary: Vocabulary) -> None:
        self.directory = directory
        self.options = options
        self._connection = connect_writer(directory)
        self._rules = ConceptRules(vocabulary)
        self._evolution = vocabulary.below("EvolutionEvent")
        self._failures = (
            vocabulary.below("ActivityFailed")
            | vocabulary.below("ActivityFaulting")
            | vocabulary.below("WorkflowTerminated")
            | vocabulary.below("WorkflowException")
        )
        self._looked_at: dict[int, int] = {}
        ((place, missed),) = self._all("SELECT seq, missed FROM place")
        self.place: int = place
        self.missed: int = missed

    def close(self) -> None:
        self._connection.close()

    def write(self, messages: Sequence[RunMessage], through: int, *, missed: int = 0) -> None:
        """Fold these, all or none, and note that the log was read up to `through`."""
        groups: dict[str, _Group] = {}
        numbers = RunNumbers(self._connection)
        for message in messages:
            parsed = parse_message(message, self._rules)
            if parsed is not None:
                run_id = numbers.run_of(parsed, message)
                self._gather(groups.setdefault(run_id, _Group()), parsed, message)
        place, missed = max(through, self.place), self.missed + missed
        with in_one(self._connection):
            for run_id, group in groups.items():
                self._write_run(run_id, group)
            numbers.write()
            for message in messages:
                if not self._evolution.isdisjoint(message.pairs):
                    self._write_evolution(message)
            self._connection.execute("UPDATE place SET seq = ?, missed = ?", (place, missed))
        self.place, self.missed = place, missed

    def prune(self, now_ns: int, is_enough: Callable[[], bool] = lambda: False) -> int:
        """Remove some of what is too old or too much; call again if that was not nothing."""
        return prune(self._connection, self.options, now_ns, is_enough)

    def restart(self) -> None:
        """The log is not the one that was read: read it from its beginning."""
        self._connection.execute("UPDATE place SET seq = 0, missed = 0")
        self.place = self.missed = 0

    def remember_alerts(self, keys: Sequence[tuple[int, str, int]]) -> None:
        """Alerts about these (run, activity, attempt) were published, and are not to be again."""
        with in_one(self._connection):
            self._connection.executemany(_REMEMBER_ALERT, keys)

    def _gather(self, group: _Group, parsed: ParsedMessage, message: RunMessage) -> None:
        if message.derived:
            # Our own words change no state, and a silent run is no less silent for them.
            group.events.append((message, parsed.order_ns))
            group.alerts += parsed.activities or [("", 0)]
            return
        merge_into(group.row, parsed.run_row)
        for key, row in parsed.activities.items():
            had = group.attempts.get(key)
            if had is None:
                group.attempts[key] = row
            else:
                merge_into(had, row)
        group.events.append((message, parsed.order_ns))
        group.topics.add(message.topic)
        if not self._failures.isdisjoint(message.pairs):
            group.faults.append(message.seq)

    # One run

    def _write_run(self, run_id: str, group: _Group) -> None:
        if not group.row and not self._all("SELECT 1 FROM runs WHERE id = ?", run_id):
            return  # only the monitor's own alerts are about it: the run was removed
        run = self._load_run(run_id, group.row.get("first_received", 0))
        merge_into(run.row, group.row)
        new_edges = self._write_attempts(run, group)
        self._write_events(run, group)
        many = self._connection.executemany
        put_topics(self._connection, run.no, group.topics)
        many(_REMEMBER_ALERT, [(run.no, *each) for each in group.alerts])
        row, state = run.row, run_state(run.row)
        ends = state in ENDED_RUN and run.state not in ENDED_RUN
        if ends or (new_edges and self._has_grown(run.no)):
            run.cycle = self._cycle(run.no) or run.cycle
        started_ns = run_started_ns(row)
        first_ns = row.get("created", started_ns)
        self._connection.execute(
            _UPDATE_RUN,
            (
                *(latest(row, name) or "" for name in ("workflow", "version", "engine")),
                state,
                row["first_received"] if first_ns is None else first_ns,
                started_ns,
                row.get("ended") if state in ENDED_RUN else None,
                lost_at_ns(row, self.options.silence_s),
                row.get("last_received", 0),
                *(run.events, run.pins, run.odd, run.cycle),
                encode(row),
                run.no,
            ),
        )

    def _load_run(self, run_id: str, received_ns: int) -> _Run:
        found = self._all(
            "SELECT no, row, events, pins, odd, cycle, state FROM runs WHERE id = ?", run_id
        )
        for no, row, *columns in found:
            return _Run(no, decode_row(row), *columns)
        self._connection.execute(
            "INSERT INTO runs VALUES (NULL, ?, '', '', '', 'created', ?, NULL, NULL, NULL, ?, "
            "0, 0, 0, '', x'80')",
            (run_id, received_ns, received_ns),
        )
        return _Run(self._connection.last_insert_rowid(), {})

    # Its activities

    def _write_attempts(self, run: _Run, group: _Group) -> bool:
        """Merge what was parsed of attempts. True if a dependence between activities is new."""
        activities = self._load_attempts(run.no, {name for name, _ in group.attempts})
        before = {name: state_of(attempts) for name, attempts in activities.items()}
        for name, number in group.attempts:
            activities.setdefault(name, {}).setdefault(number, Attempt({}))
        self._drop_excess(run, activities)
        used: dict[str, float] = {}
        new_edges = False
        files: list[FileUse] = []
        for (name, number), row in group.attempts.items():
            attempt = activities[name].get(number)
            if attempt is None:
                continue
            parents = attempt.row.get("parents")
            use(used, attempt.row, -1)
            before_row = {field: attempt.row.get(field) for field in ("inputs", "outputs")}
            merge_into(attempt.row, row)
            files += new_files(name, before_row, attempt.row)
            use(used, attempt.row, +1)
            attempt.touched = True
            new_edges |= attempt.row.get("parents") != parents
        tally: dict[tuple[str, str], int] = {}
        added: list[tuple[Any, ...]] = []
        changed: list[tuple[Any, ...]] = []
        for name, attempts in activities.items():
            run.odd += settle(run.no, name, attempts, added, changed)
            count(tally, before.get(name), -1)
            count(tally, state_of(attempts), +1)
        many = self._connection.executemany
        many(_INSERT_ATTEMPT, added)
        many(_UPDATE_ATTEMPT, changed)
        many(_ADD_TALLY, [(run.no, *key, count) for key, count in tally.items() if count])
        self._write_used(run.no, used)
        put_files(self._connection, run.no, files)
        return new_edges

    def _drop_excess(self, run: _Run, activities: dict[str, dict[int, Attempt]]) -> None:
        """Keep only so many attempts at each activity. What the others used stays counted."""
        dropped = [each for attempts in activities.values() for each in take_excess(attempts)]
        if not dropped:
            return
        put(run.row, "over", ["attempts"])
        run.odd -= sum(each.odd for each in dropped)
        rows = [(each.no,) for each in dropped if each.no is not None]
        self._connection.executemany("DELETE FROM attempts WHERE no = ?", rows)

    def _load_attempts(self, run_no: int, names: set[str]) -> dict[str, dict[int, Attempt]]:
        found: dict[str, dict[int, Attempt]] = {}
        waiting = sorted(names)
        for start in range(0, len(waiting), NAMES_AT_ONCE):
            some: list[str | None] = [*waiting[start : start + NAMES_AT_ONCE]]
            some += [None] * (NAMES_AT_ONCE - len(some))
            for no, name, number, last, state, kind, odd, row in self._all(
                _SELECT_ATTEMPTS, run_no, *some
            ):
                attempt = Attempt(decode_row(row), no, bool(last), state, kind, odd)
                found.setdefault(name, {})[number] = attempt
        return found

    def _write_used(self, run_no: int, used: dict[str, float]) -> None:
        many = self._connection.executemany
        many(
            _ADD_USED, [(run_no, n, amount) for n, amount in used.items() if n in SUMMED and amount]
        )
        many(_RAISE_USED, [(run_no, n, amount) for n, amount in used.items() if n in PEAKS])

    def _has_grown(self, run_no: int) -> bool:
        """True if it is time to look for cycles again."""
        ((known,),) = self._all("SELECT coalesce(sum(count), 0) FROM tally WHERE run = ?", run_no)
        if CYCLE_CHECKED_ALWAYS < known < self._looked_at.get(run_no, 0) * CYCLE_GROWTH:
            return False
        if len(self._looked_at) >= CYCLES_KNOWN_MAX:
            self._looked_at.clear()
        self._looked_at[run_no] = known
        return True

    def _cycle(self, run_no: int) -> str:
        """Activities that wait for each other, as JSON; nothing if there are none."""
        ((known,),) = self._all("SELECT coalesce(sum(count), 0) FROM tally WHERE run = ?", run_no)
        if known > CYCLE_CHECKED_MAX:
            return ""
        parents: dict[str, list[str]] = {}
        for name, row in self._each("SELECT activity, row FROM attempts WHERE run = ?", run_no):
            edges = decode_row(row).get("parents")
            if edges:
                parents.setdefault(name, []).extend(edges)
        cycle = find_cycle(parents)
        return msgspec.json.encode(cycle[:100]).decode() if cycle else ""

    # Its events

    def _write_events(self, run: _Run, group: _Group) -> None:
        self._connection.executemany(
            "INSERT OR IGNORE INTO events VALUES (?, ?, ?, ?, ?, 0, ?)",
            [
                (
                    *(run.no, message.seq, order_ns, message.received_ns),
                    message.pairs.get("ActivityId", ""),
                    message_bytes(message),
                )
                for message, order_ns in group.events
            ],
        )
        run.events += len(group.events)
        for seq in group.faults:
            if run.pins < PINS_MAX:
                self._connection.execute(_PIN, (run.no, seq, CONTEXT_EVENTS + 1))
                run.pins += 1
        most = self.options.events_per_run
        if run.events > most * TRIM_SLACK:
            self._connection.execute(_TRIM, (run.no, most))
            run.events = most

    def _write_evolution(self, message: RunMessage) -> None:
        pairs = message.pairs
        workflow, version = pairs.get("WorkflowName", ""), pairs.get("WorkflowVersion", "")
        if not workflow or "RunId" in pairs:
            return
        at_ns = message.received_ns
        if "VersionSaved" in pairs or "VersionForked" in pairs:
            previous = pairs.get("PreviousVersion", "")
            packed = message_bytes(message, cut=False)
            self._connection.execute(
                _PUT_VERSION,
                (workflow, version, message.seq, at_ns, previous, packed, _fork_of(pairs)),
            )
        if "VersionSaved" not in pairs:
            self._connection.execute(
                "INSERT OR IGNORE INTO changes VALUES (?, ?, ?, ?, ?)",
                (workflow, version, message.seq, at_ns, message_bytes(message)),
            )

    def _all(self, statement: str, *values: Any) -> list[Any]:
        return self._connection.execute(statement, values).fetchall()

    def _each(self, statement: str, *values: Any) -> Iterator[Any]:
        return iter(self._connection.execute(statement, values))


def _fork_of(pairs: Mapping[str, str]) -> str:
    """The other workflow that a version was made from; nothing if it was made from its own."""
    was = read_object(pairs.get("ChangeDetail")).get("was") if "VersionForked" in pairs else None
    return was[:VALUE_CHARS_MAX] if isinstance(was, str) else ""


def message_bytes(message: RunMessage, *, cut: bool = True) -> bytes:
    """A message as it is kept, to be shown: (time, pairs)."""
    pairs = message.pairs
    if cut:
        pairs = {name: value[:VALUE_CHARS_MAX] for name, value in pairs.items()}
    return encode((message.time, pairs))
