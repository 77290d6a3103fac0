"""Launches: which code is meant, arguments on their way to the device, and results on their way back."""
