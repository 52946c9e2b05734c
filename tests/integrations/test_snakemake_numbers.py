"""The numbers of commands: what is read, what is sent, and that Snakemake does not notice."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from integrations.engine_room import reported, with_concept
from integrations.snakemake_flow import run
from served import Served
from tocsin.integrations.files import NoFiles
from tocsin.integrations.snakemake.numbers import (
    NUMBERS_MAX,
    READ_MAX,
    SPENT_S_MAX,
    NumbersOfJobs,
    differing,
    numbers_in,
)
from tocsin.integrations.snakemake.plan import PlannedJob, with_numbers
from tocsin.integrations.snakemake.recorded_log import sent_by_plugin
from tocsin.integrations.snakemake.records import SnakemakeRun

ROOMS = ("with", "without")
SNAKEFILE = """
import random
random.seed(7)
SIZES = {0: 300, 1: 20, 2: 1000}

def lines(wildcards, input):
    return sum(1 for line in open(input[0]))

rule all:
    input: "report.txt", expand("x/{i}.txt", i=range(2))

rule gen:
    output: "d/{i}.txt"
    params: n=lambda w: SIZES[int(w.i)]
    shell: "seq {params.n} | head -c 100000 > {output}; true {wildcards.i}"

rule take:
    input: "d/{i}.txt"
    output: "t/{i}.txt"
    params: n=lambda w: 3 + int(w.i)
    shell: "head -n {params.n} {input} > {output}"

rule count:
    input: "d/{i}.txt"
    output: "c/{i}.txt"
    params: n=lines
    threads: 2
    shell: "head -n {params.n} {input} | wc -l > {output}; true --threads {threads}"

rule thrown:
    output: "x/{i}.txt"
    params: dice=lambda w: random.randint(0, 10**9)
    shell: "echo --seed {params.dice} > {output}"

rule report:
    input: expand("c/{i}.txt", i=range(3))
    output: "report.txt"
    shell: "cat {input} > {output}"
"""

# A logger beside ours that writes down what Snakemake logs, as recordings are made.
RECORDER = """
import json, logging
def plain(value):
    return list(value) if isinstance(value, (list, tuple)) else str(value)
class Recorder(logging.Filter):
    def filter(self, record):
        event = getattr(record, "event", None)
        if event is not None:
            names = ("jobid", "rule_name", "input", "output", "shellcmd", "stats", "job_id",
                     "workflow_id", "snakefile_main")
            seen = {n: getattr(record, n) for n in names if hasattr(record, n)}
            seen.update(event=str(getattr(event, "value", event)), ts=record.created)
            with open("records.jsonl", "a") as file:
                file.write(json.dumps(seen, default=plain) + "\\n")
        return True
