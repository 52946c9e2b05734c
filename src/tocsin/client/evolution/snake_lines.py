"""A Snakefile as a tree of logical lines, by Python's own tokenizer. Nothing in it is run."""

from __future__ import annotations

import ast
import io
import token
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tocsin.errors.evolution import BadWorkflowFile

DEPTH_MAX = 60  # of indentation
TOKENS_MAX = 200_000  # ten thousand rules of twenty words

_SKIPPED = frozenset({token.COMMENT, token.NL, token.ENCODING, token.ENDMARKER})
# From Python 3.12 on an f-string comes in pieces; it is put together again, so that one file reads
# the same under every version.
_FSTRING_START = getattr(token, "FSTRING_START", -1)
_FSTRING_END = getattr(token, "FSTRING_END", -1)


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
    count = 0
    try:
        for kind, word, number in _tokens(text):
            count += 1
            if count > TOKENS_MAX:
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
    except (tokenize.TokenError, SyntaxError) as error:
        raise _no_snakefile(name, error) from None
    if line.words:
        stack[-1].below.append(line)
    return top.below


def _tokens(text: str) -> Iterator[tuple[int, str, int]]:
    """Tokens with an f-string as one, each with the number of its line."""
    rows = io.StringIO(text).readlines()  # as the tokenizer counts them
    start: tuple[int, int] | None = None
    depth = 0
    for each in tokenize.generate_tokens(io.StringIO(text).readline):
        if each.type == _FSTRING_START:
            start = each.start if depth == 0 else start
            depth += 1
        elif each.type == _FSTRING_END:
            depth -= 1
            if depth == 0 and start is not None:
                yield token.STRING, _between(rows, start, each.end), start[0]
        elif depth == 0:
            yield each.type, each.string, each.start[0]


def _between(rows: list[str], start: tuple[int, int], end: tuple[int, int]) -> str:
    (first, left), (last, right) = start, end
    if first == last:
        return rows[first - 1][left:right]
    whole = rows[first - 1 : last]
    return "".join([whole[0][left:], *whole[1:-1], whole[-1][:right]])


def _no_snakefile(name: str, error: Exception) -> BadWorkflowFile:
    if isinstance(error, SyntaxError):
        place, why = error.lineno, error.msg
    else:  # a TokenError has its words, then the place
        why, (place, _) = error.args
    return BadWorkflowFile(
        f"{name} line {place} is no Snakefile: {why}",
        remedy="`snakemake --lint` says what is wrong with it.",
    )


def literal(word: Word) -> str | None:
    """What a text in quotes says, as it stands in the file; None for what is computed."""
    prefix = word.text[: len(word.text) - len(word.text.lstrip("rRbBuUfF"))].lower()
    if not word.is_text or "f" in prefix or "b" in prefix:
        return None
    try:
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
