import pg from 'pg';
import type { SortKey } from '../domain/sort_key.ts';
import { safeMessage } from './check/report.ts';
import { everyRow, type ModelQuery, statementSettings } from './model_query.ts';
import { unreadableValue } from './replaced_values.ts';
import type { KeyBounds, RowRange } from './source.ts';
import type { ReadTransaction, SourceConnections } from './source_connection.ts';

/**
 * SQLSTATE classes of rows that PostgreSQL cannot read: values that cannot be computed, what functions and domains of a view
 * raise, limits of sizes, damaged pages and rows.
 */
const valueStates: readonly string[] = ['21', '22', '23', '38', '39', '54', 'P0', 'XX'];

/** Whether a row may be why PostgreSQL failed. */
export const isOfValue = (error: unknown): error is pg.DatabaseError =>
  error instanceof pg.DatabaseError && valueStates.includes((error.code ?? '').slice(0, 2));

/** PostgreSQL's reason without values of rows. */
export const valueProblem = (error: pg.DatabaseError): string =>
  `${safeMessage(error)}, SQLSTATE ${error.code ?? 'unknown'}`;

/** A row that PostgreSQL cannot read. Rows with its key share its fate. */
export interface BadRow {
  readonly key: SortKey;
  /** The key before it; null if it is the first of its range. */
  readonly before: SortKey | null;
  readonly error: pg.DatabaseError;
}

/** Finds rows that PostgreSQL cannot read, and what it can read of them. */
export interface BadRowReader {
  /** Whether a row may be why PostgreSQL failed. */
  readonly mayCause: (error: unknown) => boolean;
  /** The settings of statements that read other rows of its range. */
  readonly settings: Readonly<Record<string, string>>;
  /**
   * Finds the first one of a key range. It reads the keys of the range page by page, computes the values of each page, and halves
   * the page that fails.
   * @returns null if all rows can be read, or if the statement fails without any
   * @throws PostgreSQL's error, also if it cannot read the keys or conditions of the rows
   */
  find(keys: KeyBounds): Promise<BadRow | null>;
  /** Its columns that cannot be read by themselves: the index of each, and why. */
  columnsOf(row: BadRow): Promise<ReadonlyMap<number, pg.DatabaseError>>;
  /**
   * The statement that reads it, with marks in place of these columns (`unreadableValue`).
   * @throws PostgreSQL's error, if they include the key, or if no column fails by itself
   */
  statementOf(
    row: BadRow,
  ): Promise<{ readonly select: string; readonly settings: Readonly<Record<string, string>> }>;
}

/** Rows that are computed at once: few at first, because many bad rows are often one behind the other. */
const [firstRows, maxRows] = [100, 10_000];

/** How many other persons are tried before one is blamed. */
const otherKeys = 10;

/**
 * The settings of statements around bad rows. A join by hash or of sorted rows computes values of rows that its conditions leave
 * out, so that it fails for a person of another row.
 */
export const rowByRow = { enable_hashjoin: 'off', enable_mergejoin: 'off', enable_seqscan: 'off' };

/** SQL: all bytes of a value as a client gets them, so that damaged and wrongly encoded ones fail. */
const wholeText = (expression: string): string => `convert_to((${expression})::text, 'UTF8')`;

/** @param signal aborts the statements */
export function badRowReader(
  connections: Pick<SourceConnections, 'read'>,
  query: ModelQuery,
  range: RowRange,
  signal: AbortSignal | undefined,
): BadRowReader {
  const names = query.columns.map((_, index) => `value_${index}`);
  const rowsOf = ({ after, until }: KeyBounds): string =>
    `(${query.page(everyRow, { after: after !== null, until: until !== null })}) as source_row (${names.join(', ')})`;
  const within = <Result>(
    keys: KeyBounds,
    work: (connection: ReadTransaction['connection']) => Promise<Result>,
  ): Promise<Result> =>
    connections.read({ ...statementSettings(query, range, keys), ...rowByRow }, signal, ({ connection }) =>
      work(connection),
    );
  /** The error of computing an expression of each row; null if there is none. @throws errors that no row causes */
  const errorOf = async (
    keys: KeyBounds,
    expression: string,
    explain = '',
  ): Promise<pg.DatabaseError | null> => {
    try {
      const statement = `${explain}select count(${wholeText(expression)}) from ${rowsOf(keys)}`;
      await within(keys, (connection) => connection.query(statement));
      return null;
    } catch (error) {
      if (isOfValue(error)) return error;
      throw error;
    }
  };
  const keysOf = ({ after, until }: KeyBounds, wanted: number): Promise<readonly SortKey[]> => {
    const text = query.keys(wanted, { after: after !== null, until: until !== null });
    return within({ after, until }, async (connection) => {
      const { rows } = await connection.query<SortKey>(text);
      return rows.map(({ inserted_at, id }) => ({ inserted_at, id }));
    });
  };
  /** Whether a row of these keys but the first can be read, or there is none. Otherwise the first may not be the one to blame. */
  const readsAny = async (keys: readonly SortKey[]): Promise<boolean> => {
    for (const [index, until] of keys.entries())
      if (index > 0 && !(await errorOf({ after: keys[index - 1] ?? null, until }, 'source_row'))) return true;
    return keys.length <= 1;
  };
  /** The first of these keys up to which the rows cannot be read. */
  const firstBad = async (
    after: SortKey | null,
    keys: readonly SortKey[],
    error: pg.DatabaseError,
  ): Promise<BadRow | null> => {
    let [first, last, found] = [0, keys.length - 1, error];
    while (first < last) {
      const middle = Math.floor((first + last) / 2);
      const failure = await errorOf({ after, until: keys[middle] ?? null }, 'source_row');
      if (failure) [last, found] = [middle, failure];
      else first = middle + 1;
    }
    const key = keys[first];
    if (range.model === 'persons' && first === 0 && !(await readsAny(keys.slice(0, otherKeys)))) return null;
    return key ? { key, before: keys[first - 1] ?? after, error: found } : null;
  };
  const columnsOf: BadRowReader['columnsOf'] = async ({ before, key }) => {
    const found = new Map<number, pg.DatabaseError>();
    for (const [index, name] of names.entries()) {
      const error = await errorOf({ after: before, until: key }, `source_row.${name}`);
      if (error) found.set(index, error);
    }
    return found;
  };
  return {
    mayCause: isOfValue,
    settings: rowByRow,
    columnsOf,
    async find({ after, until }) {
      // A statement that cannot be planned fails for every row.
      if (await errorOf({ after, until }, 'source_row', 'explain ')) return null;
      let wanted = firstRows;
      for (let from = after; ; wanted = Math.min(maxRows, wanted * 4)) {
        const keys = await keysOf({ after: from, until }, wanted);
        const last = keys.at(-1);
        if (!last) return null;
        const error = await errorOf({ after: from, until: last }, 'source_row');
        if (error) return firstBad(from, keys, error);
        from = last;
      }
    },
    statementOf: async (row) => {
      const columns = await columnsOf(row);
      const { inserted_at, id } = query.key;
      if (columns.size === 0 || columns.has(inserted_at) || columns.has(id)) throw row.error;
      const selected = names.map((name, index) => {
        const error = columns.get(index);
        return error ? `decode('${unreadableValue(valueProblem(error)).toString('hex')}', 'hex')` : name;
      });
      const keys = { after: row.before, until: row.key };
      return {
        select: `select ${selected.join(', ')} from ${rowsOf(keys)}`,
        settings: { ...statementSettings(query, range, keys), ...rowByRow },
      };
    },
  };
}
