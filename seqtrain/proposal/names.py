"""Usual names of columns, and what they say about a column.

Names are in English, German, French, Spanish, Portuguese and Italian, without accents.
Those of texts are also in Russian, Polish, Dutch, Turkish, Chinese, Japanese and Korean.
"""

import re
from collections.abc import Callable

from seqtrain.proposal.profile import FREE_WORDS, NUMBERED, ColumnProfile, plain_letters
from seqtrain.sequences.content import TEXT_FIELDS


def _words(text: str) -> tuple[str, ...]:
    return tuple(plain_letters(text).split())


LABEL_NAMES = _words(
    """
    label labels class target category y intent topic sentiment tag type genre
    rating stars gold classification outcome result failure failed fault anomaly activity
    emotion mood polarity stance verdict emocion emozione humeur emocao
    bewertung stimmung thema absicht zielwert sentimiento sentimento objetivo cible alvo
    sterne note etoiles estrellas puntuacion calificacion valoracion estrelas nota avaliacao
    stelle voto valutazione punteggio emotion churn churned mark marks grade grades severity
    overall score
    """
)
PROPERTY_NAMES = _words(
    """
    class type category tag genre activity overall score
    klasse kategorie classe categorie clase categoria
    """
)
"""Last words of names of labels that name properties, too: of a school class, or a type of ship."""
SORTING_NAMES = _words("status priority group queue department prioritat gruppe abteilung")
"""Names of columns by which cases are sorted: labels, or properties beside another label."""
LANGUAGE_NAMES = _words("language lang sprache langue idioma lingua")
"""Names of labels if no other column is named like one: reviews have a language, too."""
OUTCOME_WORDS = _words(
    """
    label class target outcome result decision classification failure fault anomaly diagnosis
    verdict rating stars sentiment emotion intent fraud spam death mortality survived
    etikett klasse kategorie ergebnis entscheidung diagnose befund etiquette classe categorie
    resultat diagnostic etiqueta clase categoria resultado diagnostico rotulo etichetta risultato
    decisao decisione esito betrug fraude frode ausfall
    """
)
"""Last words of names of labels, such as final_outcome."""
TEXT_NAMES = _words(
    """
    text sequence sentence tokens content document review message question query utterance
    comment tweet post seq smiles selfies dna rna peptide events symbols values series features
    name word x input nachricht
    kommentar beschreibung inhalt satz frage rezension anfrage texte commentaire phrase contenu
    texto mensaje comentario frase contenido pregunta mensagem conteudo pergunta testo messaggio
    commento domanda текст сообщение отзыв комментарии вопрос tekst tresc yorum metin soru
    文本 评论 内容 本文 テキスト レビュー 내용 리뷰 텍스트
    """
)
SHORT_NAMES = ("name", "word", "x", "input")
"""Names of texts that also are names of other things beside free text."""
HEADLINE_NAMES = _words(
    """
    title subject headline summary titel betreff titre objet titulo asunto assunto titolo oggetto
    тема заголовок tytuł temat onderwerp baslık konu 标题 主题 件名 タイトル 제목
    """
)
BODY_NAMES = _words(
    """
    body description text content review abstract message beschreibung inhalt nachricht texte
    contenu texto contenido mensaje mensagem conteudo testo rezension recensione resenha resena
    cuerpo corps corpo descripcion descricao descrizione описание текст сообщение отзыв обращение
    опис opis tresc omschrijving beschrijving bericht acıklama mesaj icerik
    内容 正文 描述 本文 説明 내용 본문 설명
    """
)
MESSAGE_NAMES = (*BODY_NAMES, *TEXT_FIELDS)
"""Names of the texts of messages."""
ACCEPTED, DECISIONS = "accept", ("accept", "reject", "ignore")
"""Decisions of an annotator on a task, in the column `answer`, as Prodigy writes them."""
GROUP_NAMES = _words(
    """
    session session_id conversation conversation_id dialog dialogue dialog_id chat sitzung gesprach
    seance
    sesion conversacion sessao conversa
    """
)
"""Names of columns that tell which rows belong together."""
ROW_NAMES = ("id", "index", *GROUP_NAMES)
SPEAKER_NAMES = _words("speaker role sender from sprecher rolle absender locuteur hablante falante")
"""Names of columns that tell who wrote a turn of a conversation."""
PERSON_NAMES = _words(
    """
    customer user patient author speaker participant person driver writer visitor student teacher
    pupil player rider worker employee nurse doctor annotator rater kunde kunden kundin benutzer
    nutzer patientin patienten proband teilnehmer fahrer autor schuler lehrer spieler mitarbeiter
    utilisateur auteur conducteur eleve joueur usuario paciente conductor persona alumno jugador
    empleado probando utilizador pessoa motorista aluno jogador utente paziente studente giocatore
    """
)
OWNER_NAMES = (
    *PERSON_NAMES,
    *_words(
        """
        client subject machine device account kundennummer kundennr maschine maschinennummer gerat
        geraet anlage konto appareil compte cliente maquina dispositivo cuenta conta macchina
        acct cc iban imei
        """
    ),
)
"""Names of columns whose value the rows of one owner share."""
KNOWN_NAMES = {
    *LABEL_NAMES,
    *LANGUAGE_NAMES,
    *TEXT_NAMES,
    *HEADLINE_NAMES,
    *BODY_NAMES,
    *ROW_NAMES,
    "",
}
IDS = (
    "[a-z]?id|uid|session|case|trip|key|sitzung|vorgang|[a-z]+nummer|dossier|identifiant|seance"
    "|caso|sesion|sessao|mmsi|imo|icao|vin|isin"
)
CODES = "code|zip|poi|postcode|zipcode|postal|plz"
ID_NAME = re.compile(rf"(^|[^a-z])({IDS})([^a-z]|$)")
CODE_NAME = re.compile(rf"(^|[^a-z])({IDS}|{CODES})([^a-z]|$)")
"""Pattern in the words of a name of a column whose values are codes, such as case id."""
AMOUNT_WORDS = (
    "amount",
    "sum",
    "total",
    "count",
    "price",
    "cost",
    "value",
    "fee",
    "score",
    "length",
    "duration",
    "distance",
    "size",
    "weight",
    "age",
    "rate",
    "share",
    "percent",
    "speed",
)
"""Last words of names of numbers that are no codes, such as case amount."""
UNITS = "ms|s|secs?|seconds?|us|ns|mins?|minutes?|hours?|utc|gmt|unix|iso|local|millis|micros|nanos"
TIMES = (
    "time|timestamp|date|datetime|when|ts|epoch|step|order|frame|t|at|clock|start|begin|onset|[bhm]?jd"
    "|created|updated|modified|recorded|logged|occurred"
    "|(?:time|date) ?(?:created|stamp|logged|recorded|received|generated|occurred|sent|start|end)"
    "|(?:create|event|start|end|log|server)(?:time|date)"
    "|zeit|zeitpunkt|zeitstempel|uhrzeit|uhr|datum|heure|horodatage|fecha|hora|tijd|tid|czas"
    "|时间|日期|時間|日時|時刻|시간|일시|날짜"
)
TIME_NAME = re.compile(rf"(^|[^a-z])(?:{TIMES})(?: (?:{UNITS}))*$")
"""Pattern in the words of the name of a column whose numbers are times, such as arrival time."""
PER_UNIT = re.compile(r"/ ?[a-z]\W*$")
"""End of a name with a unit, such as that of grams per tonne, g/t."""
OF_EVENTS = (
    "event|start|end|log|sample|record|visit|session|local|server|unix|creation|complete"
    "|created|updated|modified|recorded|logged|occurred|received|sent|started"
)
EVENT_TIME_NAME = re.compile(rf"(?:(?:{OF_EVENTS}) )*(?:{TIMES})(?: (?:{UNITS}))*")
"""Words of a name that says no more than that numbers are times of events: event time ms."""
LATER = re.compile(
    r"(?:^|.* )(?:received|processed|ingested|stored|updated|modified|ended?|finished|completed"
    r"|closed|ende|fin|fine|fim)(?: .*|$)"
)
"""Words of the name of a time that is later than that of the event."""
SPANS = (
    "remaining|left|until|since|to|rul|countdown|spent|taken|elapsed|response|reaction|wait"
    "|waiting|latency|lag|delta|diff|processing|service|travel|dwell|loading|idle"
)
SPAN_NAME = re.compile(rf"(^| )(?:{SPANS})( |$)")
"""Pattern in the words of the name of a column of spans of time, such as time left."""
COUNTDOWN = re.compile(
    r"(?:.* )?(?:clock|timer|countdown|remaining|left|rul|rest|restzeit|restante|restant)(?: .*)?"
)
"""Words of the name of a time that may fall from step to step."""
SECONDS = re.compile(r"secs?|seconds?|ms|millis|msecs?|elapsed.*|since .*|time since.*")
"""Words of a name of numbers that may be the time of a step."""
STEPS = "seq|seqno|seqnr|sequence|step|frame|turn|tick|cycle|iteration|round"
COUNTED_ROWS = "line|row|event|msg|message|record|entry|visit|sample|reading|item"
PERIODS = "year|quarter|month|week|day|hour|minute|second|period|jahr|monat|woche|tag|stunde"
COUNTER_NAME = re.compile(
    rf"(?:index|idx|nr|no|num|number|i|n|k|pos|position|rank|offset|lineno|rowno|schritt|zeile)"
    rf"|(?:.* )?(?:{STEPS}|{PERIODS})(?: (?:nr|no|num|number|index|idx|id))?"
    rf"|(?:.* )?(?:{COUNTED_ROWS}) (?:nr|no|num|number|index|idx|pos|position|count)"
)
"""Words of the name of a column whose whole numbers count steps or rows, such as week, event nr."""

