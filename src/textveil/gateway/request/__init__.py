"""Requests: read, checked, and released message by message, with counts of what happened."""
