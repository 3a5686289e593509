"""What every room may need of the machine: files that are written whole or not at all, and optional packages."""
