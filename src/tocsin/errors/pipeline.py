"""T76: the pipeline and its tables."""

from __future__ import annotations

from tocsin.errors.root import TocsinError


class NoTables(TocsinError):
    """There are no tables where they were looked for, or they cannot be read.

    The pipeline makes them from the archive: `tocsin pipeline run --archive DIR --tables DIR`.
    """

    code = "T761"
    http_status = 404
    exit_code = 5


class QualityFailed(TocsinError):
    """A check of the tables failed, so they were not published: the tables from before stay.

    The message names the check, the table and the first rows, and which other checks failed. To
    run every check on the current tables: `tocsin pipeline quality`.
    """

    code = "T762"


class PipelineBusy(TocsinError):
    """Another pipeline writes these tables. Two at once would each undo what the other did."""

    code = "T763"


class PipelineFailed(TocsinError):
    """Spark could not do the work. The tables are as they were before."""

    code = "T764"


class ConnectorMissing(TocsinError):
    """What connects Spark to a place is not on its class path.

    Spark downloads it if asked to: the message says with which `--conf`. Where nothing can be
    downloaded, name the jars themselves with `--conf spark.jars=A.jar,B.jar`.
    """

    code = "T766"
    exit_code = 2


class PublicationFailed(TocsinError):
    """The tables were made, and could not be copied out (`--publish`). Here they are complete.

    The next run tries again, also if there is nothing new by then.
    """

    code = "T767"


class BadPipelineOption(TocsinError):
    """An option of the pipeline is invalid."""

    code = "T765"
    exit_code = 2
