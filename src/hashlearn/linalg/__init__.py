"""Linear algebra that several folders share: principal axes, rotations, Gram matrices, sums over rows of tensors."""
