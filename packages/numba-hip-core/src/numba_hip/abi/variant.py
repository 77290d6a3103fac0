"""Compile options that apply to every function of a kernel."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Variant:
    """A variant of the code for a target; code of one variant never calls code of another.

    ``checked`` code checks indices. ``wave_size`` is the number of lanes of a wave; if it is None, a GPU uses the size
    that it prefers. Atomic operations may access memory of the host or of another GPU with ``host_atomics``, and flush
    denormal numbers with ``unsafe_fp_atomics``. ``observed`` code, on the CPU device only, reports what its threads do.
    Code that is not ``optimised`` keeps values in memory that LLVM would handle wrongly otherwise.
    """

    checked: bool = False
    wave_size: int | None = None
    host_atomics: bool = False
    unsafe_fp_atomics: bool = False
    optimised: bool = True
    observed: bool = False

    @property
    def suffix(self) -> str:
        """The suffix of a target's name that distinguishes this variant."""
        chosen = [name for name in ("checked", "host_atomics", "unsafe_fp_atomics", "observed") if getattr(self, name)]
        chosen += [] if self.optimised else ["plain"]
        return "".join(f":{word}" for word in (*([f"wave{self.wave_size}"] if self.wave_size else []), *chosen))

    def on_cpu(self) -> Variant:
        """The variant reduced to what changes code for the CPU device, whose code does not depend on the wave size."""
        return Variant(checked=self.checked, observed=self.observed)

    def on_amd(self) -> Variant:
        """The variant reduced to what changes code for an AMD GPU."""
        return replace(self, observed=False)
