import type { Command } from 'commander';
import type {
  BatchExportTable,
  BatchExportTableCheck,
  BatchExportTableVersion,
} from '../../client/client.ts';
import { parseCount } from '../arguments.ts';
import { counted } from '../../domain/in_words.ts';
import { printer, table } from '../output.ts';
import {
  given,
  openService,
  serviceCommand,
  type ServiceCommandOptions as Options,
} from '../service_client.ts';

/** A Delta table, and its columns. */
const tableLines = ({ columns, partition_columns, protocol, ...found }: BatchExportTable): string[] => [
  ...table(
    ['location', 'version', 'checkpoint', 'files', 'rows', 'bytes', 'protocol'],
    [
      [
        found.location,
        found.version,
        found.checkpoint,
        found.files,
        found.rows,
        found.bytes,
        `${protocol.reader}/${protocol.writer}`,
      ],
    ],
  ),
  '',
  ...table(
    ['column', 'type'],
    columns.map(({ name, type }) => [partition_columns.includes(name) ? `${name} (partition)` : name, type]),
  ),
];

/** Versions of a table. */
const versionTable = (versions: readonly BatchExportTableVersion[]): string[] =>
  table(
    [
      'version',
      'committed',
      'writer',
      'interval start',
      'interval end',
      'generation',
      'added',
      'removed',
      'run',
    ],
    versions.map((version) => [
      version.version,
      version.committed_at,
      [version.writer, version.description].filter((part) => part !== null).join(': '),
      version.data_interval_start,
      version.data_interval_end,
      version.generation,
      version.files_added,
      version.files_removed,
      version.run_id,
    ]),
  );

/** What the check of a table found. */
const checkLines = ({
  ok,
  version,
  manifests,
  files,
  left_intervals,
  findings,
}: BatchExportTableCheck): string[] => [
  ...findings.map(({ kind, object, detail }) => `${kind.toUpperCase()}  ${object ?? ''}\n  ${detail}`),
  `Version ${version ?? 'unknown'}, ${counted(manifests, 'manifest')}, ${counted(files, 'file')}: ${ok ? 'no findings' : counted(findings.length, 'finding')}.`,
  ...(left_intervals === 0 ? [] : [`Not compared: ${counted(left_intervals, 'interval')}.`]),
];

/** `table describe|history|check|repair`. */
export function addTableCommands(program: Command): void {
  const tables = program
    .command('table')
    .description('the Delta table of a batch export (uses the HTTP API)');

  serviceCommand(tables, 'describe', 'show its version, files, rows, columns and protocol')
    .argument('<export id>')
    .action(async (id: string, options: Options) => {
      const path = { batch_export_id: id };
      const found = await openService(options).get('/batch_exports/{batch_export_id}/table', { path });
      printer(options)(found, () => tableLines(found));
    });

  serviceCommand(tables, 'history', 'list its versions, newest first, and what wrote them')
    .argument('<export id>')
    .option('--limit <number>', 'maximum number', parseCount, 50)
    .option('--before <version>', 'only versions before this one', parseCount)
    .action(async (id: string, options: Options & { limit: number; before?: number }) => {
      const { limit, before } = options;
      const versions = await openService(options).get('/batch_exports/{batch_export_id}/table/history', {
        path: { batch_export_id: id },
        query: given({ limit, before }),
      });
      printer(options)(versions, () => versionTable(versions.results));
    });

  serviceCommand(tables, 'check', 'compare it with manifests, objects and the journal')
    .argument('<export id>')
    .addHelpText('after', '\nThe exit code is 1 if something differs.')
    .action(async (id: string, options: Options) => {
      const path = { batch_export_id: id };
      const check = await openService(options).post('/batch_exports/{batch_export_id}/table/check', { path });
      printer(options)(check, () => checkLines(check));
      process.exitCode = check.ok ? 0 : 1;
    });

  serviceCommand(tables, 'repair', 'write one version that makes it what the current manifests say')
    .argument('<export id>')
    .action(async (id: string, options: Options) => {
      const path = { batch_export_id: id };
      const repair = await openService(options).post('/batch_exports/{batch_export_id}/table/repair', {
        path,
      });
      const { version, files_added, files_removed } = repair;
      printer(options)(repair, () => [
        version === null
          ? 'The table is what its manifests say. Nothing was written.'
          : `Wrote version ${version}: ${counted(files_added, 'file')} added, ${counted(files_removed, 'file')} removed.`,
      ]);
    });
}
