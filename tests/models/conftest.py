"""Small random models of several families, saved as a user would have them: a folder each.

In: fixed seeds. Out: folders with a network and a fast tokenizer.
Not here: the bundled adapters, which are what they are.
"""

import shutil
from pathlib import Path
from string import ascii_lowercase, digits, punctuation

import pytest
import torch
import transformers
from tests.fixtures import NOUNS
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

WORDS = sorted(
    {
        *NOUNS,
        *[
            "the",
            "doctor",
            "saw",
            "a",
            "patient",
            "in",
            "old",
            "town",
            "near",
            "lisbon",
            "maria",
            "met",
            "john",
            "at",
            "acme",
            "corp",
            "paris",
        ],
    }
)
SIZE = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
}
LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC", "MISC"]


def wordpiece() -> PreTrainedTokenizerFast:
    """Uncased word pieces, framed by [CLS] and [SEP], with token types for pairs."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters = [*ascii_lowercase, *digits, *punctuation]
    pieces = list(
        dict.fromkeys([*special, *letters, *(f"##{letter}" for letter in letters), *WORDS])
    )
    tokenizer = Tokenizer(
        models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]")
    )
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(name, pieces.index(name)) for name in ("[CLS]", "[SEP]")],
    )
    names = dict(zip(("pad", "unk", "cls", "sep", "mask"), special, strict=True))
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=128,
        **{f"{role}_token": name for role, name in names.items()},
    )


def byte_level(*, framed: bool) -> PreTrainedTokenizerFast:
    """Byte-level pieces that carry the space before a word; framed as RoBERTa's, or bare as GPT-2's."""
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"] if framed else ["<|endoftext|>"]
    merges = list(
        dict.fromkeys((f"\u0120{word[:i]}", word[i]) for word in WORDS for i in range(len(word)))
    )
    pieces = [
        *special,
        *sorted(pre_tokenizers.ByteLevel.alphabet()),
        *(left + right for left, right in merges),
    ]
    tokenizer = Tokenizer(models.BPE({piece: i for i, piece in enumerate(pieces)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    if not framed:
        return PreTrainedTokenizerFast(
            tokenizer_object=tokenizer,
            model_max_length=128,
            bos_token=special[0],
            eos_token=special[0],
        )
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    names = {
        "bos": "<s>",
        "cls": "<s>",
        "pad": "<pad>",
        "eos": "</s>",
        "sep": "</s>",
        "unk": "<unk>",
        "mask": "<mask>",
    }
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=128,
        **{f"{role}_token": name for role, name in names.items()},
    )


def metaspace() -> PreTrainedTokenizerFast:
    """Unigram pieces whose tokenizer puts a space before whatever it cuts, as XLM-R's does."""
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    letters = [(letter, -9.0) for letter in [*ascii_lowercase, "."]]
    pieces = [
        *((name, 0.0) for name in special),
        *((f"\u2581{word}", -2.0) for word in WORDS),
        *letters,
        ("\u2581", -8.0),
    ]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=3))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )
    names = {
        "bos": "<s>",
        "cls": "<s>",
        "pad": "<pad>",
        "eos": "</s>",
        "sep": "</s>",
        "unk": "<unk>",
        "mask": "<mask>",
    }
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=128,
        **{f"{role}_token": name for role, name in names.items()},
    )


def prepended() -> PreTrainedTokenizerFast:
    """Pieces of a tokenizer that puts a space before a text even where one stands there, as the first Llamas' does."""
    merges = list(
        dict.fromkeys((f"\u2581{word[:i]}", word[i]) for word in WORDS for i in range(len(word)))
    )
    pieces = [
        "<unk>",
        "<s>",
        "</s>",
        "\u2581",
        *ascii_lowercase,
        ".",
        *(left + right for left, right in merges),
    ]
    tokenizer = Tokenizer(
        models.BPE({piece: i for i, piece in enumerate(pieces)}, merges, unk_token="<unk>")
    )
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")]
    )
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 1)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=128,
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
    )


def save(folder: Path, kind: str, tokenizer: PreTrainedTokenizerFast, **config: object) -> Path:
    """A random network of a transformers class, with its tokenizer, in a folder."""
    torch.manual_seed(0)
    settings = getattr(transformers, kind).config_class(
        vocab_size=len(tokenizer),
        pad_token_id=tokenizer.pad_token_id,
        initializer_range=0.5,
        **config,
    )
    getattr(transformers, kind)(settings).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def write_hub_cache(folder: Path, models: dict[str, Path]) -> None:
    """Writes models into a cache as the hub's library keeps it, by their hub ids."""
    for name, model in models.items():
        root = folder / f"models--{name.replace('/', '--')}"
        (root / "refs").mkdir(parents=True)
        (root / "refs" / "main").write_text("0" * 40, encoding="utf-8")
        shutil.copytree(model, root / "snapshots" / ("0" * 40))


def build_hub_cache(folder: Path, models: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes a hub's cache of models by their hub ids, and has the libraries look there."""
    write_hub_cache(folder, models)
    monkeypatch.setenv("HF_HUB_CACHE", str(folder))
    # read from the environment when the library is imported
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(folder))


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A folder per family and job."""
    root = tmp_path_factory.mktemp("models")
    words, framed, bare = wordpiece(), byte_level(framed=True), byte_level(framed=False)
    spaced = metaspace()
    bert = {**SIZE, "max_position_embeddings": 128}
    roberta = {**SIZE, "max_position_embeddings": 130, "type_vocab_size": 1}
    named = {
        "id2label": dict(enumerate(LABELS)),
        "label2id": {label: i for i, label in enumerate(LABELS)},
    }
    gpt2 = {
        "n_embd": 16,
        "n_layer": 2,
        "n_head": 2,
        "n_positions": 128,
        "bos_token_id": 0,
        "eos_token_id": 0,
    }
    llama = {**SIZE, "max_position_embeddings": 128, "bos_token_id": 1, "eos_token_id": 2}
    return {
        "bert-lm": save(root / "bert-lm", "BertForMaskedLM", words, **bert),
        "roberta-lm": save(root / "roberta-lm", "RobertaForMaskedLM", framed, **roberta),
        "gpt2-lm": save(root / "gpt2-lm", "GPT2LMHeadModel", bare, **gpt2),
        "llama-lm": save(root / "llama-lm", "LlamaForCausalLM", prepended(), **llama),
        "bert-tagger": save(
            root / "bert-tagger", "BertForTokenClassification", words, **bert, **named
        ),
        "roberta-tagger": save(
            root / "roberta-tagger", "RobertaForTokenClassification", framed, **roberta, **named
        ),
        "xlmr-tagger": save(
            root / "xlmr-tagger", "RobertaForTokenClassification", spaced, **roberta, **named
        ),
        "bert-reader": save(root / "bert-reader", "BertForQuestionAnswering", words, **bert),
        "roberta-reader": save(
            root / "roberta-reader", "RobertaForQuestionAnswering", framed, **roberta
        ),
        "xlmr-reader": save(root / "xlmr-reader", "RobertaForQuestionAnswering", spaced, **roberta),
        "bert-encoder": save(root / "bert-encoder", "BertModel", words, **bert),
    }
