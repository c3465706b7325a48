"""Data sets by name, from a folder of corpora or a hub, and those of a user's own.

In: a name or a file. Out: a `DataSet`.
Not here: what an example is (`examples`), and what is asked of it (`tasks`).
"""
