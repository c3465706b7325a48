"""Recipes: published vectors that tables are made from, by name.

In: a recipe's name. Out: where its vectors are, how large they are and under which licence.
Not here: how vectors are read (`vectors`). No file is fetched here but from a model hub.
"""

from dataclasses import dataclass
from pathlib import Path

from textveil.errors import TableError


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Published vectors with a name.

    Attributes:
        name: what `textveil table build` takes.
        vectors: what they are.
        source: the hub id of a model, or the name of a file.
        size: of what is fetched, for people.
        shape: words or pieces, and numbers of each.
        licence: under which they are published.
        url: where the file is fetched by hand; None for a model, which the hub or its cache has.
        unpacked: the file's name once it is unpacked.
        skip_broken: whether some words of it fit no table and are left out.
    """

    name: str
    vectors: str
    source: str
    size: str
    shape: str
    licence: str
    url: str | None = None
    unpacked: str = ""
    skip_broken: bool = False

    @property
    def command(self) -> str:
        """The command that makes its table."""
        return f"textveil table build {self.name} -o {self.name}"

    def find_source(self, folder: str | Path = ".") -> str:
        """Finds what a table is made from: the hub id, or the path of the file in a folder.

        Raises:
            TableError: the file is not there.
        """
        if self.url is None:
            return self.source
        for name in (self.unpacked, self.source):
            path = Path(folder) / name
            if path.is_file():
                return str(path)
        raise TableError(
            f"{self.name} is made from {self.source} ({self.size}), and neither it nor "
            f"{self.unpacked} is in this folder: fetch it from {self.url}, or give the path of the "
            "file in place of the name"
        )


_RECIPES = (
    Recipe(
        name="gpt2",
        vectors="input embeddings of GPT-2",
        source="openai-community/gpt2",
        size="0.5 GB",
        shape="50,256 pieces x 768",
        licence="MIT",
    ),
    Recipe(
        name="bert",
        vectors="input embeddings of BERT, base, uncased",
        source="google-bert/bert-base-uncased",
        size="0.4 GB",
        shape="29,523 pieces x 768",
        licence="Apache 2.0",
    ),
    Recipe(
        name="roberta",
        vectors="input embeddings of RoBERTa, base",
        source="FacebookAI/roberta-base",
        size="0.5 GB",
        shape="50,257 pieces x 768",
        licence="MIT",
    ),
    Recipe(
        name="glove",
        vectors="GloVe of Common Crawl, 840 billion words",
        source="glove.840B.300d.zip",
        size="2.0 GB",
        shape="2.2 million words x 300",
        licence="PDDL 1.0",
        url="https://nlp.stanford.edu/data/glove.840B.300d.zip",
        unpacked="glove.840B.300d.txt",
        skip_broken=True,  # some of its words are cut by spaces
    ),
    Recipe(
        name="word2vec",
        vectors="word2vec of Google News",
        source="GoogleNews-vectors-negative300.bin.gz",
        size="1.5 GB",
        shape="3 million words x 300",
        licence="Apache 2.0",
        url="https://code.google.com/archive/p/word2vec",
        unpacked="GoogleNews-vectors-negative300.bin",
        skip_broken=True,
    ),
    Recipe(
        name="fasttext",
        vectors="fastText of Wikipedia and news",
        source="wiki-news-300d-1M.vec.zip",
        size="0.7 GB",
        shape="1 million words x 300",
        licence="CC BY-SA 3.0",
        url="https://dl.fbaipublicfiles.com/fasttext/vectors-english/wiki-news-300d-1M.vec.zip",
        unpacked="wiki-news-300d-1M.vec",
        skip_broken=True,
    ),
)

RECIPES = {recipe.name: recipe for recipe in _RECIPES}
"""All recipes, by name."""
