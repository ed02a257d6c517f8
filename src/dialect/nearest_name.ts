/**
 * The name most like `name`, or null when none is near: at most one letter in three may differ, be missing, be too
 * many or be swapped with its neighbour. Upper and lower case are the same.
 */
export function nearestName(name: string, known: Iterable<string>): string | null {
  const lowerCaseName = name.toLowerCase();
  // One name for a misspelt one is worth the work, but not for a text as long as a query.
  if (lowerCaseName.length > 64) return null;
  let best: string | null = null;
  const maxDistance = Math.floor(lowerCaseName.length / 3);
  let bestDistance = maxDistance + 1;
  for (const candidate of known) {
    const isLonger = candidate.toLowerCase().startsWith(lowerCaseName);
    // Of names equally near, one that goes on where the text stops was more likely being written.
    const limit = isLonger ? bestDistance + 1 : bestDistance;
    const distance = editDistance(lowerCaseName, candidate.toLowerCase(), limit);
    if (distance >= limit || distance > maxDistance) continue;
    best = candidate;
    bestDistance = distance;
  }
  return best;
}

/** Edits between two texts, a swap of neighbours counted as one; at least `limit` stands for any that many. */
function editDistance(first: string, second: string, limit: number): number {
  if (Math.abs(first.length - second.length) >= limit) return limit;
  let beforeLast: number[] = [];
  let last = Array.from({ length: second.length + 1 }, (_, index) => index);
  for (let row = 1; row <= first.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= second.length; column += 1) {
      const same = first[row - 1] === second[column - 1];
      const edits = [
        (last[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (same ? 0 : 1),
      ];
      if (first[row - 1] === second[column - 2] && first[row - 2] === second[column - 1])
        edits.push((beforeLast[column - 2] ?? Infinity) + 1);
      current.push(Math.min(...edits));
    }
    beforeLast = last;
    last = current;
  }
  return last[second.length] ?? limit;
}
