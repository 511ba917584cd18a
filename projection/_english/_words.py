"""
Word lists of the English reader: closed classes and everyday nouns, from general English.

Nothing here was chosen by looking at a benchmark. A word in a refusal list costs recall; a word
missing from one can cost precision, so the refusal lists are the longer ones.
"""

from __future__ import annotations

from typing import Final


def word_set(words: str) -> frozenset[str]:
    """Return the words of a string that lists them, which is how long lists stay readable."""
    return frozenset(words.split())


PRONOUNS: Final = word_set(
    "i you he she it we they me him her us them this that these those who whom whose which what "
    "someone somebody something anyone anybody anything everyone everybody everything no-one nobody "
    "nothing one ones myself yourself himself herself itself ourselves themselves mine yours hers ours "
    "theirs here there"
)
KINSHIP: Final = word_set(
    "sister brother mother father mom mum dad mommy daddy son daughter wife husband partner spouse "
    "girlfriend boyfriend fiance fiancee fiancé fiancée aunt uncle cousin niece nephew grandmother "
    "grandfather grandma grandpa granny grandson granddaughter stepmother stepfather stepsister "
    "stepbrother stepson stepdaughter sister-in-law brother-in-law mother-in-law father-in-law "
    "son-in-law daughter-in-law twin sibling friend friends roommate flatmate housemate neighbor "
    "neighbour colleague coworker co-worker boss manager mentor classmate teammate landlord landlady "
    "tenant teacher tutor coach doctor dentist therapist lawyer assistant ex ex-wife ex-husband "
    "ex-girlfriend ex-boyfriend godmother godfather godson goddaughter buddy pal"
)
KIN_ADJECTIVES: Final = word_set(
    "best old older younger little big elder eldest oldest youngest twin half good close dear new "
    "former childhood next-door late only other second first second-eldest middle baby"
)
PETS: Final = word_set(
    "dog cat puppy kitten hamster rabbit bunny parrot budgie canary goldfish fish turtle tortoise "
    "horse pony guinea-pig ferret gecko snake lizard iguana chinchilla hedgehog rat mouse gerbil "
    "poodle labrador beagle dachshund terrier retriever collie spaniel pug bulldog greyhound corgi "
    "husky cockatiel parakeet chicken hen duck goat donkey tarantula frog axolotl cockatoo bird pig"
)
PET_PLURALS: Final = word_set(
    "dogs cats puppies kittens hamsters rabbits parrots budgies canaries turtles tortoises horses "
    "ponies ferrets geckos snakes lizards rats mice gerbils chickens hens ducks goats birds frogs"
)
OWNABLE: Final = word_set(
    "car van truck bike bicycle motorbike motorcycle scooter boat sailboat canoe kayak yacht house flat "
    "apartment cottage cabin farm garage piano guitar violin cello drum keyboard laptop computer tablet "
    "printer camera telescope microscope drone tent caravan campervan camper tractor moped surfboard "
    "snowboard skateboard sewing-machine loom kiln greenhouse vineyard shop bakery bookshop restaurant "
    "café cafe hotel vinyl record-player turntable typewriter smartphone smartwatch e-bike phone "
    "television tv tricycle trailer jeep suv sedan convertible pickup bungalow villa condo studio"
)
GROUPS: Final = word_set(
    "club choir band orchestra team union gym society association committee board council party "
    "league church parish congregation troupe ensemble quartet federation cooperative co-op guild "
    "network community crew squad academy chapter collective group institute foundation brigade "
    "chamber circle alliance lodge"
)
INSTRUMENTS: Final = word_set(
    "piano guitar violin viola cello bass drums drum flute clarinet oboe bassoon saxophone trumpet "
    "trombone horn tuba harp banjo mandolin ukulele accordion harmonica organ keyboard recorder "
    "bagpipes lute sitar tabla fiddle harpsichord xylophone marimba lyre zither saz oud "
    "hurdy-gurdy bodhran balalaika bandoneon concertina piccolo cornet euphonium theremin "
    "synthesizer bongos congas djembe cajon koto shamisen erhu kora mbira panpipes"
)
GAMES: Final = word_set(
    "tennis football soccer basketball volleyball handball hockey rugby cricket baseball softball "
    "badminton squash golf padel chess poker bridge darts billiards pool snooker lacrosse polo "
    "water-polo netball pickleball ping-pong table-tennis checkers backgammon go dominoes bowls "
    "boules petanque pétanque frisbee dodgeball futsal floorball korfball scrabble mahjong"
)
LANGUAGES: Final = word_set(
    "english french german spanish italian portuguese dutch flemish swedish norwegian danish finnish "
    "icelandic polish czech slovak slovene slovenian croatian serbian bosnian bulgarian romanian "
    "hungarian greek turkish russian ukrainian belarusian latvian lithuanian estonian irish gaelic "
    "welsh breton basque catalan galician maltese albanian macedonian armenian georgian azerbaijani "
    "kazakh uzbek arabic hebrew persian farsi kurdish pashto urdu hindi bengali punjabi gujarati "
    "marathi tamil telugu kannada malayalam sinhala nepali tibetan burmese thai lao khmer vietnamese "
    "malay indonesian tagalog filipino mandarin cantonese chinese japanese korean mongolian swahili "
    "amharic somali yoruba igbo hausa zulu xhosa afrikaans latin esperanto yiddish luxembourgish "
    "quechua guarani maori hawaiian samoan bsl asl javanese"
)
OCCUPATIONS: Final = word_set(
    "accountant actor actress actuary administrator analyst animator anthropologist archaeologist "
    "architect archivist artist astronaut astronomer attorney auditor author baker banker barber "
    "barista bartender beekeeper biochemist biologist blacksmith bookbinder bookkeeper bookseller "
    "botanist bricklayer builder butcher carpenter cartographer cashier chauffeur chef chemist "
    "chiropractor choreographer cleaner clerk cobbler columnist comedian composer conductor consultant "
    "contractor cook copywriter counselor counsellor courier curator dancer dentist dermatologist "
    "designer detective developer dietitian diplomat director dj doctor driver ecologist economist "
    "editor electrician engineer entomologist entrepreneur farmer farrier filmmaker firefighter "
    "fisherman fishmonger florist forester gardener geneticist geologist geographer glazier goldsmith "
    "gynecologist hairdresser historian illustrator instructor interpreter inspector janitor jeweler "
    "jeweller joiner journalist judge lawyer lecturer librarian lifeguard linguist locksmith machinist "
    "magician manager mason mathematician mechanic meteorologist midwife miller milliner miner model "
    "musician nanny neurologist neuroscientist notary novelist nurse nutritionist oceanographer "
    "oncologist optician optometrist osteopath paediatrician painter paralegal paramedic pathologist "
    "pediatrician pharmacist philosopher photographer physician physicist physiotherapist pianist "
    "pilot plasterer plumber podiatrist poet policeman policewoman politician porter postman potter "
    "principal producer professor programmer proofreader psychiatrist psychologist psychotherapist "
    "publisher radiographer radiologist ranger realtor receptionist recruiter reporter researcher "
    "roofer sailor salesman saleswoman scientist sculptor seamstress secretary server shepherd "
    "shoemaker singer smith sociologist soldier solicitor sommelier statistician steward stewardess "
    "stonemason surgeon surveyor tailor teacher technician therapist tiler toxicologist trader trainer "
    "translator tutor typesetter undertaker upholsterer urologist vet veterinarian videographer "
    "violinist waiter waitress watchmaker weaver welder winemaker woodworker writer zoologist "
    "electrician paramedic dispatcher zookeeper cellist drummer guitarist cardiologist dramaturge hygienist "
    "orthodontist anesthetist radiotherapist epidemiologist geophysicist hydrologist volcanologist "
    "beautician masseur masseuse caterer brewer distiller cheesemaker pastry-chef confectioner "
    "upholsterer engraver printmaker ceramicist glassblower luthier sculptress lumberjack arborist "
    "agronomist cashier bellhop concierge housekeeper caretaker custodian handyman roofer scaffolder "
    "crane-operator machinist draughtsman draftsman signwriter stylist manicurist puppeteer acrobat "
    "stuntman cinematographer screenwriter playwright librettist songwriter organist harpist flautist "
    "percussionist trombonist trumpeter saxophonist bassist vocalist lexicographer palaeontologist "
    "paleontologist ornithologist marine-biologist mathematician cryptographer sysadmin webmaster"
)
DEMONYMS: Final = LANGUAGES | word_set(
    "american british scottish australian canadian mexican brazilian argentinian argentine chilean "
    "peruvian colombian cuban austrian swiss belgian indian pakistani bangladeshi chinese taiwanese "
    "singaporean indonesian malaysian egyptian moroccan tunisian algerian nigerian ghanaian kenyan "
    "ethiopian south-african israeli palestinian lebanese syrian iraqi iranian afghan european asian "
    "african latino latina hispanic catholic protestant orthodox christian muslim jewish hindu buddhist "
    "sikh atheist vegan vegetarian republican democrat texan bavarian sicilian"
)
TRAIT_ADJECTIVES: Final = word_set(
    "good bad great terrible horrible awful excellent decent fast slow better worse best worst nice "
    "lousy heavy light poor born natural real true frustrated wannabe would-be aspiring amateur "
    "hopeless self-proclaimed failed future former retired ex ex- big huge hobby armchair budding "
    "fake so-called sunday mediocre brilliant keen avid night"
)
ROOMS_AND_FURNITURE: Final = word_set(
    "kitchen bathroom bedroom hall hallway corridor garage cellar basement attic pantry office study "
    "lounge nursery library laundry garden yard backyard balcony terrace porch patio shed workshop "
    "greenhouse living-room room closet wardrobe cupboard cabinet drawer shelf bookshelf bookcase rack "
    "table desk counter worktop sink dishwasher fridge refrigerator freezer oven stove microwave sofa "
    "couch armchair chair bench bed nightstand windowsill sill mantelpiece box basket bag backpack "
    "suitcase bin floor carpet rug mat door doormat fireplace car trunk boot van locker safe tray hook "
    "dryer washer machine stairs staircase landing entrance lobby warehouse lab laboratory dock "
    "charger station bay ledge crate toolbox jar bowl pocket coat handbag purse piano stool dresser "
    "bucket trolley cart pallet aisle studio storeroom storage mailbox letterbox container case hangar "
    "sideboard credenza hutch bureau chest ottoman footstool workbench worktable tabletop countertop "
    "bookstand pedestal plinth conservatory veranda verandah larder scullery loft"
)
DEVICE_STATES: Final = word_set(
    "open closed shut locked unlocked on off running broken empty full charging charged clean dirty "
    "offline online working idle stuck jammed blocked disconnected connected wet dry ajar"
)
NOT_NAMES: Final = word_set(
    "a an the and but or so because since although though while when where why how if unless until "
    "after before once as at by for from in into of off on onto out over to under up with without "
    "not no yes yeah yep nope ok okay well oh ah hey hi hello thanks thank please sorry sure maybe "
    "perhaps also too now then today tomorrow yesterday tonight currently recently lately finally "
    "actually really still just never always sometimes often usually most many some any all both each "
    "every few several other another such same my your his her its our their mom mum dad mommy daddy "
    "mother father grandma grandpa granny people folks kids children men women man woman boy girl "
    "dinner lunch breakfast work school life love music rain snow time money food water coffee tea "
    "home nature christmas easter monday tuesday wednesday thursday friday saturday sunday january "
    "february march april june july august september october november december spring summer autumn "
    "winter god nothing none half part everything let lets do does did is are was were am be been have "
    "has had will would can could should might may must good great nice cool wow more less "
    "anyway anyhow besides indeed again correction however meanwhile plus right alright fine "
    "everybody everyone whoever whatever whichever dogs cats birds guys friends who which what "
    "user assistant system edit update note ps"
)
VAGUE: Final = word_set(
    "it this that these those you him her them me us myself how what when where why who which because "
    "if whether than more less most least rather better best not never so such same idea way fact "
    "thing things stuff lot lots bit kind sort one ones everything something anything nothing "
    "everyone someone anyone both either neither all much many yours mine theirs his hers its my your "
    "our their there here i we they he she seeing hearing being having"
)
FINITE: Final = word_set(
    "am is are was were be been being have has had do does did 'm 's 're 've 'll 'd will would can "
    "could should shall may might must n't not ai"
)
SAFE_THE: Final = word_set(
    "sea ocean beach mountains outdoors countryside rain snow cold heat sun theatre theater opera "
    "cinema piano guitar violin cello forest woods desert north south"
)
