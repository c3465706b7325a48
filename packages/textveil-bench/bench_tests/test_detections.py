from textveil.detect.spans import Span
from textveil_bench.detections import CachingDetector, get_caching_detector


class Counting:
    name = "counting"

    def __init__(self):
        self.asked = []

    def find(self, texts):
        self.asked.append(list(texts))
        return [
            Span(i, 0, len(text), "NAME", 1.0, "")
            for i, text in enumerate(texts)
            if text.startswith("A")
        ]


def test_a_text_is_looked_at_once():
    detector = Counting()
    found = CachingDetector(name="counting", detector=detector)
    assert [span.text for span in found.find(["Anna", "tree", "Anna"])] == [0, 2]
    assert [span.text for span in found.find(["stone", "Anna", "Arno"])] == [1, 2]
    assert detector.asked == [["Anna", "tree"], ["stone", "Arno"]]


def test_what_is_remembered_is_in_no_repr():
    found = CachingDetector(name="counting", detector=Counting())
    found.find(["Anna"])
    assert "Anna" not in repr(found)


def test_the_same_spans_as_without_memory():
    from textveil.detect.detectors import load_detector

    texts = ["write to anna.holm@example.org", "nothing here", "or to 10.0.0.1"]
    assert get_caching_detector("patterns").find(texts) == load_detector("patterns").find(texts)
    assert get_caching_detector("patterns") is get_caching_detector("patterns")
