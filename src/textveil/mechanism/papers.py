"""The table of names: each paper's mechanism as a composition of parts.

In: a name's own options. Out: a `Mechanism`. `textveil explain NAME` prints these texts.
Not here: the parts themselves (`perturb`, `select`), and which profile uses which numbers.
"""

import math
from typing import Literal, get_args

from textveil.errors import UnknownName
from textveil.mechanism.buckets import BucketRule
from textveil.mechanism.chain import WordChain
from textveil.mechanism.confined import Ball, Confined, NearestLists, SensitiveList
from textveil.mechanism.context import Context, ContextMode
from textveil.mechanism.fill import Fill
from textveil.mechanism.masked_draw import MaskedDraw
from textveil.mechanism.noise import (
    CoordinateLaplace,
    Mahalanobis,
    MultivariateLaplace,
    NoiseName,
    NoNoise,
    VonMisesFisher,
)
from textveil.mechanism.perturb import Decode, Perturb
from textveil.mechanism.rule import Exponential, TruncatedExponential
from textveil.mechanism.select import Placeholder, Select
from textveil.mechanism.staircase import Staircase
from textveil.mechanism.utility import Distance, Hybrid
from textveil.mechanism.vickrey import Vickrey
from textveil.mechanism.window import Window
from textveil.table import Metric


def noise(
    *, eta: float | None = None, project: int | None = None, decode: Decode = "metric"
) -> Perturb:
    """Multivariate Laplace noise on each word's vector; the nearest word is released.

    A word's vector gets noise of density proportional to exp(-eta |z|): a Gamma(d, 1/eta) radius
    times a uniform direction. The nearest word of the table is released. `project` runs it in that
    many principal axes of the public table, which keeps the constant and more of the meaning.
    `decode` cosine takes the nearest word by cosine on raw rows, too.

    Guarantee:
        metric DP, epsilon = eta per unit of chord distance (Euclidean for raw rows), sharp for the
        vectors; local
        DP eta * diameter.

    Caveats:
        In many dimensions the discrete output leaks less than the bound, but no closed form says
        how much. Equal
        epsilons of different metrics or tables cannot be compared.

    Source:
        Feyisetan et al. 2020 (WSDM); Qu et al. 2021; NOISE in d-chi-STENCIL, section 3.2.
    """
    return Perturb(name="noise", noise=MultivariateLaplace(eta=eta), project=project, decode=decode)


def stencil(
    *,
    L: int = 5,
    sigma: float = 1.25,
    side: Literal["right", "left"] = "right",
    window_over: Literal["protected", "all"] = "protected",
    balanced: bool = False,
    exclude_original: bool = False,
    project: int | None = None,
    decode: Decode = "metric",
) -> Perturb:
    """Each word's vector is mixed with its neighbours' by a Gaussian window; no noise.

    The nearest word to the weighted mean of L words is released. A baseline: most words survive it,
    and `exclude_original`, the paper's rule that the word itself is never released, only hides that
    from a count.

    Guarantee:
        none. It is deterministic: the output tells inputs apart with certainty. --epsilon has no
        meaning here.

    Caveats:
        With `exclude_original` the share of kept words is 0 by construction, and an attacker who
        knows the rule
        still recovers most words.

    Source:
        STENCIL in d-chi-STENCIL, section 3.1.
    """
    window = Window(L=L, sigma=sigma, side=side, window_over=window_over, balanced=balanced)
    return Perturb(
        name="stencil",
        mix=window,
        noise=NoNoise(),
        exclude_original=exclude_original,
        project=project,
        decode=decode,
    )


