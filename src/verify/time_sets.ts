import type { DataInterval } from '../domain/intervals.ts';

// Sets of time: half-open ranges that are sorted, disjoint and not adjacent.

const at = (time: string): number => Date.parse(time);

/** The time that is in any of the ranges. */
export function union(ranges: readonly DataInterval[]): DataInterval[] {
  const joined: DataInterval[] = [];
  const sorted = ranges
    .filter(({ start, end }) => at(start) < at(end))
    .toSorted((one, other) => at(one.start) - at(other.start));
  for (const range of sorted) {
    const last = joined.at(-1);
    if (!last || at(range.start) > at(last.end)) joined.push(range);
    else if (at(range.end) > at(last.end)) joined[joined.length - 1] = { start: last.start, end: range.end };
  }
  return joined;
}

/** The time that is in any of the ranges and in none of the others. */
export function subtract(
  ranges: readonly DataInterval[],
  ...others: readonly (readonly DataInterval[])[]
): DataInterval[] {
  const removed = union(others.flat());
  const left: DataInterval[] = [];
  let next = 0;
  for (const range of union(ranges)) {
    let { start } = range;
    // A removed range may reach into the following ranges, so it is passed only when it has ended.
    for (; next < removed.length; next += 1) {
      const gap = removed[next];
      if (!gap || at(gap.start) >= at(range.end)) break;
      if (at(gap.start) > at(start)) left.push({ start, end: gap.start });
      if (at(gap.end) > at(start)) start = gap.end;
      if (at(gap.end) >= at(range.end)) break;
    }
    if (at(start) < at(range.end)) left.push({ start, end: range.end });
  }
  return left;
}

/** The time that is in both. */
export const intersect = (ranges: readonly DataInterval[], others: readonly DataInterval[]): DataInterval[] =>
  subtract(ranges, subtract(ranges, others));
