"""Writes the gateway's tables of leaves from the types of the SDKs: `make leaves`.

In: the types of requests and answers of the installed SDKs (`ROOTS`); `leaves.txt`, which says what
the types do not.
Out: `data/leaves`, a file for each API with a line for each field.
Not here: how the files are read (`gateway.protocols.leaf_tables`), what becomes of a leaf.

A literal passes as one of its words, a number or a switch passes, any other string is text that is
protected, a value without a type is JSON whose values are text. Classes of one name are one record
with the fields of all of them, whether they are of requests or answers, beta or not: `TextBlock` is
also `BetaTextBlockParam`. A record inside itself is JSON whose values are text.
"""

import inspect
import json
import re
import types
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from fnmatch import fnmatchcase
from functools import cache
from importlib import import_module, metadata
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, Required, Union, get_args, get_origin

from pydantic import BaseModel
from typing_extensions import TypedDict, get_type_hints, is_typeddict

HERE = Path(__file__).parent
TARGET = HERE.parent / "src/textveil/data/leaves"
ANY_RULES = frozenset(
    {"ARGUMENTS", "DROP", "MEDIA", "OBJECT", "OFFSET", "PASS", "REFUSE", "SCHEMA", "USER"}
)
"""Rules for any value; those for numbers are below, and others in capitals are for strings."""
NUMBER_RULES = frozenset({"NUMBER", "TOKEN"})
TAGS = ("type", "role")
"""Fields that may say which member of a union an object is."""

SDKS = {"google": "google-genai"}
"""Distributions of the SDKs that are named otherwise than what they install."""

ROOTS: dict[str, dict[str, str]] = {
    "chat": {
        "request": "openai.types.chat.completion_create_params:CompletionCreateParams",
        "message": "openai.types.chat:ChatCompletionMessageParam",
        "tool": "openai.types.chat:ChatCompletionToolUnionParam",
        "tool_call": "openai.types.chat:ChatCompletionMessageToolCallUnionParam",
        "answer": "openai.types.chat:ChatCompletion openai.types.chat:ChatCompletionChunk",
        "answer_choice": "Choice",
        "answer_message": "ChatCompletionMessage ChoiceDelta",
        "cache_breakpoint": "PromptCacheBreakpoint",
        "cache_control": "CacheControl",
        "extra": "Extra",
    },
    "completions": {
        "request": "openai.types.completion_create_params:CompletionCreateParams",
        "answer": "openai.types:Completion",
    },
    "embeddings": {"request": "openai.types:EmbeddingCreateParams"},
    "moderations": {"request": "openai.types:ModerationCreateParams"},
    "responses": {
        "request": "openai.types.responses.response_create_params:ResponseCreateParams "
        "openai.types.responses:InputTokenCountParams openai.types.responses:ResponseCompactParams",
        "conversation": "openai.types.conversations:ConversationCreateParams",
        "item": "openai.types.responses:ResponseInputItemParam openai.types.responses:ResponseItem "
        "openai.types.conversations:ConversationItem",
        "include": "openai.types.responses:ResponseIncludable",
        "answer": "openai.types.responses:Response openai.types.responses:CompactedResponse",
        "answer_item": "openai.types.responses:ResponseInputItem "
        "openai.types.responses:ResponseItem openai.types.responses:ResponseOutputItem "
        "openai.types.conversations:ConversationItem",
        "answer_items": "openai.types.responses:ResponseItemList "
        "openai.types.conversations:ConversationItemList",
        "answer_event": "openai.types.responses:ResponseStreamEvent",
        "answer_text": "openai.types.responses:ResponseOutputText",
    },
    "messages": {
        "request": "anthropic.types.message_create_params:MessageCreateParams "
        "anthropic.types.beta.message_create_params:MessageCreateParams",
        "count": "anthropic.types.message_count_tokens_params:MessageCountTokensParams "
        "anthropic.types.beta.message_count_tokens_params:MessageCountTokensParams",
        "message": "anthropic.types:MessageParam anthropic.types.beta:BetaMessageParam",
        "answer": "anthropic.types:Message anthropic.types.beta:BetaMessage",
        "answer_block": "anthropic.types:ContentBlock anthropic.types.beta:BetaContentBlock",
        "answer_count": "anthropic.types:MessageTokensCount "
        "anthropic.types.beta:BetaMessageTokensCount",
        "answer_event": "anthropic.types:RawMessageStreamEvent "
        "anthropic.types.beta:BetaRawMessageStreamEvent ErrorEvent PingEvent",
        "answer_delta": "anthropic.types:RawContentBlockDelta "
        "anthropic.types.beta:BetaRawContentBlockDelta",
    },
    "gemini": {
        "message": "google.genai.types:Content",
        "request": "GenerateContent",
        "count": "CountTokens",
        "embed": "EmbedContent",
        "embed_batch": "BatchEmbedContents",
        "tool": "google.genai.types:Tool",
        "tool_config": "google.genai.types:ToolConfig",
        "safety": "google.genai.types:SafetySetting",
        "config": "google.genai.types:GenerationConfig",
        "image_config": "google.genai.types:ImageConfig",
        "answer": "google.genai.types:GenerateContentResponse",
        "answer_candidate": "Candidate",
        "answer_content": "Content",
        "answer_part": "Part",
    },
    "ollama": {
        "chat": "ollama._types:ChatRequest",
        "message": "ollama._types:Message",
        "generate": "ollama._types:GenerateRequest",
        "embed": "ollama._types:EmbedRequest",
        "embeddings": "ollama._types:EmbeddingsRequest",
        "show": "ollama._types:ShowRequest",
        "answer_chat": "ollama._types:ChatResponse",
        "answer_generate": "ollama._types:GenerateResponse",
    },
    "bedrock": {
        "request": "botocore:ConverseRequest botocore:ConverseStreamRequest",
        "message": "botocore:Message",
        "answer": "botocore:ConverseResponse",
        "answer_event": "botocore:ConverseStreamOutput",
    },
}
"""Types of each API, or records, by what they are of; those of answers begin with `answer`."""

