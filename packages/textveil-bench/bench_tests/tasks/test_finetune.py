"""Fine-tuning: it learns, it repeats itself whatever torch's own generator does, and it is done once."""

import numpy as np
import pytest
import torch

from bench_tests.tasks.conftest import untouched
from textveil.errors import ConfigError, ModelError
from textveil.models.networks import load_untrained
from textveil.randomness.streams import SeededRandomness
from textveil_bench.examples import DataSet, Example
from textveil_bench.tasks import finetune, judge_store
from textveil_bench.tasks.finetune import Finetune, initialize_weights

PLACES = ("harbor", "castle", "market", "valley", "temple", "forest", "palace", "bridge")
FOODS = ("apple", "butter", "cherry", "dinner", "ginger", "lemon", "onion", "pepper")


def data(split: str, words: slice, pairs: bool = False) -> DataSet:
    """Texts about places or about food."""
    texts = [(word, label) for label, names in enumerate((PLACES, FOODS)) for word in names[words]]
    examples = [
        Example(texts=(*(("the doctor",) if pairs else ()), f"the old {word} {end}"), label=label)
        for word, label in texts
        for end in ("in paris", "near john", "at acme")
    ]
    return DataSet(
        name="things",
        split=split,
        kind="pairs" if pairs else "classification",
        fields=("who", "what") if pairs else ("text",),
        labels=("place", "food"),
        examples=tuple(examples),
    )


def judge(tiny, folder, pairs: bool = False, **options) -> Finetune:
    given = {"epochs": 12, "rate": 0.01, "batch": 8, **options}
    return Finetune(
        model=str(tiny), train=lambda: data("train", slice(None), pairs), folder=folder, **given
    )


@pytest.mark.slow
@pytest.mark.parametrize("pairs", [False, True])
def test_an_encoder_learns_what_it_is_shown(pairs, tiny, tmp_path):
    seen = data("test", slice(3), pairs)
    (score,) = judge(tiny, tmp_path, pairs).score(seen, untouched(seen))
    assert score.values.mean() >= 0.9
    assert (score.metric, score.chance, score.headline) == ("accuracy", 0.5, True)


def test_training_repeats_itself_and_another_seed_gives_other_weights(tiny, tmp_path):
    files = []
    for i, seed in enumerate((0, 0, 1)):
        torch.manual_seed(i)
        folder = tmp_path / str(i)
        list(
            judge(tiny, folder, epochs=1, seed=seed).score(
                seen := data("test", slice(1)), untouched(seen)
            )
        )
        (file,) = folder.iterdir()
        files.append(file.read_bytes())
    assert files[0] == files[1] != files[2]


def test_it_is_trained_once_and_anew_where_its_file_is_broken(tiny, tmp_path, monkeypatch):
    seen = data("test", slice(2))
    (first,) = judge(tiny, tmp_path, epochs=1).score(seen, untouched(seen))
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole[:-8])
    (again,) = judge(tiny, tmp_path, epochs=1).score(seen, untouched(seen))
    assert path.read_bytes() == whole
    monkeypatch.setattr(Finetune, "_learn", lambda *given: pytest.fail("it is trained again"))
    (second,) = judge(tiny, tmp_path, epochs=1).score(seen, untouched(seen))
    for other in (again, second):
        np.testing.assert_array_equal(first.values, other.values)
    with pytest.raises(pytest.fail.Exception, match="trained again"):
        list(judge(tiny, tmp_path, epochs=2).score(seen, untouched(seen)))


def test_long_texts_are_learned_from_window_by_window(tiny, tmp_path, monkeypatch):
    long = DataSet(
        **{
            **vars(data("train", slice(1))),
            "examples": tuple(
                Example(texts=(f"{word} " * 40,), label=i)
                for i, word in enumerate(("harbor", "apple"))
            ),
        }
    )
    told: list[tuple[str, int, int]] = []
    task = Finetune(
        model=str(tiny),
        train=lambda: long,
        folder=tmp_path,
        epochs=1,
        batch=1,
        window=16,
        report=lambda *given: told.append(given),
    )
    list(task.score(long, untouched(long)))
    steps = [each for each in told if each[0] == "fine-tuning"]
    # 40 pieces in windows of 14 that share 3: four of them a text.
    assert steps == [("fine-tuning", i, 8) for i in range(8)]


def test_a_loss_that_is_no_number_ends_the_training_and_nothing_is_kept(
    tiny, tmp_path, monkeypatch
):
    def spoil(model, missing, rng) -> None:
        with torch.no_grad():
            next(model.network.module.parameters()).fill_(torch.nan)

    monkeypatch.setattr(finetune, "initialize_weights", spoil)
    seen = data("test", slice(1))
    with pytest.raises(ModelError, match="lower the rate"):
        list(judge(tiny, tmp_path).score(seen, untouched(seen)))
    assert not list(tmp_path.iterdir())


def test_new_weights_are_drawn_and_all_others_stay(tiny):
    model, missing = load_untrained(str(tiny), 3)
    before = judge_store.hash_network(model.network.module, ignore=missing)
    initialize_weights(model, missing, SeededRandomness(0))
    assert judge_store.hash_network(model.network.module, ignore=missing) == before
    head = dict(model.network.module.named_parameters())
    assert head["classifier.bias"].tolist() == [0, 0, 0]
    assert 0 < head["classifier.weight"].std() < 0.05


def test_rows_of_other_labels_are_refused(tiny, tmp_path):
    other = DataSet(**{**vars(data("test", slice(1))), "labels": ("food", "place")})
    with pytest.raises(ConfigError, match="must have its labels"):
        list(judge(tiny, tmp_path, epochs=1).score(other, untouched(other)))
