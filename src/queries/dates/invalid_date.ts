import { QueryError } from '../query_errors.ts';

/** The refusal of a text where a date is expected, by the path of its member. */
export const invalidDate = (attr: string): QueryError =>
  new QueryError(
    'invalid_input',
    'This is not a date: write one of ISO 8601, such as 2026-11-21, or a relative one, such as -7d or mStart.',
    { attr },
  );
