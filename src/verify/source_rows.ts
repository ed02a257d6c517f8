import pg from 'pg';
import { eventColumnTypes } from '../source/events_query.ts';
import { columnTypesOf, type Relations } from '../source/relations.ts';
import type { SourceConnections } from '../source/source_connection.ts';
import type { RowRange } from '../source/source.ts';
import type { Fingerprint } from '../domain/fingerprint.ts';
import type { DataInterval } from '../domain/intervals.ts';
import { isOfValue, rowByRow } from '../source/bad_row.ts';
import { addSums, type BucketSums, type HashIds, sumsOfRows } from './row_fingerprint.ts';
import type { ComparedColumn, ComparedRow, RowKey, RowShape } from '../readers/row.ts';
import type { ValueDigest } from '../readers/value_digest.ts';
import { CannotVerify } from './report.ts';
import {
  hashesOf,
  newestStates,
  type RangeStatements,
  type SourceColumnTypes,
  type Statement,
  statementsFor,
} from './source_statements.ts';
import { readDivided } from '../source/read_fingerprints.ts';

/** Rows per page with all values, and with keys only. Long values are digests, so a page has a few MB at most. */
const defaultPageRows = { deep: 10_000, shallow: 50_000 };

/** The newest state of a distinct id. */
export interface PersonState {
  readonly inserted_at: string;
  /** False when the person no longer exists. */
  readonly hasPerson: boolean;
}

/** The source, read as text, independently of how exports read it. Rejects when the signal is aborted. */
export interface SourceRows {
  /** The comparable columns of a manifest: those that are not joined while reading. */
  comparedColumns(range: RowRange, columns: readonly ComparedColumn[]): Promise<ComparedColumn[]>;
  /** Whether the files of a range contain the keys of the rows. */
  hasKeys(range: RowRange): Promise<boolean>;
  /** The rows of a range sorted by key, read with one short transaction per page. */
  rows(range: RowRange, shape: RowShape): AsyncGenerator<ComparedRow>;
  /** The number of rows of a range of any length. */
  count(range: RowRange): Promise<number>;
  /** The number of rows and the sum of the hashes of their ids, by bucket of insertion time. */
  fingerprint(range: RowRange, fingerprint: Pick<Fingerprint, 'width_ms'>): Promise<BucketSums>;
  readonly hashIds: HashIds;
  /** The newest states of distinct ids of a project; deleted ones are missing. */
  personStates(teamId: number, distinctIds: readonly string[]): Promise<ReadonlyMap<string, PersonState>>;
}

/** Creates a reader of the source that stops when the signal is aborted. */
export function createSourceRows(
  connections: SourceConnections,
  relations: Relations,
  signal: AbortSignal,
  pageRows = defaultPageRows,
): SourceRows {
  const statementsOf = async (range: RowRange) =>
    statementsFor(
      range,
      relations,
      await readTypes(range, connections, relations, signal).catch(throwSourceError),
    );
  const read = ({ text, values, settings }: Statement, timeout = {}): Promise<ValueDigest[][]> =>
    connections.read({ ...settings, ...timeout }, signal, async ({ connection }) => {
      const parameters = { text, values: [...values], rowMode: 'array' } as const;
      return (await connection.query<ValueDigest[]>(parameters)).rows;
    });
  const query = (statement: Statement): Promise<ValueDigest[][]> => read(statement).catch(throwSourceError);

  /** Reads a range with one statement, or with several if it runs for too long. */
  async function* readParts(
    range: RowRange,
    statementOf: (statements: RangeStatements, part: DataInterval) => Statement,
  ): AsyncGenerator<ValueDigest[][]> {
    const statements = await statementsOf(range);
    try {
      yield* readDivided(connections, range.interval, signal, (part, timeout) =>
        read(statementOf(statements, part), timeout),
      );
    } catch (error) {
      throwSourceError(error);
    }
  }

  async function* rows(range: RowRange, shape: RowShape): AsyncGenerator<ComparedRow> {
    const maxRows = shape.columns.length > 0 ? pageRows.deep : pageRows.shallow;
    const statements = await statementsOf(range);
    let limit = maxRows;
    for (let after: RowKey | null = null; ;) {
      let page: ValueDigest[][];
      try {
        page = await read(statements.page(shape.columns, { after }, limit));
      } catch (error) {
        if (shape.columns.length === 0 || !isOfValue(error)) throwSourceError(error);
        if (limit > 1) {
          limit = Math.ceil(limit / 2);
          continue;
        }
        page = await readKey(statements, shape, after);
      }
      for (const [inserted_at, id, ...values] of page)
        yield { inserted_at: inserted_at ?? '', id: id ?? '', values };
      const [inserted_at, id] = page.at(-1) ?? [];
      if (page.length < limit || !inserted_at || typeof id !== 'string') return;
      after = { inserted_at, id };
      limit = Math.min(maxRows, limit * 2);
    }
  }
  /** The rows of the next key. PostgreSQL computes a row more than a page has: without values if it cannot read this one. */
  const readKey = async (
    statements: RangeStatements,
    { columns }: RowShape,
    after: RowKey | null,
  ): Promise<ValueDigest[][]> => {
    const keys = await query(statements.page([], { after }, 1));
    const [inserted_at, id] = keys[0] ?? [];
    if (!inserted_at || typeof id !== 'string') return keys;
    try {
      return await read(statements.page(columns, { after, only: { inserted_at, id } }, 1), rowByRow);
    } catch (error) {
      if (isOfValue(error)) return keys;
      return throwSourceError(error);
    }
  };

  return {
    async comparedColumns(range, columns) {
      const { columns: known } = await statementsOf(range);
      return columns.filter(({ name }) => known.has(name));
    },
    hasKeys: async (range) => (await statementsOf(range)).hasKeys,
    rows,
    async count(range) {
      let total = 0;
      for await (const [row] of readParts(range, (statements, part) => statements.count(part)))
        total += Number(row?.[0]);
      return total;
    },
    async fingerprint(range, { width_ms }) {
      let sums = addSums();
      for await (const rows of readParts(range, (statements, part) => statements.fingerprint(width_ms, part)))
        sums = addSums(sums, sumsOfRows(rows));
      return sums;
    },
    hashIds: async (hash, ids) => sumsOfRows(await query(hashesOf(hash, ids))),
    async personStates(teamId, distinctIds) {
      const found = await query(newestStates(relations, teamId, distinctIds));
      return new Map(
        found.map(([id, inserted_at, person]) => [
          id ?? '',
          { inserted_at: inserted_at ?? '', hasPerson: person === 'true' },
        ]),
      );
    },
  };
}

/** Reads the columns of the relations of a model. */
const readTypes = (
  { model }: Pick<RowRange, 'model'>,
  connections: SourceConnections,
  relations: Relations,
  signal: AbortSignal,
): Promise<SourceColumnTypes> =>
  connections.read({}, signal, async ({ connection }) =>
    model === 'persons'
      ? { persons: await columnTypesOf(connection, relations.persons) }
      : eventColumnTypes(connection, relations),
  );

/**
 * Converts errors of the source's database and connection, which have codes.
 * @throws CannotVerify, or the given error
 */
function throwSourceError(error: unknown): never {
  if (error instanceof pg.DatabaseError) throw new CannotVerify(`The source failed: ${error.message}.`);
  if (error instanceof Error && 'code' in error && error.name === 'Error')
    throw new CannotVerify(`The source does not respond (${String(error.code)}).`);
  throw error;
}
