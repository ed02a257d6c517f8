import { Option, type Command } from 'commander';
import {
  defineProperty,
  listProperties,
  propertyScopes,
  propertyTypes,
  removeProperty,
  type PropertyDefinition,
  type PropertyScope,
  type PropertyType,
} from '../../queries/property_definitions.ts';
import { parseId } from '../arguments.ts';
import { printer, table } from '../output.ts';
import { withPool } from '../with_pool.ts';

interface NamedOptions {
  readonly project: number;
  readonly scope: PropertyScope;
  readonly name: string;
  readonly json?: boolean;
}

interface DefineOptions extends NamedOptions {
  readonly type: PropertyType;
}

interface ListOptions {
  readonly project?: number;
  readonly json?: boolean;
}

/** `property define|list|remove`. */
export function addPropertyCommands(program: Command): void {
  const property = program
    .command('property')
    .description('define types of properties of events and persons');

  namedCommand(
    property,
    'define',
    'set the type of a property; queries convert its values, and read other values as null',
  )
    .addOption(new Option('--type <type>', 'type of its values').choices(propertyTypes).makeOptionMandatory())
    .action(async (options: DefineOptions) => {
      const { project: team_id, scope, name, type } = options;
      const stored = await withPool((pool) => defineProperty(pool, { team_id, scope, name, type }));
      printer(options)(stored, () => propertyTable([stored]));
    });

  property
    .command('list')
    .description('list all definitions')
    .option('--project <id>', 'only of this project', parseId)
    .option('--json', 'print JSON')
    .action(async (options: ListOptions) => {
      const definitions = await withPool((pool) => listProperties(pool, options.project));
      printer(options)(definitions, () => propertyTable(definitions));
    });

  namedCommand(property, 'remove', 'remove the type of a property: queries read it as text again').action(
    async (options: NamedOptions) => {
      const { project: team_id, scope, name } = options;
      await withPool((pool) => removeProperty(pool, { team_id, scope, name }));
      printer(options)({ removed: name }, () => ['Removed.']);
    },
  );
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

const propertyTable = (definitions: readonly PropertyDefinition[]): string[] =>
  table(
    ['project', 'scope', 'name', 'type'],
    definitions.map((one) => [one.team_id, one.scope, one.name, one.type]),
  );
