import type { Command } from 'commander';
import type { ArchiveStatus } from '../../journal/archives.ts';
import type { ProgressListener, RebuildProgress } from '../../projections/rebuild.ts';
import type { ReadModelsStatus, RebuildOptions, Switch } from '../../projections/read_models.ts';
import { CliError } from '../cli_error.ts';
import { counted, printer, table } from '../output.ts';
import { commandSettings, withPool } from '../running_stack.ts';

interface JsonOption {
  readonly json?: boolean;
}

/** `projections` and `rebuild`: builds new versions of read models beside the live ones. */
export function addProjectionCommands(program: Command): void {
  program
    .command('rebuild')
    .description('build all read models again from the journal, beside the live ones, and switch to them')
    .option(...fromArchive)
    .option('--json', 'print JSON')
    .action(async (options: JsonOption & FromArchive) => {
      const { rebuild } = await import('../../projections/registry.ts');
      const events = await withPool((pool) =>
        withRebuildOptions(options.fromArchive === true, (rebuildOptions) => rebuild(pool, rebuildOptions)),
      );
      printer(options)({ events }, () => [`Rebuilt the read models from ${counted(events, 'event')}.`]);
    });

  const projections = program
    .command('projections')
    .description('read models: build a new version beside the live one, and switch');

  projections
    .command('status')
    .description('print the versions of each read model, and how far a rebuild is')
    .option('--json', 'print JSON')
    .action(async (options: JsonOption) => {
      const { readProjectionsStatus } = await import('../../projections/registry.ts');
      const { readArchiveStatus } = await import('../../journal/archives.ts');
      const { archive, ...status } = await withPool(async (pool) => ({
        ...(await readProjectionsStatus(pool)),
        archive: await readArchiveStatus(pool),
      }));
      printer(options)({ ...status, archive }, () => [
        ...statusLines(status),
        ...(archive ? ['', describeArchive(archive)] : []),
      ]);
    });

  projections
    .command('rebuild [name...]')
    .description(
      'build read models beside the live ones, with those that they read, and do not switch; without names, those that changed. Continues what an ended process has built',
    )
    .option('--all', 'build all of them, changed or not')
    .option('--restart', 'drop what was built, and start at the first event')
    .option(...fromArchive)
    .option('--json', 'print JSON')
    .action(
      async (names: string[], options: JsonOption & FromArchive & { all?: boolean; restart?: boolean }) => {
        const {
          buildProjections,
          findChangedProjections,
          projections: known,
        } = await import('../../projections/registry.ts');
        const unknown = names.find((name) => !known.some((projection) => projection.name === name));
        if (unknown !== undefined)
          throw new CliError(
            `${unknown} is no read model. There are ${known.map(({ name }) => name).join(', ')}.`,
          );
        const built = await withPool(async (pool) => {
          const chosen = names.length > 0 || options.all ? names : await findChangedProjections(pool);
          if (chosen.length === 0 && !options.all) return null;
          return withRebuildOptions(options.fromArchive === true, (rebuildOptions) =>
            buildProjections(pool, {
              ...rebuildOptions,
              ...(chosen.length > 0 && { names: chosen }),
              restarts: options.restart === true,
            }),
          );
        });
        printer(options)({ events: built }, () => [
          built === null
            ? 'No read model has changed. Name those to build again, or use --all.'
            : `Built from ${counted(built, 'event')}. To make it live, run "exportd projections switch".`,
        ]);
      },
    );

  projections
    .command('switch')
    .description(
      'make live what was built for this version; without that, what the last switch has left of this version',
    )
    .option('--json', 'print JSON')
    .action(async (options: JsonOption) => {
      const { switchProjections } = await import('../../projections/registry.ts');
      const switched = await withPool((pool) =>
        withRebuildOptions(undefined, (rebuildOptions) => switchProjections(pool, rebuildOptions)),
      );
      printer(options)(switched, () => [describeSwitch(switched)]);
    });
}

interface FromArchive {
  readonly fromArchive?: boolean;
}
const fromArchive = [
  '--from-archive',
  'read the events that are archived from the bucket of the archive',
] as const;

/**
 * Rebuilds as commands do: with progress on stderr, and keeping the former version for a while. What is archived is read if the
 * command asks for it, and if nobody can ask (undefined) and the settings name a bucket.
 */
