"""Compares two records, entry by entry. What may differ is in a table, each with whose it is and why; anything else fails."""

import base64
import json
import re


class Allowed:
    """A difference whose text matches `pattern`. Whose: kubelet's (it does what we do not), ours, or the run's."""

    def __init__(self, whose, pattern, why):
        self.whose, self.pattern, self.why, self.seen = whose, re.compile(pattern), why, []


class Comparison:
    def __init__(self, allowed):
        self.allowed, self.equal, self.unknown, self.notes = allowed, 0, [], []

    def same(self, count=1):
        self.equal += count

    def differs(self, text):
        for rule in self.allowed:
            if rule.pattern.search(text):
                rule.seen.append(text)
                return
        self.unknown.append(text)

    def maps(self, what, kubelet, ours):
        """Keys that only one has, and values that are different; maps in maps are compared by their keys."""
        for key in sorted(set(kubelet) | set(ours)):
            name = f"{what} {key}"
            if key not in ours:
                self.differs(f"only kubelet: {name} = {kubelet[key]}")
            elif key not in kubelet:
                self.differs(f"only ours: {name} = {ours[key]}")
            elif isinstance(kubelet[key], dict) and isinstance(ours[key], dict):
                self.maps(name, kubelet[key], ours[key])
            elif kubelet[key] == ours[key]:
                self.same()
            else:
                self.differs(f"differs: {name}: kubelet {kubelet[key]} ours {ours[key]}")

    def report(self, verbose=False):
        lines = [f"{self.equal} are equal"]
        for rule in self.allowed:
            if rule.seen:
                lines.append(f"{len(rule.seen):5} {rule.whose}: {rule.why}")
                lines += [f"          {text[:300]}" for text in rule.seen[:None if verbose else 1]]
        lines += self.notes
        lines += [f"UNEXPECTED {text[:600]}" for text in self.unknown]
        return "\n".join(lines)


# What agents ask of a driver without changing anything, as often as they like.
QUESTIONS = ("Probe", "GetPluginInfo", "GetPluginCapabilities", "NodeGetInfo", "NodeGetCapabilities",
             "ControllerGetCapabilities", "ListVolumes", "NodeGetVolumeStats", "ControllerGetVolume")


TOKENS = "csi.storage.k8s.io/serviceAccount.tokens"


def tokens(text):
    """What they say, by their audiences. Who has issued one, when, and to which account by uid is another in each run."""
    found = {}
    for audience, token in json.loads(text).items():
        said = token["token"].split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(said + "=" * (-len(said) % 4)))
        claims["lasts"] = claims["exp"] - claims["iat"]
        claims["expirationTimestamp"] = bool(re.fullmatch(r"[-\d]+T[:\d]+Z", token["expirationTimestamp"]))
        for key in ("iss", "jti", "iat", "nbf", "exp"):
            claims[key] = type(claims[key]).__name__ if key in claims else "none"
        found[audience] = claims
    return found


def flat(request):
    """A request's fields by their paths."""
    found = {}
    for key, value in request.items():
        if key == TOKENS:
            value = tokens(value)
        if isinstance(value, dict) and value:
            found |= {f"{key}.{inner}": below for inner, below in flat(value).items()}
        else:
            found[key] = value
    return found


def once(comparison, side, calls):
    """Without those that repeat the last one with the same fields, which are a difference of their own."""
    kept = []
    for call in calls:
        if kept and (kept[-1].method, kept[-1].code, kept[-1].request) == (call.method, call.code, call.request):
            comparison.differs(f"repeated by {side}: {call}")
        else:
            kept.append(call)
    return kept


def compare_calls(comparison, kubelet, ours):
    """The calls of each disk in their order with all fields; of what is only asked, the methods and the fields."""
    for disk in sorted({call.disk for call in kubelet + ours} - {""}):
        of = [once(comparison, side, [call for call in calls if call.disk == disk and call.method not in QUESTIONS])
              for side, calls in (("kubelet", kubelet), ("ours", ours))]
        orders = [[f"{call.method} {call.code}" for call in calls] for calls in of]
        if orders[0] != orders[1]:
            comparison.differs(f"order of calls of {disk}: kubelet {orders[0]} ours {orders[1]}")
        else:
            comparison.same(len(orders[0]))
        fields = [{}, {}]
        for side, calls in zip(fields, of):
            for call in calls:
                if call.code == "OK":
                    number = sum(key.startswith(call.method + " ") for key in side) + 1
                    side[f"{call.method} {number}"] = flat(call.request)
        # Where the order differs a call may have no partner; that was said above.
        both = fields[0].keys() & fields[1].keys()
        comparison.maps(f"{disk}", *[{key: side[key] for key in both} for side in fields])
    for method in QUESTIONS:
        counts = [sum(call.method == method for call in calls) for calls in (kubelet, ours)]
        if any(counts):
            comparison.notes.append(f"{method}: {counts[0]} times by kubelet, {counts[1]} by volumed")
        asked = [{tuple(sorted(flat(call.request).items())) for call in calls if call.method == method and call.code == "OK"}
                 for calls in (kubelet, ours)]
        for request in sorted(asked[0] | asked[1], key=str):
            if request in asked[0] and request in asked[1]:
                comparison.same()
            else:
                comparison.differs(f"only {'kubelet' if request in asked[0] else 'ours'} asks: {method} {dict(request)}")


def compare_repeated(comparison, kubelet, ours):
    """Where both have staged or published the same, in one run: the fields."""
    def last(calls):
        return {f"{call.method} {call.disk} {call.request.get('targetPath', '')}": flat(call.request) for call in calls
                if call.method in ("NodeStageVolume", "NodePublishVolume") and call.code == "OK"}
    theirs, own = last(kubelet), last(ours)
    for key in sorted(theirs.keys() & own.keys()):
        comparison.maps(key, theirs[key], own[key])
