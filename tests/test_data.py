"""The folder of real data: given by an argument or by `$MEMENVS_DATA`."""

import pytest

from memenvs.data import data_root, find_procthor_file, find_vln_folder


def test_data_folder_of_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("MEMENVS_DATA", str(tmp_path))
    assert data_root() == tmp_path
    with pytest.raises(FileNotFoundError, match=r"no file of ProcTHOR houses at .*four_room\.jsonl\.gz"):
        find_procthor_file()
    houses = tmp_path / "procthor" / "four_room.jsonl.gz"
    houses.parent.mkdir()
    houses.touch()
    assert find_procthor_file() == find_procthor_file(str(houses)) == houses
    with pytest.raises(FileNotFoundError, match=r"no data: there is no folder .*vln.*scissors"):
        find_vln_folder(help_text="get scissors")
    (tmp_path / "vln").mkdir()
    assert find_vln_folder() == find_vln_folder(tmp_path) == find_vln_folder(tmp_path / "vln")


def test_no_data_folder(monkeypatch):
    for value in (None, ""):
        if value is None:
            monkeypatch.delenv("MEMENVS_DATA", raising=False)
        else:
            monkeypatch.setenv("MEMENVS_DATA", value)
        assert data_root() is None
        with pytest.raises(ValueError, match=r"needs houses=FILE .* or \$MEMENVS_DATA"):
            find_procthor_file()
        with pytest.raises(FileNotFoundError, match=r"\$MEMENVS_DATA is not set or empty.*connectivity"):
            find_vln_folder()
    with pytest.raises(ValueError, match="houses must be the path of a file or None, got 3"):
        find_procthor_file(3)
