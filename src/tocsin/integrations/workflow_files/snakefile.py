"""Snakefiles in: rules, checkpoints, what is included and what is inherited. Nothing is run.

What only running would show (rules made in a loop, files that a function names) is taken as it is
written: the text of the loop, the text of the function.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from tocsin.errors.services import BadWorkflowFile
from tocsin.integrations.workflow_files.snakefile_lines import (
    Line,
    code_of,
    lines_of,
    plain_text,
    spelled,
    value_of,
)
from tocsin.integrations.workflow_files.snakefile_links import Links
from tocsin.integrations.workflow_files.snakefile_rules import (
    Keyword,
    Rule,
    activity_of,
    is_keyword,
    keyword_of,
    keywords_of,
    outputs_of,
    without_colon,
)
from tocsin.integrations.workflow_files.sources import Sources
from tocsin.integrations.workflow_files.yaml_text import Tree, canonical, read_tree
from tocsin.monitor.evolution.definition import Activity, Definition, short, with_unique_names

LANGUAGE = "snakemake"
RULES_MAX = 5_000
SETTINGS_MAX = 1_000  # of a file of parameters; more are a table, and go by one text
DEPTH_MAX = 100  # of files that include each other, and conditions around that

_LOGIC = frozenset(
    {"ruleorder", "localrules", "wildcard_constraints", "onstart", "onsuccess", "onerror"}
)
_PARAMETERS = frozenset(
    {"configfile", "workdir", "envvars", "pepfile", "pepschema", "report", "container"}
    | {"containerized", "singularity", "conda", "scattergather", "storage", "inputflags"}
    | {"outputflags", "pathvars", "resource_scopes"}
)
_BRANCHES = frozenset({"if", "elif", "else", "for", "while", "with", "try", "except", "finally"})
_RULES = frozenset({"rule", "checkpoint", "use", "module"})
_OUR_WORDS = _LOGIC | _PARAMETERS | _RULES | {"include"}


def read_snakefile(path: Path, sources: Sources) -> Definition:
    """The workflow that a Snakefile and all that it includes define."""
    reading = _Reading(sources)
    reading.file(path, ())
    return reading.definition()


class _Reading:
    """What was read so far."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._depth = 0
        self._rules: list[Rule] = []
        self._parameters: dict[str, str] = {}
        self._logic: dict[str, list[str]] = {}
        self._code: list[str] = []

    def definition(self) -> Definition:
        rules = self._rules
        known: dict[str, object] = {rule.name: rule for rule in rules}
        links = Links(made for rule in rules for made in outputs_of(rule))
        logic = {word: short("; ".join(texts)) for word, texts in self._logic.items()}
        if rules:
            logic["target"] = rules[0].name  # what is made when nothing is asked for
        if self._code:
            logic["code"] = short("\n".join(self._code))
        return Definition(
            language=LANGUAGE,
            activities=with_unique_names(
                self._with_scripts(activity_of(rule, links, known), rule) for rule in rules
            ),
            parameters=self._parameters,
            logic=logic,
        )

    def _with_scripts(self, activity: Activity, rule: Rule) -> Activity:
        """With digests of the scripts that it runs: another text is another activity."""
        digests: dict[str, str] = {}
        for word in ("script", "notebook"):
            keyword = rule.keywords.get(word)
            name = plain_text(keyword.words) if keyword else None
            if name and "{" not in name and "://" not in name:
                file = self._sources.attach(self._sources.place(name, rule.path))
                digests |= {f"{word} sha256": file.sha256} if file else {}
        return replace(activity, does={**activity.does, **digests}) if digests else activity

    def file(self, path: Path, when: tuple[str, ...]) -> None:
        """Read a file, once: Snakemake too passes over what was included before."""
        if self._sources.has_read(path):
            return
        self._depth += 1
        if self._depth + len(when) > DEPTH_MAX:
            raise BadWorkflowFile(
                f"{path.name} is included too deep: more than {DEPTH_MAX} files and conditions",
                remedy="Include it from the Snakefile itself.",
            )
        self._lines(lines_of(self._sources.read(path), path.name), path, when)
        self._depth -= 1

    def _lines(self, lines: Iterable[Line], path: Path, when: tuple[str, ...]) -> None:
        opened = ""  # the condition that an `else` belongs to
        for line in lines:
            first = line.words[0].text
            if first in _BRANCHES and line.below and _has_our_words(line):
                opened = spelled(line.words) if first in ("if", "for", "while", "try") else opened
                own = spelled(line.words).removesuffix(":")
                also = f" of {opened.removesuffix(':')}" if first in ("else", "elif") else ""
                self._lines(line.below, path, (*when, own + also))
            elif not self._rule(line, path, when) and not self._keyword(line, path, when):
                self._plain(line, when)

    def _rule(self, line: Line, path: Path, when: tuple[str, ...]) -> bool:
        """Take the line if it begins a rule or a module."""
        words = line.words
        colon = next((place for place, word in enumerate(words[:3]) if word.text == ":"), None)
        if line.starts("use", "rule"):
            self._use(line, path, when)
        elif words[0].text in _RULES and colon is not None:
            name = words[1].text if colon == 2 else str(len(self._rules) + 1)
            rest = Line(words[colon + 1 :], line.below)
            body = [rest] if is_keyword(rest) else line.below
            _check(without_colon([rest] if rest.words else body), path)
            if words[0].text == "module":
                self._module(name, keywords_of(body))
            else:
                logic = {"checkpoint": "yes"} if words[0].text == "checkpoint" else {}
                self._add(Rule(name, path, when, keywords_of(body), logic))
        else:
            return False
        return True

    def _use(self, line: Line, path: Path, when: tuple[str, ...]) -> None:
        """`use rule a, b from m as m_* with: ...`: rules like others, but for what is said here."""
        texts = [word.text for word in line.words]
        ends = [
            place
            for place, text in enumerate(texts)
            if text in ("from", "as", "with", "exclude", ":")
        ]
        first = min(ends, default=len(texts))
        module = texts[texts.index("from") + 1] if "from" in texts[:-1] else ""
        pattern = _after(texts, "as")
        names = [text for text in texts[2:first] if text != ","]
        said = keywords_of(line.below)
        _check(without_colon(line.below), path)
        for name in names:
            like = next((rule for rule in reversed(self._rules) if rule.name == name), None)
            new = pattern.replace("*", name) if name != "*" and pattern else pattern or name
            if module or like is None:
                of = f"{name} of {module}" if module else name
                inherited = Rule(new, path, when, dict(said), {"like": of})
            else:
                inherited = replace(like, name=new, when=when, keywords={**like.keywords, **said})
            self._add(inherited)

    def _module(self, name: str, keywords: dict[str, Keyword]) -> None:
        for word, keyword in keywords.items():
            self._parameters[f"module {name} {word}"] = short(value_of(keyword.words))

    def _add(self, rule: Rule) -> None:
        if len(self._rules) >= RULES_MAX:
            raise BadWorkflowFile(
                f"the workflow has more than {RULES_MAX} rules", remedy="Record its parts."
            )
        self._rules.append(rule)

    def _keyword(self, line: Line, path: Path, when: tuple[str, ...]) -> bool:
        """Take the line if it says something of the workflow as a whole."""
        word = line.words[0].text
        if not is_keyword(line) or word not in _OUR_WORDS:
            return False
        keyword = keyword_of(line)
        if word == "include":
            self._include(keyword, path, when)
        elif word == "configfile":
            self._configuration(keyword, path)
        elif word in _LOGIC:
            code = keyword.code if word.startswith("on") else value_of(keyword.words)
            self._logic.setdefault(word, []).append(code)
        else:
            self._parameters[word] = short(value_of(keyword.words))
        return True

    def _include(self, keyword: Keyword, path: Path, when: tuple[str, ...]) -> None:
        name = plain_text(keyword.words)
        if name is None or "://" in name:  # computed, or on another machine: reported, not followed
            self._logic.setdefault("include", []).append(value_of(keyword.words))
        else:
            self.file(self._sources.place(name, path), when)

    def _configuration(self, keyword: Keyword, path: Path) -> None:
        """Its name and, where the file is there, what it sets."""
        self._parameters["configfile"] = short(value_of(keyword.words))
        name = plain_text(keyword.words)
        if name is not None:
            self._parameters.update(_settings_of(name, path, self._sources))

    def _plain(self, line: Line, when: tuple[str, ...]) -> None:
        """Python: a name that is given a value is a parameter, the rest is logic."""
        words = line.words
        if not when and len(words) > 2 and words[0].text.isidentifier() and words[1].text == "=":
            for each in _assignments(line):
                self._parameters[each.words[0].text] = short(value_of(each.words[2:]))
        elif not (len(words) == 1 and words[0].is_text):  # a docstring
            self._code.append(code_of([line]))


