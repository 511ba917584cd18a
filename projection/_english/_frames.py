"""
Frames: which verb with which words after it states which relation. Data; add a line to add a rule.

A line is `verb words | relation | object | mode`. `a/b` are alternatives for one word. Objects are
the readers of `_objects`; modes are those of `Mode`. `*` before the verb: also in the progressive
("I'm living in …").
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from projection._english._inflection import forms_of


class Mode(Enum):
    """A state that lasts, an event that starts one, one that ends one, or an occurrence."""

    STATE = "state"
    START = "start"
    END = "end"
    OCCURRENCE = "occurrence"


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """`tail` are the words after the verb, each a set of alternatives; `reader` names the object's form."""

    verb: str
    tail: tuple[frozenset[str], ...]
    relation: str
    reader: str
    mode: Mode
    progressive: bool


_LINES: Final = """
*live in | lives_in | place | state
*reside in | lives_in | place | state
be based in | lives_in | place | state
be settled in | lives_in | place | state
*work at/for | works_at | organization | state
be employed at/by | works_at | organization | state
have a job at | works_at | organization | state
*work as a/an/the | works_as | role | state
be a/an | works_as | occupation | state
be employed as a/an | works_as | role | state
*study at | studies_at | school | state
*attend | studies_at | school_by_name | state
*go to | studies_at | school_by_name | state
be enrolled at/in | studies_at | school_by_name | state
be a student at | studies_at | school | state
be married to | married_to | person | state
be engaged to | engaged_to | person | state
*date | dating | person | state
*go out with | dating | person | state
be in a relationship with | dating | person | state
have | has_pet | pet | state
have | has_pet | own_pet | state
own | has_pet | pet | state
have | owns | ownable | state
own | owns | thing | state
have/own | owns | sold | state
like/love/enjoy/adore | likes | liking | state
be a fan of | likes | liking | state
be a big/huge/great fan of | likes | liking | state
be fond of | likes | liking | state
be into | likes | liking | state
be keen on | likes | liking | state
be crazy/passionate/mad about | likes | liking | state
dislike/hate/detest/loathe/despise | dislikes | liking | state
speak | speaks | language | state
be fluent in | speaks | language | state
be allergic to | allergic_to | substance | state
be born in | born_in | place | state
be born on | birthday | day | state
be | age | age | state
be called/named | named | proper | state
*play | plays | play | state
be a member of | member_of | group | state
belong to | member_of | group | state
drive | drives | vehicle | state
be in/on/under/behind/inside/beside/at | located_in | location | state
be next to | located_in | location | state
be | status | device_state | state
move to | lives_in | place | start
move back to | lives_in | place | start
move over to | lives_in | place | start
move from | lives_in | from_place | start
relocate to | lives_in | place | start
relocate from | lives_in | from_place | start
settle in | lives_in | place | start
settle down in | lives_in | place | start
start at | works_at | organization_by_name | start
start a job at/with | works_at | organization | start
start a new job at/with | works_at | organization | start
start my/his/her job at/with | works_at | organization | start
start my/his/her new job at/with | works_at | organization | start
get/take/land/find a job at/with | works_at | organization | start
get/take/land/find a new job at/with | works_at | organization | start
get hired at/by | works_at | organization | start
be hired by | works_at | organization | start
change/switch jobs from | works_at | from_organization | start
switch/change from | plays | from_play | start
join | member_of | group_by_name | start
become a member of | member_of | group | start
become a/an | works_as | occupation | start
marry | married_to | person | start
get married to | married_to | person | start
get engaged to | engaged_to | person | start
adopt/get/buy/rescue | has_pet | pet | start
buy/get/purchase | owns | ownable | start
turn | age | age | start
take up | plays | play | start
enroll/enrol at/in | studies_at | school_by_name | start
be moved to | located_in | location | start
be placed in/on/under/at | located_in | location | start
visit | visited | propers | occurrence
take a trip to | visited | place | occurrence
go on a trip to | visited | place | occurrence
go on vacation/holiday to | visited | place | occurrence
be to | visited | place | occurrence
quit/leave my/his/her/their job at/with | works_at | organization | end
quit/leave/lose my/his/her/their job | works_at | nothing | end
quit | works_at | employer | end
leave | works_at | organization_by_word | end
resign from | works_at | organization | end
retire from | works_at | organization_by_name | end
get fired/sacked from/by | works_at | organization | end
get laid off from/by/at | works_at | organization | end
be fired from/by | works_at | organization | end
be laid off from/by/at | works_at | organization | end
quit/leave | member_of | group_by_name | end
break up with | dating | partner | end
split up with | dating | partner | end
divorce | married_to | person | end
get divorced from | married_to | person | end
be divorced from | married_to | person | end
get divorced | married_to | nothing | end
transfer to | studies_at | school_by_name | start
transfer from | studies_at | from_school | start
get married | married_to | each_other | start
get engaged | engaged_to | each_other | start
be married | married_to | each_other | state
be engaged | engaged_to | each_other | state
be dating | dating | each_other | state
fly/go/travel/drive to | visited | dated_place | occurrence
sell | owns | sold | end
sell | has_pet | pet_of_own | end
give away | owns | sold | end
give | owns | sold_away | end
give away | has_pet | own_pet | end
give | has_pet | own_pet_away | end
rehome | has_pet | own_pet | end
get rid of | owns | sold | end
donate | owns | sold | end
give up | plays | play | end
move out of | lives_in | place | end
move away from | lives_in | place | end
drop out of | studies_at | school | end
graduate from | studies_at | school | end
"""


