import { printer } from './output.ts';
import {
  type CommandOutcome,
  openService,
  type ServiceClient,
  type ServiceCommandOptions,
} from './service_client.ts';

/** The id at the end of a URL. */
const idIn = (location: string | null): string | undefined => location?.split('/').filter(Boolean).at(-1);

/** Sends a command of a batch export and prints what it created. */
export async function sendCommand(
  options: ServiceCommandOptions,
  send: (service: ServiceClient) => Promise<CommandOutcome>,
  message: string,
): Promise<void> {
  const { applied, location } = await send(openService(options));
  const createdId = idIn(location);
  printer(options)({ accepted: true, applied, location }, () => [
    !applied
      ? 'Accepted. The command is still being processed.'
      : createdId === undefined
        ? message
        : `${message}: ${createdId}`,
  ]);
}
