"""An agent of pydantic-ai with the four tools: python run_pydantic_ai.py TASK."""

import sys

import tools
from pydantic_ai import Agent

AGENT = Agent(
    "anthropic:claude-sonnet-4-5",
    instructions="You finish small projects with your tools.",
    tools=tools.OFFERED,
)
print(AGENT.run_sync(sys.argv[1]).output)
