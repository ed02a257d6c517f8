import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from '@jest/globals';
import { readSettings } from '../../src/config/settings.ts';
import { saveDemoState } from '../../src/local_stack/demo/demo_file.ts';
import { acquireLock, identify, LockHeld } from '../../src/local_stack/lock.ts';
import { assignPorts } from '../../src/local_stack/ports.ts';
import { requireSameSource, stackEnvironment } from '../../src/local_stack/stack_environment.ts';
import { temporaryFolder } from './data_folder.ts';

describe('the lock of a data folder', () => {
  const folder = temporaryFolder();

  it('is held by one process until it is released', () => {
    const file = folder.inside('held');
    const release = acquireLock(file);
    expect(() => acquireLock(file)).toThrow(LockHeld);
    release();
    expect(existsSync(file)).toBe(false);
    expect(() => acquireLock(file)).not.toThrow();
  });

  it('is free when its holder was killed', () => {
    const file = folder.inside('killed');
    const { pid } = spawnSync('true');
    writeFileSync(file, JSON.stringify({ pid, started: 'once' }));
    expect(() => acquireLock(file)).not.toThrow();
  });

  it('is free when a later process has the id of its holder', () => {
    const file = folder.inside('reused');
    writeFileSync(file, JSON.stringify({ ...identify(process.pid), started: 'at another time' }));
    expect(() => acquireLock(file)).not.toThrow();
  });

  it('is free when its file is incomplete', () => {
    const file = folder.inside('incomplete');
    writeFileSync(file, '{"pid": 1');
    expect(() => acquireLock(file)).not.toThrow();
  });
});

describe('a data folder with a source', () => {
  describe.each([
    [false, 'read the demo data'],
    [true, 'read your database'],
  ])('a data folder whose exports read a database of the user (%s)', (hasOwnSource, message) => {
    const folder = temporaryFolder();

    it('changes its source until it has a project', () => {
      requireSameSource(folder, !hasOwnSource);
      requireSameSource(folder, hasOwnSource);
      saveDemoState(folder, { project_id: 1 });
      requireSameSource(folder, hasOwnSource);
      expect(() => requireSameSource(folder, !hasOwnSource)).toThrow(message);
    });
  });
});

describe('the ports of the servers', () => {
  const folder = temporaryFolder();
  const file = folder.inside('ports.json');

  it('stay the same between starts', async () => {
    const first = await assignPorts(file, ['one', 'two']);
    expect(first.one).not.toBe(first.two);
    await assignPorts(file, ['three']);
    await expect(assignPorts(file, ['one', 'two'])).resolves.toEqual(first);
  });

  it('are replaced when another program uses them', async () => {
    const first = await assignPorts(file, ['one', 'two']);
    const otherProgram = createServer();
    await new Promise<void>((resolve) => otherProgram.listen(first.one, '127.0.0.1', resolve));
    const second = await assignPorts(file, ['one', 'two']);
    await new Promise((resolve) => otherProgram.close(resolve));
    expect(second.one).not.toBe(first.one);
    expect(second.two).toBe(first.two);
    await expect(assignPorts(file, ['one', 'two'])).resolves.toEqual(second);
  });

  it('are not given to two processes before either listens', async () => {
    const module = join(import.meta.dirname, '../../src/local_stack/ports.ts');
    const other = spawn(
      process.execPath,
      [
        '-e',
        `import(${JSON.stringify(module)}).then(async ({ assignPorts }) => {
           const { one } = await assignPorts(${JSON.stringify(folder.inside('other.json'))}, ['one']);
           console.log(one);
           setInterval(() => {}, 1000);
         })`,
      ],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    const [line] = (await once(other.stdout, 'data')) as [Buffer];
    const reserved = Number(line.toString());
    writeFileSync(folder.inside('own.json'), JSON.stringify({ one: reserved }));
    const own = await assignPorts(folder.inside('own.json'), ['one']);
    other.kill();
    await once(other, 'exit');
    const afterwards = await assignPorts(folder.inside('own.json'), ['one']);
    expect(own.one).not.toBe(reserved);
    expect(afterwards).toEqual(own);
  });
});

describe("the user's credentials for Temporal", () => {
  const names = ['TEMPORAL_API_KEY', 'TEMPORAL_TLS_SERVER_NAME', 'TEMPORAL_PROFILE'] as const;
  afterEach(() => {
    for (const name of names) Reflect.deleteProperty(process.env, name);
  });

  const temporal = { address: '127.0.0.1:7', namespace: 'default' };
  const environmentOf = (server: typeof temporal & { configFile?: string }) =>
    stackEnvironment({ databaseUrl: 'unused', temporal: server, httpPort: 1 }, 'keys', false);

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

describe('the address in the links of the Temporal UI', () => {
  const { EXPORTD_HOST, EXPORTD_BASE_URL } = process.env;
  afterEach(() => {
    Object.assign(process.env, { EXPORTD_HOST, EXPORTD_BASE_URL });
    if (EXPORTD_HOST === undefined) delete process.env.EXPORTD_HOST;
    if (EXPORTD_BASE_URL === undefined) delete process.env.EXPORTD_BASE_URL;
  });
  const temporal = { address: '127.0.0.1:7', namespace: 'default' };
  const addressWith = (variables: Record<string, string>) => {
    delete process.env.EXPORTD_HOST;
    delete process.env.EXPORTD_BASE_URL;
    Object.assign(process.env, variables);
    return stackEnvironment({ databaseUrl: 'unused', temporal, httpPort: 18_000 }, 'keys', false)
      .EXPORTD_BASE_URL;
  };

  it('is that of the server of the stack, unless the user names another one', () => {
    expect(addressWith({})).toBe('http://127.0.0.1:18000');
    expect(addressWith({ EXPORTD_HOST: '::1' })).toBe('http://[::1]:18000');
    expect(addressWith({ EXPORTD_BASE_URL: 'https://exportd.example.com' })).toBe(
      'https://exportd.example.com',
    );
  });

  it('is unknown where the server listens on every address', () => {
    expect(addressWith({ EXPORTD_HOST: '0.0.0.0' })).toBeUndefined();
  });
});
