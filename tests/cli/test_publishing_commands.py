"""`tocsin pub` against a real broker: lines, pipes, and what is wrong with them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from cli.shell import ROOT, log, spawn


def test_the_payload_is_kept_to_the_byte(tocsin, topic, tmp_path) -> None:
    text = '{"a": 1.50,   "b":[ ]}'
    (tmp_path / "data.json").write_text(text)

    assert tocsin("pub", topic, "--data-file", str(tmp_path / "data.json"))[0] == 0

    (line,) = log(tocsin, topic, "--json")
    assert text in line


def test_lines_are_published_in_order_and_bad_ones_are_named(broker, tocsin, topic) -> None:
    lines = [json.dumps({"n": number}) for number in range(1_500)]
    lines[700] = '{"n": 700'
    lines[800] = json.dumps({"specversion": "1.0", "type": "t", "topic": "a//b"})
    publishing = spawn(broker, "pub", topic, "-", "--keep-going", "--json")

    out, err = publishing.communicate("\n".join(lines), timeout=60)

    assert publishing.returncode == 7
    assert json.loads(out)["stored"] == 1_498
    assert "line 701: " in err
    assert "line 801: " in err
    numbers = [json.loads(line)["data"]["n"] for line in log(tocsin, topic, "--json")]
    assert numbers == [n for n in range(1_500) if n not in (700, 800)]


def test_a_line_that_the_broker_refuses_does_not_let_later_ones_overtake(
    broker, tocsin, topic
) -> None:
    lines = [_cloud_event(n, topic if n != 3 else f"{topic}//x") for n in range(3_000)]
    publishing = spawn(broker, "pub", "-", "--keep-going")
    publishing.communicate("\n".join(lines), timeout=60)

    assert publishing.returncode == 7
    ids = [int(json.loads(line)["id"]) for line in log(tocsin, topic, "--json")]
    assert ids == [n for n in range(3_000) if n != 3]


@pytest.mark.parametrize("bad", ['{"n": ', '{"specversion": "1.0", "type": "t", "topic": "a//b"}'])
def test_a_bad_line_ends_it_with_all_before_it_stored_and_none_behind(
    broker, tocsin, topic, bad
) -> None:
    lines = [str(n) for n in range(2_000)]
    lines[700] = bad
    publishing = spawn(broker, "pub", topic, "-")

    _, err = publishing.communicate("\n".join(lines), timeout=60)

    assert publishing.returncode == 1
    assert "700 events stored before this:" in err
    numbers = [json.loads(line)["data"] for line in log(tocsin, topic, "--json")]
    assert numbers == list(range(700))


def test_who_interrupts_learns_how_many_are_stored(broker, tocsin, topic) -> None:
    publishing = spawn(broker, "pub", topic, "-")
    assert publishing.stdin is not None
    publishing.stdin.write("1\n2\n3\n")
    publishing.stdin.flush()
    deadline = time.monotonic() + 20
    while len(log(tocsin, topic)) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)

    publishing.send_signal(signal.SIGINT)
    _, err = publishing.communicate(timeout=20)

    assert publishing.returncode == 130
    assert "interrupted: 3 events stored" in err


@pytest.mark.parametrize("kind", ["pipe", "file"])
def test_input_that_nobody_asked_for_is_not_dropped_in_silence(
    broker, tocsin, topic, kind, tmp_path
) -> None:
    if kind == "file":
        (tmp_path / "input").write_text("x\n")
        inside = os.open(tmp_path / "input", os.O_RDONLY)
    else:
        inside, writing = os.pipe()
        os.write(writing, b"x\n")
        os.close(writing)

    done = _with_input(broker, inside, "pub", topic)

    assert done.returncode == 2
    assert "-" in done.stderr
    assert log(tocsin, topic) == []
    assert _with_input(broker, inside, "pub", topic, "--data-file", "-").returncode == 0
    assert _with_input(broker, inside, "pub", topic).returncode == 0  # nothing is left there
    os.close(inside)
    events = [json.loads(line) for line in log(tocsin, topic, "--json")]
    assert [event.get("data") for event in events] == ["x\n", None]


def test_a_pipe_that_a_job_inherited_open_and_empty_is_not_waited_for(broker, topic) -> None:
    inside, writing = os.pipe()

    assert _with_input(broker, inside, "pub", topic).returncode == 0
    os.close(inside)
    os.close(writing)


def _with_input(broker, inside: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "TOCSIN_BROKER": broker.url}
    return subprocess.run(
        [sys.executable, "-m", "tocsin", *arguments],
        stdin=inside,
        capture_output=True,
        text=True,
        env=environment,
        timeout=20,
    )


def test_without_keep_going_a_bad_line_ends_it(broker, topic) -> None:
    publishing = spawn(broker, "pub", topic, "-")

    _, err = publishing.communicate('{"n": 1}\n{"n": \n', timeout=60)

    assert publishing.returncode == 1
    assert "line 2: " in err


def test_without_keep_going_a_line_that_the_broker_refuses_ends_it(broker, topic) -> None:
    lines = [_cloud_event(n, topic if n != 3 else f"{topic}//x") for n in range(6)]
    publishing = spawn(broker, "pub", "-")
    _, err = publishing.communicate("\n".join(lines), timeout=60)

    assert publishing.returncode == 1
    assert f"line 4: topic '{topic}//x' has an empty level" in err
    assert "--keep-going" in err


def test_lines_that_are_no_events_are_refused_by_number_and_those_before_are_counted(
    broker, tocsin, topic
) -> None:
    publishing = spawn(broker, "pub", "-")
    lines = [_cloud_event(1, topic), _cloud_event(2, topic), "not json", _cloud_event(3, topic)]

    _, err = publishing.communicate("\n".join(lines), timeout=60)

    assert publishing.returncode == 1
    assert "2 events stored before this:" in err
    assert "line 3: it is not an event" in err
    assert "tocsin pub TOPIC -" in err
    assert len(log(tocsin, topic)) == 2


@pytest.mark.parametrize(
    ("data", "options", "warned"),
    [
        ('{"load5": 7', [], True),
        ("[load5]", [], True),
        ('{"load5": 7}', [], False),
        ("load5", [], False),
        ("{load5}", ["--content-type", "text/plain"], False),
    ],
)
def test_data_that_begins_like_json_and_is_none_is_warned_of(
    tocsin, topic, data, options, warned
) -> None:
    code, _, err = tocsin("pub", topic, data, *options)

    assert code == 0
    assert ("not valid JSON" in err) == warned


def _cloud_event(number: int, topic: str) -> str:
    event = {"specversion": "1.0", "id": str(number), "source": f"/{topic}", "type": "t"}
    return json.dumps({**event, "topic": topic})


def test_a_slow_pipe_is_published_line_by_line(broker, topic) -> None:
    following = spawn(broker, "sub", topic, "-n", "1", "-W", "20", "--json")
    time.sleep(1.0)
    publishing = spawn(broker, "pub", topic, "-")
    assert publishing.stdin is not None
    publishing.stdin.write("hello\n")
    publishing.stdin.flush()

    out, _ = following.communicate(timeout=30)
    assert json.loads(out)["data"] == "hello"
    publishing.communicate(timeout=30)
    assert publishing.returncode == 0
