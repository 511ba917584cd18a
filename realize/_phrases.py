"""
Ways of asking, as whole sentences: `S0` a key, perhaps at a time, `P0` a time, `V` a value.

General English about what is known, published and revised. A way is matched from its first word to
its last: what it does not say, it does not understand.
"""

from __future__ import annotations

import re
from typing import Final

_MACROS: Final = {
    "WE": r"(?:we|you|i|they|one)",
    "BELIEVE": r"(?:believe|think|know|assume|hold|understand|suppose)",
    "BELIEVED": r"(?:believed|thought|known|assumed|held|understood|supposed)",
    "PUBLISHED": r"(?:published|known|reported|released|recorded|learned|learnt|announced|available|told)",
    "REVISED": r"(?:revised|changed|corrected|updated|amended|restated)",
    "REVISIONS": r"(?:revisions|changes|corrections|updates)",
    "REVISION": r"(?:revision|change|correction|update)",
    "NOUNS": r"(?:figures|values|numbers|estimates|readings)",
    "NOUN": r"(?:figure|value|number|estimate|reading)",
    "LATEST": r"(?:latest|current|present|most recent|newest)",
    "LAST": r"(?:last|latest|current|present|most recent|newest)",
    "BIGGEST": r"(?:largest|biggest|greatest|maximum)",
    "BE": r"(?:is|was|are|were)",
    "BEEN": r"(?:is|was|are|were|to be|to have been|has been|had been)",
    "WHEN": r"(?:when|(?:on |at )?(?:what|which) (?:date|day|time))",
    "UNITS": r"(?P<unit>days|weeks|months|years)",
    "ON": r"(?:(?:on|in|at|by) )?",
    "NOW": r"(?: (?:now|today|currently|at present|at the moment|as it (?:stands|is)(?: (?:now|today))?"
    r"|(?:by|in) the <LATEST> (?:publication|release|<REVISION>|report)))?",
    "FIGURE": r"(?:(?:the|our|a) )?(?:<LATEST> )?(?:<NOUN> (?:for|of|on) )?S0",
    "PLAIN": r"(?:(?:the|our|a) )?(?:<NOUN> (?:for|of|on) )?S0",
    "NEWEST": r"(?:the |our )?(?:<LATEST> )(?:<NOUN> (?:for|of|on) )?S0",
    "SAID": r"(?:published|reported|released|recorded|stated|told)",
    "PREPOSITION": r"(?:in|at|as|for|with|to|on)",
    # In any script; slots are the only words with a capital. A value may have an entity's name in it.
    "WORD": r"(?:E\d(?: 's)?|[^\W\d_A-Z]\w*)",
    "WORDS": r"(?P<words><WORD>(?: <WORD>){0,4}?)",
    "SINCE": r"since (?:when|(?:what|which) (?:date|day|time|week|month|year))",
    "START": r"(?:(?:start|begin)(?: to)?|BEGIN|get|become)",
    "ALTOGETHER": r"(?:altogether|overall|in total|in all|all in all|all together)",
    "UNTIL": r"(?:until|till|up to) (?:when|(?:what|which) (?:date|day|time|week|month|year))",
    "TODAY": r"(?: (?:now|today|currently|already|so far|by now))?",
    "NAMED": r"(?: <PREPOSITION>)? <WORDS>",
    "HEAR": r"(?:first )?(?:hear|learn|know|find out|get to know)(?: first)?",
    "TOLD": r"(?:said|says|say|told (?:us|me|you)|reported|claims|claimed|stated|states|recorded)",
    "AT": r"(?: (?:in|for|on|during|at|of) (?P<p>P\d))?",
    "N": r"(?P<v>-?\d[\d.,]*)",
    "SPAN": r"(?:between (?P<k1>P\d) and (?P<k2>P\d)|from (?P<k1_>P\d) (?:to|until) (?P<k2_>P\d))",
    "PERIODS": r"(?:(?P<apart>between)|from) (?P<p2>P\d) (?:and|to) (?P<p>P\d)",
}
_MACRO: Final = re.compile(r"<([A-Z]+)>")


def way(text: str) -> re.Pattern[str]:
    while (expanded := _MACRO.sub(lambda found: _MACROS[found[1]], text)) != text:
        text = expanded
    return re.compile(text)


KEY: Final = re.compile(
    r"(?:the )?(?:(?:R|that) (?:of|for|in|at) (?:the )?(?P<e>E\d)|(?P<e_>E\d)(?: 's)? R)"
    r"(?: (?:(?:for|in|of|during|over|on|at) )?(?P<p>P\d))?(?! 's)"
)
"""How a key is named: "the R of E0", "E0 's R in P0"."""

