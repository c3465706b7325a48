"""The policy of a gateway: its rules, its file, the keys of its clients, and what is in force."""
