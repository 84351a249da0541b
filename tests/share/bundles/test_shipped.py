"""The bundles of a release lie beside its issues, in a checkout and in a wheel (tests/system/test_package.py)."""

from knowngood.catalogue.loader import shipped_catalogue
from knowngood.catalogue_digest import shipped_evidence


def test_they_are_found_beside_the_issues_in_the_order_of_their_names() -> None:
    found = shipped_evidence()
    assert found == sorted(found)
    assert {one.parent for one in found} == {shipped_catalogue() / "evidence"}
