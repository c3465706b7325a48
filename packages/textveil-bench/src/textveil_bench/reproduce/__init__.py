"""Reproduction: what a paper shows as a figure or table, with our values beside those that its text gives.

In: a target's name. Out: rows, what is published beside them, and which of its claims hold.
Not here: how a cell is computed (`bench.cells`), and the targets themselves (`textveil/conf/reproduce/NAME.yaml`).

A target is a YAML file with these keys; `targets.Target` says what each means, and refuses others:

    title, paper, shows     what the figure or table is, whose it is, and what is on its axes
    like                    another target: `sweep` is then changes of its sweep; its panels and scales hold where none
                            are given. What targets have in common is computed once
    sweep                   a sweep as in conf/sweep.yaml: the local substitute, which runs offline
    computed                tables that are no sweep, by name: see `computed.COMPUTED`
    panels                  its parts, where they differ: {name, needs, changes, quick, computed}; one that needs `llm`
                            is "not run: needs an LLM" unless an endpoint is named, one that needs `hub` is run with
                            --hub only; a quick run has those that say `quick`, with these changes besides. Without
                            `panels` there is one, which is the sweep
    quick, full, hub        changes of the sweep for --quick, --full and --hub
    hub_first               sentences: what has to be there before --hub, and how it is made
    over                    metrics that the paper draws over the budget: figures of the page
    published               the values that the paper's text gives: {where, metric, value, source}; `values`, in the
                            place of `value`, has several by budget
    expect                  claims of its text, as checks of our rows: {claim, source, series, metric, at, is, by}
    differs                 sentences: how our setting differs from the paper's
    contradicts             sentences: where the paper is wrong, or cannot be right as it stands, and why; {says, shows}
                            where a sentence has figures of our rows in braces: {name: {where, metric}}

Changes are a mapping. `common` is merged into that of the sweep; `only` keeps the entries of these names; `set` has
options of entries by their names; `thin: N` keeps N values of every budget and of every list in a grid, spread from the
first to the last; anything else takes the place of what the sweep has under that name. Changes of a panel come first,
then those of a run. In an entry's `set`, `mechanism.bound: measured` is measured for its model (`bounds`).

`where` and each member of `series` choose rows: {data: sst2, entry: noise, budget: 80, mechanism.L: 4}. Keys are
`data`, `entry`, `series`, `family`, `whose`, `level`, `budget` (a value, `first` or `last` of what was run) and dotted
paths of options; a list means any of its members. A metric is a name, or {metric, source, setting} where several have
it; `source` is the attack, measure or judge, or how its name begins; `seconds` is the source of times for each example,
with the metrics draw, attack and task. Of a computed table, `where` is {table: NAME, row: FIRST VALUE OF A ROW}, and
the metric is the heading of a column.

An expectation compares each of its series with the next. `is` is above, below or near (within `by`; for the others `by`
is by how much, 0 by default). `at` is `budget`, where equal budgets are compared; `order`, where the first budget of
one is compared with the first of the other, and so on; or {risk: METRIC, levels: [...]}, where both are read at equal
values of another metric. A series with one budget is compared at all of the other's; at a risk, a selector may mean
several series, of which the best is taken. A number in `series` stands for itself at every place. `data` lists the data
sets that are judged one by one. The answer is `holds`, `does not hold` or `cannot be told`; see `verdict`.
"""
