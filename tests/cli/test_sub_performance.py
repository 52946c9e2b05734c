"""`tocsin sub --as gma`: a consumer of performance events on the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from served import Served
from tocsin.cli.main import run
from tocsin.client.gma import Producer, Quantity

ROOT = Path(__file__).parents[2]
TEMPERATURE = "{urn:lab}Temperature"


@pytest.fixture(scope="module")
def producer() -> Iterator[str]:
    """Offers a load that grows, and a temperature of another group."""
    with Producer(host="foo.gov") as running:
        loads = iter(range(1_000_000))
        running.offer("UptimeCPULoad", lambda _: {"Load1": 1.5, "Load5": float(next(loads))})
        running.offer(TEMPERATURE, lambda _: {"Celsius": Quantity(21.5, "degC", "+/-0.5")})
        assert running.address is not None
        yield running.address


def test_events_come_a_line_each_at_the_period_asked_for(
    producer: str, capsys: pytest.CaptureFixture[str]
) -> None:
    began = time.monotonic()
    assert (
        run(["sub", "--as", "gma", producer, "UptimeCPULoad", "--period", "0.2s", "-n", "4"]) == 0
    )
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert all(" UptimeCPULoad Load1=1.5 Load5=" in line for line in lines)
    assert time.monotonic() - began >= 0.5


def test_a_filter_is_applied(producer: str, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = ["sub", "--as", "gma", producer, "UptimeCPULoad", "Load5 >= 20", "Load1 < 2"]
    assert run([*wanted, "--period", "0.02s", "-n", "3", "--format", "{HostName} {Load5}"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["foo.gov"] * 3
    assert all(float(line.split()[1]) >= 20 for line in lines)


def test_the_names_are_listed(producer: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sub", "--as", "gma", producer, "--names"]) == 0
    assert capsys.readouterr().out.split() == ["UptimeCPULoad", TEMPERATURE]
    assert run(["sub", "--as", "gma", f"gma://{producer}", "--names", "--json"]) == 0
    assert {"name": "Temperature", "namespace": "urn:lab"} in json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", ["Temperature", TEMPERATURE])
def test_one_event_is_asked_for_by_its_short_or_whole_name(
    producer: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["sub", "--as", "gma", producer, name, "--query", "--json"]) == 0
    reported = json.loads(capsys.readouterr().out)
    assert (reported["name"], reported["namespace"]) == ("Temperature", "urn:lab")
    celsius = {"name": "Celsius", "value": 21.5, "unit": "degC", "accuracy": "+/-0.5"}
    assert celsius in reported["elements"]


def test_the_xml_is_shown_whole(producer: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sub", "--as", "gma", producer, "Temperature", "--query", "--pretty"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith('<Temperature xmlns="urn:lab">\n')
    assert '<Celsius units="degC" accuracy="+/-0.5">21.5</Celsius>' in shown


def test_without_an_address_the_broker_is_asked(
    broker: Served, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    broker.publish({"type": f"urn:test/{topic.replace('/', '')}", "data": {"x": 1}})
    wanted = ["sub", "--broker", broker.url, "--as", "gma"]
    assert run([*wanted, f"{{urn:test}}{topic.replace('/', '')}", "--all", "-n", "1"]) == 0
    assert "x=1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["Nothing"], 1, "UptimeCPULoad"),
        (["UptimeCPULoad", "--period", "0s"], 2, "0.01 seconds"),
        (["UptimeCPULoad", "Load5 >>"], 1, ">>"),
        (["UptimeCPULoad", "--pull"], 2, "--pull"),
        (["UptimeCPULoad", "--format", "{"], 2, "--format"),
        ([], 2, "name of an event"),
        (["UptimeCPULoad", "Load5 < 0", "-W", "0.3"], 6, "no event arrived"),
    ],
)
def test_what_cannot_be_is_refused_with_words_that_help(
    producer: str,
    arguments: list[str],
    code: int,
    words: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["sub", "--as", "gma", producer, *arguments]) == code
    said = capsys.readouterr()
    assert words in said.err
    assert not said.out


def test_values_stand_apart_from_their_units(
    producer: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["sub", "--as", "gma", producer, "Temperature", "--query"]) == 0
    assert "Celsius=21.5 degC +/-0.5 HostName=foo.gov" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("UptimeCPUload", "did you mean UptimeCPULoad?"),
        ("temperatur", f"did you mean {TEMPERATURE}?"),
        ("{urn:lab}Temprature", f"did you mean {TEMPERATURE}?"),
        ("Zzz", "--names lists what there is"),
    ],
)
def test_a_name_that_is_not_listed_is_reported_with_the_nearest(
    producer: str, name: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["sub", "--as", "gma", producer, name]) == 1  # this producer then refuses
    assert f"there is no event {name} there; {words}" in capsys.readouterr().err


def test_a_broker_is_waited_for_and_says_what_it_knows(
    broker: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = ["sub", "--as", "gma", broker.frames, "NeverComesAtAll", "-W", "0.3"]
    assert run(wanted) == 6
    said = capsys.readouterr().err
    assert "there is no event NeverComesAtAll there" in said
    assert "since the broker started" in said


def test_a_broker_that_listens_for_its_own_machine_is_not_looked_for_here(
    monkeypatch: pytest.MonkeyPatch, broker: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    # As if it were elsewhere: its own loopback is then not ours.
    is_loopback = "tocsin.client.gma.broker_address.is_loopback"
    monkeypatch.setattr(is_loopback, lambda host: host != "127.0.0.1")
    assert run(["sub", "--as", "gma", "--broker", broker.url, "UptimeCPULoad"]) == 1
    assert "only programs on its own machine" in capsys.readouterr().err


def test_a_certificate_is_believed_when_its_authority_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-keyout", "own.key", "-out", "own.pem", "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=IP:127.0.0.1"],
        cwd=tmp_path, check=True, capture_output=True,
    )  # fmt: skip
    certificate, key = str(tmp_path / "own.pem"), str(tmp_path / "own.key")
    with Producer(tls_certificate=certificate, tls_key=key) as running:
        running.offer("Load", lambda _: {"N": 7})
        wanted = ["sub", "--as", "gma", f"gmas://{running.address}", "Load", "--query"]
        assert run(wanted) == 3
        assert "--ca-file FILE" in capsys.readouterr().err
        assert run([*wanted, "--ca-file", certificate]) == 0
        assert "N=7" in capsys.readouterr().out


def test_nobody_there_is_exit_code_three(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sub", "--as", "gma", "127.0.0.1:9", "UptimeCPULoad"]) == 3
    assert "127.0.0.1:9" in capsys.readouterr().err


def test_a_period_means_nothing_to_other_protocols(capsys: pytest.CaptureFixture[str]) -> None:
    for others in ([], ["--as", "wse"]):
        assert run(["sub", *others, "a/**", "--period", "1s"]) == 2
        assert "--period" in capsys.readouterr().err


def test_an_interrupt_ends_it_and_the_subscription(producer: str) -> None:
    command = [sys.executable, "-m", "tocsin", "sub", "--as", "gma", producer, "UptimeCPULoad"]
    process = subprocess.Popen(
        [*command, "--period", "0.1s"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    assert process.stdout is not None
    assert "UptimeCPULoad" in process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=10)
    assert process.returncode == 128 + signal.SIGTERM
    assert "Traceback" not in errors
