"""Procedural world: houses, instructions, routes, and dialogues like those of CVDN."""

import re
from itertools import pairwise

import numpy as np
import pytest

from memenvs.vln.config import CVDNConfig, IR2RConfig, R2RConfig
from memenvs.vln.graph import VIEW_STEP, Graphs
from memenvs.vln.tokenizers import split_words
from memenvs.vln.worlds.procedural.dialogues import load_dialogues
from memenvs.vln.worlds.procedural.errands import load_errands
from memenvs.vln.worlds.procedural.houses import make_house
from memenvs.vln.worlds.procedural.texts import (
    BACK,
    LEFT,
    RIGHT,
    SubInstruction,
    arrival_column,
    compile_clauses,
    follow,
    read_clauses,
    write_instruction,
)
from memenvs.vln.worlds.procedural.world import HOUSES, Routes, load_routes
from tests.vln.toys import shortest_path


def read(text: str) -> tuple[SubInstruction, ...]:
    """Clauses of an English text, with turns that its words say too."""
    clauses = read_clauses(split_words(text))
    turns = [clause.turn for clause in clauses]
    words = {LEFT: "left", RIGHT: "right(?! there)", BACK: "around|back|retrace|return|reverse"}
    for turn, pattern in words.items():
        assert len(re.findall(rf"\b({pattern})\b", text.lower())) == turns.count(turn), text
    for clause in clauses:
        assert all(name in text.lower() for name in (*clause.last.rooms, *(clause.last.item or ()))), text
    return clauses


def test_a_follower_that_counts_clauses_reaches_the_goal():
    for legs in (1, 2, 3):
        world = load_routes("val_unseen", legs)
        for number in range(0, world.num_episodes, 19):
            episode = world.episode(number)
            clauses = read(episode.text)
            assert clauses == world.clauses(number), episode.text
            path = follow(world.houses[episode.house], episode.path[0], round(episode.heading / VIEW_STEP), clauses)
            assert tuple(path) == episode.path, episode.id


def ambiguous_share(world: Routes, moves: int) -> float:
    """Share of paths with two decisions of equal node, view and last moves but unequal actions."""
    ambiguous = []
    for number in range(0, world.num_episodes, 9):
        episode = world.episode(number)
        candidates, path = world.graphs[episode.house].candidates, episode.path
        views = [12 + round(episode.heading / VIEW_STEP)]
        views += [int(candidates.view[u, candidates.node[u].tolist().index(v)]) for u, v in pairwise(path)]
        situations = list(zip(path, views, strict=True))
        taken: dict[tuple, set] = {}
        for t, action in enumerate((*path[1:], "stop")):
            taken.setdefault(tuple(situations[max(0, t - moves) : t + 1]), set()).add(action)
        ambiguous.append(any(len(actions) > 1 for actions in taken.values()))
    return float(np.mean(ambiguous))


def test_repeated_moves_of_tours():
    """Four or more moves are repeated exactly where the last three do not determine the action."""
    world = load_routes("val_unseen", 3)
    numbers = range(0, world.num_episodes, 9)
    counts = [world.repeated_moves(number)[0] for number in numbers]
    assert min(counts) == 1
    assert np.mean([count > 3 for count in counts]) == ambiguous_share(world, 3)
    for number in numbers:  # the same moves were made earlier, followed by a different one
        count, decision = world.repeated_moves(number)
        path = world.episode(number).path
        repeated = path[decision - count : decision + 1]
        following = path[decision + 1 : decision + 2]
        earlier = [k + count + 1 for k in range(decision - count) if path[k : k + count + 1] == repeated]
        assert any(path[k : k + 1] != following for k in earlier)
    assert load_routes("val_unseen", 1).repeated_moves(5) == (0, 0)


def test_houses_are_like_the_real_ones():
    """Statistics of the houses, with those that were aimed at and those of real graphs.

    Viewpoints 110 and 117; mean degree 3.9 and 4.06; largest degree 8 and 13; edges 2.18 +- 0.78 and 2.27 +- 1.11 m.
    """
    houses = [make_house(seed) for seed in (*HOUSES["train"], *HOUSES["val_unseen"])]
    table = Graphs([house.graph for house in houses])
    count = np.array([len(house.graph) for house in houses])
    degree = (table.candidates.node >= 0).sum(1)
    length = table.candidates.length[table.candidates.node >= 0]
    assert count.min() >= 58 and 100 < count.mean() < 117 and count.max() <= 157
    assert degree.min() >= 1 and 3.85 < degree.mean() < 4.1 and degree.max() <= 9
    assert 2.1 < length.mean() < 2.45 and 0.75 < length.std() < 1.11
    assert all(np.isfinite(house.graph.distance).all() for house in houses)


