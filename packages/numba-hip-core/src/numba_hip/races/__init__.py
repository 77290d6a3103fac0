"""The race detector: which accesses race, and which read uninitialised memory; see ``docs/design/race-report.md``."""
