"""Memory of the CPU device: host memory, and what is known of it."""
