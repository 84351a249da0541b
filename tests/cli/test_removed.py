"""Commands that are gone say what takes their place."""

import pytest

from knowngood.app.cli.removed import REMOVED
from knowngood.app.main import TABLE, main


@pytest.mark.parametrize("name", REMOVED)
def test_a_removed_command_ends_in_2_with_what_takes_its_place(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["knowngood", name, "--whatever"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert f"knowngood {name} is gone: " in capsys.readouterr().err


def test_no_removed_command_is_listed() -> None:
    assert not REMOVED.keys() & {name for rows in TABLE.values() for name in rows}
