"""onnxruntime's public names, and their meaning here: the table of docs/onnxruntime.md."""

from __future__ import annotations

from mgx_mlir.integrations.onnxruntime.options import (
    HONOURED,
    MEANS_NOTHING,
    REFUSED,
    RUN_ATTRIBUTES,
    RUN_METHODS,
    SESSION_ATTRIBUTES,
    SESSION_METHODS,
    Meaning,
)

IMPLEMENTED = "implemented"

_IMPLEMENTED = {
    "InferenceSession": "paths of .onnx and .mxr files, bytes of ONNX files",
    "SessionOptions": "see below",
    "RunOptions": "see below",
    "IOBinding": "memory of the host",
    "SessionIOBinding": "another name of IOBinding",
    "OrtValue": "memory of the host",
    "OrtDevice": "kind and number",
    "NodeArg": "name, type, shape",
    "ModelMetadata": "what the model's file says",
    "GraphOptimizationLevel": "see SessionOptions",
    "ExecutionMode": "see SessionOptions",
    "ExecutionOrder": "see SessionOptions",
    "OrtDeviceVendorId": "",
    "OrtMemoryInfo": "what get_input_memory_infos gives",
    "get_available_providers": "the GPU ones if a GPU is present, and CPUExecutionProvider",
    "get_all_providers": "MIGraphXExecutionProvider, ROCMExecutionProvider, CPUExecutionProvider",
    "get_device": "GPU if one is present, else CPU",
    "get_version_string": "mgx_mlir's version",
    "get_build_info": "mgx_mlir's version",
    "get_ep_devices": "empty",
    "has_collective_ops": "False",
    "print_debug_info": "",
    "copy_tensors": "memory of the host",
    "capi": "capi.onnxruntime_pybind11_state has the error classes",
}
_NOTHING = {
    "OrtAllocatorType": "an enumeration; memory is planned when a model is compiled",
    "OrtMemType": "an enumeration",
    "OrtDeviceMemoryType": "an enumeration",
    "OrtMemoryInfoDeviceType": "an enumeration",
    "OrtHardwareDeviceType": "an enumeration",
    "OrtExecutionProviderDevicePolicy": "an enumeration; a GPU is used if one is present",
    "OrtSparseFormat": "an enumeration; there are no sparse tensors",
    "create_and_register_allocator": "memory is planned when a model is compiled",
    "create_and_register_allocator_v2": "memory is planned when a model is compiled",
    "disable_telemetry_events": "there is no telemetry",
    "enable_telemetry_events": "there is no telemetry",
    "preload_dlls": "HIP is loaded when a GPU is used",
    "set_default_logger_callback": "nothing is logged; errors and warnings are raised",
    "set_default_logger_severity": "nothing is logged; errors and warnings are raised",
    "set_default_logger_verbosity": "nothing is logged; errors and warnings are raised",
    "set_global_thread_pool_sizes": "SessionOptions.intra_op_num_threads sets the threads",
    "set_seed": "random operators use the seeds of their attributes",
}
_REFUSED = {
    "AdapterFormat": "there are no LoRA adapters",
    "LoraAdapter": "there are no LoRA adapters",
    "ModelCompiler": "`mgx-driver compile` writes a compiled program",
    "ModelPackage": "`mgx-driver bundle` writes a folder of compiled programs",
    "ModelPackageComponentContext": "as ModelPackage",
    "ModelPackageContext": "as ModelPackage",
    "ModelPackageOptions": "as ModelPackage",
    "ModelPackageWriteMode": "as ModelPackage",
    "OrtArenaCfg": "memory is planned when a model is compiled",
    "OrtCompileApiFlags": "as ModelCompiler",
    "OrtEpAssignedNode": "the whole model runs on one provider",
    "OrtEpAssignedSubgraph": "the whole model runs on one provider",
    "OrtEpContextData": "there are no EPContext nodes",
    "OrtEpContextDataBuffer": "there are no EPContext nodes",
    "OrtEpDevice": "there are no plugin providers",
    "OrtExternalInitializerInfo": "models are not written back as ONNX",
    "OrtHardwareDevice": "there are no plugin providers",
    "OrtSyncStream": "runs are complete when they return",
    "SparseTensor": "there are no sparse tensors",
    "register_execution_provider_library": "there are no plugin providers",
    "unregister_execution_provider_library": "there are no plugin providers",
}
MODULE: dict[str, Meaning] = {
    **{n: Meaning(IMPLEMENTED, t) for n, t in _IMPLEMENTED.items()},
    **{n: Meaning(MEANS_NOTHING, t) for n, t in _NOTHING.items()},
    **{n: Meaning(REFUSED, t) for n, t in _REFUSED.items()},
}
REFUSED_CLASSES = tuple(n for n in _REFUSED if n[0].isupper())

