"""The Model Context Protocol: tables of the leaves of a tool server's answers.

In: nothing. Out: an `Operation` for each request that is handed on to a tool server.
Not here: the handlers, and how arguments are restored (`gateway.toolserver`).

Here the answer is private, so its table is the `request` of an operation, which elsewhere describes
the way to a model.
"""

from textveil.gateway.leaves import Act, LeafRule, each, one_of, record, shaped, text, typed, whole
from textveil.gateway.protocols.contract import Operation
from textveil.gateway.protocols.openai import error

PROTECTED, NUMBER, SCHEMA = text(), LeafRule(numbers=Act.PASS), whole(Act.SCHEMA)
SAID = text(Act.ARGUMENTS)
"""Rule for text, which tools often write as JSON."""
MEDIA, ANY, DROPPED = whole(Act.MEDIA), whole(Act.OBJECT), whole(Act.DROP)
NAME = shaped(r"[A-Za-z0-9_.:/\-]{1,200}")
KIND = shaped(r"[A-Za-z0-9.+\-]{1,100}/[A-Za-z0-9.+*\-]{1,100}(?:; ?[a-z]+=[A-Za-z0-9\-]{1,40})*")
"""Rule for a media type."""
CURSOR = shaped(r"[A-Za-z0-9+/=_.:~\-]{1,2000}")
"""Rule for a list's cursor, which goes back to the tool server."""
ROLE = one_of("user", "assistant")
TEMPLATE = shaped(r"[A-Za-z][A-Za-z0-9+.\-]*:[A-Za-z0-9_{}/.,?&=*+#:~\-]{1,500}")
"""Rule for URI templates, which hold no private values.

The author of the tool server wrote them.
"""

ANNOTATED = record(audience=each(ROLE), priority=NUMBER, lastModified=PROTECTED)
ANSWERED = {"_meta": DROPPED, "resultType": one_of("complete")}
CACHED = {**ANSWERED, "ttlMs": NUMBER, "cacheScope": one_of("public", "private")}
LISTED = {**CACHED, "nextCursor": CURSOR}
"""Fields that answers share."""

CONTENTS = record(uri=PROTECTED, mimeType=KIND, text=SAID, blob=MEDIA, _meta=DROPPED)
RESOURCE = {
    "uri": PROTECTED,
    "name": PROTECTED,
    "title": PROTECTED,
    "description": PROTECTED,
    "mimeType": KIND,
    "size": NUMBER,
    "icons": DROPPED,
    "annotations": ANNOTATED,
    "_meta": DROPPED,
}
PLAYED = record(data=MEDIA, mimeType=KIND, annotations=ANNOTATED, _meta=DROPPED)
BLOCK = typed(
    text=record(text=SAID, annotations=ANNOTATED, _meta=DROPPED),
    image=PLAYED,
    audio=PLAYED,
    resource=record(resource=CONTENTS, annotations=ANNOTATED, _meta=DROPPED),
    resource_link=record(**RESOURCE),
)
HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
TOOL = record(
    name=NAME,
    title=SCHEMA,
    description=SCHEMA,
    inputSchema=SCHEMA,
    outputSchema=DROPPED,  # placeholders need not match the schema
    annotations=record(title=SCHEMA, **dict.fromkeys(HINTS, NUMBER)),
    execution=DROPPED,
    icons=DROPPED,
    _meta=DROPPED,
)
ARGUMENT = record(name=NAME, title=SCHEMA, description=SCHEMA, required=NUMBER)
PROMPT = record(
    name=NAME,
    title=SCHEMA,
    description=SCHEMA,
    arguments=each(ARGUMENT),
    icons=DROPPED,
    _meta=DROPPED,
)
MADE = record(
    uriTemplate=TEMPLATE,
    **{name: rule for name, rule in RESOURCE.items() if name not in ("uri", "size")},
)


def _build_operation(name: str, rule: LeafRule) -> Operation:
    return Operation(name=f"mcp.{name}", path="", request=rule, answer=whole(Act.PASS), error=error)


ABOUT = _build_operation("about", record(name=SCHEMA, title=SCHEMA, instructions=SCHEMA))
TOOLS = _build_operation("tools.list", record(tools=each(TOOL), **LISTED))
CALL = _build_operation(
    "tools.call", record(content=each(BLOCK), structuredContent=ANY, isError=NUMBER, **ANSWERED)
)
RESOURCES = _build_operation("resources.list", record(resources=each(record(**RESOURCE)), **LISTED))
TEMPLATES = _build_operation(
    "resources.templates.list", record(resourceTemplates=each(MADE), **LISTED)
)
READ = _build_operation("resources.read", record(contents=each(CONTENTS), **CACHED))
PROMPTS = _build_operation("prompts.list", record(prompts=each(PROMPT), **LISTED))
PROMPT_GIVEN = _build_operation(
    "prompts.get",
    record(description=PROTECTED, messages=each(record(role=ROLE, content=BLOCK)), **ANSWERED),
)
COMPLETED = _build_operation(
    "completion.complete",
    record(completion=record(values=each(PROTECTED), total=NUMBER, hasMore=NUMBER), **ANSWERED),
)
FAILED = _build_operation("error", record(message=PROTECTED))
PROGRESS = _build_operation("progress", record(message=PROTECTED))
