"""What is computed once."""

from __future__ import annotations

import threading

from hip_devicelib.cached_property import cached_property


class Held:
    """An object whose property is there when somebody says so."""

    def __init__(self) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()

    @cached_property
    def value(self) -> object:
        self.begun.set()
        self.go_on.wait(20)
        return object()


def test_no_object_waits_for_another() -> None:
    one, other = Held(), Held()
    thread = threading.Thread(target=lambda: one.value)
    thread.start()
    one.begun.wait(20)
    other.go_on.set()
    found = other.value
    assert thread.is_alive(), "the other one is not done, and has no lock that a fork could leave behind"
    one.go_on.set()
    thread.join()
    assert other.value is found
    assert one.value is one.value is not found
