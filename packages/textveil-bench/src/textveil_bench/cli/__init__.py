"""The verbs that the bench adds to the command line: `attack`, `measure`, `audit`, `bench` and so on.

In: arguments. Out: rows, pages, tables.
Not here: what they do (`textveil_bench`), and the shared options (`textveil.cli`). The entry points
of the distribution
name the verbs.
"""
