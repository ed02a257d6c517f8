import pg from 'pg';
import type { RowSelection } from './row_selection.ts';
import type { RowRange } from './source.ts';

/** PostgreSQL rejects a statement because of the query or the filters of one export. Permanent. */
export class SelectionRejected extends Error {
  override readonly name = 'SelectionRejected';
}

/** Missing relations, columns and permissions. A selection names only what the operator's relations have. */
const operatorStates: ReadonlySet<string | undefined> = new Set(['42P01', '42703', '42501']);

/** Limits of PostgreSQL, such as the number of arguments, of columns and the size of a row. */
const limitStates = '54';
/** A value of 1 GB or more, for which PostgreSQL has no SQLSTATE of its own. */
const valueTooLarge = 'invalid memory alloc request size';

/** Whether what a statement says may be why it fails. */
const isOfStatement = ({ code = '', message }: pg.DatabaseError): boolean =>
  code.startsWith('42') || code.startsWith(limitStates) || message.startsWith(valueTooLarge);

const selectsAllRows = ({ include_events, exclude_events, filters, query }: RowSelection): boolean =>
  include_events.length === 0 && exclude_events.length === 0 && filters.length === 0 && !query;

/**
 * Finds out whose fault a rejected statement is: it is the export's own if PostgreSQL accepts the statement without the
 * export's query and filters.
 * @param acceptsAllRows whether PostgreSQL accepts the statement that selects all rows
 * @returns SelectionRejected, or else the error itself
 */
export async function attributeRejection(
  error: unknown,
  { selection }: Pick<RowRange, 'selection'>,
  acceptsAllRows: () => Promise<boolean>,
): Promise<unknown> {
  if (!(error instanceof pg.DatabaseError) || !isOfStatement(error)) return error;
  if (operatorStates.has(error.code) || selectsAllRows(selection)) return error;
  const accepted = await acceptsAllRows().catch(() => false);
  if (!accepted) return error;
  return new SelectionRejected(
    `PostgreSQL rejects the query or the filters of the batch export (SQLSTATE ${error.code}: ${error.message}). Correct its dialect_query, or the filters of its destination.`,
  );
}
