import { Socket } from 'node:net';
import pg from 'pg';
import type { Pool } from '../journal/database.ts';
import { resultTooLarge } from './query_errors.ts';
import type { QueryProject } from './query_kind.ts';
import { type QueryRelations, readSourceSchema } from './source_schema.ts';
import type { TextRow, Warehouse } from './warehouse.ts';

/** Rows that are received together. */
const batchRows = 500;
const batchBytes = 256 * 1024;

/** What PostgreSQL may send of a row beyond the bytes of its values that are left. */
const rowOverhead = 1024 * 1024;

const asText = { getTypeParser: () => (text: string) => text };

interface PostgresWarehouseOptions {
  readonly relations: QueryRelations;
  readonly project: Pick<QueryProject, 'warehouse_tables' | 'property_definitions'>;
  /** The `work_mem` of a statement with so many operations; without it, the transaction's is used. */
  readonly workMemOf?: (memoryOperations: number) => string;
}

type PostgresClient = Pick<pg.PoolClient, 'query'> & Partial<Pick<pg.PoolClient, 'connection'>>;

/** The warehouse of a project over a connection to its source. Measures each row as it arrives. */
export function postgresWarehouse(
  client: PostgresClient,
  { relations, project, workMemOf }: PostgresWarehouseOptions,
): Warehouse {
  let workMem = workMemOf?.(0);
  const shareMemory = async (memoryOperations = 0): Promise<void> => {
    const wanted = workMemOf?.(memoryOperations);
    if (wanted === undefined || wanted === workMem) return;
    await client.query(`set local work_mem = ${pg.escapeLiteral(wanted)}`);
    workMem = wanted;
  };
  return {
    schema: () => readSourceSchema(client, relations, project),
    async readRows({ text, values, memoryOperations }, { maxRows, maxBytes, receive }) {
      await shareMemory(memoryOperations);
      const config: pg.QueryConfig & { readonly queryMode: 'extended'; readonly rowMode: 'array' } = {
        text,
        values: [...values],
        // Also without parameters: the extended protocol rejects a text with several statements.
        queryMode: 'extended',
        rowMode: 'array',
        types: asText,
      };
      const { promise, resolve, reject } = Promise.withResolvers<readonly pg.FieldDef[]>();
      let batch: TextRow[] = [];
      let sizeOfBatch = 0;
      let rows = 0;
      let bytes = 0;
      const wire = client.connection?.stream;
      const stream = wire instanceof Socket ? wire : undefined;
      let readBefore = stream?.bytesRead ?? 0;
      // The driver keeps a row until it has all of it, so a row of any size is refused while it arrives.
      const measure = (): void => {
        if (!stream || stream.bytesRead - readBefore <= maxBytes - bytes + rowOverhead) return;
        reject(resultTooLarge(maxBytes));
        stream.destroy();
      };
      const send = (): void => {
        receive(batch, sizeOfBatch);
        batch = [];
        sizeOfBatch = 0;
      };
      const query = new pg.Query<(string | null)[]>(config, (error, result) =>
        error ? reject(error) : resolve(result.fields),
      );
      query.on('row', (row) => {
        readBefore = stream?.bytesRead ?? 0;
        if (rows === maxRows || bytes > maxBytes) return;
        const size = bytesOf(row);
        bytes += size;
        if (bytes > maxBytes) {
          reject(resultTooLarge(maxBytes));
          return;
        }
        rows += 1;
        batch.push(row);
        sizeOfBatch += size;
        if (batch.length === batchRows || sizeOfBatch >= batchBytes) send();
      });
      stream?.on('data', measure);
      try {
        client.query(query);
        const fields = await promise;
        send();
        return fields.map(({ name, dataTypeID }) => ({ name, type_id: dataTypeID }));
      } finally {
        stream?.off('data', measure);
      }
    },
  };
}

/** The bytes of a row as JSON, without those that escape its characters. */
const bytesOf = (row: TextRow): number =>
  row.reduce((sum, value) => sum + (value === null ? 5 : Buffer.byteLength(value) + 3), 2);

/** Reads a project's query settings and the database's time, which is `now` for the whole request. */
export async function readQueryProject(
  pool: Pool,
  teamId: number,
): Promise<{ readonly project: QueryProject; readonly now: Date }> {
  const { rows } = await pool.query<Omit<QueryProject, 'team_id'> & { now: string }>(
    `select timezone, week_start_day, test_account_filters, clock_timestamp() as now,
       (select coalesce(json_agg(json_build_object('name', name, 'relation_schema', relation_schema,
          'relation_name', relation_name, 'team_column', team_column) order by name), '[]')
        from exportd.warehouse_tables where team_id = $1) as warehouse_tables,
       (select coalesce(json_agg(json_build_object('scope', scope, 'name', name, 'type', type) order by scope, name), '[]')
        from exportd.property_definitions where team_id = $1 and sampled_values is null) as property_definitions,
       (select coalesce(json_agg(json_build_object('id', id, 'name', name, 'steps', steps) order by id), '[]')
        from exportd.actions where team_id = $1) as actions
     from exportd.projects where id = $1`,
    [teamId],
  );
  const [found] = rows;
  if (!found) throw new Error(`Project ${teamId} does not exist.`);
  const { now, ...settings } = found;
  return { project: { team_id: teamId, ...settings }, now: new Date(now) };
}
