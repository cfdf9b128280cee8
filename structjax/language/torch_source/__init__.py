"""PyTorch policies as they are: an `nn.Module` is read into a Structure, without torch."""
