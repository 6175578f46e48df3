"""Trained models as ONNX files, for programs and machines without torch."""
