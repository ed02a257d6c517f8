import { type Command, Option } from 'commander';
import { backfillTable, needsAttention, fieldTable, runTable, statusRows } from '../export_tables.ts';
import { printer, table } from '../output.ts';
import {
  type JsonObject,
  openService,
  type Readiness,
  results,
  searchOf,
  serviceCommand,
  type ServiceCommandOptions,
} from '../service_client.ts';

type RunOptions = ServiceCommandOptions;

const runsPath = (batchExport: string, run = ''): string =>
  `batch_exports/${encodeURIComponent(batchExport)}/runs/${run === '' ? '' : `${encodeURIComponent(run)}/`}`;

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
    .option('--limit <number>', 'maximum number', '100')
    .action(
      async (id: string, options: RunOptions & { status?: string; createdBy?: string; limit: string }) => {
        const { status, createdBy: created_by, limit } = options;
        const { body } = await openService(options).call(
          'GET',
          `${runsPath(id)}${searchOf({ status, created_by, limit })}`,
        );
        printer(options)(body, () => runTable(results(body)));
      },
    );

  serviceCommand(runs, 'show', 'show a run')
    .argument('<export id>')
    .argument('<run id>')
    .action(async (id: string, run: string, options: RunOptions) => {
      const { body } = await openService(options).call('GET', runsPath(id, run));
      printer(options)(body, () => fieldTable(body));
    });

  serviceCommand(runs, 'cancel', 'cancel a run; its interval is not exported again automatically')
    .argument('<export id>')
    .argument('<run id>')
    .action(async (id: string, run: string, options: RunOptions) => {
      const { status, body } = await openService(options).call('POST', `${runsPath(id, run)}cancel/`, {});
      printer(options)(body, () => outcomeLines(status, body, runTable));
    });
}

/** What an action on a run or a backfill did: its new state, or that it is still in progress. */
const outcomeLines = (
  status: number,
  body: JsonObject,
  format: (items: readonly JsonObject[]) => string[],
): string[] => (status === 202 ? [String(body.detail)] : format([body]));

type BackfillOptions = ServiceCommandOptions;

const backfillsPath = (batchExport: string, backfill = ''): string =>
  `batch_exports/${encodeURIComponent(batchExport)}/backfills/${backfill === '' ? '' : `${encodeURIComponent(backfill)}/`}`;

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
    .option('--limit <number>', 'maximum number', '100')
    .action(async (id: string, options: BackfillOptions & { limit: string }) => {
      const { body } = await openService(options).call(
        'GET',
        `${backfillsPath(id)}${searchOf({ limit: options.limit })}`,
      );
      printer(options)(body, () => backfillTable(results(body)));
    });

  serviceCommand(backfills, 'show', 'show a backfill')
    .argument('<export id>')
    .argument('<backfill id>')
    .action(async (id: string, backfill: string, options: BackfillOptions) => {
      const { body } = await openService(options).call('GET', backfillsPath(id, backfill));
      printer(options)(body, () => fieldTable(body));
    });

  for (const [action, description] of actions)
    serviceCommand(backfills, action, description)
      .argument('<export id>')
      .argument('<backfill id>')
      .action(async (id: string, backfill: string, options: BackfillOptions) => {
        const request = `${backfillsPath(id, backfill)}${action}/`;
        const { status, body } = await openService(options).call('POST', request, {});
        printer(options)(body, () => outcomeLines(status, body, backfillTable));
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
            ],
            statusRows(exports),
          )),
    ]);
  });
}

function readinessLines({ status, act, operator_faults }: Readiness): string[] {
  const problem = act === 'ok' || act === undefined ? '' : `: ${act}`;
  return [
    `Service: ${status}${problem}`,
    ...(operator_faults ?? []).map(({ type, message, opened_at, waiting_runs }) =>
      message === undefined
        ? `Waiting for the operator since ${opened_at}: ${type}`
        : `Waiting for the operator since ${opened_at}, ${waiting_runs} runs: ${type}: ${message}`,
    ),
  ];
}
