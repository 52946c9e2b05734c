"""YAML and JSON in, every scalar as the text that was written. No tags, no merges, no bombs."""

from __future__ import annotations

import json

from tocsin.errors.services import BadWorkflowFile

DEPTH_MAX = 60
NODES_MAX = 200_000  # with what aliases stand for written out

Tree = str | list["Tree"] | dict[str, "Tree"]


def read_tree(text: str, name: str) -> Tree:
    """The document of a file of this name; BadWorkflowFile says where it is none."""
    if text.lstrip()[:1] == "{":
        try:
            return _copied(json.loads(text), name)
        except (ValueError, RecursionError):
            pass  # YAML in its own braces, or a mistake that YAML's reader describes better
    return _copied(_load(text, name), name)


def _load(text: str, name: str) -> object:
    import yaml

    # The base loader knows nothing but texts, lists and mappings: no tag makes an object of it, and
    # no number or date is bent into another text.
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    depth = count = 0
    try:
        # Looked through before it is loaded, because the loader goes down by recursion.
        for event in yaml.parse(text, Loader=loader):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            count += 1
            if depth > DEPTH_MAX or count > NODES_MAX:
                raise _too_much(name)
        return yaml.load(text, Loader=loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f" line {mark.line + 1}" if mark is not None else ""
        why = getattr(error, "problem", None) or "it cannot be read"
        raise BadWorkflowFile(
            f"{name}{place} is not valid YAML: {why}", remedy="Correct the file."
        ) from None
    except (RecursionError, ValueError) as error:
        raise BadWorkflowFile(
            f"{name} is not valid YAML: {error}", remedy="Correct the file."
        ) from None


def _copied(value: object, path: str) -> Tree:
    """The tree with nothing shared and everything text; refused if that is too much."""
    left = NODES_MAX

    def copy(value: object, depth: int) -> Tree:
        nonlocal left
        left -= 1
        if left < 0 or depth > DEPTH_MAX:
            raise _too_much(path)
        if isinstance(value, dict):
            return {scalar(name): copy(each, depth + 1) for name, each in value.items()}
        if isinstance(value, list):
            return [copy(each, depth + 1) for each in value]
        return scalar(value)

    return copy(value, 0)


def scalar(value: object) -> str:
    """A scalar as YAML would write it."""
    if isinstance(value, str):
        return value
    return json.dumps(value) if isinstance(value, bool | int | float | None) else str(value)


def _too_much(path: str) -> BadWorkflowFile:
    return BadWorkflowFile(
        f"{path} is nested deeper than {DEPTH_MAX} levels, or has more than {NODES_MAX} nodes",
        remedy="A workflow file is text that a person wrote; name that one.",
    )


def canonical(value: Tree) -> str:
    """A tree as one text, equal for trees that are equal."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(", ", ": "))
