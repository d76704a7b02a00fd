"""Word lists for mentions: pronouns, articles, titles, words for men, women and groups."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


PRONOUNS = {
    "I": _words("i me my mine myself"),
    "we": _words("we us our ours ourselves"),
    "you": _words("you your yours yourself yourselves thou thee thy thine thyself ye"),
    "he": _words("he him his himself 'im"),
    "she": _words("she her hers herself"),
    "it": _words("it its itself 't 'tis"),
    "they": _words("they them their theirs themselves 'em"),
    "relative": _words("who whom whose which that what"),
    "place": _words("here there where home"),
    "anybody": _words(
        "one oneself nobody somebody anybody everybody none someone anyone everyone some any all each both either "
        "neither others another many few most several such"
    ),
}
"""Pronouns by class."""

POSSESSIVES = _words("my our your his her its their thy mine thine whose")
REFLEXIVES = _words("myself ourselves yourself yourselves himself herself itself themselves thyself oneself")
OBJECTS = _words("me us him them thee whom")

DEFINITE = _words("the this that these those")
SINGULAR_DETERMINERS = _words("a an this that every each another one")
PLURAL_DETERMINERS = _words("these those two three four several many few")
INDEFINITE = _words("a an some any no every each another one two three four five six seven several many few such other")
ARTICLES = _words("the a an this that these those some any no every each another")

TITLES = _words(
    "mr mr. mrs mrs. miss ms ms. sir lady lord dr dr. doctor madame madam mademoiselle monsieur m. captain capt. "
    "colonel col. general major lieutenant sergeant king queen prince princess duke duchess count countess baron "
    "baroness father mother brother sister uncle aunt cousin master mistress mister professor judge reverend rev. "
    "st. saint squire dame don dona señor señora herr frau citoyen old young little poor dear"
)

MALE = _words(
    "mr mr. sir lord king prince duke count baron father brother uncle master mister squire don monsieur m. "
    "captain capt. colonel col. general major lieutenant sergeant man men boy boys gentleman gentlemen husband "
    "son sons nephew grandfather grandson papa dad daddy lad lads fellow fellows bachelor widower priest monk "
    "bishop emperor brothers fathers uncles husbands kings lords princes guy chap chaps schoolboy footman butler "
    "coachman policeman clergyman workman foreman sailor soldier soldiers knight knights groom bridegroom herr "
    "señor actor hero john william james george charles thomas henry robert joseph edward samuel richard david "
    "peter frank albert fred frederick arthur walter harry jack tom bob bill jim joe ned dick sam ben will "
    "charlie philip paul stephen mark michael martin matthew luke simon andrew alexander hugh ralph roger oliver "
    "edgar edmund ernest francis gilbert harold herbert horace isaac jacob julian lawrence leonard lewis louis "
    "maurice nicholas patrick percy reginald rupert sidney silas theodore timothy tobias tommy vincent jonathan "
    "daniel anthony abraham adam basil bernard cecil dan denis ambrose augustus christopher clarence claude eric "
    "eugene felix gabriel gerald gerard godfrey gregory hector humphrey jasper jeremiah jerome josiah kenneth "
    "laurence lionel miles moses nathaniel noah owen raymond roland sebastian sherlock stanley terence victor "
    "wilfred newland watson"
)
FEMALE = _words(
    "mrs mrs. miss ms ms. lady madame madam mademoiselle queen princess duchess countess baroness mother sister "
    "aunt mistress dame dona frau señora woman women girl girls wife daughter daughters niece grandmother "
    "granddaughter mamma mama mum mummy ma lass lasses widow spinster nun governess empress heroine actress maid "
    "maids maiden nurse bride housekeeper landlady mothers sisters aunts wives ladies queens goddess witch "
    "schoolgirl hostess mary elizabeth anne ann anna jane sarah alice margaret emma emily ellen helen kate "
    "katharine catherine katherine caroline charlotte clara dorothy dora edith eleanor eliza ethel eva fanny "
    "florence frances grace harriet hannah isabel isabella jessie jo josephine julia laura lily louisa louise "
    "lucy lydia mabel maggie maria marian marianne martha matilda maud meg may nancy nelly nora olive patty polly "
    "rachel rebecca rosa rose ruth sophia sophie susan sylvia tess theresa ursula victoria violet virginia "
    "winifred agnes amelia amy annie augusta barbara beatrice bella bertha bess beth betty blanche cecilia celia "
    "christina constance cora daisy deborah diana dinah dorothea edna ella elsie esther evelyn flora gertrude "
    "gwendolen henrietta hester hilda ida irene jenny joan judith juliet kitty leonora letitia lizzie lucilla "
    "mildred millicent minnie molly muriel naomi nell pauline penelope phoebe rosamond rosalind sally selina "
    "stella susanna thea tuppence viola marilla"
)
PLURAL = _words(
    "men women children people gentlemen ladies folk folks persons boys girls fellows friends brothers sisters "
    "parents servants soldiers mice feet teeth police cattle wives wolves knights others both many several few "
    "all crowd family couple pair group company party crew"
)
SINGULAR_S = _words(
    "miss mrs mrs. princess duchess mistress countess governess this his james charles st. france paris"
)
PERSONS = _words(
    "person child baby friend servant doctor lawyer teacher captain stranger guest visitor neighbor neighbour "
    "artist author writer poet prisoner passenger driver cook clerk officer king queen master mistress enemy "
    "lover cousin parent creature companion tutor scholar student judge minister owner host leader chief engineer "
    "merchant farmer pirate thief murderer beggar peasant slave speaker reader somebody nobody everybody anybody "
    "god devil angel"
)
PLACES = _words(
    "room house street town city country village river sea hill garden field road church hall kitchen door window "
    "school station shop office island forest wood woods castle palace tower bridge park square lane world earth "
    "england london paris france europe america india bed-room bedroom parlour drawing-room library court ship "
    "boat cabin cottage farm inn hotel place land coast shore mountain mountains valley yard stairs chamber "
    "apartment heaven hell prison market bank theatre chapel stable barn cellar attic corner deck beach north "
    "south east west"
)

SPEECH = _words(
    "said says say cried answered replied asked exclaimed returned inquired continued whispered murmured observed "
    "remarked added repeated demanded shouted muttered called began went thought responded suggested retorted "
    "declared laughed sighed interrupted rejoined ejaculated screamed gasped"
)
PREPOSITIONS = _words(
    "of in on at by for with from to into under over between behind beside near about after before without against "
    "among through upon like than toward towards around beyond within"
)
AUXILIARIES = _words(
    "is was are were be been am had has have do does did will would shall should can could may might must 'd 'll 've "
    "'s 're 'm went came saw took gave made found knew thought felt stood sat lay left put got began ran told spoke "
    "heard kept held let brought turned looked seemed never always only not n't"
)
COPULAS = _words("is was are were be been being am 's became becomes remained seemed called named")
STOPS = _words(
    "of in on at by for with from to who whom whose which that where when and or but , ; : -- - ( ) as than into "
    "under over between behind beside near about after before without against among through upon like is was had "
    "has"
)
"""The head of a mention is before the first of these words."""

OPENING, CLOSING, EITHER = _words("“ `` «"), _words("” '' »"), _words('"')
SINGLE_OPENING, SINGLE_CLOSING, SINGLE_EITHER = _words("‘"), _words("’"), _words("'")
