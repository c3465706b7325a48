class Cosine:
    def scores(self, words, documents, queries): raise NotImplementedError
class Saliency:
    def __init__(self, *, source): ...
