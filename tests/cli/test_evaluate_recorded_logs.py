"""`tocsin evaluate eta` on recorded logs of Snakemake: what a broker knew, and nothing else."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from monitor.estimate.estimate_runs import SNAKEMAKE_LOGS, snakemake_cases
from tocsin.cli.evaluate.recorded_log import LogCase, case_of
from tocsin.cli.main import run
from tocsin.integrations.snakemake.recorded_log import sent_by_plugin
from tocsin.monitor.estimate import estimate, learn
from tocsin.monitor.evaluation.estimates import STAGES

RECORDINGS = Path(__file__).parents[1] / "recordings"


def records(path: Path) -> list[dict[str, Any]]:
    text = gzip.decompress(path.read_bytes()).decode()
    return [json.loads(line) for line in text.splitlines()]


def test_logs_are_measured_as_one_application_one_run_a_file(capsys) -> None:
    assert run(["evaluate", "eta", *map(str, SNAKEMAKE_LOGS), "--least", "8", "--json"]) == 0

    report = json.loads(capsys.readouterr().out)
    found = report["applications"]["snakemake"]
    assert found["runs"] == 8
    assert set(found["leave_one_run_out"]) == {"0", "25", "50", "75"}
    assert set(found["leave_one_run_out"]["25"]) == {"mdape", "mape", "coverage", "ratio"}


def test_fewer_logs_than_the_least_are_refused_with_the_files_names(capsys) -> None:
    assert run(["evaluate", "eta", *map(str, SNAKEMAKE_LOGS[:3])]) == 2

    err = capsys.readouterr().err
    assert SNAKEMAKE_LOGS[0].name in err
    assert "--least" in err


def test_a_log_of_a_run_that_failed_is_left_out_and_said_so(capsys) -> None:
    failed = RECORDINGS / "snakemake9_fail_retry.jsonl"

    assert run(["evaluate", "eta", *map(str, SNAKEMAKE_LOGS[:3]), str(failed), "--least", "3"]) == 0

    assert "1 log of a run that did not complete left out" in capsys.readouterr().err


def test_no_size_is_known_that_the_plugin_does_not_send() -> None:
    for path in SNAKEMAKE_LOGS:
        for _, message in sent_by_plugin(records(path)):
            assert not {"InputBytes", "ExternalBytes", "OutputBytes"} & set(message.pairs)
            for task in json.loads(message.pairs.get("ActivityPlan", "[]")):
                assert not task["external_bytes"]


def test_a_number_that_past_runs_explain_changes_the_estimate_and_a_seed_does_not() -> None:
    path = SNAKEMAKE_LOGS[0]
    reported = json.dumps(records(path))
    counts = json.loads(re.sub(r"range\((\d+)\)", r"range(\g<1>0)", reported))
    seeds = json.loads(re.sub(r"random\.Random\((\d+)\)", r"random.Random(7\g<1>3)", reported))
    others = list(snakemake_cases()[1:4])
    known = learn([other.run for other in others])
    one, other, same = (case_of(each, "a") for each in (json.loads(reported), counts, seeds))
    assert one is not None
    assert other is not None
    assert same is not None

    before = estimate(known, one.at(0.0, others))
    assert estimate(known, same.at(0.0, others)) == before
    more = estimate(known, other.at(0.0, others))
    assert before is not None
    assert more is not None
    assert more.total_s > before.total_s


@pytest.mark.parametrize("stage", STAGES)
def test_a_moment_of_a_log_is_made_from_what_was_sent_by_then(stage: float) -> None:
    case = snakemake_cases()[0]
    assert isinstance(case, LogCase)
    elapsed_s = stage * case.run.makespan_s
    now_ns = case.began_ns + int(elapsed_s * 1e9)
    before = tuple(each for each in case.messages if each.received_ns <= now_ns or not stage)
    cut = LogCase(before, case.began_ns, case.run, case.growth)

    moment = case.at(elapsed_s, [])

    assert moment == cut.at(elapsed_s, [])
    assert all((done.ended_s or 0) <= elapsed_s for done in moment.done.values())
    assert not stage or moment.done
    if not stage:
        assert not moment.done
        assert not moment.running


def test_the_plan_of_a_log_is_known_before_the_first_job_with_who_waits_for_whom() -> None:
    case = snakemake_cases()[0]

    moment = case.at(0.0, [])

    types = [task.type for task in moment.plan.tasks]
    assert sorted(set(types)) == ["all", "gen", "md5", "merge", "report", "sort", "xz"]
    assert moment.plan.cores == 2
    assert moment.plan.whole
    report = moment.plan.tasks[types.index("report")]
    assert {types[parent] for parent in report.parents} == {"merge", "xz", "md5"}


def test_a_run_that_grew_at_a_checkpoint_had_no_whole_plan_at_its_start() -> None:
    path = RECORDINGS / "snakemake9_ok_checkpoint.jsonl"
    reported = [json.loads(line) for line in path.read_text().splitlines()]

    case = case_of(reported, "checkpoint")

    assert case is not None
    assert len(case.at(0.0, []).plan.tasks) < len(case.run.plan.tasks)
