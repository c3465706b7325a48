"""An agent of LangGraph with the four tools: python run_langgraph.py TASK."""

import sys

import tools
from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

AGENT = create_agent(
    ChatOpenAI(model="gpt-4.1-mini", streaming=True),
    [tool(each) for each in tools.OFFERED],
    system_prompt="You finish small projects with your tools.",
)
SAID = AGENT.invoke({"messages": [("user", sys.argv[1])]}, {"recursion_limit": 80})
print(SAID["messages"][-1].content)
