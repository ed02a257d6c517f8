/** Variables that a process takes from its environment besides settings: which have an effect, and which are refused by name. */
import { SettingsError } from './settings_error.ts';

type Environment = Readonly<Record<string, string>>;

/** Proxies. Tools disagree about their case; Node prefers the lower one. */
const proxyNames = ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY'] as const;

const ofDestinations =
  'it would move the requests of all projects. Set endpoint_url of a destination instead';
const ofDatabases =
  'the driver gives it to all databases, and it does not mean what it means to psql. Write it into DATABASE_URL';
const ofClient =
  'exportd decides that itself for each destination, and the variable would change it for all. Unset it';

/** What libraries read by themselves, and why exportd does not start with it. README.md has the same table. */
const refused: Readonly<Record<string, string>> = {
  AWS_ENDPOINT_URL: ofDestinations,
  AWS_ENDPOINT_URL_S3: ofDestinations,
  AWS_AUTH_SCHEME_PREFERENCE: ofClient,
  AWS_DEFAULTS_MODE: ofClient,
  AWS_DISABLE_CLOCK_SKEW_CORRECTION: ofClient,
  AWS_MAX_ATTEMPTS: ofClient,
  AWS_REQUEST_CHECKSUM_CALCULATION: ofClient,
  AWS_RESPONSE_CHECKSUM_VALIDATION: ofClient,
  AWS_RETRY_MODE: ofClient,
  AWS_S3_DISABLE_EXPRESS_SESSION_AUTH: ofClient,
  AWS_S3_DISABLE_MULTIREGION_ACCESS_POINTS: ofClient,
  AWS_S3_USE_ARN_REGION: ofClient,
  AWS_SIGV4A_SIGNING_REGION_SET: ofClient,
  PGBINARY: ofDatabases,
  PGCLIENT_ENCODING: ofDatabases,
  PGOPTIONS: ofDatabases,
  PGREPLICATION: ofDatabases,
  PGSSLMODE: ofDatabases,
  PGSSLNEGOTIATION: ofDatabases,
  NODE_PG_FORCE_NATIVE: "exportd's driver is the one of JavaScript. Unset it",
  NODE_USE_ENV_PROXY:
    'exportd uses HTTPS_PROXY and HTTP_PROXY without it, and its own addresses never through a proxy. Unset it',
};

/** Whether the agents of this Node know proxies. */
function knowsProxies(): boolean {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  return major > 24 || (major === 24 && minor >= 5) || (major === 22 && minor >= 21);
}

/**
 * Checks what is not a setting, and gives the names of proxies one case.
 * @param environment without empty variables
 * @throws SettingsError that names the variable
 */
export function readProcessEnvironment(environment: Environment): Environment {
  for (const [name, reason] of Object.entries(refused))
    if (environment[name] !== undefined) throw new SettingsError(`${name} is not supported: ${reason}.`);
  if (environment.NODE_TLS_REJECT_UNAUTHORIZED === '0')
    throw new SettingsError(
      'NODE_TLS_REJECT_UNAUTHORIZED is not supported: anyone could answer in place of a server. Name your CA in NODE_EXTRA_CA_CERTS, or for S3 servers in EXPORTD_S3_CA_BUNDLE.',
    );
  const given = { ...environment };
  for (const name of proxyNames) {
    const value = environment[name.toLowerCase()] ?? environment[name];
    if (value !== undefined) given[name] = value;
  }
  const proxy = ['HTTPS_PROXY', 'HTTP_PROXY'].find((name) => given[name] !== undefined);
  if (proxy === undefined && (given.ALL_PROXY ?? given.all_proxy) !== undefined)
    throw new SettingsError('ALL_PROXY is not supported: set HTTPS_PROXY and HTTP_PROXY.');
  if (proxy !== undefined && !knowsProxies())
    throw new SettingsError(
      `${proxy} needs Node 22.21 or 24.5: this is Node ${process.versions.node}, which knows no proxies. Update Node, or unset the variable.`,
    );
  return given;
}
