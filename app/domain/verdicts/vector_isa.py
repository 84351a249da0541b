"""Of rows that depend on the CPU's vector ISA: what their cells say together, and how the ISAs differ."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from knowngood.app.domain.grouping import grouped
from knowngood.app.domain.hardware_classes import VECTOR_ISA_CLASSES, isa_of, whole_class
from knowngood.app.domain.issue import Issue
from knowngood.app.domain.verdicts.claims import named
from knowngood.app.domain.verdicts.history import FAILING
from knowngood.app.domain.verdicts.known import Known
from knowngood.app.domain.verdicts.verdict import (
    CONCLUSIVE,
    Cell,
    VariantFinding,
    Verdict,
    WorkaroundFinding,
    WorkaroundVerdict,
    over_variants,
)
from knowngood.app.domain.vocabulary import VERDICTS

_WORST_FIRST = (
    WorkaroundVerdict.HARMFUL,
    WorkaroundVerdict.INEFFECTIVE,
    WorkaroundVerdict.UNVERIFIED,
    WorkaroundVerdict.PARTIAL,
    WorkaroundVerdict.EFFECTIVE,
    WorkaroundVerdict.UNNECESSARY,
)


def over_isas(issue: Issue, own: Cell | None, of_isas: Sequence[Cell]) -> Cell | None:
    """The cell of the whole class: the worst of what was measured with each ISA (`of_isas`) and with whatever a machine
    had (`own`), as of several variants. A pass with one ISA alone says nothing of the others.
    """
    if not of_isas:
        return own
    told = [one for one in (*of_isas, own) if one is not None and one.verdict is not Verdict.NOT_RUN]
    if told == [own]:
        return own
    if not told:
        return replace(of_isas[0], hardware=whole_class(of_isas[0].hardware))
    findings = [VariantFinding(isa_of(one.hardware), one.verdict, one.reason) for one in told]
    if own is None or own.verdict not in CONCLUSIVE:
        lacking = set(issue.requires.vector_isas) - {isa_of(one.hardware) for one in told}
        findings += [VariantFinding(isa, Verdict.NOT_RUN, "") for isa in sorted(lacking)]
    verdict, reason = over_variants(findings)
    hardware = whole_class(of_isas[0].hardware)
    worst = [one for one in told if one.verdict is verdict]
    isas = [isa_of(one.hardware) for one in worst if isa_of(one.hardware)]
    if not worst:  # no answer, as one ISA passes and another was not run
        return replace(told[0], hardware=hardware, verdict=verdict, reason=reason)
    return replace(
        worst[0],
        hardware=hardware,
        reason=f"on {', '.join(isas)}: {worst[0].reason}" if isas else worst[0].reason,
        workarounds={id_: _worst_finding(id_, told, worst) for id_ in worst[0].workarounds},
        superseded=own.superseded if own else 0,
        voided=own.voided if own else 0,
    )


def _worst_finding(workaround: str, told: Iterable[Cell], worst: Sequence[Cell]) -> WorkaroundFinding:
    """How it does where the issue is; that it does harm anywhere outranks that. Where it was not tried with an ISA,
    what was found on the class as a whole stands.
    """
    asked = [one for one in told if one.verdict in FAILING] or worst
    found = {
        one.hardware: one.workarounds[workaround]
        for one in told
        if workaround in one.workarounds
        and (one in asked or one.workarounds[workaround].verdict is WorkaroundVerdict.HARMFUL)
    }
    whole = [one for class_, one in found.items() if not isa_of(class_) and one.verdict is not _UNTRIED]
    tried = [one for one in found.values() if one.verdict is not _UNTRIED] if whole else found.values()
    return min(tried, key=lambda one: _WORST_FIRST.index(one.verdict))


_UNTRIED = WorkaroundVerdict.UNVERIFIED


def isa_difference(issue: Issue, known: Known) -> str:
    """How the ISAs that a row depends on differ, in a sentence: `avx2 fails and avx512 passes on 2.7.0`. Empty where no
    build has an answer with each.
    """
    of_isas = {
        isa: {build.id: cell.verdict for build, cell in known.measured(issue.id, class_) if cell.verdict in CONCLUSIVE}
        for class_, isa in VECTOR_ISA_CLASSES.items()
        if isa in issue.requires.vector_isas
    }
    builds = [known.builds[id_] for id_ in known.tested if of_isas and all(id_ in of for of in of_isas.values())]
    said = grouped(
        sorted(builds, key=lambda build: build.build_id),
        lambda build: tuple(VERDICTS[of[build.id]].as_clause for of in of_isas.values()),
    )
    differing = [
        f"{' and '.join(f'{isa} {clause}' for isa, clause in zip(of_isas, clauses, strict=True))} on {named(found)}"
        for clauses, found in said.items()
        if len(set(clauses)) > 1
    ]
    alike = f"{' and '.join(of_isas)} say the same on {named(builds)}" if builds else ""
    return "; ".join(differing) or alike
