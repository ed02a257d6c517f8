import { type Command, Option } from 'commander';
import { type Model, models } from '../../domain/batch_export.ts';
import type { CheckedRelation, MappedTable, SourceFinding, SourceReport } from '../../source/check/report.ts';
import type { RelationSettings } from '../../source/relations.ts';
import { parseId } from '../arguments.ts';
import { CliError } from '../cli_error.ts';
import { counted } from '../../domain/in_words.ts';
import { printer, table } from '../output.ts';
import { commandSettings } from '../running_stack.ts';

/** Formats what a check of the source found, with the SQL that fixes it. */
function sourceReportLines({ relations, findings, views, tables }: SourceReport): string[] {
  const statements = findings.flatMap(({ sql }) => sql ?? []);
  return [
    ...table(['', 'relation', 'found'], [...relationRows(relations, findings), ...findings.map(findingRow)]),
    ...(statements.length === 0
      ? []
      : ['', '-- SQL that fixes it, for the owner of the relations:', ...new Set(statements)]),
    ...(tables.length === 0
      ? []
      : [
          '',
          '-- Tables that may have the events. "exportd source check --events <table>" drafts a view over one:',
        ]),
    ...tables.map((name) => `--   ${name}`),
    ...views.flatMap(({ setting, name, sql, to_choose }) => [
      '',
      `-- A view with all columns, which leaves the relation unchanged. Then set ${setting}=${name} and check again.`,
      ...(to_choose.length === 0 ? [] : [`-- Choose first: ${to_choose.join(', ')}.`]),
      sql,
    ]),
  ];
}

/** The relations without an error. */
const relationRows = (
  relations: readonly CheckedRelation[],
  findings: readonly SourceFinding[],
): string[][] =>
  relations
    .filter(
      ({ relation }) => !findings.some(({ level, subject }) => level === 'error' && subject === relation),
    )
    .map(({ relation, kind, setting }) =>
      kind === null
        ? ['-', relation, `does not exist: persons are neither exported nor found by queries (${setting})`]
        : ['ok', relation, kind],
    );

const findingRow = ({ level, subject, message }: SourceFinding): string[] => [
  level === 'error' ? 'FAILED' : 'warning',
  subject,
  message,
];

interface CheckOptions {
  readonly events?: string;
  readonly persons?: string;
  readonly personDistinctIds?: string;
  readonly model?: Model;
  readonly json?: boolean;
}

/** `source check`. */
export function addSourceCommands(program: Command): void {
  const source = program.command('source').description('the database that exportd reads');
  addMapCommand(source);
  source
    .command('check')
    .description(
      'compare the relations of the source with what exports need, and print the SQL that fixes them; changes nothing',
    )
    .option('--events <relation>', 'check this table or view as events; by default EXPORTD_EVENTS_RELATION')
    .option('--persons <relation>', 'the same for persons; by default EXPORTD_PERSONS_RELATION')
    .option(
      '--person-distinct-ids <relation>',
      'the same for distinct ids; by default EXPORTD_PERSON_DISTINCT_IDS_RELATION',
    )
    .addOption(
      new Option(
        '--model <model>',
        'what will be exported; by default events, and persons if their relations exist',
      ).choices(models),
    )
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExit codes: 0 exports can run, maybe with warnings; 1 they cannot.')
    .action(async (options: CheckOptions) => {
      const [{ checkSource }, { withSource }] = await Promise.all([
        import('../../source/check/check_source.ts'),
        import('../open_source.ts'),
      ]);
      const settings = await commandSettings(sourceEnvironment(process.env));
      const report = await withSource(settings, (connections) =>
        checkSource(connections, { ...settings, ...namedRelations(options) }, { model: options.model }),
      );
      printer(options)(report, () => sourceReportLines(report));
      const errors = report.findings.filter(({ level }) => level === 'error').length;
      if (!report.ok) throw new CliError(`Exports cannot read the source: ${counted(errors, 'error')}.`);
    });
}

interface MapOptions {
  readonly column?: Readonly<Record<string, string>>;
  readonly view?: string;
  readonly team?: number;
  readonly json?: boolean;
}

/** `source map`. */
function addMapCommand(source: Command): void {
  source
    .command('map')
    .description(
      'map a table of yours to events: print the view, its index and its grants as one script, and the first rows; changes nothing',
    )
    .argument('<table>', 'a table or view, with its schema')
    .option(
      '--column <name=column>',
      'give a column of the table to a column of events, repeatable: event=what',
      addColumn,
    )
    .option('--view <name>', 'name of the view; by default exportd_events in the schema of the table')
    .option('--team <id>', 'the project of all rows, if the table has no column for it', parseId)
    .option('--json', 'print JSON')
    .action(async (table: string, options: MapOptions) => {
      const [{ mapTable }, { catalogReader }, { readSourceRole }, { withSource }] = await Promise.all([
        import('../../source/check/draft_view.ts'),
        import('../../source/check/report.ts'),
        import('../../source/check/check_columns.ts'),
        import('../open_source.ts'),
      ]);
      const settings = await commandSettings(sourceEnvironment(process.env));
      const { column: chosen, view: name, team: teamId } = options;
      const mapped = await withSource(settings, async (connections) => {
        const read = catalogReader(connections);
        const { role } = await readSourceRole(read);
        return mapTable(read, table, { chosen, name, teamId, reader: role });
      });
      printer(options)(mapped, () => mappedLines(mapped));
    });
}

/** @throws CliError unless it has the form `name=column` */
function addColumn(
  text: string,
  others: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
  const [, name, column] = /^([^=]+)=(.+)$/.exec(text) ?? [];
  if (name === undefined || column === undefined)
    throw new CliError(`Write --column name=column, such as --column event=what, instead of "${text}".`);
  return { ...others, [name]: column };
}

const mappedLines = ({ script, view, rows }: MappedTable): string[] => [
  script,
  '',
  ...(rows === null
    ? [`-- Choose first, with --column: ${view.to_choose.join(', ')}.`]
    : rows.length === 0
      ? ['-- The table has no rows.']
      : [
          '-- The first rows:',
          ...table(
            Object.keys(rows[0] ?? {}),
            rows.map((row) => Object.values(row).map((value) => value ?? '')),
          ).map((line) => `-- ${line}`),
        ]),
  `-- Then set ${view.setting}=${view.name}, and run "exportd source check".`,
];

/** The check needs no control database, which may not exist yet. */
const sourceEnvironment = (environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv => ({
  ...environment,
  DATABASE_URL: environment.DATABASE_URL ?? environment.SOURCE_DATABASE_URL,
});

const namedRelations = ({ events, persons, personDistinctIds }: CheckOptions): Partial<RelationSettings> => ({
  ...(events !== undefined && { EXPORTD_EVENTS_RELATION: events }),
  ...(persons !== undefined && { EXPORTD_PERSONS_RELATION: persons }),
  ...(personDistinctIds !== undefined && { EXPORTD_PERSON_DISTINCT_IDS_RELATION: personDistinctIds }),
});
