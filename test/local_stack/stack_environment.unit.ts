import { afterEach, describe, expect, it } from '@jest/globals';
import { readSettings } from '../../src/config/settings.ts';
import { stackEnvironment } from '../../src/local_stack/stack_environment.ts';

const names = ['TEMPORAL_API_KEY', 'TEMPORAL_TLS_SERVER_NAME', 'TEMPORAL_PROFILE'] as const;
afterEach(() => {
  for (const name of names) Reflect.deleteProperty(process.env, name);
});

const temporal = { address: '127.0.0.1:7', namespace: 'default' };
const environmentOf = (server: typeof temporal & { configFile?: string }) =>
  stackEnvironment({ databaseUrl: 'unused', temporal: server, httpPort: 1 }, 'keys', false);

describe("the user's credentials for Temporal", () => {
  it('reach a server that the user has named', () => {
    process.env.TEMPORAL_API_KEY = 'of the user';
    const { TEMPORAL_ADDRESS, temporal_profile } = readSettings({ ...environmentOf(temporal) });
    expect([TEMPORAL_ADDRESS, temporal_profile.apiKey]).toEqual(['127.0.0.1:7', 'of the user']);
  });

  it('do not reach the server of the stack', () => {
    for (const name of names) process.env[name] = 'of the user';
    const environment = environmentOf({ ...temporal, configFile: import.meta.filename });
    expect(names.map((name) => environment[name])).toEqual(['', '', '']);
    expect(environment.TEMPORAL_CONFIG_FILE).toBe(import.meta.filename);
  });
});
