import { QueryError } from '../query_errors.ts';

/**
 * The maximum number of values in a result, over all lines. More would take the memory and the time of other queries: each
 * value comes with two labels.
 */
export const maxPoints = 200_000;

/** @throws QueryError if a result has too many values */
export function checkPoints(points: number, intervals: number): void {
  if (points <= maxPoints) return;
  throw new QueryError(
    'invalid_input',
    `The result would have more than ${maxPoints} values, ${intervals} for each line. Choose a longer interval, a shorter date range or a smaller breakdown_limit.`,
    { attr: 'query__interval' },
  );
}
