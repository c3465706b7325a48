"""The small encoder and its four jobs, context, entities, reading, sentence vectors; and classifiers, with saliency.

In: texts, or their words. Out: logits over a table's words or of labels, spans of entities, answers, unit vectors.
Not here: anything random, and what is done with the answers.
"""

from textveil.encoder.calibration import LogitRange, measure_logits, stored_bound, stored_range
from textveil.encoder.context import Context, LanguageModel, load_context
from textveil.encoder.entities import Entity, Tagger, TokenClassifier, load_tagger
from textveil.encoder.labels import SequenceClassifier, load_labels
from textveil.encoder.ragged import Ragged
from textveil.encoder.reading import Answer, Reader, SpanReader, load_reader
from textveil.encoder.saliency import Classifier, load_classifier
from textveil.encoder.sentences import SentenceEncoder, Sentences, load_sentences

__all__ = [
    "Answer",
    "Classifier",
    "Context",
    "Entity",
    "LanguageModel",
    "LogitRange",
    "Ragged",
    "Reader",
    "SentenceEncoder",
    "Sentences",
    "SequenceClassifier",
    "SpanReader",
    "Tagger",
    "TokenClassifier",
    "load_classifier",
    "load_context",
    "load_labels",
    "load_reader",
    "load_sentences",
    "load_tagger",
    "measure_logits",
    "stored_bound",
    "stored_range",
]