_SESSION = {
    "run": "", "run_async": "", "run_with_iobinding": "", "run_with_ort_values": "",
    "run_with_ortvaluevector": "", "io_binding": "", "get_inputs": "", "get_outputs": "",
    "get_overridable_initializers": "a run that replaces one compiles another program",
    "get_modelmeta": "", "get_session_options": "", "get_providers": "",
    "get_provider_options": "", "set_providers": "prepares the model again",
    "enable_fallback": "with wrong providers it runs on the CPU, and warns",
    "disable_fallback": "wrong providers are errors", "end_profiling": "",
    "get_profiling_start_time_ns": "", "get_input_memory_infos": "memory of the host",
    "get_output_memory_infos": "memory of the host",
    "create_ortvalue_from_shape_and_type": "memory of the host",
}  # fmt: skip
_SESSION_NOTHING = {
    "get_input_epdevices": "there are no plugin providers",
    "get_provider_graph_assignment_info": "the whole model runs on one provider",
    "get_tuning_results": "results of tuning are in the tuning file",
    "set_tuning_results": "results of tuning are in the tuning file",
    "set_ep_dynamic_options": "no option changes between runs",
    "release_captured_graph": "graphs are not captured",
}
_VALUE = (
    "data_ptr", "data_type", "device_name", "element_type", "from_dlpack", "has_value",
    "is_sparse_tensor", "is_tensor", "is_tensor_sequence", "numpy", "ortvalue_from_numpy",
    "ortvalue_from_numpy_with_onnx_type", "ortvalue_from_shape_and_type", "shape",
    "tensor_size_in_bytes", "update_inplace",
)  # fmt: skip
_BINDING = (
    "bind_cpu_input", "bind_input", "bind_ortvalue_input", "bind_ortvalue_output", "bind_output",
    "clear_binding_inputs", "clear_binding_outputs", "copy_outputs_to_cpu", "get_outputs",
    "get_outputs_as_ortvaluevector",
)  # fmt: skip
MEMBERS: dict[str, dict[str, Meaning]] = {
    "InferenceSession": {
        **{n: Meaning(IMPLEMENTED, t) for n, t in _SESSION.items()},
        **{n: Meaning(MEANS_NOTHING, t) for n, t in _SESSION_NOTHING.items()},
    },
    "SessionOptions": {**SESSION_ATTRIBUTES, **SESSION_METHODS},
    "RunOptions": {**RUN_ATTRIBUTES, **RUN_METHODS},
    "IOBinding": {
        **{n: Meaning(IMPLEMENTED, "") for n in _BINDING},
        "synchronize_inputs": Meaning(
            MEANS_NOTHING, "inputs are in host memory when they are bound"
        ),
        "synchronize_outputs": Meaning(MEANS_NOTHING, "outputs are complete when a run returns"),
    },
    "OrtValue": {
        **{n: Meaning(IMPLEMENTED, "") for n in _VALUE},
        "as_sparse_tensor": Meaning(REFUSED, "there are no sparse tensors"),
        "ort_value_from_sparse_tensor": Meaning(REFUSED, "there are no sparse tensors"),
    },
    "OrtDevice": {
        n: Meaning(IMPLEMENTED, "")
        for n in ("make", "device_id", "device_type", "device_mem_type", "device_vendor_id")
    },
}
STATUSES = (IMPLEMENTED, HONOURED, MEANS_NOTHING, REFUSED)
