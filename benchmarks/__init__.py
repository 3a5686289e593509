"""Measurements that anyone can repeat: definitions here, one folder for each part of hashlearn."""
