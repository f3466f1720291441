"""What the demo's agent proposed, what each change truly does, and what operators did about it.

Nothing here says how an experiment ends, except for what operators do: that the engine finds out.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal

from prx_engine.dimensions import Layer
from prx_tui.demo.workload import Behaviour

FIRST_DAY: Final = datetime(2026, 5, 4, tzinfo=UTC)
"""The first sessions of the history; a Monday."""

PROMPT_FILE: Final = "prompts/system.md"

FIRST_PROMPT: Final = """\
You are PRX, an agent that works in other people's repositories.

# Manner
- Be thorough and complete. Explain every step that you take and why you take it.
- Be polite. Thank the user for the request and apologise when something fails.
- End every answer by asking whether it helped.

# Work
- Read the files that matter before you change anything.
- Use the tools that you have; say which ones you used.
- Keep changes small, and run the tests.
"""

CONFIGURATION: Final = """\
# The configuration of the demo's agent. The tables under [self_evolution] belong to the experiments.

[self_evolution.experiments]
default_duration_hours = 168
min_sample_size = 100

[self_evolution.experiments.auto_converge]
check_interval_hours = 24
max_duration_hours = 336

[memory]
recall_limit = 50
query_messages = 1
ranking = "relevance"
scope = "project"
store_tool_results = false

[routing]
default = "opus"

[tools]
parallel_reads = 1
"""

Verb = Literal["cancel", "promote", "reject", "rollback"]


@dataclass(frozen=True, slots=True)
class Act:
    """What an operator does.

    Attributes:
        after: time since the experiment was created.
        verb: the action.
        reason: given with it.
    """

    after: timedelta
    verb: Verb
    reason: str


@dataclass(frozen=True, slots=True)
class Change:
    """A change that the agent proposes, with the truth about it that nobody in the demo knows.

    Attributes:
        decision: the agent's name of its decision; unique.
        layer, hypothesis, control, treatment: as proposed.
        effect: what the change truly does to a session.
        at: time of the proposal, since FIRST_DAY; None if it waits until its layer is free.
        config: keys that it sets in the promotion target.
        edit: turns the present system prompt into the proposed one.
        options: ``traffic_split`` and the like, if not the configured ones.
        falls_back: share of the treatment's sessions that the agent runs, and reports, as control.
        acts: what operators do about it.
    """

    decision: str
    layer: Layer
    hypothesis: str
    control: str
    treatment: str
    effect: Behaviour
    at: timedelta | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    edit: Callable[[str], str] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    falls_back: float = 0.0
    acts: tuple[Act, ...] = ()

    def variants(self, prompt: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return control and treatment as ``create_experiment`` takes them, given the present prompt."""
        before = {key: value for key in self.config if (value := _configured(key)) is not None}
        control = {"description": self.control, "config": before, "files": {}}
        treatment = {"description": self.treatment, "config": dict(self.config), "files": {}}
        if self.edit:
            control["files"], treatment["files"] = {PROMPT_FILE: prompt}, {PROMPT_FILE: self.edit(prompt)}
        return control, treatment


def _configured(key: str) -> Any:
    """Return what the agent's configuration says about a dotted key; None if nothing."""
    table, _, name = key.partition(".")
    return tomllib.loads(CONFIGURATION)[table].get(name)


def _day(days: int, hours: int, minutes: int = 0) -> timedelta:
    return timedelta(days=days, hours=hours, minutes=minutes)


def _line_changed(old: str, new: str) -> Callable[[str], str]:
    """Return an edit that changes one line of the prompt, or leaves a prompt without the line alone."""
    return lambda prompt: prompt.replace(f"{old}\n", f"{new}\n" if new else "")


def _line_added(heading: str, *added: str) -> Callable[[str], str]:
    return lambda prompt: prompt.replace(f"{heading}\n", "\n".join((heading, *added)) + "\n")


def _refined(prompt: str) -> str:
    goal = "# Goal\n- State the goal in one sentence, then the constraints, then begin.\n\n"
    return prompt.replace("# Manner\n", f"{goal}# Manner\n").replace(
        "- Use the tools that you have; say which ones you used.\n",
        "- Choose the tool by what it returns; check what came back before going on.\n",
    )


def _shortened(prompt: str) -> str:
    kept = (
        line
        for line in prompt.splitlines(keepends=True)
        if not line.startswith(("- Be thorough", "- Be polite", "- End every answer"))
    )
    return "".join(kept).replace("# Manner\n", "# Manner\n- Be brief. Give reasons only when asked.\n")


