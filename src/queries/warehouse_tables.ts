import { inTransaction, type Pool } from '../journal/database.ts';
import { InvalidWarehouseTable } from './invalid_warehouse_table.ts';

/** A relation of the source that a project's queries may read under a name of its own. */
export interface WarehouseTable {
  readonly team_id: number;
  /** As queries call it; it may have dots. */
  readonly name: string;
  readonly relation_schema: string;
  readonly relation_name: string;
  /** The column that tells whose a row is; null where every row is the project's. */
  readonly team_column: string | null;
  readonly created_at: string;
}

/** A relation of the source that may be registered, by its full name. */
export interface RegistrableRelation {
  readonly schema: string;
  readonly name: string;
  readonly team_column: string | null;
}

const columns = 'team_id, name, relation_schema, relation_name, team_column, created_at';
const [foreignKeyViolation, uniqueViolation] = ['23503', '23505'];

/**
 * Registers a relation that was looked at. One without a team column holds a project's rows alone, so no two projects
 * may have it.
 * @throws InvalidWarehouseTable
 */
export async function addWarehouseTable(
  pool: Pool,
  { team_id, name, relation }: Pick<WarehouseTable, 'team_id' | 'name'> & { relation: RegistrableRelation },
): Promise<WarehouseTable> {
  const { schema, name: relationName, team_column } = relation;
  try {
    return await inTransaction(pool, async (connection) => {
      // Two registrations at once would not see each other.
      await connection.query('lock table exportd.warehouse_tables in share row exclusive mode');
      const { rows: others } = await connection.query<Pick<WarehouseTable, 'team_id' | 'team_column'>>(
        `select team_id, team_column from exportd.warehouse_tables
         where relation_schema = $1 and relation_name = $2 and team_id <> $3`,
        [schema, relationName, team_id],
      );
      const [other] = team_column === null ? others : others.filter((one) => one.team_column === null);
      if (other)
        throw new InvalidWarehouseTable(
          team_column === null
            ? `Project ${other.team_id} has ${schema}.${relationName} already: without a team column a relation belongs to one project alone. Name its column with --team-column.`
            : `${schema}.${relationName} belongs to project ${other.team_id} alone, which registered it without a team column.`,
        );
      const { rows } = await connection.query<WarehouseTable>(
        `insert into exportd.warehouse_tables (team_id, name, relation_schema, relation_name, team_column)
         values ($1, $2, $3, $4, $5) returning ${columns}`,
        [team_id, name, schema, relationName, team_column],
      );
      const [table] = rows;
      if (!table) throw new Error('The database did not store a table.');
      return table;
    });
  } catch (error) {
    const { code } = error as { code?: unknown };
    if (code === foreignKeyViolation) throw new InvalidWarehouseTable(`There is no project ${team_id}.`);
    if (code === uniqueViolation)
      throw new InvalidWarehouseTable(`Project ${team_id} has a table "${name}" already; remove it first.`);
    throw error;
  }
}

/** The tables of a project, or of all. */
export const listWarehouseTables = async (pool: Pool, teamId?: number): Promise<WarehouseTable[]> =>
  (
    await pool.query<WarehouseTable>(
      `select ${columns} from exportd.warehouse_tables where $1::integer is null or team_id = $1
       order by team_id, name`,
      [teamId ?? null],
    )
  ).rows;

/** Takes a table out of a project's queries; its relation stays as it is. @throws InvalidWarehouseTable */
export async function removeWarehouseTable(
  pool: Pool,
  { team_id, name }: Pick<WarehouseTable, 'team_id' | 'name'>,
): Promise<void> {
  const { rowCount } = await pool.query(
    'delete from exportd.warehouse_tables where team_id = $1 and name = $2',
    [team_id, name],
  );
  if (!rowCount) throw new InvalidWarehouseTable(`Project ${team_id} has no table "${name}".`);
}
