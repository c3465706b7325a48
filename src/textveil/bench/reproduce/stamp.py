"""STAMP's budgets as statements: what the vectors of its table 1 promise under each of its mechanisms.

In: the default table. Out: a table.
Not here: the sweep of table 1 (`conf/reproduce/stamp-table1.yaml`).
"""
