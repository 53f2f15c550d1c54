"""The devices, processes and threads of a computation."""
