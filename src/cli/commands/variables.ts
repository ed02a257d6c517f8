import { type Command, Option } from 'commander';
import type { JsonValue } from '../../domain/event.ts';
import type { Variable } from '../../queries/variables.ts';
import { parseId } from '../arguments.ts';
import { CliError } from '../cli_error.ts';
import { printer, table } from '../output.ts';
import { addListCommand, withAudit } from '../control_database.ts';

const types = ['String', 'Number', 'Boolean', 'List', 'Date'] as const;

interface SetOptions {
  readonly project: number;
  readonly codeName: string;
  readonly default: string;
  readonly name?: string;
  readonly type?: (typeof types)[number];
  readonly json?: boolean;
}

/** `variable set|list`. */
export function addVariableCommands(program: Command): void {
  const variable = program.command('variable').description('manage query variables');

  variable
    .command('set')
    .description('create a variable or change its default; queries read it as {variables.<code name>}')
    .requiredOption('--project <id>', 'id of its project', parseId)
    .requiredOption('--code-name <name>', 'letters, digits and _')
    .requiredOption('--default <value>', 'value when a request does not override it')
    .option('--name <name>', 'display name; by default the code name')
    .addOption(
      new Option(
        '--type <type>',
        'type of the default value (default: JSON if it is valid JSON, otherwise text)',
      ).choices(types),
    )
    .option('--json', 'print JSON')
    .action(async (options: SetOptions) => {
      const { project: team_id, codeName: code_name, name } = options;
      const default_value = valueOf(options.default, options.type);
      const change = { action: 'variable.set', team_id, object: `variables/${code_name}` };
      const { setVariable } = await import('../../queries/variables.ts');
      const stored = await withAudit(change, (pool) =>
        setVariable(pool, { team_id, code_name, default_value, name }),
      );
      printer(options)(stored, () => variableTable([stored]));
    });

  addListCommand(
    variable,
    'list all variables',
    async (pool, project) => (await import('../../queries/variables.ts')).listVariables(pool, project),
    variableTable,
  );
}

/** Parses a default value by its type. @throws CliError */
function valueOf(text: string, type: SetOptions['type']): JsonValue {
  const json = jsonOf(text);
  const isValid: Record<(typeof types)[number], boolean> = {
    String: true,
    Number: typeof json === 'number',
    Boolean: typeof json === 'boolean',
    List: Array.isArray(json),
    Date: /^\d{4}-\d{2}-\d{2}/.test(text) && !Number.isNaN(Date.parse(text)),
  };
  if (type !== undefined && !isValid[type])
    throw new CliError(`--default: "${text}" is not a valid ${type}.`);
  return type === 'String' || type === 'Date' || json === undefined ? text : json;
}

function jsonOf(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}

const variableTable = (variables: readonly Variable[]): string[] =>
  table(
    ['id', 'project', 'code name', 'name', 'default'],
    variables.map((one) => [one.id, one.team_id, one.code_name, one.name, one.default_value]),
  );
