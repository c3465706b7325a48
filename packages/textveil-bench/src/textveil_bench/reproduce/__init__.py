"""Reproductions: a paper's figure or table, with published values next to ours.

In: a target's name. Out: rows, the published values next to them, and the paper's claims with
verdicts.
Not here: how a cell is computed (`cells`), and the targets themselves (`conf/reproduce/NAME.yaml`).

A target is a YAML file with these keys; `targets.Target` defines them, and refuses others:

    title, paper, shows     title of the figure or table, its paper, and the quantities on its axes
    like                    another target: `sweep` then holds changes to its sweep; its panels and
                            scales apply unless given here. Cells shared by targets are computed
                            once
    sweep                   a sweep as in conf/sweep.yaml: the local substitute, which runs offline
    computed                tables that are not sweeps, by name: see `computed.COMPUTED_TABLES`
    panels                  its parts, if they differ: {name, needs, changes, quick, computed}. A
                            panel that needs `llm` is "not run: needs an LLM" unless an endpoint is
                            given; one that needs `hub` runs only with --hub. A quick run has the
                            panels with `quick`, with these further changes. Without `panels` there
                            is one, the sweep itself
    quick, full, hub        changes to the sweep for --quick, --full and --hub
    hub_first               sentences: what must exist before --hub, and how to make it
    over                    metrics that the paper draws over the budget: figures of the page
    published               values from the paper's text: {where, metric, value, source}; `values`
                            instead of `value` gives several by budget
    expect                  claims of its text, as checks of our rows: {claim, source, series,
                            metric, at, is, by}
    differs                 sentences: differences of our setting from the paper's
    contradicts             sentences: where and why the paper is wrong, or cannot be right as
                            stated; {says, shows} if a sentence has figures of our rows in braces:
                            {name: {where, metric}}

Changes are a mapping. `common` is merged into the sweep's; `only` keeps the entries of these names;
`set` has options of entries by their names; `thin: N` keeps N values of every budget and of every
list in a grid, spread from the first to the last; anything else replaces the sweep's value of that
name. Changes of a panel are applied first, then those of a run, whose `only` is not for panels with
entries of their own. In an entry's `set`,
`mechanism.bound: measured` is measured for its model (`clipping_bounds`).

`where` and each member of `series` select rows: {data: sst2, entry: noise, budget: 80, mechanism.L:
4}. Keys are `data`, `entry`, `series`, `family`, `whose`, `level`, `budget` (a value, or `first` or
`last` of the budgets that were run) and dotted paths of options; a list means any of its members. A
metric is a name, or {metric, source, setting} if several metrics share the name; `source` is the
attack, measure or judge, or a prefix of its name; `seconds` is the source of times per example,
with the metrics draw, attack and task. For a computed table, `where` is {table: NAME, row: FIRST
VALUE OF A ROW}, and the metric is the heading of a column.

An expectation compares each of its series with the next. `is` is above, below or near. `by` is the
largest difference for near, and the smallest difference for the others, 0 by default. `at` is
`budget`, to compare equal budgets; `order`, to compare the first budget of one with the first of
the other, and so on; or {risk: METRIC, levels: [...]}, to compare at equal values of another
metric. A series with one budget is compared at all of the other's; at a risk, a selector may match
several series, of which the best is used. A number in `series` is compared as a constant. `data`
lists the data sets that are judged one by one. The answer is `holds`, `does not hold`, `cannot be
told` or `not tested`; see `verdict`. A claim whose `at` is `budget` is not tested if the two
budgets are different options, such as SanText's epsilon, which multiplies a distance of the table,
and Cape's nominal one. The sentence of a claim must say exactly what is compared.
"""
