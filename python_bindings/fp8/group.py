"""Groups of processes that train together: `mpirun -n 2 python train.py`."""

import atexit
import hashlib
import json
import os
import sys
import traceback
import weakref

from . import _native

RankError = _native.RankError


class Group:
    """The ranks of this run; this process is one of them.

    The environment tells which MPI has started the process, as for fp8-run; without a launcher the group has one rank. A process
    makes one group and leaves it when all ranks are done:

    >>> with fp8.Group() as group:                                                     # doctest: +SKIP
    ...     step8 = fp8.compile(step, state, batch, group=group)
    ...     for batch in batches_of(group.rank, group.size):
    ...         state, metrics = step8(state, batch)

    An exception that leaves the `with` ends all ranks, and one of them prints its traceback. An exception that ends a program whose group
    is used without `with` also ends all ranks.

    timeout: seconds without an answer after which a rank counts as failed; 0: 300.

    Raises OSError if this build has no plugin for the launcher's MPI, RankError if the ranks do not find each other or MPI is in use, ValueError if
    FP8_BUCKET_BYTES is no number.
    """

    def __init__(self, timeout: float = 0):
        self._bucket_bytes = _bucket_bytes()
        self._native = _native.Group(os.environ.get("FP8_TRANSPORT"), timeout, self._bucket_bytes)
        self._ended_together = None
        self._process = os.getpid()
        atexit.register(_leave, weakref.ref(self))

    @property
    def rank(self) -> int:
        """The number of this process, from 0."""
        return self._native.rank

    @property
    def size(self) -> int:
        """The number of ranks."""
        return self._native.size

    def gather(self, value: bytes = b"") -> list[bytes]:
        """Returns the value of each rank, by rank. Returns when all ranks have called it."""
        return self._native.gather(value)

    def close(self) -> None:
        """Leaves the group; each rank calls this when all are done. Steps of the group cannot be called any more."""
        self._native.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if self._process != os.getpid():
            return  # A process that was forked is no rank.
        if error is None or error is self._ended_together or (isinstance(error, SystemExit) and not error.code):
            self.close()
        else:
            self._fail(error)

    def _fail(self, error):
        """Ends all ranks; one of them prints the error. Under MPI this does not return."""
        if self.size == 1:
            return
        # The text of a RankError names the rank.
        message = str(error) if isinstance(error, RankError) else f"rank {self.rank} of {self.size}: {type(error).__name__}: {error}"
        if self._native.claim_failure():
            traceback.print_exception(error)
            print(f"rank {self.rank} of {self.size} ends all", file=sys.stderr)
        sys.stdout.flush()
        sys.stderr.flush()
        self._native.abort(message)

    def _raise_together(self, error):
        """Raises an error that all ranks raise after the same step, which is not a failure of a single rank."""
        self._ended_together = error
        raise error

    def _any(self, mine):
        """Returns whether `mine` is true on any rank. All ranks call it."""
        return any(value != b"\0" for value in self.gather(bytes([bool(mine)])))

    def _expect_same(self, values, why="", parts=None):
        """Raises RankError on all ranks unless each value of `values`, {name: bytes}, is the same on all ranks.

        parts: {name: the part that this rank has}: only ranks with the same part must have the same value.
        """
        if self.size == 1:
            return
        parts = parts or {}
        digests = {what: [parts.get(what, 0), hashlib.blake2b(data, digest_size=16).hexdigest()] for what, data in values.items()}
        known = {}
        for rank, digests in enumerate(map(json.loads, self.gather(json.dumps(digests).encode()))):
            for what, (part, digest) in digests.items():
                first, expected = known.setdefault((what, part), (rank, digest))
                if digest != expected:
                    raise RankError(f"rank {rank} of {self.size} has another {what} than rank {first}{why}")


def expect_group(group):
    """Raises TypeError unless this is a group, or None."""
    if not isinstance(group, Group | None):
        raise TypeError(f"expected group to be an fp8.Group but got {type(group).__name__}")


def _bucket_bytes():
    """Returns FP8_BUCKET_BYTES, or 0 for the default."""
    text = os.environ.get("FP8_BUCKET_BYTES", "0")
    if not text.isdecimal():
        raise ValueError(f"FP8_BUCKET_BYTES: expected a number of bytes above 0 but got {text!r}")
    return int(text)


def _leave(reference):
    """Leaves the group at the end of a program that does not use `with`."""
    group = reference()
    if group is None or group._native.closed or group._process != os.getpid():
        return
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    if error is None:
        group.close()
    else:
        group._native.abort(f"rank {group.rank} of {group.size}: {type(error).__name__}: {error}")
