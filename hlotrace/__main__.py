"""`python -m hlotrace`: the same as the command `hlotrace`."""

from hlotrace.cli import main

if __name__ == "__main__":
    main()