# ---- overrides -----------------------------------------------------------------------------------

SIDES = frozenset({"requests", "answers"})
Term = tuple[str, Any]
"""Bracket with the terms inside it, or "" with a name or with words in quotes."""


def parse_rule(rule: str) -> list[Term]:
    """Parses a rule: `TEXT | [Part]`, `{TEXT}`, `'low,high'`."""
    return _parse_terms(re.findall(r"'[^']*'|[\[\]{}]|[^\s\[\]{}|']+", rule)[::-1])


def _parse_terms(tokens: list[str]) -> list[Term]:
    """Parses terms up to a closing bracket; the next token is the last."""
    terms: list[Term] = []
    while tokens and (token := tokens.pop()) not in "]}":
        terms.append((token, _parse_terms(tokens)) if token in "[{" else ("", token))
    return terms


@dataclass(frozen=True, kw_only=True)
class Override:
    """Line of `leaves.txt`.

    Attributes:
        scope: the APIs and the side (`requests` or `answers`) it is for; empty for all.
        records: patterns of the names of records.
        fields: names of fields.
        is_more: whether the rule is added to that of the SDK; else it takes its place.
        terms: the parsed rule.
        line: the line itself.
    """

    scope: frozenset[str]
    records: tuple[str, ...]
    fields: frozenset[str]
    is_more: bool
    terms: tuple[Term, ...]
    line: str

    def has_place(self, api: str, side: str) -> bool:
        """True if the override is for a side of an API."""
        apis, sides = self.scope - SIDES, self.scope & SIDES
        return (not apis or api in apis) and (not sides or side in sides)

    def has_record(self, name: str) -> bool:
        """True if the override is for a record of this name."""
        return any(fnmatchcase(name, pattern) for pattern in self.records)


