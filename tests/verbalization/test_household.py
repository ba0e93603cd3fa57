"""The household: plans, failures, durations, key frames and signals."""

import math

import numpy as np
import pytest

from memenvs.verbalization.histories import generate_pool
from memenvs.verbalization.household_config import PRESETS, household
from memenvs.verbalization.plans import (
    SPEED,
    HouseholdState,
    base_seconds,
    draw_goal_kind,
    draw_goals,
    draw_house,
    execute,
    is_held_out,
    make_plan,
    tidy,
)
from memenvs.verbalization.signals import LATENT_WIDTH, SUB_WIDTH, frame_times, image_latents, record
from memenvs.verbalization.symbols import (
    FAMILIES,
    LOCATIONS,
    OBJECTS,
    PLACE_LOCATIONS,
    SYMBOL_IDS,
    SYMBOLS,
    Goal,
)

LEFT, RIGHT = "handleft3a", "handright3a"
CERTAIN = household("faithful", failure=(0.0, 0.0, 0.0), duration_noise=0.0)


def run(config, goals, house, seed=0):
    rng = np.random.default_rng(seed)
    return execute(config, goals, make_plan(goals, house, rng), house, rng)


def executions(config, count):
    for number in range(count):
        rng = np.random.default_rng([1, number])
        kind = draw_goal_kind(config, rng)
        house = draw_house(config, 3, rng)
        goals = draw_goals(config, kind, house, rng)
        yield execute(config, goals, make_plan(goals, house, rng), house, rng)


def test_plan_fetches_two_objects_before_it_delivers_them_and_skips_moves_to_where_it_is():
    carried = Goal("objectAt", "greencup", "sink"), Goal("objectAt", "corn", "smalltable")
    goals = (*carried, Goal("grasped", "oil", RIGHT))
    spots = {"greencup": ("fridge", 0), "corn": ("sideboard", 2), "oil": ("sideboard", 1), "nesquik": ("sink", 0)}
    house = HouseholdState("fridge", spots)
    done = run(CERTAIN, goals, house)
    first, second = (action.hand for action in done.actions if action.verb == "grasp" and action.object != "oil")
    assert {first, second} == {LEFT, RIGHT}
    assert [(action.verb, *action.arguments[1:]) for action in done.actions] == [
        ("grasp", first, "fridge", "greencup"),
        ("move", "fridge", "sideboard"),
        ("grasp", second, "sideboard", "corn"),
        ("move", "sideboard", "sink"),
        ("putdown", first, "sink", "greencup"),
        ("move", "sink", "smalltable"),
        ("putdown", second, "smalltable", "corn"),
        ("move", "smalltable", "sideboard"),
        ("grasp", RIGHT, "sideboard", "oil"),
    ]
    assert done.status == "success" and done.outcomes == (True, True, True)
    assert done.scene.robot == "fridge" and done.scene.objects["greencup"] == ("fridge", 0)
    # Slot 0 of the sink was taken.
    assert house.robot == "sideboard" and house.in_hand == {"oil": RIGHT}
    assert house.objects == {"nesquik": ("sink", 0), "greencup": ("sink", 1), "corn": ("smalltable", 0)}
    base = base_seconds()
    move = 4 + math.hypot(1500 - 1200, 9200 - 6800) / 1000 / SPEED
    expected = [base["grasp", "greencup"], move, base["grasp", "corn"]]
    assert [action.duration for action in done.actions[:3]] == [round(seconds) for seconds in expected]
    assert all(b.start == a.end + 1 for a, b in zip(done.actions, done.actions[1:], strict=False))


def test_first_failure_ends_an_episode_and_the_goals_behind_it():
    config = household("faithful", failure=(0.0, 0.0, 1.0), abort_share=0.0)
    goals = (Goal("objectAt", "greencup", "sink"), Goal("grasped", "oil", RIGHT))
    house = HouseholdState("roomcenter", {"greencup": ("fridge", 0), "oil": ("fridge", 1)})
    done = run(config, goals, house)
    assert [action.status for action in done.actions] == ["success", "success", "success", "failure"]
    assert done.actions[-1].verb == "putdown" and done.status == "failure" and done.outcomes == (False, False)
    assert "greencup" in house.in_hand
    tidy(config, house, np.random.default_rng(0))
    assert not house.in_hand and house.objects["greencup"][0] in config.pick_locations
    assert run(household("faithful", failure=(1.0, 0.0, 0.0), abort_share=1.0), goals, house).status == "abort"
    stopped = run(household("faithful", failure=(0.0, 0.0, 0.0), incomplete=1.0), goals, house)
    assert stopped.status == "abort" and not all(stopped.outcomes)
    assert all(action.status == "success" for action in stopped.actions)