LEVELS = (
    "year|jahr|annee|année|año|anno|ano|jaar",
    "quarter|quartal|trimestre|kwartaal",
    "month|monat|mois|mes|mês|mese|maand",
    "week|woche|kw|semaine|semana|settimana",
    "day|date|tag|datum|jour|fecha|día|dia|giorno|dag",
    "session|sitzung",
    "visit|besuch",
    "trip|match|game|spiel|episode|leg|etappe",
    "block|run|lap|round|runde",
    "trial|ensayo|essai|prueba|prova",
    "half|half ?time|halbzeit|mi temps|period|set|innings?|chapter|kapitel|chapitre|capitulo"
    "|capitolo|hoofdstuk|part|section|act|scene|phase|stage|leg",
    "hour|stunde|heure|hora|ora|uur",
    "minute|minuto|minuut",
    "second|sekunde|seconde|segundo|secondo",
    f"{STEPS}|(?:{COUNTED_ROWS}) (?:nr|no|num|number|index|idx)|index|idx|lineno|rowno"
    "|schritt|zeile|slot|point|punkt|verse?|vers|versiculo|page|seite|move|shot|ball|play",
)
"""Words for columns of an order, from coarse to fine: a finer one may begin again in a coarser."""
LEVEL_NAMES = [re.compile(rf"(?:.* )?(?:{words}){NUMBERED}") for words in LEVELS]
MONTHS_AND_WEEKS = {2, 3}
LEVEL_OF_QUARTERS, LEVEL_OF_MONTHS, LEVEL_OF_DATES, PARTS = 1, 2, 4, 10
LEVEL_OF_TIMES, COUNTERS = 11, 14
LONG_TERM = {4, 5, 6, PARTS}
"""Places in `LEVELS`: of months and weeks; of quarters, of months, of dates, of parts of one
sequence such as halves; of times of day, of counters of rows; of dates, sessions, visits, parts."""
REPETITIONS = re.compile(
    "(?:.* )?(?:recording|experiment|take|attempt|repetition|rep|clip|video|file|series|sequence"
    f"|Durchgang|Versuch|Fahrt){NUMBERED}".lower()
)
"""Words for parts of a recording beside those of `LEVELS`."""

