"""Which events were seen before, without reading the keys of all that ever were.

Beside each file of keys in the state stands the same in order, made when it is first asked for:

    keys/part-....parquet        what Spark wrote
    keys/_part-....ordered       its keys ascending, 8 bytes each, then their checks, 4 bytes each

That is mapped into memory, and a key is searched for in it. So what a batch of a stream takes grows
with the batch, and not with the years before it. Spark passes over files whose names begin so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from tocsin.pipeline.fold.clean import SAME
from tocsin.pipeline.locations import on_this_disk
from tocsin.pipeline.spark.broadcast import ROWS_MAX, Keep
from tocsin.pipeline.spark.parquet import read
from tocsin.pipeline.state import Partial, write_whole

ORDERED: Final = ".ordered"
KEY: Final = np.dtype("<i8")
CHECK: Final = np.dtype("<i4")

Keys = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]


def seen_before(
    spark: SparkSession, directory: Path, former: Sequence[Partial], keep: Keep
) -> DataFrame | None:
    """The numbers of those events whose keys are in `directory`, and in a former part as well.

    None if there is no former part.
    """
    if not former:
        return None
    files = sorted(directory.glob("*.parquet"))
    if sum(pq.read_metadata(each).num_rows for each in files) > ROWS_MAX:
        keys = spark.read.parquet(on_this_disk(directory))
        return _joined(keys, read(spark, former, "keys"), keep)
    own = pa.concat_tables(pq.read_table(each) for each in files)
    wanted = (own.column("key").to_numpy(), own.column("check").to_numpy())
    are_known = among(wanted, (file for each in former for file in each.files("keys")))
    return spark.createDataFrame(own.select(["seq"]).filter(pa.array(are_known)))


def _joined(keys: DataFrame, former: DataFrame, keep: Keep) -> DataFrame:
    """The same for many, by all that there ever were."""
    same = list(SAME)
    # These are sent to those, which may be more by far and are only looked through.
    met = keep(former.join(keep(keys.select(*same)), same, "left_semi").select(*same))
    return keys.join(met, same, "left_semi").select("seq")


def among(wanted: Keys, files: Iterable[Path]) -> npt.NDArray[np.bool_]:
    """Which of these keys, each with its check, are in any of the files."""
    # In order, each search begins near where the last one ended: what it looks at is at hand.
    order = np.argsort(wanted[0])
    keys, checks = (each[order] for each in wanted)
    met = np.zeros(len(keys), bool)
    for file in files:
        held, held_checks = _ordered(file)
        first, end = (np.searchsorted(held, keys, side) for side in ("left", "right"))
        found = np.flatnonzero(first < end)
        is_same = held_checks[first[found]] == checks[found]
        met[found[is_same]] = True
        # Two events in 2^64 have a key in common; of these, any may be the one.
        for index in found[~is_same]:
            met[index] |= checks[index] in held_checks[first[index] : end[index]]
    as_given = np.empty_like(met)
    as_given[order] = met
    return as_given


def ordered_beside(file: Path) -> Path:
    """Where the keys of a file are, in order, once they were asked for."""
    return file.with_name(f"_{file.stem}{ORDERED}")


def _ordered(file: Path) -> Keys:
    """The keys of a file, in order."""
    rows, path = pq.read_metadata(file).num_rows, ordered_beside(file)
    if not path.exists() or path.stat().st_size != rows * (KEY.itemsize + CHECK.itemsize):
        write_whole(path, _put_in_order(file))
    if not rows:
        return np.empty(0, KEY), np.empty(0, CHECK)
    keys = np.memmap(path, KEY, "r", shape=(rows,))
    checks = np.memmap(path, CHECK, "r", offset=rows * KEY.itemsize, shape=(rows,))
    return keys, checks


def _put_in_order(file: Path) -> bytes:
    table = pq.read_table(file, columns=list(SAME))
    keys, checks = (table.column(name).to_numpy() for name in SAME)
    order = np.argsort(keys)
    return b"".join((keys[order].astype(KEY).tobytes(), checks[order].astype(CHECK).tobytes()))
