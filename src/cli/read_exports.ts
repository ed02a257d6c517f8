import { results, type JsonObject } from './commands/service_command.ts';
import type { ServiceClient } from './service_client.ts';

/** The largest page that the API sends. */
const pageSize = 1_000;

/** Reads all batch exports of the project, newest first, page by page. */
export async function readExports(service: Pick<ServiceClient, 'call'>): Promise<JsonObject[]> {
  const exports: JsonObject[] = [];
  for (;;) {
    const { body } = await service.call('GET', `batch_exports/?limit=${pageSize}&offset=${exports.length}`);
    const page = results(body);
    exports.push(...page);
    if (typeof body.next !== 'string' || page.length === 0) return exports;
  }
}
