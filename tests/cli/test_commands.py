"""Every command: help that starts with examples, JSON, exit codes, and a fast start."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tocsin.cli.commands.completion import actions
from tocsin.cli.main import run
from tocsin.cli.pages import commands
from tocsin.cli.parser import Parser, command_names, command_parser, find_command

ROOT = Path(__file__).parents[2]
NOBODY = "http://127.0.0.1:9"  # the discard port, where nobody listens


def parsers() -> list[Parser]:
    found: list[Parser] = []
    for name in command_names():
        command = find_command(name)
        assert command is not None
        parser = command_parser(name, command)
        found += [parser, *actions(parser).values()]
    return found


def tocsin(*arguments: str, **options) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), **options.pop("env", {})}
    return subprocess.run(
        [sys.executable, "-m", "tocsin", *arguments],
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
        **options,
    )


@pytest.mark.parametrize("parser", parsers(), ids=lambda parser: parser.prog)
def test_help_starts_with_examples_that_name_the_command(parser: Parser) -> None:
    lines = parser.format_help().splitlines()

    assert lines[0] == "Examples:"
    assert parser.prog in lines[1] + lines[2] + lines[3]


@pytest.mark.parametrize("parser", parsers(), ids=lambda parser: parser.prog)
def test_every_command_can_answer_in_json(parser: Parser) -> None:
    leaf = not actions(parser)

    assert leaf == any("--json" in action.option_strings for action in parser._actions)


@pytest.mark.parametrize("parser", parsers(), ids=lambda parser: parser.prog)
def test_every_argument_says_what_it_means(parser: Parser) -> None:
    silent = [action.dest for action in parser._actions if not (action.help or actions(parser))]

    assert silent == []


def test_the_reference_shows_the_defaults_themselves() -> None:
    assert "%(" not in commands()


def test_the_reference_in_the_docs_is_what_the_parsers_say() -> None:
    page = ROOT / "docs" / "commands.md"

    assert page.read_text() == commands(), (
        "stale: python -m tocsin.cli.pages commands > docs/commands.md"
    )


def test_an_unknown_command_gets_the_nearest_one(capsys) -> None:
    assert run(["sbu"]) == 2
    assert "Did you mean `tocsin sub`?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("statsu", "status"), ("subscribe", "sub"), ("publish", "pub"), ("start", "serve"),
        ("dotcor", "doctor"), ("topic", "topics"), ("configure", "config"), ("events", "sub"),
        ("health", "status"), ("info", "status"),
    ],
)  # fmt: skip
def test_a_command_that_is_not_there_gets_the_one_that_was_meant(typed, meant, capsys) -> None:
    assert run([typed]) == 2
    assert f"Did you mean `tocsin {meant}`?" in capsys.readouterr().err


def test_a_command_like_no_other_gets_the_list(capsys) -> None:
    assert run(["xyzzy"]) == 2
    assert "`tocsin --help` lists the commands." in capsys.readouterr().err


SECRET = "whsec_abcdefghijkl"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            f"subs add http://h/ --secert-file {SECRET}",
            "--secert-file. Did you mean --secret-file?",
        ),
        (
            f"subs add http://h/ --secert-file={SECRET}",
            "--secert-file. Did you mean --secret-file?",
        ),
        (f"subs add http://h/ --secret-file x {SECRET}", "too many arguments"),
        (f"sub -n {SECRET}", "needs a whole number"),
        (f"sub --via {SECRET}", "choose one of sse, ws, box"),
        (f"sub --json={SECRET}", "it takes no value"),
        (f"sub --{SECRET}", "unknown option"),
        (f"sub -{SECRET}", "unknown option"),
        (f"subs {SECRET}", "choose one of"),
        ("sub --fromat x", "--fromat. Did you mean --format?"),
        ("sub --via wss", "Did you mean ws?"),
        ("subs shwo", "Did you mean show?"),
    ],
)
def test_a_wrong_option_gets_the_nearest_and_no_value_is_repeated(line, said, capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        run(line.split())

    words = capsys.readouterr().err
    assert ended.value.code == 2
    assert said in words
    assert SECRET not in words
    assert words.count("\n") == 2


@pytest.mark.parametrize("first", [f"--secret={SECRET}", f"--{SECRET}", f"-{SECRET}"])
def test_an_option_in_front_of_the_command_is_named_without_its_value(first, capsys) -> None:
    assert run([first, "pub", "a", "1"]) == 2

    words = capsys.readouterr().err
    assert "options come after the command" in words
    assert SECRET not in words


def test_wrong_arguments_are_two_lines_and_exit_code_two(capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        run(["sub", "--nonsense"])

    assert ended.value.code == 2
    assert capsys.readouterr().err.count("\n") == 2


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("pub a/b --attr run=42 1", "data", "1"),
        ("pub a/b 1 --attr run=42", "data", "1"),
        ("pub --attr run=42 a/b 1", "data", "1"),
        ("pub a/b --json -- -x", "data", "-x"),
        ("pub a/b --json -5", "data", "-5"),
        ("pub a/b --json -", "data", "-"),
        ("pub a/b --json", "data", None),
        ("sub a/** --all load5>=5", "filter", ["a/**", "load5>=5"]),
        ("sub --all", "filter", []),
        ("subs rm one --dry-run two", "ids", ["one", "two"]),
        ("explain --json T104", "code", "T104"),
    ],
)
def test_what_may_be_left_out_may_stand_before_and_after_options(line, name, value) -> None:
    command, *arguments = line.split()
    parser = command_parser(command, find_command(command))

    assert getattr(parser.parse_args(arguments), name) == value


@pytest.mark.parametrize("line", ["pub a/b --da x", "subs add http://127.0.0.1:1/ --secret x"])
def test_an_option_is_written_in_full(line, capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        run(line.split())

    assert ended.value.code == 2
    assert "unknown option" in capsys.readouterr().err


@pytest.mark.parametrize("address", ["127.0.0.1", "foo", "127.0.0.1:x", "127.0.0.1:99999"])
def test_an_address_that_is_none_is_not_called_open_to_the_world(address, capsys, tmp_path) -> None:
    code = run(["serve", "--data", str(tmp_path / "data"), "--http", address])

    assert code == 2
    assert f"'{address}' is not a valid address to listen on" in capsys.readouterr().err
    assert not (tmp_path / "data").exists()


def test_version_and_help_go_to_stdout(capsys) -> None:
    assert run(["--version"]) == 0
    assert run([]) == 0

    out = capsys.readouterr().out
    assert out.startswith("tocsin 0.")
    assert all(f"\n  {name} " in out for name in command_names())


@pytest.mark.parametrize(
    "arguments",
    [
        ["pub", "a/b", "1"],
        ["sub", "-n", "1"],
        ["sub", "--via", "ws"],
        ["subs", "ls"],
        ["box", "ls"],
        ["dlq", "ls"],
        ["doctor"],
        ["bench", "--quick"],
    ],
)
def test_without_a_broker_the_exit_code_is_three_and_the_remedy_is_said(arguments, capsys) -> None:
    code = run([*arguments, "--broker", NOBODY])

    said = capsys.readouterr()
    assert code == 3
    assert "[T601]" in said.err + said.out
    assert "tocsin serve" in said.err + said.out
    assert "connection refused" in said.err + said.out
    assert "Errno" not in said.err + said.out


def test_a_load_without_a_broker_says_so_once() -> None:
    done = tocsin("bench", "--quick", "--broker", NOBODY)

    assert done.returncode == 3
    assert done.stderr.count("\n") == 2, done.stderr


def test_publishing_lines_without_a_broker_fails_at_once() -> None:
    done = tocsin("pub", "a/b", "-", "--broker", NOBODY, input="1\n2\n")

    assert done.returncode == 3
    assert "[T601]" in done.stderr


def test_an_error_code_is_explained(capsys) -> None:
    assert run(["explain", "t104"]) == 0
    assert "BadFilter" in capsys.readouterr().out
    assert run(["explain", "T104", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["exit_code"] == 1
    assert run(["explain"]) == 0
    assert "T601" in capsys.readouterr().out
    assert run(["explain", "T999"]) == 2


def test_settings_are_shown_with_where_they_came_from(capsys, monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOCSIN_HTTP__IDLE_S", "9")

    assert run(["config", "show", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["http.idle_s"] == {"value": 9.0, "origin": "TOCSIN_HTTP__IDLE_S"}
    assert run(["config", "show", "--origin"]) == 0
    assert "TOCSIN_HTTP__IDLE_S" in capsys.readouterr().out


def test_a_wrong_setting_is_named(capsys, monkeypatch, tmp_path) -> None:
    (tmp_path / "tocsin.toml").write_text("[http]\nadress = '127.0.0.1:1'\n")
    monkeypatch.chdir(tmp_path)

    assert run(["config", "show"]) == 2
    assert "http.address" in capsys.readouterr().err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_command(shell: str, capsys) -> None:
    assert run(["completion", shell]) == 0

    script = capsys.readouterr().out
    assert all(name in script for name in command_names())
    assert "--exit-at-end" in script


def test_bash_takes_the_completion_script() -> None:
    script = tocsin("completion", "bash").stdout
    asked = 'COMP_WORDS=(tocsin subs l); COMP_CWORD=2; _tocsin; echo "${COMPREPLY[@]}"'

    done = subprocess.run(["bash", "-c", f"{script}\n{asked}"], capture_output=True, text=True)

    assert done.stdout.split() == ["ls"]


def test_a_reader_that_leaves_early_is_no_error() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = f"{sys.executable} -m tocsin explain --json | true; echo ${{PIPESTATUS[0]}}"

    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, env=environment, timeout=60
    )

    assert done.stdout.strip() == "0"
    assert done.stderr == ""


def cpu_s(*command: str) -> float:
    """The CPU time of the cheapest of a few runs."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    cheapest = float("inf")
    for _ in range(7):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, capture_output=True, env=environment, timeout=60)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        cheapest = min(cheapest, spent)
    return cheapest


