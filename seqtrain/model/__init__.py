"""The network: its branches, their layers, and engines that compute the recurrence."""
