"""The calls of the compiler that are running: a program ends after them."""

import atexit
import contextlib
import os
import threading

_changed = threading.Condition()
_running = 0


@contextlib.contextmanager
def running():
    """Lets the end of the program wait for what is compiled here.

    When a process ends, the tables of LLVM are destroyed. A daemon thread that still compiled would read them afterwards.
    """
    _add(1)
    try:
        yield
    finally:
        _add(-1)


def _add(change):
    global _running
    with _changed:
        _running += change
        _changed.notify_all()


@atexit.register
def _wait():
    with _changed:
        _changed.wait_for(lambda: _running == 0)
        # Nothing is released: a thread that begins to compile now waits until it is gone.
        _changed.acquire()


def _forget():
    """The threads of the parent do not run in a process that was forked."""
    global _changed, _running
    _changed, _running = threading.Condition(), 0


os.register_at_fork(after_in_child=_forget)
