"""Invented notes of customers, of four kinds: the package's small library of public texts.

In: lists of sentences. Out: `data/library/` of the package, 200 notes with their kinds.
Not here: how a library is made (`textveil.library`).

`write_notes` writes others, too, which tests take for private texts.
"""

import hashlib
import json
from itertools import count
from pathlib import Path

SHIPPED = 50
"""The notes of each kind that the package has; the numbers of others begin far behind them."""

FOLDER = Path(__file__).resolve().parents[1] / "src" / "textveil" / "data" / "library"

THINGS = (
    *("desk lamp", "kettle", "rucksack", "raincoat", "bicycle light", "coffee grinder", "blanket"),
    *("garden hose", "wall clock", "bread knife", "camp stove", "bookshelf", "umbrella", "toaster"),
    *("sleeping bag", "radio", "watering can", "doormat"),
)

COLOURS = ("green", "grey", "red", "blue", "white", "black", "yellow")

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")

NUMBERS = ("three", "four", "five", "six", "eight", "nine", "ten")

SUMS = ("6", "12", "15", "18", "24", "29", "35", "48", "60")

CLASSES = {
    "delivery": "A customer complains that a parcel is late, lost, wrong or damaged.",
    "billing": "A customer disputes an invoice, a charge or a refund.",
    "praise": "A customer praises a product or thanks the staff.",
    "question": "A customer asks a question about a product.",
}

Parts = tuple[tuple[str, ...], ...]

PARTS: dict[str, Parts] = {
    "delivery": (
        (
            "The {thing} was due on {day} and is still not here.",
            "I waited at home all {day} for the {thing}, and nobody rang.",
            "My {thing} arrived in a crushed box, with a dent in one side.",
            "You sent the wrong one: I ordered a {colour} {thing}.",
            "The courier left the {thing} in the rain outside the gate.",
            "Half of the parcel is missing; only the {thing} was in it.",
            "For {number} days the tracking page has said that the {thing} is on its way.",
            "The {thing} was handed in next door, and no card was left.",
            "Again the van drove past without stopping, so I still have no {thing}.",
            "The {thing} came {number} days late, after the journey that I needed it for.",
        ),
        (
            "The depot does not answer the telephone.",
            "The driver wrote that the address does not exist, which it does.",
            "I took a day off work for it.",
            "The paper around it was torn and wet.",
            "Nobody could tell me where the parcel is now.",
            "The label had another street on it.",
        ),
        (
            "Please send another one by express.",
            "Please tell me on which day it will come.",
            "Have it collected and sent again, please.",
            "Kindly find out where it is.",
            "Send it to the shop in town instead.",
        ),
    ),
    "billing": (
        (
            "I was charged twice for one {thing}.",
            "The invoice for the {thing} is {sum} pounds above the price on the page.",
            "The refund for the {thing} that I sent back {number} weeks ago has not been paid.",
            "Your reminder asks for {sum} pounds that I paid last month.",
            "The discount code was accepted, and then not taken off the bill for the {thing}.",
            "The invoice for the {thing} has the wrong company on it.",
            "My card was debited, although I cancelled the {thing} within the hour.",
            "There is a fee of {sum} pounds on the bill that nobody explained.",
            "The payment for the {thing} was taken on {day}, a week too early.",
            "The receipt for the {thing} lacks the tax number.",
        ),
        (
            "The bank says that both payments went through.",
            "I have the receipt and the bank statement here.",
            "My account still shows the sum as open.",
            "I have written about this before.",
            "It was not mentioned at the till.",
            "We had agreed on {sum} pounds a month.",
        ),
        (
            "Please pay the difference back.",
            "Please send a corrected invoice.",
            "Please cancel the reminder and the late fee.",
            "I expect the money on my card this week.",
            "Please confirm in writing that I owe nothing.",
        ),
    ),
    "praise": (
        (
            "I have used the {thing} every day for {number} months and love it.",
            "What a fine {thing}: solid, quiet and simple.",
            "The {thing} looks even better than in the picture.",
            "Everybody at home wants to use the new {thing}.",
            "Thank you for the quick help with my {thing}.",
            "The {thing} was easy to set up, and the booklet is clear.",
            "This is the best {thing} that I have owned, and I have owned several.",
            "Your staff found the right {thing} for me within minutes.",
            "I hesitated at the price, but this {thing} is worth it.",
            "After {number} winters the {thing} is still like new.",
        ),
        (
            "The {colour} is lovely in daylight.",
            "It feels well made, and nothing rattles.",
            "It fits my hand just right.",
            "Friends have asked where I bought it.",
            "Even the box was a pleasure to open.",
            "It makes every morning easier.",
        ),
        (
            "I will buy here again.",
            "Five stars from me.",
            "Thank you to the whole team.",
            "I recommend it warmly.",
            "Keep up the good work.",
        ),
    ),
    "question": (
        (
            "Does the {thing} come in {colour}?",
            "Can I leave the {thing} outdoors when it is wet?",
            "How long is the warranty on the {thing}?",
            "Is there a spare part for the {thing}?",
            "Which size of {thing} suits a small flat?",
            "Do you still sell the older {thing} from last year?",
            "How do I clean the {thing} without scratching it?",
            "What is the {thing} made of?",
            "When is the {colour} {thing} back in stock?",
            "Is the {thing} light enough for a child of {number}?",
        ),
        (
            "The page does not say, and neither does the booklet.",
            "I could not find the measurements.",
            "I am choosing between this one and a larger model.",
            "I would use it about twice a week.",
            "The catalogue had it in another version.",
            "There is little space in the kitchen.",
        ),
        (
            "A short answer is enough.",
            "Could you send a link to the manual?",
            "If so, I would order today.",
            "Please let me know before {day}.",
            "Many thanks in advance.",
        ),
    ),
}


def write_note(kind: str, number: int) -> str:
    """Writes one note of a kind; each number gives another choice of sentences."""
    digest = hashlib.sha256(f"{kind} {number}".encode()).digest()
    first, second, third = PARTS[kind]
    sentences = [first[number % len(first)]]
    if digest[0] % 4:
        sentences.append(second[digest[1] % len(second)])
    if digest[0] % 3 or len(sentences) == 1:
        sentences.append(third[digest[2] % len(third)])
    lists = {"thing": THINGS, "colour": COLOURS, "day": DAYS, "number": NUMBERS, "sum": SUMS}
    choices = {
        name: words[digest[3 + i] % len(words)] for i, (name, words) in enumerate(lists.items())
    }
    return " ".join(sentences).format(**choices)


def write_notes(each: int, first: int = 0) -> list[dict[str, str]]:
    """Writes distinct notes of all kinds, in turn: `each` of a kind, from a number on."""
    texts: dict[str, dict[str, None]] = {kind: {} for kind in PARTS}
    for kind, written in texts.items():
        for number in count(first):
            written[write_note(kind, number)] = None
            if len(written) == each:
                break
    return [
        {"text": text, "kind": kind}
        for row in zip(*texts.values(), strict=True)
        for kind, text in zip(texts, row, strict=True)
    ]


def main() -> None:
    """Writes the notes and the sentences of their kinds into the package."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(note) for note in write_notes(SHIPPED)]
    (FOLDER / "notes.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    classes = "".join(f"{name}: {sentence}\n" for name, sentence in CLASSES.items())
    (FOLDER / "classes.txt").write_text(classes, encoding="utf-8")


if __name__ == "__main__":
    main()
