"""The systems that our kernels are compared with. Each module is only imported if its system is installed."""
