"""Tests with other libraries, which `nox -s neighbours` installs: arrays are passed in both directions."""
