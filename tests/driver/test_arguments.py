"""The command line grammar: literal flags, greedy lists, values given twice."""

from __future__ import annotations

import pytest

from mgx_mlir.core.errors import UsageError
from mgx_mlir.frontends.dims import DynamicDim
from mgx_mlir.tools.driver.arguments import Arguments, parse_arguments
from mgx_mlir.tools.driver.commands import verify
from mgx_mlir.tools.driver.dims import dynamic_dims, one_dim, static_dims, symbol_dims
from mgx_mlir.tools.driver.options import EVERY, refused_by


def parse(*tokens: str) -> Arguments:
    return parse_arguments("verify", tokens, verify.OPTIONS, refused_by(verify.OPTIONS, EVERY))


def test_values_and_flags() -> None:
    found = parse("--cpu", "m.onnx", "--atol", "1e-5", "--rtol=0.5", "--cpu", "-o", "f.txt")
    assert found.file == "m.onnx"
    assert found.values == {"--cpu": True, "--atol": 1e-5, "--rtol": 0.5, "--output": "f.txt"}


def test_a_greedy_list_ends_at_the_next_flag() -> None:
    found = parse("--input-dim", "@x", "1", "3", "@y", "2", "--fill1", "a", "b", "--cpu", "m.onnx")
    assert found.get("--input-dim") == ["@x", "1", "3", "@y", "2"]
    assert found.get("--fill1") == ["a", "b"]
    assert found.file == "m.onnx"
    assert parse("--fill0", "a", "--fill0", "b").get("--fill0") == ["a", "b"]


def test_arch_takes_one_token() -> None:
    found = parse("--arch", "gfx942,mi300x", "m.onnx", "--arch", "gfx1100")
    assert found.get("--arch") == ["gfx942", "mi300x", "gfx1100"]
    assert found.file == "m.onnx"


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (["--atol", "1", "--atol", "1"], "option '--atol' is given twice"),
        (["--atol"], "option '--atol' expected X, got nothing"),
        (["--atol", "--cpu"], "option '--atol' expected X, got nothing"),
        (["--atol", "-1"], "expected a number that is not negative, got '-1'"),
        (["--atol", "nan"], "expected a number that is not negative, got 'nan'"),
        (["--batch", "0"], "expected an integer from 1 on, got '0'"),
        (["--cpu=1"], "option '--cpu' takes no value, got '1'"),
        (["--fill1", "--cpu"], "option '--fill1' expected NAME..., got nothing"),
        (["--fill1", "a", "--not-known"], "unknown option '--not-known'"),
        (["-x"], "unknown option '-x'"),
        (["a", "b"], "expected one input file, got 'a' and 'b'"),
        (["--iterations", "3"], "'--iterations' is not an option of this command, perf takes it"),
        (["--kernel-boundaries", "maybe"], "expected on or off, got 'maybe'"),
        (["--int8=1"], "option '--int8' takes no value, got '1'"),
    ],
)
def test_what_is_refused(tokens: list[str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(*tokens)
    assert message in str(caught.value)


def test_a_misspelt_option_has_a_suggestion() -> None:
    with pytest.raises(UsageError, match="did you mean '--rms-tol'"):
        parse("--rms-toll", "1")


def test_dimensions() -> None:
    assert static_dims("--input-dim", ["@x", "1", "3", "@s"]) == {"x": [1, 3], "s": []}
    assert dynamic_dims("-", ["@x", "[{min:1, max:4, optimals:[2]}, 3]"]) == {
        "x": [DynamicDim(1, 4, (2,)), 3]
    }
    assert dynamic_dims("-", ["@x", '[{"range": {"min": 1, "max": 4}, sym: "n"} # note\n]']) == {
        "x": [DynamicDim(1, 4, (), "n")]
    }
    assert symbol_dims("-", ["@n", "4", "@m", "[{min:0,max:8}]"]) == {"n": 4, "m": DynamicDim(0, 8)}
    assert one_dim("-", "7") == 7
    for text in ("{min:1, max:4}", "[{min:1, max:4}]", '{"range": {"min": 1, "max": 4}}',
                 "{min:1,max:4,optimals:[]} // any"):  # fmt: skip
        assert one_dim("-", text) == DynamicDim(1, 4)


@pytest.mark.parametrize("tokens", [["1", "@x"], ["@x", "1", "@x", "2"], ["@x", "a"], ["@x", "-1"]])
def test_wrong_static_dimensions(tokens: list[str]) -> None:
    with pytest.raises(UsageError):
        static_dims("--input-dim", tokens)


@pytest.mark.parametrize(
    "text", ["[", "3", "[{min:1, most:2}]", "[true]", "[{max:3}]", "[{min:3,max:1}]", "[" * 9999]
)
def test_wrong_dynamic_dimensions(text: str) -> None:
    with pytest.raises(UsageError):
        dynamic_dims("--dyn-input-dim", ["@x", text])
