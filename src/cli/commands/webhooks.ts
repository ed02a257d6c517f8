import type { Command } from 'commander';
import type { Webhook, WebhookDelivery, WebhookUpdateInput } from '../../client/client.ts';
import { parseCount } from '../arguments.ts';
import { CliError } from '../cli_error.ts';
import { printer, table } from '../output.ts';
import {
  allOfThem,
  asWritten,
  given,
  openService as connect,
  type ServiceClient,
  serviceCommand,
  type ServiceCommandOptions,
} from '../service_client.ts';

type Options = ServiceCommandOptions;

const openService = (options: Options): ServiceClient =>
  connect(options, {
    webhooks: ['webhook', 'webhook list'],
    deliveries: ['delivery', 'webhook deliveries'],
  });

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
function changedFields({
  url,
  events,
  format,
  batchExport,
  enable,
  disable,
}: UpdateOptions): WebhookUpdateInput {
  if (enable && disable) throw new CliError('Pass either --enable or --disable.');
  return asWritten({
    ...(url !== undefined && { url }),
    ...(events !== undefined && { events: namesIn(events) }),
    ...(format !== undefined && { format }),
    ...(batchExport !== undefined && { batch_export: batchExport === 'all' ? null : batchExport }),
    ...((enable === true || disable === true) && { enabled: enable === true }),
  });
}

const webhookTable = (webhooks: readonly Webhook[]): string[] =>
  table(
    ['id', 'url', 'format', 'batch export', 'enabled', 'events', 'last delivery'],
    webhooks.map((one) => [
      one.id,
      one.url,
      one.format,
      one.batch_export ?? 'all',
      one.enabled,
      one.events.join(', '),
      one.last_delivery?.detail,
    ]),
  );

const deliveryTable = (deliveries: readonly WebhookDelivery[]): string[] =>
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

/** `webhook create|list|update|delete|test|deliveries|resend`. */
export function addWebhookCommands(program: Command): void {
  const webhooks = program
    .command('webhook')
    .description('manage webhooks for batch exports (uses the HTTP API)');

  serviceCommand(webhooks, 'create', 'send failures, pauses, recoveries and published intervals to a URL')
    .requiredOption('--url <url>', 'URL that receives the messages')
    .option('--events <names>', 'event names, separated by commas; by default all but interval.published')
    .option('--format <format>', 'json, slack for an incoming webhook of Slack, or pagerduty', 'json')
    .option('--batch-export <id>', 'only of this batch export')
    .action(async (options: Options & CreateOptions) => {
      const { url, format, events, batchExport } = options;
      const created = await openService(options).post('/webhooks', {
        body: asWritten({
          url,
          format,
          ...(events !== undefined && { events: namesIn(events) }),
          ...(batchExport !== undefined && { batch_export: batchExport }),
        }),
      });
      printer(options)(created, () => [...webhookTable([created]), '', ...secretLines(created.secret)]);
    });

  serviceCommand(webhooks, 'list', 'list the webhooks of the project').action(async (options: Options) => {
    const found = await openService(options).get('/webhooks', allOfThem);
    printer(options)(found, () => webhookTable(found.results));
  });

  serviceCommand(webhooks, 'update', 'change a webhook; omitted options stay unchanged')
    .argument('<id>')
    .option('--url <url>', 'URL that receives the messages')
    .option('--events <names>', 'event names, separated by commas')
    .option('--format <format>', 'json, slack or pagerduty')
    .option('--batch-export <id>', 'only of this batch export; "all" for all of the project')
    .option('--enable', 'send messages again')
    .option('--disable', 'send no messages')
    .option('--rotate-secret', 'sign with a new secret, which is printed once')
    .action(async (id: string, options: Options & UpdateOptions) => {
      const secret = options.rotateSecret === true ? await newSecret() : undefined;
      const fields = { ...changedFields(options), ...(secret !== undefined && { secret }) };
      if (Object.keys(fields).length === 0)
        throw new CliError('Nothing to change: pass at least one option, such as --url.');
      const updated = await openService(options).patch('/webhooks/{id}', { path: { id }, body: fields });
      printer(options)({ ...updated, ...(secret !== undefined && { secret }) }, () => [
        ...webhookTable([updated]),
        ...(secret === undefined ? [] : ['', ...secretLines(secret)]),
      ]);
    });

  serviceCommand(webhooks, 'delete', 'delete a webhook')
    .argument('<id>')
    .action(async (id: string, options: Options) => {
      await openService(options).delete('/webhooks/{id}', { path: { id } });
      printer(options)({ id, deleted: true }, () => ['Deleted.']);
    });

  serviceCommand(webhooks, 'test', 'send a test message once')
    .argument('<id>')
    .action(async (id: string, options: Options) => {
      const tested = await openService(options).post('/webhooks/{id}/test', { path: { id } });
      printer(options)(tested, () => [
        `${tested.delivered ? 'Delivered' : 'Not delivered'}. ${tested.detail}`,
      ]);
      if (!tested.delivered) process.exitCode = 1;
    });

  serviceCommand(webhooks, 'deliveries', 'list the newest deliveries of a webhook')
    .argument('<id>')
    .option('--status <names>', 'pending, delivered, failed or dropped, separated by commas')
    .option('--limit <number>', 'number of deliveries', parseCount, 20)
    .action(async (id: string, options: Options & { status?: string; limit: number }) => {
      const { limit, status } = options;
      const found = await openService(options).get('/webhooks/{id}/deliveries', {
        path: { id },
        query: given({ limit, status }),
      });
      printer(options)(found, () => deliveryTable(found.results));
    });

  serviceCommand(webhooks, 'resend', 'send the message of a delivery again')
    .argument('<id>')
    .argument('<delivery>')
    .action(async (id: string, delivery: string, options: Options) => {
      const resent = await openService(options).post('/webhooks/{id}/deliveries/{delivery_id}/resend', {
        path: { id, delivery_id: delivery },
      });
      printer(options)(resent, () => [`Sending it again as delivery ${resent.id}.`]);
    });
}
