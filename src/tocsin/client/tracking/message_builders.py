"""Builds messages, in the sender's thread, from what the workflow's threads queued."""

from __future__ import annotations

from tocsin.client.tracking.files import total_bytes, workflow_file
from tocsin.client.tracking.monitors.scheduler import Read, pairs_read
from tocsin.client.tracking.run import (
    Pairs,
    Run,
    Step,
    activity_message,
    head_of,
    list_text,
    sample_message,
    workflow_message,
)
from tocsin.wire.blackboard.messages import Message

PATHS_MAX = 1_000  # listed in a message; sizes are added up over all


class ProducedFiles:
    """The files that activities of a run make; what else they read comes from outside."""

    __slots__ = ("paths",)

    def __init__(self) -> None:
        self.paths: set[str] = set()


def run_event(
    run: Run, concept: str, at_ns: int, number: str, whole: bool, pairs: Pairs
) -> Message:
    """An event of the whole run."""
    return workflow_message(run, concept, at_ns, number=number, whole=whole, pairs=pairs)


def sample(
    run: Run, step: Step | None, at_ns: int, number: str, event: str, pairs: Pairs
) -> Message:
    """Values that were measured."""
    return sample_message(run, step, at_ns, number=number, event=event, pairs=pairs)


def workflow_file_message(run: Run, path: str, at_ns: int, number: str) -> Message | None:
    """A file of the workflow."""
    listed = workflow_file(path)
    if listed is None:
        return None
    return sample_message(run, None, at_ns, number=number, pairs={"WorkflowFile": listed})


def activity_started(
    run: Run,
    step: Step,
    at_ns: int,
    created_ns: int,
    inputs: tuple[object, ...],
    outputs: tuple[object, ...],
    command: str,
    produced: ProducedFiles,
) -> Message:
    """An activity that runs from now on."""
    events = {"ActivityExecuting": at_ns, "ActivityInitialized": created_ns}
    pairs: Pairs = {"Host": run.host}
    if step.parents:
        pairs["ParentActivity"] = list_text(step.parents)
    if command:
        pairs["CommandLine"] = head_of(command)
    if inputs:
        pairs.update(_files("Input", inputs))
        outside = [path for path in map(str, inputs) if path not in produced.paths]
        if (external := total_bytes(outside)) is not None:
            pairs["ExternalBytes"] = str(external)
    produced.paths.update(map(str, outputs))
    return activity_message(run, step, events, pairs=pairs)


def activity_ended(
    run: Run,
    step: Step,
    concept: str,
    at_ns: int,
    pairs: Pairs | None,
    read: Read | None,
    outputs: tuple[object, ...],
    produced: ProducedFiles,
) -> Message:
    """An activity that is over."""
    all_pairs: Pairs = {}
    if pairs:
        all_pairs.update(pairs)
    if outputs:
        all_pairs.update(_files("Output", outputs))
        produced.paths.update(map(str, outputs))
    if read is not None:
        all_pairs.update(pairs_read(read))
    return activity_message(run, step, {concept: at_ns}, pairs=all_pairs)


def activity_event(
    run: Run, step: Step, concept: str, at_ns: int, number: str, pairs: Pairs | None
) -> Message:
    """Anything else that happens to an activity."""
    return activity_message(run, step, {concept: at_ns}, number=number, pairs=pairs or {})


def _files(which: str, paths: tuple[object, ...]) -> Pairs:
    pairs = {f"{which}File": list_text(paths[:PATHS_MAX])}
    if (size := total_bytes(map(str, paths))) is not None:
        pairs[f"{which}Bytes"] = str(size)
    return pairs
