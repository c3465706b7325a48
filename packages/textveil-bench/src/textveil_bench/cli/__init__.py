"""The bench's commands: `attack`, `measure`, `audit`, `bench` and others.

In: arguments. Out: rows, pages, tables.
Not here: their work (`textveil_bench`), and the shared options (`textveil.cli`). The entry points
of the distribution name the commands.
"""
