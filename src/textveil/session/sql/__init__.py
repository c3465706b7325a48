"""Sessions in a database: what they know is encrypted, looked up value by value, and added in transactions.

In: a URL, and where the keys lie. Out: `SQLStore`.
Not here: what a session knows and how it is asked (`session.snapshot`), and the other stores (`session.stores`).
"""
