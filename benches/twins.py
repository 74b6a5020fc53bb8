#!/usr/bin/env python3
"""A trial: bundles of a generated module with like operations in pairs.

    twins.py [--intrinsics] MODULE.rs TO.rs BUNDLE…

Writes the module once more, with other functions for the named bundles: two operations of the same kind that do not depend on each other become one
on a vector of two numbers. Every result has the same bits. `benches/README.md` says what that gains. With `--intrinsics` vectors are those of
the processor (x86-64, `unsafe` calls), otherwise arrays that the compiler makes vectors of.

Which two: nodes of the same depth (the longest way from an argument), so that neither depends on the other, and pairs have no cycle; of the same
operation. From the results on, those whose whole expressions have the same shape, then those of the same shape three levels down; then the
operands of what is paired, in the order that fits better. Within a group of n, node i goes with node i + n/2: corners of a car are written one after the other.
"""

import heapq
import re
import sys
from collections import Counter, OrderedDict

LEVELS = 3
STATEMENTS = 200
# Operations with a vector form, and those whose first two operands may be exchanged.
VECTOR = {"+": "p_add", "-": "p_sub", "*": "p_mul", "/": "p_div", "neg": "p_neg",
          "mul_add": "p_mul_add", "mul_sub": "p_mul_sub", "neg_mul_add": "p_neg_mul_add"}
COMMUTE = {"+", "*", "mul_add", "mul_sub", "neg_mul_add"}

ARRAYS = """
    #[derive(Clone, Copy)]
    #[repr(align(16))]
    struct P([S; 2]);
    #[inline(always)]
    fn p_of(a: S, b: S) -> P { P([a, b]) }
    #[inline(always)]
    fn p_first(a: P) -> S { a.0[0] }
    #[inline(always)]
    fn p_second(a: P) -> S { a.0[1] }
    #[inline(always)]
    fn p_add(a: P, b: P) -> P { P([a.0[0] + b.0[0], a.0[1] + b.0[1]]) }
    #[inline(always)]
    fn p_sub(a: P, b: P) -> P { P([a.0[0] - b.0[0], a.0[1] - b.0[1]]) }
    #[inline(always)]
    fn p_mul(a: P, b: P) -> P { P([a.0[0] * b.0[0], a.0[1] * b.0[1]]) }
    #[inline(always)]
    fn p_div(a: P, b: P) -> P { P([a.0[0] / b.0[0], a.0[1] / b.0[1]]) }
    #[inline(always)]
    fn p_neg(a: P) -> P { P([-a.0[0], -a.0[1]]) }
"""
INTRINSICS = """
    use core::arch::x86_64 as x86;
    type P = x86::__m128d;
    #[inline(always)]
    fn p_of(a: S, b: S) -> P { unsafe { x86::_mm_set_pd(b, a) } }
    #[inline(always)]
    fn p_first(a: P) -> S { unsafe { x86::_mm_cvtsd_f64(a) } }
    #[inline(always)]
    fn p_second(a: P) -> S { unsafe { x86::_mm_cvtsd_f64(x86::_mm_unpackhi_pd(a, a)) } }
    #[inline(always)]
    fn p_add(a: P, b: P) -> P { unsafe { x86::_mm_add_pd(a, b) } }
    #[inline(always)]
    fn p_sub(a: P, b: P) -> P { unsafe { x86::_mm_sub_pd(a, b) } }
    #[inline(always)]
    fn p_mul(a: P, b: P) -> P { unsafe { x86::_mm_mul_pd(a, b) } }
    #[inline(always)]
    fn p_div(a: P, b: P) -> P { unsafe { x86::_mm_div_pd(a, b) } }
    #[inline(always)]
    fn p_neg(a: P) -> P { unsafe { x86::_mm_xor_pd(a, x86::_mm_set1_pd(-0.0)) } }
"""
# Products and sums of what is not built for fused ones.
BOTH = """
    #[inline(always)]
    fn p_mul_add(a: P, b: P, c: P) -> P { p_add(p_mul(a, b), c) }
    #[inline(always)]
    fn p_mul_sub(a: P, b: P, c: P) -> P { p_sub(p_mul(a, b), c) }
    #[inline(always)]
    fn p_neg_mul_add(a: P, b: P, c: P) -> P { p_sub(c, p_mul(a, b)) }
    #[inline(always)]
    fn p_load(w: &[P], i: usize) -> P { w[i] }
    #[inline(always)]
    fn p_store(w: &mut [P], i: usize, x: P) { w[i] = x }
"""


