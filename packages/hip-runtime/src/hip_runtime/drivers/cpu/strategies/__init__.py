"""How the threads of a block are run: one after another, as lanes of vectors, or region by region."""
