import type { Command } from 'commander';
import { runStatusLabels, type RunStatus } from '../../domain/run.ts';
import { parseJsonObject } from '../arguments.ts';
import { lagLines, type Lag } from '../lag_lines.ts';
import { printer, table } from '../output.ts';
import { openService } from '../service_client.ts';
import { results, serviceCommand, type Members, type ServiceCommandOptions } from './service_command.ts';

type Options = ServiceCommandOptions;

/** The last part of an address: the id of what it names. */
const idIn = (location: string | null): string | undefined => location?.split('/').filter(Boolean).at(-1);

const exportTable = (exports: readonly Members[]): string[] =>
  table(
    ['id', 'name', 'model', 'interval', 'paused'],
    exports.map((one) => [one.id, one.name, one.model, one.interval, one.paused]),
  );

const runTable = (runs: readonly Members[]): string[] =>
  table(
    ['id', 'interval start', 'interval end', 'status', 'rows', 'latest error'],
    runs.map((run) => [
      run.id,
      run.data_interval_start,
      run.data_interval_end,
      runStatusLabels[run.status as RunStatus],
      run.records_completed,
      run.latest_error,
    ]),
  );

/** `export list|show|create|update|delete|pause|unpause|backfill|retry|runs|logs`. */
export function addExportCommands(program: Command): void {
  const exports = program.command('export').description('batch exports, through the HTTP interface');

  serviceCommand(exports, 'list', 'show the batch exports of the project').action(
    async (options: Options) => {
      const { body } = await openService(options).call('GET', 'batch_exports/?limit=1000');
      printer(options)(body, () => exportTable(results(body)));
    },
  );

  serviceCommand(exports, 'show', 'show a batch export, how far it is behind, and its newest runs')
    .argument('<id>')
    .action(async (id: string, options: Options) => {
      const { body } = await openService(options).call('GET', `batch_exports/${encodeURIComponent(id)}/`);
      printer(options)(body, () => [
        ...exportTable([body]),
        '',
        ...lagLines(body.lag as Lag),
        '',
        ...runTable(results({ results: body.latest_runs })),
      ]);
    });

  serviceCommand(exports, 'create', 'create a batch export')
    .argument('<JSON>', 'its members, as POST …/batch_exports/ takes them', parseJsonObject)
    .action(async (members: Members, options: Options) => {
      const { body } = await openService(options).call('POST', 'batch_exports/', members);
      printer(options)(body, () => exportTable([body]));
    });

  serviceCommand(exports, 'update', 'change a batch export; members that are left out stay')
    .argument('<id>')
    .argument('<JSON>', 'the members to change', parseJsonObject)
    .action(async (id: string, members: Members, options: Options) => {
      const path = `batch_exports/${encodeURIComponent(id)}/`;
      const { body } = await openService(options).call('PATCH', path, members);
      printer(options)(body, () => exportTable([body]));
    });

  serviceCommand(exports, 'delete', 'delete a batch export; what is in the bucket stays')
    .argument('<id>')
    .action((id: string, options: Options) => steer(options, 'DELETE', id, '', undefined, 'Deleted.'));

  serviceCommand(exports, 'pause', 'start no new runs')
    .argument('<id>')
    .action((id: string, options: Options) => steer(options, 'POST', id, 'pause', {}, 'Paused.'));

  serviceCommand(exports, 'unpause', 'start runs again')
    .argument('<id>')
    .option('--backfill', 'also make up for the intervals that ended while it was paused')
    .action((id: string, options: Options & { backfill?: boolean }) =>
      steer(options, 'POST', id, 'unpause', { backfill: options.backfill ?? false }, 'Unpaused.'),
    );

  serviceCommand(exports, 'backfill', 'export the intervals of a range of the past')
    .argument('<id>')
    .requiredOption('--start-at <time>', 'ISO 8601 with an offset')
    .requiredOption('--end-at <time>', 'ISO 8601 with an offset')
    .option('--dry-run', 'only say what it would export')
    .action(async (id: string, options: Options & { startAt: string; endAt: string; dryRun?: boolean }) => {
      const range = { start_at: options.startAt, end_at: options.endAt };
      if (!options.dryRun) return steer(options, 'POST', id, 'backfill', range, 'Backfill started');
      const path = `batch_exports/${encodeURIComponent(id)}/backfill`;
      const { body } = await openService(options).call('POST', path, { ...range, dry_run: true });
      printer(options)(body, () => [
        ...table(
          ['interval start', 'interval end', 'intervals', 'rows'],
          [[body.start_at, body.end_at, body.intervals, body.rows]],
        ),
        ...(typeof body.detail === 'string' ? [body.detail] : []),
      ]);
    });

  serviceCommand(exports, 'retry', "open one more run of a run's interval")
    .argument('<export id>')
    .argument('<run id>')
    .action((id: string, run: string, options: Options) =>
      steer(options, 'POST', id, `runs/${encodeURIComponent(run)}/retry`, {}, 'Run started'),
    );

  serviceCommand(exports, 'runs', 'show the newest runs of a batch export')
    .argument('<id>')
    .option('--limit <number>', 'how many', '100')
    .action(async (id: string, options: Options & { limit: string }) => {
      const path = `batch_exports/${encodeURIComponent(id)}/runs/?limit=${encodeURIComponent(options.limit)}`;
      const { body } = await openService(options).call('GET', path);
      printer(options)(body, () => runTable(results(body)));
    });

  serviceCommand(exports, 'logs', 'show the newest lines of its log')
    .argument('<id>')
    .option('--limit <number>', 'how many', '100')
    .action(async (id: string, options: Options & { limit: string }) => {
      const path = `batch_exports/${encodeURIComponent(id)}/logs/?limit=${encodeURIComponent(options.limit)}`;
      const { body } = await openService(options).call('GET', path);
      printer(options)(body, () =>
        results(body)
          .reverse()
          .map(
            (line) => `${String(line.timestamp)}  ${String(line.level).padEnd(7)}  ${String(line.message)}`,
          ),
      );
    });
}

async function steer(
  options: Options,
  method: 'POST' | 'DELETE',
  id: string,
  action: string,
  body: Members | undefined,
  done: string,
): Promise<void> {
  const path = `batch_exports/${encodeURIComponent(id)}/${action}`;
  const { status, location } = await openService(options).call(method, path, body);
  const started = idIn(location);
  const accepted = status === 202;
  printer(options)({ accepted, location }, () => [
    accepted ? 'Accepted; it will be carried out.' : started === undefined ? done : `${done}: ${started}`,
  ]);
}
