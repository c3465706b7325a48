"""The tables of the page on coding agents, from the stored rows.

In: rows/agents.jsonl, rows/costs.jsonl and rows/e2e.jsonl. Out: Markdown.
Not here: measuring (`agents`, `agent_costs`, `real_agents`), and filling in pages (`report`).
"""

from pathlib import Path

import rowfiles

ROWS = Path(__file__).resolve().parent / "rows" / "agents.jsonl"
COSTS, REAL = ROWS.with_name("costs.jsonl"), ROWS.with_name("e2e.jsonl")


def write_table() -> str:
    """Writes the table: a line for each agent."""
    cells: dict[str, dict[str, float]] = {}
    versions = {}
    for row in rowfiles.read(ROWS):
        cells.setdefault(row["agent"], {})[row["metric"]] = row["value"]
        options = f", `{row['gateway']}`" if row["gateway"] else ""
        versions[row["agent"]] = f"{row['version']}, {row['interface']}{options}"
    heads = [
        "agent",
        "version, interface",
        "turns",
        "refused",
        "planted values upstream",
        "files equal",
        "hidden without need, median (most)",
        "kept bytes changed",
        "processor a turn, s",
    ]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name, found in cells.items():
        line = [
            name,
            versions[name],
            f"{found['turns']:.0f} of {found['turns directly']:.0f}",
            f"{found['requests refused']:.0f}",
            f"{found['canaries upstream']:.0f}",
            f"{found['files equal']:.0f} of {found['files']:.0f}",
            f"{found['undue placeholders, median']:g} ({found['undue placeholders, most']:.0f})",
            f"{found['prefix bytes changed']:,.0f} of {found['prefix bytes']:,.0f}",
            f"{found['processor, a later turn']:.2f}",
        ]
        lines.append(f"| {' | '.join(line)} |")
    return "\n".join(lines) + "\n"


def write_costs() -> str:
    """Writes the table of costs: a line for each measurement, with what it is to be compared with."""
    lines = ["| what | value | beside |", "|---|---|---|"]
    for row in rowfiles.read(COSTS):
        value, what = row["value"], row["what"].removeprefix("costs, ")
        digits = 2 if 0 < value < 10 else 0
        beside = "; ".join(f"{name}: {told}" for name, told in row["beside"])
        lines.append(f"| {what} | {value:,.{digits}f} {row['unit']} | {beside} |")
    return "\n".join(lines) + "\n"


def write_real_table() -> str:
    """Writes the table of agents before a real small model: a line for each agent and policy."""
    cells: dict[tuple[str, str], dict[str, int]] = {}
    for row in rowfiles.read(REAL):
        if "agent" in row:
            cells.setdefault((row["agent"], row["unresolved"]), {})[row["metric"]] = row["value"]
    heads = [
        "agent, `unresolved`",
        "turns in tasks",
        "refused",
        "planted values upstream",
        "kept bytes changed",
        "placeholders said, left",
        "invented",
        "files written, with a placeholder",
    ]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for (name, unresolved), found in cells.items():
        line = [
            f"{name}, `{unresolved}`",
            f"{found['turns']} in {found['tasks']}",
            str(found["requests refused"]),
            str(found["planted values upstream"]),
            f"{found['prefix bytes changed']:,} of {found['prefix bytes']:,}",
            f"{found['placeholders said']}, {found['placeholders left']}",
            str(found["placeholders invented"]),
            f"{found['files written']}, {found['files written with a placeholder']}",
        ]
        lines.append(f"| {' | '.join(line)} |")
    return "\n".join(lines) + "\n"
