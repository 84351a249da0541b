"""Watch lists in the store: every change a version, one owner, and of two writers the second sees the first."""

from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest
import sqlalchemy as sa

from knowngood.domain.access import Actor, NotAllowed
from knowngood.domain.errors import BadRequest
from knowngood.domain.issue import Severity
from knowngood.domain.issue_selectors import UnknownWatchList, Watch, WatchList, WatchListContent, WatchListTaken
from knowngood.store.audit_log import load_audit
from knowngood.store.engine import Engine, reading, unit_of_work
from knowngood.store.queries import load_generation
from knowngood.store.tables import watch_list_versions
from knowngood.store.watch_lists import (
    ListOwner,
    load_watch_list,
    load_watch_lists,
    remove_watch_list,
    save_watch_list,
)
from tests.make import NOON, make_build, make_issue
from tests.store.given import given_catalogue

LEAD, OTHER = ListOwner(Actor("lead", "0123456789ab")), ListOwner(Actor("other"))
FIRST = WatchListContent(Watch(issues=("toy-1",)))
FULL = WatchListContent(
    Watch(("toy-1",), ("Dynamo",), ("xformers",), Severity.HIGH), ("cpu-x86_64",), "What our vision models compile"
)


@pytest.fixture(autouse=True)
def _catalogue(engine: Engine) -> None:
    given_catalogue(engine, [make_issue("toy-1"), make_issue("toy-2", component="Dynamo")], [make_build()])


def save(
    engine: Engine,
    content: WatchListContent = FIRST,
    by: ListOwner = LEAD,
    *,
    name: str = "vision",
    based_on: int | None = None,
) -> WatchList:
    with unit_of_work(engine) as s:
        return save_watch_list(s, name, content, by=by, now=NOON, based_on=based_on)


def remove(engine: Engine, by: ListOwner = LEAD, based_on: int | None = None) -> None:
    with unit_of_work(engine) as s:
        remove_watch_list(s, "vision", by=by, now=NOON, based_on=based_on)


def load(engine: Engine, version: int | None = None) -> WatchList | None:
    with reading(engine) as s:
        return load_watch_list(s, "vision", version)


def test_a_list_comes_back_as_it_was_kept(engine: Engine) -> None:
    made = save(engine, FULL)
    assert made == WatchList("vision", "lead", 1, NOON, "lead", FULL)
    assert load(engine) == made
    save(engine, name="audio")
    with reading(engine) as s:
        assert list(load_watch_lists(s)) == ["audio", "vision"]
        assert load_watch_lists(s)["vision"] == made