def read_overrides(path: Path = HERE / "leaves.txt") -> Iterator[Override]:
    """Yields the lines of the file of overrides; later ones count more."""
    scope = frozenset[str]()
    for line in path.read_text("utf-8").splitlines():
        if line.startswith("["):
            scope = frozenset(line.strip("[]").split())
        elif line and line[0] != "#":
            match = re.fullmatch(r"(\S[^:]*): ([^=+]+) ([=+]) (.+)", line)
            if match is None:
                raise ValueError(f"not an override: {line}")
            records, names, sign, rule = match.groups()
            yield Override(
                scope=scope,
                records=tuple(records.split()),
                fields=frozenset(names.split()),
                is_more=sign == "+",
                terms=tuple(parse_rule(rule)),
                line=line,
            )


# ---- types ---------------------------------------------------------------------------------------


@dataclass
class Shape:
    """Kinds of JSON that a value may be.

    Attributes:
        act: name of a rule for any value; "" for none.
        string: name of the rule for a string; "" for none.
        words: strings that pass.
        number: name of the rule for a number or a switch; "" for none.
        items: kinds of an item of a list.
        values: kinds of a value of an object whose field names are free.
        records: names of the records it may be.
    """

    act: str = ""
    string: str = ""
    words: set[str] = field(default_factory=set)
    number: str = ""
    items: "Shape | None" = None
    values: "Shape | None" = None
    records: set[str] = field(default_factory=set)

    def add(self, other: "Shape", name: str = "") -> None:
        """Adds the kinds of another shape to this one."""
        for part in ("act", "string", "number"):
            mine, more = getattr(self, part), getattr(other, part)
            if mine and more and mine != more:
                raise ValueError(f"{name}: {mine} and {more} for one value")
            setattr(self, part, mine or more)
        self.words |= other.words
        self.records |= other.records
        for part in ("items", "values"):
            inner = [shape for shape in (getattr(self, part), getattr(other, part)) if shape]
            setattr(self, part, merge_shapes(inner, name) if inner else None)


def merge_shapes(shapes: Iterable[Shape], name: str = "") -> Shape:
    """Merges shapes to a new one; the name is for errors."""
    merged = Shape()
    for shape in shapes:
        merged.add(shape, name)
    return merged


def read_plain(kind: Any, string: str) -> Shape | None:
    """Reads a type of strings or numbers; None for others."""
    if kind is datetime:
        return Shape(string="TIME")
    if kind is bytes and string == "TEXT":
        return Shape(act="MEDIA")
    if kind in (str, bytes, int, float, bool):
        return Shape(string=string) if kind in (str, bytes) else Shape(number="NUMBER")
    if inspect.isclass(kind) and issubclass(kind, Enum):
        return Shape(words={str(member.value) for member in kind})
    return None


def strip_name(kind: Any) -> str:
    """Returns the name of a class without what says that it is beta, or of requests."""
    bare = re.sub(r"(Params?)+(Base|NonStreaming|Streaming)?$", "", kind.__name__)
    return bare.removeprefix("Beta")


def is_record(kind: Any) -> bool:
    """True if a type is a class with fields."""
    return is_typeddict(kind) or (inspect.isclass(kind) and issubclass(kind, BaseModel))


def list_fields(kind: Any) -> Iterator[tuple[str, Any, bool]]:
    """Yields the fields of a class with their types, and whether each is required."""
    if is_typeddict(kind):
        for name, annotation in get_type_hints(kind, include_extras=True).items():
            given: Any = get_origin(annotation)
            is_required = given is Required or (kind.__total__ and given is not NotRequired)
            yield name, annotation, is_required
        return
    for name, info in kind.model_fields.items():
        yield info.alias or name, info.annotation, info.is_required()


def list_members(kind: Any) -> list[Any]:
    """Lists the types that a type consists of; [] for a bare class."""
    if get_origin(kind) in (Annotated, Required, NotRequired):
        return [get_args(kind)[0]]
    if hasattr(kind, "__value__"):
        return [kind.__value__]
    return list(get_args(kind)) if get_origin(kind) in (Union, types.UnionType) else []


