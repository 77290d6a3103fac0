"""What contexts of a device have in common: what programs keep there, modules, and the memory that was asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from hip_devicelib.codeobject import CodeObject
from hip_devicelib.errors import CodeObjectError
from hip_runtime import Device, Module
from hip_runtime.errors import ModuleLoadError, SymbolError, UnsupportedError
from numba_hip.host.memory_pointers import DeviceAddress, MemoryPointer

NO_PTX = (
    "PTX is NVIDIA's assembly language, which no device here runs; compile the function with jit, or link LLVM IR or "
    "HIP C++ into a kernel (the option link of jit)"
)

Callback = Callable[[Module], object]


class ContextState:
    """The state of all contexts of one device."""

    def __init__(self) -> None:
        self.extras: dict[Any, Any] = {}
        self.modules: dict[Any, Module] = {}
        self.allocations: WeakValueDictionary[int, MemoryPointer] = WeakValueDictionary()


_states: WeakKeyDictionary[Device, ContextState] = WeakKeyDictionary()


class ContextContents:
    """The part of a context with what is in it: memory, modules, and what programs keep there."""

    device: Device

    @property
    def _state(self) -> ContextState:
        return _states.setdefault(self.device, ContextState())

    @property
    def extras(self) -> dict[Any, Any]:
        """What programs keep with the device, as they like."""
        return self._state.extras

    @property
    def handle(self) -> DeviceAddress:
        """A number that tells this context from those of other devices of the process. HIP's functions take none."""
        return DeviceAddress(id(self.device))

    @property
    def allocations(self) -> dict[int, MemoryPointer]:
        """The memory that `Context.memalloc` gave and that is still in use, by its address."""
        return {address: memory for address, memory in self._state.allocations.items() if not memory.is_freed}

    @property
    def modules(self) -> dict[Any, Module]:
        """The modules that `create_module_image` loaded and that were not unloaded yet, by their handles."""
        return self._state.modules

    def create_module_ptx(self, ptx: str | bytes) -> Module:
        """Raises `hip_runtime.errors.UnsupportedError`, which says what to do instead."""
        raise UnsupportedError(f"create_module_ptx: {NO_PTX}")

    def create_module_image(
        self, image: Any, setup_callbacks: Iterable[Callback] = (), teardown_callbacks: Iterable[Callback] = ()
    ) -> Module:
        """Load *image*, a code object of `hip_devicelib` or the bytes of one for an AMD GPU, until `unload_module`.

        The callbacks are called with the module, once it is loaded and before it is unloaded. Raises
        `hip_runtime.errors.ModuleLoadError` for anything else, and for code of another target.
        """
        module: Module = self.device.load(_code_of(image))
        for callback in setup_callbacks or ():
            callback(module)
        for callback in teardown_callbacks or ():
            module.before_unload(callback)
        self.modules[module.handle] = module
        return module

    def unload_module(self, module: Module) -> None:
        """Unload *module*, which `create_module_image` gave; `hip_runtime.errors.SymbolError` for another."""
        if self.modules.get(module.handle) is not module:
            raise SymbolError(f"{module!r} is not one of the {len(self.modules)} modules of this context")
        del self.modules[module.handle]
        module.unload()

    def _note(self, memory: MemoryPointer) -> MemoryPointer:
        """*memory*, which is among `allocations` from now on."""
        self._state.allocations[memory.address] = memory
        return memory


def _code_of(image: Any) -> CodeObject:
    if isinstance(image, CodeObject):
        return image
    if not isinstance(image, (bytes, bytearray, memoryview)):
        raise ModuleLoadError(
            f"image is a {type(image).__name__}; it must be a code object, as kernel.compile(signature).code_object is"
            ", or the bytes of one for an AMD GPU"
        )
    if b".version" in bytes(image[:4096]) and b".target" in bytes(image[:4096]):
        raise UnsupportedError(f"image is PTX: {NO_PTX}")
    from hip_devicelib.kernel_metadata import describe  # when it is needed

    try:
        return describe(bytes(image))
    except CodeObjectError as error:
        raise ModuleLoadError(f"image is no code object of an AMD GPU: {error}") from error
