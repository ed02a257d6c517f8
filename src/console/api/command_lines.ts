import { apiPath, type Method } from './client.ts';

/** A request that an action sends, and the `exportd` command that does the same. */
export interface ActionRequest {
  readonly method: Exclude<Method, 'GET'>;
  /** Relative to the project, as for `api`. */
  readonly path: string;
  readonly body?: unknown;
  /** The arguments of `npx exportd`, such as `['export', 'pause', id]`. Without it, no line is shown. */
  readonly command?: readonly string[] | undefined;
}

/** The request as a line for a shell. The key is read from the environment: no line holds one. */
export function curlLine({ method, path, body }: ActionRequest): string {
  const url = shellWord(window.location.origin + apiPath(path));
  const parts = ['curl -sS', `-X ${method}`, '-H "Authorization: Bearer $EXPORTD_API_KEY"'];
  const content =
    body === undefined ? [] : ["-H 'Content-Type: application/json'", '-d', shellWord(JSON.stringify(body))];
  return [...parts, ...content, url].join(' ');
}

/** The command as a line for a shell. */
export const exportdLine = ({ command }: ActionRequest): string | undefined =>
  command && ['npx exportd', ...command.map(shellWord)].join(' ');

/** A word as a POSIX shell reads it literally. */
export const shellWord = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
