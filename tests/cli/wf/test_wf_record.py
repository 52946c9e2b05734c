"""`tocsin wf record` against a real broker: what changed in a file, from any machine."""

from __future__ import annotations

import json
import os
from argparse import Namespace
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from served import Served, served
from tocsin.cli.failure import exit_code
from tocsin.cli.rest import Rest
from tocsin.cli.wf.record import record
from tocsin.errors import NoSuchRun
from tocsin.errors.services import BadWorkflowFile

RULES = """
rule all:
    input: "s/1.txt"
rule gen:
    output: "d/{i}.txt"
    shell: "gen > {output}"
rule sort:
    input: "d/{i}.txt"
    output: "s/{i}.txt"
    threads: 2
    shell: "sort {input} > {output}"
"""

Record = Callable[..., tuple[list[dict[str, Any]], str]]


@pytest.fixture
def name() -> str:
    return f"flow-{os.urandom(4).hex()}"


@pytest.fixture
def tell(broker: Served, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Record:
    """Writes a Snakefile, records it and gives the messages that were published, and the words."""

    def tell(text: str, **options: Any) -> tuple[list[dict[str, Any]], str]:
        file = tmp_path / "Snakefile"
        file.write_text(f"{text}# {name}\n")  # so that no other test had the same version
        given = {"file": str(file), "workflow": name, "json": True, **options}
        capsys.readouterr()
        with Rest(broker.url) as rest:
            assert record(rest, Namespace(**given), lambda: datetime.now(UTC)) == 0
        said = capsys.readouterr()
        return [json.loads(line) for line in said.out.splitlines()] if given["json"] else [], (
            said.out + said.err
        )

    return tell


def kinds(messages: list[dict[str, Any]]) -> list[tuple[str, str | None]]:
    return [(next(iter(message)), message.get("ActivityType")) for message in messages]


def in_the_log(broker: Served, workflow: str) -> list[dict[str, Any]]:
    status, page = broker.call(
        "GET", f"/events?limit=1000&filter=WorkflowName%20%3D%20%22{workflow}%22"
    )
    assert status == 200, page
    return [event["data"] for event in page["events"]]


def test_the_first_record_adds_every_activity_and_saves_the_version(
    tell: Record, broker: Served, name: str
) -> None:
    messages, _ = tell(RULES)

    assert kinds(messages) == [
        ("ActivityAdded", "all"),
        ("ActivityAdded", "gen"),
        ("ActivityAdded", "sort"),
        ("VersionSaved", None),
    ]
    stored = in_the_log(broker, name)
    assert [next(iter(pairs)) for pairs in stored] == [next(iter(each)) for each in messages]
    assert {pairs["WorkflowVersion"] for pairs in stored} == {messages[0]["WorkflowVersion"]}
    assert "PreviousVersion" not in stored[-1]
    [file] = json.loads(stored[-1]["WorkflowFile"])
    assert (file["path"], file["text"]) == ("Snakefile", f"{RULES}# {name}\n")


def test_what_did_not_change_is_not_reported_again(tell: Record, broker: Served, name: str) -> None:
    tell(RULES)
    before = len(in_the_log(broker, name))

    messages, _ = tell(RULES)
    _, words = tell(RULES, json=False)

    assert messages == []
    assert "nothing to record" in words
    assert len(in_the_log(broker, name)) == before


def test_each_change_is_a_message_with_both_versions(tell: Record) -> None:
    first, _ = tell(RULES)

    second, _ = tell(
        RULES.replace("sort {input}", "sort -u {input}").replace("threads: 2", "threads: 8")
    )

    assert kinds(second) == [
        ("ActivityReplaced", "sort"),
        ("ParameterChanged", "sort"),
        ("VersionSaved", None),
    ]
    assert {each["PreviousVersion"] for each in second} == {first[0]["WorkflowVersion"]}
    assert second[1]["ChangeDetail"] == {"what": "threads", "was": "2", "is": "8"}


def test_going_back_to_an_old_version_is_news_again(
    tell: Record, broker: Served, name: str
) -> None:
    other = RULES.replace("threads: 2", "threads: 8")
    texts = [RULES, other, RULES, other]

    versions = [tell(text)[0][-1]["WorkflowVersion"] for text in texts]

    assert versions[0] == versions[2] != versions[1] == versions[3]
    saved = [pairs for pairs in in_the_log(broker, name) if "VersionSaved" in pairs]
    assert [pairs["WorkflowVersion"] for pairs in saved] == versions


def test_a_comment_makes_a_version_without_a_change(tell: Record) -> None:
    tell(RULES)

    messages, _ = tell("# for the review\n" + RULES)

    assert kinds(messages) == [("VersionSaved", None)]


def test_the_same_file_under_another_name_is_forked(tell: Record, name: str) -> None:
    first, _ = tell(RULES)

    messages, _ = tell(RULES, workflow=f"{name}-mine")

    assert kinds(messages) == [("VersionForked", None), ("VersionSaved", None)]
    assert messages[0]["ChangeDetail"] == {"what": "name", "was": name, "is": f"{name}-mine"}
    assert messages[0]["PreviousVersion"] == first[0]["WorkflowVersion"]


def test_a_fork_that_was_changed_tells_what_is_different(tell: Record, name: str) -> None:
    tell(RULES)

    messages, _ = tell(
        RULES.replace("threads: 2", "threads: 8"), workflow=f"{name}-mine", forked_from=name
    )

    assert kinds(messages) == [
        ("VersionForked", None),
        ("ParameterChanged", "sort"),
        ("VersionSaved", None),
    ]


def test_without_a_monitor_the_log_tells_what_was_last(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "Snakefile"
    arguments = Namespace(file=str(file), workflow='it\'s "odd" / 7', json=True)
    with served(env={"TOCSIN_MONITOR__ENABLED": "false"}) as broker, Rest(broker.url) as rest:
        for text in (RULES, RULES.replace("threads: 2", "threads: 8"), RULES):
            file.write_text(text)
            capsys.readouterr()
            assert record(rest, arguments, lambda: datetime.now(UTC)) == 0

    messages = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert kinds(messages) == [("ParameterChanged", "sort"), ("VersionSaved", None)]
    assert messages[-1]["ChangeDetail"]["number"] == 3


def test_a_fork_of_nothing_is_refused(tell: Record) -> None:
    with pytest.raises(NoSuchRun, match="no version"):
        tell(RULES, forked_from="never-recorded")


def test_a_dry_run_says_what_it_would_tell(tell: Record, broker: Served, name: str) -> None:
    _, words = tell(RULES, json=False, dry_run=True)

    assert "ActivityAdded  all       activity  -    s/1.txt from sort" in words
    assert "nothing was recorded" in words
    assert in_the_log(broker, name) == []


def test_a_person_sees_a_table_of_changes(tell: Record) -> None:
    tell(RULES)

    _, words = tell(RULES.replace("threads: 2", "threads: 8"), json=False)

    assert "ParameterChanged  sort      threads  2    8" in words
    assert "1 change" in words


def test_where_a_binding_comes_from_is_said_in_words(tell: Record) -> None:
    tell(RULES)

    _, words = tell(RULES.replace('input: "d/{i}.txt"', 'input: "e/{i}.txt"'), json=False)

    assert "d/{i}.txt from gen  e/{i}.txt" in words


def test_a_file_that_is_none_publishes_nothing(tell: Record, broker: Served, name: str) -> None:
    with pytest.raises(BadWorkflowFile) as refused:
        tell("rule a:\n    input: (\n")

    assert exit_code(refused.value) == 2
    assert in_the_log(broker, name) == []


def test_a_long_file_is_reported_without_its_text(tell: Record, broker: Served, name: str) -> None:
    tell(RULES + "# long\n" * 20_000)

    [file] = json.loads(in_the_log(broker, name)[-1]["WorkflowFile"])
    assert file["text"] is None
    assert len(file["sha256"]) == 64


def test_a_workflow_of_very_many_rules_is_recorded_or_refused_in_a_sentence(tell: Record) -> None:
    many = "".join(f'rule r{n}:\n    output: "o{n}"\n    shell: "x {n}"\n' for n in range(1_500))

    messages, _ = tell(many)

    assert len(messages) == 1_501
    with pytest.raises(BadWorkflowFile, match="too large"):
        tell(many.replace('"x ', f'"{"y" * 600} '), workflow="very-large")
