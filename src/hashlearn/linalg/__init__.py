"""Linear algebra that several folders share: principal axes, rotations, unit rows. One copy of each."""
