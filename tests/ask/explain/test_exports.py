"""Which torch exports a symbol: symbols that people posted, and what is never claimed.

What is right of each was read in the wheels by a second reader of ELF files.
"""

import random
import re
from pathlib import Path

import pytest
import regex
from elftools.elf.elffile import ELFFile
from hypothesis import given
from hypothesis import strategies as st

from knowngood.ask.explain.exports import (
    FILE,
    demangle,
    exports_of,
    is_covered,
    is_torchs,
    nearest_release,
    shipped_exports,
    tell_exports,
)
from knowngood.domain.builds.packages import IndexFile
from knowngood.domain.message import english
from knowngood.environments.wheels.table import shipped_wheels
from tests.ask.explain.test_messages import MESSAGES
from tests.ask.explain.test_threads import Ask, ask
from tools.exports import default_wheels, defined_in, entries_of

__all__ = ["ask"]

GITHUB = "https://github.com/"
FIRST, LAST = "2.1.0", shipped_exports().releases[-1].public
CXX11 = "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
STRING = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char>>"
TWIN = "the same function under the other C++ string ABI, _GLIBCXX_USE_CXX11_ABI"
OLD = f"{TWIN}=0, is exported by torch {FIRST} to 2.6.0"
NEW = f"{TWIN}=1, is exported by torch 2.7.0 to {LAST}"
LIBRARY = (
    "torch::Library::Library(torch::Library::Kind, std::string, std::optional<c10::DispatchKey>, char const*, "
    "unsigned int)"
)
NOT_ITS_ABI = "which the text states, is one of these: the package was built with another string ABI than that torch"
LACKS = "which the text states, does not export it"
HAS = (
    "which the text states, exports it: another build of torch may have been loaded, or none yet (import torch before "
    "the package)"
)

