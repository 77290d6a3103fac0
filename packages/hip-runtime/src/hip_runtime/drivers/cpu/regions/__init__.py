"""Regions: kernels with barriers, cut at their sync points and run region by region, see docs/design/cpu-regions.md."""
