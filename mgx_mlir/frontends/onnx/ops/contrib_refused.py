"""Refused operators of onnxruntime's domains, with the reasons for the user."""

from __future__ import annotations

from mgx_mlir.frontends.onnx.registry import refuse

MS = "com.microsoft"

refuse(
    "BeamSearch", "GreedySearch", "Sampling", "WhisperBeamSearch", domain=MS,
    why="a search over the outputs of a model that it holds; run that model in a loop",
)  # fmt: skip
refuse(
    "Tokenizer", domain=MS,
    why="strings that are not computed from model inputs by string operators and views alone",
)  # fmt: skip
refuse("Snpe", "EPContext", domain=MS, why="a payload for another runtime")
refuse("DequantizeBFP", "QuantizeBFP", domain=MS, why="block floating point of one device")
refuse("SparseToDenseMatMul", domain=MS, why="sparse tensors")
refuse("MatMulFpQ4", domain=MS, why="weights in a layout that depends on onnxruntime's version")
refuse("GatherPacked", domain=MS, why="rows in the packed formats of another runtime's files")
refuse(
    "MaxpoolWithMask", domain=MS, why="internal to onnxruntime; its behaviour differs from its name"
)
refuse("SampleOp", domain=MS, why="an example in onnxruntime's tests")
refuse(
    "QOrderedAttention", "QOrderedGelu", "QOrderedLayerNormalization", "QOrderedMatMul",
    "QOrderedLongformerAttention", "QuantizeWithOrder", "DequantizeWithOrder", domain=MS,
    why="matrices in the layouts of one GPU library",
)  # fmt: skip
refuse(
    "MatMulPacked", "MoEPacked", domain=MS,
    why="weights packed in the formats of another runtime's files",
)  # fmt: skip
refuse(
    "MatMulBlockQuantizedFp4Weight", "MatMulBlockQuantizedFp8Weight", "GemmFloat8", domain=MS,
    why="matmuls of 4- and 8-bit floats for one vendor's GPUs: write them as DequantizeLinear "
    "and MatMul",
)  # fmt: skip
refuse(
    "MatMulNBitsQLoRA", domain=MS,
    why="no CPU kernel to compare with: write it as three MatMulNBits and an Add",
)  # fmt: skip
refuse(
    "ConvStateReplay", "GatedDeltaNetStateReplay", "Mamba2Verify", "SpeculativePrefixCommit",
    domain=MS, why="state of speculative decoding in buffers that a server owns",
)  # fmt: skip
refuse(
    "DynamicSparseAttention", "PackedSparseAttentionIndexerMerge", domain=MS,
    why="keys that an indexer of a serving runtime selects",
)  # fmt: skip
refuse(
    "LongformerAttention", "DecoderAttention", "DecoderMaskedSelfAttention", "RMSNormRotary",
    "RemovePadding", "HyperConnectionLowRankMix", domain=MS,
    why="onnxruntime's fusion for its own GPU kernels: save the model before that optimization",
)  # fmt: skip
refuse(
    "AttnLSTM", domain=MS,
    why="a recurrent cell with attention: write it as a Loop over the cell's operators",
)  # fmt: skip
refuse(
    "BifurcationDetector", "DynamicTimeWarping", domain=MS,
    why="a search whose steps depend on each other's values: run it on the host",
)  # fmt: skip
refuse(
    "NGramHashMapping", "VarlenNGramHashMapping", domain=MS,
    why="hashes of token windows: compute the indices on the host and pass them as an input",
)  # fmt: skip
refuse(
    "PagedAttention", "SparsePagedAttention", "PackedSparseAttentionIndexer",
    "SparseAttentionIndexer", domain=MS, why="a cache of pages that a server owns",
)  # fmt: skip
refuse(
    "AveragePool", "Conv", "GlobalAveragePool", "GlobalMaxPool", "MaxPool", "ReorderInput",
    "ReorderOutput", "Upsample", domain="com.microsoft.nchwc",
    why="channels in blocks for the CPU on which onnxruntime wrote the file; the file does "
    "not state their size: save it with at most extended optimizations",
)  # fmt: skip
