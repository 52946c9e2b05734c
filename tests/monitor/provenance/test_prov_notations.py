"""Three notations of one provenance, read by a library that others wrote."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from itertools import groupby
from pathlib import Path

import pyoxigraph
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prov.identifier import Identifier
from prov.model import ProvDocument

from monitor.provenance.runs import HOSTILE, hostile_run, ordinary_run
from tocsin.monitor.provenance import RunView, prov_json, prov_n, turtle
from tocsin.monitor.provenance.names import local
from tocsin.monitor.provenance.run_statements import statements

PAGE = Path(__file__).parents[3] / "docs" / "provenance.md"
# The reader knows the qualified form only, and takes this for an attribute of the entity.
REVISION_OF = "http://www.w3.org/ns/prov#wasRevisionOf"


def lines(document: ProvDocument) -> Counter[str]:
    """The statements as the library spells them, in no order."""
    reported: Counter[str] = Counter()
    for record in document.get_records():
        attributes = sorted(
            f"{name.uri}={spelled(value)}"
            for name, value in record.attributes
            if name.uri != REVISION_OF
        )
        reported[f"{record.get_type()} {spelled(record.identifier)} {attributes}"] += 1
    return reported


def spelled(value: object) -> str:
    """By its IRI: which prefix a reader chose is its own affair."""
    return f"<{value.uri}>" if isinstance(value, Identifier) else repr(value)


def from_json(view: RunView) -> ProvDocument:
    return read(prov_json(view), "json")


def read(content: bytes, notation: str, **options: str) -> ProvDocument:
    with warnings.catch_warnings():
        if notation == "rdf":
            # rdflib's own use of what it deprecates is none of our doing.
            warnings.simplefilter("ignore", DeprecationWarning)
        else:
            warnings.simplefilter("error")
        found = ProvDocument.deserialize(content=content.decode(), format=notation, **options)
    assert isinstance(found, ProvDocument)
    return found


@pytest.mark.parametrize("view", [ordinary_run(), hostile_run()], ids=["ordinary", "hostile"])
def test_json_n_and_turtle_say_the_same(view: RunView) -> None:
    reported = lines(from_json(view))

    assert lines(read(prov_n(view), "provn", profile="strict")) == reported
    assert lines(read(turtle(view), "rdf", rdf_format="turtle")) == reported
    assert sum(reported.values()) == sum(1 for _ in statements(view))


@pytest.mark.parametrize("view", [ordinary_run(), hostile_run()], ids=["ordinary", "hostile"])
def test_statements_of_one_keyword_come_together(view: RunView) -> None:
    keywords = [keyword for keyword, _ in groupby(each.kind.keyword for each in statements(view))]

    assert len(keywords) == len(set(keywords))


@given(st.text(), st.text())
def test_two_texts_never_share_a_name(one: str, other: str) -> None:
    assert (local(one) == local(other)) == (one == other)


def test_a_line_of_prov_n_is_a_statement_whatever_the_names() -> None:
    text = prov_n(hostile_run()).decode()
    body = text.split("\n\n", 1)[1].split("\n")

    assert len([line for line in body if line.startswith("  ")]) == len(body) - 2


def prov_lines(view: RunView) -> list[str]:
    return prov_n(view).decode().splitlines()


def test_an_ordinary_run_reads_as_it_went() -> None:
    reported = [line.strip() for line in prov_lines(ordinary_run())]

    assert "used(activity:split.1, file:genome.fa, -)" in reported
    assert "wasGeneratedBy(file:parts%2Fa.txt, activity:split.1, -)" in reported
    assert "wasInformedBy(activity:count_a.1, activity:split.1)" in reported
    assert "wasStartedBy(activity:split.1, -, run:r1, 2026-11-16T06:40:01.000Z)" in reported
    assert "wasStartedBy(run:r1, -, run:r0, 2026-11-16T06:40:00.000Z)" in reported
    assert "wasAssociatedWith(run:r1, engine:snakemake, workflow:counting.v3)" in reported
    assert "wasAssociatedWith(activity:split.1, host:node1, -)" in reported
    assert "actedOnBehalfOf(engine:snakemake, user:ann, -)" in reported
    assert "hadMember(workflow:counting.v3, source:Snakefile)" in reported


def test_versions_lead_back_to_what_the_workflow_was_forked_from() -> None:
    reported = [line.strip() for line in prov_lines(ordinary_run())]

    revised = "wasDerivedFrom(workflow:counting.v3, workflow:counting.v2, -, -, -"
    assert f"{revised}, [prov:type='prov:Revision'])" in reported
    assert "wasDerivedFrom(workflow:counting.v2, workflow:tallying.v1, -, -, -)" in reported
    assert not [line for line in reported if "unrelated" in line]


def test_a_failed_try_is_told_with_its_reason_and_made_nothing() -> None:
    reported = [line.strip() for line in prov_lines(ordinary_run())]

    [failed] = [line for line in reported if line.startswith("activity(activity:count_b.1")]
    assert "prov:type='bb:ActivityRetrying'" in failed
    assert 'bb:ExitCode="137" %% xsd:integer' in failed
    assert 'bb:ErrorMessage="Killed"' in failed
    assert not [line for line in reported if "wasGeneratedBy" in line and "count_b.1" in line]
    assert "wasInformedBy(activity:count_b.2, activity:count_b.1)" in reported


def test_what_did_not_run_is_a_plan_without_times() -> None:
    reported = [line.strip() for line in prov_lines(ordinary_run())]

    ran = [line for line in reported if line.startswith("activity(")]
    assert not [line for line in ran if "activity:plot" in line or "activity:mail" in line]
    [cached] = [line for line in reported if line.startswith("entity(unrun:plot")]
    assert "prov:type='bb:ActivityCached'" in cached
    [skipped] = [line for line in reported if line.startswith("entity(unrun:mail")]
    assert "prov:type='bb:ActivitySkipped'" in skipped
    assert "wasDerivedFrom(file:plot.png, file:counts%2Fa.txt, -, -, -)" in reported
    assert not [line for line in reported if "wasGeneratedBy(file:plot.png" in line]


def test_sparql_answers_which_files_a_result_was_derived_from() -> None:
    store = pyoxigraph.Store()
    store.load(turtle(ordinary_run()), format=pyoxigraph.RdfFormat.TURTLE)

    [query] = re.findall(r"```sparql\n(.*?)```", PAGE.read_text(), re.S)
    found = store.query(query)

    assert isinstance(found, pyoxigraph.QuerySolutions)
    paths = {solution["path"].value for solution in found}
    assert paths == {
        "counts/a.txt",
        "counts/b.txt",
        "parts/a.txt",
        "parts/b.txt",
        "genome.fa",
    }


def test_hostile_texts_come_back_as_they_were() -> None:
    document = from_json(hostile_run())

    labels = {str(record.label) for record in document.get_records() if record.label}
    assert {text for text in HOSTILE if text} <= labels


def test_the_python_of_the_manual_runs(capsys: pytest.CaptureFixture[str]) -> None:
    [block] = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)

    exec(compile(block, "provenance.md", "exec"), {})

    assert "used(activity:copy.1, file:a.txt, -)" in capsys.readouterr().out
