"""Everything that an AMD GPU can be asked by this project, asked of the one here, and a report of that to send back.

See ``docs/guide/reports.md``.
"""
