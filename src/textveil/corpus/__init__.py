"""Corpus runs: whole files and folders, in chunks, resumable, with a statement beside each output.

In: files of texts. Out: the same files with released texts.
Not here: how one text is released (`pipeline`), and where texts stand in a file (`files`).
"""
