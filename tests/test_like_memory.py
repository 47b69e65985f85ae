"""The same behaviour as LangGraph's memory saver: stories of graphs, whose whole histories are compared.

Each story is told once on `InMemorySaver` and once on cpstore, over all ways in. What calls return, what
the graphs tell of themselves and of their subgraphs, and what the savers list have to be the same, ids aside.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END
from langgraph.types import Overwrite

from tests import graphs
from tests.histories import differences
from tests.stories import STORIES, story, story_of

if TYPE_CHECKING:
    from langgraph.types import Durability

    from cpstore import SQLAlchemySaver
    from tests.stories import Stage, Story
    from tests.ways import Door

# Time travel, replay, forks.


@story(graphs.walk_graph, "sync", "async", "exit")
async def run_again_and_again(stage: Stage) -> None:
    for mood in ("calm", "happy"):
        await stage.invoke({"steps": [mood], "mood": mood})
        await stage.state()


@story(graphs.walk_graph)
async def replay_old_checkpoints(stage: Stage) -> None:
    await stage.invoke({"steps": ["start"]})
    for config in await stage.configs():
        await stage.invoke(None, config)
    await stage.state()


@story(graphs.walk_graph)
async def new_input_at_old_checkpoints(stage: Stage) -> None:
    await stage.invoke({"steps": ["start"]})
    _, entered, left, *_ = await stage.configs()
    await stage.invoke({"steps": ["again"], "mood": "calm"}, left)
    await stage.invoke({"mood": "happy"}, entered)
    await stage.invoke({"steps": ["newest"]})


@story(graphs.walk_graph)
async def fork_by_updates(stage: Stage) -> None:
    await stage.invoke({"steps": ["start"]})
    _, entered, left, *_, end = await stage.configs()
    calm = await stage.update({"mood": "calm"}, left)
    happy = await stage.update({"mood": "happy", "steps": ["jump"]}, left, "right")
    for config in (happy, calm, end):
        await stage.invoke(None, config)
    await stage.invoke(None, await stage.update({"steps": ["back"]}, happy, "left"))
    await stage.update({"steps": ["as input"]}, entered, "__input__")
    await stage.invoke(None, await stage.update(None, left, "__copy__"))
    await stage.invoke(None, await stage.update(None, left, END))
    await stage.update(None, entered)


@story(graphs.walk_graph)
async def update_before_the_first_run(stage: Stage) -> None:
    await stage.update({"steps": ["by hand"], "mood": "calm"}, as_node="left")
    await stage.invoke(None)


@story(graphs.walk_graph, "sync", "async", "exit")
async def stop_before_a_node(stage: Stage) -> None:
    await stage.invoke({"steps": ["start"]}, interrupt_before=["right"])
    await stage.update({"mood": "happy"})
    await stage.invoke(None, interrupt_after=["right"])
    await stage.state()
    await stage.invoke(None)


@story(graphs.fragile_graph, "sync", "async", "exit")
async def fail_and_go_on(stage: Stage) -> None:
    await stage.invoke({"done": ["start"]})
    await stage.state()
    await stage.invoke(None)


# Interrupts.


@story(graphs.chat_graph, "sync", "async", "exit")
async def answer_and_answer_otherwise(stage: Stage) -> None:
    await stage.invoke({"messages": [HumanMessage("To Oslo?", id="m1")]})
    asked = (await stage.state()).config
    await stage.resume("yes")
    await stage.resume("no", asked)
    await stage.invoke(None, asked)


@story(graphs.guarded_graph, "sync", "async", "exit")
async def answer_parallel_questions_in_turn(stage: Stage) -> None:
    await stage.invoke({"done": []})
    west, east = (await stage.state()).interrupts
    await stage.resume({east.id: "east"})
    await stage.state()
    await stage.resume({west.id: "once"})
    again, *_ = (await stage.state()).interrupts
    await stage.resume({again.id: "twice"})


@story(graphs.guarded_graph)
async def answer_parallel_questions_at_once(stage: Stage) -> None:
    await stage.invoke({"done": []})
    west, east = (await stage.state()).interrupts
    await stage.resume({west.id: "west", east.id: "east"})
    await stage.resume("really")
    await stage.invoke({"done": ["next day"]})


# Subgraphs.


@story(graphs.nested_graph, "sync", "async", "exit")
async def answer_in_a_nested_graph(stage: Stage) -> None:
    await stage.invoke({"item": "lamp"})
    asked = await stage.state()
    await stage.resume("yes")
    await stage.resume("no", asked.config)
    await stage.invoke({"item": "table"})
    await stage.state()


@story(graphs.nested_graph)
async def travel_into_a_nested_graph(stage: Stage) -> None:
    await stage.invoke({"item": "lamp"})
    till = await stage.subgraph("till")
    for config in await stage.configs(till.config):
        await stage.state(config)
    await stage.update({"price": 99}, till.config)
    inner = await stage.subgraph("till", "inner")
    await stage.update({"item": "desk"}, inner.config)
    await stage.resume("yes")


@story(graphs.nested_graph)
async def act_for_a_nested_graph(stage: Stage) -> None:
    await stage.invoke({"item": "lamp"})
    await stage.invoke(None, await stage.update({"approved": True}, as_node="till"))
    await stage.state()


@story(graphs.inn_graph, "sync", "async", "exit")
async def call_a_graph_that_remembers(stage: Stage) -> None:
    for guest in ("Ann", "Bob"):
        await stage.invoke({"guest": guest})
        await stage.state()
        await stage.resume("enters")


@story(graphs.inn_graph)
async def travel_into_a_graph_that_remembers(stage: Stage) -> None:
    await stage.invoke({"guest": "Ann"})
    first = (await stage.state()).config
    await stage.resume("enters")
    await stage.invoke({"guest": "Bob"})
    porter = await stage.subgraph("porter")
    await stage.update({"visits": ["by hand"]}, porter.config)
    await stage.resume("enters")
    await stage.resume("leaves", first)
    await stage.invoke({"guest": "Cid"})


# Send.


@story(graphs.harvest_graph, "sync", "async", "exit")
async def fan_out(stage: Stage) -> None:
    await stage.invoke({"seeds": list(range(20))})
    await stage.state()


@story(graphs.harvest_graph)
async def fan_out_again_from_waiting_tasks(stage: Stage) -> None:
    await stage.invoke({"seeds": list(range(20))}, interrupt_before=["pick"])
    waiting = (await stage.state()).config
    for _ in range(2):
        await stage.invoke(None, waiting)
    await stage.invoke(None, await stage.update({"basket": " by hand"}, waiting, "pick"))


# The functional API.


@story_of(lambda saver: graphs.diary(saver, []), "sync", "async", "exit")
async def keep_a_diary(stage: Stage) -> None:
    for line in ("rain", "sun", "snow"):
        await stage.invoke(line)
        await stage.state()
        await stage.resume(f"signed {line}")
    first_question = (await stage.configs())[0]
    await stage.resume("signed otherwise", first_question)
    await stage.invoke("wind")


# Delta channels.


@story(graphs.ledger_graph, "sync", "async", "exit")
async def write_deltas(stage: Stage) -> None:
    for pages in (4, 1, 2):
        await stage.invoke({"lines": ["begin"], "pages": pages})
        await stage.state()


@story(graphs.ledger_graph)
async def fork_deltas(stage: Stage) -> None:
    await stage.invoke({"lines": ["begin"], "pages": 4})
    for config in (await stage.configs())[1::3]:
        await stage.state(config)
        await stage.invoke(None, config)
        await stage.invoke(None, await stage.update({"lines": ["by hand"]}, config, "line"))


@story(graphs.ledger_graph)
async def overwrite_deltas(stage: Stage) -> None:
    await stage.invoke({"lines": ["begin"], "pages": 3})
    await stage.update({"lines": Overwrite(["new"])}, as_node="turn")
    await stage.invoke({"notes": ["more"], "pages": 1})
    await stage.invoke({"lines": Overwrite(["from outside"]), "pages": 2})
    old = (await stage.configs())[4]
    await stage.invoke(None, await stage.update({"lines": Overwrite(["old"])}, old, "turn"))
    await stage.invoke(None, await stage.update(None, old, "__copy__"))


@story(graphs.archive_graph, "sync", "async", "exit")
async def write_deltas_in_a_graph_that_remembers(stage: Stage) -> None:
    for pages in (3, 1):
        await stage.invoke({"lines": ["begin"], "pages": pages})
        await stage.state()
    await stage.invoke(None, (await stage.configs())[1])


# All of them.


VARIANTS = [
    pytest.param(one, durability, id=f"{one.play.__name__}-{durability}")
    for one in STORIES
    for durability in one.durabilities
]


@pytest.mark.parametrize(("one", "durability"), VARIANTS)
async def test_story(one: Story, durability: Durability, saver: SQLAlchemySaver, door: Door) -> None:
    calls, history = await one.told(door, InMemorySaver(), durability)
    found_calls, found_history = await one.told(door, saver, durability)
    assert differences(found_calls, calls) == []
    assert differences(found_history, history) == []
