"""`python -m ordercast`: the command line, where the script is not on the PATH."""

from ordercast.cli.app import main

if __name__ == "__main__":
    main()
