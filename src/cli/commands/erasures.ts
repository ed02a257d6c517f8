import { setTimeout as wait } from 'node:timers/promises';
import type { Command } from 'commander';
import { CliError } from '../cli_error.ts';
import { confirm, counted, printer, table, yesOption } from '../output.ts';
import {
  type JsonObject,
  openService,
  results,
  serviceCommand,
  type ServiceCommandOptions,
} from '../service_client.ts';

interface Erasure extends JsonObject {
  readonly id: string;
  readonly status: 'Running' | 'Completed' | 'Incomplete';
  readonly progress: Readonly<Record<string, number>>;
  readonly failed: readonly { batch_export_id: string; start: string; end: string; error: string }[];
  readonly held: readonly { batch_export_id: string; object: string | null; reason: string }[];
}

const pollMs = 1_000;

const progressOf = ({ progress }: Erasure): string => {
  const of = (name: string): number => progress[name] ?? 0;
  return `${counted(of('intervals_searched'), 'interval')} searched, ${of('intervals_rewritten')} of ${of('intervals_found')} rewritten, ${counted(of('rows_erased'), 'row')} erased, ${counted(of('objects_removed'), 'object')} removed`;
};

const linesOf = (erasure: Erasure): string[] => [
  `Erasure ${erasure.id}: ${erasure.status}. ${progressOf(erasure)}.`,
  ...(erasure.failed.length === 0
    ? []
    : table(
        ['batch export', 'start', 'end', 'why it is as it was'],
        erasure.failed.map((one) => [one.batch_export_id, one.start, one.end, one.error]),
      )),
  ...erasure.held.map(({ object, reason }) => `Not removed: ${object ?? 'objects'}: ${reason}`),
];

const collect = (value: string, before: readonly string[]): readonly string[] => [...before, value];

/** `erase`, `erasures`. */
export function addErasureCommands(program: Command): void {
  serviceCommand(
    program,
    'erase',
    'erase persons from all files of a project, and keep them out of what is exported later; it cannot be undone',
  )
    .option('--distinct-id <id>', 'of a person; may be repeated', collect, [])
    .option('--status <erasure id>', 'show an erasure instead; with --json with its certificate')
    .option('--no-wait', 'do not wait for the end')
    .option(...yesOption)
    .addHelpText(
      'after',
      '\nExit codes: 0 everything is erased or still running, 1 something could not be erased.',
    )
    .action(
      async (
        options: ServiceCommandOptions & {
          distinctId: readonly string[];
          status?: string;
          wait: boolean;
          yes?: boolean;
        },
      ) => {
        const service = openService(options);
        const read = async (id: string): Promise<Erasure> =>
          (await service.call('GET', `erasures/${encodeURIComponent(id)}/`)).body as Erasure;
        if ((options.status === undefined) === (options.distinctId.length === 0))
          throw new CliError('Pass --distinct-id to erase a person, or --status to show an erasure.');
        if (options.status === undefined)
          await confirm(
            `Erase the rows of ${counted(options.distinctId.length, 'person')} from all files of the project? It cannot be undone.`,
            options,
          );
        let erasure =
          options.status === undefined
            ? ((await service.call('POST', 'erasures/', { distinct_ids: options.distinctId }))
                .body as Erasure)
            : await read(options.status);
        let shown = '';
        while (options.status === undefined && options.wait && erasure.status === 'Running') {
          const line = progressOf(erasure);
          if (line !== shown && !options.json) process.stderr.write(`${line}\n`);
          shown = line;
          await wait(pollMs);
          erasure = await read(erasure.id);
        }
        printer(options)(erasure, () => linesOf(erasure));
        if (erasure.status === 'Incomplete')
          throw new CliError(
            'Not everything could be erased. Mend the reasons, and erase the persons again.',
          );
      },
    );

  serviceCommand(program, 'erasures', 'list the erasures of a project').action(
    async (options: ServiceCommandOptions) => {
      const { body } = await openService(options).call('GET', 'erasures/');
      printer(options)(body, () =>
        table(
          ['id', 'status', 'requested by', 'at', 'progress'],
          results(body).map((one) => [
            ...[one.id, one.status, one.requested_by, one.created_at],
            progressOf(one as Erasure),
          ]),
        ),
      );
    },
  );
}
