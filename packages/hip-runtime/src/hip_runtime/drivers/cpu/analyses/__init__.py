"""What is found out about a graph: who calls whom, loops, what threads share, what only one works on."""