def operand(text):
    """A node's number, or the text of a leaf."""
    text = re.sub(r"^\((.*) as S\)$", r"\1", text.strip())
    value = re.fullmatch(r"v(\d+)", text)
    return int(value[1]) if value else text


def read(text, bundle):
    """Nodes in order, {number: (operation, operands)}, and results [(array, index, operand)]."""
    nodes, results, inside = OrderedDict(), [], False
    for line in text.splitlines():
        if re.match(rf"    fn {bundle}(_\d+)?\(", line):
            inside = True
            continue
        if line.startswith("    }"):
            inside = False
        line = line.strip().rstrip(";")
        workspace = "ld(w, " in line or line.startswith("st(w,") or ": &" in line
        if not inside or workspace or not line.startswith(("let ", "st(")):
            continue
        if result := re.match(r"st\((out_\w+), (\d+), (.*)\)$", line):
            results.append((result[1], int(result[2]), operand(result[3])))
        elif both := re.match(r"let \(v(\d+), v(\d+)\) = m::sin_cos\((.*)\)$", line):
            for number, operation in [(both[1], "sin"), (both[2], "cos")]:
                nodes[int(number)] = (operation, [operand(both[3])])
        else:
            number, value = re.match(r"let v(\d+) = (.*)$", line).groups()
            value = re.sub(r"ld\((\w+), (\d+)\)", r"\1[\2]", value)
            if call := re.match(r"(mul_add|mul_sub|neg_mul_add|m::\w+)\((.*)\)$", value):
                nodes[int(number)] = (call[1], [operand(x) for x in call[2].split(",")])
            elif binary := re.match(r"(\S+) ([-+*/]) (\S+)$", value):
                nodes[int(number)] = (binary[2], [operand(binary[1]), operand(binary[3])])
            elif value.startswith("-"):
                nodes[int(number)] = ("neg", [operand(value[1:])])
            else:
                raise ValueError(line)
    return nodes, results


def kind_of_leaf(leaf):
    array = re.match(r"([a-z_]\w*)\[", leaf)
    return array[1] if array else "number"


def shape(operation, shapes):
    if operation in COMMUTE:
        shapes = sorted(shapes[:2]) + shapes[2:]
    return hash((operation, tuple(shapes)))


def shapes_of(nodes):
    """Of each node: of its whole expression, of so many levels, and its depth."""
    whole, depth = {}, {}
    for i, (operation, operands) in nodes.items():
        below = [x for x in operands if isinstance(x, int)]
        whole[i] = shape(operation, [whole[x] if isinstance(x, int) else hash(kind_of_leaf(x)) for x in operands])
        depth[i] = 1 + max((depth[x] for x in below), default=0)
    near = {i: hash(operation) for i, (operation, _) in nodes.items()}
    for _ in range(LEVELS):
        near = {
            i: shape(operation, [near[x] if isinstance(x, int) else hash(kind_of_leaf(x)) for x in operands])
            for i, (operation, operands) in nodes.items()
        }
    return whole, near, depth


def find_partners(nodes, results):
    whole, near, depth = shapes_of(nodes)
    place = {i: k for k, i in enumerate(nodes)}
    partner = {}

    def alike(a, b):
        if a == b:
            return 2
        if isinstance(a, int) != isinstance(b, int):
            return 0
        if not isinstance(a, int):
            return 1
        if partner.get(a) == b:
            return 5
        if whole[a] == whole[b]:
            return 4
        if near[a] == near[b]:
            return 3
        return 2 * (nodes[a][0] == nodes[b][0] and depth[a] == depth[b])

    def pair(a, b):
        stack = [(a, b)]
        while stack:
            a, b = stack.pop()
            fits = a != b and nodes[a][0] == nodes[b][0] and depth[a] == depth[b]
            if not fits or a in partner or b in partner:
                continue
            partner[a], partner[b] = b, a
            operation, x = nodes[a]
            y = list(nodes[b][1])
            if operation in COMMUTE and alike(x[0], y[1]) + alike(x[1], y[0]) > alike(x[0], y[0]) + alike(x[1], y[1]):
                y[0], y[1] = y[1], y[0]
            stack.extend((p, q) for p, q in zip(x, y) if isinstance(p, int) and isinstance(q, int))

    last = sorted({x for _, _, x in results if isinstance(x, int)}, key=place.get)
    for key in (lambda i: whole[i], lambda i: (near[i], depth[i])):
        for candidates in (last, list(nodes)):
            groups = OrderedDict()
            for i in candidates:
                groups.setdefault(key(i), []).append(i)
            for group in reversed(groups.values()):
                group = [i for i in group if i not in partner]
                half = len(group) // 2
                for a, b in zip(group[:half], group[half:2 * half]):
                    pair(a, b)
    return {a: b for a, b in partner.items() if nodes[a][0] in VECTOR}


