"""Evaluation: what attackers recover, what statements are worth, and what a release has kept.

In: releases and their originals. Out: rates with intervals (`attack`, `measure`), findings (`audit`), pictures.
Not here: how text is released (`pipeline`). Its parts are imported by their own names.
"""