def d_chi_stencil(
    *,
    eta: float | None = None,
    L: int = 5,
    sigma: float = 0.75,
    side: Literal["right", "left"] = "right",
    window_over: Literal["protected", "all"] = "protected",
    balanced: bool = False,
    noise: NoiseName = "multivariate-laplace",
    exclude_original: bool = False,
    project: int | None = None,
    decode: Decode = "metric",
) -> Perturb:
    """Neighbouring words are mixed by a Gaussian window, noise is added, the nearest word is released.

    Released row i is sum_j f_ij e(x_j) + noise(eta_i), decoded to the nearest word. Odd L puts the
    top weight on the word itself; even L shares it between the word and one neighbour (`side`),
    which caps what can be kept. `noise` takes any noise; for coordinate-laplace `eta` is its
    nominal, for von-mises-fisher its kappa. `decode` cosine is the paper's on raw rows.

    Guarantee:
        metric DP with epsilon_j = sum over released rows i of eta_i f_ij per unit of chord
        distance, exact for the
        text at hand and sharp for the vectors. The paper's factor 2 is never reached (C_j < 2 is
        proved; a search finds at most 1.387 for odd L, 1.5 for even L in a text without holes).
        Given budgets b_j, eta_i = min b_j / C_j over its window.

    Caveats:
        The paper's Theorem 1 for the cosine distance does not hold (that distance is no metric).
        One word shows in
        several outputs: an attacker reads all outputs whose window holds it. `exclude_original`
        makes the loss
        infinite.

    Source:
        d-chi-STENCIL, section 3.3, Algorithm 1 with offsets relative to the word.
    """
    window = Window(L=L, sigma=sigma, side=side, window_over=window_over, balanced=balanced)
    if noise not in get_args(NoiseName):
        raise UnknownName("noise", noise, get_args(NoiseName))
    noise_part: MultivariateLaplace | CoordinateLaplace | VonMisesFisher = MultivariateLaplace(
        eta=eta
    )
    if noise == "coordinate-laplace":
        noise_part = CoordinateLaplace(nominal=eta)
    elif noise == "von-mises-fisher":
        noise_part = VonMisesFisher(kappa=eta)
    return Perturb(
        name="d-chi-stencil",
        mix=window,
        noise=noise_part,
        exclude_original=exclude_original,
        project=project,
        decode=decode,
    )


def mahalanobis(
    *, eta: float | None = None, lambda_M: float = 0.2, project: int | None = None
) -> Perturb:
    """Noise that is longer where the table's vectors spread; the nearest word is released.

    The multivariate Laplace noise of `noise` is multiplied by the root of lambda_M S + (1 -
    lambda_M) I, S being the covariance of the table's vectors, scaled to the trace of I. Words in
    sparse regions change more often than under `noise`.

    Guarantee:
        metric DP, epsilon = eta / s per unit of the table's distance, s the root's smallest
        eigenvalue; sharp for the vectors. Local DP at most eta times the largest regularized
        Mahalanobis distance.

    Caveats:
        The paper's epsilon is eta, per unit of the Mahalanobis distance: another unit. It names no
        constant for the table's own distance.

    Source:
        Xu, Aggarwal, Feyisetan and Teissier 2020 (PrivateNLP).
    """
    return Perturb(
        name="mahalanobis", noise=Mahalanobis(eta=eta, lambda_M=lambda_M), project=project
    )


def vickrey(
    *,
    eta: float | None = None,
    t: float = 0.5,
    noise: Literal["multivariate-laplace", "mahalanobis"] = "multivariate-laplace",
    lambda_M: float = 0.2,
    project: int | None = None,
) -> Vickrey:
    """Noise on each word's vector; the nearest or the second nearest word is released.

    At distances a <= b the second nearest is released with probability t a / (t a + (1 - t) b): t 0
    is `noise` (or `mahalanobis`), t 1 always takes the second. Near its own vector a word gives way
    to a neighbour more often.

    Guarantee:
        metric DP as for the noise: what is chosen depends on the noisy vector only.

    Caveats:
        t adds nothing to the guarantee. An attacker who knows t reads the second nearest word as
        well as the first; that the word itself comes out less often is no privacy by itself.

    Source:
        Xu, Aggarwal, Feyisetan and Teissier 2021 (PrivateNLP).
    """
    part = (
        MultivariateLaplace(eta=eta)
        if noise == "multivariate-laplace"
        else Mahalanobis(eta=eta, lambda_M=lambda_M)
    )
    if noise not in ("multivariate-laplace", "mahalanobis"):
        raise UnknownName("noise", noise, ("multivariate-laplace", "mahalanobis"))
    return Vickrey(noise=part, t=t, project=project)


