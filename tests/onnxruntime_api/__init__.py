"""Tests of onnxruntime's API over compiled programs, run against onnxruntime too."""