POSTED = [
    (
        "Dao-AILab/flash-attention/issues/1832",
        "2.6.0",
        f"_ZN3c105ErrorC2ENS_14SourceLocationE{CXX11}",
        f"c10::Error::Error(c10::SourceLocation, {STRING})",
        (f"exported by torch 2.7.0 to {LAST}, not by {FIRST} to 2.6.0; {OLD}; torch 2.6.0, {NOT_ITS_ABI}"),
        "",
    ),
    (
        "jolibrain/colette/pull/26",
        "",
        "_ZN3c105ErrorC2ENS_14SourceLocationESs",
        "c10::Error::Error(c10::SourceLocation, std::string)",
        f"exported by torch {FIRST} to 2.6.0, not by 2.7.0 to {LAST}; {NEW}",
        "",
    ),
    (
        "Dao-AILab/flash-attention/issues/723",
        "2.1.0",
        "_ZN3c104cuda9SetDeviceEi",
        "c10::cuda::SetDevice(int)",
        f"exported by torch {FIRST} to 2.2.2, not by 2.3.0 to {LAST}; torch 2.1.0, {HAS}",
        "",
    ),
    (
        "turboderp-org/exllamav2/issues/457",
        "2.3.0",
        "_ZN3c104cuda9SetDeviceEi",
        "c10::cuda::SetDevice(int)",
        f"exported by torch {FIRST} to 2.2.2, not by 2.3.0 to {LAST}; torch 2.3.0, {LACKS}",
        "2.2.2",
    ),
    (
        "Dao-AILab/flash-attention/issues/1832#kunzeng-ch",
        "2.8.0+cu128",
        "_ZN3c104cuda9SetDeviceEa",
        "c10::cuda::SetDevice(signed char)",
        f"exported by torch 2.3.0 to 2.7.1, not by {FIRST} to 2.2.2 and 2.8.0 to {LAST}; torch 2.8.0, {LACKS}",
        "2.7.1",
    ),
    (
        "Dao-AILab/causal-conv1d/pull/69",
        "",
        "_ZN3c104cuda9SetDeviceEab",
        "c10::cuda::SetDevice(signed char, bool)",
        f"exported by torch 2.8.0 to {LAST}, not by {FIRST} to 2.7.1",
        "",
    ),
    (
        "vllm-project/vllm/issues/13608",
        "2.6.0+cu126",  # no default wheel, and of the other ABI: nothing is said of it
        "_ZN5torch3jit17parseSchemaOrNameERKSsb",
        "torch::jit::parseSchemaOrName(std::string const&, bool)",
        f"exported by torch 2.4.0 to 2.6.0, not by {FIRST} to 2.3.1 and 2.7.0 to {LAST}; {NEW}",
        "",
    ),
    (
        "vllm-project/vllm/issues/5501",
        "2.1.2",
        "_ZN5torch7LibraryC1ENS0_4KindESsSt8optionalIN3c1011DispatchKeyEEPKcj",
        LIBRARY,
        (f"exported by torch 2.2.0 to 2.6.0, not by {FIRST} to 2.1.2 and 2.7.0 to {LAST}; {NEW}; torch 2.1.2, {LACKS}"),
        "2.2.0",
    ),
    (
        "pytorch/extension-cpp/issues/121",
        "2.7.1",
        "_ZN5torch7LibraryC1ENS0_4KindESsSt8optionalIN3c1011DispatchKeyEEPKcj",
        LIBRARY,
        (
            f"exported by torch 2.2.0 to 2.6.0, not by {FIRST} to 2.1.2 and 2.7.0 to {LAST}; {NEW}; "
            f"torch 2.7.1, {NOT_ITS_ABI}"
        ),
        "",
    ),
    (
        "sgl-project/sglang/issues/851",
        "2.3.1+cu121",
        (
            "_ZN2at4_ops5zeros4callEN3c108ArrayRefINS2_6SymIntEEENS2_8optionalINS2_10ScalarTypeEEENS6_INS2_6LayoutEEEN"
            "S6_INS2_6DeviceEEENS6_IbEE"
        ),
        (
            "at::_ops::zeros::call(c10::ArrayRef<c10::SymInt>, c10::optional<c10::ScalarType>, "
            "c10::optional<c10::Layout>, c10::optional<c10::Device>, c10::optional<bool>)"
        ),
        f"exported by torch {FIRST} to 2.1.2, not by 2.2.0 to {LAST}; torch 2.3.1, {LACKS}",
        "2.1.2",
    ),
    (
        "microsoft/Magma/issues/60",
        "2.3.1",
        "_ZNK3c105Error4whatEv",
        "c10::Error::what() const",
        f"exported by torch 2.4.0 to {LAST}, not by {FIRST} to 2.3.1; torch 2.3.1, {LACKS}",
        "2.4.0",
    ),
    (
        "mit-han-lab/torchsparse/issues/369",
        "",
        "_ZN3c106detail23torchInternalAssertFailEPKcS2_jS2_RKSs",
        "c10::detail::torchInternalAssertFail(char const*, char const*, unsigned int, char const*, std::string const&)",
        f"exported by torch {FIRST} to 2.6.0, not by 2.7.0 to {LAST}; {NEW}",
        "",
    ),
    (
        "Zielon/MICA/issues/20",
        "2.1.0",
        "_ZNK2at6Tensor7is_cudaEv",
        "at::Tensor::is_cuda() const",
        f"as it is written, exported by no torch from {FIRST} to {LAST}",
        "",
    ),
    (
        "mit-han-lab/torchsparse/issues/172",
        "1.12.1",
        "_ZN2at6mm_outERNS_6TensorERKS0_S3_",
        "at::mm_out(at::Tensor&, at::Tensor const&, at::Tensor const&)",
        f"as it is written, exported by no torch from {FIRST} to {LAST}",
        "",
    ),
    (
        "pytorch/extension-cpp/issues/6",
        "",
        "THPVariableClass",
        "THPVariableClass",
        f"exported by every torch from {FIRST} to {LAST}",
        "",
    ),
    (
        "deepbeepmeep/Wan2GP/issues/1701",  # the stable ABI; PyTorch's own list says 2.10.0 too
        "2.9.1",
        "torch_library_impl",
        "torch_library_impl",
        f"exported by torch 2.10.0 to {LAST}, not by {FIRST} to 2.9.1; torch 2.9.1, {LACKS}",
        "2.10.0",
    ),
]


@pytest.mark.parametrize(("thread", "torch", "symbol", "declaration", "told", "fit"), POSTED)
def test_a_symbol_that_somebody_posted_is_told_with_the_torch_that_exports_it(
    thread: str, torch: str, symbol: str, declaration: str, told: str, fit: str
) -> None:
    exports = exports_of(symbol, torch)
    assert exports.declaration == declaration
    assert english(tell_exports(exports)).rpartition(" (read in ")[0] == told, GITHUB + thread
    assert nearest_release(exports) == fit