def polar(
    *,
    kappa: float | None = None,
    convention: Literal["paper", "code"] = "paper",
    radius: float | None = None,
    project: int | None = None,
) -> Perturb:
    """A von Mises-Fisher draw around each word's direction; the nearest word by cosine is released.

    Only the direction of a vector is used and moved: the released direction has density
    proportional to exp(kappa <direction, word>). With `convention` code, the number given as kappa
    is the epsilon of the paper's public code, and kappa is that over pi. `radius` also privatizes
    the vector's length, as the paper's full mechanism does.

    Guarantee:
        metric DP, epsilon = kappa per unit of chord distance, sharp; local DP kappa * diameter (at
        most 2 kappa). With
        `radius`, plus that epsilon over the table. With `project`, times the factor that
        renormalising costs.

    Caveats:
        The paper's public code uses kappa = epsilon / pi, a loose convention for the whole sphere.
        The radius cannot
        change a cosine decode: it is charged and useless. At equal epsilon it keeps about what
        `noise` keeps.

    Source:
        STAMP, section 4 and Theorem 3.
    """
    if convention == "code" and kappa is not None:
        kappa = kappa / math.pi
    return Perturb(name="polar", noise=VonMisesFisher(kappa=kappa, radius=radius), project=project)


def laplace(
    *,
    nominal: float | None = None,
    calibration: Literal["honest", "paper"] = "honest",
    decode: Decode = "metric",
) -> Perturb:
    """Independent Laplace noise on every coordinate; the nearest word is released.

    --epsilon is per unit of l1 distance (scale 1/epsilon). `nominal` is instead an epsilon for the
    whole table: with `calibration` honest the scale is D_1 / nominal (D_1 the table's l1 diameter),
    and nominal is the local DP really spent; with `paper` it is Delta_1 / nominal (Delta_1 the sum
    of the coordinates' ranges).

    Guarantee:
        metric DP in the l1 distance, epsilon = 1/scale per unit; local DP D_1 / scale.

    Caveats:
        The papers' calibration spends much less than it says (on raw all-MiniLM rows 0.194 of it),
        which makes the
        mechanism look worse than it is. l1 distances are large: compare local DP values, not
        epsilons.

    Source:
        the Laplace baseline of STAMP, section 5.2.
    """
    return Perturb(
        name="laplace",
        noise=CoordinateLaplace(nominal=nominal, calibration=calibration),
        decode=decode,
    )


def exponential(
    *, c: float | None = None, calibration: Literal["exact", "paper"] = "exact"
) -> Select:
    """Draws each word from the whole vocabulary with probability proportional to exp(-c distance).

    Weights are integers and the draw is exact, so that every word of the table can come out.
    `calibration` exact finds the largest c whose constant on the public table is at most epsilon;
    paper takes c = epsilon /
    2.

    Guarantee:
        metric DP in the table's distance, epsilon = c + max (ln Z_x' - ln Z_x) / d(x, x') over the
        table, exact or
        certified, never more than 2c; plus 8.7e-7 for rounding.

    Caveats:
        The exact calibration removes slack from the printed number; it moves along the same
        trade-off of privacy and
        utility. Distances are capped where c * distance exceeds 20.

    Source:
        the exponential mechanism of McSherry and Talwar 2007 with the distance utility of SanText
        (Yue et al. 2021).
    """
    return Select(name="exponential", rule=Exponential(c=c, calibration=calibration))


def tem(*, c: float | None = None, gamma: float | None = None, beta: float = 0.001) -> Select:
    """Draws a word with weight exp(-c distance); all words beyond gamma weigh the same.

    It is the law of the paper's algorithm (Gumbel noise on the scores of near words and on one
    score for all others), drawn exactly. gamma follows from beta: the largest probability of all
    words beyond it together.

    Guarantee:
        metric DP in the table's distance, epsilon = 2c; local DP 2c gamma; plus 8.7e-7 for
        rounding.

    Caveats:
        The paper's claim holds. Distances are capped where c * distance exceeds 20 or c * gamma. In
        high dimensions most words are beyond gamma, so that a word that changes becomes any word.

    Source:
        TEM (Carvalho, Vasiloudis, Feyisetan and Wang 2021).
    """
    return Select(name="tem", rule=TruncatedExponential(c=c, gamma=gamma, beta=beta))


