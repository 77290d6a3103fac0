"""Which accesses of a kernel race, and which read memory that nobody wrote: see ``docs/design/race-report.md``."""
