"""XPath and XQuery of strangers read no file, no address and no environment, and a process that
burns its time or memory is ended, while everybody else is served."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from catalog_samples import (
    ask_all,
    make_advertisement,
    open_catalog,
    open_searcher,
    scan,
    xpath_holds,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from tocsin.drivers.topics import evaluators as evaluators_module
from tocsin.drivers.topics.evaluators import Evaluators
from tocsin.errors import BadTopicQuery, Busy, TopicQueryTooCostly, XQueryMissing
from tocsin.safexml import parse
from tocsin.topics.queries.plan import XmlQuery, XPathQuery, XQueryQuery
from tocsin.topics.queries.query import Query

pytest.importorskip("saxonche")

DOCUMENT = b"<d><instrument band='S'><name>radar</name></instrument></d>"
MINUTE_NS = 60 * 10**9
SECRET = "the secret of the broker"

# Each is true if the attack succeeds. FILE, DIRECTORY and PORT are put in.
READING = {
    "doc": "doc('file:FILE.xml')//x = 'SECRET'",
    "doc-available": "doc-available('file:FILE.xml')",
    "relative": "doc('FILE.xml')//x = 'SECRET'",
    "unparsed-text": "contains(unparsed-text('file:FILE.xml'), 'SECRET')",
    "unparsed-text-lines": "unparsed-text-lines('file:FILE.xml')[1] != ''",
    "unparsed-text-available": "unparsed-text-available('file:FILE.xml')",
    "json-doc": "json-doc('file:FILE.json') = 'SECRET'",
    "collection": "collection('file:DIRECTORY?select=*.xml')//x = 'SECRET'",
    "uri-collection": "exists(uri-collection('file:DIRECTORY?select=*.xml'))",
    "environment": "environment-variable('TOCSIN_TEST_SECRET') = 'SECRET'",
    "environments": "available-environment-variables() = 'TOCSIN_TEST_SECRET'",
    "entity": "parse-xml('<!DOCTYPE a [<!ENTITY e SYSTEM \"file:FILE.xml\">]><a>&amp;e;</a>')//x"
    " = 'SECRET'",
    "transform": "transform(map{'stylesheet-location': 'file:FILE.xsl', 'source-node': /})?output"
    "//x = 'SECRET'",
    "import": "import module namespace m = 'urn:m' at 'file:FILE.xqm'; m:f() = 'SECRET'",
    "schema": "import schema 'urn:s' at 'file:FILE.xsd'; true()",
    "stylesheet": "transform(map{'stylesheet-text': '<xsl:stylesheet version=\"3.0\" "
    'xmlns:xsl="http://www.w3.org/1999/XSL/Transform"><xsl:template match="/"><xsl:copy-of '
    "select=\"doc(''file:FILE.xml'')\"/></xsl:template></xsl:stylesheet>', 'source-node': /})"
    "?output//x = 'SECRET'",
    "network": "doc-available('http://127.0.0.1:PORT/x')",
    "network text": "unparsed-text-available('http://127.0.0.1:PORT/x')",
    "java": "Q{java:java.lang.System}getProperty('user.dir') != ''",
    "java environment": "Q{java:java.lang.System}getenv('TOCSIN_TEST_SECRET') = 'SECRET'",
    "put": "exists(saxon:serialize(., 'x'))",
    "module": "load-xquery-module('urn:m', map{'location-hints': 'file:FILE.xqm'})"
    "?functions(QName('urn:m', 'f'))(0)() = 'SECRET'",
}
# Those that do succeed where nothing is locked: the others are refused by Saxon HE itself.
SUCCEEDING = {
    *("doc", "doc-available", "relative", "unparsed-text", "unparsed-text-lines"),
    *("unparsed-text-available", "json-doc", "collection", "environment", "environments"),
    *("transform", "import", "stylesheet", "network text", "uri-collection"),
}
UNLOCKED = """
import json, sys
from saxonche import PySaxonProcessor, PySaxonApiError
processor = PySaxonProcessor(license=False)
succeeded = []
for name, query in json.load(sys.stdin).items():
    try:
        compiled = processor.new_xquery_processor()
        compiled.set_query_content(query)
        compiled.set_context(xdm_item=processor.parse_xml(xml_text="<d/>"))
        value = compiled.run_query_to_value()
        if value is not None and value.size and value.item_at(0).string_value == "true":
            succeeded.append(name)
    except PySaxonApiError:
        pass
