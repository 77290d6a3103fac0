"""Data models: the representation of values of Numba's types in registers, in memory and as arguments."""

from __future__ import annotations

from numba.core.datamodel import ArgPacker, default_manager
from numba.core.datamodel.registry import DataModelManager
from numba.core.datamodel.registry import register as register_model_in

__all__ = ["ArgPacker", "DataModelManager", "default_manager", "register_model_in"]
