import {
  intervalContaining,
  intervalFrom,
  nominalLengthMs,
  type DataInterval,
  type SchedulePiece,
} from './intervals.ts';

/**
 * Whether two exports may have an interval in common, now or in the past that a backfill may reach: definitions of one
 * length that are, or were, in force at the same time, or a bridging interval that happens to be one of the other's.
 */
export const mayShareIntervals = (
  pieces: readonly SchedulePiece[],
  others: readonly SchedulePiece[],
): boolean =>
  pieces.some((_, index) => others.some((_other, at) => alike(pieces, index, others, at))) ||
  meets(bridgesOf(pieces), others) ||
  meets(bridgesOf(others), pieces);

function alike(
  pieces: readonly SchedulePiece[],
  index: number,
  others: readonly SchedulePiece[],
  at: number,
): boolean {
  const [one, other] = [pieces[index], others[at]];
  if (!one || !other || nominalLengthMs(one.interval) !== nominalLengthMs(other.interval)) return false;
  const from = Math.max(startOf(one), startOf(other));
  const until = Math.min(startOf(pieces[index + 1]), startOf(others[at + 1]));
  return from < until;
}

/** When a definition takes over; never, where there is none. */
const startOf = (piece: SchedulePiece | undefined): number => {
  if (!piece) return Number.POSITIVE_INFINITY;
  return piece.effective_from === null ? Number.NEGATIVE_INFINITY : Date.parse(piece.effective_from);
};

/** The intervals on both sides of each change of definition. */
const bridgesOf = (pieces: readonly SchedulePiece[]): DataInterval[] =>
  pieces.flatMap(({ effective_from }) => {
    if (effective_from === null) return [];
    const takeover = new Date(effective_from);
    return [intervalContaining(pieces, new Date(takeover.getTime() - 1)), intervalFrom(pieces, takeover)];
  });

const meets = (intervals: readonly DataInterval[], pieces: readonly SchedulePiece[]): boolean =>
  intervals.some(({ start, end }) => {
    const other = intervalContaining(pieces, new Date(start));
    return other.start === start && other.end === end;
  });
