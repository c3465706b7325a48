"""An agent of LangGraph with the four tools: python run_langgraph.py TASK."""

import sys

import tools
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.prebuilt import create_react_agent

AGENT = create_react_agent(
    ChatOpenAI(model="gpt-4.1-mini", streaming=True),
    [
        tool(each)
        for each in (tools.read_file, tools.write_file, tools.edit_file, tools.run_command)
    ],
    prompt="You finish small projects with your tools.",
)
SAID = AGENT.invoke({"messages": [("user", sys.argv[1])]}, {"recursion_limit": 80})
print(SAID["messages"][-1].content)