CHANNEL_NAME = re.compile(
    rf"(?:.* )?(?:dim|dimension|channel|axis|lead|electrode|parameter|variable|feature){NUMBERED}"
    "(?: (?:id|name))?"
)
"""Words of the name of a column that tells which channel a number in another column belongs to."""
LONGEST_SCALE = 11
"""Most values of a rating."""
MOST_WORDS = 3
"""Most words of the name of an owner: more are a sentence, as a question is."""


def last_word(column: ColumnProfile) -> str:
    """Return the last word of the name of the column: title of review_title."""
    return column.name_words.rpartition(" ")[2]


def is_decision(column: ColumnProfile) -> bool:
    """Return True for the decisions of annotators on their tasks, as Prodigy writes them."""
    return column.word == "answer" and set(map(str, column.values)) <= {*DECISIONS, ""}


def _fits(pattern: re.Pattern[str]) -> Callable[[ColumnProfile], bool]:
    """Return the function that tells if all words of the name of a column fit a pattern."""
    return lambda column: pattern.fullmatch(column.name_words) is not None


is_event_time = _fits(EVENT_TIME_NAME)
"""True if the column is named like times of events, and nothing else: event_time."""
may_count_down = _fits(COUNTDOWN)
"""True if the column is named like a time that may count down, such as game_clock."""
may_be_seconds = _fits(SECONDS)
"""True if the column is named like seconds since a start, such as elapsed_ms."""
is_later = _fits(LATER)
"""True if the column is named like times after events, such as received_at."""
is_counter = _fits(COUNTER_NAME)
"""True if the column is named like numbers that count steps, such as week or seq_no."""
is_channel = _fits(CHANNEL_NAME)
"""True if the column is named like channels, as that of a number in each row."""


