import type { Command } from 'commander';
import { printer, table } from '../output.ts';
import { openService } from '../service_client.ts';
import { results, serviceCommand, type JsonObject, type ServiceCommandOptions } from './service_command.ts';

type Options = ServiceCommandOptions;

const webhookTable = (webhooks: readonly JsonObject[]): string[] =>
  table(
    ['id', 'url', 'batch export', 'enabled', 'events', 'last delivery'],
    webhooks.map((one) => [
      one.id,
      one.url,
      one.batch_export ?? 'all',
      one.enabled,
      (one.events as string[]).join(', '),
      (one.last_delivery as { detail: string } | null)?.detail,
    ]),
  );

const path = (id: string): string => `webhooks/${encodeURIComponent(id)}/`;

/** `webhook create|list|delete|test`. */
export function addWebhookCommands(program: Command): void {
  const webhooks = program
    .command('webhook')
    .description('manage webhooks for batch exports (uses the HTTP API)');

  serviceCommand(webhooks, 'create', 'send failures, pauses and recoveries to a URL')
    .requiredOption('--url <url>', 'URL that receives the messages')
    .option('--events <names>', 'event names, separated by commas; by default all')
    .option('--batch-export <id>', 'only of this batch export')
    .action(async (options: Options & { url: string; events?: string; batchExport?: string }) => {
      const { body } = await openService(options).call('POST', 'webhooks/', {
        url: options.url,
        ...(options.events === undefined
          ? {}
          : { events: options.events.split(',').map((name) => name.trim()) }),
        ...(options.batchExport === undefined ? {} : { batch_export: options.batchExport }),
      });
      printer(options)(body, () => [
        ...webhookTable([body]),
        '',
        `Signing secret: ${String(body.secret)}`,
        'Store it now: it is not shown again.',
      ]);
    });

  serviceCommand(webhooks, 'list', 'list the webhooks of the project').action(async (options: Options) => {
    const { body } = await openService(options).call('GET', 'webhooks/?limit=1000');
    printer(options)(body, () => webhookTable(results(body)));
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
}
