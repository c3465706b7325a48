"""Saliency: in closed form for a linear classifier, and against gradients by hand for others."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from tests.models.conftest import SIZE, byte_level, metaspace, save, wordpiece
from torch import nn

from textveil.errors import ConfigError, ModelError
from textveil.models import Classifier, Ragged, load_classifier
from textveil.models.networks import Model
from textveil.models.torch_networks import TorchNetwork

CANARY = "zanzibarquux"


class Linear(nn.Module):
    """The score of a class is the sum, over the pieces seen, of the product of its weights and their embeddings."""

    def __init__(self, embeddings: torch.Tensor, weights: torch.Tensor) -> None:
        super().__init__()
        self.embeddings = nn.Embedding.from_pretrained(embeddings)
        self.weights = weights
        self.config = SimpleNamespace(
            num_labels=len(weights),
            id2label=dict(enumerate(map(str, range(len(weights))))),
            pad_token_id=0,
        )

    def get_input_embeddings(self) -> nn.Module:
        return self.embeddings

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> Any:
        seen = self.embeddings(input_ids) * attention_mask.unsqueeze(-1)
        return SimpleNamespace(logits=seen.sum(dim=1) @ self.weights.T)


def linear(
    weights: torch.Tensor, window: int = 64, batch: int = 64
) -> tuple[Classifier, torch.Tensor]:
    """A linear classifier of word pieces, and its embeddings, which are positive."""
    tokenizer = wordpiece()
    embeddings = torch.rand(len(tokenizer), 4, generator=torch.Generator().manual_seed(3)) + 0.1
    backend = tokenizer.backend_tokenizer
    model = Model(
        name="linear",
        network=TorchNetwork(name="linear", module=Linear(embeddings, weights)),
        tokenizer=backend,
        before=(2,),
        after=(3,),
        mask=4,
        unknown=1,
        longest=64,
        spaces="none",
        bundled=False,
    )
    return Classifier(model=model, window=window, batch=batch), embeddings


def closed(
    classifier: Classifier, embeddings: torch.Tensor, weights: torch.Tensor, words: list[str]
) -> np.ndarray:
    """The norm of embedding times weights, summed over the pieces of each word, and as a share of the largest."""
    sums = []
    for word in words:
        ids = classifier.model.tokenizer.encode(word, add_special_tokens=False).ids
        sums.append(sum(float((embeddings[i] * weights).norm()) for i in ids))
    return np.array(sums) / max(sums)


TEXTS = [["maria", "met", "incomprehensible", "John"], [], ["old", "town"], ["lemon"]]


@pytest.mark.parametrize("batch", [1, 64])
@pytest.mark.parametrize("window", [9, 64])
@pytest.mark.parametrize("best", [0, 1, 2])
def test_a_linear_classifier_has_its_closed_form_in_windows_too(window, best, batch):
    """Embeddings are positive, so the class with positive weights has the largest score in every text."""
    weights = -torch.tensor([[1.0, 2, 3, 4], [4, 1, 1, 1], [1, 9, 1, 1]])
    weights[best] *= -1
    classifier, embeddings = linear(weights, window, batch)
    texts = [*TEXTS, TEXTS[0] * 9]
    found = classifier.compute_saliency(Ragged.join(texts))
    assert found.dtype == np.float32
    expected = [closed(classifier, embeddings, weights[best], words) for words in texts if words]
    assert found == pytest.approx(np.concatenate(expected), abs=1e-5)


def test_the_class_of_a_long_text_is_that_of_all_its_windows():
    """The last window alone would be of another class."""
    weights = torch.tensor([[1.0, 2, 3, 4], [0, 0, 0, 0]])
    classifier, _ = linear(weights, window=9)
    lemon, stone = (classifier.model.tokenizer.token_to_id(word) for word in ("lemon", "stone"))
    network = classifier.model.network.module
    network.embeddings.weight[2:4] = 0
    network.embeddings.weight[lemon] = torch.tensor([1.0, 0, 0, 0])
    network.embeddings.weight[stone] = torch.tensor([0, 0, 0, -0.5])
    found = classifier.compute_saliency(Ragged.join([["lemon"] * 40 + ["stone"] * 3, ["stone"]]))
    assert found.tolist() == pytest.approx([0.5] * 40 + [1] * 3 + [0])


def test_a_piece_is_judged_in_the_window_in_which_it_lies_farthest_from_an_edge():
    """Here a piece counts as much as its place in the window, 1 for the first."""
    classifier, _ = linear(torch.ones(1, 4), window=12)
    network = classifier.model.network.module
    forward = network.embeddings.forward

    def placed(ids: torch.Tensor) -> torch.Tensor:
        return torch.ones(1, 1, 4) * torch.arange(ids.shape[1])[:, None] + 0 * forward(ids)

    network.embeddings.forward = placed
    found = classifier.compute_saliency(Ragged.join([["lemon"] * 18]))
    assert (10 * found).tolist() == pytest.approx([*range(1, 10), *range(2, 11)])


FAMILIES: dict[str, tuple[Any, dict[str, Any]]] = {
    "BertForSequenceClassification": (wordpiece, {**SIZE, "max_position_embeddings": 128}),
    "RobertaForSequenceClassification": (
        metaspace,
        {**SIZE, "max_position_embeddings": 130, "type_vocab_size": 1, "num_labels": 5},
    ),
    "GPT2ForSequenceClassification": (
        lambda: byte_level(framed=False),
        {
            "n_embd": 16,
            "n_layer": 2,
            "n_head": 2,
            "n_positions": 128,
            "bos_token_id": 0,
            "eos_token_id": 0,
        },
    ),
}


@pytest.mark.parametrize("kind", FAMILIES)
def test_a_network_has_the_gradients_that_autograd_finds_by_hand(kind, tmp_path):
    tokenizer, config = FAMILIES[kind]
    folder = save(tmp_path / "model", kind, tokenizer(), **config)
    classifier = load_classifier(folder)
    assert not any(
        parameter.requires_grad for parameter in classifier.model.network.module.parameters()
    )
    texts = [["maria", "met", "john"], ["incomprehensible"], [], ["old", "town", "near", "paris"]]
    found = classifier.compute_saliency(Ragged.join(texts))
    network = getattr(transformers, kind).from_pretrained(folder).eval()
    space = " " if kind.startswith("GPT2") else ""
    expected: list[float] = []
    for words in filter(None, texts):
        cut = [
            classifier.model.tokenizer.encode(space + word, add_special_tokens=False).ids
            for word in words
        ]
        ids = [*classifier.model.before, *(i for own in cut for i in own), *classifier.model.after]
        embedded = network.get_input_embeddings()(torch.tensor([ids])).detach().requires_grad_()
        logits = network(inputs_embeds=embedded).logits[0]
        logits[logits.argmax()].backward()
        norms = (embedded.grad * embedded).norm(dim=-1)[0].detach().numpy()  # type: ignore[operator]
        sums, place = [], len(classifier.model.before)
        for own in cut:
            sums.append(norms[place : place + len(own)].sum())
            place += len(own)
        expected += [value / max(sums) for value in sums]
    assert found == pytest.approx(expected, abs=1e-4)


def test_texts_do_not_touch_one_another_and_the_same_comes_again(tmp_path):
    folder = save(
        tmp_path / "model",
        "BertForSequenceClassification",
        wordpiece(),
        **SIZE,
        max_position_embeddings=128,
    )
    texts = [["maria", "met", "john"] * 60, ["paris"], ["old", "town"] * 30]
    classifier = load_classifier(folder, window=32)
    found = classifier.compute_saliency(Ragged.join(texts))
    assert np.array_equal(found, classifier.compute_saliency(Ragged.join(texts)))
    assert found == pytest.approx(
        np.concatenate([classifier.compute_saliency(Ragged.join([text])) for text in texts]),
        abs=1e-4,
    )
    assert found.min() >= 0
    assert [part.max() for part in np.split(found, [180, 181])] == [1, 1, 1]


@pytest.mark.parametrize("texts", [[], [[]], [[], []]])
def test_texts_without_words_have_no_saliency(texts):
    assert linear(torch.ones(2, 4))[0].compute_saliency(Ragged.join(texts)).shape == (0,)


def test_a_classifier_that_looks_at_nothing_finds_nothing_salient():
    assert linear(torch.zeros(2, 4))[0].compute_saliency(Ragged.join(TEXTS)).tolist() == [0] * 7


def test_a_gradient_that_is_not_finite_is_an_error_without_the_text():
    with pytest.raises(ModelError, match="are not finite") as caught:
        linear(torch.full((2, 4), torch.inf))[0].compute_saliency(Ragged.join([[CANARY]]))
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize("options", [{"window": 7}, {"batch": 0}, {"device": "nowhere"}])
def test_options_are_checked(options):
    with pytest.raises(ConfigError):
        load_classifier("no/such", **options)


def test_a_model_without_a_head_for_classes_is_refused(tmp_path):
    folder = save(
        tmp_path / "model", "BertForMaskedLM", wordpiece(), **SIZE, max_position_embeddings=128
    )
    with pytest.raises(ModelError, match="trained for classifier"):
        load_classifier(folder)
