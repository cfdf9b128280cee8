"""Programs in other notations: a NumPy module, ONNX, SymPy and LaTeX."""