@pytest.mark.parametrize("arguments", [["--help"], ["a/b", "1", "--broker", NOBODY]])
def test_pub_starts_in_a_few_times_what_python_itself_takes(arguments: list[str]) -> None:
    bare = cpu_s(sys.executable, "-c", "pass")

    assert cpu_s(sys.executable, "-P", "-m", "tocsin", "pub", *arguments) <= 6 * bare


def test_pub_loads_nothing_heavy() -> None:
    heavy = ["msgspec", "asyncio", "ssl", "http.client", "rich", "logging", "dataclasses", "uuid"]
    program = (
        "import sys; from tocsin.cli.main import run;"
        f"run(['pub', 'a/b', '1', '--broker', '{NOBODY}']);"
        f"print([name for name in {heavy} if name in sys.modules])"
    )

    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )

    assert done.stdout.strip() == "[]"


def test_a_seed_is_simulated_and_comes_out_the_same_again(capsys) -> None:
    assert run(["simulate", "--seed", "3", "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert run(["simulate", "--seeds", "1", "--start", "3", "--json"]) == 0
    second = json.loads(capsys.readouterr().out)

    assert first == second
    assert first["seed"] == 3


def test_the_benchmarks_of_a_checkout_are_listed(capsys) -> None:
    assert run(["bench", "--list", "--json"]) == 0

    listed = {script["name"] for script in json.loads(capsys.readouterr().out)}
    assert listed <= {path.stem for path in (ROOT / "bench").glob("*.py")}
    assert run(["bench", "no_such_script"]) == 2
