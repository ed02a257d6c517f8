import type { Command } from 'commander';
import { createPool, type Pool } from '../../journal/database.ts';
import { findRegistrable, type WarehouseRequest } from '../../queries/registrable_relation.ts';
import {
  addWarehouseTable,
  listWarehouseTables,
  removeWarehouseTable,
  type RegistrableRelation,
  type WarehouseTable,
} from '../../queries/warehouse_tables.ts';
import { relationsOf } from '../../source/relations.ts';
import { parseId } from '../arguments.ts';
import { printer, table } from '../output.ts';
import { commandSettings } from '../running_stack.ts';
import { withPool } from '../with_pool.ts';

interface NamedOptions {
  readonly project: number;
  readonly name: string;
  readonly json?: boolean;
}

interface AddOptions extends NamedOptions {
  readonly relation: string;
  readonly teamColumn?: string;
}

interface ListOptions {
  readonly project?: number;
  readonly json?: boolean;
}

/** `warehouse add|list|remove`. */
export function addWarehouseCommands(program: Command): void {
  const warehouse = program
    .command('warehouse')
    .description('further tables of the source that queries of a project may read');

  warehouse
    .command('add')
    .description('let the queries of a project read a relation of the source')
    .requiredOption('--project <id>', 'the project whose queries may read it', parseId)
    .requiredOption('--name <name>', 'what queries call it, such as stripe.charges')
    .requiredOption('--relation <relation>', 'the table or view in the source, such as public.stripe_charges')
    .option(
      '--team-column <column>',
      'the column that holds the id of the project; without one all rows are those of this project',
    )
    .option('--json', 'print one JSON document')
    .action(async (options: AddOptions) => {
      const { project: team_id, name, relation, teamColumn: team_column = null } = options;
      const found = await lookInSource({ name, relation, team_column });
      const stored = await withPool((pool) => addWarehouseTable(pool, { team_id, name, relation: found }));
      printer(options)(stored, () => warehouseTable([stored]));
    });

  warehouse
    .command('list')
    .description('show every registered table')
    .option('--project <id>', 'only those of this project', parseId)
    .option('--json', 'print one JSON document')
    .action(async (options: ListOptions) => {
      const tables = await withPool((pool) => listWarehouseTables(pool, options.project));
      printer(options)(tables, () => warehouseTable(tables));
    });

  warehouse
    .command('remove')
    .description('take a table out of the queries of a project; the relation stays as it is')
    .requiredOption('--project <id>', 'the project that it belongs to', parseId)
    .requiredOption('--name <name>', 'what queries call it')
    .option('--json', 'print one JSON document')
    .action(async (options: NamedOptions) => {
      const { project: team_id, name } = options;
      await withPool((pool) => removeWarehouseTable(pool, { team_id, name }));
      printer(options)({ removed: name }, () => ['Removed.']);
    });
}

async function lookInSource(request: WarehouseRequest): Promise<RegistrableRelation> {
  const settings = commandSettings(process.env);
  const source: Pool = createPool(settings.SOURCE_DATABASE_URL ?? settings.DATABASE_URL, { max: 1 });
  try {
    return await findRegistrable(source, relationsOf(settings), request);
  } finally {
    await source.end();
  }
}

const warehouseTable = (tables: readonly WarehouseTable[]): string[] =>
  table(
    ['project', 'name', 'relation', 'team column'],
    tables.map((one) => [
      one.team_id,
      one.name,
      `${one.relation_schema}.${one.relation_name}`,
      one.team_column,
    ]),
  );
