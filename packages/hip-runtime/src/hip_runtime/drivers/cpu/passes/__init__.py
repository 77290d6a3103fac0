"""Steps that change a kernel before, or independently of, how its threads are run."""
