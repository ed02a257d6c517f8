import { type Command, Option } from 'commander';
import {
  defineProperty,
  listProperties,
  type PropertyDefinition,
  propertyScopes,
  propertyTypes,
  removeProperty,
} from '../../queries/property_definitions.ts';
import type { WarehouseRequest } from '../../queries/registrable_relation.ts';
import type { RegistrableRelation, WarehouseTable } from '../../queries/warehouse_tables.ts';
import { relationsOf } from '../../source/relations.ts';
import { parseId } from '../arguments.ts';
import { CliError } from '../cli_error.ts';
import { printer, table } from '../output.ts';
import { commandSettings } from '../running_stack.ts';
import { addListCommand, withAudit, withPool } from '../control_database.ts';

interface NamedPropertyOptions {
  readonly project: number;
  readonly scope: PropertyDefinition['scope'];
  readonly name: string;
  readonly json?: boolean;
}

interface DefineOptions extends NamedPropertyOptions {
  readonly type: PropertyDefinition['type'];
}

/** `property define|list|remove`. */
export function addPropertyCommands(program: Command): void {
  const property = program
    .command('property')
    .description('define types of properties of events, persons and groups');

  namedCommand(
    property,
    'define',
    'set the type of a property; queries convert its values, and read other values as null',
  )
    .addOption(new Option('--type <type>', 'type of its values').choices(propertyTypes).makeOptionMandatory())
    .action(async (options: DefineOptions) => {
      const { project: team_id, scope, name, type } = options;
      const change = { action: 'property.define', team_id, object: `properties/${scope}/${name}` };
      const stored = await withAudit(change, (pool) => defineProperty(pool, { team_id, scope, name, type }));
      printer(options)(stored, () => propertyTable([stored]));
    });

  addListCommand(property, 'list declared and inferred types', listProperties, propertyTable);

  namedCommand(
    property,
    'remove',
    'remove the type of a property; queries that need one infer it again',
  ).action(async (options: NamedPropertyOptions) => {
    const { project: team_id, scope, name } = options;
    const change = { action: 'property.remove', team_id, object: `properties/${scope}/${name}` };
    await withAudit(change, (pool) => removeProperty(pool, { team_id, scope, name }));
    printer(options)({ removed: name }, () => ['Removed.']);
  });
}

/** A command for one property. */
const namedCommand = (parent: Command, name: string, description: string): Command =>
  parent
    .command(name)
    .description(description)
    .requiredOption('--project <id>', 'id of its project', parseId)
    .addOption(
      new Option('--scope <scope>', 'owner of the property').choices(propertyScopes).makeOptionMandatory(),
    )
    .requiredOption('--name <name>', 'name of the property')
    .option('--json', 'print JSON');

const originOf = ({ sampled_values, matching_values }: PropertyDefinition): string =>
  sampled_values === null ? 'declared' : `inferred from ${matching_values} of ${sampled_values} values`;

const propertyTable = (definitions: readonly PropertyDefinition[]): string[] =>
  table(
    ['project', 'scope', 'name', 'type', 'origin', 'since'],
    definitions.map((one) => [
      one.team_id,
      one.scope,
      one.name,
      one.type,
      originOf(one),
      one.last_updated_at,
    ]),
  );

interface NamedTableOptions {
  readonly project: number;
  readonly name: string;
  readonly json?: boolean;
}

interface AddOptions extends NamedTableOptions {
  readonly relation: string;
  readonly teamColumn?: string;
}

/** `warehouse add|list|remove`. */
export function addWarehouseCommands(program: Command): void {
  const warehouse = program
    .command('warehouse')
    .description('register tables of the source that queries of a project can read');

  warehouse
    .command('add')
    .description('register a table or view of the source')
    .requiredOption('--project <id>', 'id of the project whose queries can read it', parseId)
    .requiredOption('--name <name>', 'name in queries, such as stripe.charges')
    .requiredOption('--relation <relation>', 'table or view in the source, such as public.stripe_charges')
    .option(
      '--team-column <column>',
      'column with the id of the project; without it, all rows belong to this project',
    )
    .option('--json', 'print JSON')
    .action(async (options: AddOptions) => {
      const { project: team_id, name, relation, teamColumn: team_column = null } = options;
      const found = await findRelation({ name, relation, team_column });
      const change = { action: 'warehouse_table.add', team_id, object: `warehouse_tables/${name}` };
      const { addWarehouseTable } = await import('../../queries/warehouse_tables.ts');
      const stored = await withAudit(change, (pool) =>
        addWarehouseTable(pool, { team_id, name, relation: found }),
      );
      printer(options)(stored, () => warehouseTable([stored]));
      if (!(await updateQueryRole()))
        process.stderr.write(
          'If servers have EXPORTD_QUERY_DATABASE_URL, queries can read the table when "exportd query setup" has run with it.\n',
        );
    });

  addListCommand(
    warehouse,
    'list all registered tables',
    async (pool, project) =>
      (await import('../../queries/warehouse_tables.ts')).listWarehouseTables(pool, project),
    warehouseTable,
  );

  warehouse
    .command('remove')
    .description('unregister a table; the table itself stays unchanged')
    .requiredOption('--project <id>', 'id of its project', parseId)
    .requiredOption('--name <name>', 'name in queries')
    .option('--json', 'print JSON')
    .action(async (options: NamedTableOptions) => {
      const { project: team_id, name } = options;
      const change = { action: 'warehouse_table.remove', team_id, object: `warehouse_tables/${name}` };
      const { removeWarehouseTable } = await import('../../queries/warehouse_tables.ts');
      await withAudit(change, (pool) => removeWarehouseTable(pool, { team_id, name }));
      printer(options)({ removed: name }, () => ['Removed.']);
      await updateQueryRole();
    });
}

/** Lets the role of queries read the registered tables, and no others. False if the environment names no role. */
async function updateQueryRole(): Promise<boolean> {
  const settings = await commandSettings(process.env);
  const { queryRoleOf } = await import('../../queries/query_role/query_role.ts');
  const role = queryRoleOf(settings);
  if (!role) return false;
  const { setUpQueryRole } = await import('../../queries/query_role/set_up_query_role.ts');
  await withPool((pool) => setUpQueryRole(pool, settings, role, { closeCatalog: false })).catch(
    (error: unknown) => {
      throw new CliError(
        `The table is stored, but the rights of ${role.name} are not updated (${error instanceof Error ? error.message : String(error)}). Run "exportd query setup" as a role that may do so.`,
      );
    },
  );
  return true;
}

async function findRelation(request: WarehouseRequest): Promise<RegistrableRelation> {
  const settings = await commandSettings(process.env);
  const [{ createPool }, { findRegistrableRelation }] = await Promise.all([
    import('../../journal/database.ts'),
    import('../../queries/registrable_relation.ts'),
  ]);
  const source = createPool(settings.SOURCE_DATABASE_URL, {
    max: 1,
    allowsStandby: true,
  });
  try {
    return await findRegistrableRelation(source, relationsOf(settings), request);
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