def is_code(column: ColumnProfile) -> bool:
    """Return True if the column is named like codes, such as case_id."""
    return bool(CODE_NAME.search(column.name_words)) and not is_amount(column)


def is_amount(column: ColumnProfile) -> bool:
    """Return True if the column is named like amounts, such as case amount."""
    return last_word(column) in AMOUNT_WORDS


def names_outcome(column: ColumnProfile) -> bool:
    """Return True if the column is named like labels: outcome, final_outcome, or class_id.

    Its cells must not say that the name means something else, as those of a Tag or a score may.
    """
    has_other_meaning = OTHER_MEANINGS.get(column.word, lambda _: False)
    if has_other_meaning(column):
        return False
    return column.word in LABEL_NAMES or _word_before_id(column) in OUTCOME_WORDS


def _is_free(column: ColumnProfile) -> bool:
    """Return True for texts of several words, which are no grades."""
    return column.words >= FREE_WORDS


def _holds_letters(column: ColumnProfile) -> bool:
    """Return True if a cell begins with a letter, as a number or stars don't."""
    return any(str(value)[:1].isalpha() for value in column.values)


def _may_be_days(column: ColumnProfile) -> bool:
    """Return True for numbers, also such as Day 3, for dates, and for names of weekdays."""
    return column.kind != "text" or column.calendar_names != "" or column.numbered_text != ""


def _is_no_rating(column: ColumnProfile) -> bool:
    """Return True for more values than a scale from 0 to 10 has, and for numbers between these."""
    return column.distinct > LONGEST_SCALE or column.has_decimals


OTHER_MEANINGS = {
    "overall": _is_no_rating,
    "score": _is_no_rating,
    "note": _is_free,
    "nota": _is_free,
    "stelle": _holds_letters,
    "tag": _may_be_days,
}
"""Maps names of labels that have another meaning, too, to functions that tell it by the cells.

A score with many values or decimals is a measurement. A note is a grade in French and a text in
English; stelle are stars in Italian, and a Stelle is a position in German; a tag is a label in
English, and a day in German.
"""


def _word_before_id(column: ColumnProfile) -> str:
    """Return the last word of the name of the column that isn't id: class of class_id."""
    return column.name_words.removesuffix(" id").rpartition(" ")[2]


def names_property(column: ColumnProfile) -> bool:
    """Return True if the column is named like labels that are properties as well, such as type."""
    return names_outcome(column) and _word_before_id(column) in PROPERTY_NAMES


