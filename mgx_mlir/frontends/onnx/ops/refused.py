"""Operators of ONNX's own domains that are refused, with the reasons that users are told."""

from __future__ import annotations

from mgx_mlir.frontends.onnx.registry import refuse

ML = "ai.onnx.ml"

refuse(
    "RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit", domain="",
    why="strings that do not follow from inputs of the model by moves and operators of strings",
)  # fmt: skip
refuse(
    "ImageDecoder", domain="",
    why="an image file, whose dims are inside of it: decode it ahead of the program",
)  # fmt: skip
refuse("CastMap", "DictVectorizer", domain=ML, why="maps")