def diffractor(
    *,
    nominal: float | None = None,
    method: Literal["geometric", "TEM"] = "geometric",
    gamma: int = 5,
    lists: int = 1,
) -> WordChain:
    """Moves each word along a public list in which neighbours are alike.

    The list goes from a word to the nearest word that it does not hold yet. `geometric` adds
    two-sided geometric noise to the word's place; `TEM` draws one of the places nearer than gamma,
    or any other. A place k further away is exp(-nominal k) times as likely, or with TEM exp(-nominal
    min(k, gamma) / 2) times.

    Guarantee:
        local DP, nominal (V - 1) for geometric, nominal gamma for TEM; between two words at most 10
        places apart in every list at most 10 nominal. The paper's claim, nominal per place, holds.

    Caveats:
        Distance in the list is not distance of meaning: neighbours of a word may be thousands of
        places away. The authors' package takes lists of five embeddings, and draws with a generator
        that is seeded with 42 unless told otherwise, so that its draws are no secret. It leaves stop
        words and unknown words as they are; here that is up to words.stopwords and words.oov.

    Source:
        1-Diffractor (Meisenbacher, Chevli and Matthes 2024), and the package dp-diffractor.
    """
    return WordChain(nominal=nominal, method=method, gamma=gamma, lists=lists)


def santext(*, c: float | None = None, calibration: Literal["exact", "paper"] = "paper") -> Select:
    """Draws each word from the whole vocabulary with probability proportional to exp(-c distance), c = epsilon / 2.

    It is `exponential` with the paper's c. The statement has the true constant of the public table,
    which is little more than c: about half of the --epsilon that was given, for the paper's factor
    2 is almost all slack.

    Guarantee:
        metric DP in the table's distance, epsilon = c + max (ln Z_x' - ln Z_x) / d(x, x'), never
        more than 2c; plus
        8.7e-7 for rounding.

    Caveats:
        To spend the --epsilon that you give, take `exponential`. Distances are capped where c *
        distance exceeds 20. In the paper's public code worker processes repeat each other's draws,
        and far words cannot come out; here neither happens.

    Source:
        SanText (Yue et al. 2021), section 4.1.
    """
    return Select(name="santext", rule=Exponential(c=c, calibration=calibration))


def santext_plus(*, c: float | None = None, share: float = 0.5, p: float = 0.2) -> Confined:
    """SanText among the rare words; a frequent word stays as it is with probability 1 - p.

    `share` of the table's words are sensitive: those that are rarest in public text. A sensitive
    word is replaced by a sensitive one; any other word is replaced by a sensitive one with
    probability `p`, and otherwise released unchanged.

    Guarantee:
        none for all words: a frequent word that comes out was there for certain. For two sensitive
        words metric DP with
        epsilon = 2c.

    Caveats:
        --epsilon is the paper's, 2c. Frequent does not mean harmless: names and diagnoses can be
        frequent. Between a
        frequent and a sensitive word, a sensitive output loses up to epsilon d + ln(1/p). The
        paper's list is made of
        the private texts; this one follows from public text.

    Source:
        SanText+ (Yue et al. 2021), section 4.2.
    """
    return Confined(
        name="santext+",
        candidates=SensitiveList(share=share, p=p, rule=Exponential(c=c, calibration="paper")),
    )


def custext(
    *,
    k: int = 20,
    mapping: Literal["conservative", "aggressive"] = "conservative",
    nominal: float | None = None,
) -> Confined:
    """Draws each word from a list of k words, nearer ones more often.

    `mapping` conservative cuts the vocabulary into disjoint groups of k; aggressive takes the k
    nearest words of each word. A word is drawn with probability proportional to exp(epsilon score /
    2); scores go from 1 for the nearest to 0 for the farthest of the list.

    Guarantee:
        none for all words: the output shows the group, or rules out all words whose list it is not
        on. For two words of
        one conservative group local DP, with little more than half of the nominal epsilon.

    Caveats:
        --epsilon is the nominal one and bounds nothing. At any epsilon a group of k leaves k
        guesses at most.

    Source:
        CusText (Chen et al. 2023), section 3.
    """
    return Confined(name="custext", candidates=NearestLists(k=k, mapping=mapping, nominal=nominal))


