import pg from 'pg';
import type { Model } from '../domain/batch_export.ts';
import type { DataInterval } from '../domain/intervals.ts';
import { columnTypesOf, type ColumnTypes, type Relations } from '../source/relations.ts';
import type { SourceConnections } from '../source/source_connection.ts';
import type { CompactValue } from './compact_value.ts';
import { CannotVerify } from './report.ts';
import { newestStates, statementsFor, type Statement } from './source_statements.ts';
import type { ComparedColumn, RowKey, RowShape, VerifiedRow } from './row.ts';

/** Rows of a page with all values, and with keys alone. Long values are digests, so a page is some MB at most. */
const defaultPageRows = { deep: 10_000, shallow: 50_000 };

/** The newest state of a distinct id. */
export interface PersonState {
  readonly inserted_at: string;
  /** False when the person itself is no longer there. */
  readonly hasPerson: boolean;
}

/** One export's rows in the source, read as text and not as an export reads them. Rejects when the signal is aborted. */
export interface SourceRows {
  /** The columns of a model that can be compared: not those that are joined as of reading. */
  comparedColumns(model: Model, columns: readonly ComparedColumn[]): Promise<ComparedColumn[]>;
  /** The rows of an interval in the order of their keys; one short transaction per page. */
  rows(model: Model, interval: DataInterval, shape: RowShape): AsyncGenerator<VerifiedRow>;
  count(model: Model, interval: DataInterval): Promise<number>;
  /** The newest states of these distinct ids; those that are gone are missing. */
  personStates(distinctIds: readonly string[]): Promise<ReadonlyMap<string, PersonState>>;
}

/** @param teamId whose rows */
export function createSourceRows(
  connections: SourceConnections,
  relations: Relations,
  teamId: number,
  signal: AbortSignal,
  pageRows = defaultPageRows,
): SourceRows {
  const read = <Result>(
    model: Model,
    work: (connection: pg.PoolClient, types: ColumnTypes) => Promise<Result>,
  ) =>
    connections
      .read({}, signal, async ({ connection }) =>
        work(connection, await columnTypesOf(connection, relations[model])),
      )
      .catch(refuse);
  const query = (make: (types: ColumnTypes) => Statement, model: Model) =>
    read(model, async (connection, types) => {
      const { text, values } = make(types);
      const { rows } = await connection.query<CompactValue[]>({
        text,
        values: [...values],
        rowMode: 'array',
      });
      return rows;
    });

  async function* rows(model: Model, interval: DataInterval, shape: RowShape): AsyncGenerator<VerifiedRow> {
    const limit = shape.columns.length > 0 ? pageRows.deep : pageRows.shallow;
    for (let after: RowKey | null = null; ;) {
      const from: RowKey | null = after;
      const page = await query(
        (types) => statementsFor(model, relations, types, teamId).page(interval, shape.columns, from, limit),
        model,
      );
      for (const [inserted_at, id, ...values] of page)
        yield { inserted_at: inserted_at ?? '', id: id ?? '', values };
      const [inserted_at, id] = page.at(-1) ?? [];
      if (page.length < limit || !inserted_at || typeof id !== 'string') return;
      after = { inserted_at, id };
    }
  }

  return {
    comparedColumns: (model, columns) =>
      read(model, (_, types) => {
        const { columns: known } = statementsFor(model, relations, types, teamId);
        return Promise.resolve(columns.filter(({ name }) => known.has(name)));
      }),
    rows,
    async count(model, interval) {
      const [row] = await query(
        (types) => statementsFor(model, relations, types, teamId).count(interval),
        model,
      );
      return Number(row?.[0]);
    },
    async personStates(distinctIds) {
      const found = await query(() => newestStates(relations, teamId, distinctIds), 'persons');
      return new Map(
        found.map(([id, inserted_at, person]) => [
          id ?? '',
          { inserted_at: inserted_at ?? '', hasPerson: person === 'true' },
        ]),
      );
    },
  };
}

/** Errors of a database and of the way to it carry a code; the control database has other words for them. */
function refuse(error: unknown): never {
  if (error instanceof pg.DatabaseError) throw new CannotVerify(`The source refuses: ${error.message}.`);
  if (Error.isError(error) && 'code' in error && error.name === 'Error')
    throw new CannotVerify(`The source does not answer (${String(error.code)}).`);
  throw error;
}
