"""Refused operators of ONNX's own domains, with the reasons for the user."""

from __future__ import annotations

from mgx_mlir.frontends.onnx.registry import refuse

ML = "ai.onnx.ml"

refuse(
    "RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit", domain="",
    why="strings that are not computed from model inputs by string operators and views alone",
)  # fmt: skip
refuse(
    "ImageDecoder", domain="",
    why="an image file, which has its dims inside: decode it before the program",
)  # fmt: skip
refuse("CastMap", "DictVectorizer", domain=ML, why="maps")
