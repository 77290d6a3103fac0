"""What the examples share: their command line, and the pictures that they write."""
