"""These patterns find questions that MAGI declines by plain words, by kind, in seven languages:
English, German, French, Spanish, Chinese, Japanese, Korean. They count whatever a model calls the
question. Pure.

Each is about people: a process may be killed, a transaction aborted and a file be foreign.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from magy_server.regex import regex

Declined = Literal["medical", "guilt", "identity", "harm", "privacy", "malware"]

MEDICAL = (
    r"\b(?:life support|ventilator|euthan\w+|withdraw (?:care|treatment)|terminally ill|"
    r"resuscitat\w+|do not resuscitate)\b",
    r"\b(?:sterbehilfe|todkrank\w*|lebenserhaltende\w*|beatmungsgerät\w*|reanimier\w+)\b",
    r"\b(?:acharnement thérapeutique|phase terminale|réanim\w+|respirateur artificiel|"
    r"débrancher (?:mon|ma|son|sa) (?:père|mère|mari|femme|fils|fille))\b",
    r"\b(?:eutanasia|soporte vital|enferm[oa] terminal|respirador artificial|"
    r"desconectar a (?:mi|su) (?:padre|madre|marido|esposa|hij[oa]))\b",
    r"拔管|安樂死|安乐死|安楽死|放棄治療|放弃治疗|放棄急救|放弃急救|[維维]持生命|延命治療|"
    r"안락사|연명 ?치료",
)
GUILT = (
    r"\b(?:(?:is|was|are|were) (?:he|she|they|the (?:defendant|accused|suspect)) guilty|"
    r"guilty or (?:not|innocent)|(?:prison|jail|death) sentence|how many years (?:in|of) "
    r"(?:prison|jail)|sentenced? (?:him|her|them|the \w+) to)\b",
    r"\b(?:(?:ist|war|sind|waren) (?:er|sie|(?:der|die) \w*(?:angeklagte|beschuldigte|"
    r"verdächtige)n?) (?:un)?schuldig|schuldig oder (?:nicht|unschuldig)|(?:gefängnis|haft|"
    r"freiheits|todes)strafe|wie viele jahre (?:haft|gefängnis))\b",
    r"\b(?:(?:est|était)[ -](?:il|elle) coupable|l['’](?:accusée?|inculpée?) (?:est|était)"
    r"(?:-(?:il|elle))? coupable|coupable ou (?:non|innocente?)|peine de (?:prison|mort)|"
    r"années de prison)\b",
    r"\b(?:(?:es|era) (?:él|ella|(?:el|la) (?:acusad|imputad|sospechos)[oa]) culpable|"
    r"(?:acusad|imputad|sospechos)[oa] (?:es|era) culpable|culpable o inocente|"
    r"pena de (?:cárcel|prisión|muerte)|años de (?:cárcel|prisión))\b",
    r"有罪(?:嗎|吗|か)|是否有罪|判刑|量刑|死刑|無期徒刑|无期徒刑|懲役|유죄|징역",
)
IDENTITY = (
    r"\b(?:(?:is|am|are) (?:he|she|they|i|we) (?:really |actually )?(?:gay|straight|trans|"
    r"transgender|bisexual|non-?binary)|have an abortion|without (?:her|his) consent)\b",
    r"\b(?:(?:ist|bin|sind) (?:er|sie|ich|wir) (?:wirklich |eigentlich )?(?:schwul|lesbisch|"
    r"trans|bisexuell|heterosexuell)|abtreib\w+|schwangerschaftsabbruch|"
    r"ohne (?:ihre|seine) einwilligung)\b",
    r"\b(?:(?:est|suis|sont)[ -](?:il|elle|je|ils|elles) (?:vraiment )?(?:gay|lesbienne|trans|"
    r"bisexuelle?|hétéro)|(?:il|elle) est (?:vraiment )?(?:gay|lesbienne|trans|bisexuelle?)|"
    r"se faire avorter|avortement|sans son consentement)\b",
    r"\b(?:(?:es|soy|son) (?:él |ella |realmente |de verdad )?(?:gay|lesbiana|trans|bisexual|"
    r"heterosexual)|un aborto|sin su consentimiento)\b",
    r"墮胎|堕胎|人工流[產产]|是同性[恋戀]|[變变]性手[術术]|中絶|同性愛者|낙태|동성애자",
)
HARM = (
    r"\b(?:(?:kill|murder|poison|kidnap|torture|stalk|blackmail)(?:ing)? (?:him|her|them|"
    r"my|someone|somebody|people|a person)|(?:build|make|place) (?:a|the) bomb|launder(?:ing)? "
    r"money|manipulat\w+ (?:him|her|them|people|voters|users) into)\b",
    r"\b(?:(?:jemanden|menschen|leute|meinen? (?:chef|chefin|nachbarn?|mann|frau|kollegen)) "
    r"(?:umbringen|töten|ermorden|vergiften|entführen|foltern|erpressen)|"
    r"(?:umbringen|ermorden|vergiften|entführen|foltern|erpressen) (?:ihn|sie)|"
    r"(?:ihn|sie) (?:umbringen|ermorden|vergiften|entführen|foltern|erpressen)|"
    r"eine bombe (?:bauen|legen)|geld waschen|(?:wähler|menschen|nutzer|leute) "
    r"(?:dazu )?manipulieren)\b",
    r"\b(?:(?:tuer|assassiner|empoisonner|kidnapper|torturer) (?:quelqu['’]un|mon|ma|des gens|"
    r"une personne)|faire chanter (?:mon|ma|quelqu['’]un)|(?:fabriquer|poser) une bombe|"
    r"blanchir (?:de )?l['’]argent|manipuler (?:les gens|les électeurs|les utilisateurs))\b",
    r"\b(?:(?:matar|asesinar|envenenar|secuestrar|torturar|chantajear) a (?:alguien|mi|una|la "
    r"gente)|(?:fabricar|poner) una bomba|(?:lavar|blanquear) dinero|"
    r"manipular a (?:la gente|los votantes|los usuarios))\b",
    r"[殺杀](?:了他|了她|人)|下毒|[綁绑]架|勒索(?:他|她)|[製制]造炸[彈弹]|(?<!反)洗[錢钱]|操[縱纵][選选]民|"
    r"殺害|毒殺|誘拐|資金洗浄|살인|납치|독살|돈세탁",
)
PRIVACY = (
    r"\b(?:dox+(?:ing)?|de-?anonymi[sz]\w*|(?:find|publish|post|leak) (?:his|her|their|"
    r"someone'?s|the) (?:home address|address|phone number|real name|identity|medical "
    r"records?)|who is (?:behind|really) (?:this|the) (?:anonymous )?account)\b",
    r"\b(?:(?:seine|ihre) (?:privat|wohn|heim)?(?:adresse|anschrift|telefonnummer|krankenakte|"
    r"identität) (?:herausfinden|veröffentlichen|posten|verbreiten)|wer (?:wirklich )?hinter "
    r"(?:diesem|dem) (?:anonymen )?(?:konto|account) steckt)\b",
    r"\b(?:(?:trouver|publier|divulguer) (?:son|leur) (?:adresse|numéro de téléphone|identité|"
    r"vrai nom|dossier médical)|qui se cache derrière (?:ce|le) compte|désanonymis\w+)\b",
    r"\b(?:(?:encontrar|publicar|filtrar|averiguar) su (?:dirección|domicilio|teléfono|"
    r"número de teléfono|identidad|nombre real|historial médico)|quién está detrás de "
    r"(?:esta|la) cuenta|desanonimizar)\b",
    r"人肉搜索|起底|真[實实]身[份分]|(?:公[開开布]|曝光)(?:他|她)?的?(?:住址|地址|[電电][話话]|[隱隐]私|病[歷历])|"
    r"住所を(?:公開|特定|晒)|身元を特定|신상 ?(?:털|공개)",
)
MALWARE = (
    r"\b(?:(?:write|build|deploy|make|ship|develop) (?:a |an |some |our |this )?(?:malware|"
    r"ransomware|rootkit|keylogger|botnet|computer worm|trojan)|exploit chain|"
    r"(?:bypass|get around|jailbreak) (?:the |its |a |any )?(?:safety (?:measures|filters?|"
    r"training|guidelines)|guardrails?|content filters?|safeguards?))\b",
    r"\b(?:(?:schadsoftware|malware|ransomware|erpressungstrojaner|rootkit|keylogger|botnetz|"
    r"computerwurm|trojaner)s? (?:schreiben|bauen|entwickeln|programmieren|verbreiten)|"
    r"exploit-?kette|(?:sicherheitsmaßnahmen|sicherheitsfilter|schutzmaßnahmen|inhaltsfilter) "
    r"umgehen)\b",
    r"\b(?:(?:écrire|développer|créer|déployer|fabriquer) (?:un |une |des |du )?(?:logiciel "
    r"malveillant|maliciel|malware|rançongiciel|ransomware|rootkit|keylogger|botnet|cheval de "
    r"troie|virus informatique)|chaîne d['’]exploits?|contourner (?:les |le |la )?(?:mesures de "
    r"sécurité|filtres? de (?:sécurité|contenu)|garde-fous))\b",
    r"\b(?:(?:escribir|desarrollar|crear|desplegar) (?:un |una )?(?:malware|ransomware|rootkit|"
    r"keylogger|botnet|troyano|virus informático|programa malicioso|software malicioso)|cadena "
    r"de exploits|(?:eludir|saltarse|evadir|burlar) (?:las |los |el )?(?:medidas de seguridad|"
    r"filtros? de (?:seguridad|contenido)|salvaguardias))\b",
    r"(?:[寫写]|[編编][寫写]|[開开][發发]|[製制]作|做)(?:一?[個个])?(?:[惡恶]意(?:[軟软][體件]|程式|代[碼码])|"
    r"勒索[軟软][體件]|木[馬马]|[鍵键][盤盘][記记][錄录]器|蠕[蟲虫]|[電电][腦脑]病毒|rootkit)|"
    r"[繞绕][過过](?:它的|其)?(?:安全(?:措施|[過过][濾滤]|[機机]制)|[內内]容[過过][濾滤]|[護护][欄栏])|"
    r"(?:マルウェア|ランサムウェア|ルートキット)を(?:作|書|開発)|"
    r"(?:악성코드|랜섬웨어)를? ?(?:만들|작성|개발)",
)


def _any(patterns: Sequence[str]) -> re.Pattern[str]:
    return regex(f"(?i){'|'.join(patterns)}")


PATTERNS: tuple[tuple[Declined, re.Pattern[str]], ...] = (
    ("medical", _any(MEDICAL)), ("guilt", _any(GUILT)), ("identity", _any(IDENTITY)),
    ("harm", _any(HARM)), ("privacy", _any(PRIVACY)), ("malware", _any(MALWARE)),
)  # fmt: skip
