import pg from 'pg';
import type { DataInterval } from '../domain/intervals.ts';
import type { SortKey } from '../domain/exported_files.ts';
import { quoteName } from './contract_types.ts';
import { sourceContract } from './contract.ts';
import type { RowKey } from './source.ts';

/** SQLSTATE classes of rows that PostgreSQL cannot read: a value that cannot be computed, damaged pages and rows. */
const valueStates = ['22', 'XX'];

/** Whether PostgreSQL could not read a value of a row. */
export const isOfValue = ({ code = '' }: pg.DatabaseError): boolean => valueStates.includes(code.slice(0, 2));

/** The error of a value that `work` computes; null if there is none. @throws other errors */
export async function valueErrorOf(work: Promise<unknown>): Promise<pg.DatabaseError | null> {
  try {
    await work;
    return null;
  } catch (error) {
    if (error instanceof pg.DatabaseError && isOfValue(error)) return error;
    throw error;
  }
}

/** How the rows of a range are computed while its bad row is looked for. */
export interface RowComputer {
  /** Computes all values of the rows of an interval, up to and including a key. @throws as PostgreSQL does */
  readonly compute: (interval: DataInterval, until: SortKey | null) => Promise<unknown>;
  /** The keys of an interval, in order. */
  readonly keys: (interval: DataInterval) => AsyncIterable<RowKey>;
}

/** More keys of one millisecond are not looked at. */
const maxKeys = 10_000;

/**
 * Finds the first row of an interval, some row of which PostgreSQL cannot read: it halves the interval, then the keys of a
 * millisecond. It reads about as many rows as the interval has.
 * @returns null if the row reads now, or if there are too many keys
 */
export async function findBadRow(
  interval: DataInterval,
  { compute, keys }: RowComputer,
): Promise<SortKey | null> {
  const isBad = async (start: number, end: number): Promise<boolean> =>
    (await valueErrorOf(compute(intervalOf(start, end), null))) !== null;
  let [start, end] = [Date.parse(interval.start), Date.parse(interval.end)];
  while (end - start > 1) {
    const middle = start + Math.floor((end - start) / 2);
    if (await isBad(start, middle)) end = middle;
    else start = middle;
  }
  const inMillisecond: SortKey[] = [];
  for await (const { inserted_at, id } of keys(intervalOf(start, end))) {
    inMillisecond.push({ inserted_at, id });
    if (inMillisecond.length > maxKeys) return null;
  }
  let [first, last] = [0, inMillisecond.length - 1];
  while (first < last) {
    const middle = Math.floor((first + last) / 2);
    const error = await valueErrorOf(compute(intervalOf(start, end), inMillisecond[middle] ?? null));
    if (error) last = middle;
    else first = middle + 1;
  }
  return inMillisecond[first] ?? null;
}

const intervalOf = (start: number, end: number): DataInterval => ({
  start: new Date(start).toISOString(),
  end: new Date(end).toISOString(),
});

/**
 * Finds the column of an event that PostgreSQL cannot read, by computing one after another.
 * @param read runs a statement about the row
 */
export async function findBadColumn(
  relation: string,
  present: ReadonlyMap<string, string>,
  read: (statement: string) => Promise<unknown>,
): Promise<string | null> {
  for (const { name, uses } of sourceContract.events.columns) {
    const [expression] = uses(`r.${quoteName(name)}`);
    if (expression === undefined || !present.has(name)) continue;
    const error = await valueErrorOf(
      read(
        `select count(${wholeText(expression)}) from ${relation} r where r.team_id = $1::int and r.inserted_at = $2::timestamptz and r.uuid = $3::uuid`,
      ),
    );
    if (error) return name;
  }
  return null;
}

/** SQL: all bytes of a value as a client gets them, so that damaged and wrongly encoded ones fail. */
export const wholeText = (expression: string): string => `convert_to((${expression})::text, 'UTF8')`;
