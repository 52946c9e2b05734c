"""What the keywords of a rule mean: which part of an activity each of them is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tocsin.integrations.workflow_files.snakefile_lines import (
    Line,
    Word,
    code_of,
    spelled,
    value_of,
)
from tocsin.integrations.workflow_files.snakefile_links import (
    Links,
    RuleOutput,
    named_rules,
    patterns_of,
)
from tocsin.monitor.evolution.definition import Activity, Binding, short

DOES = frozenset(
    {"shell", "run", "script", "notebook", "wrapper", "cwl", "template_engine", "container"}
    | {"containerized", "singularity", "conda", "envmodules", "shadow"}
)
LOGIC = frozenset(
    {"priority", "retries", "group", "cache", "localrule", "wildcard_constraints"}
    | {"default_target", "handover", "pathvars"}
)
UNSAID = frozenset({"message", "name"})  # words for people
_DATA = frozenset({"input", "output", "params", "log", "benchmark", "threads", "resources"})
_KNOWN = DOES | LOGIC | UNSAID | _DATA


@dataclass(frozen=True, slots=True)
class Argument:
    """One of several values behind a keyword, with the name it was given or none."""

    name: str
    words: list[Word]


@dataclass(frozen=True, slots=True)
class Keyword:
    """What stands behind a keyword: its words one after the other, and the same as code."""

    words: list[Word]
    code: str


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule as it was read; `when` are the conditions that it stands under."""

    name: str
    path: Path  # of the file that it stands in
    when: tuple[str, ...] = ()
    keywords: dict[str, Keyword] = field(default_factory=dict)
    logic: dict[str, str] = field(default_factory=dict)


def keywords_of(body: Iterable[Line]) -> dict[str, Keyword]:
    """The keywords in the body of a rule; what is none, as a docstring, says nothing to us."""
    return {
        line.words[0].text: keyword_of(line)
        for line in body
        if len(line.words) > 1 and is_keyword(line)
    }


def without_colon(body: Iterable[Line]) -> Line | None:
    """The first line of a rule's body that has a keyword and not the colon that belongs to it."""
    return next(
        (
            line
            for line in body
            if line.words and line.words[0].text in _KNOWN and not is_keyword(line)
        ),
        None,
    )


def is_keyword(line: Line) -> bool:
    return len(line.words) > 1 and line.words[0].text.isidentifier() and line.words[1].text == ":"


def keyword_of(line: Line) -> Keyword:
    """What stands behind the colon of a line and below it."""
    rest = Line(line.words[2:], [])
    code = code_of([*([rest] if rest.words else []), *line.below])
    return Keyword(list(line.every_word())[2:], code)


def arguments_of(words: list[Word]) -> list[Argument]:
    """The values between the commas, as in a call."""
    found: list[Argument] = []
    current: list[Word] = []
    depth = 0
    lambdas: list[int] = []  # the depths at which one waits for its colon: its commas are its own
    for word in words:
        if word.text in ("(", "[", "{"):
            depth += 1
        elif word.text in (")", "]", "}"):
            depth -= 1
        elif word.text == "lambda":
            lambdas.append(depth)
        elif word.text == ":" and lambdas and lambdas[-1] == depth:
            lambdas.pop()
        if word.text == "," and depth == 0 and not lambdas:
            found.append(_argument(current))
            current = []
        else:
            current.append(word)
    found.append(_argument(current))
    return [each for each in found if each.words]


def _argument(words: list[Word]) -> Argument:
    if len(words) > 2 and words[0].text.isidentifier() and words[1].text == "=":
        return Argument(words[0].text, words[2:])
    return Argument("", words)


def outputs_of(rule: Rule) -> list[RuleOutput]:
    """What a rule makes, for others to be linked to."""
    return [
        RuleOutput((rule.name, each.name), spelled(each.words), patterns_of(each.words))
        for each in _arguments(rule, "output")
    ]


def activity_of(rule: Rule, links: Links, known: dict[str, object]) -> Activity:
    """The rule as an activity among the others."""
    does: dict[str, str] = {}
    parameters: dict[str, str] = {}
    logic = dict(rule.logic)
    if rule.when:
        logic["when"] = short(" / ".join(rule.when))
    for name, keyword in rule.keywords.items():
        if name in DOES:
            does[name] = short(keyword.code if name == "run" else value_of(keyword.words))
        elif name in LOGIC:
            logic[name] = short(value_of(keyword.words))
        elif name not in UNSAID and name not in ("input", "output"):
            parameters.update(_parameters(name, keyword))
    return Activity(
        name=rule.name,
        does=does,
        inputs=tuple(
            Binding(
                each.name,
                _value(each.words, known),
                tuple(links.makers(each.words, rule.name, known)),
            )
            for each in _arguments(rule, "input")
        ),
        outputs=tuple(
            Binding(each.name, short(value_of(each.words))) for each in _arguments(rule, "output")
        ),
        parameters=parameters,
        logic=logic,
    )


def _value(words: list[Word], known: dict[str, object]) -> str:
    """What an input is bound to; a rule that it names is left to its sources."""
    # A rule that is renamed is then no change of all that read from it.
    text = value_of(words)
    for name in named_rules(words):
        if name in known:
            text = text.replace(f"rules.{name}.", "rules.").replace(
                f"checkpoints.{name}.", "checkpoints."
            )
    return short(text)


def _parameters(name: str, keyword: Keyword) -> dict[str, str]:
    """`params` by their names; of `threads: 4` the keyword is the name."""
    arguments = arguments_of(keyword.words)
    prefix = "" if name == "params" else f"{name}."
    named = {prefix + each.name: short(value_of(each.words)) for each in arguments if each.name}
    plain = [value_of(each.words) for each in arguments if not each.name]
    return {**named, **({name: short(", ".join(plain))} if plain else {})}


def _arguments(rule: Rule, name: str) -> list[Argument]:
    keyword = rule.keywords.get(name)
    return arguments_of(keyword.words) if keyword else []
