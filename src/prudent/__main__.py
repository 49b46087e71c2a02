"""`python -m prudent`: the command line where scripts are not on the PATH."""

from prudent.cli import main

if __name__ == "__main__":
    main()
