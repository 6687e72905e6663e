"""The demo data set keeps what its README promises."""

from ablate.tokens import terms

STOP = frozenset(
    """a about after again all am an and any are as at be because been before being but by can could did do does doing
    for from get got had has have he her here him his how i if in into is it its just may me might more most my no nor
    not now of off on once only or other our ours out over own same she should so some still such than that the their
    them then there these they this those to too under until up us very was we were what when where which while who
    whom whose why will with would yes you your yours
    а без более бы был была были было быть в вам вас ведь вот все всё вы где да даже для до его ее её если есть ещё еще
    же за здесь и из или им их к как какая какие какое какой когда кто ли мне мой моя мы на над нам нас наш наша не него
    нее неё нет ни но ну о об он она они от по под при про с сам свой себя со так там то того тоже только том ты у уже
    чего чем что чтобы эта эти это этого этот я""".split()
)
LANGUAGES = ("english", "russian")


def stems(text):
    """The stems of a text's words, stop words aside."""
    return set(terms(text, LANGUAGES)) - {stem for word in STOP for stem in terms(word, LANGUAGES)}