def names_outcomes(column: ColumnProfile) -> bool:
    """Return True if the column is named like lists of labels, such as labels, topics or tags."""
    return names_outcome(column) or column.word.removesuffix("s") in (*LABEL_NAMES, *OUTCOME_WORDS)


def is_no_outcome(column: ColumnProfile) -> bool:
    """Return True if the column is named like codes, owners, or variants of a process.

    Or it has names of times, or holds these.
    """
    return is_code_or_owner(column) or tells_time(column) or names_variant(column)


def tells_time(column: ColumnProfile) -> bool:
    """Return True if the column is named like times, or holds names of weekdays or months."""
    return is_time(column) or column.calendar_names != ""


def names_language(column: ColumnProfile) -> bool:
    """Return True if the column is named like languages, such as learning_language."""
    return last_word(column) in LANGUAGE_NAMES


def names_variant(column: ColumnProfile) -> bool:
    """Return True if the column is named like variants of a process: the path that a case took."""
    return column.name_words.startswith("variant")


def names_owner(column: ColumnProfile) -> bool:
    """Return True if the column is named like owners, such as customer_nr."""
    words = column.name_words.split()
    return len(words) <= MOST_WORDS and not set(words).isdisjoint(OWNER_NAMES)


def names_person(column: ColumnProfile) -> bool:
    """Return True if the column is named like persons, such as main_driver, not customer_type."""
    return names_owner(column) and last_word(column) in PERSON_NAMES


def is_code_or_owner(column: ColumnProfile) -> bool:
    """Return True if the column is named like codes or owners."""
    return is_code(column) or names_owner(column)


def is_id_or_owner(column: ColumnProfile) -> bool:
    """Return True if the column is named like ids or owners, not like codes of a property."""
    is_id = is_code(column) and ID_NAME.search(column.name_words) is not None
    return is_id or names_owner(column)


def names_conversation(column: ColumnProfile) -> bool:
    """Return True if the column is named like conversations or sessions, such as dialog_id."""
    return _word_before_id(column) in GROUP_NAMES


def names_speaker(column: ColumnProfile) -> bool:
    """Return True if the column is named like the speakers of a conversation."""
    return column.word in SPEAKER_NAMES


def may_own(column: ColumnProfile) -> bool:
    """Return True if the column is named like owners, groups or ids, not codes of a property.

    Or it is named like texts or names. Where few of these are distinct, rows share them.
    """
    is_known = column.word in (*GROUP_NAMES, *TEXT_NAMES, *HEADLINE_NAMES, *BODY_NAMES, "name")
    return is_known or is_id_or_owner(column)


def is_time(column: ColumnProfile) -> bool:
    """Return True if the column is named like times, such as arrival_time, not g/t."""
    return bool(TIME_NAME.search(column.name_words)) and not PER_UNIT.search(column.word)


def is_counting(column: ColumnProfile) -> bool:
    """Return True if the column is named like times, or like numbers that count steps."""
    return is_time(column) or is_counter(column) or level_of(column) == COUNTERS


def is_part_of_id(column: ColumnProfile) -> bool:
    """Return True if the column is named like dates, trials or recordings of an owner."""
    level = level_of(column)
    is_part = level is not None and LEVEL_OF_DATES <= level < LEVEL_OF_TIMES
    return is_part or bool(REPETITIONS.fullmatch(column.name_words))


def is_trial(column: ColumnProfile) -> bool:
    """Return True if the column is named like trials or recordings, not like dates or visits."""
    return is_part_of_id(column) and level_of(column) not in LONG_TERM


def is_span(column: ColumnProfile) -> bool:
    """Return True if the column is named like spans of time, such as time_left."""
    return bool(SPAN_NAME.search(column.name_words))


def level_of(column: ColumnProfile) -> int | None:
    """Return the place in `LEVELS` of the column by its name, or None. Spans of time have none."""
    if is_span(column):
        return None
    names = enumerate(LEVEL_NAMES)
    return next((at for at, name in names if name.fullmatch(column.name_words)), None)