def test_rooms_are_joined_by_doors_alone():
    house = make_house(3)
    rooms = [set(rooms_here) for rooms_here in house.room.tolist()]
    assert all(rooms[u] & rooms[v] for u, v in house.graph.edges.tolist())
    assert sum(len(rooms_here) == 2 for rooms_here in rooms) >= len(set().union(*rooms)) - 1
    for landmark, room in zip(house.landmarks, rooms, strict=True):
        assert (landmark.item is None) == (len(room) == 2)
    assert (house.is_visible == house.is_visible.T).all()


@pytest.mark.parametrize("legs", [1, 2, 3])
def test_legs_obey_the_rule_of_r2r(legs):
    """Each leg is a shortest path of 4 to 6 edges and at least 5 m, and a last leg crosses the ones before it."""
    world = load_routes("val_unseen", legs)
    texts = []
    for number in range(0, world.num_episodes, 11):
        episode = world.episode(number)
        graph, path = world.graphs[episode.house], episode.path
        assert len(episode.leg_ends) == legs
        assert len(split_words(episode.text)) < world.max_tokens
        parts = []
        start = 0
        for goal in episode.leg_ends:
            leg = shortest_path(graph, path[start], goal)
            assert 4 <= len(leg) - 1 <= 6 and graph.distance[path[start], goal] >= 5.0
            assert path[start : start + len(leg)] == leg
            parts.append(leg)
            start += len(leg) - 1
        assert start == len(path) - 1
        if legs > 1:
            assert {node for part in parts[:-1] for node in part[:-1]} & set(parts[-1][1:])
        texts.append(episode.text)
    assert {word for text in texts for word in split_words(text)} <= set(world.words)
    assert 200 <= len(world.words) <= 300


def test_splits_differ_in_houses_or_paths():
    train, seen, unseen = (load_routes(split, 1) for split in ("train", "val_seen", "val_unseen"))
    assert [world.num_episodes for world in (train, seen, unseen)] == [61 * 75 * 3, 61 * 6 * 3, 11 * 71 * 3]
    assert train.graphs == seen.graphs
    ends = [
        {(e.house, e.path[0], e.path[-1]) for e in map(world.episode, range(0, count, 3))}
        for world, count in ((train, 1350), (seen, 108))
    ]
    assert (len(ends[0]), len(ends[1])) == (450, 36)
    assert not ends[0] & ends[1]
    assert len({unseen.episode(k).text for k in range(3)}) == 3
    assert len({unseen.episode(k).path for k in range(3)}) == 1


def test_ids():
    routes, dialogues = load_routes("val_seen", 1), load_dialogues("val_unseen", "mixed", "all")
    for world in (routes, dialogues):
        for number in (0, 100, world.num_episodes - 1):
            assert world.episode_number(world.episode(number).id) == number
    assert routes.episode(0).id == "0-75_0"
    for world, names in ((routes, ("0-74_0", "0-75", "61-75_0", "0-75_3")), (dialogues, ("1000-1_0", "x"))):
        for wrong in names:
            with pytest.raises(ValueError, match=f"no episode '{wrong}' in this split; ids have the form "):
                world.episode_number(wrong)


@pytest.mark.slow
def test_dialogues_are_like_those_of_cvdn():
    """Statistics in bands around CVDN's.

    The planner's path has 5 edges at most. The player's has 6 on average and passes the planner's end in 60 % of
    the dialogues. The goal is 18.5 m away, and 24 % have no dialogue yet.
    """
    world = load_dialogues("val_unseen", "mixed", "all")
    dialogues = [world.dialogue(number) for number in range(0, world.num_episodes, 3)]
    assert max(len(dialogue.planner_path) for dialogue in dialogues) == 6
    assert 5 < np.mean([len(dialogue.player_path) - 1 for dialogue in dialogues]) < 7
    assert 0.5 < np.mean([dialogue.planner_path[-1] in dialogue.player_path[1:] for dialogue in dialogues]) < 0.75
    assert 0.18 < np.mean([not dialogue.turns for dialogue in dialogues]) < 0.3
    distances = []
    for dialogue in dialogues:
        house = world.houses[dialogue.house]
        start = dialogue.planner_path[0]
        assert dialogue.player_path[0] == start
        nearest = min(dialogue.region, key=lambda node: house.graph.distance[start, node])
        distances.append(house.graph.distance[start, nearest])
        assert dialogue.planner_path == shortest_path(house.graph, start, nearest)[:6]
        (room,) = {int(room) for node in dialogue.region for room in house.room[node]}
        assert dialogue.target in {item.name for item in house.items if item.room == room}
        assert len(dialogue.turns) % 2 == 0
        if dialogue.turns:
            clauses = read(dialogue.turns[-1][1])
            assert tuple(follow(house, start, round(dialogue.heading / VIEW_STEP), clauses)) == dialogue.planner_path
    assert 17 < np.mean(distances) < 20
    texts = " ".join(dialogue.text("all") for dialogue in dialogues)
    assert set(split_words(texts)) - {"[NAV]", "[ORA]", "[TAR]"} <= set(world.words)


