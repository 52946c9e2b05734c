"""The source's readers, used as Spark uses them."""

from __future__ import annotations

import pickle

from pyspark.sql.datasource import CaseInsensitiveDict

from tocsin.pipeline.source import TocsinSource
from tocsin.pipeline.source.data_source import BatchReader, StreamReader


def source(path: object, **options: object) -> TocsinSource:
    given_ = {name: str(value) for name, value in {"path": path, **options}.items()}
    return TocsinSource(CaseInsensitiveDict(given_))


def batch_reader(path: object, **options: object) -> BatchReader:
    found = source(path, **options)
    return found.reader(found.schema())


def stream_reader(path: object, **options: object) -> StreamReader:
    found = source(path, **options)
    return found.streamReader(found.schema())


def numbers(reader: BatchReader | StreamReader, shares: object = None) -> list[int]:
    """The sequence numbers that tasks would read, each in a process of its own."""
    assert isinstance(reader, BatchReader) or shares is not None
    planned = reader.partitions() if isinstance(reader, BatchReader) else shares
    found: list[int] = []
    for share in planned:  # type: ignore[attr-defined]
        there: BatchReader = pickle.loads(pickle.dumps(reader))
        for batch in there.read(pickle.loads(pickle.dumps(share))):
            found += batch.column("seq").to_pylist()
    return found
