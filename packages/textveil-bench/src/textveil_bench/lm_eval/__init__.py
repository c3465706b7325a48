"""Tasks of lm-evaluation-harness, evaluated on released documents and examples.

In: names of tasks, a model, a configuration. Out: metrics, and the statement of the releases.
Not here: the command (`cli.lm_eval`), and the bench's own tasks (`tasks`).
"""

from textveil_bench.lm_eval.grid import build_grid
from textveil_bench.lm_eval.run import EvaluationOptions, evaluate, preview

__all__ = ["EvaluationOptions", "build_grid", "evaluate", "preview"]