def test_wrong_settings():
    for config in (R2RConfig, CVDNConfig):
        with pytest.raises(ValueError, match=r"legs must be an integer in 1 \.\.\. 3, or None, got 4"):
            config(legs=4)
    with pytest.raises(ValueError, match=r"legs must be 1 or None in world 'mp3d', whose dialogues .*, got 2"):
        CVDNConfig(legs=2, world="mp3d")
    with pytest.raises(ValueError, match="legs must be 1 or None in tours of world 'mp3d', got 2"):
        IR2RConfig(legs=2, world="mp3d")
    with pytest.raises(ValueError, match=r"supervision must be 'mixed' with 3 legs, .* got 'oracle'; legs=1 has all"):
        CVDNConfig(supervision="oracle")


def test_three_legs_are_the_default_where_there_are_legs():
    for config_class, published in ((R2RConfig, 15), (CVDNConfig, 40)):
        configs = [config_class(**settings) for settings in ({}, {"world": "mp3d"}, {"legs": 1})]
        assert [(config.num_legs, config.step_limit) for config in configs] == [(3, 45), *[(1, published)] * 2]
    assert CVDNConfig(legs=1, supervision="oracle").step_limit == 20


def test_an_errand_is_followed_answer_by_answer():
    """Each answer describes one leg from where the one before ends; the goal is at an item of the target's name."""
    for legs in (2, 3):
        world = load_errands("val_unseen", "all", legs)
        assert world.num_episodes == 11 * 71
        for number in range(0, world.num_episodes, 37):
            episode = world.episode(number)
            house = world.houses[episode.house]
            answers = re.findall(r"\[ORA\] (.*?)(?= \[|$)", episode.text)
            assert len(answers) == len(episode.leg_ends) == legs
            assert re.sub(r"(\[ORA\]|\[NAV\]).*?(?= \[|$)", r"\1", episode.text).split()[:2] == ["[NAV]", "[ORA]"]
            path, column = [episode.path[0]], round(episode.heading / VIEW_STEP)
            for answer, end in zip(answers, episode.leg_ends, strict=True):
                leg = follow(house, path[-1], column, read(answer))
                assert leg[-1] == end
                column = arrival_column(house, leg, column)
                path += leg[1:]
            assert tuple(path) == episode.path
            target = episode.text.split("[TAR] ")[1]
            (room,) = {int(room) for node in episode.region for room in house.room[node]}
            assert room in house.room[episode.leg_ends[-1]]
            assert target in {item.name for item in house.items if item.room == room}
            assert len(split_words(episode.text)) < world.max_tokens
            assert set(split_words(episode.text)) - {"[NAV]", "[ORA]", "[TAR]"} <= set(world.words)
        assert load_errands("val_unseen", "last_answer", legs).episode(0).text.count("[ORA]") == 1
        assert world.episode_number(world.episode(700).id) == 700


def test_ambiguous_paths_have_no_clauses():
    """A follower cannot choose between two neighbours with equal descriptions in the same direction."""
    house = make_house(2)
    refused = 0
    for node in range(len(house.graph)):
        neighbours = [there for there in house.graph.candidates.node[node].tolist() if there >= 0]
        for there in neighbours:
            clauses = compile_clauses(house, (node, there), 0)
            twins = [k for k in neighbours if k != there and house.landmarks[k] == house.landmarks[there]]
            assert clauses is not None or twins
            refused += clauses is None
            assert clauses is None or write_instruction(clauses, np.random.default_rng(0))
    assert refused > 0
