import pg from 'pg';
import { type BadRow, isOfValue, valueProblem } from './bad_row.ts';
import { selectsAllRows } from './row_selection.ts';
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

/** How a range is tried without the query and the filters of its export. */
interface WithoutSelection {
  /** Whether PostgreSQL accepts the statement that selects all rows. */
  readonly acceptsAllRows: () => Promise<boolean>;
  /** Finds the first row that PostgreSQL cannot read, among all rows. @throws as PostgreSQL does */
  readonly findBadRow: () => Promise<BadRow | null>;
  /** Names it and its columns, in a sentence. */
  readonly describeBadRow: (row: BadRow) => Promise<string>;
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
  { acceptsAllRows, findBadRow, describeBadRow, relations }: WithoutSelection,
): Promise<unknown> {
  if (!(error instanceof pg.DatabaseError)) return error;
  const isOfExport = !selectsAllRows(selection);
  if (isOfValue(error)) {
    const found = await outcomeOf(findBadRow());
    if (found instanceof Error && !isOfValue(found)) return isOfExport ? found : error;
    const isComputed = error.code?.startsWith('22') === true;
    const cause = found instanceof pg.DatabaseError ? found : (found?.error ?? null);
    if (cause || (isComputed && !isOfExport))
      return new InvalidSourceValue(
        `PostgreSQL cannot read a row of ${relations}, without any query or filter of an export: ${valueProblem(cause ?? error)}.${
          found && !(found instanceof Error) ? ` ${await describeBadRow(found).catch(() => '')}` : ''
        } Correct the row, or the view.`,
      );
  }
  if (!isOfStatement(error)) return error;
  if (operatorStates.has(error.code) || !isOfExport) return error;
  const accepted = await acceptsAllRows().catch(() => false);
  if (!accepted) return error;
  return new SelectionRejected(
    `PostgreSQL rejects the query or the filters of the batch export (SQLSTATE ${error.code}: ${error.message}). Correct its dialect_query, or the filters of its destination.`,
  );
}

const outcomeOf = <Result>(work: Promise<Result>): Promise<Result | Error> =>
  work.catch((error: unknown) => (error instanceof Error ? error : new Error(String(error))));
