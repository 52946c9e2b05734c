"""CWL in: workflows with their steps, workflows in workflows, packed graphs, and single tools."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from tocsin.errors.services import BadWorkflowFile
from tocsin.integrations.workflow_files.cwl_documents import (
    Documents,
    Mapping,
    Process,
    members,
    text_of,
    texts_of,
)
from tocsin.integrations.workflow_files.sources import Sources
from tocsin.integrations.workflow_files.yaml_text import Tree, canonical
from tocsin.monitor.evolution.definition import (
    Activity,
    Binding,
    Definition,
    Source,
    short,
    with_unique_names,
)

LANGUAGE = "cwl"
DEPTH_MAX = 30  # of workflows in workflows
STEPS_MAX = 5_000  # of all workflows in each other, each counted as often as it is used

_LOGIC = ("scatter", "scatterMethod", "when")
# Of a tool: what is for people, what is reported elsewhere, and what is the same for all.
_NOT_DONE = frozenset({"id", "label", "doc", "class", "cwlVersion", "inputs", "outputs", "intent"})
_METADATA = ("$", "s:", "sd:", "sbg:")


def read_cwl(path: Path, sources: Sources) -> Definition:
    """The workflow, or the single tool, that a CWL file defines."""
    documents = Documents(sources)
    main = documents.main(path)
    if main.kind != "Workflow":
        return Definition(LANGUAGE, (_tool_alone(main),))
    steps: list[Activity] = []
    for step in _steps(main, documents, "", ()):
        if len(steps) >= STEPS_MAX:
            raise BadWorkflowFile(
                f"the workflow has more than {STEPS_MAX} steps", remedy="Record its parts."
            )
        steps.append(step)
    return Definition(
        language=LANGUAGE,
        activities=with_unique_names(steps),
        outputs=tuple(_results(main)),
        parameters={
            _local(name, main): short(_parameter(value))
            for name, value in members(main.body.get("inputs"), "type")
        },
        logic=_requirements(main),
    )


def _tool_alone(tool: Process) -> Activity:
    """A tool that is no step of anything: its ports are bound to nothing yet."""
    return Activity(
        name=tool.name,
        does=_does(tool, with_ports=False),
        inputs=tuple(
            Binding(_local(name, tool), short(canonical(value)))
            for name, value in members(tool.body.get("inputs"), "type")
        ),
        outputs=tuple(
            Binding(_local(name, tool), short(canonical(value)))
            for name, value in members(tool.body.get("outputs"), "type")
        ),
    )


def _steps(
    workflow: Process, documents: Documents, prefix: str, around: tuple[object, ...]
) -> Iterator[Activity]:
    """The steps of a workflow, each followed by those of the workflow that it runs."""
    if workflow.key in around:
        raise BadWorkflowFile(
            f"the workflow {workflow.name} runs itself", remedy="CWL allows no recursion."
        )
    if len(around) >= DEPTH_MAX:
        raise BadWorkflowFile(
            f"workflows are nested more than {DEPTH_MAX} deep",
            remedy="Record the inner ones as workflows of their own.",
        )
    for identifier, step in members(workflow.body.get("steps")):
        name = _local(identifier, workflow)
        run = step.get("run")
        if isinstance(run, dict) and "$import" in run:
            run = run["$import"]
        process: Process | None = None
        if isinstance(run, str):
            process = documents.referred(run, workflow)
        elif isinstance(run, dict):
            process = documents.inline(run, workflow, name)
        does = _does(process, with_ports=True) if process else {"tool": canonical(run or "")}
        yield _step(prefix, name, step, does, workflow)
        if process is not None and process.kind == "Workflow":
            yield from _steps(process, documents, f"{prefix}{name}/", (*around, workflow.key))


def _step(
    prefix: str, name: str, step: Mapping, does: dict[str, str], workflow: Process
) -> Activity:
    inputs: list[Binding] = []
    parameters: dict[str, str] = {}
    own = (name, workflow)
    for identifier, bound in members(step.get("in"), "source"):
        port = _port(identifier, *own)
        sources = _sources(bound.get("source"), workflow, prefix)
        rest = _present(bound, "valueFrom", "linkMerge", "pickValue")
        value = text_of(rest, "valueFrom") if list(rest) == ["valueFrom"] else canonical(rest)
        if sources or rest:
            inputs.append(Binding(port, short(value) if rest else "", sources))
        if "default" in bound:
            parameters[port] = short(canonical(bound["default"]))
    logic = {
        word: short(", ".join(_port(each, *own) for each in texts_of(step[word])))
        for word in _LOGIC
        if word in step
    }
    return Activity(
        name=prefix + name,
        does={**does, **_parts(step, ("requirements", "hints"))},
        inputs=tuple(inputs),
        outputs=tuple(Binding(_port(each, *own)) for each, _ in members(step.get("out"))),
        parameters=parameters,
        logic=logic,
    )


def _sources(value: Tree | None, workflow: Process, prefix: str) -> tuple[Source, ...]:
    """`step/out` as the activity and its port; an input of the workflow belongs to no activity."""
    found: list[Source] = []
    for text in texts_of(value):
        step, _, port = _local(text.rpartition("#")[2], workflow).rpartition("/")
        # In a workflow that a step runs, its inputs are those of the step.
        found.append((prefix + step if step else prefix.rstrip("/"), port))
    return tuple(found)


def _does(process: Process, *, with_ports: bool) -> dict[str, str]:
    """What a process does, part by part, without its name and what is for people."""
    if process.kind == "Workflow":
        return {"workflow": process.name}
    body = process.body
    names = [
        name
        for name in body
        if name not in _NOT_DONE and not name.startswith(_METADATA) and "://" not in name
    ]
    does = {"tool": process.kind, **_parts(body, names)}
    if with_ports:
        for side in ("inputs", "outputs"):
            ports: Mapping = {
                _local(name, process): {word: said for word, said in each.items() if word != "id"}
                for name, each in members(body.get(side), "type")
            }
            if ports:
                does[side] = short(canonical(ports))
    return does


def _parts(body: Mapping, names: Iterable[str]) -> dict[str, str]:
    return {name: short(_part(name, body[name])) for name in names if body.get(name)}


def _present(body: Mapping, *names: str) -> Mapping:
    return {name: body[name] for name in names if name in body}


def _by_class(value: Tree) -> Tree:
    """Requirements by their class, as a mapping, however they were written."""
    if not isinstance(value, list):
        return value
    return {
        text_of(each, "class"): {word: said for word, said in each.items() if word != "class"}
        for each in value
        if isinstance(each, dict)
    }


def _part(name: str, value: Tree) -> str:
    if name == "baseCommand":
        return " ".join(texts_of(value))
    return canonical(_by_class(value) if name in ("requirements", "hints") else value)


def _requirements(workflow: Process) -> dict[str, str]:
    return _parts(workflow.body, ("requirements", "hints"))


def _results(workflow: Process) -> Iterator[Binding]:
    """The outputs of the workflow, and where they come from."""
    for name, value in members(workflow.body.get("outputs"), "type"):
        rest = _present(value, "linkMerge", "pickValue")
        yield Binding(
            _local(name, workflow),
            canonical(rest) if rest else "",
            _sources(value.get("outputSource"), workflow, ""),
        )


def _parameter(value: Mapping) -> str:
    """The type of an input, and its default if it has one."""
    kind = canonical(value.get("type", ""))
    return f"{kind} = {canonical(value['default'])}" if "default" in value else kind


def _local(name: str, process: Process) -> str:
    """`main/align/bam` in the process main as `align/bam`, which is what it was before packing."""
    return name.removeprefix(f"{process.key[1]}/") if process.key[1] else name


def _port(identifier: str, step: str, workflow: Process) -> str:
    return _local(identifier.rpartition("#")[2], workflow).removeprefix(f"{step}/")
