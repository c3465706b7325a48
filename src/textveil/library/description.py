"""A library in words: what it holds, and what is achieved without any private text.

In: a library. Out: lines for people, and plain data.
Not here: how the figures were measured (`making`).

What a library achieves alone must stand beside every figure of a release made with it: else the
release is praised for what the library knew before.
"""

from collections.abc import Collection, Iterator
from typing import Any

from textveil.library.library import Level, Library

MAX_SHOWN = 72
"""The most characters of a text that stands for a cell."""

MAX_LABELS = 12


def describe_library(library: Library) -> Iterator[str]:
    """Yields lines that describe a library, with what it achieves alone."""
    yield f"{library.name}: {len(library):,} public texts ({library.source}; {library.licence})"
    yield f"Labels: {_describe_labels(library)}."
    for level in library.levels:
        sizes = level.sizes
        yield (
            f"Level {level.name}: {len(level)} cells of {sizes.min():,} to {sizes.max():,} texts"
            f" ({KIND_NOUNS[level.kind]})"
        )
    yield (
        f"Cells by {CELL_NOUNS.get(str(library.options.get('cells')), 'vectors')}; encoder "
        f"{library.features.encoder}; digest {library.digest[:16]}."
    )
    if votes := library.describe_votes():
        yield (
            f"It follows from votes of private texts ({votes}): that adds to the epsilon of what "
            "is released with it."
        )
    yield describe_baseline(library)


KIND_NOUNS = {
    "clusters": "clusters",
    "labels": "its public labels",
    "classes": "the sentences of classes",
}

CELL_NOUNS = {
    "vectors": "sentence vectors",
    "words": "words",
    "both": "sentence vectors and words",
}


def _describe_labels(library: Library) -> str:
    if library.labels is None:
        return "none"
    counts = [int((library.labels == i).sum()) for i in range(len(library.label_names))]
    shown = [f"{name} {count:,}" for name, count in zip(library.label_names, counts, strict=True)]
    rest = len(shown) - MAX_LABELS
    return ", ".join(shown[:MAX_LABELS]) + (f" and {rest} more" if rest > 0 else "")


def describe_baseline(library: Library, label_names: Collection[str] = ()) -> str:
    """Says what a library achieves without any private text, at epsilon 0.

    Args:
        library: the library.
        label_names: the labels that are wanted; of its own labels something is said only where
            these are among them.
    """
    parts = []
    if (labels := library.facts.get("labels")) and {*label_names} <= {*library.label_names}:
        parts.append(
            f"who learns from its own labels is right on {labels['accuracy']:.3f} of its texts "
            "(cross-validated; "
            f"always the most frequent label: {labels['majority']:.3f})"
        )
    has_classes = any(level.kind == "classes" for level in library.levels)
    if has_classes and {*label_names} <= {*library.options["classes"]}:
        count = len(library.options["classes"])
        sentences = f"the {count} sentences of its classes"
        if classes := library.facts.get("classes"):
            parts.append(f"{sentences} alone are right on {classes['accuracy']:.3f}")
        else:
            parts.append(
                f"{sentences} label every text, and how well is not known, as the library has no "
                "public labels of these names"
            )
    achieved = "; ".join(parts) if parts else "it does not know your labels"
    written = (
        ". A model wrote these texts on request, so this says little about real ones"
        if library.facts and "model" in library.options
        else ""
    )
    return f"At epsilon 0, without any private text: {achieved}{written}."


def describe_cells(library: Library, level: Level) -> Iterator[str]:
    """Yields a line for each cell of a level: its size, and its most typical text."""
    for cell in range(len(level)):
        text = " ".join(library.texts[int(level.members[cell][0])].split())
        shown = text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3].rstrip()}..."
        name = level.names[cell] if level.names else str(cell)
        yield f"{name}: {int(level.sizes[cell]):,} texts, such as: {shown}"


def collect_facts(library: Library) -> dict[str, Any]:
    """Collects what a library holds and achieves alone, as plain data."""
    return {
        "name": library.name,
        "kind": library.kind,
        "source": library.source,
        "licence": library.licence,
        "texts": len(library),
        "labels": {}
        if library.labels is None
        else {name: int((library.labels == i).sum()) for i, name in enumerate(library.label_names)},
        "levels": [
            {
                "name": level.name,
                "kind": level.kind,
                "cells": len(level),
                "sizes": level.sizes.tolist(),
                "names": list(level.names),
            }
            for level in library.levels
        ],
        "encoder": library.features.encoder,
        "digest": library.digest,
        "options": dict(library.options),
        "epsilon_0": dict(library.facts),
    }
