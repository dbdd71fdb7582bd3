"""Dynamic sizes and values that do not fit: each is an error, and what is legal stays right."""
