import type { ApiClient } from '../../local_stack/demo/api_client.ts';
import { forEachConcurrently } from '../../temporal/concurrency.ts';
import { destinationFor } from '../formats.ts';
import type { ScratchStack } from '../scratch_stack.ts';

const maxConcurrentRequests = 8;

/** Creates an export of events with its own prefix. */
export async function createExport(
  stack: ScratchStack,
  api: ApiClient,
  fields: { readonly name: string; readonly interval: string; readonly paused: boolean },
): Promise<string> {
  const { type, config } = destinationFor('JSONLines+gzip', stack);
  const created = await api.request<{ id: string }>('POST', '', {
    ...fields,
    model: 'events',
    destination: { type, config: { ...config, prefix: fields.name } },
  });
  return created?.id ?? '';
}

/** Creates many exports with concurrent HTTP requests. */
export async function createExports(
  stack: ScratchStack,
  api: ApiClient,
  request: { readonly count: number; readonly interval: string; readonly prefix: string },
  onCreated: () => void,
  signal: AbortSignal,
): Promise<void> {
  const names = Array.from(
    { length: request.count },
    (_, number) => `${request.prefix}/${String(number + 1)}`,
  );
  await forEachConcurrently(names, maxConcurrentRequests, async (name) => {
    signal.throwIfAborted();
    await createExport(stack, api, { name, interval: request.interval, paused: false });
    onCreated();
  });
}
