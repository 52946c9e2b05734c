"""Messages of workflow runs, made by hand."""

from __future__ import annotations

from collections.abc import Iterable

from tocsin.event.instant import NS_PER_S, rfc3339
from tocsin.monitor.fold import ConceptRules, Row, RunMessage, merge_into, parse_message
from tocsin.ontology import built_in

DAY_NS = 1_790_000_000 * NS_PER_S
RECEIVED_NS = DAY_NS + 86_400 * NS_PER_S  # late enough for everything here to have happened

READING = ConceptRules(built_in())


def at(seconds: float) -> str:
    """A time on the day of the tests."""
    return rfc3339(DAY_NS + int(seconds * NS_PER_S))


def ns(seconds: float) -> int:
    return DAY_NS + int(seconds * NS_PER_S)


def run_pairs(concept: str, seconds: float, run: str = "r", **more: str) -> dict[str, str]:
    return {"RunId": run, concept: at(seconds), **more}


def activity_pairs(
    activity: str, concept: str, seconds: float, run: str = "r", **more: str
) -> dict[str, str]:
    return {
        "RunId": run,
        "ActivityId": activity,
        "ActivityType": more.pop("ActivityType", activity.partition("-")[0]),
        concept: at(seconds),
        **more,
    }


def received(*messages: dict[str, str], received_ns: int = RECEIVED_NS) -> list[RunMessage]:
    return [RunMessage(pairs, seq, received_ns) for seq, pairs in enumerate(messages, 1)]


Folded = tuple[dict[str, Row], dict[tuple[str, str, int], Row]]


def folded(messages: Iterable[RunMessage]) -> Folded:
    """Every run and attempt that the messages tell of."""
    runs: dict[str, Row] = {}
    attempts: dict[tuple[str, str, int], Row] = {}
    for message in messages:
        said = parse_message(message, READING)
        if said is None:
            continue
        merge_into(runs.setdefault(said.run, {}), said.run_row)
        for (activity, attempt), row in said.activities.items():
            merge_into(attempts.setdefault((said.run, activity, attempt), {}), row)
    return runs, attempts
