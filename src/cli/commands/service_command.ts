import type { Command } from 'commander';
import type { ServiceOptions } from '../service_client.ts';

/** Options of every command that asks the service. */
export type ServiceCommandOptions = ServiceOptions & { readonly json?: boolean };

/** A body of the service, or an item of one of its lists. */
export type Members = Record<string, unknown>;

/** A command that asks the service, with the options that all of them have. */
export function serviceCommand(parent: Command, name: string, description: string): Command {
  return parent
    .command(name)
    .description(description)
    .option('--base-url <url>', 'address of the service; else EXPORTD_BASE_URL or the stack of this clone')
    .option('--key <key>', 'API key; else EXPORTD_API_KEY or that of the stack of this clone')
    .option('--json', 'print one JSON document');
}

/** The items of a list as the service answers it. */
export const results = (body: Members): Members[] =>
  Array.isArray(body.results) ? (body.results as Members[]) : [];