@dataclass
class Record:
    """Fields of all classes of one name.

    Attributes:
        fields: the types of each field.
        may_lack: fields that some class does not require.
    """

    fields: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    may_lack: set[str] = field(default_factory=set)


def collect_records(kind: Any, records: dict[str, Record], seen: set[Any]) -> None:
    """Collects the classes in a type by their bare name."""
    if not is_record(kind):
        for inner in list_members(kind) or get_args(kind):
            if not isinstance(inner, str | int):
                collect_records(inner, records, seen)
    elif kind not in seen:
        seen.add(kind)
        record = records.setdefault(strip_name(kind), Record())
        for name, annotation, is_required in list_fields(kind):
            record.fields[name].append(annotation)
            record.may_lack |= set() if is_required else {name}
            collect_records(annotation, records, seen)


# ---- tables --------------------------------------------------------------------------------------


class TableWriter:
    """Writer of one API's table.

    Args:
        api: the name of the API.
        overrides: the lines of `leaves.txt`; those that apply are noted in `used`.
        used: lines that applied somewhere.
    """

    def __init__(self, api: str, overrides: Iterable[Override], used: set[str]) -> None:
        self._api, self._overrides, self._used = api, list(overrides), used
        self._records = dict[str, Record]()
        self._lines = list[Override]()  # of the side that is written
        self._names = dict[frozenset[str], str]()  # of the records written so far on this side
        self._open = set[str]()  # records that are being written
        self._table: dict[str, dict[str, Any]] = {part: {} for part in ("roots", *TAGS, "records")}
        seen: set[Any] = set()
        for names in ROOTS[api].values():
            for kind in load_types(names):
                collect_records(kind, self._records, seen)

    def write(self) -> dict[str, Any]:
        """Returns the table as JSON."""
        side = ""
        for name in ROOTS[self._api]:
            if side != (side := "answers" if name.startswith("answer") else "requests"):
                self._lines = [o for o in self._overrides if o.has_place(self._api, side)]
                self._names = {}
            self._table["roots"][name] = self._render(self._read_root(name), name)
        return self._table

    def _read(self, kind: Any, string: str) -> Shape:
        """Reads a type, with the name of the rule for its strings.

        Words pass, unless another rule than `TEXT` says what passes.
        """
        origin, given = get_origin(kind), get_args(kind)
        if members := list_members(kind):
            return merge_shapes(self._read(member, string) for member in members)
        if origin is Literal:
            words = {word for word in given if isinstance(word, str)}
            number = "NUMBER" if len(words) < len(given) else ""
            if words and string != "TEXT":
                return Shape(string=string, number=number)
            return Shape(words=words, number=number)
        if is_record(kind):
            return Shape(records={strip_name(kind)})
        if (shape := read_plain(kind, string)) is not None:
            return shape
        if kind in (object, Any):
            return Shape(act="OBJECT")
        if inspect.isclass(origin) and issubclass(origin, Mapping):
            return Shape(values=self._read(given[1], string))
        if inspect.isclass(origin) and issubclass(origin, Iterable):
            return Shape(items=self._read(given[0], string))
        if kind is types.NoneType or getattr(origin or kind, "__name__", "") in ("IO", "PathLike"):
            return Shape()
        raise TypeError(f"no rule for the type {kind}")

    def _read_root(self, name: str) -> Shape:
        """Reads the types and records of a root."""
        names = ROOTS[self._api][name]
        records = Shape(records={record for record in names.split() if ":" not in record})
        return merge_shapes([records, *(self._read(kind, "TEXT") for kind in load_types(names))])

    def _convert(self, terms: Iterable[Term]) -> Shape:
        """Converts the terms of an override to a shape."""
        return merge_shapes(map(self._convert_term, terms))

    def _convert_term(self, term: Term) -> Shape:
        bracket, content = term
        if bracket:
            inner = self._convert(content)
            return Shape(items=inner) if bracket == "[" else Shape(values=inner)
        if content[0] == "'":
            return Shape(words=set(content[1:-1].split(",")))
        if content[0] == "@":
            return self._read_root(content[1:])
        if content in ANY_RULES:
            return Shape(act=content)
        if content in NUMBER_RULES:
            return Shape(number=content)
        return Shape(string=content) if content.isupper() else Shape(records={content})

    def _read_field(self, record: str, name: str) -> Shape:
        """Reads a field as its types and the overrides have it."""
        lines = self._list_lines(record, name)
        kinds = self._records[record].fields.get(name, []) if record in self._records else []
        rules = [o for o in lines if not o.is_more] if kinds else []
        more = [o for o in lines if o.is_more]
        self._used |= {o.line for o in rules + more}
        shape, string = Shape(), "TEXT"
        if rules:
            shape = self._convert(rules[-1].terms)
            string = shape.string if shape == Shape(string=shape.string) else ""
        if string:
            shape = merge_shapes(self._read(kind, string) for kind in kinds)
        added = [self._convert(o.terms) for o in more]
        return merge_shapes([shape, *added], f"{record}.{name}")

    def _list_lines(self, record: str, name: str) -> list[Override]:
        """Lists the overrides of a field."""
        return [o for o in self._lines if name in o.fields and o.has_record(record)]

    def _list_fields(self, record: str) -> list[str]:
        """Lists the fields of a record: those of its classes, and those of overrides."""
        known = set(self._records[record].fields) if record in self._records else set()
        for override in self._lines:
            if override.is_more and override.has_record(record):
                known |= override.fields
        if not known and record not in self._records:
            raise ValueError(f"no class and no line of leaves.txt is of {record}")
        return sorted(known)

    def _render(self, shape: Shape, owner: str) -> Any:
        """Renders a shape as a rule; creates its records."""
        if shape.act:
            return shape.act
        rules: list[Any] = [shape.string] if shape.string else []
        if words := shape.words - {""} if not shape.string else None:
            rules.append({"words": " ".join(sorted(words))})
        rules += [shape.number] if shape.number else []
        if shape.items is not None:
            rules.append({"list": self._render(shape.items, owner)})
        if shape.values is not None:
            rules.append({"map": self._render(shape.values, owner)})
        if shape.records:
            rules.append(self._render_records(shape.records, owner))
        if "OBJECT" in rules:  # a record inside itself, whatever else may stand there
            return "OBJECT"
        return rules[0] if len(rules) == 1 else rules

    def _render_records(self, names: set[str], owner: str) -> str:
        """Renders a record, or a union of records; creates them."""
        words = {tag: {name: self._read_tag(name, tag) for name in names} for tag in TAGS}
        # The tag that most of the records have.
        tag = max(TAGS, key=lambda tag: sum(found != {""} for found in words[tag].values()))
        kinds: dict[str, set[str]] = defaultdict(set)
        for name in names:
            for word in words[tag][name]:
                kinds[word].add(name)
        if len(names) == 1 or len(kinds) == 1:
            return self._write_record(names, owner)
        written = {
            word: self._write_record(kinds[word], f"{owner}.{word}") for word in sorted(kinds)
        }
        is_circular = "OBJECT" in written.values()
        return "OBJECT" if is_circular else self._store(tag, owner, written)

    def _read_tag(self, record: str, tag: str) -> set[str]:
        """Returns the words of a tag; "" is among them if an object may lack it."""
        if tag not in self._list_fields(record):
            return {""}
        shape = self._read_field(record, tag)
        if shape != Shape(words=shape.words):
            return {""}
        lines = self._list_lines(record, tag)
        is_optional = record in self._records and tag in self._records[record].may_lack
        return shape.words | ({""} if is_optional and all(o.is_more for o in lines) else set())

    def _write_record(self, members: set[str], owner: str) -> str:
        """Writes a record with the fields of its members, and returns its name."""
        if members & self._open:
            return "OBJECT"
        if (key := frozenset(members)) in self._names:
            return self._names[key]
        self._open |= members
        name = "+".join(sorted(members)) if len(members) < 4 else owner
        shapes: dict[str, list[Shape]] = defaultdict(list)
        for member in sorted(members):
            for part in self._list_fields(member):
                shapes[f"{name}.{part}"].append(self._read_field(member, part))
        rules = {
            place.removeprefix(f"{name}."): self._render(merge_shapes(same, place), place)
            for place, same in sorted(shapes.items())
        }
        self._open -= members
        self._names[key] = self._store("records", name, rules)
        return self._names[key]

    def _store(self, section: str, name: str, content: dict[str, Any]) -> str:
        """Stores a union or record, and returns its name; an equal one is used again."""
        stored = self._table[section]
        if equal := next((other for other in stored if stored[other] == content), None):
            return equal
        while name in stored:
            name += " (answer)"
        stored[name] = content
        return name


