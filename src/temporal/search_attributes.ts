import { setTimeout as wait } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
// Of a CommonJS module whose names Node cannot see, only the whole can be imported.
import proto from '@temporalio/proto';
import { isInvalidRequest } from '../failures/grpc_errors.ts';
import { searchAttributes } from '../../workflows/search_attributes.ts';
import type { ClientConnection } from './connections.ts';

const names = Object.values(searchAttributes).map(({ name }) => name);
const pollMs = 100;
/** A server learns of its new attributes within seconds; one that refuses the question for longer has another reason. */
const learningMs = 60_000;

/**
 * Registers exportd's search attributes in the namespace, where they are missing, and waits until they can be used: a
 * server knows them only a moment later, and refuses to start a workflow that has one it does not know.
 * @throws ServiceError of @temporalio/client when Temporal does not answer, or refuses for another reason or for too long.
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
  await whenUsable(client, performance.now() + learningMs, signal);
}

async function whenUsable(client: Client, deadline: number, signal: AbortSignal): Promise<void> {
  for (;;) {
    try {
      const query = names.map((name) => `${name} = ''`).join(' OR ');
      await client.workflow.count(query);
      return;
    } catch (error) {
      // This is how it answers while it does not know a name.
      if (!isInvalidRequest(error) || performance.now() > deadline) throw error;
    }
    await wait(pollMs, undefined, { signal });
  }
}
