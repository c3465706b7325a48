"""The small encoder's jobs, and classifiers with saliency.

The jobs are context, entities, reading and sentence vectors.

In: texts, or their words. Out: logits over a table's words or of labels, entity spans, answers,
unit vectors.
Not here: anything random, and what is done with the answers.
"""

from textveil.models.answers import (
    AnswerSource,
    AnswerStore,
    RequestCounts,
    RequestEstimate,
    RequestRecorder,
)
from textveil.models.calibration import (
    LogitRange,
    load_range,
    load_stored_bound,
    load_stored_range,
    measure_logits,
)
from textveil.models.context import ContextKind, ContextModel, LanguageModel, load_context
from textveil.models.endpoint import NO_KEY, Address, Endpoint, Key
from textveil.models.entities import (
    DETAIL_TYPES,
    EVIDENCE_SIZE,
    EVIDENCE_WORDS,
    Entity,
    Evidence,
    Tagger,
    TokenClassifier,
    load_tagger,
)
from textveil.models.labels import SequenceClassifier, load_labels
from textveil.models.networks import Model, load_untrained
from textveil.models.prompts import ROLES, Prompt, Prompts
from textveil.models.ragged import PROGRESS_LISTENER, Ragged
from textveil.models.reading import ExtractedAnswer, Reader, SpanReader, load_reader
from textveil.models.repair import (
    COHERENCE_PROMPT,
    EXTRACTION_PROMPT,
    EXTRACTION_TEMPERATURE,
    extract,
    repair,
)
from textveil.models.saliency import Classifier, load_classifier
from textveil.models.sentences import SentenceEncoder, SentenceModel, load_sentences
from textveil.models.text_generation import TextGenerator, load_generator

__all__ = [
    "COHERENCE_PROMPT",
    "DETAIL_TYPES",
    "EVIDENCE_SIZE",
    "EVIDENCE_WORDS",
    "EXTRACTION_PROMPT",
    "EXTRACTION_TEMPERATURE",
    "NO_KEY",
    "PROGRESS_LISTENER",
    "ROLES",
    "Address",
    "AnswerSource",
    "AnswerStore",
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
    "Prompt",
    "Prompts",
    "Ragged",
    "Reader",
    "RequestCounts",
    "RequestEstimate",
    "RequestRecorder",
    "SentenceEncoder",
    "SentenceModel",
    "SequenceClassifier",
    "SpanReader",
    "Tagger",
    "TextGenerator",
    "TokenClassifier",
    "extract",
    "load_classifier",
    "load_context",
    "load_generator",
    "load_labels",
    "load_range",
    "load_reader",
    "load_sentences",
    "load_stored_bound",
    "load_stored_range",
    "load_tagger",
    "load_untrained",
    "measure_logits",
    "repair",
]
