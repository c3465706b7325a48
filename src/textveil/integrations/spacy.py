"""spaCy: a component that stores a document's release in `doc._.textveil`.

In: documents. Out: the same documents, which stay as they are, with their releases.
Not here: a spaCy pipeline as a detector (`detect.library_taggers`).
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from textveil.config.extras import explain_missing
from textveil.guarantee import count_hidden
from textveil.pipeline import Privatizer, Result

with explain_missing():
    from spacy.language import Language
    from spacy.tokens import Doc

__all__ = ["DocPrivatizer", "make"]

COMPONENT_NAME = "textveil"

if not Doc.has_extension(COMPONENT_NAME):
    Doc.set_extension(COMPONENT_NAME, default=None)


class DocPrivatizer:
    """The component, which releases documents.

    A document that could not be released has None in `doc._.textveil`, and the error is raised.

    Args:
        profile: a packaged profile, "prompt" or "document".
        options: what differs from it.
    """

    def __init__(self, profile: str, options: dict[str, Any]) -> None:
        self._privatizer = Privatizer.from_profile(profile, **options)

    def __call__(self, doc: Doc) -> Doc:
        """Releases one document."""
        return next(self.pipe([doc]))

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 64) -> Iterator[Doc]:
        """Releases documents as they come.

        Errors are raised whatever error handler the pipeline has.
        """
        docs = iter(stream)
        while batch := list(islice(docs, batch_size)):
            for doc in batch:
                doc._.set(COMPONENT_NAME, None)
            for doc, result in zip(
                batch, self._privatizer.privatize_many([doc.text for doc in batch]), strict=True
            ):
                doc._.set(COMPONENT_NAME, _dump_result(result))
                yield doc

    def __repr__(self) -> str:
        return f"DocPrivatizer({self._privatizer!r})"


def _dump_result(result: Result) -> dict[str, Any]:
    """Returns the public data of a release.

    Plain data that spaCy can write.
    """
    return {
        "text": result.text,
        "hidden": dict(count_hidden([result.released])),
        "statement": result.guarantee.to_json(),
    }


@Language.factory(
    COMPONENT_NAME,
    default_config={"profile": "prompt", "options": {}},
    assigns=[f"doc._.{COMPONENT_NAME}"],
)
def make(nlp: Language, name: str, profile: str, options: dict[str, Any]) -> DocPrivatizer:
    """Builds the component for a pipeline.

    spaCy finds it by its entry point.
    """
    return DocPrivatizer(profile, options)
