"""The commands of mgx-driver: each module has OPTIONS, USAGE, DESCRIPTION and run(arguments)."""
