"""PyTorch policies as they are: an `nn.Module` becomes a Structure, without torch."""