@pytest.mark.parametrize(
    ("count", "tolerance"),
    [pytest.param(1000, 0.005, marks=pytest.mark.slow), pytest.param(20_000, 0.003, marks=pytest.mark.nightly)],
)
def test_published_statistics_of_episodes(count, tolerance):
    """Published figures: actions of an episode, failures, answers "about one minute"."""
    config = household("faithful", key_frames="events")
    done = list(executions(config, count))
    actions = [action for each in done for action in each.actions]
    assert abs(len(actions) / count - 5.1) < 0.3
    failures = np.mean([action.status == "failure" for action in actions])
    assert abs(failures - 0.028) < tolerance
    assert abs(np.mean([each.status != "success" for each in done]) - 0.14) < 0.025
    frames = [len(frame_times(config, each.actions)[0]) for each in done]
    assert 10.0 < np.mean(frames) < 10.9
    windows = [len(frame_times(household("faithful"), each.actions)[0]) for each in done]
    assert 40 < np.mean(windows) < 46
    low, middle, high = np.percentile(windows, [10, 50, 90])
    assert 11 < low < 18 and 32 < middle < 39 and 75 < high < 92
    assert abs(np.mean([each.actions[-1].end for each in done]) - 187) < 12
    # Questions about durations are about grasps, putdowns and moves equally often.
    about_a_minute, majority = [], []
    for verb in ("move", "grasp", "putdown"):
        answers = {}
        done_well = [action for action in actions if action.verb == verb and action.status == "success"]
        for action in done_well:
            rough = round(action.duration / 10) if action.duration < 45 else -round(action.duration / 60)
            answers.setdefault(action.object or action.location, []).append(rough)
        about_a_minute.append(sum(rounded.count(-1) for rounded in answers.values()) / len(done_well))
        majority.append(sum(max(map(rounded.count, rounded)) for rounded in answers.values()) / len(done_well))
    assert abs(np.mean(about_a_minute) - 0.42) < 0.03
    assert abs(np.mean(majority) - 0.91) < 0.02


def test_debiased_household_has_other_durations_places_and_scenes():
    config = household("debiased", continuous=False)
    assert config.scene_objects == (1, 6)
    done = list(executions(config, 600))
    for each in done:
        places = [goal.place for goal in each.goals if goal.predicate == "objectAt"]
        assert len(places) == len(set(places))
        for family in FAMILIES:
            assert len(each.scene.objects.keys() & set(family)) <= 2
    assert {each.scene.robot for each in done} == set(LOCATIONS)
    actions = [action for each in done for action in each.actions]
    assert abs(np.mean([action.status == "failure" for action in actions]) - 0.05) < 0.012
    places = [goal.place for each in done for goal in each.goals if goal.predicate == "objectAt"]
    assert max(places.count(name) for name in PLACE_LOCATIONS) < 0.2 * len(places)
    seconds = np.log([action.duration for action in actions if action.verb == "grasp"])
    assert seconds.std() > 0.6


def test_goals_of_a_fifth_of_the_pairs_are_held_out():
    """Those of a split: test_splits_and_scales of test_histories.py."""
    held_out = [[is_held_out(each, place) for place in PLACE_LOCATIONS] for each in OBJECTS]
    assert all(1 <= sum(row) <= 2 for row in held_out)


def test_objects_stay_where_they_were_put_in_a_continuous_house():
    config = household("debiased", chain_length=6, key_frames="events")
    pool = generate_pool(config, 12, (0,))
    assert pool.chain == 6
    pairs = zip(pool.episodes, pool.episodes[1:], strict=False)
    for before, after in (pair for pair in pairs if pair[1].number % 6):
        expected = {symbol: place for symbol, (place, _) in before.scene.objects.items()}
        loose = set()
        for action in before.actions:
            if action.status == "success" and action.verb == "grasp":
                loose.add(action.object)
            elif action.status == "success" and action.verb == "putdown":
                loose.remove(action.object)
                expected[action.object] = action.location
        assert after.scene.objects.keys() == expected.keys()
        for symbol, (place, _) in after.scene.objects.items():
            assert place in config.pick_locations if symbol in loose else place == expected[symbol]
        moves = [action for action in before.actions if action.verb == "move" and action.status == "success"]
        assert after.scene.robot == (moves[-1].location if moves else before.scene.robot)
        assert len(set(after.scene.objects.values())) == len(after.scene.objects)


