"""A Snakefile as a tree of logical lines, by Python's own tokenizer. Nothing in it is run."""

from __future__ import annotations

import ast
import token
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tocsin.errors.services import BadWorkflowFile
from tocsin.integrations.workflow_files.snakefile_tokens import read_tokens

DEPTH_MAX = 60  # of indentation
TOKENS_MAX = 200_000  # ten thousand rules of twenty words

_SKIPPED = frozenset({token.COMMENT, token.NL, token.ENCODING, token.ENDMARKER})


@dataclass(frozen=True, slots=True)
class Word:
    """One token: a name, a number, a text or a sign."""

    kind: int
    text: str
    line: int

    @property
    def is_text(self) -> bool:
        return self.kind == token.STRING


@dataclass(slots=True)
class Line:
    """A logical line, and those that are indented below it."""

    words: list[Word] = field(default_factory=list)
    below: list[Line] = field(default_factory=list)

    def starts(self, *texts: str) -> bool:
        return tuple(word.text for word in self.words[: len(texts)]) == texts

    def every_word(self) -> Iterator[Word]:
        """The words of this line and of all below it."""
        waiting = [self]
        while waiting:
            line = waiting.pop()
            yield from line.words
            waiting.extend(reversed(line.below))


def lines_of(text: str, name: str) -> list[Line]:
    """The lines that are not indented, with what is below each; BadWorkflowFile if it is none."""
    top = Line()
    stack = [top]
    line = Line()
    for count, (kind, word, (number, _)) in enumerate(read_tokens(text, name)):
        if count >= TOKENS_MAX:
            raise BadWorkflowFile(
                f"{name} has more than {TOKENS_MAX} words", remedy="Record its parts."
            )
        if kind == token.INDENT:
            if len(stack) > DEPTH_MAX or not stack[-1].below:
                raise BadWorkflowFile(
                    f"{name} line {number} is indented under nothing, or more than {DEPTH_MAX} "
                    "times",
                    remedy="Name a workflow file that a person wrote.",
                )
            stack.append(stack[-1].below[-1])
        elif kind == token.DEDENT:
            stack.pop()
        elif kind == token.NEWLINE:
            if line.words:
                stack[-1].below.append(line)
            line = Line()
        elif kind not in _SKIPPED:
            line.words.append(Word(kind, word, number))
    if line.words:
        stack[-1].below.append(line)
    return top.below


def literal(word: Word) -> str | None:
    """What a text in quotes says, as it stands in the file; None for what is computed."""
    prefix = word.text[: len(word.text) - len(word.text.lstrip("rRbBuUfF"))].lower()
    if not word.is_text or "f" in prefix or "b" in prefix:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of "\d", which concerns its author
            value = ast.literal_eval(word.text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, str) else None


def plain_text(words: Iterable[Word]) -> str | None:
    """The text, if the words are texts in quotes and nothing else; Python joins such."""
    parts = [literal(word) for word in words]
    if not parts or None in parts:
        return None
    return "".join(part for part in parts if part is not None)


def spelled(words: Iterable[Word]) -> str:
    """An expression in one spelling, however it was spaced, broken and quoted."""
    pieces: list[str] = []
    after_wordy = False
    for word in words:
        said = literal(word)
        text = word.text if said is None else repr(said)
        wordy = word.kind != token.OP
        if (wordy and after_wordy) or (pieces and pieces[-1] == ","):
            pieces.append(" ")
        pieces.append(text)
        after_wordy = wordy
    return "".join(pieces)


def value_of(words: Iterable[Word]) -> str:
    """A text for what it says, anything else as it is spelled."""
    listed = list(words)
    text = plain_text(listed)
    return spelled(listed) if text is None else text


def code_of(lines: Iterable[Line], indent: str = "") -> str:
    """Code in one spelling, its indentation kept."""
    waiting = [(line, indent) for line in reversed(list(lines))]
    rows: list[str] = []
    while waiting:
        line, margin = waiting.pop()
        rows.append(margin + spelled(line.words))
        waiting.extend((each, margin + "  ") for each in reversed(line.below))
    return "\n".join(rows)
