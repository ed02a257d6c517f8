import { setTimeout as wait } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
// Node cannot see the names of this CommonJS module, so it is imported whole.
import proto from '@temporalio/proto';
import { isInvalidRequest } from '../failures/grpc_errors.ts';
import { searchAttributes } from '../../workflows/search_attributes.ts';
import type { ClientConnection } from './connections.ts';

const names = Object.values(searchAttributes).map(({ name }) => name);
const pollMs = 100;
/** A server makes new attributes usable within seconds; a longer rejection has another reason. */
const timeoutMs = 60_000;

/**
 * Registers exportd's missing search attributes in the namespace and waits until they are usable. The server needs a
 * moment for that, and rejects starts of workflows with an unknown attribute.
 * @throws ServiceError of @temporalio/client when Temporal does not respond, or rejects them for another reason or too long
 */
export async function registerSearchAttributes(
  { client, connection }: Pick<ClientConnection, 'client' | 'connection'>,
  signal: AbortSignal,
): Promise<void> {
  const { namespace } = client.options;
  const { operatorService } = connection;
  const { customAttributes } = await operatorService.listSearchAttributes({ namespace });
  const missing = names.filter((name) => !(name in customAttributes));
  if (missing.length > 0)
    await operatorService.addSearchAttributes({
      namespace,
      searchAttributes: Object.fromEntries(
        missing.map((name) => [
          name,
          proto.temporal.api.enums.v1.IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
        ]),
      ),
    });
  await waitUntilUsable(client, performance.now() + timeoutMs, signal);
}

async function waitUntilUsable(client: Client, deadline: number, signal: AbortSignal): Promise<void> {
  for (;;) {
    try {
      const query = names.map((name) => `${name} = ''`).join(' OR ');
      await client.workflow.count(query);
      return;
    } catch (error) {
      // The server rejects the query as invalid while it does not know a name.
      if (!isInvalidRequest(error) || performance.now() > deadline) throw error;
    }
    await wait(pollMs, undefined, { signal });
  }
}
