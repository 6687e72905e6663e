"""ablate: did this change to retrieval really help?"""

__version__ = "0.1.0"
