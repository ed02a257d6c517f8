import type { Connection, Pool } from '../../../src/journal/database.ts';
import { inTransaction } from '../../../src/journal/database.ts';

/** $1 is the id of the template. */
const streamsOfTemplate = 'stream_id in (select stream_id from template_streams where batch_export_id = $1)';

/**
 * The tables that hold an export, and what finds its rows; $1 is its id. Copies are made by SQL, because folding the
 * 800,000 events of 100,000 runs takes many minutes, and only reads are measured.
 */
const tables: readonly (readonly [table: string, condition: string])[] = [
  ['destination_configs', 'batch_export_id = $1'],
  ['journal_streams', streamsOfTemplate],
  ['journal_events', streamsOfTemplate],
  ['stream_states', streamsOfTemplate],
  ['batch_exports', 'id = $1'],
  ['batch_export_runs', 'batch_export_id = $1'],
  ['intervals', 'batch_export_id = $1'],
  ['destination_objects', 'batch_export_id = $1'],
  ['interval_comparisons', 'batch_export_id = $1'],
  ['backfills', 'batch_export_id = $1'],
  ['log_lines', 'batch_export_id = $1'],
];

/** Positions of the journal that copies do not share: more than an export of the benchmark has. */
const positionStep = 1_000_000;

/** Copies an export with its runs, files, events and log lines. Ids follow from those of the template. */
export async function copyExport(pool: Pool, id: string, copies: number): Promise<void> {
  await inTransaction(pool, async (connection) => {
    await connection.query('set local statement_timeout = 0');
    await connection.query(
      `create temporary table template_streams on commit drop as
       select $1::uuid as batch_export_id, $1::uuid as stream_id
       union select $1, id from exportd.batch_export_runs where batch_export_id = $1
       union select $1, id from exportd.backfills where batch_export_id = $1`,
      [id],
    );
    for (const [table, condition] of tables) await copyRows(connection, { table, condition, id, copies });
  });
  await pool.query('analyze');
}

async function copyRows(
  connection: Connection,
  { table, condition, id, copies }: { table: string; condition: string; id: string; copies: number },
): Promise<void> {
  const { rows: columns } = await connection.query<{ name: string; type: string; is_identity: boolean }>(
    `select column_name as name, data_type as type, is_identity = 'YES' and column_name = 'id' as is_identity
     from information_schema.columns where table_schema = 'exportd' and table_name = $1 order by ordinal_position`,
    [table],
  );
  const copied = columns.filter(({ is_identity }) => !is_identity);
  const target = `exportd.${table}`;
  await connection.query(
    `insert into ${target} (${copied.map(({ name }) => `"${name}"`).join(', ')}) overriding system value
     select ${copied.map((column) => copiedValue(table, column)).join(', ')}
     from ${target} source cross join generate_series(1, $2::int) as copy
     where ${condition}`,
    [id, copies],
  );
}

/** SQL: the value of a column in a copy. */
function copiedValue(
  table: string,
  { name, type }: { readonly name: string; readonly type: string },
): string {
  const value = `source."${name}"`;
  if (type === 'uuid') return `md5(${value}::text || copy)::uuid`;
  if (name === 'position' || name === 'global_position') return `${value} + copy * ${positionStep}`;
  if (table === 'batch_exports' && name === 'name') return `${value} || ' ' || copy`;
  return value;
}
