"""Every method that the paper compares with, and what these methods share."""
