import { type Command, Option } from 'commander';
import { backfillTable, needsAttention, fieldTable, runTable, statusRows } from '../export_tables.ts';
import { parseCount } from '../arguments.ts';
import { printer, table } from '../output.ts';
import {
  given,
  openService,
  type Readiness,
  serviceCommand,
  type ServiceCommandOptions,
} from '../service_client.ts';

type RunOptions = ServiceCommandOptions;

interface ListOptions extends RunOptions {
  readonly status?: string;
  readonly createdBy?: 'schedule' | 'backfill';
  readonly limit: number;
}

/** `run list|show|cancel`. */
export function addRunCommands(program: Command): void {
  const runs = program.command('run').description('runs of batch exports (uses the HTTP API)');

  serviceCommand(runs, 'list', 'list the newest runs of a batch export')
    .argument('<export id>')
    .option('--status <statuses>', 'only these statuses, comma-separated, for example Failed,Running')
    .addOption(
      new Option('--created-by <what>', 'only runs of the schedule, or of backfills and retries').choices([
        'schedule',
        'backfill',
      ]),
    )
    .option('--limit <number>', 'maximum number', parseCount, 100)
    .action(async (id: string, options: ListOptions) => {
      const { status, createdBy: created_by, limit } = options;
      const found = await openService(options).get('/batch_exports/{batch_export_id}/runs', {
        path: { batch_export_id: id },
        query: given({ status, created_by, limit }),
      });
      printer(options)(found, () => runTable(found.results));
    });

  serviceCommand(runs, 'show', 'show a run')
    .argument('<export id>')
    .argument('<run id>')
    .action(async (id: string, run: string, options: RunOptions) => {
      const path = { batch_export_id: id, id: run };
      const found = await openService(options).get('/batch_exports/{batch_export_id}/runs/{id}', { path });
      printer(options)(found, () => fieldTable(found));
    });

  serviceCommand(runs, 'cancel', 'cancel a run; its interval is not exported again automatically')
    .argument('<export id>')
    .argument('<run id>')
    .action(async (id: string, run: string, options: RunOptions) => {
      const path = { batch_export_id: id, id: run };
      const cancelled = await openService(options).post('/batch_exports/{batch_export_id}/runs/{id}/cancel', {
        path,
      });
      printer(options)(cancelled, () => ('detail' in cancelled ? [cancelled.detail] : runTable([cancelled])));
    });
}

type BackfillOptions = ServiceCommandOptions;

const actions = [
  ['cancel', 'cancel a backfill and its unfinished runs'],
  ['pause', 'pause a backfill: start no more of its runs'],
  ['unpause', 'unpause a backfill'],
] as const;

/** `backfill list|show|cancel|pause|unpause`. */
export function addBackfillCommands(program: Command): void {
  const backfills = program
    .command('backfill')
    .description('backfills of batch exports (uses the HTTP API); "export backfill" starts one');

  serviceCommand(backfills, 'list', 'list the backfills of a batch export with their progress')
    .argument('<export id>')
    .option('--limit <number>', 'maximum number', parseCount, 100)
    .action(async (id: string, options: BackfillOptions & { limit: number }) => {
      const { limit } = options;
      const found = await openService(options).get('/batch_exports/{batch_export_id}/backfills', {
        path: { batch_export_id: id },
        query: { limit },
      });
      printer(options)(found, () => backfillTable(found.results));
    });

  serviceCommand(backfills, 'show', 'show a backfill')
    .argument('<export id>')
    .argument('<backfill id>')
    .action(async (id: string, backfill: string, options: BackfillOptions) => {
      const path = { batch_export_id: id, id: backfill };
      const found = await openService(options).get('/batch_exports/{batch_export_id}/backfills/{id}', {
        path,
      });
      printer(options)(found, () => fieldTable(found));
    });

  for (const [action, description] of actions)
    serviceCommand(backfills, action, description)
      .argument('<export id>')
      .argument('<backfill id>')
      .action(async (id: string, backfill: string, options: BackfillOptions) => {
        const path = { batch_export_id: id, id: backfill };
        const changed = await openService(options).post(
          `/batch_exports/{batch_export_id}/backfills/{id}/${action}`,
          { path },
        );
        printer(options)(changed, () => ('detail' in changed ? [changed.detail] : backfillTable([changed])));
      });
}

/** The exit code of `status` when something needs attention; 1 is that of a command that failed. */
const attentionExitCode = 2;

/** `status`. */
export function addStatusCommand(program: Command): void {
  serviceCommand(
    program,
    'status',
    'show the state of the service and of every batch export, what needs attention first; exits with 2 if anything does (uses the HTTP API)',
  ).action(async (options: ServiceCommandOptions) => {
    const service = openService(options);
    const [readiness, exports] = await Promise.all([service.readiness(), service.exports()]);
    if (needsAttention(readiness, exports)) process.exitCode = attentionExitCode;
    printer(options)({ service: readiness, batch_exports: exports }, () => [
      ...readinessLines(readiness),
      '',
      ...(exports.length === 0
        ? ['No batch exports. Create one with "exportd export create".']
        : table(
            [
              'severity',
              'condition',
              'id',
              'name',
              'model',
              'interval',
              'lag',
              'newest completed interval',
              'detail',
              'exported',
            ],
            statusRows(exports),
          )),
    ]);
  });
}

function readinessLines({ status, act, operator_faults }: Readiness): string[] {
  const problem = act === 'ok' || act === undefined ? '' : `: ${act}`;
  const isWaiting = status === 'ok' && (operator_faults ?? []).length > 0;
  return [
    isWaiting ? 'Service: its operator has to act' : `Service: ${status}${problem}`,
    ...(operator_faults ?? []).map(({ type, message, opened_at, waiting_runs }) =>
      message === undefined
        ? `Waiting for the operator since ${opened_at}: ${type}`
        : `Waiting for the operator since ${opened_at}, ${waiting_runs} runs: ${type}: ${message}`,
    ),
  ];
}
