"""Runs code objects for AMD GPUs on this machine's processor, wave by wave, with every address checked.

See ``docs/design/amd-executor.md``.
"""
