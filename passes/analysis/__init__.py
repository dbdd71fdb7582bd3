"""What several passes ask of a program: constants, index maps, chains of views. No pass is here."""
