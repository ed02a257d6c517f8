import { readFileSync } from 'node:fs';
import { z } from 'zod';

/** What PostgreSQL's own clients call the ways to use TLS, without those that fall back to an unencrypted connection. */
const tlsModes = ['disable', 'require', 'verify-ca', 'verify-full'];
const fileParameters = ['sslrootcert', 'sslcert', 'sslkey'] as const;

/**
 * The URL of a PostgreSQL database. Its TLS parameters mean what they mean to `psql`: the driver gives some of them
 * another meaning unless `uselibpqcompat` is set, which this adds. Messages never quote the URL, which may hold a password.
 */
export const databaseUrl = (options: { readonly error?: string } = {}) =>
  z.string(options).transform((text, context) => {
    const url = urlWithTls(text);
    const problem = url && tlsProblem(url.searchParams);
    if (problem) context.addIssue({ code: 'custom', message: problem });
    if (!url || problem) return text;
    // The certificates that the runtime trusts, which the driver uses without a file.
    if (url.searchParams.get('sslrootcert') === 'system') url.searchParams.delete('sslrootcert');
    url.searchParams.set('uselibpqcompat', 'true');
    return url.href;
  });

/** The URL, if it has TLS parameters. */
function urlWithTls(text: string): URL | undefined {
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  const names = ['sslmode', ...fileParameters];
  return names.some((name) => url.searchParams.has(name)) ? url : undefined;
}

/** Why a connection with these parameters could not work; undefined if it can. */
function tlsProblem(parameters: URLSearchParams): string | undefined {
  const mode = parameters.get('sslmode');
  const has = (name: string): boolean => parameters.has(name);
  if (mode === null) return 'without sslmode, but has other TLS parameters: add sslmode=verify-full';
  if (!tlsModes.includes(mode)) return `invalid: sslmode must be one of ${tlsModes.join(', ')}`;
  if (mode === 'verify-ca' && !has('sslrootcert'))
    return 'invalid: sslmode=verify-ca needs the CA in sslrootcert';
  if (parameters.get('sslrootcert') === 'system' && mode !== 'verify-full')
    return 'invalid: sslrootcert=system needs sslmode=verify-full';
  if (has('sslcert') !== has('sslkey')) return 'invalid: sslcert and sslkey need each other';
  for (const name of fileParameters) {
    const path = parameters.get(name);
    const problem = path === null || path === 'system' ? undefined : fileProblem(path);
    if (problem) return `invalid: the file ${String(path)} of ${name} cannot be read (${problem})`;
  }
  return undefined;
}

function fileProblem(path: string): string | undefined {
  try {
    readFileSync(path);
    return undefined;
  } catch (error) {
    return Error.isError(error) && 'code' in error ? String(error.code) : 'unknown error';
  }
}
