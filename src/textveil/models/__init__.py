"""The small encoder's jobs, and classifiers with saliency.

The jobs are context, entities, reading and sentence vectors.

In: texts, or their words. Out: logits over a table's words or of labels, entity spans, answers,
unit vectors.
Not here: anything random, and what is done with the answers.
"""

from textveil.models.calibration import (
    LogitRange,
    bundled_range,
    measure_logits,
    stored_bound,
    stored_range,
)
from textveil.models.context import ContextKind, ContextModel, LanguageModel, load_context
from textveil.models.endpoint import NO_KEY, Address, Endpoint, Key
from textveil.models.entities import (
    DETAILS,
    TOLD,
    Entity,
    Evidence,
    Tagger,
    TokenClassifier,
    load_tagger,
)
from textveil.models.labels import SequenceClassifier, load_labels
from textveil.models.networks import Model, untrained
from textveil.models.ragged import LISTENER, Ragged
from textveil.models.reading import ExtractedAnswer, Reader, SpanReader, load_reader
from textveil.models.repair import EXTRACTION_TEMPERATURE, extract, repair
from textveil.models.saliency import Classifier, load_classifier
from textveil.models.sentences import SentenceEncoder, Sentences, load_sentences

__all__ = [
    "DETAILS",
    "EXTRACTION_TEMPERATURE",
    "LISTENER",
    "NO_KEY",
    "TOLD",
    "Address",
    "Classifier",
    "ContextKind",
    "ContextModel",
    "Endpoint",
    "Entity",
    "Evidence",
    "ExtractedAnswer",
    "Key",
    "LanguageModel",
    "LogitRange",
    "Model",
    "Ragged",
    "Reader",
    "SentenceEncoder",
    "Sentences",
    "SequenceClassifier",
    "SpanReader",
    "Tagger",
    "TokenClassifier",
    "bundled_range",
    "extract",
    "load_classifier",
    "load_context",
    "load_labels",
    "load_reader",
    "load_sentences",
    "load_tagger",
    "measure_logits",
    "repair",
    "stored_bound",
    "stored_range",
    "untrained",
]
