/**
 * The known name most similar to `name`, or null if none is close. At most one letter in three may differ, be
 * missing, be extra or be swapped with its neighbor. Case is ignored.
 */
export function nearestName(name: string, known: Iterable<string>): string | null {
  const lowerCaseName = name.toLowerCase();
  // Bounds the work: very long names are never typos of known ones.
  if (lowerCaseName.length > 64) return null;
  let best: string | null = null;
  const maxDistance = Math.floor(lowerCaseName.length / 3);
  let bestDistance = maxDistance + 1;
  for (const candidate of known) {
    const isLonger = candidate.toLowerCase().startsWith(lowerCaseName);
    // Among equally close names, prefer one that starts with the given text.
    const limit = isLonger ? bestDistance + 1 : bestDistance;
    const distance = editDistance(lowerCaseName, candidate.toLowerCase(), limit);
    if (distance >= limit || distance > maxDistance) continue;
    best = candidate;
    bestDistance = distance;
  }
  return best;
}

/**
 * Edit distance between two strings, where a swap of neighbors is one edit. `limit` stands for any larger distance.
 */
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
