"""Where an address of the application is found among the files of a site."""

import pytest

from knowngood.commands.site.pages import SiteLinks, SitePage, file_names, relinked
from knowngood.web.html.i18n import Language
from knowngood.web.urls import MATRIX

BUILD, CLASS = "torch-2.6.0+cu124", "cpu-x86_64"
LINKS = SiteLinks(
    [
        SitePage(f"{MATRIX}?hardware={CLASS}&fold=none", "matrix.html", "matrix"),
        SitePage(f"{MATRIX}?hardware=cuda-sm_90&fold=none", "matrix.cuda-sm_90.html", "matrix"),
        SitePage("/issues/toy-1", "issues/toy-1.html", "issues"),
        SitePage(f"/builds/torch-2.6.0%2Bcu124?hardware={CLASS}", f"builds/{BUILD}.{CLASS}.html", "builds"),
        SitePage("/upgrade?from=torch-2.6.0%2Bcu124&component=Inductor+C%2B%2B", "upgrade/x.html", "upgrades"),
    ],
    {"/static/abc/app.css": "assets/app.css", "/issues/toy-1/repro.py": "repros/toy-1.py"},
    builds=[BUILD],
    classes=[CLASS],
)
ENGLISH = Language.ENGLISH

FOUND = {
    "the first class where none is named": (MATRIX, "../matrix.html"),
    "a class": (f"{MATRIX}?hardware={CLASS}", "../matrix.html"),
    "another class": (f"{MATRIX}?hardware=cuda-sm_90", "../matrix.cuda-sm_90.html"),
    "a fold, of which there is but the open one": (f"{MATRIX}?fold=Dynamo#group-2", "../matrix.html#group-2"),
    "an issue": ("/issues/toy-1", "toy-1.html"),
    "an issue on a class": (f"/issues/toy-1?hardware={CLASS}", "toy-1.html"),
    "a place in it": ("/issues/toy-1#use", "toy-1.html#use"),
    "an issue on a build, among its sections": (
        f"/issues/toy-1?build=torch-2.6.0%2Bcu124&hardware={CLASS}",
        f"toy-1.html#2.6.0+cu124.{CLASS}",
    ),
    "a workaround, whose text stands once": (
        f"/issues/toy-1?build=torch-2.6.0%2Bcu124&hardware={CLASS}#cure-eager",
        "toy-1.html#cure-eager",
    ),
    "a cell": (f"/cells/toy-1/torch-2.6.0%2Bcu124?hardware={CLASS}", f"toy-1.html#2.6.0+cu124.{CLASS}"),
    "a cell of a build without a section": (f"/cells/toy-1/torch-9?hardware={CLASS}", "toy-1.html"),
    "a build": (f"/builds/torch-2.6.0%2Bcu124?hardware={CLASS}", f"../builds/torch-2.6.0%2Bcu124.{CLASS}.html"),
    "a build on no class": ("/builds/torch-2.6.0%2Bcu124", f"../builds/torch-2.6.0%2Bcu124.{CLASS}.html"),
    "parameters in another order": (
        "/upgrade?component=Inductor%20C%2B%2B&from=torch-2.6.0%2Bcu124",
        "../upgrade/x.html",
    ),
    "a script": ("/issues/toy-1/repro.py", "../repros/toy-1.py"),
    "the other language": ("/preferences?lang=zh&to=%2Fissues%2Ftoy-1", "../zh/issues/toy-1.html"),
}


@pytest.mark.parametrize(("address", "link"), FOUND.values(), ids=FOUND)
def test_a_link_leads_to_a_file_beside_it(address: str, link: str) -> None:
    assert LINKS.relative(address, "issues/toy-1.html", ENGLISH) == link


@pytest.mark.parametrize(
    "address",
    [
        "/attempts/abc",
        "/runs",
        "/sign-in",
        "/preferences?theme=dark&to=%2F",
        "/preferences?lang=fr&to=%2F",
        "/api/v1/issues/toy-1",
        "/issues/toy-2",
        "/issues/toy-1?sort=build&hardware=x",
        f"/cells/toy-2/torch-2.6.0%2Bcu124?hardware={CLASS}",
        "/builds/torch-9",
        f"{MATRIX}?q=bmm",
        f"{MATRIX}?hardware=tpu",
    ],
)
def test_what_the_site_lacks_has_no_link(address: str) -> None:
    assert address not in LINKS
    assert LINKS.relative(address, "index.html", ENGLISH) is None


def test_the_chinese_pages_stand_in_a_folder_of_their_own() -> None:
    told = LINKS.relative
    assert told("/issues/toy-1", "index.html", Language.CHINESE) == "issues/toy-1.html"
    assert told("/preferences?lang=en&to=%2F", "index.html", Language.CHINESE) == "../index.html"
    assert told("/static/abc/app.css", "issues/toy-1.html", Language.CHINESE) == "../../assets/app.css"


def test_only_links_of_ours_are_changed() -> None:
    page = (
        f'<a class="q" href="{MATRIX}?hardware=cuda-sm_90&amp;fold=none">x</a><a href="#s-mark">y</a>'
        '<a href="https://example.org/">z</a><a class="mono" href="/attempts/1" title="t">w</a>'
        "<p>href=&#34;/runs&#34;</p>"
    )
    assert relinked(page, "index.html", ENGLISH, LINKS) == (
        '<a class="q" href="matrix.cuda-sm_90.html">x</a><a href="#s-mark">y</a>'
        '<a href="https://example.org/">z</a><span class="mono">w</span><p>href=&#34;/runs&#34;</p>'
    )


def test_names_of_files_are_plain_and_each_is_one_name() -> None:
    assert file_names(["Inductor C++", "Inductor C", "SDPA", "SDPA", "通用", "PyTorch/XLA", "../.."]) == {
        "../..": "other",
        "Inductor C": "inductor-c",
        "Inductor C++": "inductor-c~2",
        "PyTorch/XLA": "pytorch-xla",
        "SDPA": "sdpa",
        "通用": "other~2",
    }
