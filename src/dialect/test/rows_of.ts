import type { Pool } from 'pg';
import { type CompileOptions, compileQuery } from '../compile/compile_query.ts';
import type { Project } from '../resolve/statement.ts';
import { inReadOnlyTransaction } from './read_only.ts';

/** Executes a query as production does: READ ONLY and with a timeout. */
export async function rowsOf(
  pool: Pool,
  query: string,
  project: Project,
  options: CompileOptions = {},
): Promise<readonly (readonly unknown[])[]> {
  const { sql, parameters, columns } = compileQuery(query, project, options);
  const rows = await inReadOnlyTransaction(
    pool,
    "set local statement_timeout = '3min'",
    async (connection) => {
      const result = await connection.query<unknown[]>({
        text: sql,
        values: [...parameters],
        rowMode: 'array',
      });
      return result.rows;
    },
  );
  return rows.map((row) =>
    row.map((value, index) => {
      if (value instanceof Date || Object.prototype.toString.call(value) === '[object Date]')
        return dayOf(value as Date);
      return columns[index]?.type.kind === 'decimal' && value !== null ? Number(value) : value;
    }),
  );
}

const dayOf = (date: Date): string =>
  `${date.getFullYear()}-${String(date.getMonth() + 1).padStart(2, '0')}-${String(date.getDate()).padStart(2, '0')}`;
