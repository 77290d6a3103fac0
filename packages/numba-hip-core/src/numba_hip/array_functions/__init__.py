"""Functions of numbers, run over whole arrays: ufuncs, generalised ufuncs and reductions."""
