"""A folder of tiny invented corpora, in the published forms of the sets that language models are asked about.

In: a folder. Out: its files, six examples a split.
Not here: what a loader makes of them (`bench_tests.data`).
"""

import json
from pathlib import Path

THINGS = ("orchard", "harbor", "winter", "garden", "village", "island")
COUNT = 6


def write_corpora(folder: Path) -> None:
    """Writes the corpora, unless they are there."""
    if folder.exists():
        return
    films = [f"a {word} {thing} film" for thing in THINGS for word in ("moving", "dull")]
    sst2 = "sentence\tlabel\n" + "".join(f"{text}\t{1 - i % 2}\n" for i, text in enumerate(films))
    qnli = "index\tquestion\tsentence\tlabel\n" + "".join(
        f"{i}\tWhere is the {thing}?\tThe {thing} lies by the {THINGS[i - 1]}.\t"
        f"{'entailment' if i % 2 else 'not_entailment'}\n"
        for i, thing in enumerate(THINGS)
    )
    swag = (
        ",video-id,fold-ind,startphrase,sent1,sent2,gold-source,ending0,ending1,ending2,ending3,"
        "label\n"
    ) + "".join(
        f"{i},v,1,A man sees the {thing}. He,A man sees the {thing}.,He,gold,sits.,runs.,sings.,"
        f"melts.,{i % 4}\n"
        for i, thing in enumerate(THINGS)
    )
    questions = [
        {
            "id": f"{i}",
            "title": "Things",
            "context": f"The old {thing} burned twice, and Greta Holm rebuilt it in brick.",
            "question": f"Who rebuilt the {thing}?",
            "answers": [
                {"text": "Greta Holm", "answer_start": len(f"The old {thing} burned twice, and ")}
            ],
        }
        for i, thing in enumerate(THINGS)
    ]
    squad = "".join(json.dumps(row) + "\n" for row in questions)
    news = "".join(
        f'"{i % 4 + 1}","News of the {thing}","They met by the {thing} again."\n'
        for i, thing in enumerate(THINGS * 2)
    )
    yelp = "".join(
        f'"{i % 5 + 1}","The {thing} was warm and loud."\n' for i, thing in enumerate(THINGS * 2)
    )
    lines = [
        " ".join(f"the {thing} stood near a {other} ." for other in THINGS * 2) for thing in THINGS
    ]
    wikitext = "".join(f" {line} \n" for line in lines)
    mmlu = "".join(
        f'"What is the {thing}?","a place","a {thing}","a tree","a song","B"\n' for thing in THINGS
    )
    for name, content in {
        "SST-2/dev.tsv": sst2,
        "SST-2/train.tsv": sst2,
        "QNLI/dev.tsv": qnli,
        "QNLI/train.tsv": qnli,
        "swag/val.csv": swag,
        "squad_v11/dev.jsonl": squad,
        "squad_v11/train_subset.jsonl": squad,
        "ag_news/test.csv": news,
        "ag_news/train.csv": news,
        "yelp/test.csv": yelp,
        "yelp/train.csv": yelp,
        "wikitext-2-raw/wiki.test.raw": wikitext,
        "mmlu/test/things_test.csv": mmlu,
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
