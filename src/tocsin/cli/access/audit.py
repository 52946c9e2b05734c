"""`tocsin access audit` and `quotas`: what was decided, and how much everybody has."""

from __future__ import annotations

import csv
import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tocsin.cli.durations import instant_before, seconds
from tocsin.cli.render import plural, say, show, show_json, table
from tocsin.cli.rest import PAGE_MAX, Rest
from tocsin.drivers.access.audit_log import DIRECTORY
from tocsin.drivers.access.audit_reader import verify_files
from tocsin.errors import DataDirectoryUnusable, TocsinError
from tocsin.event.instant import rfc3339_ns

FOLLOW_S: Final = 1.0
SHOWN: Final = 100  # the last ones, where nothing says how many
COLUMNS: Final = (
    "n",
    "time",
    "kind",
    "principal",
    "credential",
    "endpoint",
    "peer",
    "action",
    "resource",
    "decision",
    "reason",
    "count",
    "since",
)


def audit(rest: Rest, arguments: Namespace) -> int:
    """Print records, the oldest first."""
    if arguments.verify:
        return _verify(rest, arguments)
    output = _Output(arguments)
    # Everything that was asked for, in pages; without any bound, the last ones.
    bounded = arguments.since is not None and arguments.limit is None
    if bounded:
        for record in _every(rest, arguments):
            output.add(record)
        after = output.last
    else:
        limit = arguments.limit or SHOWN
        page = rest.get("/access/audit", limit=min(limit, PAGE_MAX), **_asked(arguments))
        for record in page["records"]:
            output.add(record)
        after = page["next"]
    output.end()
    while arguments.follow:
        time.sleep(FOLLOW_S)
        page = rest.get("/access/audit", limit=PAGE_MAX, after=after, **_asked(arguments))
        after = page["next"]
        for record in page["records"]:
            output.add(record)
        output.end()
    return 0


def _every(rest: Rest, arguments: Namespace) -> Iterator[dict[str, Any]]:
    after: int = 0
    while True:
        page = rest.get("/access/audit", limit=PAGE_MAX, after=after, **_asked(arguments))
        yield from page["records"]
        after = page["next"]
        if not page["more"]:
            return


def _asked(arguments: Namespace) -> dict[str, object]:
    return {
        "principal": arguments.principal,
        "action": arguments.action_name,
        "decision": "refused" if arguments.denied else None,
        "kind": arguments.kind,
        "topic": arguments.topic,
        "since": _moment(arguments.since),
        "until": _moment(arguments.until),
    }


def _moment(text: str | None) -> str | None:
    if text is None or rfc3339_ns(text) is not None:
        return text
    return instant_before(seconds(text))


class _Output:
    """Records as JSON lines, as CSV, or in columns."""

    def __init__(self, arguments: Namespace) -> None:
        self.last = 0
        self._as_json = arguments.json
        self._csv: Any = None
        self._rows: list[tuple[object, ...]] = []
        if arguments.csv:
            self._csv = csv.DictWriter(sys.stdout, COLUMNS, restval="", lineterminator="\n")
            self._csv.writeheader()

    def add(self, record: dict[str, Any]) -> None:
        self.last = record["n"]
        if self._csv is not None:
            self._csv.writerow({name: _plain(record.get(name, "")) for name in COLUMNS})
        elif self._as_json:
            show_json(record)
        else:
            self._rows.append(_row(record))

    def end(self) -> None:
        """Print what was gathered."""
        if self._rows:
            headers = ("time", "who", "from", "what", "decision", "by", "times")
            table(headers, self._rows, limit=len(self._rows))
        self._rows.clear()
        sys.stdout.flush()


def _plain(value: object) -> object:
    """Never a formula, in whatever opens the file: names are others' texts."""
    is_formula = isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r")
    return f"'{value}" if is_formula else value


def _row(record: dict[str, Any]) -> tuple[object, ...]:
    what = f"{record.get('action', '')} {record.get('resource', '')}".strip()
    decision = record.get("decision") or record["kind"]
    if record["kind"] not in ("decision", "change"):
        decision = record["kind"]
    return (
        record["time"],
        record.get("principal", ""),
        f"{record.get('endpoint', '')} {record.get('peer', '')}".strip(),
        what,
        decision,
        record.get("reason", ""),
        record.get("count", 1),
    )


def _verify(rest: Rest, arguments: Namespace) -> int:
    """Exit code 1 if anything is not as it was written."""
    if arguments.data:
        directory = Path(arguments.data) / DIRECTORY
        try:
            lines, faults = verify_files(directory)
        except OSError as error:
            raise DataDirectoryUnusable(
                f"cannot read {directory}: {error.strerror or error}",
                remedy="Run it as the user of the broker.",
            ) from None
        found = [
            {
                "file": each.file,
                "line": each.line,
                "problem": each.problem,
                "damage": each.is_damage,
            }
            for each in faults
        ]
        whole = not any(each.is_damage for each in faults)
        checked: dict[str, Any] = {"whole": whole, "lines": lines, "faults": found}
    else:
        checked = rest.get("/access/audit/verify")
    if arguments.json:
        show_json(checked)
    else:
        for each in checked["faults"]:
            show(f"{each['file']}, line {each['line']}: {each['problem']}")
        state = "is as it was written" if checked["whole"] else "is NOT as it was written"
        say(f"the audit log {state}: {plural(checked['lines'], 'line')}")
    return 0 if checked["whole"] else TocsinError.exit_code


def quotas(rest: Rest, arguments: Namespace) -> int:
    """What everybody has beside what he may have."""
    found = rest.get("/access/quotas")
    if arguments.json:
        show_json(found)
        return 0
    rows = [
        (each["of"], each["quota"], f"{each['used']:,.10g}", _limit(each))
        for each in [*found["principals"], *found["peers"]]
    ]
    table(("of", "quota", "used", "limit"), rows)
    reached = {name: count for name, count in found["reached"].items() if count}
    if reached:
        say("reached: " + ", ".join(f"{name} {count:,} times" for name, count in reached.items()))
    return 0


def _limit(quota: dict[str, Any]) -> str:
    if quota.get("burst") is None:
        return f"{quota['limit']:,.10g}"
    return f"{quota['limit']:,.10g}/s, {quota['burst']:,.10g} at once"
