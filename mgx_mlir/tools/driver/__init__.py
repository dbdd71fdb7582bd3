"""mgx-driver: the commands of migraphx-driver, each in a file of `commands/`."""
