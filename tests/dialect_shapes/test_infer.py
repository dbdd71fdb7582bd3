"""Inferred result types, written out by hand: static, dynamic and mixed extents."""

import pytest

from tests.support.ops import infer

CONV = {"padding": [1, 1], "stride": [2, 2]}
THREE = {"lengths": [3, 3], "stride": [2, 2]}
CASES = [
    # views
    ("reshape", ["2x3x4xf32"], {"dims": [0, -1]}, "2x12xf32"),
    ("reshape", ["?x3x4xf32"], {"dims": [0, -1]}, "?x12xf32"),
    ("reshape", ["?x3x?xf32"], {"dims": [0, -1, 3]}, "?x?x3xf32"),
    ("reshape", ["?x3x?x8xf32"], {"dims": [0, 0, 0, 2, -1]}, "?x3x?x2x4xf32"),
    ("reshape", ["?x12xf32"], {"dims": [-1, 3]}, "?x3xf32"),
    ("reshape", ["1x1xf16"], {"dims": []}, "f16"),
    ("reshape", ["?xi1"], {"dims": [4, 2]}, "4x2xi1"),
    ("reshape", ["?x12xf32", "3xi64"], {}, "?x?x?xf32"),
    ("reshape", ["2x3xf32", "0xi32"], {}, "f32"),
    ("flatten", ["2x?x4xf32"], {"axis": 1}, "2x?xf32"),
    ("flatten", ["2x3x4xf32"], {"axis": 0}, "1x24xf32"),
    ("flatten", ["f32"], {}, "1x1xf32"),
    ("flatten", ["0x?xf32"], {"axis": 2}, "0x1xf32"),
    ("squeeze", ["1x?x1xf32"], {}, "?xf32"),
    ("squeeze", ["1x?x1xf32"], {"axes": [1]}, "1x1xf32"),
    ("unsqueeze", ["?x4xf32"], {"axes": [0, -1]}, "1x?x4x1xf32"),
    ("unsqueeze", ["?x12xf32"], {"axes": [1, 2], "steps": [2, 3]}, "?x2x3x2xf32"),
    ("unsqueeze", ["?xf32"], {"axes": [0], "steps": [2]}, "2x?xf32"),
    ("transpose", ["2x?x4xui8"], {"permutation": [2, 0, 1]}, "4x2x?xui8"),
    ("layout", ["2x?xf32"], {"permutation": [1, 0]}, "2x?xf32"),
    ("contiguous", ["2x?xbf16"], {}, "2x?xbf16"),
    ("identity", ["?xf8E4M3FN"], {}, "?xf8E4M3FN"),
    ("reshape_lazy", ["2x6xf32"], {"dims": [3, -1]}, "3x4xf32"),
    # broadcasts
    ("broadcast", ["8xf32"], {"axis": 1, "out_lens": [2, 8, 4]}, "2x8x4xf32"),
    ("broadcast", ["8xf32", "?x8x?xi64"], {"axis": 1}, "?x8x?xf32"),
    ("broadcast", ["8xf32", "?x?xf32"], {"axis": 1}, "?x8xf32"),
    ("broadcast", ["2xf32"], {"out_dyn_dims": [2, 2, 3, 3]}, "2x3xf32"),
    ("multibroadcast", [["3xf32"]], {"out_lens": [2, 3]}, "2x3xf32"),
    ("multibroadcast", [["1xf32", "?x3xf32"]], {}, "?x3xf32"),
    ("multibroadcast", [["?xf32", "2x3xi64"]], {}, "2x3xf32"),
    ("multibroadcast", [["?xf32", "?x1xf32", "4x1x1xf32"]], {}, "4x?x?xf32"),
    ("multibroadcast", [["f32"]], {}, "f32"),
    ("multibroadcast", [["?xf32", "?xf32"]], {"out_dyn_dims": [4, 4]}, "4xf32"),
    ("scalar", ["1x1xf32"], {"scalar_bcst_dims": [2, 3]}, "2x3xf32"),
    ("broadcast_with_dims", ["1x3xf32", "2xi64"], {}, "?x3xf32"),
    ("broadcast_with_dims", ["2x1x3xf32", "1xi64"], {}, "2x1x3xf32"),
    ("broadcast_with_dims", ["3x1xf32", "3xi64"], {}, "?x3x?xf32"),
    ("broadcast_for_dot", ["3x4xf32", "?x4x5xf32"], {}, "?x3x4xf32"),
    ("dimensions_of", ["?x3x4xf32"], {"start": 1}, "2xi64"),
    ("dimensions_of", ["f32"], {}, "0xi64"),
    # movement
    ("slice", ["4x?xf32"], {"axes": [0], "starts": [1], "ends": [-1]}, "2x?xf32"),
    ("slice", ["4x?xf32"], {"axes": [1], "starts": [0], "ends": [2]}, "4x?xf32"),
    ("slice", ["4x5xf32", "1xi64"], {"axes": [1], "ends": [2]}, "4x?xf32"),
    ("slice", ["4x5xf32", "1xi64", "1xi32", "1xi64"], {}, "?x?xf32"),
    ("step", ["5x?xf32"], {"axes": [0, 1], "steps": [2, 2]}, "3x?xf32"),
    ("reverse", ["5x?xf32"], {"axes": [-1]}, "5x?xf32"),
    ("scan_slice", ["5x?xf32", "i64"], {"axis": 1}, "5x1xf32"),
    ("pad", ["2x?xf32"], {"pads": [1, 0, 2, 3]}, "5x?xf32"),
    ("fixed_pad", ["?x3xf32"], {"max_dims": [8, 3]}, "8x3xf32"),
    ("concat", [["2x3xf32", "?x?xf32", "2x1xf32"]], {"axis": 1}, "2x?xf32"),
    ("concat", [["?x3xf32", "?x3xf32"]], {"axis": -1}, "?x6xf32"),
    # windows
    ("dot", ["?x2x4xf16", "8x4x?xf16"], {}, "8x2x?xf16"),
    ("convolution", ["?x3x9x?xf32", "8x3x3x3xf32"], CONV, "?x8x5x?xf32"),
    ("convolution", ["1x9x9x4xf32", "3x3x2x8xf32"], CONV | {"group": 2, "channels_last": True},
     "1x5x5x8xf32"),
    ("convolution", ["1x?x9x9xf32", "8x3x3x3xf32"], {"padding_mode": "same_upper"}, "1x8x9x9xf32"),
    ("convolution_backwards", ["?x3x4x?xf32", "3x2x2x2xf32"], {"stride": [2, 2], "group": 3},
     "?x6x8x?xf32"),
    ("im2col", ["1x3x4x4xf32", "8x3x3x3xf32"], {}, "4x27xf32"),
    ("pooling", ["1x3x8x?xf32"], THREE, "1x3x3x?xf32"),
    ("pooling", ["1x3x8x8xf32"], THREE | {"ceil_mode": True}, "1x3x4x4xf32"),
    ("pooling", ["1x3x4x4xf32"], {"lengths": [2, 2], "stride": [3, 3], "padding": [0, 0, 1, 1],
                                  "ceil_mode": True}, "1x3x2x2xf32"),
    ("pooling", ["1x3x?x8xf32"], {"dyn_global": True}, "1x3x1x1xf32"),
    ("roialign", ["1x3x?x?xf32", "?x4xf32", "5xi64"], {"output_width": 2}, "5x3x1x2xf32"),
    ("resize", ["1x3x4x?xf32"], {"scales": [1, 1, 2.5, 2]}, "1x3x10x?xf32"),
    ("resize", ["1x3x4x?xf32"], {"sizes": [0, 0, 7, 9]}, "1x3x7x9xf32"),
    ("resize", ["1x3x4x4xf32", "4xf32"], {}, "?x?x?x?xf32"),
    ("resize", ["10xf32"], {"scales": [0.7]}, "7xf32"),  # in f32 as ONNX Runtime; 6 in f64
    # indices
    ("gather", ["2x5xf32", "3x?xi64"], {"axis": 1}, "2x3x?xf32"),
    ("gather", ["2x5xf32", "i32"], {}, "5xf32"),
    ("gathernd", ["?x5x3xf32", "4x2x1xi64"], {"batch_dims": 1}, "4x2x3xf32"),
    ("scatter_none", ["?x3xf32", "2x3xi64", "2x3xf32"], {}, "?x3xf32"),
    ("scatternd_add", ["4x3xf32", "?x1xi64", "?x3xf32"], {}, "4x3xf32"),
    ("onehot", ["3xi64", None, "2xf16"], {"depth": 4, "axis": 0}, "4x3xf16"),
    ("onehot", ["3xi64", "i64", "2xf16"], {}, "3x?xf16"),
    ("nonzero", ["2x3xi1"], {}, "2x?xi64"),
    ("nonzero", ["2x3xi1"], {"padded": True}, "2x6xi64"),
    ("nonmaxsuppression", ["1x6x4xf32", "1x2x6xf32", "i64"], {}, "?x3xi64"),
    ("nonmaxsuppression", ["1x6x4xf32", "1x2x6xf32"], {"padded": True}, "12x3xi64"),
    ("concat_past_present", ["1x2x1x8xf16", "1xi32", "1x2x64x8xf16"], {}, "1x2x64x8xf16"),
    ("gqa_rotary_embedding", ["1x4x?x8xf16", "1x1xi32", "64x4xf16", "64x4xf16"],
     {"num_heads": 2}, "1x4x?x8xf16"),
    ("undefined", [], {}, "0xf32"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "operands", "attributes", "want"),
    CASES,
    ids=[f"{c[0]}-{i}" for i, c in enumerate(CASES)],
)
def test_result_type(name, operands, attributes, want):
    assert infer(name, *operands, **attributes) == f"tensor<{want}>"


