"""Answers: sent for to the upstream, restored whole or as a stream, and kept alive."""
