"""This module tells whether a request asks for a vote of three nodes, in five languages.

Some words are enough. Others are in ordinary talk about machines, as "three nodes" is: they count
only where the same sentence asks for a vote, or begins with them as with a command. Pure.
"""

from __future__ import annotations

import re

from magy_server.regex import regex

SKILL = "magi"
"""The skill that such a request calls for."""
LOOKED = 2_000
"""Characters of a request that are looked at: who wants a vote says so at the beginning."""
_ENOUGH = regex(
    r"\bmagi\s+(?:decisions?|votes?|analy[sz]e|deliberat(?:e|ion)|ruling)\b"
    r"|\b(?:ask|let|have|use)\s+magi\b(?![-./_]\w)"
    r"|用\s*magi\s*(?:決定|决定)|magi\s*(?:投票|審議|审议|分析)"
    r"|三(?:電)?腦審議|三脑审议|多角度分析投票"
    r"|マギ(?:の)?(?:決定|審議|投票)|마기(?:의)?\s*(?:결정|심의|투표)",
    re.IGNORECASE,
)
_MAYBE = regex(
    r"\b(?:three|3)\s+(?:nodes|perspectives|minds)\b|\btriple\s+perspective\b"
    r"|\b(?:three|3)-way\s+(?:analysis|deliberation)\b|\bmulti-?perspective\b"
    r"|\bdevil'?s\s+advocate\b.{0,60}\blogic\b.{0,60}\bcare\b"
    r"|\blogic\b.{0,60}\bcare\b.{0,60}\bdevil'?s\s+advocate\b"
    r"|三台(?:電腦|电脑)|用三(?:個節點|个节点)|多角度分析|三方分析|多視角|多视角"
    r"|三者(?:で|による)|多角的|세\s*관점|다각도",
    re.IGNORECASE,
)
_VOTE = regex(
    r"\b(?:deliberat\w*|vote[sd]?|voting|ruling|verdict|devil'?s\s+advocate)\b"
    r"|投票|審議|审议|表決|表决|裁決|裁决|決定|决定|議決|심의|투표|결정",
    re.IGNORECASE,
)
_CLUSTER = regex(
    r"\b(?:cluster|replica\w*|quorum|raft|paxos|etcd|zookeeper|kubernetes|k8s|consensus|leader|"
    r"elect\w*|broker\w*|kafka|shard\w*|server\w*|voting\s+(?:member|rights)|linked\s+list|tree|"
    r"graph|dom|database)\b|叢集|集群|副本|選舉|选举|節點故障|节点故障|伺服器|服务器|クラスタ|サーバ|"
    r"클러스터|서버",
    re.IGNORECASE,
)
_CALLED = regex(r"\s*(?:[:：,，]|\Z)")
"""Behind a word that is called like a command."""
_SENTENCE = regex(r"(?<=[.!?。！？])\s+|(?<=[。！？])|\n")
_QUOTED = regex(r"```.*?(?:```|\Z)|`[^`\n]*`|^\s*>.*$", re.DOTALL | re.MULTILINE)


def asks_for_vote(request: str) -> str:
    """Returns the words that ask for it; "": none do. Code and quotations ask for nothing."""
    text = _QUOTED.sub(" ", request[:LOOKED])
    for sentence in _SENTENCE.split(text):
        if found := _ENOUGH.search(sentence):
            return found[0]
        found = _MAYBE.search(sentence)
        if found is None or _CLUSTER.search(sentence):
            continue
        if _VOTE.search(sentence) or (
            not sentence[: found.start()].strip() and _CALLED.match(sentence[found.end() :])
        ):
            return found[0]
    return ""