print(json.dumps(succeeded))
"""

BURNING = {
    "recursion": "declare function local:f($n) { local:f($n + 1) }; local:f(1)",
    "deep recursion": "declare function local:f($n) { 1 + local:f($n + 1) }; local:f(1)",
    "loop": "sum(for $a in 1 to 1000000, $b in 1 to 1000000 return $a * $b) > 0",
    "doubling": "declare function local:d($s) { if (string-length($s) > 100000000000) then $s "
    "else local:d(concat($s, $s)) }; local:d('xx')",
    "memory": "let $n := for $i in 1 to 100000000 return <a>{$i}</a> return count($n[. = 5]) > 0",
    "sequence": "let $n := (1 to 1000000000) ! string(.) return count(reverse($n)) > 0",
    "matches": "matches('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!', '^(a+)+$')",
    "replace": "replace('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!', '(a|aa)+$', 'b') = ''",
    "parentheses": "(" * 30_000 + "1" + ")" * 30_000,
    "elements": "<a>" * 1_100 + "</a>" * 1_100,
}


@pytest.fixture
def evaluators() -> Iterator[Evaluators]:
    found = Evaluators(killed_after_s=1.0)
    yield found
    found.close()


def evaluated(evaluators: Evaluators, wanted: XmlQuery, count: int = 1) -> list[bool]:
    return evaluators(wanted, [DOCUMENT] * count, time.monotonic_ns() + MINUTE_NS)


def shortly(evaluators: Evaluators, wanted: XmlQuery) -> list[bool]:
    """With no more time than every evaluation has."""
    return evaluators(wanted, [DOCUMENT], time.monotonic_ns())


class Listening:
    """A port, and how many came."""

    def __init__(self) -> None:
        self.came = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.came += 1
            with connection:
                connection.recv(10_000)
                connection.sendall(b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nx")

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()


@pytest.fixture
def listening() -> Iterator[Listening]:
    found = Listening()
    yield found
    found.close()


@pytest.fixture
def attacks(tmp_path: Path, listening: Listening) -> dict[str, str]:
    file = tmp_path / "secret"
    file.with_suffix(".xml").write_text(f"<r><x>{SECRET}</x></r>")
    file.with_suffix(".json").write_text(json.dumps(SECRET))
    file.with_suffix(".xqm").write_text(
        f"module namespace m = 'urn:m'; declare function m:f() {{ '{SECRET}' }};"
    )
    file.with_suffix(".xsl").write_text(
        '<xsl:stylesheet version="3.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">'
        f'<xsl:template match="/"><x>{SECRET}</x></xsl:template></xsl:stylesheet>'
    )
    words = {
        "FILE": str(file),
        "DIRECTORY": str(tmp_path),
        "PORT": str(listening.port),
        "SECRET": SECRET,
    }
    pattern = re.compile("(?<![A-Z_])(?:FILE|DIRECTORY|PORT|SECRET)(?![A-Z])")
    return {
        name: pattern.sub(lambda found: words[found[0]], query) for name, query in READING.items()
    }


# What may be read


def test_a_query_reads_no_file_no_address_and_no_environment(
    attacks: dict[str, str],
    listening: Listening,
    evaluators: Evaluators,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TOCSIN_TEST_SECRET", SECRET)

    said: dict[str, object] = {}
    for name, query in attacks.items():
        try:
            said[name] = evaluated(evaluators, XQueryQuery(query))
        except BadTopicQuery as refused:
            said[name] = str(refused)

    assert [name for name, answer in said.items() if answer == [True]] == []
    assert not any(SECRET in str(answer) for answer in said.values())
    assert listening.came == 0
    assert evaluators.stopped == 0


def test_the_same_queries_read_all_of_it_where_nothing_is_locked(
    attacks: dict[str, str], listening: Listening
) -> None:
    """Else the test before would prove nothing."""
    done = subprocess.run(
        [sys.executable, "-c", UNLOCKED],
        input=json.dumps(attacks),
        capture_output=True,
        text=True,
        env={**os.environ, "TOCSIN_TEST_SECRET": SECRET},
        check=True,
    )

    assert set(json.loads(done.stdout)) >= SUCCEEDING
    assert listening.came > 0


@pytest.mark.parametrize(
    "expression",
    ["document('/etc/passwd')", "re:test('a', 'a')", "$x", "unknown()", "//n:a", "a["],
)
def test_an_xpath_has_the_functions_of_xpath_alone(evaluators: Evaluators, expression: str) -> None:
    """Also where a plan would let it through."""
    namespaces = (("re", "http://exslt.org/regular-expressions"),)
    with suppress(BadTopicQuery):
        assert evaluated(evaluators, XPathQuery(expression, namespaces)) == [False]


def test_a_process_closes_itself_in_before_it_evaluates(evaluators: Evaluators) -> None:
    evaluated(evaluators, XPathQuery("//name", ()))
    evaluated(evaluators, XQueryQuery("//name"))

    for pid in evaluators.pids():
        limits = Path(f"/proc/{pid}/limits").read_text()
        for limit in ("open files", "processes", "file size", "core file size"):
            assert re.search(rf"Max {limit} +0 +0 ", limits), limit
        data = re.search(r"Max data size +(\d+)", limits)
        cpu = re.search(r"Max cpu time +(\d+)", limits)
        assert data is not None
        assert cpu is not None
        assert int(data[1]) <= 500 << 20
        assert int(cpu[1]) < 30
        environment = Path(f"/proc/{pid}/environ").read_bytes()
        names = {each.split(b"=")[0] for each in environment.split(b"\0") if each}
        assert names <= {b"PYTHONPATH", b"PYTHONDONTWRITEBYTECODE", b"LANG"}
    assert len(evaluators.pids()) == 2


def test_what_a_query_prints_goes_nowhere(
    evaluators: Evaluators, capfd: pytest.CaptureFixture[str]
) -> None:
    assert evaluated(evaluators, XQueryQuery("trace('x', 'a line in the log')")) == [True]

    assert capfd.readouterr() == ("", "")


def test_an_error_of_saxon_does_not_say_where_it_runs(evaluators: Evaluators) -> None:
    with pytest.raises(BadTopicQuery) as refused:
        evaluated(evaluators, XQueryQuery("//name["))

    assert "XPST0003" in str(refused.value)
    assert "file:" not in str(refused.value)
    assert str(Path.cwd()) not in str(refused.value)


# What may be used


@pytest.mark.parametrize("name", BURNING)
def test_a_query_that_burns_time_or_memory_is_stopped_and_others_are_served(name: str) -> None:
    heard: list[tuple[str, str]] = []
    evaluators = Evaluators(
        killed_after_s=0.5, on_stopped=lambda language, why: heard.append((language, why))
    )
    assert evaluated(evaluators, XQueryQuery("//name")) == [True]
    (pid,) = evaluators.pids()

    try:
        assert shortly(evaluators, XQueryQuery(BURNING[name])) in ([True], [False])
        was_stopped = False
    except TopicQueryTooCostly:
        was_stopped = True

    assert was_stopped == (evaluators.stopped == 1) == (len(heard) == 1)
    assert was_stopped or name in {"elements", "deep recursion"}  # Saxon may refuse those itself
    if was_stopped:
        assert not Path(f"/proc/{pid}").exists()
    assert evaluated(evaluators, XQueryQuery("//name")) == [True]
    assert evaluated(evaluators, XPathQuery("//name", ())) == [True]
    evaluators.close()
    assert evaluators.pids() == []


def test_an_xpath_that_burns_time_is_stopped_too(evaluators: Evaluators) -> None:
    """A plan refuses it; if one did not, the process would be ended."""
    nested = "//*[count(" * 9 + "//*" + ") > 0]" * 9
    with pytest.raises(TopicQueryTooCostly):
        evaluators(XPathQuery(nested, ()), [b"<a>" + b"<b/>" * 40 + b"</a>"], 0)

    assert evaluated(evaluators, XPathQuery("//name", ())) == [True]


def test_others_are_served_while_a_query_burns(evaluators: Evaluators) -> None:
    stopped = threading.Event()

    def burn() -> None:
        with pytest.raises(TopicQueryTooCostly):
            shortly(evaluators, XQueryQuery(BURNING["loop"]))
        stopped.set()

    evaluated(evaluators, XPathQuery("//name", ()))  # the process is there
    burning = threading.Thread(target=burn)
    burning.start()
    served = 0
    while not stopped.is_set():
        served += evaluated(evaluators, XPathQuery("//name", ())) == [True]
    burning.join()

    assert served > 0


def test_more_at_once_than_may_be_are_refused() -> None:
    evaluators = Evaluators(at_once_max=1, killed_after_s=1.0)
    begun = threading.Event()

    def burn() -> None:
        begun.set()
        with pytest.raises(TopicQueryTooCostly):
            shortly(evaluators, XQueryQuery(BURNING["loop"]))

    burning = threading.Thread(target=burn)
    burning.start()
    begun.wait()
    refused = 0
    while burning.is_alive():
        try:
            evaluated(evaluators, XPathQuery("//name", ()))
        except Busy:
            refused += 1
            time.sleep(0.01)
    burning.join()
    evaluators.close()

    assert refused > 0


def test_a_process_that_is_killed_from_outside_is_replaced(evaluators: Evaluators) -> None:
    evaluated(evaluators, XPathQuery("//name", ()))
    (pid,) = evaluators.pids()
    os.kill(pid, 9)

    with pytest.raises(TopicQueryTooCostly):
        evaluated(evaluators, XPathQuery("//name", ()))
    assert evaluated(evaluators, XPathQuery("//name", ())) == [True]


def test_a_process_is_replaced_after_so_many_queries(
    evaluators: Evaluators, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(evaluators_module.TASKS_MAX, "xpath", 3)
    pids: list[int] = []
    for _ in range(7):
        evaluated(evaluators, XPathQuery("//name", ()))
        pids += evaluators.pids()

    assert len(set(pids)) == 3
    assert evaluators.stopped == 0


def test_without_time_one_document_is_looked_at_and_the_rest_is_for_later(
    evaluators: Evaluators, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluators_module, "BUDGET_NS_MIN", 0)
    evaluated(evaluators, XPathQuery("//name", ()))

    assert evaluators(XPathQuery("//name", ()), [DOCUMENT] * 50, 0) == [True]


def test_without_the_package_an_error_names_the_extra(
    evaluators: Evaluators, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    with pytest.raises(XQueryMissing, match=r"saxonche") as missing:
        evaluated(evaluators, XQueryQuery("//name"))
    assert "tocsin[xquery]" in missing.value.remedy


# What is found


@pytest.mark.parametrize(
    ("query", "is_found"),
    [
        ("//instrument[@band = 'S']", True),
        ("//instrument[@band = 'X']", False),
        ("instrument/name = 'radar'", True),
        ("for $i in //instrument where $i/@band = 'S' return $i/name", True),
        ("some $i in //instrument satisfies $i/@band eq 'X'", False),
        ("every $i in //instrument satisfies $i/@band eq 'S'", True),
        ("declare variable $b := 'S'; //instrument[@band = $b]", True),
        ("let $n := count(//name) return $n > 0", True),
        ("string(//name)", True),
        ("string(//missing)", False),
        ("count(//name)", True),
        ("count(//missing)", False),
        ("number('x')", False),
        ("'false'", True),
        ("()", False),
        ("(false(), false())", True),
        ("xs:date('2020-01-01')", True),
        ("//name + 1", False),  # an error for this document
        ("error()", False),
        ("map { 'a': 1 }", True),
        ("function($x) { $x }", True),
    ],
)
def test_the_value_of_a_query_is_taken_as_a_truth(
    evaluators: Evaluators, query: str, is_found: bool
) -> None:
    assert evaluated(evaluators, XQueryQuery(query), count=2) == [is_found] * 2


ADVERTISEMENTS = [make_advertisement(Random(number), number) for number in range(60)]
conditions = st.sampled_from(
    ("@band = 'S'", ". = 'X'", "@id = '5' and band", "not(@band)", "name = 'Ohio'", "@band != 'S'")
)
elements = st.sampled_from(("//band", "//site[1]", "/d/*", "//instrument/band", ".", "//@id/.."))
queries = st.one_of(
    st.tuples(elements, conditions).map("{0[0]}[{0[1]}]".format),
    st.tuples(elements, conditions).map("exists({0[0]}[{0[1]}])".format),
    st.tuples(elements, conditions).map(
        lambda both: f"for $x in {both[0]} where $x[{both[1]}] return $x"
    ),
    st.tuples(elements, st.sampled_from(("$x/@band = 'S'", "$x = 'X'", "$x/@id = $x/@band"))).map(
        lambda both: f"some $x in {both[0]} satisfies {both[1]}"
    ),
    st.tuples(elements, conditions).map(
        lambda both: f"for $x in {both[0]}[{both[1]}] return $x, 'always'"
    ),
    st.tuples(elements, conditions).map(
        lambda both: f"let $x := {both[0]}[{both[1]}] return count($x) < 1"
    ),
    elements.map(lambda path: f"for $x in ('S', 'X') where $x = 'S' return {path}"),
    elements.map(lambda path: f"exists({path} = 'S')"),
)


def test_an_indexed_xquery_finds_what_evaluating_all_finds(tmp_path: Path) -> None:
    evaluators = Evaluators()
    catalog = open_catalog(tmp_path, ADVERTISEMENTS)
    searcher = open_searcher(catalog, evaluators)
    with_xml = [each for each in ADVERTISEMENTS if each.descriptors.xml and each.label == "open"]
    now_ns = 0

    @settings(max_examples=120)
    @given(query=queries)
    def finds_the_same(query: str) -> None:
        until_ns = time.monotonic_ns() + MINUTE_NS
        documents = [etree.tostring(parse(each.descriptors.xml.encode())) for each in with_xml]
        verdicts = evaluators(XQueryQuery(query), documents, until_ns)
        wanted = [each.uuid for each, found in zip(with_xml, verdicts, strict=True) if found]

        asked = Query(language="xquery", expression=query, limit=7)
        assert sorted(ask_all(searcher, asked, {"open"}, now_ns)) == sorted(wanted)

    finds_the_same()
    searcher.close()
    catalog.close()
    evaluators.close()


def test_the_process_finds_by_xpath_what_a_full_scan_finds(tmp_path: Path) -> None:
    evaluators = Evaluators()
    catalog = open_catalog(tmp_path, ADVERTISEMENTS)
    searcher = open_searcher(catalog, evaluators)
    for expression in ("//band[@id = 'S']", "count(//*) > 3", "//site = 'Ohio' or //name"):
        query = Query(language="xpath", expression=expression, limit=5)

        found = ask_all(searcher, query, {"open", "staff"})

        assert found
        assert sorted(found) == scan(ADVERTISEMENTS, query, {"open", "staff"})
    assert xpath_holds("//name = 'radar'", (), DOCUMENT)
    searcher.close()
    catalog.close()
    evaluators.close()