def _frames() -> dict[str, tuple[Frame, ...]]:
    by_verb: dict[str, list[Frame]] = {}
    for line in _LINES.strip().splitlines():
        pattern, relation, reader, mode = (part.strip() for part in line.split("|"))
        verbs, *tail = pattern.removeprefix("*").split()
        for verb in verbs.split("/"):
            by_verb.setdefault(verb, []).append(
                Frame(
                    verb=verb,
                    tail=tuple(frozenset(word.split("/")) for word in tail),
                    relation=relation,
                    reader=reader,
                    mode=Mode(mode),
                    progressive=pattern.startswith("*"),
                )
            )
    # The longest pattern first: "quit my job at" before "quit".
    return {
        verb: tuple(sorted(frames, key=lambda frame: -len(frame.tail))) for verb, frames in by_verb.items()
    }


FRAMES: Final = _frames()
"""Frames by the verb's base form."""

ENDING_VERBS: Final = frozenset({"stop", "quit", "give", "cease"})
"""With a gerund ("stopped working at"): the state that the gerund names ends."""

STARTING_VERBS: Final = frozenset({"start", "begin"})
"""With a gerund ("started playing"): the state that the gerund names starts."""

FORMS: Final = forms_of({*FRAMES, *ENDING_VERBS, *STARTING_VERBS})
"""Inflected form to (base form, features): what a word may be."""

COUPLE_RELATIONS: Final = frozenset({"married_to", "engaged_to", "dating", "age", "birthday", "named"})
"""Not shared out over "Ana and Ben": of each alone they may be untrue."""

EACH_OTHER: Final = "each_other"
"""The reader of frames in which two people are each other's object ("Ana and I got married")."""

WE_RELATIONS: Final = frozenset({"lives_in"})
"""What "we" says of the speaker too. For the rest it may mean a family or a company."""

THING_RELATIONS: Final = frozenset({"located_in", "status", "named"})
"""What is said of things ("the blue mug"); the other relations are of people."""

HABITS: Final = frozenset({
    "plays", "likes", "dislikes", "works_at", "works_as", "drives", "member_of", "studies_at",
})  # fmt: skip
"""Relations that hold all the same when they are said of Mondays alone."""

OPPOSITES: Final = {"likes": "dislikes", "dislikes": "likes"}
"""What ends of the same thing when the other begins: whoever hates olives now no longer likes them."""

ENDED_ONLY: Final = frozenset({"own_pet", "own_pet_away", "sold", "sold_away"})
"""Readers whose objects only ends are read of: "I have Zed" may be of anything."""

STATE_OF_PAST: Final = frozenset({"born_in", "birthday"})
"""States told in the past tense that still hold."""
