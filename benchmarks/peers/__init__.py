"""The systems that our kernels are compared with; each module is imported only where its system is installed."""
