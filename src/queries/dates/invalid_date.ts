import { invalidDateMessage } from '../../filters/dates.ts';
import { QueryError } from '../query_errors.ts';

/** The error for a field that must be a date. */
export const invalidDate = (attr: string): QueryError =>
  new QueryError('invalid_input', invalidDateMessage, { attr });
