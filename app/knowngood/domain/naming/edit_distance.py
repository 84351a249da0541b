"""How many letters two words differ by."""


def edits(text: str, other: str, most: int) -> int:
    """Count letters to add, drop, change, or swap with their neighbour (optimal string alignment); more than `most`
    counts as `most + 1`.
    """
    before: list[int] = []
    above = list(range(len(other) + 1))
    for i, letter in enumerate(text, 1):
        row = [i]
        for j, wanted in enumerate(other, 1):
            cost = min(above[j] + 1, row[-1] + 1, above[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and text[i - 2] == wanted:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
        before, above = above, row
    return min(above[-1], most + 1)
