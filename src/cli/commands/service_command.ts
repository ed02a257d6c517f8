import type { Command } from 'commander';
import type { ServiceOptions } from '../service_client.ts';

/** Options of every command that uses the HTTP API. */
export type ServiceCommandOptions = ServiceOptions & { readonly json?: boolean };

/** A response body, or an item of a list in one. */
export type JsonObject = Record<string, unknown>;

/** A command that uses the HTTP API, with its common options. */
export function serviceCommand(parent: Command, name: string, description: string): Command {
  return parent
    .command(name)
    .description(description)
    .option('--base-url <url>', 'URL of the service; by default EXPORTD_BASE_URL or the running demo')
    .option('--key <key>', 'API key; by default EXPORTD_API_KEY or that of the running demo')
    .option('--json', 'print JSON');
}

/** The items of a list response. */
export const results = (body: JsonObject): JsonObject[] =>
  Array.isArray(body.results) ? (body.results as JsonObject[]) : [];

/** The query of a URL with the given parameters; empty without any. */
export function searchOf(parameters: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(parameters).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value] as [string, string]],
  );
  return given.length === 0 ? '' : `?${new URLSearchParams(given).toString()}`;
}
