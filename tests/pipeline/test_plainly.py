"""What Spark could not do, as a person is told of it."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JError

from tocsin.errors.pipeline import PipelineFailed
from tocsin.pipeline.spark.spark_errors import readable_errors

TRACE = """An error occurred while calling o78.parquet.
: org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed while writing rows to file:/x.
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.x(QueryExecutionErrors.scala:7)
Caused by: org.apache.spark.SparkException: Job aborted.
Caused by: java.io.IOException: {cause}
\t... 14 more
Caused by: java.lang.NullPointerException
"""


@pytest.mark.parametrize(
    ("cause", "remedy"),
    [("No space left on device", "Make room"), ("Connection reset by peer", "--verbose")],
)
def test_the_cause_at_the_bottom_is_told_and_a_full_disk_has_its_own_remedy(
    cause: str, remedy: str
) -> None:
    with pytest.raises(PipelineFailed) as caught, readable_errors():
        raise Py4JError(TRACE.format(cause=cause))

    problem = caught.value.problem
    assert problem.startswith("Spark gave up: [TASK_WRITE_FAILED] Task failed while writing rows")
    assert problem.endswith(f": {cause}")
    assert remedy in caught.value.remedy


def test_of_a_trace_of_python_the_error_at_its_end_is_told() -> None:
    trace = """[PYTHON_DATA_SOURCE_ERROR] Failed to create it: Traceback (most recent call last):
  File "worker.py", line 7, in main
    import tocsin
ModuleNotFoundError: No module named 'tocsin'
"""
    said = r"^Spark gave up: \[.*\] Failed to create it: ModuleNotFoundError: No module named"
    with pytest.raises(PipelineFailed, match=said), readable_errors():
        raise Py4JError(trace)


def test_without_a_trace_there_is_what_was_said() -> None:
    with pytest.raises(PipelineFailed, match=r"^Spark gave up: nothing works"), readable_errors():
        raise Py4JError("nothing works\nat all")