def rewrite(text, bundle):
    """The bundle's functions. Units are ("one", i), ("two", i, j), and ("of", x, y): two numbers that are put together."""
    nodes, results = read(text, bundle)
    partner = find_partners(nodes, results)
    place = {i: k for k, i in enumerate(nodes)}
    unit_of = {}
    for i in nodes:
        if i not in unit_of:
            unit = ("two", i, partner[i]) if i in partner else ("one", i)
            unit_of.update((member, unit) for member in unit[1:])

    needs = {}

    def put_together(x, y):
        if isinstance(x, int) and isinstance(y, int) and unit_of[x] == ("two", x, y):
            return unit_of[x]
        needs.setdefault(("of", x, y), [unit_of[z] for z in (x, y) if isinstance(z, int)])
        return ("of", x, y)

    def fits(x, y):
        return sum(a == b or (isinstance(a, int) and partner.get(a) == b) for a, b in zip(x, y))

    operands = {}
    for unit in dict.fromkeys(unit_of.values()):
        if unit[0] == "one":
            needs[unit] = [unit_of[x] for x in nodes[unit[1]][1] if isinstance(x, int)]
            continue
        (operation, x), y = nodes[unit[1]], nodes[unit[2]][1]
        if operation in COMMUTE:
            exchanged = [y[1], y[0]] + y[2:]
            y = exchanged if fits(x, exchanged) > fits(x, y) else y
        needs[unit] = operands[unit] = [put_together(a, b) for a, b in zip(x, y)]
    needs = {unit: list(dict.fromkeys(before)) for unit, before in needs.items()}
    readers = {}
    for unit, before in needs.items():
        for other in before:
            readers.setdefault(other, []).append(unit)

    # As the later of the two was written, or before the first reader.
    key = {unit: max(place[i] for i in unit[1:]) for unit in needs if unit[0] != "of"}
    key.update({unit: min(key[r] for r in readers[unit]) - 0.5 for unit in needs if unit[0] == "of"})
    number = {unit: k for k, unit in enumerate(needs)}
    waiting = {unit: len(before) for unit, before in needs.items()}
    ready = [(key[unit], number[unit], unit) for unit in needs if not waiting[unit]]
    heapq.heapify(ready)
    order = []
    while ready:
        unit = heapq.heappop(ready)[2]
        order.append(unit)
        for reader in readers.get(unit, []):
            waiting[reader] -= 1
            if not waiting[reader]:
                heapq.heappush(ready, (key[reader], number[reader], reader))
    assert len(order) == len(needs)

    segment = {unit: k // STATEMENTS for k, unit in enumerate(order)}
    last = {other: max(segment[r] for r in rs) for other, rs in readers.items()}
    name = {unit: f"x{k}" for k, unit in enumerate(order)}
    written = {}
    for array, index, x in results:
        if isinstance(x, int):
            written.setdefault(unit_of[x], []).append((array, index, x))
    lines = [[] for _ in range(1 + max(segment.values()))]
    slots, free, ends, count, known = {}, {"one": [], "two": []}, {}, Counter(), set()
    of = lambda unit: "one" if unit[0] == "one" else "two"
    now = 0

    def leaf(text):
        array = re.match(r"([a-z_]\w*)\[(\d+)\]$", text)
        return f"ld({array[1]}, {array[2]})" if array else text if text == "t" else f"({text} as S)"

    def get(unit):
        if segment[unit] != now and unit not in known:
            known.add(unit)
            call = "ld(w" if of(unit) == "one" else "p_load(wp"
            lines[now].append(f"let {name[unit]} = {call}, {slots[unit]});")
        return name[unit]

    def half(i):
        unit = unit_of[i]
        text = get(unit)
        return text if unit[0] == "one" else f"p_first({text})" if unit[1] == i else f"p_second({text})"

    def number_of(x):
        return half(x) if isinstance(x, int) else leaf(x)

    for unit in order:
        if segment[unit] != now:
            for done in ends.pop(now, []):
                free[of(done)].append(slots[done])
            now, known = segment[unit], set()
        if unit[0] == "one":
            operation, x = nodes[unit[1]]
            x = [number_of(x) for x in x]
            if operation in "+-*/":
                value = f"{x[0]} {operation} {x[1]}"
            elif operation == "neg":
                value = f"-{x[0]}"
            elif operation in ("sin", "cos"):
                value = f"m::sin_cos({x[0]}).{int(operation == 'cos')}"
            else:
                value = f"{operation}({', '.join(x)})"
        elif unit[0] == "of":
            value = f"p_of({number_of(unit[1])}, {number_of(unit[2])})"
        else:
            value = f"{VECTOR[nodes[unit[1]][0]]}({', '.join(get(x) for x in operands[unit])})"
        count[unit[0]] += 1
        lines[now].append(f"let {name[unit]} = {value};")
        lines[now] += [f"st({array}, {index}, {half(x)});" for array, index, x in written.get(unit, [])]
        if last.get(unit, now) > now:
            if not free[of(unit)]:
                free[of(unit)].append(count["slots of " + of(unit)])
                count["slots of " + of(unit)] += 1
            slots[unit] = free[of(unit)].pop()
            ends.setdefault(last[unit], []).append(unit)
            call = "st(w" if of(unit) == "one" else "p_store(wp"
            lines[now].append(f"{call}, {slots[unit]}, {name[unit]});")
    lines[-1] += [f"st({array}, {index}, {leaf(x)});" for array, index, x in results if not isinstance(x, int)]
    print(f"{bundle}: {len(nodes)} operations; {dict(count)}", file=sys.stderr)

    signature = re.search(rf"\n    fn {bundle}\((.*?)\) \{{\n", text)[1]
    names = [part.split(":")[0] for part in re.split(r", (?=\w+:)", signature)]
    pairs = max(1, count["slots of two"])
    calls = "".join(f"        {bundle}_{k}({', '.join(names)}, wp);\n" for k in range(len(lines)))
    out = f"    fn {bundle}({signature}) {{\n        let wp = &mut [p_of(0.0, 0.0); {pairs}];\n{calls}    }}\n"
    for k, body in enumerate(lines):
        out += f"    #[inline(never)]\n    fn {bundle}_{k}({signature}, wp: &mut [P; {pairs}]) {{\n"
        for argument in names:
            if argument != "t":
                mutable = "mut " if argument == "w" or argument.startswith("out_") else ""
                out += f"        let {argument}: &{mutable}[S] = {argument};\n"
        out += "        let wp: &mut [P] = wp;\n" + "".join(f"        {line}\n" for line in body) + "    }\n"
    return out


def without(text, bundle):
    """The text with a mark in the place of the bundle's functions."""
    kept, inside, mark = [], False, f"    // {bundle}\n"
    for line in text.splitlines(True):
        if re.match(rf"    fn {bundle}(_\d+)?\(", line):
            inside = True
            while kept[-1].strip() == "#[inline(never)]":
                kept.pop()
            if mark not in kept:
                kept.append(mark)
        if not inside:
            kept.append(line)
        inside = inside and not line.startswith("    }")
    return "".join(kept), mark


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--intrinsics"]
    if len(arguments) < 3:
        sys.exit(__doc__)
    text = open(arguments[0]).read()
    functions = (INTRINSICS if "--intrinsics" in sys.argv else ARRAYS) + BOTH
    for bundle in arguments[2:]:
        rest, mark = without(text, bundle)
        text = rest.replace(mark, functions + rewrite(text, bundle), 1)
        functions = ""
    open(arguments[1], "w").write(text)


main()
