"""`python -m echoplane`: how the supervisor starts roles."""

from echoplane._cli import main

if __name__ == "__main__":
    main()
