"""The bench: what mechanisms cost in usefulness, and what attackers get, on data sets, by budget.

In: data sets, tasks, a sweep. Out: rows, and reports made from rows alone.
Not here: mechanisms and statements (`textveil`), the attacks and measures themselves (`attack`, `measure`).
"""
