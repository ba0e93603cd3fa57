"""Tests of each module for `mutants.py`: short lists, since each runs once per module."""

CONTRACT, LIBRARIES = "tests/test_contract.py", "tests/test_other_libraries.py"
ANSWERS = "tests/test_answers.py"
OBJECTNAV, EXPLORATION, VLN = "tests/objectnav", "tests/exploration", "tests/vln"
MEMORY = "tests/agents/memory"
MEMORIES = f"{MEMORY}/test_memory.py"  # the contract; below, it is tested for the memories that use the module
QUICK = ("-k", "not miniworld and not home")  # they take seconds to start
BY_HAND = "not world and not home and not every and not ahead"
LEARNERS = "tests/agents/algorithms"
ON_POLICY = [
    f"{LEARNERS}/test_{name}.py" for name in ("ppo", "ppo_rollouts", "ppo_errors", "action_mask", "interruptions")
]
BASELINES = "tests/agents/memory/test_baselines.py"
PICTURE_TASKS = "tests/agents/sat/test_picture_tasks.py"
OFF_POLICY = [f"{LEARNERS}/test_{name}.py" for name in ("q_targets", "episode_dqn", "action_mask")]
SETTINGS, COMPILED = "tests/test_settings.py", "tests/test_compilation.py"
BOXES_SETTINGS = "bad_settings or spaces or configs or FourBoxesConfig"
BALLET_SETTINGS = "invalid_settings or spaces or task_as or configs or ShortStayC or RoomsC or MultiTaskC"
DARKROOM = "(not -v0 or Darkroom) and not process"
FIFO = "(not -v0 or FIFO) and not process"
FOUR_BOXES = "not test_miniworld and not -v0 or FourBoxes and not process or without"
#: Beginning of a module's path -> its tests; the longest beginning counts. Others have the tests of their own name.
TESTS = {
    "memenvs/core": ["tests/test_core.py", CONTRACT, LIBRARIES, "-k", f"{DARKROOM} and not maskable"],
    "memenvs/resets": ["tests/test_core.py", LIBRARIES, "-k", f"{DARKROOM} and not maskable"],
    "memenvs/trials": ["tests/test_core.py", CONTRACT, "-k", DARKROOM],
    "memenvs/task": ["tests/test_core.py", "tests/test_check_env.py", CONTRACT, "-k", DARKROOM],
    "memenvs/darkroom": ["tests/darkroom", CONTRACT, "-k", DARKROOM],
    "memenvs/darkroom/config": ["tests/darkroom", SETTINGS, "-k", "test_darkroom or configs or DarkroomConfig"],
    "memenvs/random": ["tests/test_random.py", COMPILED, "-k", "test_random or stored"],
    "memenvs/retention": ["tests/test_retention.py", COMPILED, "-k", "test_retention or stored"],
    "memenvs/registry": ["tests/test_registry.py", "-k", "not import"],
    "memenvs/four_boxes": ["tests/four_boxes", CONTRACT, "-k", FOUR_BOXES],
    "memenvs/box_rooms": ["tests/four_boxes/test_four_boxes.py", "tests/two_rooms/test_two_rooms.py"],
    "memenvs/two_rooms": ["tests/two_rooms/test_two_rooms.py", ANSWERS, "-k", "not test_answers or TwoRooms"],
    "memenvs/faces": ["tests/faces", ANSWERS, "-k", "not test_answers or FFHQ"],
    "memenvs/ballet3d": ["tests/ballet3d", ANSWERS, "-k", "not test_answers or Ballet3D"],
    "memenvs/four_boxes/resize": ["tests/four_boxes/test_resize.py", COMPILED, "-k", "resize or stored"],
    "memenvs/four_boxes/config": ["tests/four_boxes/test_four_boxes.py", SETTINGS, "-k", BOXES_SETTINGS],
    "memenvs/recall": ["tests/recall", ANSWERS, "-k", "not test_answers or Recall"],
    "memenvs/visual_match": [
        *("tests/visual_match", ANSWERS),
        *("-k", "not package and (not test_answers or VisualMatch)"),
    ],
    "memenvs/room_ballet/ballet_task": ["tests/room_ballet/test_ballet_tasks.py", "tests/room_ballet/test_observer.py"],
    "memenvs/room_ballet/config": ["tests/room_ballet/test_room_ballet.py", SETTINGS, "-k", BALLET_SETTINGS],
    "memenvs/room_ballet/dances": ["tests/room_ballet/test_dances_and_frames.py"],
    "memenvs/room_ballet/descriptions": ["tests/room_ballet/test_descriptions.py"],
    "memenvs/room_ballet/env": ["tests/room_ballet/test_room_ballet.py", CONTRACT, "-k", FIFO],
    "memenvs/room_ballet/episodes": ["tests/room_ballet"],
    "memenvs/room_ballet/frames": [
        "tests/room_ballet/test_dances_and_frames.py",
        "tests/room_ballet/test_ballet_rules.py",
    ],
    "memenvs/room_ballet/observer": ["tests/room_ballet/test_observer.py", COMPILED, "-k", "test_observer or stored"],
    "memenvs/room_ballet/posterior": ["tests/room_ballet/test_ballet_rules.py", "tests/room_ballet/test_observer.py"],
    "memenvs/room_ballet/rules": ["tests/room_ballet/test_ballet_rules.py"],
    "memenvs/room_ballet/tasks": ["tests/room_ballet/test_ballet_tasks.py", "tests/room_ballet/test_observer.py"],
    "memenvs/room_ballet/visit_schedules": [
        "tests/room_ballet/test_ballet_tasks.py",
        COMPILED,
        "-k",
        "ballet or stored",
    ],
    "memenvs/objectnav": [OBJECTNAV],
    "memenvs/objectnav/config": [f"{OBJECTNAV}/test_ext_objnav_settings.py"],
    "memenvs/objectnav/expert": [f"{OBJECTNAV}/test_ext_objnav_expert.py", f"{OBJECTNAV}/test_ext_objnav.py"],
    "memenvs/objectnav/robot": [f"{OBJECTNAV}/test_ext_objnav_expert.py", f"{OBJECTNAV}/test_ext_objnav.py"],
    "memenvs/objectnav/symbolic": [OBJECTNAV, "-k", "symbolic or sensors"],
    "memenvs/exploration": [EXPLORATION, "-k", "not random_policy and not Search-oracle and not settings"],
    "memenvs/exploration/carmine": [EXPLORATION, "-k", "test_carmine or camera"],
    "memenvs/exploration/config": [EXPLORATION, "-k", "settings"],
    "memenvs/exploration/coverage": [
        f"{EXPLORATION}/test_exploration.py",
        "-k",
        "cells or longer or identities and Coverage",
    ],
    "memenvs/exploration/drive": [f"{EXPLORATION}/test_drive.py", f"{EXPLORATION}/test_exploration_maps.py"],
    "memenvs/exploration/env": [f"{EXPLORATION}/test_exploration.py", f"{EXPLORATION}/test_exploration_maps.py"],
    "memenvs/exploration/planner": [f"{EXPLORATION}/test_planner.py"],
    "memenvs/exploration/roaming": [f"{EXPLORATION}/test_exploration.py", "-k", "hand or collision or longer"],
    "memenvs/exploration/search": [*(f"{EXPLORATION}/test_{name}.py" for name in ("search", "exploration_maps"))],
    "memenvs/exploration/task_home": [f"{EXPLORATION}/test_planner.py", f"{EXPLORATION}/test_exploration_maps.py"],
    "memenvs/exploration/viewer": [f"{EXPLORATION}/test_exploration_maps.py"],
    "memenvs/exploration/visibility": [f"{EXPLORATION}/test_visibility.py", f"{EXPLORATION}/test_search.py"],
    "memenvs/vln": [VLN, "-k", "not procedural"],
    "memenvs/vln/config": [f"{VLN}/test_vln_environments.py", f"{VLN}/test_vln_procedural.py", "-k", "settings or end"],
    "memenvs/vln/graph": [f"{VLN}/test_vln_graph.py"],
    "memenvs/vln/metrics": [f"{VLN}/test_vln_metrics.py", f"{VLN}/test_vln_environments.py"],
    "memenvs/vln/rewards": [f"{VLN}/test_vln_metrics.py"],
    "memenvs/vln/results": [f"{VLN}/test_vln_results.py"],
    "memenvs/vln/random_agent": [f"{VLN}/test_vln_results.py"],
    "memenvs/vln/tokenizers": [f"{VLN}/test_vln_tokenizers.py"],
    "memenvs/vln/viewer": [f"{VLN}/test_vln_environments.py", "-k", "picture or map"],
    "wrappers": ["tests/wrappers"],
    "wrappers/clustering": ["tests/wrappers/test_place.py", *QUICK],
    "memenvs/clustering": ["tests/wrappers/test_place.py", *QUICK],
    "wrappers/place": ["tests/wrappers/test_place.py", *QUICK],
    "wrappers/pose": ["tests/wrappers/test_pose.py", "tests/wrappers/test_dead_reckoning.py", "-k", BY_HAND],
    "wrappers/noise": ["tests/wrappers/test_pose.py", "tests/wrappers/test_dead_reckoning.py", "-k", BY_HAND],
    "wrappers/truth": ["tests/wrappers/test_place.py", "tests/wrappers/test_pose.py", *QUICK],
    "wrappers/trial": ["tests/wrappers/test_trial.py", *QUICK],
    "wrappers/previous_action": ["tests/wrappers/test_previous_action.py", *QUICK],
    "wrappers/key": ["tests/wrappers/test_all.py", "tests/wrappers/test_pose.py", *QUICK],
    "agents/memory": [MEMORY],
    "agents/memory/base": [f"{MEMORY}/test_base.py"],
    "agents/memory/clock": [f"{MEMORY}/test_{name}.py" for name in ("relic", "scene_memory", "trxl")],
    "agents/memory/chunking": [f"{MEMORY}/test_reader.py"],
    "agents/memory/sizes": [f"{MEMORY}/test_sizes.py"],
    "agents/memory/step_log": [f"{MEMORY}/test_step_log.py"],
    "agents/memory/tokens": [f"{MEMORY}/test_reader.py"],
    "agents/memory/timeline": [
        *(f"{MEMORY}/test_sat.py", MEMORIES),
        *("-k", "test_sat or defaults or different or (mid or dropout) and t-fifo"),
    ],
    "agents/memory/token_memory": [
        *(f"{MEMORY}/test_sat.py", MEMORIES),
        *("-k", "test_sat or defaults or different or (mid or dropout) and t-fifo"),
    ],
    "agents/memory/recurrent": [f"{MEMORY}/test_recurrent.py", MEMORIES, "-k", "recurrent or gru or lstm"],
    "agents/memory/relic": [f"{MEMORY}/test_relic.py", MEMORIES, "-k", "relic"],
    "agents/memory/transformer": [f"{MEMORY}/test_relic.py", f"{MEMORY}/test_trxl.py"],
    "agents/memory/trxl": [f"{MEMORY}/test_trxl.py", MEMORIES, "-k", "trxl"],
    "agents/memory/attention": [f"{MEMORY}/test_attention.py", f"{MEMORY}/test_relic.py"],
    "agents/memory/smt": [f"{MEMORY}/test_scene_memory.py", MEMORIES, "-k", "scene or defaults"],
    "agents/memory/smt_factorized": [f"{MEMORY}/test_scene_memory.py", MEMORIES, "-k", "scene or defaults"],
    "agents/memory/pooling": [f"{MEMORY}/test_scene_memory.py", MEMORIES, "-k", "scene or defaults"],
    "agents/memory/smt_causal": [f"{MEMORY}/test_smt_causal.py", MEMORIES, "-k", "causal"],
    "agents/memory/scene_memory": [f"{MEMORY}/test_scene_memory.py", MEMORIES, "-k", "scene or defaults"],
    "agents/memory/sat": [f"{MEMORY}/test_sat.py", MEMORIES, "-k", "test_sat or defaults or mid and sat-"],
    "agents/memory/reader": [f"{MEMORY}/test_reader.py"],
    "agents/memory/place_codes": [f"{MEMORY}/test_sat.py"],
    "agents/memory/frmqn": [f"{MEMORY}/test_frmqn.py", MEMORIES, "-k", "frmqn"],
    "agents/memory/kernels/frmqn_cpu": [f"{MEMORY}/test_frmqn.py"],
    "agents/memory/dnc": [f"{MEMORY}/test_dnc.py", MEMORIES, "-k", "test_dnc or defaults"],
    "agents/memory/none": [MEMORIES, "-k", "none or table"],
    "agents/memory/__init__": [MEMORIES, "-k", "registry or table"],
    "agents/sat": ["tests/agents/sat"],
    "agents/sat/allocator": [
        *("tests/agents/sat/test_allocator.py", "tests/agents/sat/test_config.py"),
        *("-k", "not are_learned and not held_out and not better and not cue"),  # quick ones
    ],
    "agents/sat/allocation": [
        *("tests/agents/sat/test_picture_prediction.py", "tests/agents/sat/test_config.py"),
        *("-k", "hundred or defaults"),
    ],
    "agents/sat/config": ["tests/agents/sat/test_config.py"],
    "agents/sat/face_task": [PICTURE_TASKS],
    "agents/sat/ballet3d_task": [PICTURE_TASKS],
    "agents/sat/recall_tasks": [PICTURE_TASKS],
    "agents/sat/picture_task": [PICTURE_TASKS, "tests/agents/sat/test_picture_prediction.py"],
    "agents/sat/picture_prediction": ["tests/agents/sat/test_picture_prediction.py"],
    "agents/sat/prediction": ["tests/agents/sat/test_prediction.py", "tests/agents/sat/test_config.py"],
    "agents/sat/model": ["tests/agents/sat/test_ballet_model.py"],
    "agents/sat/tables": ["tests/agents/sat/test_tables.py"],
    "agents/algorithms": [LEARNERS, BASELINES],
    "agents/algorithms/ppo.": [*ON_POLICY[:2], BASELINES, "-k", "not trxl and not whole_rollouts and not chunk"],
    "agents/algorithms/ppo_config": [f"{LEARNERS}/test_learner_settings.py", f"{LEARNERS}/test_schedules.py"],
    "agents/algorithms/on_policy": [
        *ON_POLICY[1:],
        BASELINES,
        "-k",
        "not trxl and not frmqn and not goes_on and not chunk",
    ],
    "agents/algorithms/rollout_buffer": [f"{LEARNERS}/test_rollout_buffer.py"],
    "agents/algorithms/dqn": [
        *OFF_POLICY,
        "-k",
        "not trxl and not scene and not relic and not lstm and not without_end and not full_board",
    ],
    "agents/algorithms/dqn_config": [f"{LEARNERS}/test_learner_settings.py"],
    "agents/algorithms/supervised_config": [f"{LEARNERS}/test_learner_settings.py"],
    "agents/algorithms/off_policy": [
        *OFF_POLICY,
        "-k",
        "not acting and not end and not gymnasium and not relic and not full_board",
    ],
    "agents/algorithms/replay_buffer": [f"{LEARNERS}/test_replay_buffer.py"],
    "agents/algorithms/replay_file": [f"{LEARNERS}/test_replay_file.py", f"{LEARNERS}/test_replay_buffer.py"],
    "agents/algorithms/base": [
        *(
            f"{LEARNERS}/test_{name}.py"
            for name in ("learner_state", "checkpoint_file", "ppo_errors", "ppo_interface", "sb3_interface")
        ),
        *("-k", "not integer and not spaces and not parameters and not callbacks_of"),
    ],
    "agents/algorithms/saving": [
        *(f"{LEARNERS}/test_{name}.py" for name in ("checkpoint", "learner_state", "processes", "sb3_interface")),
        *("-k", "not trxl and not lstm and not relic and not none and not integer and not find and not activations"),
    ],
    "agents/algorithms/checkpoint": [
        *(f"{LEARNERS}/test_{name}.py" for name in ("checkpoint_file", "learner_state", "checkpoint")),
        *("-k", "not resuming and not trxl and not set_later"),
    ],
    "agents/algorithms/checkpoint_json": [f"{LEARNERS}/test_checkpoint_json.py"],
    "agents/algorithms/archive": [f"{LEARNERS}/test_archive.py"],
    "agents/algorithms/schedules": [f"{LEARNERS}/test_schedules.py"],
    "agents/algorithms/spaces": [f"{LEARNERS}/test_checkpoint_spaces.py"],
    "agents/algorithms/supervised": [f"{LEARNERS}/test_supervised_learner.py"],
    "agents/algorithms/distributed": [f"{LEARNERS}/test_processes.py"],
    "agents/algorithms/finite": [f"{LEARNERS}/test_{name}.py" for name in ("checkpoint", "ppo_errors", "supervised")],
    "agents/algorithms/sb3_settings": [f"{LEARNERS}/test_sb3_interface.py", "-k", "settings"],
    "agents/policies": ["tests/agents/policies", f"{LEARNERS}/test_sb3_interface.py", "-k", "not integer and not find"],
    "agents/policies/memory_policy": [
        *("tests/agents/policies", f"{LEARNERS}/test_sb3_interface.py", f"{MEMORY}/test_places.py"),
        *("-k", "not integer and not find and not learning and not goes_on and not parameters"),
    ],
    "agents/policies/policy_arguments": [
        "tests/agents/policies",
        f"{LEARNERS}/test_sb3_interface.py",
        "-k",
        "not learning",
    ],
    "agents/policies/distributions": ["tests/agents/policies", "-k", "not episode and not one_"],
    "agents/mtvm/imitation": ["tests/agents/mtvm/test_imitation.py", "tests/agents/mtvm/test_repeated_actions.py"],
    "agents/mtvm/memory_bank": ["tests/agents/mtvm/test_mtvm.py", "tests/agents/mtvm/test_mtvm_reference.py"],
}
