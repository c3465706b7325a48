"""The Model Context Protocol: tables of the leaves of a tool server's answers.

In: nothing. Out: an `Operation` for each request that is handed on to a tool server.
Not here: the handlers, and how arguments are restored (`gateway.toolserver`).

Here the answer is private, so its table is the `request` of an operation, which elsewhere describes
the way to a model.
"""

from textveil.gateway.protocols.field_rules import (
    PASSED,
    Act,
    LeafRule,
    any_value,
    array,
    choice,
    pattern,
    record,
    text,
    variants,
)
from textveil.gateway.protocols.openai import build_error
from textveil.gateway.protocols.operation import Operation

PROTECTED, NUMBER, SCHEMA = text(), LeafRule(numbers=Act.PASS), any_value(Act.SCHEMA)
TOOL_TEXT = text(Act.ARGUMENTS)
"""Rule for text, which tools often write as JSON."""
MEDIA, ANY, DROPPED = any_value(Act.MEDIA), any_value(Act.OBJECT), any_value(Act.DROP)
MCP_NAME = pattern(r"[A-Za-z0-9_.:/\-]{1,200}")
MEDIA_TYPE = pattern(
    r"[A-Za-z0-9.+\-]{1,100}/[A-Za-z0-9.+*\-]{1,100}(?:; ?[a-z]+=[A-Za-z0-9\-]{1,40})*"
)
"""Rule for a media type."""
CURSOR = pattern(r"[A-Za-z0-9+/=_.:~\-]{1,2000}")
"""Rule for a list's cursor, which goes back to the tool server."""
ROLE = choice("user", "assistant")
TEMPLATE = pattern(r"[A-Za-z][A-Za-z0-9+.\-]*:[A-Za-z0-9_{}/.,?&=*+#:~\-]{1,500}")
"""Rule for URI templates, which hold no private values.

The author of the tool server wrote them.
"""

ANNOTATIONS = record(audience=array(ROLE), priority=NUMBER, lastModified=PROTECTED)
RESULT_FIELDS = {"_meta": DROPPED, "resultType": choice("complete")}
CACHE_FIELDS = {**RESULT_FIELDS, "ttlMs": NUMBER, "cacheScope": choice("public", "private")}
LIST_FIELDS = {**CACHE_FIELDS, "nextCursor": CURSOR}
"""Fields that answers share."""

CONTENTS = record(uri=PROTECTED, mimeType=MEDIA_TYPE, text=TOOL_TEXT, blob=MEDIA, _meta=DROPPED)
RESOURCE_FIELDS = {
    "uri": PROTECTED,
    "name": PROTECTED,
    "title": PROTECTED,
    "description": PROTECTED,
    "mimeType": MEDIA_TYPE,
    "size": NUMBER,
    "icons": DROPPED,
    "annotations": ANNOTATIONS,
    "_meta": DROPPED,
}
MEDIA_BLOCK = record(data=MEDIA, mimeType=MEDIA_TYPE, annotations=ANNOTATIONS, _meta=DROPPED)
BLOCK = variants(
    text=record(text=TOOL_TEXT, annotations=ANNOTATIONS, _meta=DROPPED),
    image=MEDIA_BLOCK,
    audio=MEDIA_BLOCK,
    resource=record(resource=CONTENTS, annotations=ANNOTATIONS, _meta=DROPPED),
    resource_link=record(**RESOURCE_FIELDS),
)
HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
TOOL = record(
    name=MCP_NAME,
    title=SCHEMA,
    description=SCHEMA,
    inputSchema=SCHEMA,
    outputSchema=DROPPED,  # placeholders need not match the schema
    annotations=record(title=SCHEMA, **dict.fromkeys(HINTS, NUMBER)),
    execution=DROPPED,
    icons=DROPPED,
    _meta=DROPPED,
)
ARGUMENT = record(name=MCP_NAME, title=SCHEMA, description=SCHEMA, required=NUMBER)
PROMPT = record(
    name=MCP_NAME,
    title=SCHEMA,
    description=SCHEMA,
    arguments=array(ARGUMENT),
    icons=DROPPED,
    _meta=DROPPED,
)
RESOURCE_TEMPLATE = record(
    uriTemplate=TEMPLATE,
    **{name: rule for name, rule in RESOURCE_FIELDS.items() if name not in ("uri", "size")},
)


def _build_operation(name: str, rule: LeafRule) -> Operation:
    return Operation(
        name=f"mcp.{name}",
        path="",
        request=rule,
        answer=PASSED,
        build_error=build_error,
    )


SERVER_INFO = _build_operation("about", record(name=SCHEMA, title=SCHEMA, instructions=SCHEMA))
TOOLS = _build_operation("tools.list", record(tools=array(TOOL), **LIST_FIELDS))
CALL_TOOL = _build_operation(
    "tools.call",
    record(content=array(BLOCK), structuredContent=ANY, isError=NUMBER, **RESULT_FIELDS),
)
RESOURCES = _build_operation(
    "resources.list", record(resources=array(record(**RESOURCE_FIELDS)), **LIST_FIELDS)
)
TEMPLATES = _build_operation(
    "resources.templates.list", record(resourceTemplates=array(RESOURCE_TEMPLATE), **LIST_FIELDS)
)
READ_RESOURCE = _build_operation("resources.read", record(contents=array(CONTENTS), **CACHE_FIELDS))
PROMPTS = _build_operation("prompts.list", record(prompts=array(PROMPT), **LIST_FIELDS))
GET_PROMPT = _build_operation(
    "prompts.get",
    record(
        description=PROTECTED, messages=array(record(role=ROLE, content=BLOCK)), **RESULT_FIELDS
    ),
)
COMPLETION = _build_operation(
    "completion.complete",
    record(
        completion=record(values=array(PROTECTED), total=NUMBER, hasMore=NUMBER), **RESULT_FIELDS
    ),
)
ERROR_ANSWER = _build_operation("error", record(message=PROTECTED))
PROGRESS = _build_operation("progress", record(message=PROTECTED))
