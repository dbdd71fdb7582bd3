"""Cases of image operators."""

from __future__ import annotations

import numpy as np
from make_op_cases import Cases, group

MODES = (
    {}, {"align_corners": True}, {"half_pixel_centers": True},
)  # fmt: skip


@group
def resizing(g: Cases) -> None:
    x = g.floats(1, 5, 4, 2)
    b = g.ints(1, 4, 3, 2, dtype="uint8", low=0, high=255)
    for name in ("ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic"):
        for mode in MODES:
            for size in ([8, 7], [3, 2], [10, 8], [1, 1]):
                # three terms of up to 3 that cancel: sums in another order
                g.op(name, images=x, size=size, **mode, atol=3e-6)
            g.op(name, images=b, size=[6, 5], **mode, atol=1e-4)
    for align in (False, True):
        for size in ([8, 7], [3, 2], [5, 4]):
            g.op("ResizeArea", images=x, size=size, align_corners=align, atol=1e-6)
    g.op("ResizeNearestNeighbor", images=g.ints(1, 3, 3, 1), size=[6, 6])
    g.op("ResizeBilinear", images=x, size=g.input([6, 3], "int32"), half_pixel_centers=True)
    g.op("ResizeBilinear", images=g.floats(1, 3, 3, 1, dtype="float16"), size=[5, 5])
    for kernel in ("lanczos3", "lanczos1", "gaussian", "box", "triangle", "keyscubic",
                   "mitchellcubic"):  # fmt: skip
        for antialias in (True, False):
            scale, move = np.float32([1.6, 0.5]), np.float32([0.1, -0.2])
            g.op("ScaleAndTranslate", images=x, size=[8, 3], scale=scale, translation=move,
                 kernel_type=kernel, antialias=antialias, atol=1e-5)  # fmt: skip
    boxes = g.input(
        [[0, 0, 1, 1], [0.1, 0.2, 0.7, 0.9], [0.5, 0.5, 0.4, 0.1], [-0.5, -0.2, 1.3, 1.4]],
        "float32",
    )
    images = g.floats(2, 5, 6, 3)
    which = g.input([0, 1, 1, 0], "int32")
    for method in ("bilinear", "nearest"):
        g.op("CropAndResize", image=images, boxes=boxes, box_ind=which, crop_size=[4, 3],
             method=method, extrapolation_value=-2.0, atol=1e-6)  # fmt: skip
    g.op("CropAndResize", image=images, boxes=boxes, box_ind=which, crop_size=[1, 1], atol=1e-6)
    g.op("CropAndResize", image=b, boxes=boxes, box_ind=np.zeros(4, np.int32), crop_size=[3, 3],
         atol=1e-4)  # fmt: skip
    thin = g.floats(2, 1, 9, 1)  # the corners of the image are one element
    g.op("ResizeArea", images=thin, size=[5, 4], align_corners=True, atol=1e-6)


@group
def colours(g: Cases) -> None:
    x = g.floats(2, 3, 3, 3, low=0, high=1)
    g.op("AdjustContrastv2", images=x, contrast_factor=np.float32(1.7))
    g.op("AdjustHue", images=x, delta=np.float32(0.2), atol=2e-6)
    g.op("AdjustHue", images=x, delta=np.float32(-0.6), atol=2e-6)
    g.op("AdjustSaturation", images=x, scale=np.float32(0.4), atol=2e-6)
    g.op("AdjustSaturation", images=x, scale=np.float32(2.5), atol=2e-6)
    g.op("RGBToHSV", images=x, atol=1e-6)
    g.op("HSVToRGB", images=x, atol=1e-6)
    grey = g.input([[0.5, 0.5, 0.5], [0, 0, 0], [1, 1, 1], [0, 1, 0], [1, 0, 1]], "float32")
    g.op("RGBToHSV", images=grey)
    y = g.floats(1, 6, 7, 2)
    for padding in ("SAME", "VALID"):
        g.op("ExtractImagePatches", images=y, ksizes=[1, 3, 2, 1], strides=[1, 2, 1, 1],
             rates=[1, 1, 2, 1], padding=padding)  # fmt: skip
    g.op("ExtractVolumePatches", input=g.floats(1, 4, 5, 4, 2), ksizes=[1, 2, 2, 2, 1],
         strides=[1, 1, 2, 1, 1], padding="SAME")  # fmt: skip
    transform = np.float32([[1.1, 0.1, -0.5, -0.1, 0.9, 0.3, 0.01, 0.02]])
    for fill in ("CONSTANT", "REFLECT", "WRAP", "NEAREST"):
        for how in ("NEAREST", "BILINEAR"):
            g.op(
                "ImageProjectiveTransformV3",
                images=y,
                transforms=transform,
                output_shape=[5, 6],
                fill_value=np.float32(0.5),
                interpolation=how,
                fill_mode=fill,
                atol=1e-5,
            )
    g.op("ImageProjectiveTransformV2", images=y, transforms=transform, output_shape=[6, 7],
         interpolation="BILINEAR", atol=1e-5)  # fmt: skip


@group
def boxes(g: Cases) -> None:
    corner = g.random.uniform(0, 6, (12, 2))
    found = np.concatenate([corner, corner + g.random.uniform(1, 4, (12, 2))], 1)
    b, s = g.input(found, "float32"), g.input(g.random.uniform(0, 1, 12), "float32")
    f = np.float32
    g.op("NonMaxSuppression", boxes=b, scores=s, max_output_size=5, iou_threshold=0.3)
    g.op("NonMaxSuppressionV2", boxes=b, scores=s, max_output_size=5, iou_threshold=f(0.3))
    g.op("NonMaxSuppressionV3", boxes=b, scores=s, max_output_size=20, iou_threshold=f(0.4),
         score_threshold=f(0.2))  # fmt: skip
    for pad in (False, True):
        g.op("NonMaxSuppressionV4", boxes=b, scores=s, max_output_size=6, iou_threshold=f(0.2),
             score_threshold=f(0.4), pad_to_max_output_size=pad)  # fmt: skip
        g.op("NonMaxSuppressionV5", boxes=b, scores=s, max_output_size=6, iou_threshold=f(0.2),
             score_threshold=f(0.4), soft_nms_sigma=f(0), pad_to_max_output_size=pad)  # fmt: skip
    shared = g.input(found[None, :, None] / 10, "float32")
    scores = g.input(g.random.uniform(0, 1, (1, 12, 3)), "float32")
    g.op("CombinedNonMaxSuppression", boxes=shared, scores=scores, max_output_size_per_class=3,
         max_total_size=7, iou_threshold=f(0.3), score_threshold=f(0.3))  # fmt: skip