def test_a_list_that_cannot_be_read_is_told_once_and_left_out(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    name = uuid4().hex  # of which this process has told nothing yet
    save(engine)
    save(engine, name=name)
    with unit_of_work(engine) as s:
        s.execute(sa.update(watch_list_versions).where(watch_list_versions.c.name == name).values(doc="{"))
    with reading(engine) as s:
        assert [list(load_watch_lists(s)), list(load_watch_lists(s))] == [["vision"], ["vision"]]
    assert [(one.levelname, vars(one)["row"]) for one in caplog.records] == [("WARNING", name)]


def test_every_change_is_a_version_that_stays(engine: Engine) -> None:
    first, second = save(engine), save(engine, FULL)
    assert (first.version, second.version) == (1, 2)
    assert load(engine, 1) == first
    assert load(engine, 2) == load(engine) == second
    assert load(engine, 3) is None


def test_the_same_again_is_no_version_and_no_audit_row(engine: Engine) -> None:
    assert save(engine) == save(engine)
    with reading(engine) as s:
        assert len(load_audit(s)) == 1


def test_a_removed_list_is_gone_and_its_versions_are_not(engine: Engine) -> None:
    first = save(engine)
    remove(engine)
    assert load(engine) is None
    assert load(engine, 1) == first
    with reading(engine) as s:
        assert load_watch_lists(s) == {}
    with pytest.raises(UnknownWatchList, match='no watch list is called "vision"'):
        remove(engine)


def test_a_name_that_is_free_again_goes_on_counting_and_may_have_another_owner(engine: Engine) -> None:
    save(engine)
    remove(engine)
    again = save(engine, FULL, OTHER)
    assert (again.version, again.owner) == (3, "other")


def test_a_list_belongs_to_its_owner(engine: Engine) -> None:
    save(engine)
    with pytest.raises(NotAllowed, match='"vision" belongs to lead'):
        save(engine, FULL, OTHER)
    with pytest.raises(NotAllowed, match="belongs to lead"):
        remove(engine, OTHER)
    assert load(engine) == save(engine)


def test_who_overrules_changes_a_list_and_it_stays_its_owners(engine: Engine) -> None:
    save(engine)
    changed = save(engine, FULL, ListOwner(Actor("admin"), overrules=True))
    assert (changed.owner, changed.changed_by, changed.version) == ("lead", "admin", 2)


def test_a_list_may_be_made_for_somebody_else(engine: Engine) -> None:
    with unit_of_work(engine) as s:
        made = save_watch_list(s, "vision", FIRST, by=ListOwner(Actor("cli"), overrules=True), now=NOON, owner="other")
    assert (made.owner, made.changed_by) == ("other", "cli")
    assert save(engine, FULL, OTHER).version == 2


@pytest.mark.parametrize("based_on", [0, 2, 7])
def test_a_change_for_another_version_is_refused(engine: Engine, based_on: int) -> None:
    save(engine)
    with pytest.raises(WatchListTaken):
        save(engine, FULL, based_on=based_on)
    with pytest.raises(WatchListTaken):
        remove(engine, based_on=based_on)
    assert save(engine, FULL, based_on=1).version == 2


def test_a_new_list_may_ask_to_be_the_first(engine: Engine) -> None:
    assert save(engine, based_on=0).version == 1
    remove(engine, based_on=1)
    assert save(engine, based_on=0).version == 3


def test_of_two_who_make_one_list_at_once_one_is_told_no(engine: Engine) -> None:
    def attempt(n: int) -> str:
        try:
            save(engine, by=ListOwner(Actor(f"team-{n}")), based_on=0)
        except (WatchListTaken, NotAllowed):
            return "refused"
        return "made"

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(attempt, range(4))) == ["made", "refused", "refused", "refused"]
    listed = load(engine)
    assert listed is not None
    assert (listed.version, listed.owner) == (1, listed.changed_by)


def test_many_changes_at_once_are_as_many_versions(engine: Engine) -> None:
    """Each says something of its own, so none of them is the same again."""

    def change(n: int) -> int:
        return save(engine, WatchListContent(Watch(packages=(f"p{n}",)))).version

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(change, range(12))) == list(range(1, 13))


def test_names_that_the_catalogue_does_not_have_are_refused_and_nothing_is_kept(engine: Engine) -> None:
    with pytest.raises(BadRequest, match=r"nearest: .*toy-2"):
        save(engine, WatchListContent(Watch(issues=("toy2",))))
    assert load(engine) is None
    with reading(engine) as s:
        assert load_audit(s) == ()


def test_every_change_is_in_the_audit_log_and_moves_the_generation(engine: Engine) -> None:
    seen = []
    for change in (lambda: save(engine), lambda: save(engine, FULL), lambda: remove(engine)):
        change()
        with reading(engine) as s:
            seen.append(load_generation(s))
    assert len(set(seen)) == 3
    with reading(engine) as s:
        rows = [(row.actor, row.token, row.action, row.subject, row.data["version"]) for row in load_audit(s)]
    assert rows == [
        ("lead", "0123456789ab", "watch_list.remove", "vision", 3),
        ("lead", "0123456789ab", "watch_list.save", "vision", 2),
        ("lead", "0123456789ab", "watch_list.save", "vision", 1),
    ]
