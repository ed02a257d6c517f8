import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { BlockList, isIP } from 'node:net';
import { parse as parseMilliseconds } from '@lukeed/ms';
import * as z from 'zod';

/** Timers and PostgreSQL's timeouts are 32-bit numbers of milliseconds, 24.8 days at most. */
const maxWait = '24d';

const sizeUnits: Readonly<Record<string, number>> = { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 };

interface Bounds<T> {
  readonly min?: T;
  readonly max?: T;
}

/** What the table of settings shows besides the description; see `settings_table.ts`. */
export interface SettingMeta {
  readonly description?: string | undefined;
  /** The default as an operator would write it. */
  readonly default?: string | undefined;
  /** When to change the setting, of the ten that a deployment decides first. */
  readonly when?: string | undefined;
}

/** @returns Milliseconds, or undefined when the text is not a whole number of them with a unit, such as `1.5s`. */
function parseDuration(text: string): number | undefined {
  if (!/^\d+(\.\d+)?(ms|s|m|h|d)$/.test(text)) return undefined;
  // The library has no result for zero.
  const parsed = parseFloat(text) === 0 ? 0 : parseMilliseconds(text);
  return Number.isSafeInteger(parsed) ? parsed : undefined;
}

/** @returns Bytes, or undefined when the text is not a whole number of them with a unit, such as `1.5MiB`. */
function parseSize(text: string): number | undefined {
  const [, amount, unit = ''] = /^(\d+(?:\.\d+)?)(B|KiB|MiB|GiB)$/.exec(text) ?? [];
  const bytes = Number(amount) * (sizeUnits[unit] ?? NaN);
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

const parseCount = (text: string): number | undefined =>
  /^\d+$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : undefined;

const parseFraction = (text: string): number | undefined =>
  /^\d+(\.\d+)?$/.test(text) ? Number(text) : undefined;

/**
 * A setting whose text `parse` turns into a number. The bounds are written like values, because the messages quote
 * them.
 */
function numeric(parse: (text: string) => number | undefined, expected: string, bounds: Bounds<string>) {
  const { min, max } = bounds;
  return z.string().transform((text, context) => {
    const value = parse(text);
    const reject = (message: string) => {
      context.addIssue({ code: 'custom', message: `${text}: ${message}` });
      return z.NEVER;
    };
    if (value === undefined) return reject(`write ${expected}`);
    if (min !== undefined && value < (parse(min) ?? 0)) return reject(`it must be at least ${min}`);
    if (max !== undefined && value > (parse(max) ?? 0)) return reject(`it must be at most ${max}`);
    return value;
  });
}

const durationOf = (bounds: Bounds<string>) =>
  numeric(parseDuration, 'a duration with its unit, such as 30s', {
    max: maxWait,
    ...bounds,
  });

/** A duration, in milliseconds once it is parsed. It must fit a timer unless `max` says otherwise. */
export const duration = (fallback: string, bounds: Bounds<string> = {}) =>
  durationOf(bounds).prefault(fallback).meta({ default: fallback });

/** A duration whose default depends on other things, which the description names. */
export const optionalDuration = (bounds: Bounds<string> = {}) => durationOf(bounds).optional();

/** A size, in bytes once it is parsed. */
export const size = (fallback: string, bounds: Bounds<string> = {}) =>
  numeric(parseSize, 'a size with its unit, such as 64MiB', bounds)
    .prefault(fallback)
    .meta({ default: fallback });

const countOf = ({ min = 1, max }: Bounds<number>) =>
  numeric(
    parseCount,
    max === undefined
      ? `a whole number, at least ${String(min)}`
      : `a whole number from ${String(min)} to ${String(max)}`,
    { min: String(min), ...(max !== undefined && { max: String(max) }) },
  );

/** A whole number, at least 1 unless `min` says otherwise. */
export const count = (fallback: number, bounds: Bounds<number> = {}) =>
  countOf(bounds)
    .prefault(String(fallback))
    .meta({ default: String(fallback) });

/** A count whose default follows the machine, as the description says. */
export const machineCount = (fallback: number, bounds: Bounds<number> = {}) =>
  countOf(bounds).prefault(String(fallback));

/** A count whose default depends on other things, which the description names. */
export const optionalCount = (bounds: Bounds<number> = {}) => countOf(bounds).optional();

/** A size whose default follows the machine, as the description says. */
export const machineSize = (fallback: string, bounds: Bounds<string> = {}) =>
  numeric(parseSize, 'a size with its unit, such as 64MiB', bounds).prefault(fallback);

/** A number from 0 to 1. */
export const fraction = (fallback: number) =>
  numeric(parseFraction, 'a number from 0 to 1, such as 0.2', { max: '1' })
    .prefault(String(fallback))
    .meta({ default: String(fallback) });

/** One of some words. */
export const oneOf = <const T extends readonly string[]>(words: T, fallback: T[number]) =>
  z
    .enum(words, { error: ({ input }) => `${String(input)}: write one of ${words.join(', ')}` })
    .prefault(fallback as never)
    .meta({ default: fallback });

/** `true`, `false`, `1` or `0`. */
export const flag = (fallback: boolean) =>
  oneOf(['true', 'false', '1', '0'], fallback ? 'true' : 'false')
    .transform((value) => value === 'true' || value === '1')
    .meta({ default: String(fallback) });

/** A flag whose default depends on other settings, which the description names. */
export const optionalFlag = () =>
  z
    .enum(['true', 'false', '1', '0'], {
      error: ({ input }) => `${String(input)}: write one of true, false, 1, 0`,
    })
    .transform((value) => value === 'true' || value === '1')
    .optional();

/** Networks that are never listed: link-local ones, where clouds have their metadata services. */
const linkLocal = new BlockList();
linkLocal.addSubnet('169.254.0.0', 16, 'ipv4');
linkLocal.addSubnet('fe80::', 10, 'ipv6');

/** Why an entry is no network that may be listed; undefined if it may. */
function networkProblem(entry: string): string | undefined {
  if (!isNetwork(entry)) return `invalid: "${entry}" is not a network such as 10.20.0.0/16 or fd00:12::/64`;
  const [address = ''] = entry.split('/');
  return linkLocal.check(address, isIP(address) === 4 ? 'ipv4' : 'ipv6')
    ? `invalid: ${entry} is link-local, which is never allowed`
    : undefined;
}

/** Private networks: all (`true`), none (`false`), `loopback`, or a list of networks, in which `loopback` is one. */
export const privateNetworks = (fallback: string) =>
  z
    .string()
    .prefault(fallback)
    .transform((value, context): boolean | 'loopback' | readonly string[] => {
      if (value === 'true' || value === '1') return true;
      if (value === 'false' || value === '0') return false;
      if (value === 'loopback') return value;
      const entries = value.split(',').map((entry) => entry.trim());
      for (const entry of entries) {
        const problem = entry === 'loopback' ? undefined : networkProblem(entry);
        if (problem !== undefined) context.addIssue({ code: 'custom', message: problem });
      }
      return entries;
    })
    .meta({ default: fallback });

/** Text of any form. Messages never quote it, because some of these settings are secrets. */
export const text = (fallback: string) => z.string().prefault(fallback).meta({ default: fallback });

/** An HTTP or HTTPS URL. Messages do not quote it, because it may hold a password. */
export const url = () => z.url({ protocol: /^https?$/, error: 'not a URL: write one such as https://host' });

/** A URL that paths are appended to. The server refuses one whose path is its own (`src/http/plugins/base_path.ts`). */
export const baseUrl = () =>
  url().superRefine((text, context) => {
    if (!URL.canParse(text)) return;
    const { pathname, search, hash, username, password } = new URL(text);
    const path = pathname.replace(/\/+$/, '');
    const refuse = (message: string) => {
      context.addIssue({ code: 'custom', message: `invalid: ${message}` });
    };
    if (search + hash + username + password !== '')
      refuse('it has a scheme, a host and a path alone, such as https://host/tools/exportd');
    else if (!/^(\/[\w.~%-]+)*$/.test(path))
      refuse('its path has letters, digits and the characters - . _ ~ alone');
  });

/** The URL of a proxy. Messages do not quote it, because it may hold a password. */
export const proxyUrl = () =>
  z.string().refine(isProxyUrl, {
    error:
      'not a URL of a proxy: write one such as http://proxy:3128, with user and password percent-encoded',
  });

/** Whether Node takes it. Its own error quotes the URL. */
function isProxyUrl(text: string): boolean {
  if (!/^https?:\/\/[^\s\p{Cc}]+$/iu.test(text) || !URL.canParse(text)) return false;
  const { username, password } = new URL(text);
  return [username, password].every(isDecodable);
}

function isDecodable(encoded: string): boolean {
  try {
    decodeURIComponent(encoded);
    return true;
  } catch {
    return false;
  }
}

/** As `src/network/proxies.ts` has it. */
interface ProxyBypass {
  readonly host: string;
  readonly port: string | undefined;
}

/** Hosts as tools list them in NO_PROXY: names, with or without `.` or `*.` in front, addresses, networks, and `*`. */
export const proxyBypasses = () =>
  z.string().transform((text, context) =>
    text
      .toLowerCase()
      .split(/[\s,]+/)
      .filter((entry) => entry !== '')
      .map((entry): ProxyBypass => {
        const bypass = proxyBypassOf(entry);
        if (bypass) return bypass;
        context.addIssue({
          code: 'custom',
          message: `invalid: "${entry}" is none of the forms host, .host, host:port, 10.0.0.0/8 and *`,
        });
        return z.NEVER;
      }),
  );

function proxyBypassOf(entry: string): ProxyBypass | undefined {
  if (entry === '*' || isNetwork(entry)) return { host: entry, port: undefined };
  const [, bracketed, plain = '', port] = /^(?:\[([^\]]+)\]|([^[\]:]+))(?::(\d{1,5}))?$/.exec(entry) ?? [];
  if (bracketed !== undefined) return isIP(bracketed) === 6 ? { host: bracketed, port } : undefined;
  const host = plain.replace(/^\*?\./, '').replace(/\.$/, '');
  return /^[\p{L}\p{N}_-]+(\.[\p{L}\p{N}_-]+)*$/u.test(host) ? { host, port } : undefined;
}

