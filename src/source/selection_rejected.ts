import pg from 'pg';
import { isOfValue } from './bad_row.ts';
import { safeMessage } from './check/report.ts';
import type { RowSelection } from './row_selection.ts';
import type { RowRange } from './source.ts';

/** PostgreSQL rejects a statement because of the query or the filters of one export. Permanent. */
export class SelectionRejected extends Error {
  override readonly name = 'SelectionRejected';
}

/** PostgreSQL cannot compute a value of a row of the operator's relations, whichever export reads it. */
class InvalidSourceValue extends Error {
  override readonly name = 'InvalidSourceValue';
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

/** How a range is tried without the query and the filters of its export. */
interface WithoutSelection {
  /** Whether PostgreSQL accepts the statement that selects all rows. */
  readonly acceptsAllRows: () => Promise<boolean>;
  /** Computes all values of all rows. @throws as PostgreSQL does */
  readonly computeAllRows: () => Promise<void>;
  /** Names the row that PostgreSQL cannot read, and its column, in a sentence; null if it is not found. */
  readonly describeBadRow: () => Promise<string | null>;
  /** The relations that are read, for messages. */
  readonly relations: string;
}

/**
 * Finds out whose fault a rejected statement is: it is the export's own if PostgreSQL accepts the statement without the
 * export's query and filters.
 * @returns SelectionRejected, InvalidSourceValue, or else the error itself; if it could not be found out, why not
 */
export async function attributeRejection(
  error: unknown,
  { selection }: Pick<RowRange, 'selection'>,
  { acceptsAllRows, computeAllRows, describeBadRow, relations }: WithoutSelection,
): Promise<unknown> {
  if (!(error instanceof pg.DatabaseError)) return error;
  if (isOfValue(error)) {
    const cause = selectsAllRows(selection) ? error : await errorOf(computeAllRows());
    if (cause === undefined) return error;
    if (!(cause instanceof pg.DatabaseError) || !isOfValue(cause)) return cause;
    // Without the row, the error still says what PostgreSQL rejects.
    const row = await describeBadRow().catch(() => null);
    return new InvalidSourceValue(
      `PostgreSQL cannot compute a value of a row of ${relations}, without any query or filter of an export (SQLSTATE ${cause.code}): ${safeMessage(cause)}.${row === null ? '' : ` ${row}`} Correct the row, or the view.`,
    );
  }
  if (!isOfStatement(error)) return error;
  if (operatorStates.has(error.code) || selectsAllRows(selection)) return error;
  const accepted = await acceptsAllRows().catch(() => false);
  if (!accepted) return error;
  return new SelectionRejected(
    `PostgreSQL rejects the query or the filters of the batch export (SQLSTATE ${error.code}: ${error.message}). Correct its dialect_query, or the filters of its destination.`,
  );
}

const errorOf = (work: Promise<void>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );
