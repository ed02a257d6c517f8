import { QueryError } from '../query_errors.ts';

/** The error for a field that must be a date. */
export const invalidDate = (attr: string): QueryError =>
  new QueryError(
    'invalid_input',
    'This is not a valid date. Use ISO 8601, such as 2026-11-21, or a relative date, such as -7d or mStart.',
    { attr },
  );
