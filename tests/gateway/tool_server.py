"""A tool server whose data is private, for the tests of `textveil gateway mcp`; it notes in a file what it was asked.

In: `python tool_server.py NOTES [PORT]`. Out: a server over standard input and output, or over HTTP.
Not here: what is asserted.
"""

import base64
import json
import sys
from typing import Any

import anyio
import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.types import Completion, ImageContent, TextContent
from pydantic import BaseModel

NOTES = sys.argv[1]
MAIL, PHONE = "dora.braga@example.org", "+351 912 345 678"


class Person(BaseModel):
    """A person, as the tools tell of one."""

    name: str
    email: str
    phone: str
    account: int


server = MCPServer(
    "people of rui.server@example.org", instructions="Ask rui.server@example.org if in doubt."
)


def note(**said: Any) -> None:
    with open(NOTES, "a") as stream:
        stream.write(json.dumps(said) + "\n")


@server.tool(description="Finds a person, as admin.tool@example.org does")
def find_person(query: str) -> Person:
    note(tool="find_person", query=query)
    return Person(name="Dora", email=MAIL, phone=PHONE, account=4111111111111111)


@server.tool()
def say(text: str) -> str:
    note(tool="say", text=text)
    return f"{text}: {MAIL}"


@server.tool()
def send_mail(to: str, body: dict[str, Any]) -> str:
    note(tool="send_mail", to=to, body=body)
    return f"sent to {to}"


@server.tool()
def pay(account: int) -> str:
    note(tool="pay", account=account)
    return "paid"


@server.tool()
def fail(text: str) -> str:
    note(tool="fail", text=text)
    raise ValueError(f"cannot do that for {MAIL}")


@server.tool()
def big(lines: int) -> str:
    return "\n".join(f"person{i}@example.org owes {i}" for i in range(lines))


@server.tool()
def picture() -> list[Any]:
    data = base64.b64encode(f"picture of {MAIL}".encode()).decode()
    return [
        TextContent(type="text", text=f"of {MAIL}"),
        ImageContent(type="image", data=data, mime_type="image/png"),
    ]


@server.tool()
async def slow(context: Context) -> str:
    try:
        for i in range(100):
            await context.report_progress(i, 100, f"asking {MAIL}")
            await anyio.sleep(0.1)
    except anyio.get_cancelled_exc_class():
        note(tool="slow", cancelled=True)
        raise
    return "done"


@server.tool()
async def asks_back(context: Context) -> str:
    class Answer(BaseModel):
        ok: bool

    made = await context.elicit(f"May I write to {MAIL}?", Answer)
    return f"{made.action} {MAIL}"


@server.resource("people://all")
def everybody() -> str:
    return json.dumps({"mails": [MAIL]})


@server.resource("people://one/{mail}")
def one(mail: str) -> str:
    note(resource=mail)
    return f"{mail} is fine"


@server.prompt()
def letter(to: str) -> str:
    note(prompt=to)
    return f"Write a letter to {to} and {MAIL}"


@server.completion()
async def complete(ref: Any, argument: Any, context: Any) -> Completion:
    note(completion=argument.value)
    return Completion(values=[MAIL])


if __name__ == "__main__":
    if len(sys.argv) > 2:
        uvicorn.run(server.streamable_http_app(), port=int(sys.argv[2]), log_level="error")
    else:
        server.run()
