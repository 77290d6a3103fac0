"""What is told of kernels that ran: source lines, and what observed threads did."""