def custext_plus(
    *,
    k: int = 20,
    mapping: Literal["conservative", "aggressive"] = "conservative",
    nominal: float | None = None,
) -> Confined:
    """CusText that leaves stop words as they are, also where they count as private.

    With words.stopwords=pass, the default, stop words never reach a mechanism, and this is
    `custext`.

    Guarantee:
        none for all words, as for `custext`; and a stop word is released unchanged. For two words
        of one conservative group that are not stop words, local DP.

    Caveats:
        --epsilon is the nominal one and bounds nothing.

    Source:
        CusText+ (Chen et al. 2023), section 3.4.
    """
    lists = NearestLists(k=k, mapping=mapping, keep_stopwords=True, nominal=nominal)
    return Confined(name="custext+", candidates=lists)


def rantext(*, nominal: float | None = None) -> Confined:
    """Draws each word from those nearer than a random radius, nearer ones more often (RANTEXT of InferDPT).

    The radius is the length of Laplace noise on the word's vector. Its scale hardly depends on
    epsilon, and not at all on the word.

    Guarantee:
        none: the radius is much the same for all words, so an output rules out all words that are
            farther away.

    Caveats:
        --epsilon is the nominal one, of the weights inside the radius, and bounds nothing. The law
        is an integral over
        the radius, which is drawn in floating point, and known numerically only. The public code
        drops words that it
        does not know; here they follow the option words.oov.

    Source:
        InferDPT (Tong et al. 2023), RANTEXT.
    """
    return Confined(name="rantext", candidates=Ball(nominal=nominal))


def krr() -> Select:
    """k-ary randomised response: the word itself with weight exp(epsilon), every other word with weight 1.

    Distance plays no part: a word is kept, or becomes any word of the table.

    Guarantee:
        local DP, epsilon, sharp. Nothing keeps more words at the same epsilon.

    Caveats:
        Of V words it keeps exp(epsilon) / (exp(epsilon) + V - 1), and none of the meaning of the
        other words.

    Source:
        Warner 1965; Kairouz et al. 2014. It is `rankcape` with k = 1.
    """
    return Select(name="krr", utility=Distance(), rule=Staircase(sizes=(1,)))


def codebook() -> Select:
    """k-ary randomised response over a few codes of words: the code of the word, or any other.

    A public book maps every word to one of C codes (`table.codes`). A word's code is kept with
    weight exp(epsilon), every other code has weight 1. The code is released, written as its most
    typical word. `textveil table codes` makes books from public texts, and `textveil table info`
    says what a book hides.

    Guarantee:
        local DP, epsilon, sharp, for any two words of different codes; 0 for two words of one code,
        however often they
        are released under one book. The draw is from whole numbers.

    Caveats:
        Epsilon hides whether the released code is the right one; only the book hides which word of
        the code it was. A code of one word, or with one frequent word, hides little, and the
        statement says how much at most. A book reveals what it is about: a book of a task reveals
        the label by design. The book must be public: one that was made from private texts voids the
        statement, and its own texts are refused. Consistent draws are by word.

    Source:
        textveil. Randomised response is Warner 1965 and Kairouz et al. 2014.
    """
    return Select(name="codebook", utility=Distance(), rule=Staircase(sizes=(1,)))


def cape(
    *,
    nominal: float | None = None,
    context: ContextMode = "none",
    buckets: int = 50,
    edges: Literal["scores", "public"] = "scores",
    lambda_L: float = 0.5,
    lambda_D: float = 1.0,
    form: Literal["product", "additive"] = "product",
    distance: Metric = "euclidean",
    bound: float | None = None,
    floor: float | None = None,
    model: str | None = None,
) -> Select:
    """Scores words by a language model's logits and by distance; draws a bucket of scores, then a word of it.

    A score is L^lambda_L D^lambda_D with L = clip(logit - floor, 0, bound - floor) and D =
    exp(-distance / diameter). `context` says what the language model sees: nothing, the original
    text (as the paper), what was released before, or public words.

    Guarantee:
        local DP; the epsilon printed is exact without context on a small or shipped table, else a
        proved bound.
        Never the nominal epsilon: at nominal 0 the true one is 9 to 10 on the shipped tables. With
        context original
        every word spends it at every position of its text.

    Caveats:
        Nothing below the loss at nominal 0 can be promised, so a smaller --epsilon is refused. The
        paper's bound misses
        that words have different numbers of buckets.

    Source:
        Cape (2025), section 4; its formulas are reconstructed.
    """
    utility = Hybrid(
        context=Context(mode=context, model=model),
        lambda_L=lambda_L,
        lambda_D=lambda_D,
        form=form,
        distance=distance,
        bound=bound,
        floor=floor,
    )
    return Select(
        name="cape", utility=utility, rule=BucketRule(buckets=buckets, edges=edges, nominal=nominal)
    )


