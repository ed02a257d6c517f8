import type { Command } from 'commander';
import type { ProgressListener, RebuildProgress } from '../../projections/rebuild.ts';
import type { ReadModelsStatus, RebuildOptions, Switch } from '../../projections/read_models.ts';
import { CliError } from '../cli_error.ts';
import { counted } from '../../domain/in_words.ts';
import { printer, table } from '../output.ts';
import { commandSettings } from '../running_stack.ts';
import { withPool } from '../control_database.ts';

interface JsonOption {
  readonly json?: boolean;
}

/** `projections` and `rebuild`: builds new versions of read models beside the live ones. */
export function addProjectionCommands(program: Command): void {
  program
    .command('rebuild')
    .description('build all read models again from the journal, beside the live ones, and switch to them')
    .option('--json', 'print JSON')
    .action(async (options: JsonOption) => {
      const { rebuild } = await import('../../projections/registry.ts');
      const events = await withPool(async (pool) => rebuild(pool, await rebuildOptions()));
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
      const status = await withPool(readProjectionsStatus);
      printer(options)(status, () => statusLines(status));
    });

  projections
    .command('rebuild [name...]')
    .description(
      'build read models beside the live ones, with those that they read, and do not switch; without names, those that changed. Continues what an ended process has built',
    )
    .option('--all', 'build all of them, changed or not')
    .option('--restart', 'drop what was built, and start at the first event')
    .option('--json', 'print JSON')
    .action(async (names: string[], options: JsonOption & { all?: boolean; restart?: boolean }) => {
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
        return buildProjections(pool, {
          ...(await rebuildOptions()),
          ...(chosen.length > 0 && { names: chosen }),
          restarts: options.restart === true,
        });
      });
      printer(options)({ events: built }, () => [
        built === null
          ? 'No read model has changed. Name those to build again, or use --all.'
          : `Built from ${counted(built, 'event')}. To make it live, run "exportd projections switch".`,
      ]);
    });

  projections
    .command('switch')
    .description(
      'make live what was built for this version; without that, what the last switch has left of this version',
    )
    .option('--json', 'print JSON')
    .action(async (options: JsonOption) => {
      const { switchProjections } = await import('../../projections/registry.ts');
      const switched = await withPool(async (pool) => switchProjections(pool, await rebuildOptions()));
      printer(options)(switched, () => [describeSwitch(switched)]);
    });
}

/** How commands rebuild: with progress on stderr, and keeping the former version for a while. */
export async function rebuildOptions(): Promise<RebuildOptions> {
  const { EXPORTD_OLD_READ_MODEL_RETENTION: keepPreviousMs } = await commandSettings(process.env);
  return { onProgress: reportProgress(), keepPreviousMs };
}

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
