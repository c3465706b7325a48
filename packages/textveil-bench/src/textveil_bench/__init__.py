"""The bench: what mechanisms cost in utility, and what attackers recover, by data set and budget.

In: data sets, tasks, a sweep. Out: rows, and reports made from rows alone.
Not here: mechanisms and statements (`textveil`), and the attackers whom `textveil risk` takes
(`textveil.evaluate`).
"""
