"""Strategies to run the threads of a block: one after another, as lanes of vectors, or region by region."""
