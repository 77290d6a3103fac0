"""What holds for every function of a kernel, whichever others it calls."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Variant:
    """A way to compile for a target: code of one variant never calls that of another.

    ``checked`` code checks indices. ``wave_size`` is the lanes of a wave, what a GPU prefers where it is None. Atomic
    operations may reach memory of the host or of another GPU with ``host_atomics``, and flush denormal numbers with
    ``unsafe_fp_atomics``. ``observed`` code, of the CPU device alone, tells what its threads do. Code that is not
    ``optimised`` keeps in memory what LLVM would make mistakes with.
    """

    checked: bool = False
    wave_size: int | None = None
    host_atomics: bool = False
    unsafe_fp_atomics: bool = False
    optimised: bool = True
    observed: bool = False

    @property
    def suffix(self) -> str:
        """What the name of a target is followed by, to tell its variants apart."""
        chosen = [name for name in ("checked", "host_atomics", "unsafe_fp_atomics", "observed") if getattr(self, name)]
        chosen += [] if self.optimised else ["plain"]
        return "".join(f":{word}" for word in (*([f"wave{self.wave_size}"] if self.wave_size else []), *chosen))

    def on_cpu(self) -> Variant:
        """What of it makes other code for the CPU device, whose code is the same for waves of any size."""
        return Variant(checked=self.checked, observed=self.observed)

    def on_amd(self) -> Variant:
        """What of it makes other code for an AMD GPU."""
        return replace(self, observed=False)