/** Addresses and networks, separated by commas, as a list. */
export const networkList = () =>
  z.string().transform((text, context) => {
    const networks = text.split(',').map((network) => network.trim());
    const invalid = networks.find((network) => !isNetwork(network));
    if (invalid === undefined) return networks;
    context.addIssue({
      code: 'custom',
      message: `invalid: "${invalid}" is no address or network such as 10.0.0.0/8`,
    });
    return z.NEVER;
  });

/** Ids of AWS accounts, separated by commas, as a list. */
export const accountList = () =>
  z
    .string()
    .regex(
      /^\s*\d{12}(\s*,\s*\d{12})*\s*$/,
      'invalid: write ids of AWS accounts, such as 123456789012,210987654321',
    )
    .transform((text) => text.split(',').map((account) => account.trim()));

/** The name of an HTTP header, in lower case. */
export const headerName = () =>
  z
    .string()
    .toLowerCase()
    .regex(/^[a-z0-9-]+$/, { error: ({ input }) => `invalid: "${String(input)}" is no name of a header` });

/** Whether a text is an address, or a network such as 10.0.0.0/8. */
function isNetwork(text: string): boolean {
  const [address = '', prefix, ...more] = text.split('/');
  const version = isIP(address);
  if (version === 0 || more.length > 0) return false;
  return prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= (version === 4 ? 32 : 128));
}

