"""Runs everything in this project that needs an AMD GPU on the GPU of this machine, and writes a report to send back.

See ``docs/guide/reports.md``.
"""
