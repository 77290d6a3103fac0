"""Native code that runs the blocks of a launch on the threads of the processor, and that interrupts them."""
