import { QueryError } from './query_errors.ts';

/** The output exceeds the size limit. */
export const resultTooLarge = (bytes: number): QueryError =>
  new QueryError(
    'result_too_large',
    `The result is larger than ${bytes} bytes (EXPORTD_QUERY_MAX_RESULT_SIZE). Select fewer columns or rows, or use a batch export for large amounts of data.`,
  );
