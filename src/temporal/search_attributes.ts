import { setTimeout as wait } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
// Of a CommonJS module whose names Node cannot see, only the whole can be imported.
import proto from '@temporalio/proto';
import { searchAttributes } from '../../workflows/search_attributes.ts';
import type { ClientConnection } from './connections.ts';
import { requestPatienceMs } from './task_queues.ts';

const names = Object.values(searchAttributes).map(({ name }) => name);
const pollMs = 100;

/**
 * Registers exportd's search attributes in the namespace, where they are missing, and waits until they can be used: a
 * server knows them only a moment later, and refuses to start a workflow that has one it does not know.
 */
export async function registerSearchAttributes(
  { client, connection }: Pick<ClientConnection, 'client' | 'connection'>,
  signal: AbortSignal,
): Promise<void> {
  const { namespace } = client.options;
  const { operatorService } = connection;
  const soon = <Result>(work: () => Promise<Result>): Promise<Result> =>
    connection.withDeadline(Date.now() + requestPatienceMs, work);
  const { customAttributes } = await soon(() => operatorService.listSearchAttributes({ namespace }));
  const missing = names.filter((name) => !(name in customAttributes));
  if (missing.length > 0)
    await soon(() =>
      operatorService.addSearchAttributes({
        namespace,
        searchAttributes: Object.fromEntries(
          missing.map((name) => [
            name,
            proto.temporal.api.enums.v1.IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
          ]),
        ),
      }),
    );
  while (!(await areUsable(client))) await wait(pollMs, undefined, { signal });
}

async function areUsable(client: Client): Promise<boolean> {
  try {
    await client.workflow.count(names.map((name) => `${name} = ''`).join(' OR '));
    return true;
  } catch {
    return false;
  }
}
