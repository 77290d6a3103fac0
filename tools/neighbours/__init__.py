"""Tests with other libraries, which `nox -s neighbours` installs: they and device arrays, in both directions."""
