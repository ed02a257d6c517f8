import pg from 'pg';
import { isDatabaseUnavailable } from '../journal/database.ts';
import { InvalidRelation } from '../source/postgres_source.ts';
import { safeMessage } from '../source/check/report.ts';
import { RelationNotFound } from '../source/relations.ts';
import { UnsupportedSelection } from '../source/selection_conditions.ts';
import { SelectionRejected } from '../source/selection_rejected.ts';
import { SourceBusy, SourceIsStandby } from '../source/source_connection.ts';
import { ApiError, invalid } from './api_error.ts';

const lockNotAvailable = '55P03';
/** Names, types and rights that do not fit, and values of another type. */
const refusedStatement = /^(42|22)/;

/** The error response for an error of reading the source; undefined when the source is not at fault. */
export function sourceError(error: unknown): ApiError | undefined {
  if (error instanceof RelationNotFound || error instanceof SourceBusy || error instanceof SourceIsStandby)
    return unreachable(error.message);
  if (error instanceof pg.DatabaseError && error.code === lockNotAvailable)
    return unreachable('A relation of the source is locked by another session. Retry later.');
  if (isDatabaseUnavailable(error)) return unreachable('The source database cannot be reached. Retry later.');
  if (error instanceof InvalidRelation) return new ApiError(503, 'source_rejected', error.message);
  if (error instanceof SelectionRejected || error instanceof UnsupportedSelection)
    return invalid(error.message, null);
  return error instanceof pg.DatabaseError ? rejected(error) : undefined;
}

/** PostgreSQL refused the statement: the relations are not as exportd needs them. */
function rejected(error: pg.DatabaseError): ApiError | undefined {
  const { code = '' } = error;
  if (!refusedStatement.test(code)) return undefined;
  return new ApiError(
    503,
    'source_rejected',
    `PostgreSQL refused to read the source: ${safeMessage(error)} (SQLSTATE ${code}). "exportd source check" prints how to fix the relation.`,
  );
}

const unreachable = (detail: string): ApiError =>
  new ApiError(503, 'source_unreachable', detail, { headers: { 'retry-after': '5' } });
