"""What peers do wrong is told, but a flood of it does not fill the disk with lines."""

from __future__ import annotations

from tocsin.drivers.frames.sparing import LINE_S, LINES_MAX, Sparing


def test_a_flood_is_cut_and_how_much_was_left_unsaid_is_told() -> None:
    lines: list[tuple[str, dict[str, object]]] = []
    sparing = Sparing(lambda level, message, **fields: lines.append((message, fields)))

    for number in range(LINES_MAX + 500):
        sparing.warn(100.0, f"bad {number}", peer="p")
    assert len(lines) == LINES_MAX

    sparing.warn(100.0 + LINE_S * 1.5, "one more", peer="p")
    assert lines[-1] == ("one more", {"peer": "p", "unsaid": 500})


def test_who_does_little_wrong_is_always_told() -> None:
    lines: list[str] = []
    sparing = Sparing(lambda level, message, **fields: lines.append(message))

    for number in range(5 * LINES_MAX):
        sparing.warn(number * LINE_S, f"bad {number}")

    assert len(lines) == 5 * LINES_MAX
