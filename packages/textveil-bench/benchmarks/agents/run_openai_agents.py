"""An agent of openai-agents with the four tools: python run_openai_agents.py TASK."""

import asyncio
import sys

import tools
from agents import Agent, Runner, function_tool, set_tracing_disabled

set_tracing_disabled(True)
AGENT = Agent(
    name="Worker",
    instructions="You finish small projects with your tools.",
    model="gpt-5-mini",
    tools=[function_tool(each) for each in tools.OFFERED],
)


async def run(task: str) -> None:
    """Runs the agent, streamed."""
    result = Runner.run_streamed(AGENT, task, max_turns=30)
    async for _ in result.stream_events():
        pass
    print(result.final_output)


asyncio.run(run(sys.argv[1]))
