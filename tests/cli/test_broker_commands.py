"""The commands against a real broker, as a shell script would use them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import apsw
import pytest

from served import served
from tocsin.cli.main import run
from tocsin.client.requests import filter_text
from tocsin.store.directory import LOG_NAME

ROOT = Path(__file__).parents[2]


@pytest.fixture
def tocsin(broker, capsys):
    """Runs a command in this process; its exit code, data and words."""

    def call(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run([*arguments, "--broker", broker.url])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def spawn(broker, *arguments: str, **options) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "TOCSIN_BROKER": broker.url}
    return subprocess.Popen(
        [sys.executable, "-m", "tocsin", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        **options,
    )


def log(tocsin, topic: str, *options: str) -> list[str]:
    code, out, _ = tocsin("sub", topic, "--all", "--exit-at-end", *options)
    assert code == 0
    return out.splitlines()


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


class Sink:
    """A webhook that refuses until it is told otherwise."""

    def __init__(self) -> None:
        self.status = 400
        self.bodies: list[bytes] = []
        sink = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                sink.bodies.append(self.rfile.read(int(self.headers["content-length"])))
                self.send_response(sink.status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def sink():
    made = Sink()
    yield made
    made.server.shutdown()
    made.server.server_close()


def wait_until(condition) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.05)


def test_a_subscription_from_its_making_to_its_end(broker, tocsin, topic, sink) -> None:
    sink.status = 204
    code, out, _ = tocsin("subs", "add", sink.url, "--topic", topic, "--expires", "1h")
    assert code == 0
    name = out.strip()

    broker.publish({"topic": topic, "data": 1})
    wait_until(lambda: sink.bodies == [b"1"])

    assert name in tocsin("subs", "ls")[1]
    assert topic in tocsin("subs", "show", name)[1]
    assert tocsin("subs", "pause", name)[0] == 0
    assert json.loads(tocsin("subs", "show", name, "--json")[1])["state"] == "paused"
    assert tocsin("subs", "resume", name)[0] == 0
    renewed = json.loads(tocsin("subs", "renew", name, "--expires", "never", "--json")[1])
    assert renewed["expires"] is None
    assert tocsin("subs", "rm", name)[0] == 0
    assert tocsin("subs", "show", name)[0] == 5


def test_many_subscriptions_are_removed_by_what_they_have_in_common(tocsin, topic, sink) -> None:
    names = {
        tocsin("subs", "add", sink.url, "--topic", f"{topic}/{number}")[1].strip()
        for number in range(3)
    }

    assert tocsin("subs", "rm")[0] == 2
    assert tocsin("subs", "rm", "--filter", topic)[0] == 2, "a script must say --yes"
    code, out, _ = tocsin("subs", "rm", "--filter", topic, "--dry-run")
    assert code == 0
    assert set(out.split()) == names
    code, out, _ = tocsin("subs", "rm", *names, "nobody", "--json")
    assert code == 7
    assert sum(json.loads(line)["done"] for line in out.splitlines()) == 3


def test_a_sink_that_may_not_be_is_exit_code_four(tocsin) -> None:
    code, _, err = tocsin("subs", "add", "http://127.0.0.1:25/")

    assert code == 4
    assert "[T307]" in err


def test_dead_letters_are_seen_sent_again_and_dropped(broker, tocsin, topic, sink) -> None:
    name = tocsin("subs", "add", sink.url, "--topic", topic)[1].strip()
    broker.publish({"topic": topic, "data": "one"}, {"topic": topic, "data": "two"})

    def letters() -> list[dict]:
        out = tocsin("dlq", "ls", "--subscription", name, "--json")[1]
        return [json.loads(line) for line in out.splitlines()]

    wait_until(lambda: len(letters()) == 2)
    first = letters()[0]["id"]
    assert "HTTP 400" in tocsin("dlq", "show", first)[1]
    assert "dead letters: " in tocsin("doctor")[1]
    assert tocsin("dlq", "redrive", first)[0] == 1
    assert tocsin("dlq", "redrive", "--subscription", name)[0] == 7

    sink.status = 204
    assert tocsin("dlq", "redrive", first)[0] == 0
    assert tocsin("dlq", "drop", "--subscription", name)[0] == 2, "a script must say --yes"
    assert tocsin("dlq", "drop", "--subscription", name, "--yes")[0] == 0
    assert letters() == []
    assert tocsin("dlq", "show", first)[0] == 5
    tocsin("subs", "rm", name)


def test_dead_letters_are_sent_again_in_the_order_of_their_events(
    broker, tocsin, topic, sink
) -> None:
    name = tocsin("subs", "add", sink.url, "--topic", topic)[1].strip()
    broker.publish(*({"topic": topic, "data": number} for number in range(20)))

    def listed() -> list[int]:
        out = tocsin("dlq", "ls", "--subscription", name, "--json")[1]
        return [json.loads(line)["sequence"] for line in out.splitlines()]

    wait_until(lambda: len(listed()) == 20)
    assert listed() == sorted(listed())

    sink.status = 204
    sink.bodies.clear()
    assert tocsin("dlq", "redrive", "--subscription", name, "--rate", "10000")[0] == 0
    assert sink.bodies == [str(number).encode() for number in range(20)]
    tocsin("subs", "rm", name)


def test_a_signed_batched_subscription_can_be_made(broker, tocsin, topic, sink, tmp_path) -> None:
    sink.status = 204
    secret = tmp_path / "secret"
    secret.write_text("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n")

    code, out, err = tocsin(
        "subs", "add", sink.url, "--topic", topic, "--batch", "10", "--secret-file", str(secret)
    )

    assert code == 0, err
    shown = json.loads(tocsin("subs", "show", out.strip(), "--json")[1])
    assert shown["config"]["batch"] == 10
    assert "MfKQ9r8" not in json.dumps(shown)
    tocsin("subs", "rm", out.strip())


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
