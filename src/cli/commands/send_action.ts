import { printer } from '../output.ts';
import { openService } from '../service_client.ts';
import type { JsonObject, ServiceCommandOptions } from './service_command.ts';

/** The id at the end of a URL. */
const idIn = (location: string | null): string | undefined => location?.split('/').filter(Boolean).at(-1);

/** Sends an action of a batch export and prints what it created. */
export async function sendAction(
  options: ServiceCommandOptions,
  method: 'POST' | 'DELETE',
  id: string,
  action: string,
  body: JsonObject | undefined,
  message: string,
): Promise<void> {
  const path = `batch_exports/${encodeURIComponent(id)}/${action}`;
  const { status, location } = await openService(options).call(method, path, body);
  const createdId = idIn(location);
  const accepted = status === 202;
  printer(options)({ accepted, location }, () => [
    accepted
      ? 'Accepted. The command is still being processed.'
      : createdId === undefined
        ? message
        : `${message}: ${createdId}`,
  ]);
}
