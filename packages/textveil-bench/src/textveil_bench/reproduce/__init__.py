"""Reproductions: a paper's figure or table, with our values next to those given in its text.

In: a target's name. Out: rows, the published values next to them, and which of the paper's claims
hold.
Not here: how a cell is computed (`cells`), and the targets themselves (`conf/reproduce/NAME.yaml`).

A target is a YAML file with these keys; `targets.Target` says what each means, and refuses others:

    title, paper, shows     what the figure or table is, its paper, and what is on its axes
    like                    another target: `sweep` then holds changes to its sweep; its panels and scales apply unless
                            given here. What targets have in common is computed once
    sweep                   a sweep as in conf/sweep.yaml: the local substitute, which runs offline
    computed                tables that are not sweeps, by name: see `computed.COMPUTED`
    panels                  its parts, if they differ: {name, needs, changes, quick, computed}; one that needs `llm`
                            is "not run: needs an LLM" unless an endpoint is given, one that needs
                            `hub` only runs with
                            --hub; a quick run has those with `quick`, with these further changes.
                            Without `panels`
                            there is one, the sweep itself
    quick, full, hub        changes to the sweep for --quick, --full and --hub
    hub_first               sentences: what must exist before --hub, and how to make it
    over                    metrics that the paper draws over the budget: figures of the page
    published               values from the paper's text: {where, metric, value, source}; `values` instead of `value`
                            gives several by budget
    expect                  claims of its text, as checks of our rows: {claim, source, series, metric, at, is, by}
    differs                 sentences: how our setting differs from the paper's
    contradicts             sentences: where and why the paper is wrong, or cannot be right as stated; {says, shows} if
                            a sentence has figures of our rows in braces: {name: {where, metric}}

Changes are a mapping. `common` is merged into the sweep's; `only` keeps the entries of these names;
`set` has
options of entries by their names; `thin: N` keeps N values of every budget and of every list in a
grid, spread from the
first to the last; anything else replaces the sweep's value of that name. Changes of a panel come
first, then those of
a run. In an entry's `set`, `mechanism.bound: measured` is measured for its model (`bounds`).

`where` and each member of `series` choose rows: {data: sst2, entry: noise, budget: 80, mechanism.L:
4}. Keys are
`data`, `entry`, `series`, `family`, `whose`, `level`, `budget` (a value, `first` or `last` of what
was run) and dotted
paths of options; a list means any of its members. A metric is a name, or {metric, source, setting}
if several have
it; `source` is the attack, measure or judge, or how its name begins; `seconds` is the source of
times per example, with
the metrics draw, attack and task. For a computed table, `where` is {table: NAME, row: FIRST VALUE
OF A ROW}, and the
metric is the heading of a column.

An expectation compares each of its series with the next. `is` is above, below or near (within `by`;
for the others `by`
is by how much, 0 by default). `at` is `budget`, to compare equal budgets; `order`, to compare the
first budget of one
with the first of the other, and so on; or {risk: METRIC, levels: [...]}, to read both at equal
values of another
metric. A series with one budget is compared at all of the other's; at a risk, a selector may match
several series, of
which the best is used. A number in `series` stands for itself everywhere. `data` lists the data
sets that are judged
one by one. The answer is `holds`, `does not hold`, `cannot be told` or `not tested`; see `verdict`.
A claim whose `at`
is `budget` is not tested where the two budgets are different options, as SanText's epsilon, which
multiplies a distance
of the table, and Cape's nominal one. The sentence of a claim must say what is compared, and no
more.
"""
