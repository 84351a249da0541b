"""Two builds: what moving from one to the other gains and loses."""
