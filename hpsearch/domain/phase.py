"""The phases of a study that is driven, and the one table of moves between them."""

import enum

from hpsearch.domain.moves import MoveTable


class Phase(enum.StrEnum):
    """The phase of a study."""

    SEARCHING = "searching"  # new configurations are to come
    FINISHING = "finishing"
    """No new configuration is to come; paused trials that may still win go on."""
    CONFIRMING = "confirming"
    """The leaders are repeated on fresh seeds, and the search waits for that."""
    ENDING = "ending"  # nothing starts any more; the study ends once nothing runs
    INTERRUPTED = "interrupted"  # nothing starts any more; the study can be resumed

    @property
    def winds_down(self) -> bool:
        """True if nothing starts any more."""
        return self in (Phase.ENDING, Phase.INTERRUPTED)


MOVES = MoveTable(
    first=Phase.SEARCHING,
    moves={
        Phase.SEARCHING: {
            Phase.FINISHING: "all are tried, or too little is left for a new one",
            Phase.ENDING: "no work is left, target reached, time used up, or all trials fail",
            Phase.INTERRUPTED: "asked to stop, or the disk stays full",
        },
        Phase.FINISHING: {
            Phase.SEARCHING: "what a trial gave back, or a larger budget, allows a new one",
            Phase.CONFIRMING: "nothing of the search runs",
            Phase.ENDING: "as from searching",
            Phase.INTERRUPTED: "as from searching",
        },
        Phase.CONFIRMING: {
            Phase.SEARCHING: "more of the search fits, or its budget was raised",
            Phase.ENDING: "as from searching",
            Phase.INTERRUPTED: "as from searching",
        },
        Phase.ENDING: {Phase.INTERRUPTED: "asked to stop before all is saved"},
        Phase.INTERRUPTED: {},
    },
    last=frozenset(phase for phase in Phase if phase.winds_down),
)
"""All changes of a study's phase. One that is resumed in its repeats begins in CONFIRMING."""
