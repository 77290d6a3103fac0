"""Native code that runs the blocks of a launch on the threads of the processor, and what interrupts it."""
