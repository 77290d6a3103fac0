"""Memory of the CPU device: allocations, pages, and which bytes were written."""
