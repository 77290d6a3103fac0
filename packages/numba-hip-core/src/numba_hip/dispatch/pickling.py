"""Dispatchers in pickles: the Python function with what it captures, and how it was decorated; no compiled code.

In a process that holds the dispatcher that was pickled, unpickling gives that one.
"""

from __future__ import annotations

import inspect
import threading
import uuid
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from numba_hip._numba.identity import dump, load

if TYPE_CHECKING:
    from numba_hip.dispatch.dispatcher import Dispatcher

_living: WeakValueDictionary[str, Dispatcher] = WeakValueDictionary()
_lock = threading.RLock()


class _Writing(threading.local):
    """The dispatchers that this thread is pickling: a recursive function refers to its own."""

    def __init__(self) -> None:
        self.identities: set[str] = set()


_writing = _Writing()


def reduce_dispatcher(dispatcher: Dispatcher, state: dict[str, Any]) -> tuple[Any, ...]:
    """What ``__reduce__`` of *dispatcher* returns; *state* are the arguments that make it again."""
    with _lock:
        identity = dispatcher.identity = dispatcher.identity or uuid.uuid4().hex
        _living[identity] = dispatcher
    if identity in _writing.identities:
        return _find, (identity,)
    _writing.identities.add(identity)
    try:
        return _rebuild, (type(dispatcher), identity, dump(state))
    finally:
        _writing.identities.discard(identity)


def _find(identity: str) -> Dispatcher:
    return _living[identity]


def _rebuild(kind: type[Dispatcher], identity: str, data: bytes) -> Dispatcher:
    with _lock:
        known = _living.get(identity)
        if known is not None:
            return known
        made = kind.__new__(kind)
        _living[identity] = made  # before the function is loaded, as it may refer to it
        try:
            state = load(data)
            _detach(state["py_func"])
            made.restore(**state)
        except BaseException:
            del _living[identity]
            raise
        made.identity = identity
        return made


def reduce_ufunc(ufunc: Any, state: dict[str, Any]) -> tuple[Any, ...]:
    """What ``__reduce__`` of *ufunc* returns; its ``restore`` makes it again of *state*, which has a ``py_func``."""
    return _rebuild_ufunc, (type(ufunc), dump(state))


def _rebuild_ufunc(kind: Any, data: bytes) -> Any:
    state = load(data)
    _detach(state["py_func"])
    return kind.restore(**state)


def _detach(py_func: Any) -> None:
    """Let *py_func* belong to no module where its own cannot be found in this process.

    Numba names a function after what ``__module__`` says, and a recursive call of it after the module that it finds.
    """
    if inspect.getmodule(py_func) is None:
        py_func.__module__ = None
