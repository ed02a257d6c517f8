import type { Command } from 'commander';
import { CliError } from '../cli_error.ts';
import { printer, table } from '../output.ts';
import {
  type JsonObject,
  openService,
  results,
  searchOf,
  serviceCommand,
  type ServiceCommandOptions,
} from '../service_client.ts';

type Options = ServiceCommandOptions;

interface CreateOptions {
  readonly url: string;
  readonly events?: string;
  readonly format: string;
  readonly batchExport?: string;
}

interface UpdateOptions extends Partial<CreateOptions> {
  readonly enable?: boolean;
  readonly disable?: boolean;
  readonly rotateSecret?: boolean;
}

const namesIn = (list: string): string[] => list.split(',').map((name) => name.trim());

const secretLines = (secret: string): string[] => [
  `Signing secret: ${secret}`,
  'Store it now: it is not shown again.',
];

const newSecret = async (): Promise<string> =>
  (await import('../../notifications/send_webhook.ts')).createWebhookSecret();

/** The fields of the request that options change. @throws CliError when two contradict each other */
function changedFields({ url, events, format, batchExport, enable, disable }: UpdateOptions): JsonObject {
  if (enable && disable) throw new CliError('Pass either --enable or --disable.');
  return {
    ...(url !== undefined && { url }),
    ...(events !== undefined && { events: namesIn(events) }),
    ...(format !== undefined && { format }),
    ...(batchExport !== undefined && { batch_export: batchExport === 'all' ? null : batchExport }),
    ...((enable === true || disable === true) && { enabled: enable === true }),
  };
}

const webhookTable = (webhooks: readonly JsonObject[]): string[] =>
  table(
    ['id', 'url', 'format', 'batch export', 'enabled', 'events', 'last delivery'],
    webhooks.map((one) => [
      one.id,
      one.url,
      one.format,
      one.batch_export ?? 'all',
      one.enabled,
      (one.events as string[]).join(', '),
      (one.last_delivery as { detail: string } | null)?.detail,
    ]),
  );

const deliveryTable = (deliveries: readonly JsonObject[]): string[] =>
  table(
    ['id', 'created', 'event', 'batch export', 'interval start', 'status', 'attempts', 'detail'],
    deliveries.map((one) => [
      one.id,
      one.created_at,
      one.event,
      one.batch_export_name,
      one.data_interval_start,
      one.status,
      one.attempts,
      one.detail,
    ]),
  );

const path = (id: string): string => `webhooks/${encodeURIComponent(id)}/`;

/** `webhook create|list|update|delete|test|deliveries|resend`. */
export function addWebhookCommands(program: Command): void {
  const webhooks = program
    .command('webhook')
    .description('manage webhooks for batch exports (uses the HTTP API)');

  serviceCommand(webhooks, 'create', 'send failures, pauses, recoveries and published intervals to a URL')
    .requiredOption('--url <url>', 'URL that receives the messages')
    .option('--events <names>', 'event names, separated by commas; by default all but interval.published')
    .option('--format <format>', 'json, or slack for an incoming webhook of Slack', 'json')
    .option('--batch-export <id>', 'only of this batch export')
    .action(async (options: Options & CreateOptions) => {
      const { body } = await openService(options).call('POST', 'webhooks/', {
        url: options.url,
        format: options.format,
        ...(options.events === undefined ? {} : { events: namesIn(options.events) }),
        ...(options.batchExport === undefined ? {} : { batch_export: options.batchExport }),
      });
      printer(options)(body, () => [...webhookTable([body]), '', ...secretLines(String(body.secret))]);
    });

  serviceCommand(webhooks, 'list', 'list the webhooks of the project').action(async (options: Options) => {
    const { body } = await openService(options).call('GET', 'webhooks/?limit=1000');
    printer(options)(body, () => webhookTable(results(body)));
  });

  serviceCommand(webhooks, 'update', 'change a webhook; omitted options stay unchanged')
    .argument('<id>')
    .option('--url <url>', 'URL that receives the messages')
    .option('--events <names>', 'event names, separated by commas')
    .option('--format <format>', 'json or slack')
    .option('--batch-export <id>', 'only of this batch export; "all" for all of the project')
    .option('--enable', 'send messages again')
    .option('--disable', 'send no messages')
    .option('--rotate-secret', 'sign with a new secret, which is printed once')
    .action(async (id: string, options: Options & UpdateOptions) => {
      const secret = options.rotateSecret === true ? await newSecret() : undefined;
      const fields = { ...changedFields(options), ...(secret !== undefined && { secret }) };
      if (Object.keys(fields).length === 0)
        throw new CliError('Nothing to change: pass at least one option, such as --url.');
      const { body } = await openService(options).call('PATCH', path(id), fields);
      printer(options)({ ...body, ...(secret !== undefined && { secret }) }, () => [
        ...webhookTable([body]),
        ...(secret === undefined ? [] : ['', ...secretLines(secret)]),
      ]);
    });

  serviceCommand(webhooks, 'delete', 'delete a webhook')
    .argument('<id>')
    .action(async (id: string, options: Options) => {
      await openService(options).call('DELETE', path(id));
      printer(options)({ id, deleted: true }, () => ['Deleted.']);
    });

  serviceCommand(webhooks, 'test', 'send a test message once')
    .argument('<id>')
    .action(async (id: string, options: Options) => {
      const { body } = await openService(options).call('POST', `${path(id)}test/`, {});
      printer(options)(body, () => [
        `${body.delivered === true ? 'Delivered' : 'Not delivered'}. ${String(body.detail)}`,
      ]);
      if (body.delivered !== true) process.exitCode = 1;
    });

  serviceCommand(webhooks, 'deliveries', 'list the newest deliveries of a webhook')
    .argument('<id>')
    .option('--status <names>', 'pending, delivered, failed or dropped, separated by commas')
    .option('--limit <number>', 'number of deliveries', '20')
    .action(async (id: string, options: Options & { status?: string; limit: string }) => {
      const search = searchOf({ limit: options.limit, status: options.status });
      const { body } = await openService(options).call('GET', `${path(id)}deliveries/${search}`);
      printer(options)(body, () => deliveryTable(results(body)));
    });

  serviceCommand(webhooks, 'resend', 'send the message of a delivery again')
    .argument('<id>')
    .argument('<delivery>')
    .action(async (id: string, delivery: string, options: Options) => {
      const { body } = await openService(options).call(
        'POST',
        `${path(id)}deliveries/${encodeURIComponent(delivery)}/resend/`,
        {},
      );
      printer(options)(body, () => [`Sending it again as delivery ${String(body.id)}.`]);
    });
}
