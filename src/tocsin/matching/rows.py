"""Rows: the distinct conjunctions that are stored, and the keys of those who asked for each.

Two subscriptions that ask for the same share one row, which is then tested once.
"""

from __future__ import annotations

from array import array

import numpy as np

from tocsin.matching.kernel import Ints

_NOT_ALONE = -1  # in place of an owner: ask for the row's keys
_FEW = 32  # so many are faster to look up one by one


class Rows:
    """Rows by number, each with an identity that no other has and at least one key."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._identities: list[bytes] = []
        self._owners = array("q")  # the only key of a row, or _NOT_ALONE
        self._groups: dict[int, set[int]] = {}  # the keys of all other rows
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self._numbers)

    def find(self, identity: bytes) -> int | None:
        """The row of this identity, if it is stored."""
        return self._numbers.get(identity)

    def identity(self, row: int) -> bytes:
        return self._identities[row]

    def new(self, identity: bytes, *, is_guarded: bool) -> int:
        """Store a row that nobody has asked for yet. A guarded one never counts as settled."""
        if self._free:
            row = self._free.pop()
            self._identities[row] = identity
        else:
            row = len(self._identities)
            self._identities.append(identity)
            self._owners.append(_NOT_ALONE)
        self._numbers[identity] = row
        self._owners[row] = _NOT_ALONE
        if is_guarded:
            self._groups[row] = set()
        return row

    def join(self, row: int, key: int, *, is_new: bool) -> None:
        """Let the key share the row."""
        group = self._groups.get(row)
        if group is not None:
            group.add(key)
        elif is_new:
            self._owners[row] = key
        else:
            self._groups[row] = {self._owners[row], key}
            self._owners[row] = _NOT_ALONE

    def leave(self, row: int, key: int) -> bool:
        """Take the key from the row. True if it was the last: then `drop` the row."""
        group = self._groups.get(row)
        if group is None:
            return True
        group.remove(key)
        return not group

    def drop(self, row: int) -> None:
        """Forget the row."""
        self._groups.pop(row, None)
        del self._numbers[self._identities[row]]
        self._identities[row] = b""
        self._free.append(row)

    def keys(self, row: int) -> set[int]:
        """Everybody who asked for the row."""
        return self._groups.get(row) or {self._owners[row]}

    def settled(self, rows: Ints | list[int]) -> tuple[list[int], list[int]]:
        """The keys of the rows that have one key and no guard; and the other rows."""
        if len(rows) > _FEW:
            return self._settled_many(np.asarray(rows))
        owners = self._owners
        keys: list[int] = []
        others: list[int] = []
        for row in rows if isinstance(rows, list) else rows.tolist():
            key = owners[row]
            if key == _NOT_ALONE:
                others.append(row)
            else:
                keys.append(key)
        return keys, others

    def _settled_many(self, rows: Ints) -> tuple[list[int], list[int]]:
        keys = np.frombuffer(self._owners, np.int64)[rows]
        is_alone = keys != _NOT_ALONE
        if is_alone.all():
            keys.sort()
            return keys.tolist(), []
        return np.sort(keys[is_alone]).tolist(), rows[~is_alone].tolist()
