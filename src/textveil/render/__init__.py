"""Shows releases and risk to their owner, and statements to everybody.

Releases come with their groups, in colour; all of it on a terminal and as pages.

In: releases, their statement, their risk. Out: coloured text, HTML without scripts, Markdown.
Not here: how words are grouped (`protect`), and how risk is assessed (`evaluate`).
"""

from textveil.render.sheet import Sheet, SheetSection, SheetTable, clean_name

__all__ = ["Sheet", "SheetSection", "SheetTable", "clean_name"]