export async function withRebuildOptions<Result>(
  fromArchive: boolean | undefined,
  rebuild: (options: RebuildOptions) => Promise<Result>,
): Promise<Result> {
  const settings = await commandSettings(process.env);
  const hasArchive = settings.EXPORTD_ARCHIVE_BUCKET !== undefined;
  if (fromArchive === true && !hasArchive) throw noArchive();
  const options = { onProgress: reportProgress(), keepPreviousMs: settings.EXPORTD_OLD_READ_MODEL_RETENTION };
  if (fromArchive === false || !hasArchive) return rebuild(options);
  const { createArchiveReader, openArchive } = await import('../../maintenance/archive_journal.ts');
  const store = openArchive(settings, new AbortController().signal);
  try {
    return await rebuild({ ...options, ...(store && { readArchive: createArchiveReader(store) }) });
  } finally {
    store?.close();
  }
}

const noArchive = (): CliError => new CliError('There is no archive: set EXPORTD_ARCHIVE_BUCKET.');

/** `archive`: writes old events to the operator's bucket, as workers do. */
export function addArchiveCommand(program: Command): void {
  program
    .command('archive')
    .description(
      'write events older than EXPORTD_HISTORY_RETENTION to EXPORTD_ARCHIVE_BUCKET as Parquet, as workers do from time to time',
    )
    .option('--json', 'print JSON')
    .action(async (options: JsonOption) => {
      const settings = await commandSettings(process.env);
      const { archiveJournal, openArchive } = await import('../../maintenance/archive_journal.ts');
      const { readArchiveStatus } = await import('../../journal/archives.ts');
      const historyMs = settings.EXPORTD_HISTORY_RETENTION;
      const store = openArchive(settings, new AbortController().signal);
      if (!store) throw noArchive();
      if (historyMs === undefined) throw new CliError('No event is ever old: set EXPORTD_HISTORY_RETENTION.');
      const result = await withPool(async (pool) => {
        const archived = await archiveJournal(pool, store, { historyMs }, () => false);
        return { ...archived, archive: await readArchiveStatus(pool) };
      }).finally(store.close);
      printer(options)(result, () => [
        result.ranges === 0
          ? 'No more events are old enough and fill a file.'
          : `Archived ${counted(result.events, 'event')} in ${counted(result.ranges, 'file')}.`,
        describeArchive(result.archive),
      ]);
    });
}

/** How much of the journal is archived, as a line. */
const describeArchive = (archive: ArchiveStatus | null): string =>
  archive === null
    ? 'Nothing is archived.'
    : `Archived up to position ${archive.last_position}: ${counted(archive.events, 'event')} in ${counted(archive.ranges, 'file')}, the last one ${archive.last_location}.`;

/** What a switch did, as a line. */
export const describeSwitch = ({ versions, locked_ms }: Switch): string =>
  `Switched ${Object.entries(versions)
    .map(([name, version]) => `${name} to version ${version}`)
    .join(', ')}. Appends waited for ${locked_ms} ms.`;

const progressIntervalMs = 5_000;

function reportProgress(): ProgressListener {
  let reportedAt = performance.now();
  return (progress) => {
    if (performance.now() - reportedAt < progressIntervalMs) return;
    reportedAt = performance.now();
    process.stderr.write(`${describeProgress(progress)}\n`);
  };
}

const describeProgress = (progress: RebuildProgress): string =>
  `Folded ${counted(progress.events, 'event')}, to position ${percent(progress.position, progress.journal_position)} of the journal; ` +
  `${Math.round(progress.events_per_second).toLocaleString('en')} a second, ${describeSeconds(progress.remaining_seconds)} left`;

const percent = (part: number, whole: number): string =>
  whole === 0 ? '100 %' : `${Math.floor((part / whole) * 100)} %`;

function describeSeconds(seconds: number): string {
  if (seconds < 120) return `${Math.ceil(seconds)} s`;
  if (seconds < 7_200) return `${Math.ceil(seconds / 60)} min`;
  return `${Math.ceil(seconds / 3_600)} h`;
}

function statusLines({ models, next, previous, journal_position }: ReadModelsStatus): string[] {
  return [
    ...table(
      ['read model', 'this version', 'live', 'next', 'previous'],
      models.map((model) => [model.name, model.known, model.live, model.next, model.previous]),
    ),
    ...(next
      ? [
          '',
          `Next: ${counted(next.events, 'event')}, ${percent(next.position, journal_position)} of the journal; ` +
            (next.is_running
              ? `a process builds it${next.remaining_seconds === null ? '' : `, ${describeSeconds(next.remaining_seconds)} left`}.`
              : `no process builds it since ${next.updated_at}: "exportd projections rebuild" continues, "exportd projections switch" makes it live.`),
        ]
      : []),
    ...(previous
      ? [
          '',
          `Previous: to go back, run "exportd projections switch" of that version of exportd. Dropped after ${previous.drop_after ?? '-'}.`,
        ]
      : []),
  ];
}