HISTORY: Final = (
    # L1, memory
    Change(
        decision="dec-0101",
        layer="L1",
        hypothesis="Summarise memories older than a week",
        control="Memories are kept word for word",
        treatment="Memories older than 7 days are replaced by a summary",
        config={"memory.summarise_after_days": 7},
        effect=Behaviour(memory=0.10, relevance=0.035, efficiency=0.04),
        at=_day(1, 9, 40),
    ),
    Change(
        decision="dec-0107",
        layer="L1",
        hypothesis="Search memories with the whole conversation",
        control="The last message is the search",
        treatment="The last 20 messages are the search",
        config={"memory.query_messages": 20},
        effect=Behaviour(memory=0.03, latency=-0.05),
        at=_day(9, 14, 25),
        acts=(Act(_day(2, 4, 50), "cancel", "Recall takes twice as long and the index host swaps"),),
    ),
    Change(
        decision="dec-0110",
        layer="L1",
        hypothesis="Store tool results as memories",
        control="Only conversations become memories",
        treatment="Every tool result becomes a memory too",
        config={"memory.store_tool_results": True},
        effect=Behaviour(relevance=-0.12, memory=-0.16, efficiency=-0.12, latency=-0.08),
        at=_day(12, 10, 50),
    ),
    Change(
        decision="dec-0113",
        layer="L1",
        hypothesis="Rank memories by recency before relevance",
        control="Most relevant first",
        treatment="Most recent first among the relevant ones",
        config={"memory.ranking": "recency"},
        effect=Behaviour(memory=-0.04, relevance=-0.008),
        at=_day(16, 7, 15),
    ),
    Change(
        decision="dec-0120",
        layer="L1",
        hypothesis="Share memories between projects",
        control="Each project has memories of its own",
        treatment="Memories of all projects are searched; one session in ten for now",
        config={"memory.scope": "user"},
        effect=Behaviour(memory=0.06, relevance=0.02),
        at=_day(24, 9, 30),
        options={"traffic_split": 0.1, "min_sample_size": 250},
    ),
    Change(
        decision="dec-0131",
        layer="L1",
        hypothesis="Keep 30 memories, not 50",
        control="50 memories in the context",
        treatment="30 memories in the context; while the new index warms up, sessions run as control",
        config={"memory.recall_limit": 30},
        effect=Behaviour(efficiency=0.12, latency=0.09, memory=0.08, relevance=0.015),
        at=_day(38, 21, 20),
        falls_back=0.38,
    ),
    # L2, prompt
    Change(
        decision="dec-0102",
        layer="L2",
        hypothesis="Number the steps of every plan",
        control="Plans are prose",
        treatment="Plans are numbered lists, repeated after each step",
        edit=_line_added("# Work", "- Number the steps of your plan and repeat the list after each step."),
        effect=Behaviour(relevance=-0.03, latency=-0.04, efficiency=-0.05),
        at=_day(2, 14, 30),
    ),
    Change(
        decision="dec-0108",
        layer="L2",
        hypothesis="Repeat the request before answering",
        control="The answer begins at once",
        treatment="The request is repeated in one sentence first",
        edit=_line_added("# Manner", "- Repeat the request in one sentence before you answer."),
        effect=Behaviour(latency=-0.02),
        at=_day(10, 8, 5),
        acts=(Act(_day(1, 1, 40), "cancel", "Duplicate of dec-0098, which lost in April"),),
    ),
    Change(
        decision="dec-0111",
        layer="L2",
        hypothesis="Refined system prompt: goal first, then constraints",
        control="System prompt of April",
        treatment="States the goal first and checks what tools return",
        edit=_refined,
        effect=Behaviour(relevance=0.055, completion=0.05),
        at=_day(12, 8, 35),
    ),
    Change(
        decision="dec-0117",
        layer="L2",
        hypothesis="Three worked examples in the prompt",
        control="No examples",
        treatment="Three worked examples, 2,300 tokens",
        edit=lambda prompt: (
            f"{prompt}\n# Examples\n- See examples/rename.md, examples/bisect.md, examples/port.md.\n"
        ),
        effect=Behaviour(relevance=0.03, efficiency=-0.06, latency=-0.01),
        at=_day(20, 9, 25),
        acts=(Act(_day(4, 20, 10), "reject", "2,300 tokens a session is over budget at any fitness"),),
    ),
    Change(
        decision="dec-0122",
        layer="L2",
        hypothesis="Do not ask whether the answer helped",
        control="Every answer ends with a question for feedback",
        treatment="No question at the end",
        edit=_line_changed("- End every answer by asking whether it helped.", ""),
        effect=Behaviour(efficiency=-0.01, relevance=-0.008, feedback=-0.40),
        at=_day(26, 7, 10),
    ),
    Change(
        decision="dec-0127",
        layer="L2",
        hypothesis="Answer first, explain afterwards",
        control="Explanation leads to the answer",
        treatment="The answer stands in the first sentence",
        edit=_line_added("# Manner", "- Put the answer into the first sentence; explain afterwards."),
        effect=Behaviour(relevance=0.04, latency=0.04, satisfaction=0.06),
        at=_day(34, 12, 5),
    ),
    Change(
        decision="dec-0134",
        layer="L2",
        hypothesis="Shorter system prompt",
        control="The system prompt as it has grown",
        treatment="Brief manner; no thanks, no apologies, no question for feedback",
        edit=_shortened,
        effect=Behaviour(efficiency=0.10, latency=0.07, relevance=0.04, feedback=-0.33),
        at=_day(44, 16, 40),
    ),
    # L3, strategy
    Change(
        decision="dec-0104",
        layer="L3",
        hypothesis="Use the small model for file search",
        control="One model for everything",
        treatment="File search runs on the small model",
        config={"routing.file_search": "small"},
        effect=Behaviour(latency=0.10, efficiency=0.09),
        at=_day(4, 7, 45),
        acts=(Act(_day(11, 2, 20), "rollback", "Support: opens wrong files in large repositories"),),
    ),
    Change(
        decision="dec-0114",
        layer="L3",
        hypothesis="Run read-only tools in parallel",
        control="One tool at a time",
        treatment="Up to 4 read-only tools at once",
        config={"tools.parallel_reads": 4},
        effect=Behaviour(latency=0.07, completion=0.01),
        at=_day(17, 8, 15),
        acts=(Act(_day(3, 6, 30), "promote", "Waiting time is halved; no need to wait for day 7"),),
    ),
    Change(
        decision="dec-0119",
        layer="L3",
        hypothesis="Retry a failed tool with the large model",
        control="The same model tries again",
        treatment="The second try goes to the large model",
        config={"routing.retry": "large"},
        effect=Behaviour(completion=0.03, latency=-0.04),
        at=_day(22, 12, 40),
        acts=(Act(_day(1, 12, 15), "cancel", "Provider outage on 27 May: most retries timed out"),),
    ),
    Change(
        decision="dec-0123",
        layer="L3",
        hypothesis="Plan with the large model, act with the small one",
        control="One model plans and acts",
        treatment="The small model acts on the large model's plan",
        config={"routing.act": "small"},
        effect=Behaviour(completion=-0.10, latency=0.02),
        at=_day(26, 10, 10),
    ),
    Change(
        decision="dec-0128",
        layer="L3",
        hypothesis="Route simple coding to Sonnet",
        control="All coding goes to Opus",
        treatment="Edits of a single file go to Sonnet; one session in five for now",
        config={"routing.simple_coding": "sonnet"},
        effect=Behaviour(latency=0.05, efficiency=0.04, relevance=-0.005),
        at=_day(35, 6, 30),
        options={"traffic_split": 0.2},
    ),
)
"""Everything up to the moment when the dashboard opens, in order of layers."""

