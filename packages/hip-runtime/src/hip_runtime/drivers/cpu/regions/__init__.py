"""Scalar regions: a kernel cut where its threads wait, and run one region after another."""