@pytest.mark.parametrize(
    ("symbol", "why"),
    [
        ("_ZN2at6native29vectorized_elementwise_kernelILi2EEEviT0_T1_", "a kernel"),
        ("_ZN2at6native44_GLOBAL__N__50c743a2_11_Indexing_cu_89862edb3fooEv", "of one file"),
        ("_ZN3c103xpu14current_deviceEv", "made for another wheel"),
        ("aoti_torch_mps_nonzero_static", "made for another wheel"),
        ("_ZN2at4cuda28getCurrentCUDASolverDnHandleEv", "in a library of torch's that is loaded later"),
        ("_ZN3c105ErrorC2", "cut, as a title of GitHub's has it"),
        ("_ZN3c105ErrorC2E", "cut before its parameters"),
        ("_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basi", "cut in a name"),
        ("_ZN5torch11CppFunctionC1EN3c1014KernelFunctionESt10unique_ptrINS1_14FunctionSchemaESt14defa", "cut"),
        ("_ZN2at9undefinedE", "it may be cut before its parameters"),
        ("_ZN2at9undefinedclE", "the parentheses are of its name, operator()"),
        ("_ZN2at9undefinedIPFvvEEE", "the parentheses are of its template"),
    ],
)
def test_of_what_the_table_does_not_hold_nothing_is_claimed(symbol: str, why: str) -> None:
    exports = exports_of(symbol, "2.6.0")
    assert english(tell_exports(exports)) == "which torch exports it is not known", why
    assert (exports.releases, exports.other_abi, nearest_release(exports)) == (None, (), "")


@pytest.mark.parametrize(
    "symbol",
    [
        "_ZN3c10" + "N3c10" * 100,
        "_ZN3c103fooE" + "P" * 900 + "i",
        "_ZN3c103fooE" + "St4pairI" * 200 + "i",
        "_ZN3c101fI" + "".join(f"S{digit}_S{digit}_" for digit in "0123456789ABCDEF") * 20 + "EE",
        "_ZN3c101fE1aI" + "".join(f"1aIS{number}_S{number}_E" for number in range(9)) * 9,
        "_ZN3c10" + "9" * 1900,
        "_ZN3c104294967296aEv",
        "_ZN3c10LE",
        "_ZTVN3c10",
    ],
)
def test_a_malformed_or_a_huge_symbol_is_shown_as_it_is_and_nothing_claimed(symbol: str) -> None:
    assert exports_of(symbol, "").releases is None
    assert len(demangle(symbol)) <= 10_000


@given(st.from_regex(r"_ZNK?(3c10|2at|5torch)[0-9A-Za-z_]{0,60}", fullmatch=True))
def test_no_text_is_taken_for_an_exported_symbol(symbol: str) -> None:
    assert not exports_of(symbol, "").releases


def test_a_symbol_with_one_letter_changed_is_never_exported() -> None:
    drawn = random.Random(0)  # noqa: S311 - no secret
    for _, _, symbol, *_ in POSTED:
        for at in range(4, len(symbol)):
            changed = symbol[:at] + drawn.choice("BQXZ7") + symbol[at + 1 :]
            assert changed == symbol or not exports_of(changed, "").releases


def test_a_symbol_of_another_library_is_none_of_torchs() -> None:
    for symbol in (
        "ncclCommRegister",
        "_ZN8pybind116detail11type_casterE",
        "__nvJitLinkCreate_12_8",
        "_ZNSt6vectorIiE",
    ):
        assert not is_torchs(symbol)
        assert not is_covered(symbol)


@pytest.mark.parametrize(
    ("stated", "release"),
    [
        ("2.6.0", "2.6.0+cu124"),
        ("2.6.0+cu124", "2.6.0+cu124"),
        ("2.6.0+cu126", None),
        ("2.6.0+cpu", None),
        ("2.6.0a0+ecf3bae40a.nv25.01", None),
        ("2.7.0.dev20250224+cu126", None),
        ("2.0.1", None),
        ("nightly", None),
        ("", None),
    ],
)
def test_a_stated_torch_is_that_of_the_wheel_that_was_read(stated: str, release: str | None) -> None:
    found = shipped_exports().release(stated)
    assert (str(found) if found else None) == release


