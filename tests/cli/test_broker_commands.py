"""The commands against a real broker, as a shell script would use them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import apsw
import pytest

from cli.shell import ROOT, log, spawn
from served import served
from tocsin.cli.main import run
from tocsin.client.requests import filter_text
from tocsin.store.directory import LOG_NAME


def test_what_is_published_can_be_followed(tocsin, topic) -> None:
    code, out, _ = tocsin("pub", topic, '{"load5": 7}', "--attr", "run=42", "--json")
    assert code == 0
    seq = json.loads(out)["seq"]

    code, out, _ = tocsin("sub", topic, "--after", str(seq - 1), "-n", "1", "-W", "10", "--json")

    assert code == 0
    event = json.loads(out)
    assert (event["data"], event["run"], event["topic"]) == ({"load5": 7}, "42", topic)


@pytest.mark.parametrize("via", ["sse", "ws", "box"])
def test_every_way_of_following_prints_the_same(broker, tocsin, topic, via) -> None:
    broker.publish(*({"topic": topic, "data": number} for number in range(20)))

    code, out, _ = tocsin("sub", topic, "--all", "-n", "20", "-W", "10", "--via", via, "--json")

    assert code == 0
    assert [json.loads(line)["data"] for line in out.splitlines()] == list(range(20))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--format", r"{topic}\t{n}"), "{topic}\t1"),
        (("--brief",), '- {topic} {{"n": 1}}'),
    ],
)
def test_lines_have_the_form_that_was_asked_for(broker, tocsin, topic, options, expected) -> None:
    broker.publish({"topic": topic, "data": {"n": 1}})

    assert log(tocsin, topic, *options) == [expected.format(topic=topic)]


def test_what_was_received_since_a_while_is_shown(broker, tocsin, topic) -> None:
    broker.publish({"topic": topic})

    code, out, _ = tocsin("sub", topic, "--since", "1h", "-n", "1", "-W", "10", "--json")

    assert code == 0
    assert json.loads(out)["topic"] == topic
    assert tocsin("sub", topic, "--since", "0", "-W", "0.3")[0] == 6


def test_nothing_arriving_in_time_is_exit_code_six(tocsin, topic) -> None:
    code, out, err = tocsin("sub", topic, "-W", "0.3")

    assert (code, out) == (6, "")
    assert "[T603]" in err


def test_a_bad_filter_is_shown_with_a_mark_under_it(tocsin) -> None:
    code, _, err = tocsin("sub", "load5 >>= 3")

    assert code == 1
    assert "\n  load5 >>= 3\n        ^\n" in err


@pytest.mark.parametrize(
    ("pattern", "meant"),
    [
        ("lead/#", "lead/**"),
        ("lead/+/x", "lead/*/x"),
        ("lead/>", "lead/**"),
        (">", "**"),
        ("#", "**"),
        ("topic lead/# and load5 > 5", "lead/**"),
    ],
)
@pytest.mark.parametrize(
    "command",
    [
        ["sub", "-W", "5"],
        ["sub", "--via", "ws", "-W", "5"],
        ["sub", "--via", "box", "-W", "5"],
        ["sub", "--all", "--exit-at-end"],
        ["subs", "add", "http://127.0.0.1:9/", "--filter"],
        ["box", "create", "--filter"],
    ],
    ids=" ".join,
)
def test_a_wildcard_of_another_system_is_answered_with_ours(
    tocsin, command, pattern, meant
) -> None:
    is_option = command[-1] == "--filter"
    code, _, err = tocsin(*command, filter_text(pattern) if is_option else pattern)

    assert code == 1
    assert f"Write {meant} (" in err


@pytest.mark.parametrize("command", [["box", "create"], ["subs", "add", "http://127.0.0.1:9/"]])
def test_a_wildcard_of_another_system_in_topic_is_answered_with_ours(tocsin, command) -> None:
    code, _, err = tocsin(*command, "--topic", "lead/+/x")

    assert code == 1
    assert "Write lead/*/x (" in err


def test_a_topic_with_such_a_level_can_still_be_asked_for(tocsin, topic) -> None:
    assert tocsin("pub", f"{topic}/#", "1")[0] == 0

    assert len(log(tocsin, f"`topic` = '{topic}/#'")) == 1


def test_following_ends_quietly_when_interrupted_or_cut_off(broker, topic) -> None:
    following = spawn(broker, "sub", topic)
    time.sleep(1.0)
    following.send_signal(signal.SIGINT)

    out, err = following.communicate(timeout=30)

    assert (following.returncode, out, err) == (130, "", "")


def test_following_goes_on_after_the_broker_was_away(topic) -> None:
    with served() as broker:
        following = spawn(
            broker, "sub", topic, "--all", "-n", "2", "-W", "30", "--format", "{data}"
        )
        broker.publish({"topic": topic, "data": 1})
        assert following.stdout is not None
        assert following.stdout.readline() == "1\n"
        broker.kill()
        broker.start()
        broker.publish({"topic": topic, "data": 2})
        out, err = following.communicate(timeout=30)

    assert out == "2\n"
    assert "connecting again" in err


def test_a_box_is_made_emptied_and_removed(broker, tocsin, topic) -> None:
    box = tocsin("box", "create", "--topic", topic)[1].strip()
    broker.publish(*({"topic": topic, "data": number} for number in range(5)))

    assert len(tocsin("box", "pull", box, "--max", "2", "--wait", "5s")[1].splitlines()) == 2
    kept = tocsin("box", "pull", box, "--keep")
    assert len(kept[1].splitlines()) == 3
    again = tocsin("box", "pull", box)
    assert again[1] == kept[1]
    assert tocsin("box", "pull", box)[0] == 6
    assert box in tocsin("box", "ls")[1]
    assert tocsin("box", "rm", box)[0] == 0
    assert tocsin("box", "rm", box)[0] == 5


def test_a_healthy_broker_gets_a_clean_bill(tocsin) -> None:
    code, out, _ = tocsin("doctor", "--json")

    assert code == 0
    found = {line["subject"]: line["level"] for line in map(json.loads, out.splitlines())}
    assert found["broker"] == "ok"
    assert found["clock"] == "ok"


def test_the_doctor_checks_every_record_of_a_log_at_rest(capsys, topic) -> None:
    with served() as broker:
        broker.publish(*({"topic": topic, "data": number} for number in range(50)))
        data = str(broker.directory)
        assert run(["doctor", "--data", data, "--broker", broker.url]) == 0
        assert "a broker is running on this directory" in capsys.readouterr().out
        broker.stop()

        assert run(["doctor", "--data", data, "--broker", broker.url]) == 3
        assert "50 events" in capsys.readouterr().out
        log = apsw.Connection(str(broker.directory / LOG_NAME))
        log.execute("UPDATE events SET record = CAST(record || x'00' AS BLOB) WHERE seq = 50")
        log.close()

        assert run(["doctor", "--data", data, "--broker", broker.url]) == 1
        assert "1 record damaged: 50" in capsys.readouterr().out
        broker.start()
        broker.call("GET", "/events?after=0")

        assert run(["doctor", "--broker", broker.url]) == 1
        assert "log: 1 record damaged" in capsys.readouterr().out


def test_a_directory_without_a_log_is_reported(tmp_path, capsys) -> None:
    assert run(["doctor", "--data", str(tmp_path), "--broker", "http://127.0.0.1:9"]) == 1
    assert "there is no log in" in capsys.readouterr().out


def test_a_quick_load_tells_rate_and_latency(tocsin) -> None:
    code, out, _ = tocsin("bench", "--quick", "--json")

    assert code == 0
    result = json.loads(out)
    assert result["received"] == result["published"] > 0
    assert 0 < result["delivery_ms_p50"] <= result["delivery_ms_p99"]


def test_the_broker_says_what_to_try_next(tmp_path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    serving = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "tocsin",
            "serve",
            *["--http", "127.0.0.1:0", "--frames", "off"],
            *["--soap-tcp", "off", "--link", "off"],
        ],
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=environment,
    )
    assert serving.stderr is not None
    # The log's own lines come first: read as far as the line that is looked for, or the end.
    words = ""
    for line in serving.stderr:
        words += line
        if "tocsin sub --broker" in line:
            break
    serving.terminate()
    serving.communicate(timeout=30)

    assert serving.returncode == 0
    assert "listens on http://127.0.0.1:" in words
    assert "tocsin sub --broker" in words


def test_an_open_address_needs_to_be_meant(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("TOCSIN_AUTH__MODE", "open")
    assert run(["serve", "--http", "0.0.0.0:0", "--data", str(tmp_path / "data")]) == 2
    assert "[T002]" in capsys.readouterr().err
