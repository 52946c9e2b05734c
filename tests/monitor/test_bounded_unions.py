"""However much is said, what is kept of it stays small, and no order makes a difference."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.runs import READING, activity_pairs, folded, received, run_pairs
from tocsin.monitor import values
from tocsin.monitor.anomalies import TOO_MUCH, of_attempt, of_run
from tocsin.monitor.fold import RunMessage, merge, parse_message
from tocsin.monitor.states import attempt_times
from tocsin.monitor.values import JSON_CHARS_MAX, TEXT_CHARS_MAX, bounded_union

_TEXTS = st.lists(st.text(st.sampled_from("abé😀"), max_size=8), max_size=8)


@given(_TEXTS, _TEXTS, _TEXTS)
def test_a_union_with_a_limit_is_commutative_associative_and_idempotent(
    one: list[str], two: list[str], three: list[str]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(values, "BYTES_MAX", 20)
        patch.setattr(values, "ITEMS_MAX", 5)
        a, b, c = (bounded_union("x", side)[0] for side in (one, two, three))
        whole, is_over = bounded_union("x", one, two, three)

        assert bounded_union("x", bounded_union("x", a, b)[0], c)[0] == whole
        assert bounded_union("x", a, bounded_union("x", b, c)[0])[0] == whole
        assert bounded_union("x", c, b, a)[0] == whole
        assert bounded_union("x", whole, whole) == (whole, False)
        assert is_over == (whole != sorted({*one, *two, *three}))
        assert sum(len(each.encode()) for each in whole) <= 20
        assert len(whole) <= 5


_FILES = [json.dumps([{"path": f"f{n}", "text": str(n) * n}]) for n in range(1, 10)]
_MESSAGES = received(
    *(run_pairs("WorkflowStarted", 0, WorkflowFile=text) for text in _FILES),
    *(activity_pairs("a", "ActivityExecuting", 1, InputFile=text) for text in "abcdefgh"),
)


@given(st.permutations(_MESSAGES), st.lists(st.sampled_from(_MESSAGES)), st.integers(0, 17))
def test_rows_with_too_much_in_them_are_the_same_in_every_order(
    messages: list[RunMessage], again: list[RunMessage], cut: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(values, "BYTES_MAX_OF", {"files": 90})
        patch.setattr(values, "BYTES_MAX", 20)
        patch.setattr(values, "ITEMS_MAX", 5)
        runs, attempts = folded([*messages, *again])
        straight_runs, straight_attempts = folded(_MESSAGES)
        (one, _), (two, _) = folded(messages[:cut]), folded(messages[cut:])

        assert (runs, attempts) == (straight_runs, straight_attempts)
        assert merge(one.get("r", {}), two.get("r", {})) == straight_runs["r"]
    assert straight_runs["r"]["over"] == ["files"]
    assert straight_attempts["r", "a", 1]["over"] == ["inputs"]


def test_sixty_large_files_leave_a_small_row_and_are_told_of() -> None:
    files = [json.dumps([{"path": f"f{n}", "text": "x" * 900_000}]) for n in range(60)]
    small = json.dumps([{"path": "Snakefile", "text": "rule all"}])
    pairs = [{"RunId": "r", "WorkflowFile": text} for text in [*files, small]]
    random.Random(5).shuffle(pairs)

    runs, _ = folded(received(*pairs))

    kept = [json.loads(each)["path"] for each in runs["r"]["files"]]
    assert kept == ["Snakefile", "f0"]
    found = of_run(runs["r"], known=0, total=None)
    assert [each.kind for each in found] == [TOO_MUCH]
    assert "files of the workflow" in found[0].detail


def test_an_activity_with_too_many_files_says_so_itself() -> None:
    names = json.dumps([f"{n:05}" for n in range(2_000)])
    _, attempts = folded(received(activity_pairs("a", "ActivityExecuting", 1, InputFile=names)))

    row = attempts["r", "a", 1]
    assert row["inputs"] == [f"{n:05}" for n in range(1_000)]
    found = of_attempt(row, attempt_times(row), "a")
    assert [(each.kind, each.activity) for each in found] == [(TOO_MUCH, "a")]


def test_parameters_beyond_the_limit_are_left_out_one_by_one_and_told_of() -> None:
    parameters = {"genome": "x" * JSON_CHARS_MAX, "seed": 7, "reads": ["a", "b"]}
    said = parse_message(*received({"RunId": "r", "Parameters": json.dumps(parameters)}), READING)

    assert said is not None
    assert json.loads(said.run_row["parameters"][2]) == {"seed": 7, "reads": ["a", "b"]}
    assert said.run_row["over"] == ["parameters"]


@pytest.mark.parametrize("text", ["[" * 200_000, "{" + "x" * 200_000, "x" * 200_000])
def test_one_value_is_cut(text: str) -> None:
    said = parse_message(*received({"RunId": "r", "CommandLine": text, "LogTail": text}), READING)

    assert said is not None
    assert len(said.run_row["command"][2]) == len(said.run_row["log"][2]) == TEXT_CHARS_MAX
