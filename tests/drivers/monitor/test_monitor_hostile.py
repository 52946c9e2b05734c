"""Whatever messages say, every question about them is answered."""

from __future__ import annotations

import json
import tempfile
from contextlib import suppress
from pathlib import Path
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.kept import Kept
from monitor.runs import activity_pairs, ns
from monitor.runs import received as hear
from tocsin.drivers.monitor.database.attempt_rows import ATTEMPTS_MAX
from tocsin.drivers.monitor.queries.provenance import FORMATS, provenance
from tocsin.errors import NothingToEstimate
from tocsin.event.instant import rfc3339
from tocsin.monitor.anomalies import TOO_MUCH
from tocsin.monitor.fold import RunMessage
from tocsin.ontology import built_in

_LIFE = (
    *("WorkflowStarted", "WorkflowCompleted", "WorkflowTerminated", "WorkflowIdle"),
    *("ActivityQueued", "ActivityExecuting", "ActivitySucceeded", "ActivityFailed"),
    *("ActivityCached", "ActivityHeld", "ActivityRetrying"),
)
_TIMES = st.integers(-10, 10_000_000).map(lambda second: rfc3339(ns(second)))
_JUNK = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        [
            *("-1", "1e999", "0", "99999999999999999999", "nan", "[]", "[[[", "null", '"x"'),
            *('{"a": -1}', '{"a": {"b": []}}', '["a", 1, null, {}]', "\x00", "../../etc/passwd"),
        ]
    ),
)
_PLANS = st.lists(
    st.fixed_dictionaries(
        {"id": st.sampled_from([*"abc", 7, None])},
        optional={
            "type": st.sampled_from(["x", "", 5]),
            "parents": st.sampled_from([["a"], ["b", "c"], "a", [None]]),
            "external_bytes": st.sampled_from([5, -5, 2**70, "x"]),
        },
    ),
    max_size=4,
).map(json.dumps)
_PAIRS = st.builds(
    lambda life, junk, plan, activity, attempt: {
        **junk,
        **life,
        "RunId": "r",
        "WorkflowName": "w",
        **({"ActivityId": activity} if activity else {}),
        **({"Attempt": attempt} if attempt else {}),
        **({"ActivityPlan": plan} if plan else {}),
    },
    st.dictionaries(st.sampled_from(_LIFE), _TIMES, max_size=2),
    st.dictionaries(st.sampled_from(sorted(built_in().concepts)), _JUNK, max_size=4),
    st.none() | _PLANS,
    st.none() | st.sampled_from([*"abc"]),
    st.none() | st.sampled_from(["1", "2", "-3", "x", "1e9"]),
)


@settings(max_examples=60)
@given(st.lists(_PAIRS, min_size=1, max_size=12), st.integers(0, 10_000_000))
def test_every_question_about_any_run_is_answered(
    messages: list[dict[str, str]], now_s: int
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        kept = Kept(Path(directory))
        done = [{"RunId": "s", "WorkflowName": "w", "WorkflowStarted": rfc3339(ns(0))}]
        done += [{"RunId": "s", "WorkflowCompleted": rfc3339(ns(9))}]
        received = [
            RunMessage(pairs, seq, ns(5 * seq)) for seq, pairs in enumerate(messages + done, 1)
        ]
        kept.fold(received, batch=5)
        _ask_everything(kept, ns(now_s))
        kept.close()


def _check_members(view: msgspec.Struct) -> None:
    """Each is of the type that the API promises."""
    msgspec.json.decode(msgspec.json.encode(view), type=type(view))


def _ask_everything(kept: Kept, now_ns: int) -> None:
    ask = kept.asked
    _check_members(ask.runs.run("r", now_ns))
    for run in ask.runs.runs(now_ns)[0]:
        _check_members(run)
    records, _ = ask.runs.activities("r", now_ns)
    for activity in records:
        _check_members(activity)
    assert all(each.duration_s is None or each.duration_s >= 0 for each in records)
    ask.runs.events("r")
    for failure in ask.runs.failures("r", now_ns):
        _check_members(failure)
    ask.runs.end_of("r", last=5)
    for kind in {each.type for each in records}:
        _check_members(ask.history.history(kind, now_ns))
    _check_members(ask.changes.compare("r", "s", now_ns))
    _check_members(ask.changes.changes("r", now_ns))
    for kind in ask.history.types():
        _check_members(kind)
    ask.estimates.hints("r", now_ns)
    ask.alerts.alerts("r", now_ns)
    with suppress(NothingToEstimate):
        found = ask.estimates.estimate("r", now_ns)
        assert 0 <= found.low_s <= found.remaining_s <= found.high_s
    for form in FORMATS:
        assert provenance(ask, "r", now_ns, form)


@pytest.mark.parametrize("seed", [1, 2])
def test_of_very_many_attempts_the_first_and_the_last_are_kept_in_any_order(
    seed: int, tmp_path: Path
) -> None:
    numbers = [*range(1, 1_001), *range(1, 50)]
    Random(seed).shuffle(numbers)
    pairs = [
        activity_pairs("a", "ActivityFailed", number, Attempt=str(number), CpuSeconds="1")
        for number in numbers
    ]
    kept = Kept(tmp_path)

    kept.fold(hear(*pairs, activity_pairs("b", "ActivitySucceeded", 1)), batch=100 * seed)

    record = kept.asked.runs.activity("r", "a", ns(2_000))
    assert (record.attempts, len(record.tries)) == (1_000, ATTEMPTS_MAX - 1)
    found = kept.asked.index.rows(
        "SELECT attempt FROM attempts WHERE activity = 'a' ORDER BY attempt"
    )
    last = range(1_002 - ATTEMPTS_MAX, 1_001)
    assert [number for (number,) in found] == [1, *last]
    run = kept.asked.runs.run("r", ns(2_000))
    assert (run.activities.failed, run.activities.succeeded) == (1, 1)
    assert [each.kind for each in run.anomaly_list] == [TOO_MUCH]
    assert run.anomalies == 1
    kept.close()
