import type { ApiClient } from '../../local_stack/demo/api_client.ts';
import { forEachConcurrently } from '../../temporal/concurrency.ts';
import { destinationFor } from '../formats.ts';
import type { ScratchStack } from '../scratch_stack.ts';

const requestsAtOnce = 8;

/** An export of events, under a prefix of its own. */
export async function createExport(
  stack: ScratchStack,
  api: ApiClient,
  members: { readonly name: string; readonly interval: string; readonly paused: boolean },
): Promise<string> {
  const { type, config } = destinationFor('JSONLines+gzip', stack);
  const created = await api.request<{ id: string }>('POST', '', {
    ...members,
    model: 'events',
    destination: { type, config: { ...config, prefix: members.name } },
  });
  return created?.id ?? '';
}

/** Creates many exports over HTTP, several at once. */
export async function createExports(
  stack: ScratchStack,
  api: ApiClient,
  order: { readonly count: number; readonly interval: string; readonly prefix: string },
  onCreated: () => void,
  signal: AbortSignal,
): Promise<void> {
  const names = Array.from({ length: order.count }, (_, number) => `${order.prefix}/${String(number + 1)}`);
  await forEachConcurrently(names, requestsAtOnce, async (name) => {
    signal.throwIfAborted();
    await createExport(stack, api, { name, interval: order.interval, paused: false });
    onCreated();
  });
}