def test_windows_keep_every_event():
    for config in (household("faithful"), household("faithful", key_frames="events")):
        pool = generate_pool(config, 20, (1,))
        for episode in pool.episodes:
            frames = episode.frames
            events = [(action.start, 0) for action in episode.actions]
            events += [(action.end, 1 if action.status == "success" else 2) for action in episode.actions]
            recorded = [(int(frames.time[k]), int(frames.state[k, 1])) for k in np.flatnonzero(frames.action)]
            assert recorded == sorted(events)
            steps = np.diff(frames.time)
            assert (steps > 0).all()
            if config.key_frames == "windows":
                assert steps.max() <= config.window_seconds
            else:
                assert frames.action.all()
            status = ("success", "abort", "failure").index(episode.status)
            assert frames.state[-1, 0] == status and (frames.state[:-1, 0] == -1).all()
            goals = [SYMBOL_IDS[goal.symbol] for goal in episode.goals]
            assert (frames.goal[:, : len(goals)] == goals).all() and not frames.goal[:, len(goals) :].any()
            arguments = [SYMBOL_IDS[each] for each in episode.actions[0].arguments]
            assert frames.args[0].tolist() == arguments + [0] * (5 - len(arguments))
            assert episode.duration == frames.time[-1] == episode.actions[-1].end


def test_object_slots_hold_first_sights_then_what_the_hand_does():
    goals = (Goal("objectAt", "greencup", "countertop"),)
    spots = {"greencup": ("sideboard", 0), "corn": ("sideboard", 1), "oil": ("sideboard", 2)}
    config = household("faithful", failure=(0.0, 0.0, 0.0), key_frames="events")
    done = run(config, goals, HouseholdState("roomcenter", spots))
    frames, view, _ = record(config, [done], [np.random.default_rng(0)])
    hand = done.actions[1].hand
    objects = [{SYMBOLS[each] for each in row if each} for row in frames.objects]
    # Starts and ends of: move to the sideboard, grasp, move to the countertop, putdown.
    assert objects[0] == set() and len(objects[1]) == 2 and len(objects[2]) == 2
    assert objects[1] | objects[2] >= {"greencup", "corn", "oil"}
    assert objects[3] == objects[7] == {"greencup", hand} and objects[4] == {"corn", "oil"}  # seen longest ago
    assert (frames.state[:, 2:] == -1).sum() == (frames.objects == 0).sum()
    first_sights = frames.state[:, 2:] == 1
    assert sorted(SYMBOLS[each] for each in frames.objects[first_sights]) == sorted([*spots, hand])
    # Positions: 0 where the slot is empty; the cup lies ahead before, and is in the hand after.
    positions = frames.sub[:, :6].reshape(-1, 2, 3)
    assert not positions[0].any()
    cup = [positions[k, list(frames.objects[k]).index(SYMBOL_IDS["greencup"])] for k in (3, 7)]
    side = 250 if hand == LEFT else -250
    assert np.abs(cup[0] - (350, side, 1050)).max() < 30
    assert np.abs(cup[1] - (700 - 125, 125, 900)).max() < 30
    for k, name in ((0, "roomcenter"), (1, "sideboard"), (7, "countertop")):
        pose, place = frames.sub[k, 6:9], LOCATIONS[name]
        assert np.abs(pose[:2] - (place.x, place.y)).max() < 50
        assert abs(math.remainder(pose[2] - math.radians(place.yaw), 2 * math.pi)) < 0.05
    assert image_latents(view, np.random.default_rng(0)).shape == (8, LATENT_WIDTH)


def test_a_failed_grasp_is_visible_in_the_signals():
    goals = (Goal("grasped", "greencup", LEFT),)
    ends = []
    for failure in (0.0, 1.0):
        config = household("faithful", failure=(0.0, failure, 0.0))
        done = run(config, goals, HouseholdState("fridge", {"greencup": ("fridge", 3)}))
        frames = record(config, [done], [np.random.default_rng(0)]).frames
        assert frames.sub.shape[1] == SUB_WIDTH == 129 and np.isfinite(frames.sub).all()
        ends.append(frames)
    failed = ends[1]
    slot = failed.objects[-1].tolist().index(SYMBOL_IDS["greencup"])
    assert np.abs(failed.sub[-1, 3 * slot : 3 * slot + 3] - (700 + 125, -125, 900)).max() < 30
    currents = [frames.sub[-1, 9 + 80 : 9 + 80 + 14].mean() for frames in ends]
    assert currents[0] > 0.4 and currents[1] > 1.5  # the load, and a spike of the left arm
    angles = [frames.sub[-1, 9:23] - frames.sub[0, 9:23] for frames in ends]
    assert np.abs(angles[0] - angles[1]).max() > 0.2  # the lift was broken off


