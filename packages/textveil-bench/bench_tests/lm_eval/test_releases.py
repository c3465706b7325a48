import math
import sqlite3
import stat
from dataclasses import replace

import pytest

from textveil.config.sections import Config, MechanismOptions, ProtectOptions, WordsOptions
from textveil.errors import ConfigError, OutputError
from textveil_bench.lm_eval import releases
from textveil_bench.lm_eval.releases import ReleaseStore, compute_config_digest

CONFIG = Config(mechanism=MechanismOptions(name="rankcape"), epsilon=4.0)
DOCUMENTS = [
    ("The lantern is near the harbor.", "A kettle?"),
    ("The velvet saddle", ""),
    ("  A\n pepper \n", "\n"),
]


def drawn(config, folder, documents=DOCUMENTS):
    with ReleaseStore.open_store(config, folder) as found:
        return found.get_releases(documents)


def test_each_field_has_its_release_and_keeps_its_spacing(tmp_path):
    found = drawn(CONFIG, tmp_path)
    assert [*found] == DOCUMENTS
    (lantern, kettle), (velvet, empty), (pepper, blank) = (kept.texts for kept in found.values())
    assert lantern.startswith("the ")
    assert lantern.endswith(".")
    assert (kettle[:2], kettle[-1]) == ("a ", "?")
    assert len(velvet.split()) == 3
    assert (empty, blank) == ("", "\n")
    assert (pepper[:5], pepper[-2:]) == ("  a\n ", " \n")
    assert all(kept.guarantee.epsilon == 4 for kept in found.values())
    assert found[DOCUMENTS[0]].guarantee.protected == 4  # not: the, is, a


def test_a_document_has_one_release(tmp_path):
    texts = [kept.texts for kept in drawn(CONFIG, tmp_path).values()]
    with ReleaseStore.open_store(CONFIG, tmp_path) as found:
        assert found.list_missing([*DOCUMENTS, ("other",), ("other",)]) == [("other",)]
        assert [kept.texts for kept in found.get_releases(DOCUMENTS).values()] == texts
    assert [kept.texts for kept in drawn(CONFIG, None).values()] != texts


def test_who_draws_second_takes_what_the_first_has_kept(tmp_path, monkeypatch):
    keep = ReleaseStore._save_releases
    first: list[dict] = []

    def late(self, documents):
        if not first:
            first.append({})  # the other process gets here too, and keeps at once
            first[0] = drawn(CONFIG, tmp_path)
        keep(self, documents)

    monkeypatch.setattr(ReleaseStore, "_save_releases", late)
    found = drawn(CONFIG, tmp_path)
    assert [kept.texts for kept in found.values()] == [kept.texts for kept in first[0].values()]


@pytest.mark.parametrize(
    "other",
    [
        {"epsilon": 5.0},
        {"epsilon": math.inf},
        {"seed": 1},
        {"mechanism": MechanismOptions(name="krr")},
        {"mechanism": MechanismOptions(name="rankcape", options={"k": 5})},
        {"words": WordsOptions(casing="copy")},
        {"protect": ProtectOptions(always=("lantern",))},
    ],
)
def test_a_cache_of_another_configuration_is_not_used(tmp_path, other):
    drawn(CONFIG, tmp_path)
    with ReleaseStore.open_store(replace(CONFIG, **other), tmp_path) as found:
        assert found.list_missing(DOCUMENTS) == DOCUMENTS
    assert len(list(tmp_path.iterdir())) == 2


def test_what_decides_a_draw(monkeypatch):
    assert compute_config_digest(CONFIG, "a") != compute_config_digest(CONFIG, "b")
    before = compute_config_digest(CONFIG, "a")
    monkeypatch.setattr(releases, "__version__", "another")
    assert compute_config_digest(CONFIG, "a") != before


def test_a_file_under_another_name_is_refused(tmp_path):
    drawn(CONFIG, tmp_path)
    (file,) = tmp_path.iterdir()
    other = replace(CONFIG, epsilon=5.0)
    with ReleaseStore.open_store(other, tmp_path / "elsewhere"):
        pass
    (name,) = (tmp_path / "elsewhere").iterdir()
    file.rename(tmp_path / name.name)
    with pytest.raises(ConfigError, match="belongs to another configuration"):
        drawn(other, tmp_path)


def test_the_file_is_for_its_owner_and_holds_no_original(tmp_path):
    drawn(replace(CONFIG, seed=123456789), tmp_path / "new")
    (file,) = (tmp_path / "new").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    content = file.read_bytes().lower()
    assert b"rankcape" in content
    for word in (b"lantern", b"harbor", b"123456789"):
        assert word not in content


def test_a_file_that_is_none_is_refused(tmp_path):
    drawn(CONFIG, tmp_path)
    (file,) = tmp_path.iterdir()
    file.write_bytes(b"no database at all, and long enough to be seen as one" * 20)
    with pytest.raises(OutputError, match="cannot use"):
        drawn(CONFIG, tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cache folder"):
        drawn(CONFIG, tmp_path / "file")


def test_a_batch_is_kept_whole_or_not_at_all(tmp_path, monkeypatch):
    monkeypatch.setattr(releases, "BATCH", 1)
    monkeypatch.setattr(
        releases,
        "_pack_statement",
        lambda result, pack=releases._pack_statement: (
            pack(result) if result.text[0] != " " else 1 / 0
        ),
    )
    with pytest.raises(ZeroDivisionError):
        drawn(CONFIG, tmp_path)
    monkeypatch.undo()
    (file,) = tmp_path.iterdir()
    assert sqlite3.connect(file).execute("select count(*) from releases").fetchone() == (2,)
    assert len(drawn(CONFIG, tmp_path)) == 3
