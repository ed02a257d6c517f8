import { compileQuery, type CompiledStatement } from '../../compile/compile_query.ts';
import type { Query } from '../../ast.ts';
import { parseQuery } from '../../parser/queries.ts';
import type { Project } from '../../resolve/statement.ts';
import type { Pool } from 'pg';
import { inReadOnlyTransaction } from '../read_only.ts';
import { differenceOf, type TextRows } from './compare.ts';
import { type ReferenceResult, rowsOfQuery } from './reference/queries.ts';
import { AmbiguousResultError, RangeError, UnsupportedQueryError } from './reference/values.ts';
import { type Data, projectOf, tablesOf } from './tables.ts';

/** A query and the rows it reads. */
export interface Trial {
  readonly text: string;
  readonly data: Data;
  /** Where the rows are stored. */
  readonly dataSet: number;
  readonly timezone: string;
}

/** `skipped` means that the result is open or that the interpreter does not know the query. */
export type Outcome =
  | { readonly kind: 'same'; readonly rows: number }
  | { readonly kind: 'skipped'; readonly reason: string }
  | { readonly kind: 'different'; readonly difference: string };

/** Compiles queries; tests replace it to plant faults. */
export type CompileForTrial = (text: string, project: Project) => CompiledStatement;

export const compileAsProduct: CompileForTrial = (text, project) =>
  compileQuery(text, project, { rows: null });

const maxRows = 2_000;
const rawText = { getTypeParser: () => (text: string) => text };

/** Runs a query by PostgreSQL and by the reference interpreter. */
export async function outcomeOf(
  pool: Pool,
  { text, data, dataSet, timezone }: Trial,
  compile: CompileForTrial = compileAsProduct,
): Promise<Outcome> {
  let expected: ReferenceResult;
  const project = projectOf(dataSet, timezone);
  try {
    const world = { timezone, weekStartDay: project.weekStartDay, tables: tablesOf(data) };
    expected = rowsOfQuery(parsed(text), world);
  } catch (error) {
    if (
      error instanceof AmbiguousResultError ||
      error instanceof RangeError ||
      error instanceof UnsupportedQueryError
    )
      return { kind: 'skipped', reason: `${error.name}: ${error.message}` };
    throw error;
  }
  if (expected.rows.length > maxRows) return { kind: 'skipped', reason: 'Too many rows.' };
  try {
    const statement = compile(text, project);
    const found = await textRowsOf(pool, statement);
    const difference = differenceOf(statement, found, expected);
    return difference === undefined
      ? { kind: 'same', rows: expected.rows.length }
      : { kind: 'different', difference };
  } catch (error) {
    return { kind: 'different', difference: `failed: ${String(error)}` };
  }
}

const parsed = (text: string): Query => parseQuery(text);

const textSettings = `set local statement_timeout = '3min'; set local timezone = 'UTC'`;

const textRowsOf = (pool: Pool, { sql, parameters }: CompiledStatement): Promise<TextRows> =>
  inReadOnlyTransaction(pool, textSettings, async (connection) => {
    const result = await connection.query<(string | null)[]>({
      text: sql,
      values: [...parameters],
      rowMode: 'array',
      types: rawText,
    });
    return result.rows;
  });