/** A text that is never shown. */
export const secret = () => z.string();

/** The path of a PEM file with certificates. The value is the text of the file. */
export const caBundle = () =>
  z
    .string()
    .transform((path, context) => {
      try {
        const pem = readFileSync(path, 'utf8');
        // Reads the first certificate. A file without one would make every connection fail later.
        new X509Certificate(pem);
        return pem;
      } catch (error) {
        const problem = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
        context.addIssue({
          code: 'custom',
          message: `${path}, which is not a readable PEM file with certificates (${problem})`,
        });
        return z.NEVER;
      }
    })
    .optional();

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
    const problem = unsupportedUrl(text) ?? (url && tlsProblem(url.searchParams));
    if (problem) context.addIssue({ code: 'custom', message: problem });
    if (!url || problem) return text;
    // The certificates that the runtime trusts, which the driver uses without a file.
    if (url.searchParams.get('sslrootcert') === 'system') url.searchParams.delete('sslrootcert');
    url.searchParams.set('uselibpqcompat', 'true');
    return url.href;
  });

/** Parameters of PostgreSQL's own clients that exportd does not take, and what to do instead. */
const unsupportedParameters: readonly (readonly [names: readonly string[], instead: string])[] = [
  [
    ['target_session_attrs', 'load_balance_hosts', 'hostaddr'],
    'exportd connects to the one host of the URL and finds out itself whether that is a standby: leave it out',
  ],
  [
    ['application_name', 'fallback_application_name'],
    'exportd recognizes its own sessions by their name: leave it out',
  ],
  [
    [
      'connect_timeout',
      'keepalives',
      'keepalives_idle',
      'keepalives_interval',
      'keepalives_count',
      'tcp_user_timeout',
      'client_encoding',
      'replication',
    ],
    'exportd sets that itself: leave it out',
  ],
  [['service', 'servicefile', 'passfile', 'dbname'], 'write host, database, user and password into the URL'],
  [
    [
      'channel_binding',
      'require_auth',
      'requirepeer',
      'sslcompression',
      'sslpassword',
      'sslcertmode',
      'sslcrl',
      'sslcrldir',
      'sslsni',
      'requiressl',
      'sslkeylogfile',
      'ssl_min_protocol_version',
      'ssl_max_protocol_version',
      'min_protocol_version',
      'max_protocol_version',
      'gssencmode',
      'krbsrvname',
      'gsslib',
      'gssdelegation',
      'scram_client_key',
      'scram_server_key',
    ],
    "exportd's driver does not have it: leave it out, and use sslmode=verify-full to be sure of the server",
  ],
];

