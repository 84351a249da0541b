"""Remarks for a keeper of the catalogue, as JSON."""

from pydantic import BaseModel

from knowngood.app.features.coverage.hygiene import Remark, Trouble
from knowngood.app.web.urls import issue_address


class RemarkBody(BaseModel):
    """`hardware` is empty where the remark is about every class; `about` names workarounds or the claim's source."""

    trouble: Trouble
    issue: str
    hardware: str
    sentence: str
    about: str
    url: str


class HygieneBody(BaseModel):
    remarks: list[RemarkBody]


def remark_body(remark: Remark) -> RemarkBody:
    return RemarkBody(
        trouble=remark.trouble,
        issue=remark.issue,
        hardware=remark.hardware,
        sentence=remark.sentence,
        about=remark.about,
        url=issue_address(remark.issue, hardware=remark.hardware),
    )
