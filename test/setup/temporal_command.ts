import { findServer } from '../../src/local_stack/servers/find_server.ts';
import { temporalServer } from '../../src/local_stack/servers/temporal.ts';

/** Path of the `temporal` program that the global set-up started the server with. */
export const temporalCommand = (): Promise<string> => findServer(temporalServer, () => undefined);
