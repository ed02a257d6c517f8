import { inTransaction, type Connection, type Pool } from '../../src/journal/database.ts';

/** Copies of an export, made by SQL: exporting 100,000 runs takes hours. */

/** $1 is the id of the template. */
const streamsOfTemplate = 'stream_id in (select stream_id from template_streams where batch_export_id = $1)';

/** A table that holds rows of an export, and what finds them; $1 is its id. */
type CopiedTable = readonly [table: string, condition: string];

/** What no journal rebuilds, and the journal. */
const storedTables: readonly CopiedTable[] = [
  ['destination_configs', 'batch_export_id = $1'],
  ['journal_streams', streamsOfTemplate],
  ['journal_events', streamsOfTemplate],
  ['interval_comparisons', 'batch_export_id = $1'],
  ['log_lines', 'batch_export_id = $1'],
];

/** How many copies a statement makes. */
const copiesAtOnce = 50;

/**
 * Copies an export with its runs, files, events and log lines. Ids follow from those of the template, also within events and
 * states, and the events of all copies alternate. A rebuild makes their read models.
 */
export async function copyExport(pool: Pool, { id, copies }: { id: string; copies: number }): Promise<void> {
  const { rows } = await pool.query<{ last: number }>(
    'select max(global_position) as last from exportd.journal_events',
  );
  const last = rows[0]?.last ?? 0;
  for (let first = 1; first <= copies; first += copiesAtOnce)
    await inTransaction(pool, async (connection) => {
      // The copies are consistent: no trigger and no foreign key has to check them.
      await connection.query(
        'set local statement_timeout = 0; set local session_replication_role = replica; set local synchronous_commit = off',
      );
      await connection.query(
        `create temporary table template_streams on commit drop as
         select $1::uuid as batch_export_id, $1::uuid as stream_id
         union select $1, id from exportd.batch_export_runs where batch_export_id = $1
         union select $1, id from exportd.backfills where batch_export_id = $1`,
        [id],
      );
      const position = (value: string) => `${last} + ${value} * ${copies + 1} + copy`;
      for (const [table, condition] of storedTables)
        await copyRows(connection, {
          table,
          condition,
          position,
          values: [id, first, Math.min(copies, first + copiesAtOnce - 1)],
        });
    });
  await pool.query(
    `set statement_timeout = 0; analyze;
     select setval(pg_get_serial_sequence('exportd.journal_events', 'global_position'), max(global_position))
     from exportd.journal_events; reset statement_timeout`,
  );
}

async function copyRows(
  connection: Connection,
  {
    table,
    condition,
    position,
    values,
  }: {
    readonly table: string;
    readonly condition: string;
    readonly position: (value: string) => string;
    /** The id of the template, and the numbers of the first and the last copy. */
    readonly values: readonly [id: string, first: number, last: number];
  },
): Promise<void> {
  const { rows: columns } = await connection.query<{ name: string; type: string; is_identity: boolean }>(
    `select column_name as name, data_type as type, is_identity = 'YES' and column_name = 'id' as is_identity
     from information_schema.columns where table_schema = 'exportd' and table_name = $1 order by ordinal_position`,
    [table],
  );
  const copied = columns.filter(({ is_identity }) => !is_identity);
  await connection.query(
    `insert into exportd.${table} (${copied.map(({ name }) => `"${name}"`).join(', ')}) overriding system value
     select ${copied.map((column) => copiedValue(column, position)).join(', ')}
     from exportd.${table} source cross join generate_series($2::int, $3::int) as copy
     where ${condition}`,
    [...values],
  );
}

/** The first digits of every id become the number of the copy; the others are random enough. */
const withIdsOfCopy = (text: string): string =>
  `regexp_replace(${text}, '[0-9a-f]{8}(-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})', lpad(to_hex(copy), 8, '0') || '\\1', 'g')`;

/** SQL: the value of a column in a copy. */
function copiedValue(
  { name, type }: { readonly name: string; readonly type: string },
  position: (value: string) => string,
): string {
  const value = `source."${name}"`;
  if (type === 'uuid' || type === 'jsonb') return `${withIdsOfCopy(`${value}::text`)}::${type}`;
  if (name === 'position' || name === 'global_position') return position(value);
  return value;
}
