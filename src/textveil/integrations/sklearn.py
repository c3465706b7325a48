"""scikit-learn: a transformer of texts, for pipelines.

In: texts, one a row. Out: released texts.
Not here: attackers that are classifiers (`textveil_bench.attack`).
"""

from collections.abc import Iterable, Mapping
from typing import Any, Self

import numpy as np

from textveil.config.extras import explain_missing
from textveil.errors import InputError
from textveil.guarantee import Guarantee
from textveil.integrations.releases import merge_statements
from textveil.pipeline import Privatizer

with explain_missing():
    from sklearn.base import BaseEstimator, TransformerMixin
    from sklearn.exceptions import NotFittedError

__all__ = ["PrivatizingTransformer"]


class PrivateOptions(dict[str, Any]):
    """Options whose repr has their names only.

    Lists of words in them may be private.
    """

    def __repr__(self) -> str:
        return f"<options: {', '.join(map(str, self))}>"


class PrivatizingTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Privatizes texts, and draws anew at each call of `transform`.

    It learns nothing from the texts.

    Args:
        profile: a packaged profile, "document" or "prompt".
        epsilon: the bound per word, in place of the profile's; None for that one.
        options: more options that differ from the profile's, {"words": {"casing": "copy"}}. No repr
            shows what they hold.

    Attributes:
        privatizer_: does the work, once it is fitted.
    """

    def __init__(
        self,
        profile: str = "document",
        *,
        epsilon: float | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.profile, self.epsilon, self.options = profile, epsilon, options

    def __setattr__(self, name: str, value: Any) -> None:
        """Hides options wherever scikit-learn shows parameters."""
        if (
            name == "options"
            and isinstance(value, Mapping)
            and not isinstance(value, PrivateOptions)
        ):
            value = PrivateOptions(value)
        super().__setattr__(name, value)

    def fit(self, X: Iterable[str], y: object = None) -> Self:
        """Builds the privatizer, after checking that X is texts.

        Raises:
            ConfigError: an option is wrong. InputError: X is no list of texts.
        """
        _check_texts(X)
        overrides: dict[str, Any] = {} if self.epsilon is None else {"epsilon": self.epsilon}
        self.privatizer_ = Privatizer.from_profile(
            self.profile, **overrides, **(self.options or {})
        )
        return self

    def transform(self, X: Iterable[str]) -> Any:
        """Returns the released texts, object [n].

        Raises:
            InputError: X is no list of texts.
        """
        return self.privatize(X)[0]

    def privatize(self, X: Iterable[str]) -> tuple[Any, Guarantee | None]:
        """Returns the released texts, object [n], and one statement.

        None where there are none.
        """
        if not hasattr(self, "privatizer_"):
            raise NotFittedError("call fit first; it learns nothing from texts")
        results = list(self.privatizer_.privatize_many(_check_texts(X)))
        texts = np.empty(len(results), dtype=object)
        texts[:] = [result.text for result in results]
        return texts, merge_statements(results)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "privatizer_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.input_tags.one_d_array, tags.input_tags.two_d_array = True, False
        tags.input_tags.string = True
        return tags


def _check_texts(X: Any) -> list[str]:
    if isinstance(X, str) or not isinstance(X, Iterable) or getattr(X, "ndim", 1) != 1:
        raise InputError("X must hold texts, one per row: a list, or one column of a table")
    texts = list(X)
    for text in texts:
        if not isinstance(text, str):
            raise InputError(f"X must hold texts, but holds {type(text).__name__}")
    return [str(text) for text in texts]
