"""My build: said once or in an address, kept in cookies, and what pages then answer for first."""

from collections.abc import Mapping
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from starlette.testclient import TestClient

from knowngood.domain.verdicts.verdict import Verdict
from knowngood.store.engine import Engine
from knowngood.web.html.i18n import Language, accepted
from knowngood.web.my_build import MY_BUILD, MyBuild
from tests.web.asking import client_of, page_at, values_of
from tests.web.given import BAD, GOOD, OLD


@pytest.fixture
def reader(notebook: Engine) -> TestClient:
    """With cookies of its own."""
    return client_of(notebook)


def asked_for(client: TestClient, address: str) -> tuple[str, str]:
    """The reader's own build and hardware class (empty: none) in the link to their environment on the front page."""
    environment = values_of(client, address)["environment"]
    query = parse_qs(urlsplit(environment[0] if environment else "").query)
    return query.get("build", [""])[0], query.get("hardware", [""])[0]


def kept(client: TestClient) -> Mapping[str, str]:
    return {
        name: value.strip('"') for name, value in client.cookies.items() if name in {"build", "hardware", "packages"}
    }


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (MyBuild("torch-2.7.1+cu126", "H100"), "torch 2.7.1 cu126 · H100"),
        (
            MyBuild("torch-2.7.1+cu126~triton-3.2.0~py312", "cuda-sm_90"),
            "torch 2.7.1 cu126 Triton 3.2.0 py3.12 · sm_90",
        ),
        (MyBuild("torch-2.7.1+cu126", ""), "torch 2.7.1 cu126"),
        (MyBuild("", "cpu-x86_64"), "cpu-x86_64"),
        (MyBuild("2.7.1", ""), "torch 2.7.1"),
        (MyBuild("<b>", ""), "<b>"),
        (MyBuild(), ""),
    ],
)
def test_a_build_is_told_in_a_few_words(said: MyBuild, words: str) -> None:
    assert said.words == words


@pytest.mark.parametrize(
    ("form", "cookies"),
    [
        pytest.param({"build": "2.7.1"}, {"build": BAD.wheel.id}, id="a version"),
        pytest.param({"build": BAD.id, "hardware": "H100"}, {"build": BAD.id, "hardware": "H100"}, id="a GPU"),
        pytest.param({"hardware": "cuda-sm_90"}, {"hardware": "cuda-sm_90"}, id="a class alone"),
        pytest.param(
            {"build": BAD.id, "packages": "torch-xla xformers==0.0.31.post1"},
            {"build": BAD.id, "packages": "torch-xla xformers==0.0.31.post1"},
            id="packages",
        ),
    ],
)
def test_what_is_chosen_is_kept_and_the_form_leads_back(
    reader: TestClient, form: dict[str, str], cookies: dict[str, str]
) -> None:
    response = reader.post(MY_BUILD, data={**form, "to": "/runs"})
    assert (response.status_code, response.headers["location"]) == (303, "/runs")
    assert response.headers["cache-control"] == "no-store"
    assert kept(reader) == cookies


def test_an_empty_form_forgets_it(reader: TestClient) -> None:
    reader.post(MY_BUILD, data={"build": "2.7.1", "hardware": "H100"})
    reader.post(MY_BUILD, data={"to": "/"})
    assert kept(reader) == {}


@pytest.mark.parametrize(
    ("form", "told", "nearest"),
    [
        ({"build": "2.7.9"}, "2.7.9", BAD.id),
        ({"build": "\x01"}, "names no build", ""),
        ({"hardware": "abacus"}, "no hardware is called", ""),
        ({"build": "2.7.1", "packages": "torchvision ../etc"}, '"../etc" is no package', ""),
        ({"packages": " ".join(f"p{n}" for n in range(41))}, '"p40" is no package, or beyond the forty', ""),
    ],
)
def test_what_names_no_build_is_told_and_kept_nowhere(
    reader: TestClient, form: dict[str, str], told: str, nearest: str
) -> None:
    response = reader.post(MY_BUILD, data=form)
    values = vars(response)["context"]
    assert response.status_code == 422
    assert values["problem"]
    assert told in values["problem"]
    assert nearest in (*values["nearest"], "")
    assert kept(reader) == {}


