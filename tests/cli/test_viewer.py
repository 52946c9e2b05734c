"""The message viewer and `pub --as`, as people and scripts use them, on a real broker."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tocsin.cli.main import run
from tocsin.client import WseClient
from tocsin.wire.soap.envelope import read_envelope

ROOT = Path(__file__).parents[2]
SPECS = ("wse", "wse11", "wsn13", "wsn12", "wsn10")
PAYLOAD = '<n xmlns="urn:n" a="1">\n<m>7</m></n>'


@pytest.fixture
def viewer(broker):
    """Starts `tocsin sub --as ...`, and returns once it has subscribed."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        before = len(subscriptions(broker))
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "TOCSIN_BROKER": broker.url}
        process = subprocess.Popen(
            [sys.executable, "-m", "tocsin", "sub", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        started.append(process)
        deadline = time.monotonic() + 20
        while len(subscriptions(broker)) == before and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def subscriptions(broker, topic: str = "") -> list[dict]:
    found = broker.call("GET", "/subscriptions")[1]["subscriptions"]
    return [each for each in found if topic in json.dumps(each)]


def finished(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=30)
    return process.returncode, out, err


@pytest.mark.parametrize("way", [(), ("--pull",)])
@pytest.mark.parametrize("spec", SPECS)
def test_the_brief_form_is_the_payload_on_a_line(broker, viewer, topic, spec, way) -> None:
    process = viewer("--as", spec, *way, "-n", "2", topic)

    assert run(["pub", "--as", spec, topic, PAYLOAD, "--broker", broker.url]) == 0
    assert run(["pub", "--as", "wse", topic, "<o/>", "--broker", broker.url]) == 0

    assert finished(process) == (0, '<n xmlns="urn:n" a="1"> <m>7</m></n>\n<o/>\n', "")
    assert not subscriptions(broker, topic)


@pytest.mark.parametrize("spec", ["wse", "wsn13", "wsn12"])
def test_the_whole_form_is_the_envelope_with_its_headers(broker, viewer, topic, spec) -> None:
    process = viewer("--as", spec, "--whole", "--pretty", "-n", "1", topic)

    run(["pub", "--as", spec, topic, PAYLOAD, "--id", f"urn:{topic}", "--broker", broker.url])

    code, out, _ = finished(process)
    envelope = read_envelope(out.encode())
    assert code == 0
    assert f"urn:{topic}" in "".join(envelope.header.itertext())
    assert "\n      " in out


def test_json_has_what_is_known_of_a_message(broker, viewer, topic) -> None:
    process = viewer("--as", "wsn13", "--json", "--whole", "-n", "1", topic)

    own = ["--id", f"urn:{topic}", "--source", "http://x.example/", "--broker", broker.url]
    run(["pub", "--as", "wsn12", topic, "<n/>", *own])

    reported = json.loads(finished(process)[1])
    assert "<n/>" in reported.pop("envelope")
    assert reported == {
        "topic": topic,
        "id": f"urn:{topic}",
        "action": None,
        "producer": "http://x.example/",
        "payload": "<n/>",
    }


def test_several_topics_and_an_xpath(broker, viewer, topic) -> None:
    process = viewer(
        *("--as", "wse", "--xpath", "//p:m > 5", "--namespace", "p=urn:n", "-n", "1"),
        *(f"{topic}/a/**", f"{topic}/b"),
    )
    for place, number in (("a/x", 4), ("c", 9), ("a/y/z", 8)):
        payload = f'<m xmlns="urn:n">{number}</m>'
        run(["pub", "--as", "wse", f"{topic}/{place}", payload, "--broker", broker.url])

    assert finished(process)[1] == '<m xmlns="urn:n">8</m>\n'


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 128 + signal.SIGTERM)]
)
@pytest.mark.parametrize("way", [(), ("--pull",)])
def test_an_interrupted_viewer_unsubscribes(broker, viewer, topic, number, code, way) -> None:
    process = viewer("--as", "wsn13", *way, topic)
    assert len(subscriptions(broker, topic)) == 1

    process.send_signal(number)

    assert finished(process) == (code, "", "")
    assert not subscriptions(broker, topic)


def test_nothing_in_time_is_exit_code_6(broker, viewer, topic) -> None:
    code, out, err = finished(viewer("--as", "wse", "-W", "0.3", topic))

    assert (code, out) == (6, "")
    assert "no message arrived [T603]" in err
    assert "--pull" in err


def test_a_subscription_that_is_ended_is_reported(broker, viewer, topic) -> None:
    process = viewer("--as", "wse", topic)
    [own] = subscriptions(broker, topic)

    broker.call("DELETE", f"/subscriptions/{own['id']}")

    code, _, err = finished(process)
    assert code == 1
    assert "SourceCancelling" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["sub", "--as", "wse", "--since", "1h", "t"], "--since cannot be used with --as"),
        (["sub", "--pull", "t"], "--pull cannot be used without --as"),
        (["sub", "--as", "wsn10", "a/*"], "no wildcards"),
        (["sub", "--as", "wse", "--namespace", "p", "t"], "has no ="),
        (["sub", "--as", "wse", "--xpath", "//[", "t"], "T104"),
        (["pub", "--as", "wse", "--attr", "a=b", "t", "<n/>"], "--attr cannot be used with --as"),
        (["pub", "--topic", "x", "t", "1"], "--topic cannot be used without --as"),
        (["pub", "--as", "wse", "--topic", "x", "t", "<n/>"], "named twice"),
        (["pub", "--as", "wse", "t", "no xml"], "T105"),
        (["pub", "--as", "wse", "no-such-file.xml"], "cannot read no-such-file.xml"),
    ],
)
def test_wrong_use_is_reported_in_two_lines(broker, capsys, arguments, words) -> None:
    before = subscriptions(broker)

    code = run([*arguments, "--broker", broker.url])

    err = capsys.readouterr().err
    assert code in (1, 2)
    assert words in err
    assert len(err.splitlines()) == 2
    assert subscriptions(broker) == before


def test_no_broker_is_exit_code_3(capsys) -> None:
    assert run(["sub", "--as", "wse", "t", "--broker", "http://127.0.0.1:9", "-W", "1"]) == 3
    assert "cannot reach http://127.0.0.1:9/soap" in capsys.readouterr().err


@pytest.mark.parametrize("spec", SPECS)
def test_a_file_is_published_to_a_broker_or_straight_to_a_consumer(
    broker, topic, tmp_path, spec
) -> None:
    file = tmp_path / "sweep.xml"
    file.write_text(f"<?xml version='1.0'?>\n{PAYLOAD}")
    with WseClient(broker.url) as client:
        seen: list[bytes] = []
        inbox = client.listen(lambda message: seen.append(message.payload))
        published = client.subscribe(topic)
        to_broker = ["pub", "--as", spec, "--topic", topic, str(file), "--broker", broker.url]

        assert run(to_broker) == 0
        assert run([*to_broker, "--to", inbox.address]) == 0

        message = published.take(10)
        assert message is not None
        assert (message.payload, message.topic) == (PAYLOAD.encode(), topic)
        assert seen == [PAYLOAD.encode()]


def test_the_commands_start_without_an_xml_library() -> None:
    for command in ("pub", "sub", "convert"):
        loaded = subprocess.run(
            [sys.executable, "-X", "importtime", "-m", "tocsin", command, "--help"],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
            check=True,
        ).stderr
        assert "lxml" not in loaded
        assert "tocsin.client.soap" not in loaded
