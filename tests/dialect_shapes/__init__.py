"""Shape, window, index and control operators against oracles that share no code with them."""
