import { deriveKeys } from '../../config/key_ring.ts';
import { type Settings, SettingsError } from '../../config/settings.ts';
import { signingPurpose } from './signatures.ts';

/** The settings that the role of queries is known by. */
export type QueryRoleSettings = Pick<Settings, 'EXPORTD_QUERY_DATABASE_URL' | 'EXPORTD_ENCRYPTION_KEYS'>;

/** The role that queries run under. */
export interface QueryRole {
  readonly url: string;
  readonly name: string;
  readonly password: string;
  /** The keys that may sign for it; the first one signs. */
  readonly keys: readonly [Buffer, ...Buffer[]];
}

/** The role of queries, or undefined if queries run under the role of the source. @throws SettingsError */
export function queryRoleOf(settings: QueryRoleSettings): QueryRole | undefined {
  const { EXPORTD_QUERY_DATABASE_URL: url, EXPORTD_ENCRYPTION_KEYS: ring } = settings;
  if (url === undefined) return undefined;
  const { username, password } = URL.canParse(url) ? new URL(url) : { username: '', password: '' };
  if (username === '')
    throw new SettingsError(
      'EXPORTD_QUERY_DATABASE_URL has no user: it names the role that queries run under, as in postgresql://exportd_query:password@host/database.',
    );
  const [signing, ...older] = deriveKeys(ring ?? '', signingPurpose);
  if (!signing) throw new SettingsError('EXPORTD_ENCRYPTION_KEYS contains no key.');
  return {
    url,
    name: decodeURIComponent(username),
    password: decodeURIComponent(password),
    keys: [signing, ...older],
  };
}
