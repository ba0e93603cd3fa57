"""Settings of Stable-Baselines3 that are others here, and what to use in their place."""

from __future__ import annotations

from collections.abc import Iterable

from memenvs.checks import choices_for

SCHEDULE_SETTINGS = ("warmup_steps", "warmup_updates", "final_learning_rate")
"""Settings of the schedule of a learning rate; not every learner has them."""
LEARNER_SETTINGS = {
    "action_noise": "actions are drawn from the policy",
    "buffer_size": "it is `capacity`, in episodes",
    "exploration_final_eps": "it is `final_epsilon`",
    "exploration_fraction": "it is `exploration`",
    "exploration_initial_eps": "exploration begins with 1",
    "gradient_steps": "it is `updates_per_collect`",
    "learning_starts": "learning begins when the replay buffer has `capacity` episodes",
    "sde_sample_freq": "there is no state-dependent exploration",
    "stats_window_size": "statistics are of the latest 100 episodes",
    "target_kl": "no update ends early by its KL divergence, which is logged as train/approx_kl_full and "
    "train/approx_kl_partial; lower n_epochs or clip_range",
    "target_update_interval": "the target network follows in each update, at `target_rate`",
    "tau": "it is `target_rate`",
    "train_freq": "every environment plays an episode between two times of `updates_per_collect` updates",
    "use_sde": "there is no state-dependent exploration",
}
"""Setting of a learner of Stable-Baselines3 -> what to use here."""
POLICY_SETTINGS = {
    "enable_critic_lstm": "actor and critic share the memory",
    "log_std_init": "the standard deviation of actions begins with 1",
    "lstm_hidden_size": "it is memory_kwargs={'hidden_dim': ...} of memory='lstm'",
    "n_lstm_layers": "it is memory_kwargs={'layers': ...}",
    "optimizer_class": "the optimizer is Adam",
    "optimizer_kwargs": "the optimizer is Adam; its epsilon is `adam_eps`",
    "ortho_init": "heads begin orthogonal",
    "share_features_extractor": "actor and critic share the features extractor",
    "shared_lstm": "actor and critic share the memory",
}
"""Setting of a policy of Stable-Baselines3 -> what to use here."""


def check_no_schedule(name: str, value: object, settings: Iterable[str]) -> None:
    """Raise a TypeError if a setting is a function, as schedules of Stable-Baselines3 are.

    Args:
        name: Name of the setting.
        value: Its value.
        settings: All settings of the learner.
    """
    if callable(value):
        schedule = [setting for setting in SCHEDULE_SETTINGS if setting in settings]
        hint = f"; its schedule is made of {', '.join(schedule)}" if schedule and name == "learning_rate" else ""
        raise TypeError(f"{name} must be a number, as a checkpoint holds no functions, got {value!r}{hint}")


def unknown_setting(name: str, settings: Iterable[str], hints: dict[str, str], of: str = "") -> str:
    """Format the message about a setting that does not exist.

    Args:
        name: Name of the setting.
        settings: Settings that exist.
        hints: `LEARNER_SETTINGS` or `POLICY_SETTINGS`.
        of: Put after the name of the setting as it is, such as " of MemoryPolicy".
    """
    hint = f"{hints[name]}; " if name in hints else ""
    return f"unknown setting {name!r}{of}; {hint}{choices_for(name, settings)}"
