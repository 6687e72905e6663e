"""The one kind of error a user meets: a sentence that says where, what was found and what to do next."""


class AblateError(Exception):
    """A mistake in the question, not in the program: shown as one sentence, exit code 2, no traceback."""

    code = 2


class DatasetError(AblateError):
    """A dataset file that cannot be trusted: the message names file, line and key."""


class ConfigError(AblateError):
    """A setting that no component takes, or a value outside its range."""


class ModelNotFound(AblateError):
    """Weights that are neither on disk, nor in an installed package, nor on a hub that can be reached."""


class NotInstalled(AblateError):
    """A package that has to be installed first, where it can be: a sweep leaves out what needs it."""


class CacheDiffers(AblateError):
    """Something kept from earlier runs that is not what its model gives now: the answer is no, exit code 1."""

    code = 1


class NotOneChange(AblateError):
    """A variant that changes no component, several, or something that all variants share."""


class NotComparable(AblateError):
    """Runs whose corpus, ground truth or scoring settings differ."""


def first_line(error: BaseException) -> str:
    """What an error says, on one line; the name of its class where it says nothing."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