_SOURCES: Final = (
    r"(?:what|the <NOUNS>|the <NOUN>)(?: that)?(?: <BE>)?(?: <WE>(?: had)?)? "
    r"(?:<PUBLISHED>|knew|had|believed) <ON>(?P<{}>P\d)"
)
_KNOWN: Final = (
    r"(?:as (?:(?:it|they) (?:was|were) )?(?:then )?(?:<PUBLISHED>|believed) <ON>(?P<k>P\d)"
    r"|as (?:of|at) (?P<k_>P\d)"
    r"|(?:according to|going by|judging by|based on|given|with|from) " + _SOURCES.format("k__") + ")"
)
KNOWN_BEFORE: Final = way(rf"^(?:{_KNOWN}|(?:on|in|at|by) (?P<k___>P\d)) (?!between|and|to|until)")
KNOWN_AFTER: Final = way(rf" {_KNOWN}$")

_WAYS: Final = {
    "value": r"""
(?:what|which) <BE> <FIGURE><NOW>
what do <WE> (?:now |currently )?<BELIEVE> (?:that )?<FIGURE> <BEEN><AT>(?: now| today)?
how (?P<number>high|low|large|big|great|much) <BE> <FIGURE><NOW>
(?:give me|tell me|show me|show|state) <FIGURE><NOW>
(?P<asking>where|who|whom) (?:did|do|does|is|was|were) S0
(?P<asking>where|who|whom) did <WE> <BELIEVE> <ON>(?P<k>P\d) (?:that )?S0(?: <BEEN>)?
what did <WE> <BELIEVE> <ON>(?P<k>P\d) (?:that )?<FIGURE> <BEEN><AT>
what did <WE> <BELIEVE> (?:that )?<FIGURE> <BEEN> <ON>(?P<k>P\d)
what did <WE> <BELIEVE> (?:that )?<FIGURE> <BEEN><AT>
what <NOUN> (?:did|do) <WE> have (?:for|of) <FIGURE><NOW>
(?:if <WE> had asked(?: <WE>)?|had <WE> asked(?: <WE>)?) <ON>(?P<k>P\d) what would <FIGURE> have been
""",
    "is_when": r"""
<WHEN> (?:is|was|were|are) S0
<WHEN> (?:did|do) <WE> R (?:the )?(?P<e>E\d)
""",
    "is_so": r"""
(?:is|are|does|do|has|have) S0(?: now| today| currently)?
(?:does|do) (?P<e>E\d) (?:have|own|use|need) (?:a |an |the |any )?R(?: now| today| currently)?
""",
    "yes_no": r"""
(?:is it (?:true|right|correct) that )?(?:on |in )(?P<k>P\d) <WE> <BELIEVED> <FIGURE> <BEEN> <N>
(?:is it (?:true|right|correct) that )?<FIGURE> <BEEN> <N>
(?:was|is|were|are) <FIGURE> <N>
(?:was|is) <N> (?:the |our )?(?:<LATEST> )?<NOUN> (?:for|of) S0
did <WE> <BELIEVE> <ON>(?P<k>P\d) (?:that )?<FIGURE> <BEEN> <N>
did <WE> <BELIEVE> (?:that )?<FIGURE> <BEEN> <N>
(?:did|does) <FIGURE> (?:stand at|equal|amount to|come to) <N>
did <WE> <BELIEVE> <ON>(?P<k>P\d) (?:that )?<FIGURE> <BEEN> <N> (?:in|for|on|during) (?P<p>P\d)
did <WE> <BELIEVE> (?:that )?<FIGURE> <BEEN> <N> (?:in|for|on|during) (?P<p>P\d)
(?:was|is) <FIGURE> <N> (?:in|for|on|during) (?P<p>P\d)
(?:does|do|is|are) S0(?: <PREPOSITION>)? <WORDS>(?: now| today| currently)?
(?:does|do|did|is|was|are|were) S0(?: <PREPOSITION>)? <WORDS> (?:in|on|during) (?P<p>P\d)
""",
    "difference": r"""
by how much (?:did|does) S0 (?:differ|change|grow|rise|increase) <PERIODS>
how much did S0 (?:differ|change|grow|rise) <PERIODS>
how much did S0 (?:appear|seem) to have (?:changed|grown|risen|differed) <PERIODS>
what <BE> the (?:difference|change) in S0 <PERIODS>
(?:what (?:do|did) <WE> get (?:when|if) <WE> subtract|subtract) S0 from (?:that|it) (?:in|for|of|on)
 (?P<p>P\d)
""",
    "first_known": r"""
<WHEN> (?:was|were) <PLAIN> (?P<first>first|initially|originally) <PUBLISHED>(?: to <WE>| to us)?
<WHEN> did <WE> (?:first )?(?:learn|hear|know|find out|get|receive)(?: about| of)? <PLAIN>
<WHEN> did (?:a|the|any) first <NOUN> (?:for|of|on) S0 become <PUBLISHED>
<WHEN> did <PLAIN> first become <PUBLISHED>
since when (?:have|had|do|did) <WE> (?:first )?(?:known|know|had|have)(?: (?:anything|something))?(?:
 about| of| for)? <PLAIN>
what <BE> the (?:earliest|first) (?:date|day|time)(?: (?:on|at) which| when| that)? <PLAIN>
 (?:was|were) <PUBLISHED>
""",
    "known_since": r"""
since when (?:have|do|did|had) <WE> (?:<BELIEVED>|<BELIEVE>|had|have) <NEWEST>
<WHEN> (?:was|were) <NEWEST> <SAID>
since when has <FIGURE> (?:stood at|been|had|held) <N>
<WHEN> did <FIGURE> (?P<revised>last change|change last|last get <REVISED>)
<WHEN> (?:was|were) <FIGURE> (?P<revised>(?:last|most recently) <REVISED>)
""",
    "times_revised": r"""
how (?:often|frequently|many times) (?:was|were|has|have) <PLAIN> (?:been )?<REVISED>(?: so far| until
 now)?
how (?:often|frequently|many times) did <PLAIN> (?:change|(?:get|become) <REVISED>)(?: (?:after|since)
 (?:it|they) (?:was|were) first <PUBLISHED>)?
how many <REVISIONS> (?:did|has|have) S0 (?:see|seen|have|had|undergo|undergone)
how many <REVISIONS> (?:were|are) there (?:of|to|for|in) S0
what <BE> the number of <REVISIONS> (?:of|to|for|in) S0
""",
    "largest_revision": r"""
what(?: 's| <BE>) the <BIGGEST> (?:single )?<REVISION> (?:(?:ever )?made )?(?:of|to|in|for) S0
how (?:big|large|great) <BE> the <BIGGEST> (?:single )?<REVISION> (?:of|to|in|for) S0
by how much (?:was|were|has|have) S0 (?:been )?<REVISED> at(?: the)? most
(?:which|what) <REVISION> (?:of|to) S0 <BE> the <BIGGEST>
(?:which|what) <REVISION> <REVISED> S0 (?:the )?most(?: and by how much)?
what(?: 's| <BE>) the <BIGGEST> <REVISION> that any (?:single )?<REVISION> (?:ever )?made (?:to|in) S0
""",
    "total_revision": r"""
by how much (?:was|were|has|have) <FIGURE> (?:been )?<REVISED> (?:since (?:it|they) (?:was|were) first
 <PUBLISHED>|since its first publication|in total|altogether|overall)
how far (?:is|are) <FIGURE> from the (?:first|initial|original)(?: one| <NOUN>)
what <BE> the difference between the (?:first|initial|original) (?:<NOUN> )?and the <LAST> <NOUN>
 (?:for|of|on) S0
(?:in total |altogether |overall )?how much did <REVISIONS> (?:change|alter|move) S0(?: in total|
 altogether| overall)?
how much (?:higher|higher or lower|more|more or less) (?:is|are) <FIGURE>(?: now| today)?
 than (?:when (?:it|they) (?:was|were) )?(?:when )?first <PUBLISHED>
""",
    "elapsed": r"""
how (?:many <UNITS>|much time|long) (?:passed|went by|lie|lies|lay|elapsed|was|were there) between the
 first (?:publication|release|<NOUN>) (?:of|for) S0 and (?:its|the) <LAST>
 (?:(?P<revised><REVISION>)|<NOUN>|one)
how (?:many <UNITS>|much time|long) (?:passed|went by|lie|lies|lay|elapsed|was|were there) between the
 first and the <LAST> <NOUN> (?:of|for|on) S0
how (?:many <UNITS>|long) did it take from the first <NOUN> (?:for|of|on) S0 to the <LAST>
 (?:one|<NOUN>)
how (?:many <UNITS>|much time|long) (?:passed|went by|elapsed) between (?:our )?first
 (?:learning|hearing|knowing|publishing)(?: of| about)? S0 and its <LAST> (?P<revised><REVISION>)
how (?:many <UNITS>|long) after (?:it|they) (?:was|were) first <PUBLISHED> (?:was|were) S0
 (?P<revised>(?:last|most recently) <REVISED>)
""",
    "values_count": r"""
how many (?:different|distinct) <NOUNS> (?:have been|were|are) (?:ever )?<SAID> for S0(?: so far)?
how many (?:different|distinct) <NOUNS> (?:has|have|did) S0 (?:had|have|taken|take)(?: so far)?
what <BE> the number of (?:different|distinct) <NOUNS> (?:that )?(?:<WE> (?:have |had )?(?:ever
 )?(?:seen|had|known|have) )?(?:for|of) S0
count the (?:different|distinct) <NOUNS> (?:for|of) S0
""",
    "values": r"""
(?:which|what) (?:different |distinct )?<NOUNS> (?:have been|were|are) (?:ever )?<SAID> for S0(?: so
 far)?
list (?:every <NOUN>|(?:all )?(?:of )?(?:the )?(?:different |distinct )?<NOUNS>) (?:that )?(?:<WE> (?:have
 )?(?:ever )?(?:had|have|seen|known) )?(?:for|of) S0
what (?:are|were) all(?: of)?(?: the)? (?:<REVISIONS>|<NOUNS>) (?:of|for|to) S0
show (?:me )?(?:every <NOUN>|all (?:the )?<NOUNS>) (?:that (?:was|were|has been|have been) )?(?:ever
 )?<SAID> for S0
what <NOUNS> did S0 (?:go through|have|take)
""",
    "known_as": r"""
<WHEN> (?:was|were) <PLAIN> (?P<first>first )?(?:<SAID>|<REVISED>) (?:as|to|at|to be) <N>
<WHEN> did <PLAIN> (?P<first>first )?(?:become|change to|turn into) <N>
<WHEN> did <WE> (?P<first>first )(?:hear|learn|believe|know|think) (?:that )?<PLAIN> <BEEN> <N>
<WHEN> (?:was|were) (?:the <NOUN> )?<N> (?P<first>first )?<SAID> for S0
""",
    "changes": r"""
what (?:has |had )?changed (?:about|in|for|with|of) <PLAIN> <SPAN>
how (?:did|has) <PLAIN> changed? <SPAN>
<SPAN> what happened to (?:the )?(?:published )?<PLAIN>
what happened to (?:the )?(?:published )?<PLAIN> <SPAN>
<SPAN> (?:how did <PLAIN> change|what changed (?:about|in|for|with|of) <PLAIN>)
what was different on (?P<k2>P\d) (?:from|to|than) what <WE> <BELIEVED> on (?P<k1>P\d) about <PLAIN>
did anything change (?:in|about|for|with) <PLAIN> <SPAN>(?: and what)?
""",
    "who_said": r"""
who (?:said|says|told us|told <WE>|told me|reported|published|recorded|stated|claims|claimed)(?:
 so)?(?: about| on)? <FIGURE>
who said so about <FIGURE>
who <TOLD>(?: that)? S0(?: (?:is|are))?<NAMED>
who <TOLD>(?: that)? (?P<e>E\d) (?:is|are) R<NAMED>
(?:where|who|whom) (?:does|did|do) <FIGURE> come from
(?:what|who)(?: 's| <BE>) the sources? (?:of|for|behind) <FIGURE>
who (?:does|do|did) <WE> have <FIGURE> from
""",
    "held_since": r"""
<SINCE> (?:does|do|has|have|is|are) S0(?: been)?<NAMED><TODAY>
<SINCE> (?:has|have|is|are) (?P<e>E\d) been R<NAMED><TODAY>
<WHEN> did (?P<e>E\d) <START> R<NAMED>
<WHEN> did S0 become <WORDS>
""",
    "held_total": r"""
(?:for )?how (?:long|many <UNITS>) (?P<past>did|was|were) S0<NAMED>(?: <ALTOGETHER>)?
(?:for )?how (?:long|many <UNITS>) (?P<past>was|were) (?P<e>E\d) R<NAMED>(?: <ALTOGETHER>)?
(?:for )?how (?:long|many <UNITS>) (?:has|have) S0(?: been)?<NAMED> <ALTOGETHER>
(?:for )?how (?:long|many <UNITS>) (?:has|have) (?P<e>E\d) been R<NAMED> <ALTOGETHER>
""",
    "held_until": r"""
<UNTIL> (?:did|was|were) S0<NAMED>
<WHEN> did (?P<e>E\d) (?:stop|quit|cease)(?: being)? R<NAMED>
<WHEN> did S0 (?:stop|cease) (?:being|to be) <WORDS>
""",
    "held_ever": r"""
(?:did|has|have|had|was|were|is) (?P<e>E\d) ever(?: been)? R<NAMED>(?: before| at any time)?
(?:did|has|have|had|was|were) S0 ever(?: been)?<NAMED>
(?:has|have) S0(?: been)?<NAMED>
(?:has|have) (?P<e>E\d) been R<NAMED>
(?:did|has|have|had|was|were) S0(?: been)?<NAMED> at any time
""",
    "held_for": r"""
(?:for )?how (?:long|many <UNITS>) (?:has|have) S0(?: been)?<NAMED><TODAY>
(?:for )?how (?:long|many <UNITS>) (?:has|have) (?P<e>E\d) been R<NAMED><TODAY>
""",
    "first_told": r"""
<WHEN> did <WE> <HEAR> that S0(?: <BE>)?<NAMED>
<WHEN> did <WE> <HEAR> that (?P<e>E\d) (?:is|are) R<NAMED>
since when (?:do|have) <WE> (?:know|known) that S0(?: <BE>)?<NAMED>
""",
    "occurred_when": r"""
<WHEN> did (?P<e>E\d) (?:(?P<first>first)|last) R(?:<NAMED>)?<AT>
<WHEN> (?:did|has|have) S0(?:<NAMED>)? (?:for the )?(?:(?P<first>first)|last)(?: time)?<AT>
""",
    "occurred_what": r"""
(?P<asking>what|where|which (?:place|thing)) did (?P<e>E\d) (?:(?P<first>first)|last) R<AT>
(?P<asking>what|where|which (?:place|thing)) did S0 (?:(?P<first>first)|last)<AT>
""",
    "held_beside": r"""
(?P<asking>what|where|who|whom) (?:was|were) <PLAIN>(?: right| directly| just| immediately)?
 (?:(?P<first>before)|after)<NAMED>
(?P<asking>what|where|who|whom) did S0(?: right| directly| just| immediately)? (?P<first>before)
 (?:BEGIN )?R<NAMED>
(?P<asking>what|where|who|whom) (?:did|was|were) <PLAIN> (?P<first>previously|before(?: that| now)?)
(?P<asking>what|where|who|whom) (?:is|was|were) (?P<e>E\d) 's (?P<first>previous) R
(?P<asking>where) (?:was|were) (?:the )?(?P<e>E\d)(?: right| directly| just| immediately)?
 (?P<first>previously|before(?: that| now)?)
(?P<asking>where) (?:was|were) (?:the )?(?P<e>E\d)(?: right| directly| just| immediately)?
 (?:(?P<first>before)|after)<NAMED>
""",
    "occurred_beside": r"""
(?P<asking>what|where|which (?:place|thing)) did S0(?: right| directly| just| immediately| next)?
 (?:(?P<first>before)|after)<NAMED>
""",
    "held_values": r"""
(?P<asking>what|where|who|whom)(?: all)? (?:has|have) S0(?: been)?(?: so far| until now| over the years)?
in (?P<asking>which|what) places (?:has|have|did) S0(?: so far| until now| over the years)?
how many (?:different |distinct )?(?P<asking>places|things|values) (?P<number>has|have) S0(?: so far|
 until now| over the years)?
""",
    "first_of_times": r"""
<WHEN> did <WE> first R (?:the )?(?P<e>E\d)
<WHEN> was (?:the )?(?P<e>E\d) first R
""",
    "age": r"""
how R (?:is|are|was) (?P<e>E\d)(?: (?:now|today)| (?:on|in|at) (?P<on>P\d))?
""",
    "apart": r"""
how (?:many <UNITS>|much time|long) (?:lie|lies|lay|passed|pass|elapsed|went by|is there|are there|is|are)
 between S0 and S1
what <BE> the (?:time|difference) between S0 and S1
""",
    "order": r"""
(?:which|what) (?:was|were|became|came) (?:<PUBLISHED> )?(?:first|earlier) S0 or S1
(?:which|what) (?:was|were|became|came) (?:first|earlier) <PUBLISHED> S0 or S1
(?:which|what) (?:was|were|became|came) <PUBLISHED> (?:first|earlier) S0 or S1
(?:put|sort|list|arrange|order) (?:in|by) (?:the )?order of (?:first )?(?:publication|release) S0(?:
 and)? S1
""",
    "before": r"""
did <WE> (?:first )?(?:learn|hear|know|get|receive)(?: about| of)? S0 before S1
(?:was|were) S0 (?:first )?<PUBLISHED> (?:before|earlier than) S1
""",
}
"""By form, ways of asking: one a line; a line that begins with a blank goes on with the one before."""

WAYS: Final = tuple(
    (form, way(each))
    for form, ways in _WAYS.items()
    for each in ways.strip("\n").replace("\n ", " ").split("\n")
)
"""Forms, each with one way of asking for it; the first that matches a question is what it asks."""
