"""Convolutions and poolings on CPUs."""
