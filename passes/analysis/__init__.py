"""What several passes ask of a program: constants, index maps, chains of views, kernels. No pass is here."""
