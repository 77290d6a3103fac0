"""The arguments of a launch: their types, their values, and the bytes of the argument buffer."""
