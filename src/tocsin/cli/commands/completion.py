"""`tocsin completion`: shell completion of commands and options."""

from __future__ import annotations

import argparse
from argparse import Namespace

from tocsin.cli.parser import Parser, add_json, command_names, command_parser, find_command

SUMMARY = "Print a completion script for bash, zsh or fish"
EXAMPLES = """
  eval "$(tocsin completion bash)"
  tocsin completion fish > ~/.config/fish/completions/tocsin.fish
"""

BASH = """\
_tocsin() {{
  local words command="${{COMP_WORDS[1]}}" action="${{COMP_WORDS[2]}}"
  if [ "$COMP_CWORD" -eq 1 ]; then words="{commands} --help --version"; else
    case "$command $action" in
{cases}
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _tocsin tocsin"""
ZSH = "autoload -U +X bashcompinit && bashcompinit\n"


def add_arguments(parser: Parser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="your shell")
    add_json(parser)


def run(arguments: Namespace) -> int:
    known = _completions()
    if arguments.json:
        from tocsin.cli.render import show_json

        show_json({" ".join(path): words for path, words in known.items()})
    elif arguments.shell == "fish":
        print(_fish(known))
    else:
        print((ZSH if arguments.shell == "zsh" else "") + _bash(known))
    return 0


def _completions() -> dict[tuple[str, ...], list[str]]:
    """What may follow each command, and each action of a command."""
    found: dict[tuple[str, ...], list[str]] = {}
    for name in command_names():
        command = find_command(name)
        assert command is not None
        parser = command_parser(name, command)
        found[name,] = _of(parser)
        for action, sub in actions(parser).items():
            found[name, action] = _of(sub)
    return found


def actions(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The actions of a command, as `ls` of `tocsin subs ls`."""
    groups = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    return dict(groups[0].choices) if groups else {}


def _of(parser: argparse.ArgumentParser) -> list[str]:
    words = [option for a in parser._actions for option in a.option_strings if option[1] == "-"]
    for action in parser._actions:
        words += [str(choice) for choice in action.choices or () if not action.option_strings]
    return sorted(words)


def _bash(known: dict[tuple[str, ...], list[str]]) -> str:
    # The most exact first: `subs ls` before `subs`.
    paths = sorted(known, key=len, reverse=True)
    lines = [f'      {_case(path)}) words="{" ".join(known[path])}" ;;' for path in paths]
    return BASH.format(commands=" ".join(command_names()), cases="\n".join(lines))


def _case(path: tuple[str, ...]) -> str:
    return f'"{" ".join(path)}"' if len(path) > 1 else f'"{path[0]} "*'


def _fish(known: dict[tuple[str, ...], list[str]]) -> str:
    lines = [f"complete -c tocsin -f -n __fish_use_subcommand -a '{' '.join(command_names())}'"]
    for path, words in known.items():
        seen = " ; and ".join(f"__fish_seen_subcommand_from {part}" for part in path)
        lines.append(f"complete -c tocsin -n '{seen}' -a '{' '.join(words)}'")
    return "\n".join(lines)
