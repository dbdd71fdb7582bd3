"""Queries that several passes share: constants, index maps, chains of views. No pass is here."""
