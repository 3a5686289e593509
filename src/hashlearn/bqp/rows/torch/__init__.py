"""Rows of P as PyTorch tensors on any device. Imported only when a tensor is met."""
