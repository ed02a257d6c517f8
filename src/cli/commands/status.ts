import type { Command } from 'commander';
import { needsAttention, statusRows } from '../export_tables.ts';
import { printer, table } from '../output.ts';
import {
  openService,
  type Readiness,
  serviceCommand,
  type ServiceCommandOptions,
} from '../service_client.ts';

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
