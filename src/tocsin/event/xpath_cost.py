"""What an XPath expression costs at worst, estimated before it is evaluated.

libxml2 has no deadline, and an expression of twenty characters can keep it busy for hours. So the
time is bounded beforehand, from the tree of the expression and the size of the document. The prices
below were measured with libxml2 2.14 and are a little too high. What makes an expression dear:

- An axis that can find a node twice, taken from several nodes: each find is compared with all those
  before. So does `|`.
- Nodes found in another order than the document's are sorted, and to compare two places libxml2
  walks over the siblings between.
- A predicate is evaluated for every node of its step. Going down from each of many nodes is cheap
  all the same: a node has one parent, and at most `depth` ancestors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tocsin.event.xpath_syntax import Binary, Call, Expression, Literal, Path, Step, finds_nodes

VISIT_NS = 250.0  # a node looked at, or an operator or function applied
COMPARE_NS = 2.0  # a node compared with another, to find doubles
NAMESPACE_NS = 4.0  # a namespace in scope compared with another, for the same
SORT_NS = 8.0  # a sibling walked over while sorting, times the few rounds that sorting takes
TEXT_NS = 60.0  # the text that one node stands for, copied
EQUAL_NS = 20.0  # two texts compared
SEARCH_NS = 512.0  # a text searched for in another, where the texts are made to make it long
BYTES_PER_NODE = 32  # so much text counts as a node

_DOWN = frozenset({"child", "attribute", "namespace", "self", "descendant", "descendant-or-self"})
_UP = frozenset({"parent", "ancestor", "ancestor-or-self"})
_DEEP = frozenset({"descendant", "descendant-or-self"})
_ANYWHERE = Step("descendant-or-self", "node()")
_SEARCHES = frozenset({"contains", "substring-before", "substring-after", "translate"})


@dataclass(frozen=True, slots=True)
class Size:
    """How large a document is."""

    nodes: int
    depth: int


@dataclass(frozen=True, slots=True)
class _Found:
    """The nodes found by one evaluation, on the average over all context nodes."""

    cost_ns: float
    nodes: float = 1.0
    is_many: bool = False
    is_nested: bool = False  # one of them may be inside another
    is_sorted: bool = True
    is_below: bool = True  # each was found from at most `depth` context nodes
    is_leaf: bool = False  # attributes or text: the text they stand for is their own


def cost_ns(expression: Expression, size: Size) -> float:
    """How long the evaluation over a document of this size takes, at worst."""
    estimate = _Estimate(float(size.nodes), float(size.depth))
    if isinstance(expression, Path):  # what is only asked whether it finds something is not sorted
        return size.nodes * estimate.path(expression, is_top=True).cost_ns
    return size.nodes * estimate.value(expression, is_top=True)


def _as_evaluated(steps: tuple[Step, ...]) -> list[Step]:
    """libxml2 takes `//a` in one step, unless `a` has a predicate."""
    taken: list[Step] = []
    for step in steps:
        is_plain = step.axis in {"child", "descendant"} and not step.predicates
        if is_plain and taken and taken[-1] == _ANYWHERE:
            taken[-1] = Step("descendant", step.test)
        else:
            taken.append(step)
    return taken


@dataclass(frozen=True, slots=True)
class _Estimate:
    """All costs are shares: of all nodes, for one context node. The top counts as all of them."""

    nodes: float
    depth: float
    is_below: bool = True  # the context nodes are all different, so going down from them is cheap

    def value(self, expression: Expression, *, is_top: bool = False) -> float:
        """The cost of the value, nodes put in order."""
        match expression:
            case Literal():
                return VISIT_NS
            case Call():
                return self._call(expression, is_top=is_top)
            case Binary("|") | Path():
                found = self.found(expression, is_top=is_top)
                return found.cost_ns + self._sorting(found)
            case Binary(operator, left, right):
                both = self.value(left, is_top=is_top) + self.value(right, is_top=is_top)
                if operator in {"and", "or"}:
                    return both + VISIT_NS
                return both + self._comparison(left, right, is_top=is_top)

    def found(self, expression: Expression, *, is_top: bool) -> _Found:
        match expression:
            case Path():
                return self.path(expression, is_top=is_top)
            case Binary("|", left, right):
                one = self.found(left, is_top=is_top)
                other = self.found(right, is_top=is_top)
                nodes = one.nodes + other.nodes
                merging = COMPARE_NS * self.nodes * nodes
                return _Found(
                    one.cost_ns + other.cost_ns + merging,
                    nodes,
                    is_many=True,
                    is_nested=True,
                    is_sorted=False,
                    is_below=one.is_below and other.is_below,
                )
        return _Found(
            self.value(expression), self.nodes, is_many=True, is_nested=True, is_below=False
        )

    def path(self, path: Path, *, is_top: bool) -> _Found:
        if path.start is None:
            found = _Found(VISIT_NS, is_below=self.is_below)
        elif isinstance(path.start, str):
            found = _Found(VISIT_NS, is_below=is_top)
        else:
            found = self.found(path.start, is_top=is_top)
            inside = self._predicates(path.predicates, is_below=found.is_below)
            cost = found.cost_ns + self._sorting(found) + found.nodes * inside
            found = replace(found, cost_ns=cost, is_sorted=True)
        for step in _as_evaluated(path.steps):
            found = self._step(step, found, is_top=is_top)
        return found

    def _step(self, step: Step, before: _Found, *, is_top: bool) -> _Found:
        axis = step.axis
        visited = self._visited(axis, before, is_top=is_top)
        if axis == "namespace":  # every one may be in the scope of every node
            visited = before.nodes * self.nodes
        finds_twice = before.is_many and axis not in _DOWN - _DEEP
        # From one node the other axes find different nodes, and all that are found are counted.
        is_each_once = axis not in _UP and (axis != "self" or before.is_below)
        cost = visited * (VISIT_NS + self._predicates(step.predicates, is_below=is_each_once))
        if axis == "namespace":
            cost += NAMESPACE_NS * self.nodes * visited
        if finds_twice:
            cost += COMPARE_NS * self.nodes * visited
        is_order_kept = axis in {"self", "attribute"} or not before.is_nested
        return _Found(
            before.cost_ns + cost,
            visited if axis in _DOWN and before.is_below else min(visited, self.nodes),
            is_many=before.is_many or axis not in {"self", "parent"},
            is_nested=before.is_nested or axis not in {"child", "attribute", "self"},
            is_sorted=before.is_sorted and is_order_kept and axis in _DOWN and not finds_twice,
            is_below=before.is_below and axis in _DOWN,
            is_leaf=axis in {"attribute", "namespace"} or step.test == "text()",
        )

    def _visited(self, axis: str, before: _Found, *, is_top: bool) -> float:
        if axis in {"self", "parent"}:
            return before.nodes
        if is_top and not before.is_many:
            return before.nodes  # the one context node: all nodes once is the most there is
        if axis in {"ancestor", "ancestor-or-self"}:
            return before.nodes * self.depth
        if axis not in _DOWN:
            return before.nodes * self.nodes
        if before.is_below:
            return before.nodes * (self.depth if axis in _DEEP else 1)
        return self.nodes * (self.depth if axis in _DEEP and before.is_many else 1)

    def _predicates(self, predicates: tuple[Expression, ...], *, is_below: bool) -> float:
        inside = replace(self, is_below=is_below)
        return sum(
            VISIT_NS
            + (
                inside.path(each, is_top=False).cost_ns
                if isinstance(each, Path)
                else inside.value(each)
            )
            for each in predicates
        )

    def _sorting(self, found: _Found) -> float:
        return 0.0 if found.is_sorted else SORT_NS * self.nodes * found.nodes

    def _comparison(self, left: Expression, right: Expression, *, is_top: bool) -> float:
        cost = VISIT_NS
        counts: list[float] = []
        for side in (left, right):
            if finds_nodes(side):
                found = self.found(side, is_top=is_top)
                counts.append(found.nodes)
                cost += TEXT_NS * self._texts(found)
            else:
                cost += TEXT_NS * self._text_share(side, is_top=is_top)
        if len(counts) == 2:
            return cost + EQUAL_NS * self.nodes * min(counts)
        if counts:  # the text or number is copied for each node that it is compared with
            other = left if finds_nodes(right) else right
            share = self._text_share(other, is_top=is_top)
            is_short = isinstance(other, Literal)
            times = counts[0] * share if is_short else self.nodes * min(counts[0], share)
            cost += TEXT_NS * times
        return cost

    def _call(self, call: Call, *, is_top: bool) -> float:
        cost = VISIT_NS + sum(self.value(each, is_top=is_top) for each in call.arguments)
        if call.name in {"count", "boolean", "not", "local-name", "name", "namespace-uri"}:
            return cost
        if call.name in {"sum", "id", "lang"}:
            # For lang every attribute of the node's ancestors is looked at.
            shares = [self.depth if call.name == "sum" else self.nodes]
            if finds_nodes(call.arguments[0]):
                shares.append(self._texts(self.found(call.arguments[0], is_top=is_top)))
            return cost + TEXT_NS * sum(shares)
        shares = [self._text_share(each, is_top=is_top) for each in call.arguments]
        if not shares and call.name in {"string", "number", "string-length", "normalize-space"}:
            shares = [self._own_text()]
        cost += TEXT_NS * sum(shares)
        if call.name in _SEARCHES:
            sought = call.arguments[1]
            if isinstance(sought, Literal):
                cost += TEXT_NS * shares[0] * (1 + len(sought.text))
            else:
                cost += SEARCH_NS * self.nodes * shares[0]
        return cost

    def _text_share(self, expression: Expression, *, is_top: bool) -> float:
        """How long the text of the value is, in nodes."""
        match expression:
            case Literal(text):
                return len(text) / BYTES_PER_NODE
            case Call(name, arguments) if name in {"concat", "translate", "normalize-space"} or (
                name.startswith("substring") or name == "string"
            ):
                shares = [self._text_share(each, is_top=is_top) for each in arguments]
                return sum(shares) if shares else self._own_text()
        if finds_nodes(expression):  # the first of them alone, but that may be the root
            if is_top:
                return 1.0
            is_below = self.found(expression, is_top=False).is_below
            return self.depth if is_below else self.nodes
        return 1.0

    def _own_text(self) -> float:
        """How long the text of the context node is, in nodes."""
        return self.depth if self.is_below else self.nodes

    def _texts(self, found: _Found) -> float:
        """How long the texts of the nodes are together, in nodes."""
        if found.is_leaf:
            return found.nodes
        if found.is_below:
            return found.nodes * self.depth
        return self.nodes * (self.depth if found.is_many else 1.0)
