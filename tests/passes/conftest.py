"""What the pass tests share."""
