"""Sessions in a database: encrypted, looked up by value, extended in transactions.

In: a URL, and where the keys lie. Out: `SQLStore`.
Not here: the state of a session and its queries (`session.snapshot`), and the other stores
(`session.stores`).
"""
