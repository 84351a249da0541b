"""One issue's folder becomes one domain value, or the list of all that is wrong with it."""

import re
from pathlib import Path

from knowngood.catalogue.issue_rules import document_findings, outline_of
from knowngood.catalogue.models import (
    IssueFile,
    RequiresTable,
    read_document,
)
from knowngood.catalogue.script_analysis import Script, arm_code, assembled, parse_script
from knowngood.catalogue.script_rules import findings_beside, script_findings, workarounds_without_function
from knowngood.catalogue.text_files import (
    CatalogueProblems,
    FileProblem,
    Toml,
    collected,
    placeholders,
    read_text,
    read_toml,
)
from knowngood.domain.issue import (
    AS_A_RULE,
    BASELINE,
    BOUNDS,
    CONTROL,
    Arm,
    Claim,
    Comparison,
    Issue,
    Left,
    Link,
    Observed,
    Packages,
    Requires,
    Signature,
    Suspect,
    Variant,
    Workaround,
)

_ID = re.compile(r"[a-z0-9][a-z0-9_.-]*")


def is_issue_id(text: str) -> bool:
    """True for `pytorch-151589` and `deepmd-kit-wheel`: lower case, digits, dots, dashes, underscores."""
    return _ID.fullmatch(text) is not None


def read_issue(folder: Path) -> Issue:
    """Read `folder/issue.toml` and `folder/repro.py`; the folder's name is the issue's id. Raises CatalogueProblems."""
    problems: list[FileProblem] = []
    if not is_issue_id(folder.name):
        words = f'"{folder.name}" is no id; name the folder PROJECT-NUMBER in lower case, such as pytorch-151589'
        problems.append(FileProblem(folder / "issue.toml", 1, words))
    toml = collected(problems, read_toml, folder / "issue.toml")
    script = collected(problems, _read_script, folder / "repro.py")
    document = None
    if toml is not None:
        outline = outline_of(toml.data)
        document, findings = read_document(IssueFile, toml.data)
        findings.extend(document_findings(toml.data, outline))
        if script is not None:
            findings.extend(workarounds_without_function(script, outline))
        problems.extend(map(toml.problem, findings))
        problems.extend(placeholders(toml.file, toml.text))
    if script is not None:
        problems.extend(_script_problems(folder / "repro.py", script, toml))
    if problems or document is None or script is None:
        raise CatalogueProblems(problems)
    return _issue(folder.name, document, script)


def _read_script(file: Path) -> Script:
    return parse_script(assembled(read_text(file)), file)


def _script_problems(file: Path, script: Script, toml: Toml | None) -> list[FileProblem]:
    try:
        findings = list(script_findings(script))
        if toml is not None:
            findings.extend(findings_beside(script, outline_of(toml.data)))
    except RecursionError:
        return [FileProblem(file, 1, "is nested too deeply to be checked")]
    return [*(FileProblem(file, *finding) for finding in findings), *placeholders(file, script.text)]


def _issue(id_: str, document: IssueFile, script: Script) -> Issue:
    return Issue(
        id=id_,
        title=document.title,
        summary=document.summary,
        links=tuple(Link(link.kind, link.url, link.title, state=link.state, seen=link.seen) for link in document.link),
        component=document.component,
        culprit=document.culprit,
        severity=document.severity,
        silent=document.silent,
        fidelity=document.fidelity,
        status=document.status,
        claims=tuple(
            Claim(
                text=claim.text,
                source=claim.source,
                dated=claim.dated,
                url=claim.url or "",
                says=claim.says,
                about=claim.about,
                workaround=claim.workaround,
            )
            for claim in document.claim
        ),
        requires=_requires(document.requires),
        packages=Packages(
            requirements=tuple(document.packages.requires),
            per_release={release: tuple(inner.requires) for release, inner in document.packages.per_release.items()},
            no_deps=tuple(document.packages.no_deps),
            mutates=document.packages.mutates,
        ),
        signature=Signature(
            kind=document.signature.kind,
            pattern=document.signature.pattern,
            signals=tuple(document.signature.signals),
            log=document.signature.log,
        ),
        variants=tuple(
            Variant(
                id=variant.id,
                title=variant.title,
                params=variant.params,
                arms=tuple(variant.arms),
                why_not=variant.why_not,
                is_reported=variant.reported,
            )
            for variant in document.variant
        ),
        left=tuple(Left(**dict(table)) for table in document.left),
        arms=_arms(document, script),
        workarounds=tuple(
            Workaround(
                id=table.id,
                title=table.title,
                body=table.body,
                trade_off=table.trade_off,
                is_decoy=table.decoy,
                title_zh=table.title_zh,
                body_zh=table.body_zh,
                trade_off_zh=table.trade_off_zh,
            )
            for table in document.workaround
        ),
        timeout_s=float(document.timeout_s),
        default=document.default,
        is_smoke=document.smoke,
        reported_on=document.reported_on,
        observed={
            key: Observed(
                compare=table.compare,
                rtol=usual.rtol if table.rtol is None else table.rtol,
                atol=usual.atol if table.atol is None else table.atol,
                reason=table.reason,
                arms=tuple(table.arms),
            )
            for key, table in document.observed.items()
            for usual in [BOUNDS[document.signature.kind] if table.compare is Comparison.AT_MOST else AS_A_RULE]
        },
        suspect=Suspect(
            names=tuple(document.proof.suspect), raises=document.proof.raises, backends=tuple(document.proof.backends)
        ),
        script=script.text,
        title_zh=document.title_zh,
        summary_zh=document.summary_zh,
    )


def _requires(table: RequiresTable) -> Requires:
    capability = None
    if table.compute_capability is not None:
        major, minor = table.compute_capability.split(".")
        capability = (int(major), int(minor))
    return Requires(
        device=table.device,
        torch=table.torch,
        python=table.python,
        compute_capability=capability,
        package=table.package,
        vector_isas=tuple(table.vector_isas),
    )


def _arms(document: IssueFile, script: Script) -> tuple[Arm, ...]:
    """Control first, then the baseline, then the workarounds as they stand in the document."""
    proofs = {CONTROL: document.control_exercises, BASELINE: document.exercises}
    proofs |= {table.id: table.exercises for table in document.workaround}
    ranges = {table.id: table.applies_to for table in document.workaround}
    return tuple(
        Arm(
            id=arm,
            exercises=tuple(probes),
            code=arm_code(script, arm),
            env=script.environment.get(arm, {}),
            applies_to=ranges.get(arm, ""),
        )
        for arm, probes in proofs.items()
    )
