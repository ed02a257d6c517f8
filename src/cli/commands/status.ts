import type { Command } from 'commander';
import { attentionOf, statusRows } from '../export_status.ts';
import { printer, table } from '../output.ts';
import { readExports } from '../read_exports.ts';
import { openService, type Readiness } from '../service_client.ts';
import { serviceCommand, type ServiceCommandOptions } from './service_command.ts';

/** `status`. */
export function addStatusCommand(program: Command): void {
  serviceCommand(
    program,
    'status',
    'show the state of the service and of every batch export, what needs attention first (uses the HTTP API)',
  ).action(async (options: ServiceCommandOptions) => {
    const service = openService(options);
    const [readiness, exports] = await Promise.all([service.readiness(), readExports(service)]);
    const json = {
      service: readiness,
      batch_exports: exports.map((one) => ({ ...one, attention: attentionOf(one) })),
    };
    printer(options)(json, () => [
      ...readinessLines(readiness),
      '',
      ...(exports.length === 0
        ? ['No batch exports. Create one with "exportd export create".']
        : table(
            ['state', 'id', 'name', 'model', 'interval', 'lag', 'newest completed interval', 'detail'],
            statusRows(exports),
          )),
    ]);
  });
}

function readinessLines({ status, act, operator_faults }: Readiness): string[] {
  const problem = act === 'ok' || act === undefined ? '' : `: ${act}`;
  return [
    `Service: ${status}${problem}`,
    ...(operator_faults ?? []).map(
      ({ type, message, opened_at, waiting_runs }) =>
        `Waiting for the operator since ${opened_at}, ${waiting_runs} runs: ${type}: ${message}`,
    ),
  ];
}
