"""Rows: one for each cell of a sweep, appended to a file as JSON, and readable as a table in parquet.

In: plain data. Out: a file of rows that is whole up to its last line; a table with a line for each score.
Not here: how a cell is computed (`cells`), and what is made of rows (`compare`, `report`).

A row, as JSON (version 1):

- `key`: the fingerprint of everything that decides the cell; a run that finds it does not compute it again.
- `sweep`, `entry`, `series`, `family`, `whose` ("paper", "ours", "baseline"), `seed`, `level` (the attack success for
  which the budget was chosen, or null).
- `data`: name, split, kind, source, digest, examples, chance.
- `mechanism`, `table`, `configuration` (as `Config.to_dict`), `budget` {"path", "value"}, null for baselines without.
- `epsilon`: {"kind", "metric", "per_word" (largest), "ldp"} of the statement; "infinite" where there is no bound.
- `lengths`, `protected`: words and protected words of each text.
- `scores`: a list of {"source", "metric", "setting", "unit", "value", "low", "high", "n", "baseline", "note",
  "headline", "values", "weights"}; `values` has one number for each text, `weights` how many words it is the mean of
  (null where each text counts once).
- `not_run`: what says nothing of such releases, and why.
- `seconds`: {"draw", "attack", "task"}.
- `circumstances`: time, commit, python, versions, machine, cores, threads, device.
"""