HERE = [{}, {"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}, {"Origin": "http://testserver"}]
ELSEWHERE = [
    {"Sec-Fetch-Site": "cross-site", "Origin": "https://elsewhere.example"},
    {"Sec-Fetch-Site": "same-site"},
    {"Origin": "https://elsewhere.example"},
    {"Origin": "null"},
]


@pytest.mark.parametrize(("headers", "is_kept"), [*((one, True) for one in HERE), *((one, False) for one in ELSEWHERE)])
def test_a_page_of_another_site_chooses_nothing_for_its_readers(
    reader: TestClient, headers: dict[str, str], is_kept: bool
) -> None:
    sent = reader.post(MY_BUILD, data={"build": "2.7.1"}, headers=headers)
    assert sent.status_code == (303 if is_kept else 403)
    assert kept(reader) == ({"build": BAD.wheel.id} if is_kept else {})
    for link in ("/issues/fla-160/use?build=2.5.1", "/preferences?theme=dark&lang=zh"):
        reader.cookies.clear()
        assert reader.get(link, headers=headers, follow_redirects=False).status_code == 303
        assert bool(reader.cookies) == is_kept


def test_nobody_is_led_off_this_server(reader: TestClient) -> None:
    for to in ("https://elsewhere.example", "//elsewhere.example", "/\\elsewhere.example"):
        assert reader.post(MY_BUILD, data={"build": "2.7.1", "to": to}).status_code == 422
        assert reader.get(MY_BUILD, params={"to": to}).status_code == 422


def test_the_front_door_is_about_it_and_every_header_says_it(reader: TestClient) -> None:
    assert asked_for(reader, "/") == ("", "")
    reader.post(MY_BUILD, data={"build": "2.7.1", "hardware": "H100"})
    assert asked_for(reader, "/") == (BAD.wheel.id, "H100")
    for address in ("/", "/runs", "/matrix", "/signs", "/nothing"):
        assert "2.7.1 cu126 · H100</b>" in reader.get(address).text


def test_an_address_outweighs_the_cookies_whole(reader: TestClient) -> None:
    reader.post(MY_BUILD, data={"build": "2.7.1", "hardware": "H100"})
    assert asked_for(reader, "/?mine=2.5.1") == ("2.5.1", "")
    assert asked_for(reader, "/?mine=2.5.1&gpu=H200") == ("2.5.1", "H200")
    assert kept(reader) == {"build": BAD.wheel.id, "hardware": "H100"}


def test_the_link_to_share_means_the_same_to_everybody(reader: TestClient, client: TestClient) -> None:
    reader.post(MY_BUILD, data={"build": "2.7.1", "hardware": "H100"})
    assert asked_for(client, f"/?mine={quote(BAD.wheel.id)}&gpu=H100") == asked_for(reader, "/")


@pytest.mark.parametrize("asked", ["mine=torch-9.9.9", "gpu=RTX+4090", "mine=%3Cb%3E&gpu=%00", "mine=" + "x" * 300])
def test_what_the_catalogue_lacks_is_ignored_with_a_hint(reader: TestClient, asked: str) -> None:
    if "%00" in asked:
        assert reader.get(f"/?{asked}").status_code == 422
        return
    assert asked_for(reader, f"/?{asked}") == ("", "")
    assert "is not among what was measured here" in reader.get(f"/?{asked}").text


def test_a_cookie_that_means_nothing_any_more_is_no_error(reader: TestClient) -> None:
    for cookie in ("build=torch-9.9.9; hardware=cuda-sm_10", "build=; hardware=", "build=" + "x" * 3000):
        assert reader.get("/", headers={"Cookie": cookie}).status_code == 200
        assert reader.get("/issues/pytorch-151290", headers={"Cookie": cookie}).status_code == 200


def test_an_issue_is_answered_for_it_and_what_its_address_says_comes_first(reader: TestClient) -> None:
    issue = "/issues/pytorch-151290"
    reader.post(MY_BUILD, data={"build": "2.5.1"})
    page = page_at(reader, issue)
    assert (page.build.id, page.is_remembered, page.cell.verdict) == (
        OLD.wheel.id,
        True,
        Verdict.NOT_AFFECTED,
    )
    page = page_at(reader, f"{issue}?mine=2.8.0")
    assert (page.build.id, page.is_remembered) == (GOOD.wheel.id, False)
    page = page_at(reader, f"{issue}?mine=2.8.0&build={quote(BAD.id)}")
    assert (page.build.id, page.is_remembered) == (BAD.id, False)


def test_the_build_chosen_on_an_issues_page_is_the_same_one(reader: TestClient) -> None:
    reader.get("/issues/fla-160/use?build=2.5.1")
    assert asked_for(reader, "/") == (OLD.id, "")
    reader.get("/issues/fla-160/use")
    assert asked_for(reader, "/") == ("", "")


def test_forms_that_ask_for_a_build_begin_with_it(reader: TestClient) -> None:
    reader.post(MY_BUILD, data={"build": "2.5.1"})
    assert f'name="from" value="{OLD.wheel.id}"' in reader.get("/upgrade").text
    assert f'name="a" value="{OLD.wheel.id}"' in reader.get("/compare").text


def test_a_copy_of_a_page_belongs_to_one_build_and_json_to_everybody(reader: TestClient) -> None:
    cookies = ("", "build=torch-2.5.1%2Bcu124", "build=2.7.1; hardware=H100", "hardware=H100")
    for address in ("/", "/runs", "/issues/fla-160"):
        told = [reader.get(address, headers={"Cookie": cookie}) for cookie in cookies]
        assert len({one.headers["etag"] for one in told}) == len(cookies)
        assert {one.headers["vary"] for one in told} == {"Cookie, Accept-Language"}
    for address in ("/api/v1/overview", "/api/v1/issues/fla-160"):
        told = [reader.get(address, headers={"Cookie": cookie}) for cookie in cookies]
        assert len({(one.headers["etag"], one.text) for one in told}) == 1


@pytest.mark.parametrize(
    ("header", "language"),
    [
        ("", Language.ENGLISH),
        ("zh-CN,zh;q=0.9,en;q=0.8", Language.CHINESE),
        ("en-US,en;q=0.9,zh;q=0.8", Language.ENGLISH),
        ("de-DE,de;q=0.9,zh-TW;q=0.5,en;q=0.3", Language.CHINESE),
        ("fr", Language.ENGLISH),
        ("*", Language.ENGLISH),
        ("zh;q=0", Language.ENGLISH),
        ("zh;q=0.000,en;q=0.1", Language.ENGLISH),
        ("zh;q=nine, en;q=0.2", Language.ENGLISH),
        ("ZH", Language.CHINESE),
        (",;,q=,zh;level=1", Language.ENGLISH),
        ("zh" * 100_000, Language.ENGLISH),
    ],
)
def test_the_browsers_language_is_the_one_it_would_rather_have(header: str, language: Language) -> None:
    assert accepted(header) is language


def test_a_page_is_in_the_browsers_language_unless_the_reader_or_the_address_says_another(reader: TestClient) -> None:
    chinese = {"Accept-Language": "zh-CN,zh;q=0.9"}

    def language(address: str, **headers: str) -> str:
        text = reader.get(address, headers={**chinese, **headers}).text
        return text.partition('<html lang="')[2][:2]

    assert language("/") == "zh"
    assert language("/nothing") == "zh"
    assert language("/?lang=en") == "en"
    assert language("/", Cookie="lang=en") == "en"
    assert language("/", Cookie="lang=xx") == "zh"
    assert reader.get("/", headers=chinese).headers["etag"] != reader.get("/").headers["etag"]
    twin = "/api/v1/overview"
    assert reader.get(twin, headers=chinese).headers["etag"] == reader.get(twin).headers["etag"]
