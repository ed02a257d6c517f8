import type { SortKey } from '../../src/domain/sort_key.ts';
import { inTransaction, type Connection, type Pool } from '../../src/journal/database.ts';
import { type ModelQuery, statementSettings } from '../../src/source/model_query.ts';
import type { RowRange } from '../../src/source/source.ts';

/** The plan of a page of at most `rows` rows after a key, as text. */
export const explainPage = (
  pool: Pool,
  queryOf: (connection: Connection) => Promise<ModelQuery>,
  {
    range,
    after,
    rows: pageRows,
  }: { readonly range: RowRange; readonly after: SortKey; readonly rows: number },
): Promise<string> =>
  inTransaction(pool, async (connection) => {
    const query = await queryOf(connection);
    for (const [name, value] of Object.entries(statementSettings(query, range, { after })))
      await connection.query('select set_config($1, $2, true)', [name, value]);
    const { rows } = await connection.query<{ 'QUERY PLAN': string }>(
      `explain ${query.page(pageRows, { after: true, until: false })}`,
    );
    return rows.map((row) => row['QUERY PLAN']).join('\n');
  });
