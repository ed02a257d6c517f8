import { findServer } from '../../src/local_stack/servers/built_server.ts';
import { temporalServer } from '../../src/local_stack/servers/temporal.ts';

/** Path of Temporal's command line: the program that the global set-up started a server with. */
export const temporalCommand = (): Promise<string> => findServer(temporalServer, () => undefined);