def load_types(names: str) -> list[Any]:
    """Loads the types named with their modules; those of `botocore` are shapes."""
    pairs = (name.split(":") for name in names.split() if ":" in name)
    return [
        load_shape(name) if module == "botocore" else getattr(import_module(module), name)
        for module, name in pairs
    ]


@cache
def load_shape(name: str) -> Any:
    """Loads a shape of Bedrock's model as a typed dictionary."""
    import botocore.session

    model = botocore.session.get_session().get_service_model("bedrock-runtime")
    return _convert_shape(model.shape_for(name))


def _convert_shape(shape: Any) -> Any:
    """Converts a shape to a type; parts of the path and of headers are no fields."""
    if shape.type_name == "structure" and not shape.is_document_type:
        fields = {
            part.serialization.get("name", name): load_shape(part.name)
            for name, part in shape.members.items()
            if "location" not in part.serialization
        }
        return TypedDict(shape.name, fields, total=False)  # type: ignore[operator]
    if shape.type_name == "list":
        return list[load_shape(shape.member.name)]  # type: ignore[misc]
    if shape.type_name == "map":
        return dict[str, load_shape(shape.value.name)]  # type: ignore[misc]
    if shape.type_name in ("string", "blob"):
        return Literal[tuple(shape.enum)] if getattr(shape, "enum", ()) else str
    return {"boolean": bool, "structure": Any, "timestamp": datetime}.get(shape.type_name, float)