logging.getLogger("snakemake.logging").addFilter(Recorder())
"""


def numbers_reported(messages: Iterable[Any]) -> dict[str, dict[str, float]]:
    """By job, as the plans of these messages tell them."""
    tasks = [t for m in messages for t in json.loads(m.pairs["ActivityPlan"])]
    return {task["id"]: task["numbers"] for task in tasks if task.get("numbers")}


def by_rule(messages: Iterable[Any], numbers: Mapping[str, Mapping[str, float]]) -> dict[str, Any]:
    rules = {t["id"]: t["type"] for m in messages for t in json.loads(m.pairs["ActivityPlan"])}
    found: dict[str, list[Any]] = {}
    for id, each in sorted(numbers.items(), key=lambda item: sorted(item[1].items())):
        found.setdefault(rules[id], []).append(each)
    return found


def test_the_plan_of_a_real_run_has_the_numbers_that_a_reader_of_its_log_finds(
    broker: Served, tmp_path: Path
) -> None:
    flow = tmp_path / "flow"
    flow.mkdir()
    (flow / "Snakefile").write_text(f"exec({RECORDER!r})\n{SNAKEFILE}")

    code, said = run(flow, broker.url, *(f"t/{i}.txt" for i in range(3)))

    assert code == 0, said
    plans = with_concept(reported(broker), "ActivityPlan")
    assert by_rule(plans, numbers_reported(plans)) == {
        "gen": [{"seq": 20, "true": 1}, {"seq": 300, "true": 0}, {"seq": 1000, "true": 2}],
        "take": [{"-n": 3}, {"-n": 4}, {"-n": 5}],
    }
    records = [json.loads(line) for line in (flow / "records.jsonl").read_text().splitlines()]
    read = [m for _, m in sent_by_plugin(records) if "ActivityPlan" in m.pairs]
    assert [m.pairs["ActivityPlan"] for m in read] == [m.pairs["ActivityPlan"] for m in plans]


def test_a_number_that_only_a_file_of_the_run_has_is_reported_when_its_job_begins(
    broker: Served, tmp_path: Path
) -> None:
    flow = tmp_path / "flow"
    flow.mkdir()
    (flow / "Snakefile").write_text(SNAKEFILE)

    code, said = run(flow, broker.url, "report.txt")

    assert code == 0, said
    late = [m for m in with_concept(reported(broker), "ActivityPlan") if "ActivityId" in m.pairs]
    assert {m.pairs["ActivityType"] for m in late} == {"count"}
    assert by_rule(late, numbers_reported(late)) == {
        "count": [{"-n": n, "--threads": 2} for n in (20, 300, 1000)]
    }


def test_functions_that_throw_dice_throw_the_same_as_without_us(
    broker: Served, tmp_path: Path
) -> None:
    for name in ROOMS:
        (tmp_path / name).mkdir()
        (tmp_path / name / "Snakefile").write_text(SNAKEFILE)
    targets = ("--cores", "1", "x/0.txt", "x/1.txt")

    code, said = run(tmp_path / "with", broker.url, *targets)
    alone = [sys.executable, "-m", "snakemake", *targets]
    subprocess.run(alone, cwd=tmp_path / "without", check=True, capture_output=True)

    assert code == 0, said
    # Which of the two jobs throws first is Snakemake's choice, and not always the same.
    thrown = {
        name: {path.read_text() for path in (tmp_path / name / "x").iterdir()} for name in ROOMS
    }
    assert thrown["with"] == thrown["without"]
    late = [m for m in with_concept(reported(broker), "ActivityPlan") if "ActivityId" in m.pairs]
    seeds = {f"--seed {each['--seed']}\n" for each in numbers_reported(late).values()}
    assert thrown["with"] <= seeds  # when the plan was told, they had not been thrown for good


def test_numbers_are_named_by_the_word_before_them() -> None:
    command = "r=Random(3); gen --n=1e6 -@ 4 range(127141) | seq 1 9 | head -5 > d/3.txt"

    assert numbers_in(command) == {
        "Random": 3,
        "--n": 1e6,
        "-@": 4,
        "range": 127141,
        "seq": 1,
        "seq 2": 9,
        "head": 5,
    }


@pytest.mark.parametrize("word", ["chr7", "d/7", "7.txt", "v1.2.3", "2024-01-05", "$1", "a-7", "x"])
def test_numbers_within_words_paths_and_versions_are_none(word: str) -> None:
    assert numbers_in(f"tool {word} --to {word}") == {}


@given(st.text() | st.none() | st.lists(st.integers(0, 10**20)).map(lambda n: f"x {n}"))
def test_any_command_can_be_read(command: str | None) -> None:
    found = numbers_in(command)
    assert len(found) <= READ_MAX
    assert all(0 <= value < 1e16 for value in found.values())


def test_only_numbers_that_differ_between_jobs_of_a_rule_are_reported_and_not_too_many() -> None:
    many = {f"n{place}": float(place) for place in range(20)}
    more = {name: value + 1 for name, value in many.items()}

    reported = differing(
        [("a", {"k": 1, "n": 5}), ("a", {"k": 1, "n": 6}), ("b", {"n": 7}), ("a", None)]
    )
    assert reported == [(("n", 5),), (("n", 6),), (), None]
    assert [len(each or ()) for each in differing([("a", many), ("a", more)])] == [NUMBERS_MAX] * 2


class Job(SimpleNamespace):
    """As Snakemake's: what it was asked for is kept."""

    @property
    def shellcmd(self) -> str:
        self._resources = "asked"
        return str(self.answer())


