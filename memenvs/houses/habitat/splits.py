"""Splits of HSSD and ReplicaCAD, as the rearrangement tasks of habitat-lab have them.

Source:
    habitat-lab, `hssd_single_obj_37_ycb_multi_goal.yaml` (HSSD: 37 scenes for training and 12 for validation, as in
    ReLIC) and `hab/rearrange.yaml` (ReplicaCAD: five arrangements of walls with 21 of furniture each).
"""

from __future__ import annotations

from collections.abc import Sequence

from memenvs.houses.splits import check_split, split_file

_HSSD = {
    "train": (
        "102344022", "102344049", "102344193", "102344250", "102344280", "102344403", "102344457", "102815859",
        "102816009", "102816216", "102817200", "103997424_171030444", "103997460_171030507", "103997919_171031233",
        "104348082_171512994", "104348463_171513588", "104862621_172226772", "104862639_172226823",
        "104862660_172226844", "104862669_172226853", "104862681_172226874", "105515211_173104179",
        "105515448_173104512", "106366173_174226431", "106366353_174226695", "106878945_174887058",
        "106879044_174887172", "107734449_176000403", "107734479_176000442", "108294573_176710113",
        "108294870_176710551", "108294897_176710602", "108736635_177263256", "108736737_177263406",
        "108736824_177263559", "108736851_177263586", "108736872_177263607",
    ),
    "validation": (
        "102344529", "102816756", "102817140", "103997586_171030669", "103997895_171031182", "104348328_171513363",
        "104348361_171513414", "106366386_174226770", "106366410_174226806", "106878915_174887025",
        "107733960_175999701", "107734176_176000019",
    ),
    "test": (
        "102815859_169535055", "102816201", "102817161", "104862474_172226496", "104862579_172226694",
        "104862609_172226751", "104862726_172226952", "105515523_173104614", "106366233_174226506",
        "106879104_174887235",
    ),
}  # fmt: skip
_REPLICA_CAD = {
    "train": ("v3_sc0_staging_", "v3_sc1_staging_", "v3_sc2_staging_"),
    "validation": ("v3_sc3_staging_",),
    "test": ("v3_sc4_staging_",),
}


def split_scenes(names: Sequence[str], split: str) -> list[str]:
    """Find the scenes of a split.

    Args:
        names: All scenes of a data set, in order.
        split: "all"; "train", "validation" or "test" of HSSD and ReplicaCAD, which are known by the names of scenes;
            of other data sets "train" (the first three quarters, rounded up) or "validation" (the rest).

    Raises:
        ValueError: Unknown split.
    """
    for splits, belongs in ((_HSSD, _is_one_of), (_REPLICA_CAD, _begins_as)):
        if any(belongs(name, parts) for name in names for parts in splits.values()):
            check_split(split, (*splits, "all"))
            return [name for name in names if split == "all" or belongs(name, splits[split])]
    return [names[row] for row in split_file(split, len(names))]


def _is_one_of(name: str, scenes: Sequence[str]) -> bool:
    return name in scenes


def _begins_as(name: str, prefixes: Sequence[str]) -> bool:
    return name.startswith(tuple(prefixes))
