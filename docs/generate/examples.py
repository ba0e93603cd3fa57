"""Examples of each command; tests/test_docs.py checks that each of them parses."""

from __future__ import annotations

#: Command -> lines.
EXAMPLES = {
    "list": ["memenvs list", "memenvs list Darkroom-Gap-v0", "memenvs list --json"],
    "rollout": [
        "memenvs rollout ExtObjNav-v0 --policy oracle --episodes 20",
        'memenvs rollout Search-v0 --policy random --episodes 100 --env_kwargs \'{"split": "test"}\'',
    ],
    "bench": [
        "memenvs bench Darkroom-v0",
        'memenvs bench VLN-R2R-v0 --num-envs 256 --seconds 20 --env_kwargs \'{"features": "none", "legs": 1}\'',
    ],
    "house": [
        "# statistics and a map",
        "memenvs house --seed 1004 --out map.png",
        '# two homes as a scene dataset of habitat-sim (pip install "memenvs[export]")',
        "memenvs house --seed 1004 --habitat homes",
        "memenvs house --seed 1005 --habitat homes",
        "# the homes of a file that a task cannot play, and why",
        "memenvs house --file homes.jsonl.gz --check ExtObjNav-v0",
    ],
    "assets": ["memenvs assets asset-database.json --out asset_sizes.json.gz"],
    "play": ['# pip install "memenvs[play]"', "memenvs play ExtObjNav-v0"],
    "record": [
        "memenvs record ExtObjNav-v0 --policy oracle --out walk.gif",
        "memenvs record Darkroom-v0 --policy random --episodes 3 --fps 5 --out room.gif",
        "# the agent of a run over a trial",
        "memenvs record runs/demo-1 --out video.gif",
    ],
    "dataset": [
        '# pip install "memenvs[minari]"',
        "memenvs dataset Darkroom-v0 --policy oracle --episodes 20 --seed 0 --out darkroom/oracle-v0",
        "# the same data again, bit by bit",
        "memenvs dataset --rebuild CARD --out darkroom/again-v0",
        "# evaluation trials of a run's agent",
        "memenvs dataset runs/darkroom-0 --episodes 20 --out darkroom/agent-v0",
    ],
    "warmup": ["memenvs warmup"],
    "doctor": [
        "memenvs doctor",
        "# in a script: status 1 where one of them does not work",
        "memenvs doctor egl miniworld --json",
    ],
    "certify": [
        "memenvs certify Darkroom-Gap-v0 --quick",
        "# of one's own id, into a file that `memenvs.register(..., certificate=FILE)` takes",
        "memenvs certify corridor:corridor/Corridor-v0 --out Corridor-v0.json",
        "# adds rows of trained agents, and plays nothing",
        "memenvs certify Darkroom-Gap-v0 --certificate Darkroom-Gap-v0.json --rows trained.json --out new.json",
    ],
    "test-set": [
        "memenvs test-set Darkroom-Gap-v0",
        "memenvs test-set Darkroom-Gap-v0 --json",
    ],
    "board": [
        "memenvs board add runs/demo-gap-0 --name demo-gap --author 'Ada Lovelace' --link https://example.org/demo",
        "memenvs board check board/Darkroom-Gap-v0_v0/demo-gap",
        "memenvs board page",
    ],
    "score": [
        "# R2R: ne sr osr spl tl ndtw sdtw cls; CVDN: gp",
        "memenvs score r2r trajectories.json --split val_unseen",
        "memenvs score ndh results.json --split val_unseen --data FOLDER",
        "# answers about a robot's life, in a file of `memenvs verbalization questions`",
        "memenvs score emv answers.json",
    ],
    "verbalization": [
        "memenvs verbalization questions answers.json --split test --lengths 1 5 10",
        "# a model fills in the answers; then:",
        "memenvs score emv answers.json",
    ],
    "train": [
        "memenvs train demo --seed 1",
        "memenvs train demo --seed 1 --resume                     # after it was stopped",
        "memenvs train demo --seed 1 --resume --total_steps 1000000   # longer",
        "memenvs train darkroom --policy.memory lstm              # another memory",
        "memenvs train extobjnav-small --ppo.n_epochs 2 --policy.memory_kwargs.layers 4",
        "# an environment of your own, which mymodule.py registers",
        "memenvs train ci-smoke --env mymodule:MyEnv-v0 --env_kwargs '{}' --eval_kwargs '{}' "
        "--eval_all_layouts false --out runs/mine",
    ],
    "evaluate": [
        "memenvs evaluate runs/demo-1 --demonstrations 4   # first the oracle shows four episodes",
        "memenvs evaluate runs/extobjnav-small-0 --last_steps 16   # does it need more of earlier episodes?",
        "memenvs evaluate runs/extobjnav-small-0 --itinerary AAAAAABBBBBBAAA   # to another home and back",
        "memenvs evaluate runs/extobjnav-small-0 --name real --env_kwargs.world procthor "
        "--env_kwargs.split all --env_kwargs.rooms null",
    ],
    "paths": [
        "memenvs paths runs/coverage-laptop-0 --episodes 46",
        "memenvs paths runs/coverage-laptop-0 runs/coverage-lstm-0 --out compared",
    ],
    "trajectories": [
        "memenvs trajectories runs/vln-0 --out trajectories.json",
        "memenvs score r2r trajectories.json --split val_unseen",
    ],
    "ask": [
        "memenvs ask                                # type questions",
        'memenvs ask --life 7 --question "what did you do?" --gold --json',
        "memenvs train episodic-qa                  # a model of your own; its folder is runs/episodic-qa-0",
        "memenvs ask runs/episodic-qa-0",
    ],
    "answer": [
        "memenvs verbalization questions answers.json",
        "memenvs answer answers.json                # by the model of the package",
        "memenvs score emv answers.json",
    ],
    "report": [
        "memenvs report runs/demo-1",
        "memenvs report runs/demo-1 runs/demo-2 --out compared",
    ],
    "study": [
        "memenvs study needs_memory --show                   # the tables of a study, from its rows",
        "memenvs study needs_memory --tasks darkroom-gap-20 --methods lstm relic --jobs 2",
        "memenvs study my_study/study.py --smoke",
        "memenvs study my_study/study.py --dry-run",
        "memenvs study my_study/study.py --on slurm --jobs 20   # docs/guides/clusters.md",
    ],
    "work": ["memenvs work runs/my_study"],
    "push": [
        "memenvs push runs/darkroom-0 agent                      # a folder on this machine",
        "memenvs push runs/darkroom-0 hf:ORGANISATION/darkroom   # the Hugging Face Hub",
    ],
    "pull": ["memenvs pull hf:ORGANISATION/darkroom --out runs/pulled"],
    "presets": [
        "memenvs presets",
        "memenvs presets darkroom",
        "memenvs presets 'sat-*'",
    ],
}