def _check(broken: Line | None, path: Path) -> None:
    if broken is not None:
        word = broken.words[0]
        raise BadWorkflowFile(
            f"{path.name} line {word.line} is not a Snakefile: {word.text!r} needs a colon",
            remedy="`snakemake --lint` says what is wrong with it.",
        )


def _assignments(line: Line) -> list[Line]:
    """`A=1; B=2` as two lines; what is no assignment goes with the one before it."""
    parts: list[Line] = [Line()]
    for word in line.words:
        if word.text == ";":
            parts.append(Line())
        else:
            parts[-1].words.append(word)
    found: list[Line] = []
    for part in parts:
        words = part.words
        if len(words) > 2 and words[0].text.isidentifier() and words[1].text == "=":
            found.append(part)
        elif words:
            found[-1].words.extend(words)
    return found


def _has_our_words(line: Line) -> bool:
    waiting = list(line.below)
    while waiting:
        each = waiting.pop()
        if each.words[0].text in _OUR_WORDS and (is_keyword(each) or len(each.words) > 2):
            return True
        waiting.extend(each.below)
    return False


def _after(texts: list[str], word: str) -> str:
    """What stands behind a word, up to the next one; `other_*` comes as two signs."""
    if word not in texts:
        return ""
    rest = texts[texts.index(word) + 1 :]
    end = next((place for place, text in enumerate(rest) if text in ("with", ":")), len(rest))
    return "".join(rest[:end])


def _settings_of(name: str, beside: Path, sources: Sources) -> dict[str, str]:
    """What a file of parameters sets; nothing if it is not there, as one given at the start."""
    # Snakemake looks from where it is started, which is the root by custom.
    for origin in (sources.root / "Snakefile", beside):
        path = sources.place(name, origin)
        if path.is_file():
            tree = read_tree(sources.read(path), name)
            found = _flat(tree, "config")
            return found if len(found) <= SETTINGS_MAX else {"config": short(canonical(tree))}
    return {}


def _flat(tree: Tree, name: str) -> dict[str, str]:
    if not isinstance(tree, dict):
        return {name: short(canonical(tree))}
    found: dict[str, str] = {}
    for member, value in tree.items():
        found.update(_flat(value, f"{name}.{member}"))
    return found
