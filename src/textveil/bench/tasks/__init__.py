"""Tasks: how useful released examples still are. Judges are trained on originals, if at all.

In: a data set, and what was released of it. Out: a score for each example.
Not here: data sets (`data`), and what attackers get (`textveil.attack`).
"""