NEXT: Final = (
    Change(
        decision="dec-0135",
        layer="L2",
        hypothesis="Name file and line of every claim",
        control="Claims stand alone",
        treatment="Every claim about code names its file and line",
        edit=_line_added("# Work", "- Name file and line of everything that you claim about code."),
        effect=Behaviour(relevance=0.06, completion=0.03),
    ),
    Change(
        decision="dec-0136",
        layer="L1",
        hypothesis="Merge memories that say the same",
        control="Duplicates are kept",
        treatment="Near duplicates are merged at night",
        config={"memory.merge_duplicates": True},
        effect=Behaviour(memory=0.09, relevance=0.03),
    ),
    Change(
        decision="dec-0137",
        layer="L3",
        hypothesis="Run the tests before the answer",
        control="Tests run when asked for",
        treatment="The tests of changed files run before every answer",
        config={"tools.test_before_answer": True},
        effect=Behaviour(completion=0.12, latency=-0.05),
    ),
    Change(
        decision="dec-0138",
        layer="L2",
        hypothesis="Warn about guesses",
        control="Guesses look like facts",
        treatment="A guess is called a guess",
        edit=_line_added("# Work", "- Call a guess a guess."),
        effect=Behaviour(relevance=0.002),
    ),
    Change(
        decision="dec-0139",
        layer="L1",
        hypothesis="Recall before every tool call",
        control="Recall once at the start",
        treatment="Recall again before every tool call",
        config={"memory.recall_before_tools": True},
        effect=Behaviour(relevance=-0.05, latency=-0.20, efficiency=-0.20),
    ),
    Change(
        decision="dec-0140",
        layer="L3",
        hypothesis="Small model for commit messages",
        control="One model for everything",
        treatment="Commit messages come from the small model",
        config={"routing.commit_message": "small"},
        effect=Behaviour(latency=0.05, efficiency=0.08),
    ),
)
"""Proposed one after another, each as soon as its layer is free."""