def job(answer: Any) -> Job:
    return Job(rule=SimpleNamespace(shellcmd="x"), answer=answer, _params="kept", _resources=None)


def test_a_job_is_afterwards_as_it_was() -> None:
    asked = job(lambda: "x --n 5")

    assert NumbersOfJobs().of("1", asked) == {"--n": 5}

    assert (asked._params, asked._resources) == ("kept", None)


def test_a_job_is_not_asked_for_parameters_that_snakemake_has_not_asked_for() -> None:
    calls: list[str] = []
    asked = job(lambda: calls.append("asked"))
    asked._params = None

    assert NumbersOfJobs().of("1", asked) is None
    assert not calls


@pytest.mark.parametrize("raised", [ValueError, SystemExit, RecursionError])
def test_whatever_a_function_of_the_workflow_raises_means_that_a_number_is_not_known(
    raised: type[BaseException],
) -> None:
    def answer() -> str:
        raise raised

    asked = job(answer)
    assert NumbersOfJobs().of("1", asked) is None
    assert asked._resources is None


def test_slow_functions_are_called_no_longer_than_the_limit_and_each_job_once() -> None:
    now_s = 0.0
    calls: list[str] = []

    def slow() -> str:
        nonlocal now_s
        now_s += SPENT_S_MAX * 0.6
        calls.append("asked")
        return "x --n 5"

    numbers = NumbersOfJobs(clock=lambda: now_s)
    found = [numbers.of(id, job(slow)) for id in ("1", "1", "2", "3", "2", "4")]

    assert len(calls) == 2
    assert [each is None for each in found] == [False, False, False, True, False, True]


def test_parameters_of_a_job_without_a_command_are_its_numbers() -> None:
    params = SimpleNamespace(items=lambda: [("n", 5), ("flag", True), ("name", "x"), ("r", -1)])
    asked = SimpleNamespace(rule=SimpleNamespace(shellcmd=None), params=params, _params=params)

    assert NumbersOfJobs().of("1", asked) == {"n": 5.0}


def test_a_number_that_is_another_when_the_job_begins_is_reported_again() -> None:
    jobs = [PlannedJob("1", "gen"), PlannedJob("2", "gen")]
    planned = with_numbers(jobs, {"1": {"--n": 5.0}, "2": {"--n": 6.0}})
    fold = SnakemakeRun(files_in=lambda directory: NoFiles())
    fold.handle({"event": "workflow_started", "created": 0.0, "workflow_id": "w"})
    fold.handle({"event": "run_info", "created": 0.0, "tocsin_planned": planned})

    messages = [
        message
        for id, command in (("1", "x --n 5"), ("2", "x --n 60"))
        for message in fold.handle(
            {"event": "job_info", "created": 1.0, "jobid": id, "shellcmd": command}
        )
    ]

    assert numbers_reported(with_concept(messages, "ActivityPlan")) == {"2": {"--n": 60}}


def test_numbers_that_no_plan_had_are_reported_as_soon_as_jobs_of_a_rule_differ() -> None:
    fold = SnakemakeRun(files_in=lambda directory: NoFiles())
    fold.handle({"event": "workflow_started", "created": 0.0, "workflow_id": "w"})
    fold.handle({"event": "run_info", "created": 0.0, "stats": {"gen": 4, "same": 1, "total": 5}})
    begun = [("1", "gen", 5), ("2", "gen", 5), ("3", "same", 3), ("4", "gen", 6), ("5", "gen", 5)]

    found = []
    for id, rule, n in begun:
        record = {"event": "job_info", "jobid": id, "rule_name": rule, "shellcmd": f"x --n {n}"}
        messages = fold.handle({**record, "created": 1.0})
        found.append(numbers_reported(with_concept(messages, "ActivityPlan")))

    five, six = {"--n": 5}, {"--n": 6}
    assert found == [{}, {}, {}, {"1": five, "2": five, "4": six}, {"5": five}]
