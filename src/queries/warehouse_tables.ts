import { inTransaction, type Pool } from '../journal/database.ts';

/** A table that cannot be registered or removed. The message explains why. */
export class InvalidWarehouseTable extends Error {
  override readonly name = 'InvalidWarehouseTable';
}

/** A relation of the source that a project's queries may read under its own name. */
export interface WarehouseTable {
  readonly team_id: number;
  /** The name in queries; it may contain dots. */
  readonly name: string;
  readonly relation_schema: string;
  readonly relation_name: string;
  /** The column with the project id; null if every row belongs to the project. */
  readonly team_column: string | null;
  readonly created_at: string;
}

/** A relation of the source that can be registered, by its full name. */
export interface RegistrableRelation {
  readonly schema: string;
  readonly name: string;
  readonly team_column: string | null;
}

const columns = 'team_id, name, relation_schema, relation_name, team_column, created_at';
const [foreignKeyViolation, uniqueViolation] = ['23503', '23505'];

/**
 * Registers a relation that has been checked. A relation without a team column holds the rows of one project, so no
 * other project may register it.
 * @throws InvalidWarehouseTable
 */
export async function addWarehouseTable(
  pool: Pool,
  { team_id, name, relation }: Pick<WarehouseTable, 'team_id' | 'name'> & { relation: RegistrableRelation },
): Promise<WarehouseTable> {
  const { schema, name: relationName, team_column } = relation;
  try {
    return await inTransaction(pool, async (connection) => {
      // Concurrent registrations would not see each other.
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
            ? `Project ${other.team_id} has already registered ${schema}.${relationName}. Without a team column, only one project can register a relation. Name the column with --team-column.`
            : `${schema}.${relationName} belongs to project ${other.team_id}, which registered it without a team column.`,
        );
      const { rows } = await connection.query<WarehouseTable>(
        `insert into exportd.warehouse_tables (team_id, name, relation_schema, relation_name, team_column)
         values ($1, $2, $3, $4, $5) returning ${columns}`,
        [team_id, name, schema, relationName, team_column],
      );
      const [table] = rows;
      if (!table) throw new Error('The insert of a warehouse table returned no row.');
      return table;
    });
  } catch (error) {
    const { code } = error as { code?: unknown };
    if (code === foreignKeyViolation) throw new InvalidWarehouseTable(`Project ${team_id} does not exist.`);
    if (code === uniqueViolation)
      throw new InvalidWarehouseTable(`Project ${team_id} already has a table "${name}". Remove it first.`);
    throw error;
  }
}

/** The tables of one project, or of all. */
export const listWarehouseTables = async (pool: Pool, teamId?: number): Promise<WarehouseTable[]> =>
  (
    await pool.query<WarehouseTable>(
      `select ${columns} from exportd.warehouse_tables where $1::integer is null or team_id = $1
       order by team_id, name`,
      [teamId ?? null],
    )
  ).rows;

/** Removes a table from a project's queries; its relation is left unchanged. @throws InvalidWarehouseTable */
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
