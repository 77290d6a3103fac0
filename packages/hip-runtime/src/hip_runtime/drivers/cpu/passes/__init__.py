"""Passes over a kernel that do not depend on the strategy by which its threads run."""
