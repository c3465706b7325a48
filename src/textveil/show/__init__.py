"""Shows releases to their owner: groups and risk in colour, on a terminal and as pages.

In: releases, their statement, their risk. Out: coloured text, HTML without scripts.
Not here: how words are grouped (`protect`), and how risk is assessed (`evaluate`).
"""