def test_unique_has_four_results():
    assert infer("unique", "2x?xf32", axis=0) == (
        "tensor<?x?xf32>, tensor<?xi64>, tensor<2xi64>, tensor<?xi64>"
    )
    assert infer("unique", "2x3xi8") == "tensor<?xi8>, tensor<?xi64>, tensor<6xi64>, tensor<?xi64>"


@pytest.mark.parametrize(
    ("dims", "strides", "wanted", "found"),
    [
        ((2, 3, 4), (12, 4, 1), (6, 4), (4, 1)),
        ((2, 3, 4), (12, 4, 1), (2, 3, 2, 2), (12, 4, 2, 1)),
        ((6, 4), (1, 6), (2, 3, 4), (3, 1, 6)),
        ((6, 4), (1, 6), (24,), None),
        ((2, 3), (0, 1), (1, 2, 3, 1), (0, 0, 1, 1)),
        ((2, 3), (0, 1), (6,), None),
        ((4, 1, 6), (6, 6, 1), (2, 2, 6), (12, 6, 1)),
    ],
)
def test_lazy_strides(dims, strides, wanted, found):
    from mgx_mlir.dialects.migraphx.views import lazy_strides

    got = lazy_strides(dims, strides, wanted)
    if found is None:
        assert got is None
        return
    import numpy as np

    # the strides of an axis of one element do not matter: compare what they show
    buffer = np.arange(64)
    step = buffer.itemsize

    def shown(d, s):
        view = np.lib.stride_tricks.as_strided(buffer, d, [x * step for x in s])
        return view.reshape(wanted)

    np.testing.assert_array_equal(shown(wanted, got), shown(dims, strides))