/** Why PostgreSQL's own clients take a text that exportd does not; undefined for others, which the driver checks. */
function unsupportedUrl(text: string): string | undefined {
  if (/^\s*\w+\s*=/.test(text))
    return 'invalid: write it as a URL, postgresql://user:password@host:5432/database';
  if (!/^postgres(?:ql)?:\/\//.test(text)) return undefined;
  const [, hosts = ''] = /^\w+:\/\/(?:[^@/?#]*@)?([^/?#]*)/.exec(text) ?? [];
  const several = `invalid: it names several hosts, and exportd connects to one. Name the primary, or an address that leads to it after a failover: HAProxy, PgBouncer or a virtual IP before them, or the name that your provider gives`;
  if (hosts.includes(',')) return several;
  if (!URL.canParse(text))
    return 'invalid: it is not a URL of the form postgresql://user:password@host:5432/database. Characters such as @ : / ? # % in a password are percent-encoded';
  const { searchParams } = new URL(text);
  if (['host', 'port'].some((name) => searchParams.get(name)?.includes(','))) return several;
  for (const [names, instead] of unsupportedParameters) {
    const found = names.find((name) => searchParams.has(name));
    if (found !== undefined) return `invalid: it has ${found}, and ${instead}`;
  }
  return undefined;
}

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
    return error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
  }
}
