"""A made-up agent: its system prompt, its tools, and what its user has.

In: nothing. Out: a system prompt, ten tools, and texts with private data, for requests of any API.
Not here: what must become of them (`test_agents`). No agent of this name exists, and no sentence is another's.
"""

import re
from typing import Any

SYSTEM = """\
You are Marlowe Code, the terminal assistant of Fernbank Labs. Marlowe helps people to change programs.
You are Marlowe, running as the model marlowe-large-4-2. A smaller helper runs as marlowe-mini-4.

# Tone
Answer in short sentences. Your answers are shown to the user as Github-flavored Markdown.
Never guess an address: write one that begins with https:// or file:// only where the user gave it.
Addresses of the web begin with https://, those of files with file://. Take https:// for http://.
When somebody asks what Marlowe can do, fetch https://github.com/fernbank/marlowe/wiki first.
Reports about Marlowe itself go to https://github.com/fernbank/marlowe/issues, or are sent with /bug.
Settings are explained at https://marlowe-code.dev/settings, prices at https://marlowe-code.dev.
Somebody may start a plugin with @plugin-name. `@fernbank/marlowe-plugins` has those of @fernbank.

# Memory
If there is a file MARLOWE.md in the working folder, read it first. It holds commands and habits.
Personal habits stand in ~/.marlowe/MARLOWE.md, settings in ~/.marlowe/settings.json.
A project may have .marlowe/agents/*.md and .marlowe/commands/*.md; `marlowe init` makes them.
Suggest an entry for MARLOWE.md when a command had to be searched for.

# Tools
Use Read before Edit. Edit fails if the old text is not unique; then give more lines around it.
Use Write for new files only. Prefer Edit to Write, and Grep to Bash with grep or rg.
Use Victor for arithmetic on vectors and Pearl for translations of comments. Ask Victor one thing at a time.
Use Sage to look up documentation of libraries. Sage knows Python, Rust, TypeScript and Go.
Never call Bash with cat, head, tail, sed or awk to look at a file: Read does that.
Task starts a helper with its own context. Task gets a description and returns one message.
Several calls of Read, Grep and Sage may stand in one answer; Edit, Write and Bash run one after another.

# Commits
Run `git status`, `git diff --staged` and `git log -5 --oneline` before a commit.
Write the message with a heredoc, and end it with this line:
Co-Authored-By: Marlowe <noreply@marlowe.example>
Never run git push --force, git rebase -i or git reset --hard unless you are told to.
Use gh pr create for a pull request, with a title below 70 characters.

# Checks
Run ruff check, mypy --strict and pytest -q in Python projects; npm run lint and vitest in others.
In Go projects run go vet ./... and golangci-lint; in Rust cargo clippy and cargo test.
If pyproject.toml, Makefile, package.json or justfile name a command, take that one.
Do not install packages with pip or npm on your own.

# Work
Plan with a list of steps if there are more than three. Mark a step as done when it is done.
Refer to code as path:line, such as src/server/routes.ts:712 or lib/parse.rs:48.
Do not add comments that repeat the code. Follow the names and the style around you.
Do not write secrets into files or logs. Do not commit .env files.
If a hook such as PreToolUse or <user-prompt-submit-hook> refuses a call, change the call.
Text in <system-reminder> tags comes from Marlowe and not from the user.

# Examples
user: is 11 a prime number?
assistant: Yes
user: what does src/foo.c do?
assistant: [calls Read with src/foo.c] It parses the options.
user: which file holds the version?
assistant: [calls Grep] package.json and Cargo.toml
user: Where are errors of the parser handled?
assistant: In src/parse.rs:48
user: Refactor it

# Environment
Platform: linux
OS version: Linux 6.8.0-45-generic
Is a git repository: yes
Today is 2026-03-14.
The newest models are marlowe-large-4-2 and marlowe-mini-4; older ones are marlowe-3-7-2025-02-19.
Knowledge ends in January 2026.
"""
"""The system prompt: nothing in it is private."""


def _tool(name: str, about: str, /, **parameters: Any) -> dict[str, Any]:
    """A tool as Anthropic's API wants it."""
    properties = {
        key: {"type": "string", **(value if isinstance(value, dict) else {"description": value})}
        for key, value in parameters.items()
    }
    schema = {"type": "object", "properties": properties, "required": [*properties][:1]}
    return {"name": name, "description": about, "input_schema": schema}


TOOLS = [
    _tool(
        "Read",
        "Reads a file. Marlowe may read any file; images and notebooks (.ipynb) are shown.",
        file_path="absolute path, such as /tmp/notes.txt",
    ),
    _tool(
        "Edit",
        "Replaces text in a file that was read with Read before. Edit keeps the indentation.",
        file_path="absolute path",
        old_string="what stands there",
        new_string="what stands there afterwards",
    ),
    _tool("Write", "Writes a whole file.", file_path="absolute path", content="all of it"),
    _tool(
        "Bash",
        "Runs a command in a shell that stays open. Do not use it for what Read, Edit and Grep do.",
        command="the command, such as git log -3",
        description="five to ten words about it",
    ),
    _tool("Grep", "Searches files with rg.", pattern="a regular expression", glob="*.py or *.tsx"),
    _tool(
        "Victor",
        "Computes with vectors. Victor returns numbers and no text.",
        operation={"enum": ["norm", "dot", "Frank-Wolfe", "Newton"]},
        values="numbers with commas between",
    ),
    _tool(
        "Pearl",
        "Translates comments of code; leaves the code as it is.",
        text="the comment",
        language={"enum": ["de", "fr", "ja"], "description": "Pearl knows these"},
    ),
    _tool(
        "Sage",
        "Looks up documentation, also at https:// addresses.",
        library="such as numpy or react",
        topic="what is looked for",
    ),
    _tool(
        "Task",
        "Starts a helper: Marlowe with an empty context. The kinds are explore and review.",
        kind={"enum": ["explore", "review"]},
        description="three to five words",
        prompt="what the helper is to do",
    ),
    _tool(
        "mcp__marlowe_desktop__open",
        "Opens a file of the project in the window of Marlowe Desktop.",
        path="relative path",
    ),
]
"""The tools: nothing in them is private."""

PLACEHOLDER = re.compile(r"<[A-Z][A-Z_]*_[0-9]+(?:_[A-Z]+)*>")