def rankcape(
    *,
    k: int = 20,
    sizes: tuple[int, ...] | None = None,
    heights: tuple[float, ...] | None = None,
    context: ContextMode = "none",
    lambda_L: float = 0.5,
    lambda_D: float = 1.0,
    form: Literal["product", "additive"] = "product",
    distance: Metric = "euclidean",
    bound: float | None = None,
    floor: float | None = None,
    model: str | None = None,
) -> Select:
    """Sorts words by any score, and draws by rank: each of the k best with weight exp(epsilon), all others with 1.

    `sizes` and `heights` make more levels: a word of level i has weight exp(epsilon height_i).
    Without `context` words are sorted by distance; with it, by Cape's score under what the language
    model sees.

    Guarantee:
        local DP, epsilon, whatever the scores and the context: the probabilities are always the
        same numbers in another
        order. With context original every word spends it at every position of its text.

    Caveats:
        It hides which word it was, not what it means: an output among the k best is close
        to it.

    Source:
        textveil. Two levels are optimal among all rules that look at ranks only; the page rankcape
        derives it.
    """
    utility: Distance | Hybrid = Distance()
    if context != "none":
        utility = Hybrid(
            context=Context(mode=context, model=model),
            lambda_L=lambda_L,
            lambda_D=lambda_D,
            form=form,
            distance=distance,
            bound=bound,
            floor=floor,
        )
    return Select(
        name="rankcape",
        utility=utility,
        rule=Staircase(sizes=(k,) if sizes is None else sizes, heights=heights),
    )


def dp_mlm(
    *,
    nominal: float | None = None,
    concat: bool = True,
    floor: float | None = None,
    bound: float | None = None,
    model: str | None = None,
) -> MaskedDraw:
    """A masked language model that reads the private text draws every word, from clipped logits.

    A word has a weight of exp(nominal clip(logit, floor, bound) / (2 (bound - floor))). With
    `concat` the model reads the original text first, and then a copy with the gap.

    Guarantee:
        local DP, nominal for each draw. Every draw looks at the whole text: with n protected words
        each spends n nominal. --epsilon is that sum.

    Caveats:
        The paper states nominal per word, and n nominal for a text. A word is in n draws, so that
        its own loss is the sum, too. The authors' package draws with numpy's global generator,
        which protects against nobody who learns its state; stop words and punctuation pass there.
        Here no separator stands between the text and its copy.

    Source:
        DP-MLM (Meisenbacher, Chevli, Vladika and Matthes 2024), and the package dpmlm.
    """
    return MaskedDraw(nominal=nominal, concat=concat, floor=floor, bound=bound, model=model)


def mask_and_fill(
    *,
    order: Literal["together", "in turn"] = "together",
    temperature: float = 0.0,
    model: str | None = None,
) -> Fill:
    """A language model writes every protected word anew, from the words that pass.

    Protected words are hidden from the model. `order` together asks it once for a text; in turn, it
    fills them in from left to right and sees what it wrote. `temperature` 0 takes the likeliest
    word of the table; above, a word is drawn with a weight of exp(logit / temperature).

    Guarantee:
        local DP with epsilon 0 for the value of every protected word: the release follows from the
        mask.

    Caveats:
        It keeps nothing of a protected word but what the words around it say about it, and those
        words are released, too. The text that comes out is fluent at best, and may say anything.

    Source:
        the baseline Mask and Fill of STAMP, section 5.
    """
    return Fill(order=order, temperature=temperature, model=model)


def placeholder() -> Placeholder:
    """Replaces every protected word by a placeholder.

    No word is drawn; a reader sees that a word stood there. Within a `Session` equal words get
    equal numbers.

    Guarantee:
        epsilon 0 for the value of every protected word.

    Caveats:
        Position, type and, within a session, equality of placeholders are in the mask.

    Source:
        masking, the limit of every mechanism at epsilon 0.
    """
    return Placeholder()
