"""What a launch passes to a kernel: types, numbers, and the bytes of the argument buffer."""
