"""Evaluation: how likely an attacker names the private words of a release.

In: releases and their originals. Out: the risk of each word (`risk`), by attackers who know the
program (`attack`).
Not here: how text is released (`pipeline`); other attacks, measures and the audit, which are in
textveil-bench. Its parts are imported by their own names.
"""
