"""The typing context: the meaning of names in a kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet

from numba.core import types, typing

from numba_hip import language
from numba_hip._numba.identity import Dispatcher as NumbaDispatcher
from numba_hip._numba.typing import CallStack, Purpose, standard_declarations
from numba_hip.bfloat import Bfloat16, unify
from numba_hip.language.kernel_callable import KernelCallable
from numba_hip.language.stub import Stub
from numba_hip.language.unsupported_calls import check_call
from numba_hip.value_types import own_type

if TYPE_CHECKING:
    from numba_hip.compilation.device_function import DeviceFunction
    from numba_hip.targets.compile_target import CompileTarget


class HipTypingContext(typing.BaseContext):
    """Numba's own declarations and those of the kernel language, for one compile target."""

    compile_target: CompileTarget
    """The target that this context types for; set once, right after both contexts exist."""
    make_device_function: Callable[[Any], DeviceFunction]
    """Makes the form of a dispatcher that kernels of this target call; set with the target, by the compiler above."""

    def __init__(self) -> None:
        self._device_functions: WeakKeyDictionary[object, DeviceFunction] = WeakKeyDictionary()
        self._stubs: WeakSet[Stub] = WeakSet()
        super().__init__()
        self.callstack = CallStack()

    def load_additional_registries(self) -> None:
        """Install the names that a kernel may use besides Numba's builtins."""
        for registry in standard_declarations():
            self.install_registry(registry)
        self.install_registry(language.typing_registry())

    def resolve_value_type(self, value: Any) -> Any:
        """The type of global *value*; functions that are compiled for another target become device functions of this
        one."""
        own = own_type(value, Purpose.constant)
        if own is not None:
            return own
        if isinstance(value, (NumbaDispatcher, KernelCallable)):
            value = self.device_function(value)
        elif isinstance(value, Stub) and value not in self._stubs:
            self._stubs.add(value)
            self.refresh()  # some, such as those of `libdevice`, are made when a kernel names them
        return super().resolve_value_type(value)

    def resolve_function_type(self, func: Any, args: Any, kws: Any) -> Any:
        """Numba's hook: the signature of a call of *func*; calls that no kernel can make are rejected first."""
        check_call(func, args, kws)
        return super().resolve_function_type(func, args, kws)

    def unify_pairs(self, first: types.Type, second: types.Type) -> types.Type | None:
        """Numba's hook: the type of a variable that is *first* on one path and *second* on another. Numba asks NumPy
        for numbers."""
        if first != second and (isinstance(first, Bfloat16) or isinstance(second, Bfloat16)):
            return unify(types.unliteral(first), types.unliteral(second))
        return super().unify_pairs(first, second)

    def device_function(self, dispatcher: Any) -> DeviceFunction:
        """The form of *dispatcher* (of ``njit`` or ``hip.jit``) that kernels of this target call."""
        function = self._device_functions.get(dispatcher)
        if function is None:
            function = self._device_functions[dispatcher] = self.make_device_function(dispatcher)
        return function

    def forget_device_function(self, dispatcher: Any) -> None:
        """Have *dispatcher* compiled anew when a kernel calls it next."""
        self._device_functions.pop(dispatcher, None)
