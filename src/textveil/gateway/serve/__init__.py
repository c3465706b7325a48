"""Serving: the process of a gateway with its threads, locks, metrics, traces and audit log."""