def render_table(value: Any, depth: int = 0) -> str:
    """Renders a table as JSON, with a line for each field of a record."""
    if depth == 3 or not isinstance(value, dict):
        return json.dumps(value)
    lines = [f"{json.dumps(name)}: {render_table(value[name], depth + 1)}" for name in value]
    indent = "\n" + " " * depth
    return f"{{{indent} {f',{indent} '.join(lines)}{indent}}}"


def build_tables() -> dict[str, str]:
    """Builds the files of all APIs, by name."""
    overrides, used, built = list(read_overrides()), set[str](), dict[str, str]()
    for api, roots in ROOTS.items():
        module = re.split("[.:]", next(iter(roots.values())))[0]
        sdk = SDKS.get(module, module)
        table = TableWriter(api, overrides, used).write()
        stored = {part: dict(sorted(table[part].items())) for part in table}
        built[api] = render_table({"sdk": f"{sdk} {metadata.version(sdk)}", **stored}) + "\n"
    if idle := [o.line for o in overrides if o.line not in used]:
        raise ValueError(f"lines of leaves.txt that apply nowhere: {idle}")
    return built


def main() -> None:
    """Writes the files."""
    TARGET.mkdir(exist_ok=True)
    for api, content in build_tables().items():
        (TARGET / f"{api}.json").write_text(content, "utf-8")


if __name__ == "__main__":
    main()