def test_the_table_has_the_releases_that_stand_and_is_small() -> None:
    standing = [
        one.version.public
        for one in shipped_wheels().packages["torch"]
        if not one.yanked and one.has("3.11", "linux-x86_64")
    ]
    assert [release.public for release in shipped_exports().releases] == standing
    assert FILE.stat().st_size < 1_000_000


def test_the_answer_has_the_symbol_its_releases_and_the_command_that_helps(ask: Ask) -> None:
    (meaning,) = ask("ImportError: a/b.so: undefined symbol: _ZN3c104cuda9SetDeviceEa\nPyTorch version: 2.8.0").meanings
    assert meaning.symbol == "c10::cuda::SetDevice(signed char)"
    assert english(meaning.exports).startswith("exported by torch 2.3.0 to 2.7.1, not by ")
    assert meaning.command == 'pip install "torch==2.7.1"   # else the package\'s build for torch 2.8.0'
    assert meaning.strength == "sure"


def test_where_the_stated_torch_exports_it_the_cause_is_not_sure(ask: Ask) -> None:
    explained = ask("ImportError: a/b.so: undefined symbol: _ZN3c104cuda9SetDeviceEa\nPyTorch version: 2.7.1+cu126")
    assert [meaning.strength for meaning in explained.meanings] == ["possible"]
    assert not explained.known


def test_a_message_that_says_it_better_has_the_symbol_too(ask: Ask) -> None:
    """SGLang's own line names none."""
    explained = ask(
        "[sgl_kernel] CRITICAL: Could not load any common_ops library!\n"
        "- ImportError: common_ops.abi3.so: undefined symbol: _ZN3c104cuda9SetDeviceEab"
    )
    (meaning,) = explained.meanings
    assert (meaning.id, meaning.symbol) == ("sgl-kernel", "c10::cuda::SetDevice(signed char, bool)")
    assert meaning.command == MESSAGES["sgl-kernel"].meaning.command


def test_a_message_of_another_library_has_none(ask: Ask) -> None:
    (meaning,) = ask("ImportError: libtorch_cuda.so: undefined symbol: ncclCommRegister").meanings
    assert (meaning.symbol, english(meaning.exports)) == ("", "")


# -- the tool ----------------------------------------------------------------------------------------------------------


def test_the_wheel_of_a_release_is_the_last_build_for_linux_that_was_not_yanked() -> None:
    names = (
        "torch-2.10.0-cp311-cp311-manylinux_2_28_x86_64.whl",
        "torch-2.10.0-1-cp311-cp311-manylinux_2_28_x86_64.whl",
        "torch-2.10.0-cp311-cp311-manylinux_2_28_aarch64.whl",
        "torch-2.10.0-cp311-cp311-win_amd64.whl",
        "torch-2.9.0-cp311-cp311-manylinux_2_28_x86_64.whl",
        "torch-2.9.0-cp312-cp312-manylinux_2_28_x86_64.whl",
        "torch-2.0.1-cp311-cp311-manylinux1_x86_64.whl",
        "torch-2.1.0.tar.gz",
    )
    files = [IndexFile(name, name) for name in names]
    files.append(IndexFile("torch-2.11.0-cp311-cp311-manylinux_2_28_x86_64.whl", "", yanked="broken"))
    assert [file.name for file in default_wheels(files)] == [names[4], names[1]]


def test_a_library_defines_what_it_exports_and_not_what_it_asks_for() -> None:
    library = Path(str(regex._regex.__file__))
    defined = set(defined_in(library))
    with library.open("rb") as stream:
        every = {symbol.name for symbol in ELFFile(stream).get_section_by_name(".dynsym").iter_symbols()}  # type: ignore[union-attr]
    assert "PyInit__regex" in defined
    assert "PyErr_SetString" in every - defined


def test_a_function_is_entered_under_its_abi_where_strings_tell() -> None:
    new, old = f"_ZN3c101fE{CXX11}", "_ZN3c101fESs"
    returns, returned = "_ZNK3c101g4nameB5cxx11Ev", "_ZNK3c101g4nameEv"
    entries = entries_of({new: 0b10, old: 0b01, returns: 0b10, returned: 0b01, "_ZN3c101hEi": 0b11, "torch_x": 0b11})
    assert {entry: bits for entry, bits in entries.items() if re.match(r"[01] ", entry)} == {
        "1 c10::f(std::string)": 0b10,
        "0 c10::f(std::string)": 0b01,
        "1 c10::g::name() const": 0b10,
        "0 c10::g::name() const": 0b01,
    }