def test_shift_offsets_joints_and_misses_detections():
    goals = (Goal("objectAt", "greencup", "countertop"),)
    house = {"greencup": ("sideboard", 0), "corn": ("sideboard", 1)}
    done = run(CERTAIN, goals, HouseholdState("roomcenter", house))
    plain, shifted = (
        record(config, [done], [np.random.default_rng(0)]).frames
        for config in (CERTAIN, household("faithful", joint_offset=0.5, missed_detections=1.0))
    )
    offset = shifted.sub[:, 9:49] - plain.sub[:, 9:49]
    assert 0.3 < offset.mean(0).std() < 0.7 and offset.std(0).max() < 0.05
    seen = {SYMBOLS[each] for each in np.unique(shifted.objects)} - {"<pad>"}
    assert seen <= {LEFT, RIGHT} and "corn" in {SYMBOLS[each] for each in np.unique(plain.objects)}


def test_a_house_follows_from_seed_and_number_alone():
    for preset in PRESETS:
        config = household(preset, key_frames="events", chain_length=3)
        long, short = (generate_pool(config, count, (4, 1)) for count in (9, 6))
        assert all(np.array_equal(a.frames.sub, b.frames.sub) for a, b in zip(long.episodes, short.episodes))  # noqa: B905
        assert np.array_equal(long.latents(2), short.latents(2))
        other = generate_pool(config, 6, (4, 2))
        assert other.episodes[0].goals != short.episodes[0].goals


def test_bad_settings_name_the_setting():
    for changes, error, message in (
        ({"objects": ("cup",)}, ValueError, "objects: unknown 'cup'"),
        ({"locations": ("roomcenter", "sink")}, ValueError, "locations must have 'roomcenter'"),
        ({"goal_mixture": (("juggle", 1.0),)}, ValueError, "goal_mixture must be weights"),
        ({"scene_objects": (1, 2)}, ValueError, "the second at least 3"),
        ({"failure": (0.1, 0.1)}, ValueError, "failure must be three probabilities"),
        ({"incomplete": 1.5}, ValueError, "incomplete must be a probability"),
        ({"place_weights": (1.0,)}, ValueError, "place_weights must be 7 numbers"),
        ({"window_seconds": 0}, ValueError, "window_seconds must be an integer"),
        ({"preset": "biased"}, ValueError, "unknown preset 'biased'"),
        ({"object": ()}, TypeError, "unexpected keyword argument 'object'.*did you mean 'objects'"),
    ):
        with pytest.raises(error, match=message):
            household(**changes)
    with pytest.raises(ValueError, match="count must be a multiple of 10"):
        generate_pool(household("debiased"), 15, (0,))
    assert hash(household(objects=list(OBJECTS), goal_mixture=[["grasp", 1.0]]))


def test_as_many_episodes_are_fast_as_are_slow():
    """The factor of all durations of an episode is drawn by its logarithm."""
    config = household("faithful", failure=(0.0, 0.0, 0.0), duration_noise=0.0, episode_speed=(0.25, 4.0))
    goals = (Goal("grasped", "oil", LEFT),)
    done = [run(config, goals, HouseholdState("fridge", {"oil": ("fridge", 0)}), seed) for seed in range(400)]
    factors = np.array([each.actions[0].duration for each in done]) / base_seconds()["grasp", "oil"]
    assert 0.2 < factors.min() < 0.3 and 3.5 < factors.max() < 4.1
    assert abs((factors < 1).mean() - 0.5) < 0.1


def test_velocities_are_changes_of_angles_in_a_second(monkeypatch):
    monkeypatch.setattr("memenvs.verbalization.signals._JOINT_NOISE", 0.0)
    config = household("faithful", failure=(0.0, 0.0, 0.0), window_seconds=1)
    done = run(config, (Goal("grasped", "oil", LEFT),), HouseholdState("fridge", {"oil": ("fridge", 0)}))
    signals = record(config, [done], [np.random.default_rng(0)]).frames.sub
    angles, velocities = signals[:, 9:49], signals[:, 49:89]
    change = np.diff(angles, axis=0)  # between frames, a second each
    assert np.abs(change).max() > 0.01
    mean = (velocities[1:] + velocities[:-1]) / 2
    assert (change * mean).sum() / (change**2).sum() == pytest.approx(1, abs=0.05)


def test_the_noise_of_images_differs_between_episodes():
    pool = generate_pool(household("faithful", key_frames="events"), 3, (0,))
    noise = []
    for episode in range(3):
        view = pool.view[pool.first[episode] : pool.first[episode + 1]]
        noise.append(pool.latents(episode) - image_latents(view, np.random.default_rng(0), noise=0.0))
        assert abs(noise[-1].std() - 0.1) < 0.01
    assert np.abs(noise[0][0] - noise[1][0]).max() > 0.1 < np.abs(noise[1][0] - noise[2][0]).max()
