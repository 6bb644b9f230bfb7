"""What the doctor concludes from what it was told."""
